// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/base/result.hpp>
#include <tidegate/engine/socket.hpp>
#include <tidegate/engine/timer.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tidegate::engine {

/// What a descriptor is ready for, said once when it becomes so: the handler reads or writes until
/// the system has no more, or remembers that there is more.
struct readiness {
  bool readable = false;
  bool writable = false;
  bool closing = false;  ///< the peer sends no more: reading comes to an end
  bool hung_up = false;  ///< both directions are gone, or an error waits to be read
};

/// Something with a descriptor. Lives until the loop has let go of it: see `loop::dispose`.
class watched {
 public:
  watched() = default;
  watched(watched const&) = delete;
  auto operator=(watched const&) -> watched& = delete;
  virtual ~watched() = default;

 private:
  friend class loop;
  virtual void ready(readiness what) = 0;
  /// Called when `loop::at_end_of_turn` was asked for.
  virtual void turn_ends() {}
  /// One of these calls ended for want of memory: whatever it was about is to be given up.
  virtual void out_of_memory() {}
  watched* next_ = nullptr;  // in the one list that it is in
  bool disposed_ = false;
  bool ends_turn_ = false;  // is in the list of those that are called at the end of a turn
};

/// One thread's worth of work: descriptors, timers and tasks, none of which may wait.
class loop {
 public:
  /// When the system does not give what a loop needs.
  [[nodiscard]] static auto make() -> result<std::unique_ptr<loop>, system_error>;
  loop(loop const&) = delete;
  auto operator=(loop const&) -> loop& = delete;
  ~loop();

  /// Works until `stop`.
  void run();
  /// One turn: waits for something to happen, at most `wait`, and does it.
  void turn(std::chrono::milliseconds wait);
  /// From any thread.
  void stop() noexcept;
  /// True on the thread that runs it.
  [[nodiscard]] auto runs_here() const noexcept -> bool {
    return runner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  /// Has the loop do something in its next turn. From any thread.
  void post(std::function<void()> task);

  /// The time at the beginning of this turn.
  [[nodiscard]] auto now() const noexcept -> instant { return now_; }
  [[nodiscard]] auto timers() noexcept -> timer_wheel& { return timers_; }

  /// Tells `who` when the descriptor can be read or written, until it is closed.
  [[nodiscard]] auto watch(descriptor const& socket, watched& who) -> result<void, system_error>;
  /// Tells `who` of a listening socket in each turn in which a connection waits. With `shared`,
  /// other loops watch it too, and one of them is told.
  [[nodiscard]] auto watch_listening(descriptor const& socket, watched& who, bool shared)
      -> result<void, system_error>;
  /// Ends `watch`. A descriptor that is shared needs it: the system forgets any other when it is
  /// closed.
  void unwatch(descriptor const& socket) noexcept;
  /// From now on tells `who` instead of the one that was told before, also what it was told
  /// already.
  [[nodiscard]] auto watch_instead(descriptor const& socket, watched& who)
      -> result<void, system_error>;
  /// Calls `turn_ends` of `who` once when the events and timers of this turn are done. What is
  /// asked for while these calls are made happens in a turn that follows at once.
  void at_end_of_turn(watched& who) noexcept {
    if (!who.disposed_ && !std::exchange(who.ends_turn_, true)) {
      ending_.push_back(who);
    }
  }
  /// Destroys `who` at the end of this turn, when no event of it is left. Nothing of it is called
  /// any more.
  void dispose(std::unique_ptr<watched> who) noexcept;
  /// Has `tell` called when an allocation failed, after what needed it was given up. It must not
  /// throw. Set before `run`; without it allocations of the loop wait for memory
  /// (`wait_for_memory`).
  void when_out_of_memory(std::function<void()> tell) { out_of_memory_ = std::move(tell); }

 private:
  /// Needs no memory: what ends because there is none must still be destroyed.
  class watched_list {
   public:
    void push_back(watched& who) noexcept {
      who.next_ = nullptr;
      *std::exchange(end_, &who.next_) = &who;
    }
    [[nodiscard]] auto pop_front() noexcept -> watched* {
      auto* const who = first_;
      if (who != nullptr) {
        first_ = who->next_;
        end_ = first_ == nullptr ? &first_ : end_;
      }
      return who;
    }
    /// False when it is not in this list.
    auto remove(watched& who) noexcept -> bool {
      for (auto** at = &first_; *at != nullptr; at = &(*at)->next_) {
        if (*at == &who) {
          *at = who.next_;
          end_ = end_ == &who.next_ ? at : end_;
          return true;
        }
      }
      return false;
    }
    [[nodiscard]] auto empty() const noexcept -> bool { return first_ == nullptr; }
    /// Takes what `other` has; this must be empty.
    void take(watched_list& other) noexcept {
      if (!other.empty()) {
        first_ = std::exchange(other.first_, nullptr);
        end_ = std::exchange(other.end_, &other.first_);
      }
    }

   private:
    watched* first_ = nullptr;
    watched** end_ = &first_;
  };

  loop(descriptor poll, descriptor wake);
  [[nodiscard]] auto control(int operation, descriptor const& socket, watched& who,
                             std::uint32_t events) -> result<void, system_error>;
  void run_posted();
  /// Does something for `who`, which may be null; a want of memory is the end of that, not of the
  /// process.
  template <class Work>
  void guarded(watched* who, Work const& work);
  void end_turn();
  void destroy_disposed() noexcept;

  descriptor poll_;
  descriptor wake_;
  instant now_;
  timer_wheel timers_;
  watched_list ending_;
  watched_list ending_now_;  // while they are called
  watched_list disposed_;    // owned
  std::function<void()> out_of_memory_;
  bool stopped_ = false;
  std::atomic<std::thread::id> runner_;
  std::mutex posted_mutex_;
  std::vector<std::function<void()>> posted_;
};

/// Has `take(answer)` called on the thread of `to`, wherever the answer comes from. `to` outlives
/// the call.
template <class Take>
[[nodiscard]] auto on_loop(loop& to, Take take) {
  return [&to, take = std::move(take)]<class Answer>(Answer answer) {
    if (to.runs_here()) {
      take(std::move(answer));
      return;
    }
    auto const carried = std::make_shared<Answer>(std::move(answer));
    to.post([take, carried] { take(std::move(*carried)); });
  };
}

}  // namespace tidegate::engine
