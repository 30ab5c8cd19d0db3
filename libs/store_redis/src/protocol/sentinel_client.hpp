// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/callback_timer.hpp"
#include "protocol/client.hpp"
#include "protocol/pending_command.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::store_redis {

/// The master that sentinels name, which must say itself that it is one. They are asked at first,
/// every now and then, and soon when the master is not there.
class sentinel_client final : public client {
 public:
  sentinel_client(engine::loop& on, server_url const& url, client_options const& options,
                  connection_options master);
  ~sentinel_client() override;
  sentinel_client(sentinel_client const&) = delete;
  auto operator=(sentinel_client const&) -> sentinel_client& = delete;

  void send(std::string_view key, command request, answer_function answer) override;
  [[nodiscard]] auto is_up(std::string_view key) const -> bool override;
  [[nodiscard]] auto error_text(std::string_view key) const -> std::string override;
  [[nodiscard]] auto counted() const -> connection::counts override;

 private:
  void send_pending(std::unique_ptr<pending_command> pending);
  void take(std::unique_ptr<pending_command> pending, answer got);
  void refresh();
  void take_master(answer const& got);
  void connect(server_address const& master);
  void next_sentinel(std::string const& why);

  engine::loop& loop_;
  client_options options_;
  connection_options for_sentinels_;
  connection_options for_master_;
  std::vector<server_address> sentinels_;
  std::string master_name_;
  std::size_t at_ = 0;       // which sentinel is asked
  std::size_t refused_ = 0;  // how many gave no master, one after the other
  std::unique_ptr<connection> sentinel_;
  std::unique_ptr<connection> master_;
  bool is_refreshing_ = false;
  bool is_ending_ = false;
  std::string error_text_;
  connection::counts gone_;
  retry_queue retries_;
  callback_timer refresh_timer_;
};

}  // namespace tidegate::store_redis
