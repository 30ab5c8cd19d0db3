// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "upstream/request_pause.hpp"
#include "worker/worker.hpp"

#include <deque>

namespace tidegate::gateway {

/// `max-connections` of an upstream, as one thread keeps it: how many connections all threads have,
/// and the requests of this one that wait for a connection. Without the option it counts nothing.
class connection_limit {
 public:
  connection_limit(worker& on, upstream const& to)
      : worker_(on),
        servers_(to.servers),
        max_(to.settings->max_connections),
        max_wait_(to.settings->max_wait) {}

  /// Counts one more. False when there are as many as there may be.
  [[nodiscard]] auto open() -> bool;
  /// Counts one more in any case: one that is there goes on as it.
  void add_open();
  /// One is closed. `rested`: it was counted so.
  void closed(bool rested);
  /// One rests until it is used again.
  void rests();
  void is_used_again();
  /// One that is in use takes more requests than before.
  void has_room() const;

  /// Until when a request may wait; nothing when it may not.
  [[nodiscard]] auto may_wait_until() const -> std::optional<instant>;
  void add_waiting(request_pause& who, bool is_next);
  void remove_waiting(request_pause& who) noexcept;
  [[nodiscard]] auto has_waiting() const noexcept -> bool { return !waiting_.empty(); }
  /// Whether requests of other threads wait.
  [[nodiscard]] auto others_wait() const noexcept -> bool;
  /// Whether another connection may be made.
  [[nodiscard]] auto may_open() const noexcept -> bool;
  /// Has the waiting requests try again, in order, as long as `has_chance` says so.
  template <class Condition>
  void resume_waiting(Condition const& has_chance) {
    for (auto left = waiting_.size(); left > 0 && !waiting_.empty() && has_chance(); --left) {
      waiting_.front()->resume_early();
    }
  }

 private:
  [[nodiscard]] auto counts() const noexcept -> connection_counts& { return servers_->connections; }
  void tell() const {
    if (counts().waiting.load(std::memory_order_relaxed) > 0) {
      worker_.tell_waiting(servers_);
    }
  }

  worker& worker_;
  std::shared_ptr<server_set> servers_;
  std::optional<std::int64_t> max_;
  std::chrono::nanoseconds max_wait_;
  std::deque<request_pause*> waiting_;
};

/// What one connection of HTTP/2 is to the limit.
struct connection_use {
  bool is_check = false;  ///< of health: it counts nowhere
  bool rests = false;     ///< as the limit knows it
  bool answered = false;  ///< a response has come by it

  void note(connection_limit& limit, bool rests_now) {
    if (!is_check && std::exchange(rests, rests_now) != rests_now) {
      rests_now ? limit.rests() : limit.is_used_again();
    }
  }
};

}  // namespace tidegate::gateway
