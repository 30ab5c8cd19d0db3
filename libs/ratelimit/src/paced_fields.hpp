// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/field.hpp>
#include <tidegate/ratelimit/fields.hpp>
#include <tidegate/ratelimit/legacy.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {

/// Views, of which there is mostly one.
class few_views {
 public:
  void push_back(std::string_view view) {
    if (size_ < first_.size()) {
      first_[size_] = view;
    } else {
      if (all_.empty()) {
        all_.assign(first_.begin(), first_.end());
      }
      all_.push_back(view);
    }
    ++size_;
  }
  [[nodiscard]] auto get() const noexcept -> std::span<std::string_view const> {
    return all_.empty() ? std::span(first_).first(size_) : std::span(all_);
  }

 private:
  std::array<std::string_view, 2> first_;
  std::vector<std::string_view> all_;  // when there are more
  std::size_t size_ = 0;
};

/// What counts of a header section, found in one go.
struct paced_fields {
  few_views limits;
  few_views policies;
  few_views dates;
  few_views retry_after;
  bool from_cache = false;

  explicit paced_fields(std::span<http::field_view const> fields);

  /// When the response was made, by the clock of the server if it says so.
  [[nodiscard]] auto made_at(std::chrono::sys_seconds wall_clock) const -> std::chrono::sys_seconds;

  /// Of several lines, which one server does not send, the one that wants the longest wait.
  [[nodiscard]] auto wait(std::chrono::sys_seconds wall_clock) const
      -> std::optional<std::chrono::seconds>;
};

/// The limits that RateLimit of either draft says; none when it is malformed.
[[nodiscard]] auto read_paced_limits(std::span<std::string_view const> lines) -> limit_field;

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
