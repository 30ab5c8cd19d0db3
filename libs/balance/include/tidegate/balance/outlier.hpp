// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>

#include <chrono>
#include <cstdint>
#include <vector>

namespace tidegate::balance {

/// When a server that fails is ejected, and for how long.
struct outlier_settings {
  std::int64_t failures = 5;  ///< in a row
  std::chrono::nanoseconds within{std::chrono::seconds(10)};
  std::chrono::nanoseconds eject{std::chrono::seconds(10)};
  auto operator==(outlier_settings const&) const -> bool = default;
};

/// Whether a response is a failure of the server, as a reset or a time-out is.
[[nodiscard]] constexpr auto is_failure(int status) noexcept -> bool {
  return status == 500 || (status >= 502 && status <= 504);
}

/// The failures of one server.
///
/// Each ejection lasts twice as long as the one before, up to ten times `eject`. A server that did
/// well for as long as it was ejected begins again with `eject`.
class outlier {
 public:
  static constexpr int longest = 10;  ///< times `eject`

  /// One more failure. True when the row is full: the server is to be ejected, unless it is the
  /// last one. While it is ejected nothing counts.
  [[nodiscard]] auto failed(outlier_settings const& settings, instant now) -> bool;
  /// An answer ends the row.
  void answered() noexcept { times_.clear(); }
  /// Ejects the server, whose row ends. For how long.
  [[nodiscard]] auto eject(outlier_settings const& settings, instant now)
      -> std::chrono::nanoseconds;

  /// Failures since the last answer, as far as they count: at most `failures` of the settings.
  [[nodiscard]] auto in_a_row() const noexcept -> std::size_t { return times_.size(); }
  /// Never when it was not ejected.
  [[nodiscard]] auto ejected_until() const noexcept -> instant { return until_; }

 private:
  std::vector<instant> times_;  // of the last failures in a row
  instant until_{instant::min()};
  std::chrono::nanoseconds lasted_{0};  // the last ejection
};

}  // namespace tidegate::balance
