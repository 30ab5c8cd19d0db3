// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/engine/loop.hpp>
#include <tidegate/engine/socket.hpp>
#include <tidegate/store_redis/server_url.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tidegate::store_redis {

using addresses = result<std::vector<engine::socket_address>, std::string>;

/// Finds the addresses of a server without having the loop wait: names are looked up on a thread,
/// of which a resolver has at most one.
class resolver {
 public:
  explicit resolver(engine::loop& on);
  ~resolver();
  resolver(resolver const&) = delete;
  auto operator=(resolver const&) -> resolver& = delete;

  /// Answers on the loop: at once for an address, in a later turn for a name. While a lookup is
  /// under way, its outcome goes to the last caller.
  void find(server_address const& server, std::move_only_function<void(addresses)> answer);
  /// The answer is not wanted any more.
  void forget() noexcept;

 private:
  struct lookup;
  engine::loop& loop_;
  std::shared_ptr<lookup> lookup_;
};

}  // namespace tidegate::store_redis
