// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/connection.hpp"

#include <tidegate/base/result.hpp>
#include <tidegate/engine/loop.hpp>
#include <tidegate/store_redis/resp.hpp>
#include <tidegate/store_redis/server_url.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace tidegate::store_redis {

/// Redis as a whole: one server, the master that sentinels name, or the masters of a cluster. All
/// of it belongs to the thread of one loop.
class client {
 public:
  /// Reads the files of TLS and begins to connect, with `options` for all connections but for what
  /// the URL says. The error is one line for people.
  [[nodiscard]] static auto make(engine::loop& on, server_url const& url,
                                 connection_options options = {})
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
};

[[nodiscard]] auto make_sentinel_client(engine::loop& on, server_url const& url,
                                        connection_options options) -> std::unique_ptr<client>;
[[nodiscard]] auto make_cluster_client(engine::loop& on, server_url const& url,
                                       connection_options options) -> std::unique_ptr<client>;

}  // namespace tidegate::store_redis
