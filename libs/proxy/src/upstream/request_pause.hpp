// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/timer.hpp>

#include <chrono>

namespace tidegate::gateway {

class upstream_pool;
class worker;

/// A request that no upstream has for now: it is to be sent after a while, or when its pool may
/// have a connection for it.
class request_pause : private engine::timer {
 public:
  explicit request_pause(worker& on) : loop_of_(on) {}

  [[nodiscard]] auto is_paused() const noexcept -> bool { return is_set(); }
  void pause_for(std::chrono::nanoseconds time);
  /// Waits in `pool` until then at most; `is_next`: before all others.
  void wait_in(upstream_pool& pool, instant until, bool is_next);
  void end_pause() noexcept;

 protected:
  ~request_pause() override { end_pause(); }
  /// `is_late`: no connection came in time.
  virtual void pause_ended(bool is_late) = 0;

 private:
  friend class upstream_pool;
  void expired() override;

  worker& loop_of_;
  upstream_pool* waits_in_ = nullptr;
};

}  // namespace tidegate::gateway
