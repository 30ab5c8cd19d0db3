// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "upstream/http2_upstream_connection.hpp"
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

  /// For one request to the server with the fewest exchanges among those that are not ejected: a
  /// connection that rests, the last used first, a stream on one of HTTP/2 that has room, or a new
  /// one. `fresh`: the request was not taken by one of these. When none can be made: why.
  [[nodiscard]] auto take(bool fresh) -> result<upstream_stream*, upstream_failure>;
  auto close_idle() -> bool override;

  [[nodiscard]] auto target() const noexcept -> upstream const& { return upstream_; }
  [[nodiscard]] auto in_flight() const noexcept -> std::int64_t { return in_flight_; }

 private:
  friend class upstream_connection;
  friend class http2_upstream_connection;
  friend class http2_upstream_stream;
  struct server_state {
    server_metrics* counts = nullptr;
    server_report* report = nullptr;
    std::vector<upstream_connection*> idle;
    std::vector<http2_upstream_connection*> http2;
    bool speaks_http2 = false;  // as far as is known
    std::int64_t in_flight = 0;
    unsigned failures = 0;  // one after the other
    instant ejected_until{instant::min()};
  };

  [[nodiscard]] auto pick() const -> std::size_t;
  [[nodiscard]] auto connect(std::size_t server) -> result<engine::transport, upstream_failure>;
  [[nodiscard]] auto take_http1(std::size_t server, bool fresh)
      -> result<upstream_stream*, upstream_failure>;
  [[nodiscard]] auto take_http2(std::size_t server, bool fresh)
      -> result<upstream_stream*, upstream_failure>;
  /// A connection that turned out to speak HTTP/2; null when the system does not let it be watched.
  [[nodiscard]] auto add_http2(std::size_t server, engine::transport transport)
      -> http2_upstream_connection*;
  void remove_http2(std::size_t server, http2_upstream_connection& gone);
  /// What a server has agreed to.
  void note_protocol(std::size_t server, bool is_http2);
  /// How long the head of a response took.
  void note_latency(std::size_t server, std::chrono::nanoseconds latency);
  /// An answer did not come in time, and is still waited for.
  void note_late(std::size_t server, std::string_view what);
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
