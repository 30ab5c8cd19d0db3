// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/timer.hpp>

#include <chrono>

namespace tidegate::gateway {

class connection_limit;
class worker;

/// A request that no upstream has for now: it is to be sent after a while, or when there may be a
/// connection for it.
class request_pause : private engine::timer {
 public:
  explicit request_pause(worker& on) : loop_of_(on) {}

  [[nodiscard]] auto is_paused() const noexcept -> bool { return is_set(); }
  void pause_for(std::chrono::nanoseconds time);
  /// Waits until then at most; `is_next`: before all others.
  void wait_for(connection_limit& limit, instant until, bool is_next);
  void end_pause() noexcept;
  /// The pause ends early.
  void resume_early() {
    end_pause();
    pause_ended(false);
  }

 protected:
  ~request_pause() override { end_pause(); }
  /// `is_late`: no connection came in time.
  virtual void pause_ended(bool is_late) = 0;

 private:
  void expired() override;

  worker& loop_of_;
  connection_limit* waits_for_ = nullptr;
};

}  // namespace tidegate::gateway
