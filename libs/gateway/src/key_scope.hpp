// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// Appends the value of one source of `idempotency.scope` to the text of a scope, with its length, which
/// keeps values apart.
inline void append_scope_value(std::string& scope, std::string_view value) {
  scope.append(std::to_string(value.size())).append(":").append(value);
}

/// The host of an authority as hosts are compared: in lower case, without port and trailing dot. A scope begins with it,
/// so that a key of another host is another key.
[[nodiscard]] inline auto host_of(std::string_view authority) -> std::string {
  auto const bracket = authority.starts_with('[') ? authority.find(']') : 0;
  auto const colon = bracket == std::string_view::npos ? bracket : authority.find(':', bracket);
  auto host = authority.substr(0, colon);
  if (host.ends_with('.')) {
    host.remove_suffix(1);
  }
  std::string lower(host);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

/// The hosts that requests with keys named last, so that an operator who asks for a key need not say of which host it is.
/// From any thread.
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
