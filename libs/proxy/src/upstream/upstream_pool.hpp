// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "upstream/upstream_connection.hpp"
#include "worker/worker.hpp"

namespace tidegate::gateway {

/// The connections of one thread to one upstream.
class upstream_pool final : public idle_connections {
 public:
  upstream_pool(worker& on, upstream const& to);
  ~upstream_pool() override;
  upstream_pool(upstream_pool const&) = delete;
  auto operator=(upstream_pool const&) -> upstream_pool& = delete;

  /// A connection to the server with the fewest exchanges among those that are not ejected: one
  /// that rests, the last used first, or a new one. When none can be made: why.
  [[nodiscard]] auto take(bool fresh) -> result<upstream_connection*, upstream_failure>;
  auto close_idle() -> bool override;

  [[nodiscard]] auto target() const noexcept -> upstream const& { return upstream_; }
  [[nodiscard]] auto in_flight() const noexcept -> std::int64_t { return in_flight_; }

 private:
  friend class upstream_connection;
  struct server_state {
    server_metrics* counts = nullptr;
    server_report* report = nullptr;
    std::vector<upstream_connection*> idle;
    std::int64_t in_flight = 0;
    unsigned failures = 0;  // one after the other
    instant ejected_until{instant::min()};
  };

  [[nodiscard]] auto pick() const -> std::size_t;
  void note_answer(std::size_t server);
  /// `what` went wrong, for people.
  void note_failure(std::size_t server, std::string_view what);
  /// An exchange with a server is over.
  void leave(std::size_t server) {
    --in_flight_;
    --servers_[server].in_flight;
    servers_[server].counts->in_flight.subtract();
  }

  static constexpr std::size_t idle_max = 256;  // for each server

  worker& worker_;
  upstream const& upstream_;
  std::vector<server_state> servers_;
  std::vector<upstream_connection*> all_;
  std::int64_t in_flight_ = 0;
  mutable std::size_t turn_ = 0;
};

}  // namespace tidegate::gateway
