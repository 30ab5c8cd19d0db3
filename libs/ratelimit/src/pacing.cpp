// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/pacing.hpp>
#include <tidegate/ratelimit/read.hpp>
#include "paced_fields.hpp"
#include "pacing_time.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tidegate::TIDEGATE_ABI::ratelimit {

namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

/// So many limits of a response are looked at.
constexpr std::size_t limits_max = 32;
/// Where turns are closer than this, a client may be late for several: those who wait wake up no
/// more exactly.
constexpr nanoseconds lateness = 1ms;
/// A refused request means that the rate was too high.
constexpr double refused = 0.8;
/// Within this part of a window those come back who know no rate yet, twice as much after each
/// refusal.
constexpr double first_return = 0.02;

/// The policy that a limit belongs to: the one of its name; in draft-07 the one with its quota.
[[nodiscard]] auto policy_of(service_limit const& limit, policy_field const& field)
    -> quota_policy const* {
  for (auto const& policy : field.policies) {
    if (policy.name == limit.name && (!limit.limit || policy.quota == *limit.limit)) {
      return &policy;
    }
  }
  return nullptr;
}

/// The unit of a limit without a policy. Fields from before the drafts have it in the name, if at
/// all.
[[nodiscard]] auto unit_of_name(std::string_view name) noexcept -> quota_unit {
  return name.find("token") != std::string_view::npos ? quota_unit::other : quota_unit::requests;
}

[[nodiscard]] auto wait_until_reset(service_limit const& seen) -> nanoseconds {
  return std::chrono::seconds(std::min(*seen.reset, reset_max));
}

}  // namespace

auto pacer::interval() const noexcept -> nanoseconds {
  if (options_.strategy == pacing_strategy::burst || pace_.rate == 0) {
    return options_.interval_min;
  }
  return std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(1 / pace_.rate));
}

void pacer::set_rate(double rate) noexcept {
  auto const shortest = std::max(options_.interval_min, nanoseconds(1));
  auto const longest = std::max(options_.wait_max, shortest);
  pace_.rate = std::clamp(rate, 1 / seconds(longest), 1 / seconds(shortest));
}

auto pacer::room_of(known_limit const& limit) const noexcept -> double {
  // Requests that were sent later are not in what the server counted, nor those that were
  // overtaken.
  auto const uncounted = static_cast<std::int64_t>(sent_ - limit.ticket) + limit.overtaken;
  return std::max(
      static_cast<double>(limit.remaining) - static_cast<double>(uncounted) * limit.cost_of_one(),
      0.0);
}

auto pacer::ask(instant now, std::uint64_t content_bytes) -> permission {
  constexpr auto only_an_answer = permission{false, 0, instant::max()};
  auto allowed = static_cast<std::int64_t>(std::min<std::size_t>(options_.in_flight_max, 1U << 20));
  if (in_flight_limit_) {
    allowed = std::min(allowed, *in_flight_limit_);
  }
  if (finding_out_) {
    allowed = 1;  // nothing is known yet, or not whether the wait was long enough
  }
  auto const under_way = static_cast<std::int64_t>(in_flight_.size());
  if (under_way >= std::max<std::int64_t>(allowed, 1)) {
    return only_an_answer;
  }
  auto const turn = interval();
  auto const next = after(turn_, turn);
  auto at = std::max({next, blocked_until_, after(last_, options_.interval_min)});
  for (auto const& limit : limits_) {
    if (limit.per_request == 0 && under_way > 0) {
      return only_an_answer;  // which tells what a request costs
    }
    auto const needed = limit.unit == quota_unit::content_bytes
                            ? std::max(limit.cost_of_one(), static_cast<double>(content_bytes))
                            : limit.cost_of_one();
    if (room_of(limit) >= std::min(needed, limit.quota)) {
      continue;
    }
    if (limit.until <= now && under_way > 0) {
      return only_an_answer;  // there may be more now, or not: one request finds out
    }
    at = std::max(at, limit.until);
  }
  if (now < at) {
    pace_.had_to_wait = true;
    return {false, 0, at};
  }
  // A request that comes a little late for its turn does not push the following ones back.
  turn_ = after(next, std::max(turn, lateness)) < now ? now : next;
  last_ = now;
  in_flight_.push_back({++sent_, now, content_bytes});
  return {true, sent_, now};
}

auto pacer::land(std::uint64_t ticket, instant now) -> std::optional<flight> {
  auto const found = std::ranges::find(in_flight_, ticket, &flight::ticket);
  if (found == in_flight_.end()) {
    return std::nullopt;
  }
  auto const landed = *found;
  in_flight_.erase(found);
  for (auto& limit : limits_) {
    limit.overtaken -= ticket < limit.ticket && limit.overtaken > 0 ? 1 : 0;
  }
  latency_min_ = std::min(latency_min_, std::max(now - landed.sent, nanoseconds(0)));
  return landed;
}

void pacer::failed(std::uint64_t ticket, instant now) {
  (void)land(ticket, now);
}

void pacer::block(nanoseconds wait, instant now) {
  auto const until = after(now, std::min(wait, options_.wait_max) + offset_);
  blocked_until_ = std::max(blocked_until_, until);
  finding_out_ = true;
}

void pacer::back_off(instant now, double chance) {
  auto const longest =
      std::chrono::duration<double>(std::ldexp(1.0, static_cast<int>(std::min(back_offs_, 6U))));
  block(std::chrono::duration_cast<nanoseconds>(
            std::min<std::chrono::duration<double>>(longest, 60s) * chance),
        now);
  ++back_offs_;
}

void pacer::answered(std::uint64_t ticket, paced_response const& response, instant now,
                     std::uint64_t randomness) {
  auto const landed = land(ticket, now);
  if (!landed) {
    return;  // not one that was let go, or answered before
  }
  paced_fields const lines(response.fields);
  auto const is_refused = response.status == 429 || response.status == 503;
  auto const chance = std::ldexp(static_cast<double>(randomness >> 11), -53);  // 0 to 1
  refusals_ = is_refused ? refusals_ + 1 : 0;
  all_refusals_ += is_refused ? 1 : 0;
  set_offset(chance);
  if (!is_refused) {
    finding_out_ = false;
    back_offs_ = 0;
  }
  // What the response counts from: when it was made, half of the way ago.
  auto const made = now - latency_min_ / 2;
  auto const bytes =
      static_cast<double>(landed->content_bytes) + static_cast<double>(response.content_bytes);
  bytes_of_one_ =
      bytes_of_one_ == 0 ? bytes : bytes_of_one_ + (bytes - bytes_of_one_) * newest_weighs;
  limit_field said;
  if (!lines.from_cache) {
    // What a cache kept says nothing about now (draft-09, section 7.3). Status and Retry-After are
    // meant for all who get them, also from there.
    said = read_said(lines, response);
    if (ticket > newest_) {
      newest_ = ticket;
      learn(said, {ticket,
                   static_cast<std::int64_t>(
                       std::min<std::uint64_t>(response.content_bytes, reset_max * reset_max)),
                   made, now, is_refused});
    } else {
      lower(said);
    }
  }
  if (is_refused && is_alone()) {
    turn_ = instant::min();  // it only came too early, and has spent nothing
  } else if (is_refused && pace_.rate != 0 && landed->sent > pace_.slowed) {
    // Those that were under way meanwhile went at the old rate.
    set_rate(pace_.rate * refused);
    pace_.slowed = now;
  }
  auto const retry_after = lines.wait(response.wall_clock);
  if (retry_after && (is_refused || !said.limits.empty())) {
    // Wins over the reset, also when it is earlier.
    for (auto& limit : limits_) {
      limit.until = std::min(limit.until, after(now, *retry_after));
    }
    block(*retry_after, made);
  } else if (is_refused && std::ranges::none_of(limits_, [&](auto const& limit) {
               return limit.remaining == 0 && limit.until > now;
             })) {
    back_off(now, chance);
  }
}

auto pacer::is_alone() const noexcept -> bool {
  return !limits_.empty() && std::ranges::all_of(limits_, &known_limit::alone);
}

/// By how much later than others this client comes back after a wait.
void pacer::set_offset(double chance) noexcept {
  if (options_.strategy != pacing_strategy::spread) {
    return;
  }
  auto most = pace_.rate == 0 ? 0 : seconds(interval());
  if (pace_.rate == 0 && refusals_ > 0) {
    for (auto const& limit : limits_) {
      auto const doubled = std::ldexp(first_return, static_cast<int>(std::min(refusals_, 6U)));
      most = std::max(most, limit.window * std::min(doubled, 1.0));
    }
  } else if (is_alone()) {
    most = 0;
  }
  offset_ = std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(most * chance));
}

auto pacer::read_said(paced_fields const& lines, paced_response const& response) -> limit_field {
  auto said = read_paced_limits(lines.limits.get());
  if (!said.limits.empty()) {
    update_policies(lines.policies.get());
  } else {
    auto legacy = read_legacy(response.fields, lines.made_at(response.wall_clock));
    said.limits = std::move(legacy.limits);
    policies_.policies = std::move(legacy.policies);
    policy_line_.reset();
  }
  if (said.limits.size() > limits_max) {
    said.limits.resize(limits_max);
  }
  return said;
}

/// A server hardly ever changes its policies: the same line is not read again.
void pacer::update_policies(std::span<std::string_view const> lines) {
  if (lines.size() == 1 && lines.front() == policy_line_) {
    return;
  }
  policies_ = read_policies(lines).value_or(policy_field{});
  if (lines.size() == 1) {
    policy_line_ = lines.front();
  } else {
    policy_line_.reset();
  }
}

void pacer::learn(limit_field const& limits, seen_in const& from) {
  in_flight_limit_.reset();
  rate_bounds bounds;
  for (auto const& seen : limits.limits) {
    if (seen.reset) {
      learn_limit(seen, from, bounds);
    } else {
      auto const remaining = seen.remaining.value_or(seen.limit.value_or(0));
      auto const room = static_cast<std::int64_t>(in_flight_.size()) + 1;
      in_flight_limit_ =
          std::min(in_flight_limit_.value_or(reset_max), room + std::min(remaining, reset_max));
    }
  }
  // Of what is not mentioned any more, only what has not been reset yet still holds.
  std::erase_if(limits_, [&](auto const& limit) {
    return limit.ticket != from.ticket && limit.until <= from.made && limit.reset <= from.made;
  });
  if (limits_.empty()) {
    pace_.rate = 0;  // the server says nothing any more
    pace_.is_measured = false;
    return;
  }
  adjust_rate(bounds);
}

void pacer::adjust_rate(rate_bounds const& bounds) noexcept {
  if (bounds.wanted != rate_bounds::none) {
    // A rate that was not used up is not too low.
    set_rate(pace_.had_to_wait || pace_.rate == 0 ? bounds.wanted
                                                  : std::min(bounds.wanted, pace_.rate));
    pace_.had_to_wait = false;
    pace_.is_measured = true;
  } else if (!pace_.is_measured && bounds.start != rate_bounds::none && bounds.start > 0) {
    set_rate(bounds.start);
  }
  if (bounds.floor != rate_bounds::none && bounds.floor > pace_.rate &&
      (pace_.had_to_wait || pace_.rate == 0)) {
    set_rate(bounds.floor);
  }
}

/// The limit of that name, made when there is none.
auto pacer::limit_of(service_limit const& seen) -> known_limit& {
  auto const found = std::ranges::find_if(limits_, [&](auto const& known) {
    return known.name == seen.name && known.partition_key == seen.partition_key;
  });
  if (found != limits_.end()) {
    return *found;
  }
  if (limits_.size() == limits_max) {
    limits_.erase(limits_.begin());
  }
  auto& made = limits_.emplace_back();
  made.name = seen.name;
  made.partition_key = seen.partition_key;
  return made;
}

/// Takes what a response says of a limit. Returns the share of its window that this client had
/// before.
auto pacer::update(known_limit& limit, service_limit const& seen, seen_in const& from) const
    -> double {
  bool const is_new = limit.ticket == 0;
  auto remaining = seen.remaining.value_or(seen.limit.value_or(0));
  auto const* const policy = policy_of(seen, policies_);
  limit.unit = policy != nullptr ? policy->unit : unit_of_name(seen.name);
  if (limit.unit == quota_unit::content_bytes) {
    // A server that counts what it sends can do so only afterwards.
    remaining = std::max<std::int64_t>(remaining - from.content_bytes, 0);
    limit.per_request = std::max(bytes_of_one_, 1.0);
  } else if (limit.unit == quota_unit::other) {
    limit.learn_cost(is_new ? 0 : limit.remaining - remaining, from.ticket);
  }
  auto const share = is_new ? 0 : limit.share_of_window();
  limit.remaining = remaining;
  limit.burst.most = std::max(limit.burst.most, static_cast<double>(remaining));
  limit.ticket = from.ticket;
  limit.own = std::max(limit.own, from.ticket - all_refusals_);
  limit.overtaken = std::ranges::count_if(
      in_flight_, [&](auto const& other) { return other.ticket < from.ticket; });
  limit.quota = std::max(limit.quota, static_cast<double>(std::max<std::int64_t>(remaining, 1)));
  limit.window = std::max({limit.window, seconds(wait_until_reset(seen)), 1.0});
  if (policy != nullptr) {
    limit.has_policy = policy->window.has_value();
    limit.quota = static_cast<double>(std::max<std::int64_t>(policy->quota, 1));
    limit.window =
        policy->window ? std::max(static_cast<double>(*policy->window), 1.0) : limit.window;
  }
  return share;
}

void pacer::learn_limit(service_limit const& seen, seen_in const& from, rate_bounds& bounds) {
  auto const made = from.made;
  auto const under_way = in_flight_.size();
  auto& limit = limit_of(seen);
  bool const is_new = limit.ticket == 0;
  auto const share = update(limit, seen, from);
  // The reset is in whole seconds, rounded up: several of them show the moment more exactly.
  auto const latest = after(made, wait_until_reset(seen));
  auto const reset_before = limit.reset;
  if (is_new || limit.reset > latest || limit.reset < latest - 1s) {
    limit.reset = latest;
  }
  auto floor = rate_bounds::none;
  if (is_new) {
    limit.measure_from(made);
    limit.begin_window(made);
    bounds.start = std::min(bounds.start, limit.first_rate(made));
    floor = 0;
  } else if (limit.has_new_window(made, under_way)) {
    limit.reset = reset_before <= made ? latest : limit.reset;
    limit.measure_from(made);
    limit.begin_window(made);
    limit.alone = !limit.sees_others(made, under_way).value_or(!limit.alone);
    bounds.start = std::min(bounds.start, limit.first_rate(made));
    floor = limit.remaining > 0 || limit.alone ? share * limit.spread_rate(made) : 0;
  } else {
    auto const others = limit.sees_others(made, under_way);
    limit.alone = !others.value_or(!limit.alone);
    floor = others.value_or(true) ? 0 : limit.spread_rate(made);
    bounds.wanted = std::min(
        bounds.wanted, limit.corrected(pace_.rate, made, under_way).value_or(rate_bounds::none));
  }
  limit.until = after(std::min(limit.reset, after(made, options_.wait_max)), offset_);
  bounds.floor = std::min(bounds.floor, learn_burst(limit, wait_until_reset(seen), from, floor));
}

/// Where a server holds little at a time, requests go as units come back. Returns the floor of the
/// rate, which was `floor`.
auto pacer::learn_burst(known_limit& limit, nanoseconds wait, seen_in const& from,
                        double floor) const -> double {
  if (limit.holds_little(from.made) && (!from.is_refused || limit.remaining == 0)) {
    limit.learn_patience(from.is_refused, from.made);
  }
  if (!limit.holds_little(from.made)) {
    return floor;
  }
  auto const pace = limit.burst_pace(wait);
  if (limit.remaining == 0) {
    auto const part = std::chrono::duration<double>(std::min(pace, limit.burst.longest));
    limit.until =
        after(from.now, std::min(std::chrono::duration_cast<nanoseconds>(part), options_.wait_max));
  }
  return limit.is_paced_by_burst() ? std::max(floor, 1 / pace) : floor;
}

void pacer::lower(limit_field const& limits) {
  for (auto const& seen : limits.limits) {
    for (auto& limit : limits_) {
      if (limit.name == seen.name && limit.partition_key == seen.partition_key && seen.remaining) {
        limit.remaining = std::min(limit.remaining, *seen.remaining);
      }
    }
  }
}

auto pacer::current() const -> state {
  state out;
  if (pace_.rate != 0) {
    out.rate = pace_.rate;
  }
  out.blocked_until = blocked_until_;
  for (auto const& limit : limits_) {
    auto const allowance = static_cast<std::int64_t>(room_of(limit) / limit.cost_of_one());
    out.allowance = std::min(out.allowance.value_or(allowance), allowance);
  }
  return out;
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
