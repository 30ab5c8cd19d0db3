// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace tidegate::engine {

class timer_wheel;

/// Something that happens at a time, as a part of its owner. Setting it again is cheap: when it
/// moves to a later time it stays where it is in the wheel and looks again when it gets there.
class timer {
 public:
  timer() = default;
  timer(timer const&) = delete;
  auto operator=(timer const&) -> timer& = delete;
  virtual ~timer() { cancel(); }

  /// Not before `at`, and at most a tick of the wheel after it.
  void set(timer_wheel& wheel, instant at) noexcept {
    deadline_ = at;
    if (at < moved_on_from_) {
      move(wheel);
    }
  }
  void cancel() noexcept;
  [[nodiscard]] auto is_set() const noexcept -> bool { return deadline_ != instant::max(); }

 protected:
  /// May set the timer again or destroy its owner. A handler that must not fail deals with a lack
  /// of memory itself.
  virtual void expired() = 0;

 private:
  friend class timer_wheel;
  void unlink() noexcept;
  void move(timer_wheel& wheel) noexcept;

  timer* next_ = nullptr;
  timer** before_ = nullptr;  // what points to this one; null when it is not in a wheel
  instant deadline_ = instant::max();
  // A deadline from then on is not before the slot it is in, where it is looked at and moved on.
  instant moved_on_from_ = instant::max();
};

/// The timers of one loop, in slots of a tick each. What is further away than the wheel goes round
/// waits in a slot and is moved on.
class timer_wheel {
 public:
  static constexpr std::chrono::milliseconds tick{16};

  explicit timer_wheel(instant now) noexcept : current_(tick_of(now)) {}
  timer_wheel(timer_wheel const&) = delete;
  auto operator=(timer_wheel const&) -> timer_wheel& = delete;
  ~timer_wheel();

  /// Calls what is due at `now`. False when one of them ended for want of memory.
  auto advance(instant now) -> bool;

  /// How long nothing needs to be called for, at most; `none` when there are no timers.
  static constexpr auto none = std::chrono::nanoseconds::max();
  [[nodiscard]] auto next_in(instant now) const noexcept -> std::chrono::nanoseconds;

 private:
  friend class timer;
  static constexpr std::size_t slots = 1024;

  [[nodiscard]] static auto tick_of(instant at) noexcept -> std::uint64_t {
    return static_cast<std::uint64_t>(at.time_since_epoch() / tick);
  }
  void insert(timer& t) noexcept;

  std::array<timer*, slots> slots_{};
  // A bit for each slot that may have timers; one whose timers were all cancelled keeps it until
  // its turn.
  std::array<std::uint64_t, slots / 64> occupied_{};
  std::uint64_t current_;  // the first tick that has not been looked at
};

}  // namespace tidegate::engine
