// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "upstream/connection_limit.hpp"
#include "upstream/health_checks.hpp"
#include "upstream/http2_upstream_connection.hpp"
#include "upstream/server_slot.hpp"
#include "upstream/upstream_connection.hpp"
#include "worker/worker.hpp"

#include <tidegate/balance/retry.hpp>

namespace tidegate::gateway {

/// The connections of one thread to one upstream.
class upstream_pool final : public idle_connections {
 public:
  upstream_pool(worker& on, upstream const& to);
  ~upstream_pool() override;
  upstream_pool(upstream_pool const&) = delete;
  auto operator=(upstream_pool const&) -> upstream_pool& = delete;

  /// For one request to the server that is chosen: a connection that rests, the last used first, a
  /// stream on one of HTTP/2 that has room, or a new one. When none can be made: why.
  [[nodiscard]] auto take(connection_options const& options)
      -> result<upstream_stream*, upstream_failure>;
  auto close_idle() -> bool override;
  void connection_freed(server_set const& servers) override;

  /// Until when a request may wait that `take` told `busy`, where it does so.
  [[nodiscard]] auto limit() noexcept -> connection_limit& { return limit_; }
  [[nodiscard]] auto target() const noexcept -> upstream const& { return upstream_; }
  [[nodiscard]] auto in_flight() const noexcept -> std::int64_t;
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
  [[nodiscard]] auto listed() const noexcept -> std::span<balance::candidate* const> {
    return listed_;
  }
  /// A new connection for one exchange that counts nowhere.
  [[nodiscard]] auto connect_for_check(server_slot& to)
      -> result<upstream_stream*, upstream_failure>;

  /// For the budget of retries: a request comes that may be sent again.
  void count_request() noexcept { budget_.request(worker_.loop.now()); }
  /// Takes one retry of the budget. False when there is none left.
  [[nodiscard]] auto may_retry() -> bool;

 private:
  friend class upstream_connection;
  friend class http2_upstream_connection;

  /// Follows the servers of the upstream.
  void refresh();
  void add_slot(listed_server const& of);
  /// Closes what rests, and forgets the server when nothing is left of it.
  void retire(server_slot& slot);
  void forget_if_gone(server_slot& slot);

  [[nodiscard]] auto pick(balance::pick_options const& options) -> balance::candidate*;
  /// A new connection; one for a check does not count in `max-connections`.
  [[nodiscard]] auto connect(server_slot& to, bool is_check)
      -> result<engine::transport, upstream_failure>;
  [[nodiscard]] auto connect_http1(server_slot& to, bool is_check)
      -> result<upstream_stream*, upstream_failure>;
  [[nodiscard]] auto connect_http2(server_slot& to, bool is_check)
      -> result<upstream_stream*, upstream_failure>;
  [[nodiscard]] auto take_http2(server_slot& from, bool fresh)
      -> result<upstream_stream*, upstream_failure>;
  /// A connection that turned out to speak HTTP/2; null when the system does not let it be watched.
  [[nodiscard]] auto add_http2(server_slot& of, engine::transport transport, bool is_check)
      -> http2_upstream_connection*;
  /// What a server has agreed to.
  void note_protocol(server_slot& slot, bool is_http2) const;

  void opened(server_slot& slot);
  /// A connection is closed. The slot may be gone then.
  void closed(server_slot& slot, bool is_check, bool rested);

  static constexpr std::size_t idle_max = 256;  // for each server

  worker& worker_;
  upstream const& upstream_;
  connection_limit limit_;
  std::uint64_t version_ = 0;  // of the servers, as they are here
  std::uint32_t last_id_ = 0;
  std::uint32_t last_server_ = 0;
  std::vector<std::unique_ptr<server_slot>> slots_;
  std::vector<balance::candidate*> listed_;  // of the slots
  balance::picker picker_;
  balance::retry_budget budget_;
  std::vector<upstream_connection*> all_;
  std::unique_ptr<health_checks> health_;  // where the upstream has them
};

}  // namespace tidegate::gateway
