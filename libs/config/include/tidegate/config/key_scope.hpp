// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/target.hpp>
#include <tidegate/ratelimit/partition.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// Whether requests that lack a source of that kind lack an owner of their keys. Every request has
/// an address, a method, a host, a path and a route, so these tell no client from another,
/// and a plan has many.
[[nodiscard]] inline auto names_client(ratelimit::partition_source_kind kind) -> bool {
  using enum ratelimit::partition_source_kind;
  return kind == header || kind == query || kind == cookie || kind == principal ||
         kind == attribute;
}

/// Appends the value of one source of `idempotency.scope` to the text of a scope, with its length,
/// which keeps values apart.
inline void append_scope_value(std::string& scope, std::string_view value) {
  scope.append(std::to_string(value.size())).append(":").append(value);
}

/// The host of an authority as hosts are compared everywhere; empty for that of an HTTP/1.0 request
/// that names none. A scope begins with it, so that a key of another host is another key.
[[nodiscard]] inline auto host_of(std::string_view authority) -> std::string {
  std::string host;
  if (auto const parsed = http::parse_host(authority)) {
    http::append_normal_host(host, *parsed);
  }
  return host;
}

/// The hosts that requests with keys named last, so that an operator who asks for a key need not
/// say of which host it is. From any thread.
class seen_hosts {
 public:
  static constexpr std::size_t hosts_max = 64;

  void add(std::string_view host) {
    std::lock_guard const lock(mutex_);
    if (std::ranges::find(hosts_, host) == hosts_.end()) {
      hosts_.emplace_front(host);
      hosts_.resize(std::min(hosts_.size(), hosts_max));
    }
  }
  [[nodiscard]] auto all() const -> std::vector<std::string> {
    std::lock_guard const lock(mutex_);
    return {hosts_.begin(), hosts_.end()};
  }

 private:
  mutable std::mutex mutex_;
  std::deque<std::string> hosts_;
};

}  // namespace tidegate::gateway
