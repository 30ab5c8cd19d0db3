// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/callback_timer.hpp"
#include "protocol/client.hpp"
#include "protocol/cluster_slots.hpp"
#include "protocol/pending_command.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::store_redis {

/// The masters of a Redis Cluster. Asks any of them for the map of slots: at first, every now and
/// then, and soon when something is not as the map says.
class cluster_client final : public client {
 public:
  cluster_client(engine::loop& on, server_url const& url, client_options const& options,
                 connection_options each);
  ~cluster_client() override;
  cluster_client(cluster_client const&) = delete;
  auto operator=(cluster_client const&) -> cluster_client& = delete;

  void send(std::string_view key, command request, answer_function answer) override;
  [[nodiscard]] auto is_up(std::string_view key) const -> bool override;
  [[nodiscard]] auto error_text(std::string_view key) const -> std::string override;
  [[nodiscard]] auto counted() const -> connection::counts override;

 private:
  struct node {
    server_address address;
    std::unique_ptr<connection> to;
    bool is_seed = false;
    unsigned unused = 0;  // in so many maps one after the other
  };

  [[nodiscard]] auto node_at(server_address const& address) -> node*;
  [[nodiscard]] auto node_of(std::uint16_t slot) const -> node* { return slots_[slot]; }
  void send_pending(std::unique_ptr<pending_command> pending);
  void send_to(std::unique_ptr<pending_command> pending, node& where, bool is_asking);
  void take(std::unique_ptr<pending_command> pending, server_address const& from, answer got);
  void refresh();
  void take_map(server_address const& from, answer const& got);
  void set_refresh_timer();
  void forget_unused();
  [[nodiscard]] auto all_down() const -> bool;

  engine::loop& loop_;
  client_options options_;
  connection_options each_;
  std::vector<std::unique_ptr<node>> nodes_;
  std::array<node*, cluster_slots> slots_{};
  bool has_map_ = false;
  bool is_refreshing_ = false;
  bool is_stale_ = true;  // a server said that the map is not right
  bool is_ending_ = false;
  std::size_t next_ = 0;  // which node to ask for the map
  std::string error_text_;
  connection::counts gone_;  // of nodes that are not there any more
  retry_queue retries_;
  callback_timer refresh_timer_;
};

}  // namespace tidegate::store_redis
