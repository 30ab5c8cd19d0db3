// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top/snapshot.hpp"

#include <tidegate/explain/finding.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace tidegate::app::top {

struct view_options {
  std::string_view address;  ///< whose figures they are, for the first line
  std::size_t columns = 100;
  std::size_t rows = 0;  ///< of the terminal; 0: as many as it takes
  explain::colours colour = explain::colours::off;
};

/// Tables of routes, policies and hottest partitions. With the snapshot `before` they have rates,
/// else "-" in their place. No line is longer than `columns`, and with `rows` there are no more
/// lines.
[[nodiscard]] auto to_text(snapshot const& now, snapshot const* before, view_options const& how)
    -> std::string;

/// One line:
///
///     {"time","seconds":S|null,"connections","routes":[{"name","requests","per-second",…}…],
///      "policies":[…],"partitions":[…]}
///
/// `seconds` is how long ago `before` was; rates are left out without it.
[[nodiscard]] auto to_json(snapshot const& now, snapshot const* before,
                           std::chrono::sys_seconds time) -> std::string;

}  // namespace tidegate::app::top
