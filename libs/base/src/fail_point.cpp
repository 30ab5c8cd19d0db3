// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/fail_point.hpp>

#ifdef TIDEGATE_FAIL_POINTS

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdlib>

namespace tidegate::TIDEGATE_ABI {

namespace {

struct chosen_point {
  std::string_view name;
  std::atomic<int> times{1};

  chosen_point() {
    auto const* const value = std::getenv("TIDEGATE_FAIL_POINT");
    name = value == nullptr ? "" : value;
    if (auto const colon = name.find(':'); colon != std::string_view::npos) {
      int number = 1;
      std::from_chars(name.data() + colon + 1, name.data() + name.size(), number);
      times = number;
      name = name.substr(0, colon);
    }
  }
};

}  // namespace

void fail_point(std::string_view name) noexcept {
  static chosen_point chosen;
  if (name == chosen.name && --chosen.times == 0) {
    std::raise(SIGKILL);
  }
}

}  // namespace tidegate::TIDEGATE_ABI

#endif
