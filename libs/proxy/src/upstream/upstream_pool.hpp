// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "upstream/health_checks.hpp"
#include "upstream/request_pause.hpp"
#include "upstream/upstream_connection.hpp"
#include "worker/worker.hpp"

#include <deque>

namespace tidegate::gateway {

/// One server as one thread knows it. It stays while there are connections to it, also when the
/// server is listed no more.
struct server_slot final : balance::candidate {
  std::shared_ptr<shared_server> server;
  std::shared_ptr<server_metrics> counts;
  std::shared_ptr<server_report> report;
  std::vector<upstream_connection*> idle{};
  std::size_t connections = 0;
  bool is_listed = true;
};

/// What a request says of the connection that it wants.
struct connection_options {
  bool fresh = false;       ///< not one that rests
  bool has_waited = false;  ///< others do not come before it
  balance::pick_options server{};
};

/// The servers that failed one request.
class failed_servers {
 public:
  void clear() noexcept { count_ = 0; }
  void add(std::uint32_t server) noexcept {
    ids_[count_ % ids_.size()] = server;
    ++count_;
  }
  [[nodiscard]] auto ids() const noexcept -> std::span<std::uint32_t const> {
    return {ids_.data(), std::min(count_, ids_.size())};
  }

 private:
  std::array<std::uint32_t, 4> ids_{};
  std::size_t count_ = 0;
};

/// The connections of one thread to one upstream.
class upstream_pool final : public idle_connections {
 public:
  upstream_pool(worker& on, upstream const& to);
  ~upstream_pool() override;
  upstream_pool(upstream_pool const&) = delete;
  auto operator=(upstream_pool const&) -> upstream_pool& = delete;

  /// A connection to the server that is chosen: one that rests, the last used first, or a new one.
  /// When none can be made: why.
  [[nodiscard]] auto take(connection_options const& options)
      -> result<upstream_connection*, upstream_failure>;
  auto close_idle() -> bool override;
  void connection_freed(server_set const& servers) override;

  /// Until when a request may wait that `take` told `busy`; nothing when it may not.
  [[nodiscard]] auto may_wait_until() const -> std::optional<instant>;

  [[nodiscard]] auto target() const noexcept -> upstream const& { return upstream_; }
  [[nodiscard]] auto in_flight() const noexcept -> std::int64_t { return in_flight_; }
  /// The server that `take` chose last, for `balance::pick_options::avoid`.
  [[nodiscard]] auto last_server() const noexcept -> std::uint32_t { return last_server_; }
  /// Whether there is a server that gets requests besides these.
  [[nodiscard]] auto has_server_besides(std::span<std::uint32_t const> ids) const -> bool;

  // For health checks.
  /// Takes over what has become of the servers.
  void follow_servers() {
    if (version_ != upstream_.servers->version()) [[unlikely]] {
      refresh();
    }
  }
  [[nodiscard]] auto listed_slots() const -> std::vector<server_slot*>;
  /// A new connection for one exchange that counts nowhere.
  [[nodiscard]] auto connect_for_check(server_slot& to)
      -> result<upstream_connection*, upstream_failure>;

  /// For the budget of retries: a request comes that may be sent again.
  void count_request() noexcept { budget_.request(worker_.loop.now()); }
  /// Takes one retry of the budget. False when there is none left.
  [[nodiscard]] auto may_retry() -> bool;

 private:
  friend class upstream_connection;
  friend class request_pause;

  /// Counts a new connection. False when there are `max-connections`.
  [[nodiscard]] auto has_room() -> bool;
  /// A connection rests.
  void has_come_to_rest();
  void add_waiting(request_pause& who, bool is_next);
  void remove_waiting(request_pause& who) noexcept;

  /// Follows the servers of the upstream.
  void refresh();
  void add_slot(listed_server const& of);
  /// Closes what rests, and forgets the server when nothing is left of it.
  void retire(server_slot& slot);
  void forget_if_gone(server_slot& slot);
  [[nodiscard]] auto connect(server_slot& to, bool is_check)
      -> result<upstream_connection*, upstream_failure>;

  /// The head of a response has come.
  void note_response(server_slot& slot, int status, std::chrono::nanoseconds took);
  /// No whole response came. `what` went wrong, for people.
  void note_failure(server_slot& slot, std::string_view what);
  /// An exchange with a server is over.
  void leave(server_slot& slot) {
    --in_flight_;
    --slot.in_flight;
    slot.counts->in_flight.subtract();
  }
  /// A connection is closed. The slot may be gone then.
  void closed(upstream_connection& connection);

  static constexpr std::size_t idle_max = 256;  // for each server

  worker& worker_;
  upstream const& upstream_;
  latency_counts& latency_;
  std::uint64_t version_ = 0;  // of the servers, as they are here
  std::uint32_t last_id_ = 0;
  std::uint32_t last_server_ = 0;
  std::vector<std::unique_ptr<server_slot>> slots_;
  std::vector<balance::candidate*> listed_;  // of the slots
  balance::picker picker_;
  balance::retry_budget budget_;
  std::vector<upstream_connection*> all_;
  std::int64_t in_flight_ = 0;
  std::deque<request_pause*> waiting_;     // for one of `max-connections`
  std::unique_ptr<health_checks> health_;  // where the upstream has them
};

}  // namespace tidegate::gateway
