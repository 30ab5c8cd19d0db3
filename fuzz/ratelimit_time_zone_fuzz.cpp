// SPDX-License-Identifier: Apache-2.0
//
// Eight bytes that say what time it is, then any bytes as a file of a time zone:
//
// - never a crash, and never a look outside of the file;
// - the changes of a zone are in order, each of them changes something, and no offset is more than
//   26 hours;
// - whatever the zone, the window that a time is in contains it, and is the window of its first and
//   its last second too; the next one begins where it ends.
#include "check.hpp"

#include <tidegate/ratelimit/calendar.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace {

using namespace tidegate::ratelimit;
using std::chrono::seconds;
using std::chrono::sys_seconds;
using tidegate::fuzz::check;

void check_windows(time_zone const& zone, sys_seconds at) {
  for (auto const unit :
       {calendar_unit::hour, calendar_unit::day, calendar_unit::week, calendar_unit::month}) {
    auto const window = window_at(zone, unit, at);
    check(window.begin <= at && at < window.end, "a window contains its time");
    check(window_at(zone, unit, window.begin) == window, "it contains its first second");
    check(window_at(zone, unit, window.end - seconds(1)) == window, "it contains its last second");
    check(window_at(zone, unit, window.end).begin == window.end, "the next begins where it ends");
  }
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  std::int64_t count = 0;
  if (size < sizeof count) {
    return 0;
  }
  std::memcpy(&count, data, sizeof count);
  // Exactly as many bytes as there are, so that a look behind them is seen.
  std::vector<unsigned char> const exact(data + sizeof count, data + size);
  auto const zone = time_zone::parse(std::as_bytes(std::span(exact)));
  if (!zone) {
    check(!message(zone.error()).empty(), "it is said what is wrong");
    return 0;
  }
  auto const changes = zone->changes();
  check(!changes.empty(), "an offset is in force since ever");
  for (std::size_t i = 0; i < changes.size(); ++i) {
    check(changes[i].offset >= -26 * 3600 && changes[i].offset <= 26 * 3600, "offsets are bounded");
    check(i == 0 || changes[i].since > changes[i - 1].since, "changes are in order");
    check(i == 0 || changes[i].offset != changes[i - 1].offset, "each changes something");
  }
  // From 1700 to 2250, and at a change.
  auto const anytime = count % 8'000'000'000;
  check_windows(*zone, sys_seconds(seconds(anytime)));
  auto const& any = changes[static_cast<std::uint64_t>(count) % changes.size()];
  if (std::abs(any.since) < 8'000'000'000) {
    check_windows(*zone, sys_seconds(seconds(any.since)));
    check_windows(*zone, sys_seconds(seconds(any.since - 1)));
  }
  return 0;
}
