// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace tidegate::balance {

/// Statuses from `first` to `last`.
struct status_range {
  std::uint16_t first = 200;
  std::uint16_t last = 299;
  auto operator==(status_range const&) const -> bool = default;
};

[[nodiscard]] constexpr auto includes(std::span<status_range const> ranges, int status) noexcept
    -> bool {
  for (auto const& each : ranges) {
    if (status >= each.first && status <= each.last) {
      return true;
    }
  }
  return false;
}

/// How many checks in a row change what is thought of a server.
struct health_thresholds {
  std::int64_t rise = 2;
  std::int64_t fall = 3;
  auto operator==(health_thresholds const&) const -> bool = default;
};

/// What the checks of one server say. It is up before the first one.
class health {
 public:
  /// One more check. True when the server is up now and was not, or the other way round.
  [[nodiscard]] auto checked(health_thresholds const& settings, bool passed) noexcept -> bool {
    if (passed == up_) {
      row_ = 0;
      return false;
    }
    if (++row_ < (up_ ? settings.fall : settings.rise)) {
      return false;
    }
    up_ = passed;
    row_ = 0;
    return true;
  }
  [[nodiscard]] auto is_up() const noexcept -> bool { return up_; }

 private:
  bool up_ = true;
  std::int64_t row_ = 0;  // checks that say otherwise, one after the other
};

}  // namespace tidegate::balance
