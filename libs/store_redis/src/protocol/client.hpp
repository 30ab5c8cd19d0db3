// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/connection.hpp"

#include <tidegate/base/result.hpp>
#include <tidegate/engine/loop.hpp>
#include <tidegate/store_redis/resp.hpp>
#include <tidegate/store_redis/server_url.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace tidegate::store_redis {

struct client_options {
  std::chrono::milliseconds connect_timeout{2'000};
  std::chrono::milliseconds command_timeout{1'000};
  std::chrono::milliseconds backoff_first{50};
  std::chrono::milliseconds backoff_max{2'000};
  /// How often a cluster is asked where keys live, and sentinels who the master is: while all is
  /// well, and while something is not.
  std::chrono::milliseconds refresh_interval{2'000};
  std::chrono::milliseconds recovery_interval{100};
  std::size_t commands_max = 65'536;  ///< that wait for an answer of one server
  std::size_t octets_max = std::size_t{64}
                           << 20;  ///< of commands that wait to be sent to one server
};

/// Redis as a whole: one server, the master that sentinels name, or the masters of a cluster. All
/// of it belongs to the thread of one loop.
class client {
 public:
  /// Reads the files of TLS and begins to connect. The error is one line for people.
  [[nodiscard]] static auto make(engine::loop& on, server_url const& url,
                                 client_options const& options = {})
      -> result<std::unique_ptr<client>, std::string>;
  client() = default;
  /// Answers whatever waits with `stopped`.
  virtual ~client() = default;
  client(client const&) = delete;
  auto operator=(client const&) -> client& = delete;

  /// Sends a command to the server of `key`, which must be the server of all keys in it. It goes to
  /// another one when the server says so. Answers as `connection::send` does; an answer must not
  /// destroy the client.
  virtual void send(std::string_view key, command request, answer_function answer) = 0;
  /// False while it is known that there would be no answer.
  [[nodiscard]] virtual auto is_up(std::string_view key) const -> bool = 0;
  /// Why it is not up.
  [[nodiscard]] virtual auto error_text(std::string_view key) const -> std::string = 0;
  /// Of all connections that there were.
  [[nodiscard]] virtual auto counted() const -> connection::counts = 0;
};

/// What the connections of a client have in common.
[[nodiscard]] auto connection_to(server_address server, client_options const& options)
    -> connection_options;

}  // namespace tidegate::store_redis
