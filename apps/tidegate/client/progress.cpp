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

[[nodiscard]] auto bar(progress_state const& state) -> std::string {
  constexpr std::size_t width = 24;
  auto const full =
      state.total == 0 ? 0 : std::min<std::size_t>(width, width * state.done / state.total);
  return "[" + std::string(full, '#') + std::string(width - full, '-') + "] ";
}

}  // namespace

auto counted(std::uint64_t number, std::string_view one) -> std::string {
  return std::to_string(number) + " " + std::string(one) + (number == 1 ? "" : "s");
}

auto describe(progress_state const& state, std::chrono::nanoseconds elapsed) -> std::string {
  auto const seconds = std::chrono::duration<double>(elapsed).count();
  auto out = std::to_string(state.done) +
             (state.total > 0 ? " of " + std::to_string(state.total) : "") + " done, " +
             std::to_string(state.under_way) + " under way, " +
             with_one_digit(seconds > 0 ? static_cast<double>(state.done) / seconds : 0) + "/s";
  if (state.retries > 0) {
    out += ", " + std::to_string(state.retries) + (state.retries == 1 ? " retry" : " retries");
  }
  if (state.next_in && *state.next_in >= 1s) {
    out +=
        ", next in " + with_one_digit(std::chrono::duration<double>(*state.next_in).count()) + " s";
  }
  return out;
}

progress::progress()
    : is_terminal_(::isatty(STDERR_FILENO) == 1), began_(clock::now()), shown_(began_) {}

void progress::show(progress_state const& state, clock::time_point now) {
  std::chrono::nanoseconds const between = is_terminal_ ? tick / 2 : between_lines;
  if (now - began_ < quiet_at_first || now - shown_ < between) {
    return;
  }
  shown_ = now;
  auto const text = describe(state, now - began_);
  if (is_terminal_) {
    std::cerr << "\r\x1b[K" << bar(state) << text << std::flush;
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
