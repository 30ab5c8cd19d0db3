// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/store/idempotency_store.hpp>

#include "keys/key_job.hpp"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tidegate::store_postgres {

/// Jobs from any thread for the one that talks to the server, and how much waits there.
class job_inbox {
 public:
  /// `name` is that of the server, for errors.
  job_inbox(std::string name, std::size_t jobs_max, std::size_t octets_max)
      : name_(std::move(name)), jobs_max_(jobs_max), octets_max_(octets_max) {}

  /// Takes a job. True when it is the first since `take_all`. After an error it is left as it was.
  [[nodiscard]] auto add(key_job& job) -> result<bool, store::store_error> {
    std::lock_guard const lock(mutex_);
    if (auto error = refusal(job.octets)) {
      return failure(*std::move(error));
    }
    note_added(job.octets);
    jobs_.push_back(std::move(job));
    return jobs_.size() == 1;
  }
  [[nodiscard]] auto take_all() -> std::vector<key_job> {
    std::lock_guard const lock(mutex_);
    return std::exchange(jobs_, {});
  }
  /// Takes no more.
  void stop() {
    std::lock_guard const lock(mutex_);
    is_stopping_ = true;
  }

  /// False when there is a sweep already, or no room for one.
  [[nodiscard]] auto begin_sweep() -> bool {
    std::lock_guard const lock(mutex_);
    if (is_sweeping_ || refusal(0)) {
      return false;
    }
    is_sweeping_ = true;
    return true;
  }
  void end_sweep() {
    std::lock_guard const lock(mutex_);
    is_sweeping_ = false;
  }

  /// A job waits, or is answered. `add` has called the first.
  void note_added(std::size_t octets) noexcept {
    ++waiting_jobs_;
    waiting_octets_ += octets;
  }
  void note_answered(std::size_t octets) noexcept {
    --waiting_jobs_;
    waiting_octets_ -= octets;
  }
  [[nodiscard]] auto waiting_octets() const noexcept -> std::size_t {
    return waiting_jobs_ * sizeof(key_job) + waiting_octets_;
  }

 private:
  [[nodiscard]] auto refusal(std::size_t octets) const -> std::optional<store::store_error> {
    if (is_stopping_) {
      return store::store_error{store::store_fault::stopped, name_ + ": is being closed"};
    }
    if (waiting_jobs_ >= jobs_max_ || waiting_octets_ + octets > octets_max_) {
      return store::store_error{store::store_fault::unavailable,
                                name_ + ": too many requests wait"};
    }
    return std::nullopt;
  }

  std::string name_;
  std::size_t jobs_max_;
  std::size_t octets_max_;
  std::mutex mutex_;
  std::vector<key_job> jobs_;
  bool is_stopping_ = false;
  bool is_sweeping_ = false;
  std::atomic<std::size_t> waiting_jobs_ = 0;  // not answered yet
  std::atomic<std::size_t> waiting_octets_ = 0;
};

}  // namespace tidegate::store_postgres
