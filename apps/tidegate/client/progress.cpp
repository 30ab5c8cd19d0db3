// SPDX-License-Identifier: Apache-2.0
#include "client/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>

namespace tidegate::app {

namespace {

using namespace std::chrono_literals;

/// Work that takes less is not worth a word.
constexpr auto quiet_at_first = 500ms;
constexpr auto between_lines = 10s;

[[nodiscard]] auto with_one_digit(double number) -> std::string {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%.1f", number);
  return text.data();
}

[[nodiscard]] auto bar(std::uint64_t done, std::uint64_t total) -> std::string {
  constexpr std::size_t width = 24;
  auto const full = total == 0 ? 0 : std::min<std::size_t>(width, width * done / total);
  return "[" + std::string(full, '#') + std::string(width - full, '-') + "] ";
}

/// `12 of 100 done, 3 in flight, 4.0/s, 2 retries, next in 3.2 s`
[[nodiscard]] auto describe(std::uint64_t done, std::uint64_t total,
                            client::session_activity const& activity,
                            std::chrono::nanoseconds elapsed) -> std::string {
  auto const seconds = std::chrono::duration<double>(elapsed).count();
  auto out = std::to_string(done) + (total > 0 ? " of " + std::to_string(total) : "") + " done, " +
             std::to_string(activity.under_way) + " in flight, " +
             with_one_digit(seconds > 0 ? static_cast<double>(done) / seconds : 0) + "/s";
  if (activity.retries > 0) {
    out +=
        ", " + std::to_string(activity.retries) + (activity.retries == 1 ? " retry" : " retries");
  }
  if (activity.under_way == 0 && activity.next_in && *activity.next_in >= 1s) {
    out += ", next in " + with_one_digit(std::chrono::duration<double>(*activity.next_in).count()) +
           " s";
  }
  return out;
}

}  // namespace

auto counted(std::uint64_t number, std::string_view one) -> std::string {
  return std::to_string(number) + " " + std::string(one) + (number == 1 ? "" : "s");
}

progress::progress()
    : is_terminal_(::isatty(STDERR_FILENO) == 1), began_(clock::now()), shown_(began_) {}

void progress::show(std::uint64_t done, std::uint64_t total,
                    client::session_activity const& activity) {
  auto const now = clock::now();
  std::chrono::nanoseconds const between = is_terminal_ ? tick / 2 : between_lines;
  if (now - began_ < quiet_at_first || now - shown_ < between) {
    return;
  }
  shown_ = now;
  auto const text = describe(done, total, activity, now - began_);
  if (is_terminal_) {
    std::cerr << "\r\x1b[K" << bar(done, total) << text << std::flush;
    is_drawn_ = true;
  } else {
    std::cerr << text << '\n' << std::flush;
  }
}

void progress::clear() {
  if (is_drawn_) {
    std::cerr << "\r\x1b[K" << std::flush;
    is_drawn_ = false;
  }
}

}  // namespace tidegate::app
