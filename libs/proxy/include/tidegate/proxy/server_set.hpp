// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>
#include <tidegate/engine/socket.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

namespace tidegate::gateway {

/// How a server is reached. Two that are reached the same way are the same server.
struct server_identity {
  std::string label;      ///< its URL as it is written; of a name, with `#` and the address
  std::string authority;  ///< what a Host field would say
  engine::socket_address address{};
  std::optional<std::string> tls_name{};  ///< whom TLS must prove to be there; missing in clear
  std::string base_path{};                ///< put before the path of a request
};

/// A server of an upstream as all threads see it. Its `server_set` changes it.
class shared_server {
 public:
  explicit shared_server(server_identity how) : identity(std::move(how)) {}

  server_identity const identity;

  /// Until then it gets no requests while there are others.
  [[nodiscard]] auto usable_from() const noexcept -> instant {
    return usable_from_.load(std::memory_order_relaxed);
  }
  /// False while it is ejected or unhealthy, also where it is used since there is no other.
  [[nodiscard]] auto is_up(instant now) const noexcept -> bool {
    return now >= usable_from() && !down_.load(std::memory_order_relaxed);
  }
  /// Failures since the last answer.
  [[nodiscard]] auto failures_in_a_row() const noexcept -> std::uint64_t {
    return in_a_row_.load(std::memory_order_relaxed);
  }

 private:
  friend class server_set;
  std::atomic<instant> usable_from_{balance::candidate::always};
  std::atomic<std::uint64_t> in_a_row_{0};
  std::atomic<bool> down_{false};  // it would be ejected if there were another one
  // The mutex of the set guards these.
  balance::outlier outlier_;
  balance::health health_;
};

struct listed_server {
  std::shared_ptr<shared_server> server;
  std::int64_t weight = 0;  ///< in parts
};
using server_list = std::vector<listed_server>;

/// What a failure of a server leads to.
struct failure_verdict {
  std::uint64_t in_a_row = 0;
  bool is_down = false;  ///< there were so many in a row that it is to be ejected
  std::optional<std::chrono::nanoseconds> out_for{};  ///< ejected; missing when it is the last one
};

/// The connections to the servers of an upstream, of all threads, where `max-connections` bounds
/// them.
struct connection_counts {
  /// So many requests wait for one at most.
  static constexpr std::int64_t waiting_max = 1024;

  std::atomic<std::int64_t> open{0};
  std::atomic<std::int64_t> idle{0};     ///< of `open`
  std::atomic<std::int64_t> waiting{0};  ///< requests
};

/// The servers of one upstream in this process: those of the configuration, and all addresses that
/// their names have now. What is known of a server stays over a reload. All threads use it.
class server_set {
 public:
  server_set() = default;
  server_set(server_set const&) = delete;
  auto operator=(server_set const&) -> server_set& = delete;

  /// From now on the servers and settings are those of `settings`.
  void use(upstream_config const& settings);
  /// The addresses of a name. True when servers have come or gone.
  auto resolved(std::string const& host, std::vector<http::ip_address> const& addresses) -> bool;

  /// Changes whenever `list` does, or what is known of the servers.
  [[nodiscard]] auto version() const noexcept -> std::uint64_t {
    return version_.load(std::memory_order_acquire);
  }
  [[nodiscard]] auto list() const -> std::shared_ptr<server_list const>;

  [[nodiscard]] auto failed(shared_server& server, instant now) -> failure_verdict;
  /// A response other than a failure; to be called when `failures_in_a_row` is not 0.
  void answered(shared_server& server);
  /// A health check. True when the server is healthy now and was not, or the other way round.
  [[nodiscard]] auto checked(shared_server& server, bool passed, instant now) -> bool;
  /// Takes one of the retries that are there beyond the budget of a thread.
  [[nodiscard]] auto take_retry(instant now) -> bool;

  connection_counts connections;

 private:
  void make_list();
  /// Whether another server than `server` takes requests.
  [[nodiscard]] auto has_another(shared_server const& server, instant now) const -> bool;
  void publish(shared_server& server, instant now);

  mutable std::mutex mutex_;
  std::atomic<std::uint64_t> version_{0};
  std::shared_ptr<server_list const> list_ = std::make_shared<server_list>();
  std::vector<upstream_server> written_;
  upstream_tls tls_;
  std::optional<balance::outlier_settings> outlier_;
  std::optional<balance::health_thresholds> health_;
  std::map<std::string, std::vector<http::ip_address>> addresses_;  // of names
  balance::retry_floor retries_;
};

}  // namespace tidegate::gateway
