// SPDX-License-Identifier: Apache-2.0
#include "observe/upstream_reports.hpp"

#include <tidegate/config/values.hpp>

namespace tidegate::gateway {

void server_report::say(log_level level, std::string const& what) {
  log_.write(level, name_ + what);
}

auto server_report::down_since() -> std::optional<instant> {
  std::lock_guard const lock(mutex_);
  return is_down() ? std::optional(down_since_) : std::nullopt;
}

void server_report::failed(std::string_view what, unsigned in_a_row,
                           std::optional<std::chrono::seconds> out_for, instant now) {
  std::lock_guard const lock(mutex_);
  if (in_a_row >= failures_max && !down_.load(std::memory_order_relaxed)) {
    down_.store(true, std::memory_order_relaxed);
    down_since_ = now;
  }
  bool const was_told = told_down_.load(std::memory_order_relaxed);
  if (is_down() && !was_told && (!told_at_ || now >= *told_at_ + pause_of_turns)) {
    auto const times = std::to_string(in_a_row) + " failures in a row";
    say(log_level::error,
        (out_for ? " is ejected for " + format_duration(*out_for) + " after " + times
                 : " has " + times + " and is still used, since there is no other") +
            ": " + std::string(what));
    told_down_.store(true, std::memory_order_relaxed);
    told_at_ = said_at_ = now;
    unsaid_ = 0;
    return;
  }
  auto const pause = was_told ? pause_while_down : pause_of_failures;
  if (said_at_ && now < *said_at_ + pause) {
    ++unsaid_;
    say(log_level::debug, " failed: " + std::string(what));
    return;
  }
  say(was_told ? log_level::error : log_level::warning,
      (was_told ? " still fails: " : " failed: ") + std::string(what) +
          (unsaid_ == 0 ? ""
                        : " (" + std::to_string(unsaid_) + " more since the last line about it)"));
  said_at_ = now;
  unsaid_ = 0;
}

void server_report::answered(instant now) {
  std::lock_guard const lock(mutex_);
  down_.store(false, std::memory_order_relaxed);
  constexpr auto shown_for = std::chrono::seconds(1);
  if (!told_down_.load(std::memory_order_relaxed) || now < *told_at_ + shown_for) {
    return;
  }
  auto const seconds = std::chrono::ceil<std::chrono::seconds>(now - down_since_);
  say(log_level::info, " answers again, after " + format_duration(seconds));
  told_down_.store(false, std::memory_order_relaxed);
  told_at_ = now;
}

auto upstream_reports::of(std::string const& upstream, std::string const& server)
    -> server_report& {
  std::lock_guard const lock(mutex_);
  auto& found = servers_[{upstream, server}];
  if (!found) {
    found = std::make_unique<server_report>(log_, upstream, server);
  }
  return *found;
}

}  // namespace tidegate::gateway
