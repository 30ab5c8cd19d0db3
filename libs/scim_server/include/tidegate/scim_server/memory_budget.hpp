// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace tidegate::gateway {

/// How much memory work of one kind takes that is under way, with a bound. Any thread may use it;
/// what was reserved may outlive it.
class memory_budget {
  struct state;

 public:
  /// Counted until it is destroyed.
  class reservation {
   public:
    reservation() = default;
    reservation(reservation&& other) noexcept
        : budget_(std::move(other.budget_)), octets_(std::exchange(other.octets_, 0)) {}
    auto operator=(reservation&& other) noexcept -> reservation& {
      std::swap(budget_, other.budget_);
      std::swap(octets_, other.octets_);
      return *this;
    }
    ~reservation() { release(); }

    void release() noexcept {
      if (auto const budget = std::exchange(budget_, nullptr)) {
        budget->subtract(octets_);
      }
    }

   private:
    friend class memory_budget;
    reservation(std::shared_ptr<state> budget, std::size_t octets)
        : budget_(std::move(budget)), octets_(octets) {}

    std::shared_ptr<state> budget_;
    std::size_t octets_ = 0;
  };

  explicit memory_budget(std::size_t octets_max) : state_(std::make_shared<state>(octets_max)) {}

  /// Nothing when the bound would be exceeded. One piece of work alone may always begin.
  [[nodiscard]] auto try_reserve(std::size_t octets) -> std::optional<reservation> {
    std::lock_guard const lock(state_->mutex);
    if (state_->octets > 0 && state_->octets + octets > state_->octets_max) {
      return std::nullopt;
    }
    state_->octets += octets;
    return reservation(state_, octets);
  }

  /// Counts what is there already, whatever the bound.
  [[nodiscard]] auto reserve(std::size_t octets) -> reservation {
    std::lock_guard const lock(state_->mutex);
    state_->octets += octets;
    return {state_, octets};
  }

  /// Blocks the calling thread while the bound is exceeded, but not for longer than `most`.
  void wait(std::chrono::milliseconds most) {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait_for(
        lock, most, [this] { return state_->is_closed || state_->octets <= state_->octets_max; });
  }

  /// From now on nothing waits.
  void close() {
    {
      std::lock_guard const lock(state_->mutex);
      state_->is_closed = true;
    }
    state_->changed.notify_all();
  }

  [[nodiscard]] auto octets() const -> std::size_t {
    std::lock_guard const lock(state_->mutex);
    return state_->octets;
  }

 private:
  struct state {
    explicit state(std::size_t most) : octets_max(most) {}

    void subtract(std::size_t returned) noexcept {
      {
        std::lock_guard const lock(mutex);
        octets -= returned;
      }
      changed.notify_all();
    }

    std::size_t const octets_max;
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t octets = 0;
    bool is_closed = false;
  };

  std::shared_ptr<state> state_;
};

}  // namespace tidegate::gateway
