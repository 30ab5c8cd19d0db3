// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/known_limit.hpp>

#include "pacing_time.hpp"

#include <algorithm>
#include <cmath>

namespace tidegate::TIDEGATE_ABI::ratelimit {

namespace {

using std::chrono::nanoseconds;

/// The part of the quota that is left alone while the reset is a window away, against clients
/// hearing of each other late; towards the reset it goes to 0.
constexpr double reserve = 0.05;
/// The same where quota comes back all the time, and what is left alone stays so.
constexpr double reserve_of_refilled = 0.01;
/// How far one measurement may change the rate.
constexpr double correction_min = 1.0 / 16;
constexpr double correction_max = 3;
/// Fewer units than this in a measurement say more about chance than about the rate.
constexpr double units_to_measure = 8;
/// By how much a rate grows in a window without being asked to, for a client that has all of the
/// quota; the less it has, the more. What is too much then is taken from everyone in proportion, so
/// that shares become equal over time.
constexpr double growth_in_window = 0.005;
constexpr double growth_max = 0.01;
/// How much faster than quota over window a client may go to catch up (draft-09, section 8.5: what
/// remains over the time to the reset can be far above what the policy means).
constexpr double catching_up = 1.25;
/// So many units would have been spent by others if there were any: who sees none of them is alone.
constexpr double units_to_be_alone = 4;
/// A server that never has more than this part of its quota at a time lets units come one by one.
constexpr double little_of_quota = 0.25;
/// What is waited for the next unit there, of the time before, after each answer that is
/// not a refusal.
constexpr double impatience = 0.7;
constexpr double patience_min = 0.01;

}  // namespace

void known_limit::measure_from(instant made) noexcept {
  measured = {made, remaining, reset, own};
}

void known_limit::begin_window(instant made) noexcept {
  window_begin = {made, remaining, reset, own};
}

void known_limit::learn_cost(std::int64_t spent, std::uint64_t now_answered) noexcept {
  if (ticket == 0) {
    per_request = 0;
  }
  if (spent > 0 && now_answered > ticket) {
    auto const each = static_cast<double>(spent) / static_cast<double>(now_answered - ticket);
    per_request = per_request == 0 ? each : per_request + (each - per_request) * newest_weighs;
  }
}

auto known_limit::holds_little(instant made) const noexcept -> bool {
  return refills && has_policy && burst.most <= quota * little_of_quota &&
         made >= burst.shared_until;
}

void known_limit::learn_patience(bool is_refused, instant made) noexcept {
  if (!is_refused) {
    burst.patience = std::max(burst.patience * impatience, patience_min);
    return;
  }
  auto const windows =
      std::min(std::ldexp(window, static_cast<int>(std::min(burst.came_too_early++, 6U))),
               static_cast<double>(reset_max));
  burst.patience = 1;
  burst.shared_until =
      after(made, std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(windows)));
}

auto known_limit::burst_pace(nanoseconds wait) noexcept -> double {
  burst.longest = remaining == 0 ? seconds(wait) : burst.longest;
  return std::max(burst.longest * burst.patience, window / requests(quota));
}

auto known_limit::is_paced_by_burst() const noexcept -> bool {
  return burst.longest > 0 || burst.most <= units_to_be_alone;
}

auto known_limit::spread_rate(instant made) const -> double {
  auto const left = std::max(seconds(reset - made), 0.5);
  auto const refill = requests(quota) / window;
  auto const requests_left = requests(static_cast<double>(remaining));
  if (refills) {
    return refill + requests_left / std::max(left, window);
  }
  auto const rate = (requests_left + 1) / left;
  return has_policy ? std::min(rate, catching_up * refill) : rate;
}

auto known_limit::first_rate(instant made) const -> double {
  if (remaining == 0) {
    return 0;
  }
  auto const left = std::max(seconds(reset - made), 0.5);
  // What is gone from the quota may be the work of many or of one: take the middle, on a scale of
  // powers.
  auto const gone = std::max(requests(quota - static_cast<double>(remaining)), 1.0);
  auto const requests_left = requests(static_cast<double>(remaining));
  auto const rate_alone = spread_rate(made);
  auto const shared = refills ? rate_alone / std::sqrt(gone)
                              : std::max((requests_left + 1) / std::sqrt(gone), 1.0) / left;
  // No later than it takes to see whether there are others.
  auto const tries = requests(quota) / window / units_to_be_alone;
  return std::min(std::max(shared, tries), rate_alone);
}

auto known_limit::has_new_window(instant made, std::size_t in_flight) -> bool {
  auto const past = seconds(made - measured.at);
  auto const grown = requests(static_cast<double>(remaining - measured.remaining));
  auto const quota_requests = requests(quota);
  // As much as may have come back in the meantime, for all that is known.
  auto const refill = quota_requests / window;
  if (grown > 1.5 * refill * past + 1) {
    refills = false;
    return true;
  }
  // Requests that overtake each other blur what remained when.
  auto const blur = 2.0 * static_cast<double>(in_flight);
  auto const own_requests = static_cast<double>(own - measured.own);
  bool const was_reset = measured.reset <= made;
  if (!was_reset) {
    refills = refills || blur + 2 - grown < own_requests;
  } else if (!refills) {
    // A window is not over long before its time, nor is so much of the next one gone at once.
    bool const is_early = seconds(reset - measured.reset) < window / 2;
    bool const is_little = seconds(made - measured.reset) < window / 4 &&
                           requests(static_cast<double>(remaining)) + 1 < quota_requests / 2;
    refills = is_early || is_little;
    return true;
  }
  return false;
}

auto known_limit::sees_others(instant made, std::size_t in_flight) const -> std::optional<bool> {
  auto const blur = static_cast<double>(in_flight);
  auto const since = refills ? measured.at : window_begin.at;
  auto const then = refills ? measured.remaining : window_begin.remaining;
  auto const own_requests = static_cast<double>(own - (refills ? measured.own : window_begin.own));
  auto const refilled = requests(quota) / window * seconds(made - since);
  auto const spent = requests(static_cast<double>(then - remaining)) + (refills ? refilled : 0);
  auto const gone = requests(quota - static_cast<double>(remaining));
  // Where little is held at a time, it is never all of the quota that is there.
  auto const missing = holds_little(made) && burst.most > units_to_be_alone
                           ? requests(burst.most - static_cast<double>(remaining)) + 1
                           : gone;
  if (refills && missing <= 1 + blur) {
    return false;  // nothing is missing but what this client has just taken
  }
  if (spent > own_requests + blur + (refills ? 1 : 0.5)) {
    return true;
  }
  bool const had_all = !refills && remaining == 0 && gone <= own_requests + 1;
  return had_all || refilled >= units_to_be_alone + 4 * blur ? std::optional(false) : std::nullopt;
}

auto known_limit::share_of_window() const -> double {
  if (alone) {
    return 1;
  }
  auto const own_requests = static_cast<double>(own - window_begin.own + 1);
  auto const gone = requests(quota - static_cast<double>(remaining));
  // Who has seen nothing of others may try more.
  return std::min(own_requests * (gone <= own_requests ? 2 : 1) / std::max(requests(quota), 1.0),
                  1.0);
}

auto known_limit::corrected(double rate_before, instant made, std::size_t in_flight)
    -> std::optional<double> {
  auto const past = seconds(made - measured.at);
  if (past <= 0) {
    measure_from(made);
    return std::nullopt;
  }
  auto const shrunk = requests(static_cast<double>(measured.remaining - remaining));
  auto const quota_requests = requests(quota);
  auto const refill = quota_requests / window;
  auto const blur = 2.0 * static_cast<double>(in_flight);
  auto const spent = std::max(shrunk / past, -0.9 * refill) + refill;  // a second, by all clients
  auto const rate = rate_before != 0 ? rate_before : static_cast<double>(own - measured.own) / past;
  if (past * rate < 0.9 || past * spent < units_to_measure + 2 * blur) {
    return std::nullopt;  // goes on measuring
  }
  auto const left = std::max(seconds(reset - made), 0.5);
  auto const horizon = refills ? std::max(left, window / 4) : left;
  auto const share = std::clamp(rate / spent, 1e-6, 1.0);
  // Nothing need be kept from oneself.
  auto const kept = quota_requests * std::max(1 - 2 * share, 0.0) *
                    (refills ? reserve_of_refilled : reserve * std::min(left / window, 1.0));
  auto const requests_left = requests(static_cast<double>(remaining));
  auto lasts = (requests_left - kept) / horizon;
  if (has_policy) {
    lasts = std::min(lasts, catching_up * refill);
  }
  auto const factor = std::clamp((lasts + refill) / spent, correction_min, correction_max);
  auto const growth = std::min(growth_in_window * past / window / std::sqrt(share), growth_max);
  measure_from(made);
  // The factor is for the time up to the horizon; what of the next interval is behind it stays as
  // it is.
  return rate * (1 + growth + (factor - 1) * std::min(horizon * rate, 1.0));
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
