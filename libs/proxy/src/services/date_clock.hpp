// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>

#include <string>
#include <string_view>

namespace tidegate::gateway {

/// The wall clock, read once a second, and the field Date that is made of it.
class date_clock {
 public:
  /// `Date: Sun, 06 Nov 1994 08:49:37 GMT` and the end of line.
  [[nodiscard]] auto line(instant now) -> std::string_view {
    update(now);
    return line_;
  }
  [[nodiscard]] auto wall_clock(instant now) -> std::chrono::sys_seconds {
    update(now);
    return time_;
  }

 private:
  void update(instant now) {
    if (now >= until_) [[unlikely]] {
      read(now);
    }
  }
  void read(instant now);

  instant until_{instant::min()};
  std::string line_;
  std::chrono::sys_seconds time_{};
};

}  // namespace tidegate::gateway
