// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "services/date_clock.hpp"
#include "services/jitter_source.hpp"
#include "services/shared_state.hpp"
#include "worker/client_connection.hpp"
#include "worker/shed_slow_clients.hpp"
#include "worker/worker_config.hpp"

#include <list>

namespace tidegate::gateway {

class change_retry_queue;
class exchange_pool;

/// Memory that all connections of a thread share. What is in it is gone when the loop runs the next
/// handler.
struct turn_buffers {
  static constexpr std::size_t input_octets_max = 64 * 1024;
  std::array<char, input_octets_max> input;  // NOLINT: what is not read is not looked at
  /// What a server sends by HTTP/2: `input` may be read to while answers in it are handed on.
  std::array<char, input_octets_max> upstream_input;  // NOLINT
  wire::request_head request;
  wire::response_head response;
  std::string to_client;
  std::string http2_output;
  std::string http2_text;
  std::string path;
  std::string field_lines;
  std::string text;
  std::string reply_lines;              // of a reply that a phase makes
  std::string grpc_lines;               // the same for a client of gRPC
  std::vector<std::string_view> lines;  // of one field
};

/// One thread: its loop, and what connections on it share because only one of them runs at a time.
class worker : public turn_buffers {
 public:
  worker(engine::loop& on, shared_state& shared_by_all, std::shared_ptr<worker_metrics> counts,
         access_log::source& lines, std::uint64_t randomness);
  ~worker();
  worker(worker const&) = delete;
  auto operator=(worker const&) -> worker& = delete;

  /// From now on requests are served by `made`.
  void use(std::unique_ptr<worker_config> made);
  /// How long a new connection may say nothing: less while the gateway stops.
  [[nodiscard]] auto first_byte_timeout() const -> std::chrono::nanoseconds;
  /// What may wait for one client, within these bounds: an equal share of half of
  /// `http.max-buffered`, so that slow readers of long answers are slowed down and not closed.
  [[nodiscard]] auto share_of_buffers(std::size_t least, std::size_t most) const -> std::size_t;

  /// Whether bodies may be kept until they are whole: with more than half of `http.max-buffered` in
  /// use they pass through as they come.
  [[nodiscard]] auto may_hold_bodies() const -> bool {
    return shared.memory.buffered.load(std::memory_order_relaxed) <=
           current->active->config.http.max_buffered / 2;
  }

  /// Makes a place for one more connection of a client, which the caller puts there. Nothing when
  /// there are as many as there may be.
  using client_place = std::list<client_connection*>::iterator;
  [[nodiscard]] auto add_client() -> std::optional<client_place>;
  void remove_client(client_place at);

  /// Whether there is a descriptor for one more connection to an upstream: others that rest are
  /// closed for it, but what is kept for clients, stores and the admin address stays.
  [[nodiscard]] auto has_room_for_upstream() -> bool;
  /// Closes one connection to an upstream that rests. False when none does.
  auto close_idle_upstream() -> bool;

  /// Requests of any thread wait for a connection to these servers, and there may be one now.
  void tell_waiting(std::shared_ptr<server_set> const& servers);

  /// Counts what waits in memory because a client is slow. `counted` is what was counted of it
  /// before, and becomes `octets`; see `slow_client_shedder`.
  void count_buffered(std::size_t& counted, std::size_t octets) {
    if (counted != octets) [[unlikely]] {
      shedder.recount(counted, octets);
    }
  }

  /// Makes a change as soon as the store lets it. What cannot be kept that long becomes an unknown
  /// outcome by itself.
  void retry_later(idempotency::change change);
  void release(worker_config& used);
  /// Has metrics say how often the store of quotas was written to.
  void count_round_trips();
  /// Tells people of an outcome that has become unknown, at most every ten seconds; others are
  /// counted for the next line.
  void note_unknown(std::string_view what);

  /// Nothing happens when the log was turned off meanwhile.
  void write_log(std::string_view line);
  /// For a request whose head could not be read.
  void log_malformed(http::ip_address const& client, std::string_view protocol, int status);

  [[nodiscard]] auto random() noexcept -> std::uint64_t { return jitter.next(); }
  /// `Date: Sun, 06 Nov 1994 08:49:37 GMT` and the end of line, of this second.
  [[nodiscard]] auto date_line() -> std::string_view { return date_.line(loop.now()); }
  [[nodiscard]] auto wall_clock() -> std::chrono::sys_seconds {
    return date_.wall_clock(loop.now());
  }
  /// The time of idempotency keys. Only where a route has them.
  [[nodiscard]] auto key_time() const -> idempotency::wall_time {
    return shared.idempotency->clock.at(loop.now());
  }

  engine::loop& loop;
  std::unique_ptr<store::quota_store> quotas;  // null where they are in memory
  idempotency::part_memo fingerprint_parts;
  std::string key_host;  // of the last request with a key
  shared_state& shared;
  std::shared_ptr<worker_metrics> metrics;
  worker_config* current = nullptr;
  exchange_pool* exchanges = nullptr;  // of the `serving_worker` that this is a part of
  access_log::source* log = nullptr;   // while requests are logged
  jitter_source jitter;

  std::list<client_connection*> clients;  // that are open
  slow_client_shedder shedder{*this};

 private:
  void note_out_of_memory() noexcept;

  std::vector<std::unique_ptr<worker_config>> configs_;
  access_log::source& log_source_;
  std::unique_ptr<change_retry_queue> retry_queue_;
  std::uint64_t round_trips_ = 0;  // that were counted
  date_clock date_;
};

}  // namespace tidegate::gateway
