// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "observe/access_log.hpp"
#include "observe/metrics.hpp"
#include "services/jitter_source.hpp"
#include "services/shared_state.hpp"
#include "worker_config.hpp"

#include <tidegate/engine/loop.hpp>
#include <tidegate/idempotency/change.hpp>
#include <tidegate/idempotency/fingerprint.hpp>
#include <tidegate/idempotency/wall_time.hpp>
#include <tidegate/proxy/active_config.hpp>
#include <tidegate/store/quota_store.hpp>
#include <tidegate/wire/http1_head.hpp>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tidegate::gateway {

class exchange;
class change_retry_queue;
class listener;
class upstream_pool;

/// How a client takes what waits for it.
class reading_pace {
 public:
  /// It took `taken` octets, and `waiting` wait now. What is little beside those is no progress: a
  /// client that takes an octet now and then is as slow as one that takes nothing.
  void note(std::size_t taken, std::size_t waiting, instant now) noexcept {
    taken_ += taken;
    if (!waits_ || taken_ >= waiting / 8) {
      since_ = now;
      taken_ = 0;
    }
    waits_ = waiting > 0;
  }
  /// When it last made progress, or something began to wait.
  [[nodiscard]] auto since() const noexcept -> instant { return since_; }

 private:
  instant since_{};
  std::size_t taken_ = 0;
  bool waits_ = false;
};

/// A connection of a client, whatever it speaks.
class client_connection {
 public:
  /// Closes when nothing is under way; else after what is.
  virtual void drain() = 0;
  /// Closes at once.
  virtual void drop() = 0;
  /// What is in memory because the client does not take or give the rest.
  [[nodiscard]] virtual auto waiting_octets() const -> std::size_t { return 0; }
  /// Since when it has been waited for to take or give some of that; `now` when it is not.
  [[nodiscard]] virtual auto waiting_since(instant now) const -> instant { return now; }

 protected:
  ~client_connection() = default;
};

class worker;

/// One thread: its loop, and what connections on it share because only one of them runs at a time.
class worker {
 public:
  worker(engine::loop& on, shared_state& shared_by_all, std::shared_ptr<worker_metrics> counts,
         access_log::source& lines, std::uint64_t randomness);
  ~worker();
  worker(worker const&) = delete;
  auto operator=(worker const&) -> worker& = delete;

  /// From now on requests are served by these settings.
  void use(std::shared_ptr<active_config const> active);
  /// `address` is what the settings call it; `shared_socket` when it is the one of all workers.
  void add_listener(engine::descriptor socket, std::string address, bool shared_socket);
  /// Takes what waits to be accepted, accepts no more, and closes what is idle.
  void drain();
  /// How long a new connection may say nothing: less while the gateway stops.
  [[nodiscard]] auto first_byte_timeout() const -> std::chrono::nanoseconds;
  /// What may wait for one client, within these bounds: an equal share of half of `http.max-buffered`, so
  /// that slow readers of long answers are slowed down and not closed.
  [[nodiscard]] auto share_of_buffers(std::size_t least, std::size_t most) const -> std::size_t;

  /// Whether bodies may be kept until they are whole: with more than half of `http.max-buffered` in
  /// use they pass through as they come.
  [[nodiscard]] auto may_hold_bodies() const -> bool {
    return shared.memory.buffered.load(std::memory_order_relaxed) <=
           current->active->config.http.max_buffered / 2;
  }

  /// Enters one more connection of a client, which whoever asks puts at its place. Nothing when there are as
  /// many as there may be.
  using client_place = std::list<client_connection*>::iterator;
  [[nodiscard]] auto add_client() -> std::optional<client_place>;
  void remove_client(client_place at);

  /// Whether there is a descriptor for one more connection to an upstream: others that rest are
  /// closed for it, but what is kept for clients, stores and the admin address stays.
  [[nodiscard]] auto has_room_for_upstream() -> bool;
  /// Closes one connection to an upstream that rests. False when none does.
  auto close_idle_upstream() -> bool;

  /// An exchange for one request; it goes back when it is over.
  [[nodiscard]] auto take_exchange() -> std::unique_ptr<exchange>;
  void recycle(std::unique_ptr<exchange> done);
  /// An exchange that went on without its client is over.
  void reclaim(exchange& done);
  /// Counts what waits in memory because a client is slow. `counted` is what was counted of it before, and becomes
  /// `octets`. When all of it together is more than `http.max-buffered`, clients are dropped in a
  /// later turn: of all threads, those for which most has waited for longest.
  void count_buffered(std::size_t& counted, std::size_t octets) {
    if (counted != octets) [[unlikely]] {
      recount(counted, octets);
    }
  }

  /// Keeps a text that waits for a client counted.
  class held_text {
   public:
    held_text() = default;
    held_text(worker& of, void const* text) : of_(&of), text_(text) {}
    held_text(held_text&& other) noexcept
        : of_(std::exchange(other.of_, nullptr)), text_(other.text_) {}
    auto operator=(held_text&& other) noexcept -> held_text& {
      std::swap(of_, other.of_);
      std::swap(text_, other.text_);
      return *this;
    }
    ~held_text() { reset(); }
    void reset() noexcept {
      if (of_ != nullptr) {
        std::exchange(of_, nullptr)->let_text_go(text_);
      }
    }

   private:
    worker* of_ = nullptr;
    void const* text_ = nullptr;
  };
  /// Counts a text that several clients may wait for once.
  [[nodiscard]] auto hold_text(std::string_view text) -> held_text;
  /// Makes a change as soon as the store lets it. What cannot be kept that long becomes an unknown outcome
  /// by itself.
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
  [[nodiscard]] auto date_line() -> std::string_view;
  [[nodiscard]] auto wall_clock() -> std::chrono::sys_seconds;
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
  access_log::source* log = nullptr;  // while requests are logged
  jitter_source jitter;

  // Used by whoever runs, and by nobody after it returns to the loop.
  static constexpr std::size_t input_octets_max = 64 * 1024;
  std::array<char, input_octets_max> input;  // NOLINT: what is not read is not looked at
  wire::request_head request;
  wire::response_head response;
  std::string to_client;
  std::string http2_output;
  std::string http2_text;
  std::string path;
  std::string field_lines;
  std::string text;
  std::string reply_lines;              // of a reply that a phase makes
  std::vector<std::string_view> lines;  // of one field

  std::list<client_connection*> clients;  // that are open

 private:
  struct text_count {
    std::size_t holders = 0;
    std::size_t counted = 0;
  };
  void note_out_of_memory() noexcept;
  /// Drops the clients for which most waits, without memory: all with at least half of the most.
  void shed_largest();
  /// Once in a while: true when people are to be told something.
  [[nodiscard]] auto may_note(std::atomic<instant>& noted) const -> bool;
  void recount(std::size_t& counted, std::size_t octets);
  void let_text_go(void const* text) noexcept;

  // Dropping clients for which too much waits.
  struct shed_round;
  struct slow_client;
  void begin_to_shed();
  void start(std::shared_ptr<shed_round> const& round);
  void rank_clients(std::shared_ptr<shed_round> const& round, std::size_t at);
  void drop_slowest(std::shared_ptr<shed_round> const& round, std::size_t at);
  void end_or_repeat(std::shared_ptr<shed_round> const& round);
  [[nodiscard]] auto find_slow(instant now) const -> std::vector<slow_client>;
  [[nodiscard]] auto has_too_much() const -> bool;

  std::unordered_map<void const*, text_count> texts_;  // that wait for clients
  std::vector<std::unique_ptr<worker_config>> configs_;
  std::vector<std::unique_ptr<listener>> listeners_;
  std::vector<std::unique_ptr<exchange>> exchanges_;  // for reuse
  access_log::source& log_source_;
  std::unordered_map<exchange*, std::unique_ptr<exchange>> detached_;
  std::unique_ptr<change_retry_queue> retry_queue_;
  std::uint64_t round_trips_ = 0;  // that were counted
  instant date_until_{instant::min()};
  std::string date_line_;
  std::chrono::sys_seconds wall_clock_{};
};

}  // namespace tidegate::gateway
