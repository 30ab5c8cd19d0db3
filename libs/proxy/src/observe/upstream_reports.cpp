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

void server_report::failed(std::string_view what, failure_verdict const& verdict, instant now) {
  std::lock_guard const lock(mutex_);
  if (verdict.is_down && !down_.load(std::memory_order_relaxed)) {
    down_.store(true, std::memory_order_relaxed);
    down_since_ = now;
  }
  bool const was_told = told_down_.load(std::memory_order_relaxed);
  if (is_down() && !was_told && (!told_at_ || now >= *told_at_ + pause_of_turns)) {
    auto const times = std::to_string(verdict.in_a_row) + " failures in a row";
    say(log_level::error,
        (verdict.out_for
             ? " is ejected for " + format_duration(*verdict.out_for) + " after " + times
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

void server_report::is_unhealthy(std::string_view what) {
  say(log_level::error, " is unhealthy: " + std::string(what));
}

void server_report::is_healthy() {
  say(log_level::info, " is healthy again");
}

auto upstream_reports::of(std::string const& upstream, std::string const& server)
    -> std::shared_ptr<server_report> {
  std::lock_guard const lock(mutex_);
  auto& known = servers_[{upstream, server}];
  auto report = known.lock();
  if (!report) {
    report = std::make_shared<server_report>(log_, upstream, server);
    known = report;
    std::erase_if(servers_, [](auto const& each) { return each.second.expired(); });
  }
  return report;
}

}  // namespace tidegate::gateway
