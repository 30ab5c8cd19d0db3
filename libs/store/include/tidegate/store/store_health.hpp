// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/store/idempotency_store.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::store {

/// Whether a store does what it should, by what requests and probes see of it. Any thread.
class store_health {
 public:
  /// What people are told: a line when it begins to fail, and one when it works again. `{}` is the
  /// error.
  struct lines {
    std::string_view fails;
    std::string_view works;
  };
  explicit store_health(lines const& said) : said_(said) {}

  /// Takes whether it fails, and a line for people; may be empty. Before anything is noted.
  using report = std::function<void(bool, std::string_view)>;
  void use(report to) { report_ = std::move(to); }

  /// What came of a change: null when it was made. A store of several servers of which one fails
  /// would change with each request, so there is a second between two changes of the verdict at
  /// least.
  void note(store_error const* error);

  /// What is known of it now.
  [[nodiscard]] auto is_failing() const noexcept -> bool {
    return failing_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] auto failing_since() const -> std::optional<std::chrono::system_clock::time_point>;

 private:
  lines said_;
  report report_;
  std::atomic<bool> failing_{false};
  mutable std::mutex mutex_;
  std::chrono::steady_clock::time_point changed_{};
  std::chrono::system_clock::time_point since_{};
};

}  // namespace tidegate::TIDEGATE_ABI::store
