// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/loop.hpp>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace tidegate::store_redis {

/// Tasks from any thread for the thread of a loop, with a bound for those that are not done yet.
class task_inbox {
 public:
  using task = std::move_only_function<void()>;

  task_inbox(engine::loop& to, std::size_t tasks_max, std::size_t octets_max)
      : loop_(to), tasks_max_(tasks_max), octets_max_(octets_max) {}

  /// False when too many wait. A caller that enters posts a task, and leaves with the same octets
  /// when there is its answer.
  [[nodiscard]] auto enter(std::size_t octets) -> bool {
    std::lock_guard const lock(mutex_);
    if (inside_ >= tasks_max_ || octets > octets_max_ - inside_octets_) {
      return false;
    }
    ++inside_;
    inside_octets_ += octets;
    return true;
  }

  void post(task posted) {
    bool is_first = false;
    {
      std::lock_guard const lock(mutex_);
      is_first = tasks_.empty();
      tasks_.push_back(std::move(posted));
    }
    if (is_first) {
      loop_.post([this] { run(); });
    }
  }

  void leave(std::size_t octets) {
    std::lock_guard const lock(mutex_);
    inside_octets_ -= octets;
    if (--inside_ == 0) {
      left_.notify_all();
    }
  }

  /// Waits until all that entered have left.
  void wait_until_empty() {
    std::unique_lock lock(mutex_);
    left_.wait(lock, [this] { return inside_ == 0; });
  }

 private:
  void run() {
    std::vector<task> tasks;
    {
      std::lock_guard const lock(mutex_);
      tasks.swap(tasks_);
    }
    for (auto& each : tasks) {
      each();
    }
  }

  engine::loop& loop_;
  std::size_t tasks_max_;
  std::size_t octets_max_;
  std::mutex mutex_;
  std::condition_variable left_;
  std::vector<task> tasks_;
  std::size_t inside_ = 0;  // that entered and did not leave
  std::size_t inside_octets_ = 0;
};

}  // namespace tidegate::store_redis
