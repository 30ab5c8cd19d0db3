// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/server_set.hpp>

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace tidegate::gateway {

namespace {

[[nodiscard]] auto socket_address_of(http::ip_address const& ip, std::uint16_t port)
    -> engine::socket_address {
  auto const bytes = ip.bytes();
  if (ip.is_v4()) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    std::memcpy(&to.sin_addr, bytes.data(), bytes.size());
    return engine::socket_address::from_bytes(&to, sizeof to);
  }
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(port);
  std::memcpy(&to.sin6_addr, bytes.data(), bytes.size());
  return engine::socket_address::from_bytes(&to, sizeof to);
}

[[nodiscard]] auto authority_of(upstream_server const& server) -> std::string {
  if (!server.socket.empty()) {
    return "localhost";
  }
  auto authority = server.host.contains(':') ? "[" + server.host + "]" : server.host;
  if (server.port != (server.tls ? 443 : 80)) {
    authority += ":" + std::to_string(server.port);
  }
  return authority;
}

/// What the servers that one URL stands for have in common.
[[nodiscard]] auto identity_of(upstream_server const& server, upstream_tls const& tls)
    -> server_identity {
  return {
      .label = server.written.empty() ? to_string(server) : server.written,
      .authority = authority_of(server),
      .tls_name = server.tls ? std::optional(tls.server_name.value_or(server.host)) : std::nullopt,
      .base_path = server.path};
}

[[nodiscard]] auto is_same(server_identity const& a, server_identity const& b) -> bool {
  return a.label == b.label && a.authority == b.authority && a.tls_name == b.tls_name &&
         a.base_path == b.base_path && a.address.to_string() == b.address.to_string();
}

}  // namespace

void server_set::use(upstream_config const& settings) {
  std::lock_guard const lock(mutex_);
  written_ = settings.servers;
  tls_ = settings.tls;
  outlier_ = settings.outlier;
  health_ = settings.health ? std::optional(settings.health->thresholds) : std::nullopt;
  std::erase_if(addresses_, [&](auto const& known) {
    return std::ranges::find(written_, known.first, &upstream_server::host) == written_.end();
  });
  make_list();
  for (auto const& [server, weight] : *list_) {
    if (!health_) {  // nothing would say that it is well again
      server->health_ = {};
      server->usable_from_.store(
          std::max(server->outlier_.ejected_until(), balance::candidate::always),
          std::memory_order_relaxed);
    }
  }
}

auto server_set::resolved(std::string const& host, std::vector<http::ip_address> const& addresses)
    -> bool {
  std::lock_guard const lock(mutex_);
  auto& known = addresses_[host];
  if (known == addresses) {
    return false;
  }
  known = addresses;
  make_list();
  return true;
}

auto server_set::list() const -> std::shared_ptr<server_list const> {
  std::lock_guard const lock(mutex_);
  return list_;
}

void server_set::make_list() {
  auto made = std::make_shared<server_list>();
  auto const add = [&](server_identity is, std::int64_t weight) {
    auto const found = std::ranges::find_if(
        *list_, [&](listed_server const& old) { return is_same(old.server->identity, is); });
    made->push_back(
        {found != list_->end() ? found->server : std::make_shared<shared_server>(std::move(is)),
         weight});
  };
  for (auto const& server : written_) {
    auto const parts = server.weight * balance::parts_of_weight;
    auto is = identity_of(server, tls_);
    if (!server.socket.empty()) {
      if (auto const address = engine::socket_address::parse("unix:" + server.socket)) {
        is.address = *address;
        add(std::move(is), parts);
      }
    } else if (auto const ip = http::parse_ip_address(server.host)) {
      is.address = socket_address_of(*ip, server.port);
      add(std::move(is), parts);
    } else if (auto const known = addresses_.find(server.host); known != addresses_.end()) {
      auto const count = static_cast<std::int64_t>(known->second.size());
      for (auto const& address : known->second) {
        auto one = is;
        one.label += "#" + http::to_string(address);
        one.address = socket_address_of(address, server.port);
        add(std::move(one), parts == 0 ? 0 : std::max<std::int64_t>(parts / count, 1));
      }
    }
  }
  list_ = std::move(made);
  version_.fetch_add(1, std::memory_order_release);
}

auto server_set::has_another(shared_server const& server, instant now) const -> bool {
  return std::ranges::any_of(*list_, [&](listed_server const& each) {
    return each.server.get() != &server && each.weight > 0 && now >= each.server->usable_from();
  });
}

void server_set::publish(shared_server& server, instant now) {
  auto from = instant::max();
  if (server.health_.is_up()) {
    auto const ejected = server.outlier_.ejected_until();
    from = ejected > now ? ejected : now;
  }
  server.usable_from_.store(from, std::memory_order_relaxed);
  version_.fetch_add(1, std::memory_order_release);
}

auto server_set::failed(shared_server& server, instant now) -> failure_verdict {
  std::lock_guard const lock(mutex_);
  failure_verdict verdict{.in_a_row = server.in_a_row_.fetch_add(1, std::memory_order_relaxed) + 1};
  if (!outlier_ || !server.outlier_.failed(*outlier_, now)) {
    return verdict;
  }
  verdict.is_down = true;
  if (has_another(server, now)) {
    verdict.out_for = server.outlier_.eject(*outlier_, now);
    publish(server, now);
  } else {
    server.down_.store(true, std::memory_order_relaxed);
  }
  return verdict;
}

void server_set::answered(shared_server& server) {
  std::lock_guard const lock(mutex_);
  server.outlier_.answered();
  server.in_a_row_.store(0, std::memory_order_relaxed);
  server.down_.store(false, std::memory_order_relaxed);
}

auto server_set::checked(shared_server& server, bool passed, instant now) -> bool {
  std::lock_guard const lock(mutex_);
  if (!health_ || !server.health_.checked(*health_, passed)) {
    return false;
  }
  publish(server, now);
  return true;
}

auto server_set::take_retry(instant now) -> bool {
  std::lock_guard const lock(mutex_);
  return retries_.take(now);
}

}  // namespace tidegate::gateway
