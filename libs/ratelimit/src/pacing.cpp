// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/date.hpp>
#include <tidegate/http/retry_after.hpp>
#include <tidegate/ratelimit/pacing.hpp>
#include <tidegate/ratelimit/read.hpp>
#include <tidegate/sf/reader.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace tidegate::ratelimit {

namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

/// So many limits of a response are looked at.
constexpr std::size_t limits_max = 32;
/// A reset further away than this says no more than this does, and adds up without an overflow.
constexpr std::int64_t reset_max = 1'000'000'000;
/// The part of the quota that is left alone while the reset is a window away, against clients hearing of
/// each other late; towards the reset it goes to 0.
constexpr double reserve = 0.05;
/// The same where quota comes back all the time, and what is left alone stays so.
constexpr double reserve_of_refilled = 0.01;
/// How far one measurement may change the rate.
constexpr double correction_min = 1.0 / 16;
constexpr double correction_max = 3;
/// Fewer units than this in a measurement say more about chance than about the rate.
constexpr double units_to_measure = 8;
/// By how much a rate grows in a window without being asked to, for a client that has all of the quota;
/// the less it has, the more. What is too much then is taken from everyone in proportion, so that shares
/// become equal over time.
constexpr double growth_in_window = 0.005;
constexpr double growth_max = 0.01;
/// Where turns are closer than this, a client may be late for several: those who wait wake up no more exactly.
constexpr nanoseconds lateness = 1ms;
/// A refused request means that the rate was too high.
constexpr double refused = 0.8;

[[nodiscard]] auto seconds(nanoseconds d) noexcept -> double {
  return std::chrono::duration<double>(d).count();
}

[[nodiscard]] auto after(instant t, nanoseconds d) noexcept -> instant {
  return t > instant::max() - d ? instant::max() : t + d;
}

[[nodiscard]] auto same_name(std::string_view a, std::string_view lower_case) noexcept -> bool {
  return std::ranges::equal(a, lower_case, [](char x, char y) {
    return (x >= 'A' && x <= 'Z' ? static_cast<char>(x - 'A' + 'a') : x) == y;
  });
}

/// Views, of which there is mostly one.
class few_views {
 public:
  void push_back(std::string_view view) {
    if (size_ < first_.size()) {
      first_[size_] = view;
    } else {
      if (all_.empty()) {
        all_.assign(first_.begin(), first_.end());
      }
      all_.push_back(view);
    }
    ++size_;
  }
  [[nodiscard]] auto get() const noexcept -> std::span<std::string_view const> {
    return all_.empty() ? std::span(first_).first(size_) : std::span(all_);
  }

 private:
  std::array<std::string_view, 2> first_;
  std::vector<std::string_view> all_;  // when there are more
  std::size_t size_ = 0;
};

/// What counts of a header section, found in one go.
struct relevant_lines {
  few_views limits;
  few_views policies;
  few_views dates;
  std::optional<std::string_view> retry_after;  // the last line
  bool from_cache = false;

  explicit relevant_lines(std::span<field_line const> fields) {
    bool has_age = false;
    for (auto const& [name, value] : fields) {
      if (same_name(name, "ratelimit")) {
        limits.push_back(value);
      } else if (same_name(name, "ratelimit-policy")) {
        policies.push_back(value);
      } else if (same_name(name, "retry-after")) {
        retry_after = value;
      } else if (same_name(name, "date")) {
        dates.push_back(value);
      } else if (same_name(name, "age") && !has_age && !value.empty() &&
                 value.find_first_not_of("0123456789") == std::string_view::npos) {
        // A response out of a cache has a positive age (RFC 9111, section 5.1). What is no number is
        // ignored.
        has_age = true;
        from_cache = value.find_first_not_of('0') != std::string_view::npos;
      }
    }
  }

  /// When the response was made, by the clock of the server if it says so.
  [[nodiscard]] auto made_at(std::chrono::sys_seconds wall_clock) const
      -> std::chrono::sys_seconds {
    auto out = wall_clock;
    for (auto const date : dates.get()) {
      out = http::parse_http_date(date, wall_clock).value_or(out);
    }
    return out;
  }
};

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

/// Reads one line of draft-09 without a tree, since every response has one. False when there is anything unusual
/// about it: then `read_limits` says what it means.
[[nodiscard]] auto read_usual_limits(std::string_view line, limit_field& out) -> bool {
  sf::basic_reader<field_dialect> reader(sf::field_type::list, line);
  std::string scratch;
  for (;;) {
    switch (reader.next()) {
      case sf::event::item:
        if (!reader.value().is(sf::bare_item_type::string)) {
          return false;
        }
        out.limits.emplace_back().name = reader.value().text(scratch);
        break;
      case sf::event::parameter: {
        auto& limit = out.limits.back();
        auto const number = reader.value().get_integer();
        if (reader.key() == "r" || reader.key() == "t") {
          if (!number || number->value() < 0) {
            return false;
          }
          (reader.key() == "r" ? limit.remaining : limit.reset) = number->value();
        } else if (reader.key() == "pk") {
          if (!reader.value().is(sf::bare_item_type::byte_sequence)) {
            return false;
          }
          limit.partition_key = reader.value().text(scratch);
        }
        break;
      }
      case sf::event::end:
        return std::ranges::all_of(out.limits,
                                   [](auto const& each) { return each.remaining.has_value(); });
      default: return false;
    }
  }
}

}  // namespace

auto pacer::interval() const noexcept -> nanoseconds {
  if (options_.strategy == pacing_strategy::burst || rate_ == 0) {
    return options_.interval_min;
  }
  return std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(1 / rate_));
}

void pacer::set_rate(double rate) noexcept {
  auto const shortest = std::max(options_.interval_min, nanoseconds(1));
  auto const longest = std::max(options_.wait_max, shortest);
  rate_ = std::clamp(rate, 1 / seconds(longest), 1 / seconds(shortest));
}

auto pacer::allowance_of(known_limit const& limit) const noexcept -> std::int64_t {
  // Requests that were sent later are not in what the server counted, nor those that were overtaken.
  auto const uncounted = static_cast<std::int64_t>(sent_ - limit.ticket) + limit.overtaken;
  return limit.remaining - std::min(uncounted, limit.remaining);
}

auto pacer::ask(instant now) -> permission {
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
  auto at = std::max({next_, blocked_until_, after(last_, options_.interval_min)});
  for (auto const& limit : limits_) {
    if (allowance_of(limit) > 0) {
      continue;
    }
    if (limit.until <= now && under_way > 0) {
      return only_an_answer;  // there may be more now, or not: one request finds out
    }
    at = std::max(at, limit.until);
  }
  if (now < at) {
    had_to_wait_ = true;
    return {false, 0, at};
  }
  // Whoever comes a little late for a turn does not push the following ones back.
  auto const turn = interval();
  next_ = after(after(next_, std::max(turn, lateness)) < now ? now : next_, turn);
  last_ = now;
  in_flight_.push_back({++sent_, now});
  return {true, sent_, now};
}

auto pacer::land(std::uint64_t ticket, instant now) -> std::optional<instant> {
  auto const found = std::ranges::find(in_flight_, ticket, &flight::ticket);
  if (found == in_flight_.end()) {
    return std::nullopt;
  }
  auto const sent = found->sent;
  in_flight_.erase(found);
  for (auto& limit : limits_) {
    limit.overtaken -= ticket < limit.ticket && limit.overtaken > 0 ? 1 : 0;
  }
  latency_min_ = std::min(latency_min_, std::max(now - sent, nanoseconds(0)));
  return sent;
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
  if (!land(ticket, now)) {
    return;  // not one that was let go, or answered before
  }
  relevant_lines const lines(response.fields);
  if (lines.from_cache) {
    return;
  }
  auto const is_newest = ticket > newest_;
  newest_ = std::max(newest_, ticket);
  auto const is_refused = response.status == 429 || response.status == 503;
  auto const chance = std::ldexp(static_cast<double>(randomness >> 11), -53);  // 0 to 1
  if (options_.strategy == pacing_strategy::spread) {
    offset_ = std::chrono::duration_cast<nanoseconds>(interval() * chance);
  }
  if (!is_refused) {
    finding_out_ = false;
    back_offs_ = 0;
  }
  // What the response counts from: when it was made, half of the way ago.
  auto const made = now - latency_min_ / 2;
  limit_field said;
  auto const limit_lines = lines.limits.get();
  if (limit_lines.size() != 1 || !limit_lines.front().starts_with('"') ||
      !read_usual_limits(limit_lines.front(), said)) {
    said = read_limits(limit_lines).value_or(limit_field{});
  }
  if (!said.limits.empty()) {
    read_policies_anew(lines.policies.get());
  } else {
    auto legacy = read_legacy(response.fields, lines.made_at(response.wall_clock));
    said.limits = std::move(legacy.limits);
    policies_.policies = std::move(legacy.policies);
    policy_line_.reset();
  }
  if (said.limits.size() > limits_max) {
    said.limits.resize(limits_max);
  }
  if (is_newest) {
    learn(said, ticket, made);
  } else {
    lower(said);
  }
  if (is_refused && rate_ != 0) {
    set_rate(rate_ * refused);
  }
  std::optional<std::chrono::seconds> retry_after;
  if (lines.retry_after) {
    retry_after = http::parse_retry_after(*lines.retry_after, lines.made_at(response.wall_clock));
  }
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

/// A server hardly ever changes its policies: the same line is not read again.
void pacer::read_policies_anew(std::span<std::string_view const> lines) {
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

void pacer::learn(limit_field const& limits, std::uint64_t ticket, instant made) {
  in_flight_limit_.reset();
  auto factor = std::numeric_limits<double>::infinity();
  auto start = std::numeric_limits<double>::infinity();
  for (auto const& seen : limits.limits) {
    auto const remaining = seen.remaining.value_or(seen.limit.value_or(0));
    if (!seen.reset) {
      auto const room = static_cast<std::int64_t>(in_flight_.size()) + 1;
      in_flight_limit_ =
          std::min(in_flight_limit_.value_or(reset_max), room + std::min(remaining, reset_max));
      continue;
    }
    auto const wait = nanoseconds(std::chrono::seconds(std::min(*seen.reset, reset_max)));
    auto found = std::ranges::find_if(limits_, [&](auto const& known) {
      return known.name == seen.name && known.partition_key == seen.partition_key;
    });
    auto const is_new = found == limits_.end();
    if (is_new) {
      if (limits_.size() == limits_max) {
        limits_.erase(limits_.begin());
      }
      found = limits_.insert(limits_.end(), known_limit{});
      found->name = seen.name;
      found->partition_key = seen.partition_key;
    }
    auto& limit = *found;
    limit.remaining = remaining;
    limit.ticket = ticket;
    limit.overtaken =
        std::ranges::count_if(in_flight_, [&](auto const& other) { return other.ticket < ticket; });
    // The reset is in whole seconds, rounded up: several of them show the moment more exactly.
    auto const latest = after(made, wait);
    if (is_new || limit.reset > latest || limit.reset < latest - 1s) {
      limit.reset = latest;
    }
    limit.until = after(std::min(limit.reset, after(made, options_.wait_max)), offset_);
    limit.quota = std::max(limit.quota, static_cast<double>(std::max<std::int64_t>(remaining, 1)));
    limit.window = std::max({limit.window, seconds(wait), 1.0});
    if (auto const* const policy = policy_of(seen, policies_)) {
      limit.quota = static_cast<double>(std::max<std::int64_t>(policy->quota, 1));
      limit.window =
          policy->window ? std::max(static_cast<double>(*policy->window), 1.0) : limit.window;
    }
    if (is_new) {
      limit.measure_from(made);
      start = std::min(start, first_rate(limit, made));
    } else if (auto const measured = correction(limit, made)) {
      factor = std::min(factor, *measured);
    }
  }
  // Of what is not mentioned any more, only what has not been reset yet still holds.
  std::erase_if(limits_, [&](auto const& limit) {
    return limit.ticket != ticket && limit.until <= made && limit.reset <= made;
  });
  if (limits_.empty()) {
    rate_ = 0;  // the server says nothing any more
    return;
  }
  if (rate_ == 0) {
    if (!std::isinf(start)) {
      set_rate(start);
    }
  } else if (!std::isinf(factor)) {
    // A rate that was not used up is not too low.
    set_rate(rate_ * (had_to_wait_ ? factor : std::min(factor, 1.0)));
    had_to_wait_ = false;
  }
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

auto pacer::first_rate(known_limit const& limit, instant made) const -> double {
  auto const wait = std::max(seconds(limit.reset - made), 0.5);
  // What is gone from the quota may be the work of many or of one: take the middle, on a scale of powers.
  auto const gone = std::max(limit.quota - static_cast<double>(limit.remaining), 1.0);
  return std::max(static_cast<double>(limit.remaining) / std::sqrt(gone), 1.0) / wait;
}

void pacer::known_limit::measure_from(instant made) noexcept {
  since = made;
  remaining_then = remaining;
  reset_then = reset;
  ticket_then = ticket;
}

auto pacer::correction(known_limit& limit, instant made) const -> std::optional<double> {
  auto const past = seconds(made - limit.since);
  auto const shrunk = static_cast<double>(limit.remaining_then - limit.remaining);
  // As much as may have come back in the meantime, for all that is known.
  auto const refill = limit.quota / limit.window;
  if (-shrunk > 1.5 * refill * past + 1) {  // more than that: a window has begun
    limit.refills = false;
    limit.measure_from(made);
    return std::nullopt;
  }
  // Requests that overtake each other blur what remained when.
  auto const blur = 2.0 * static_cast<double>(in_flight_.size());
  auto const own = static_cast<double>(limit.ticket - limit.ticket_then);
  if (shrunk + blur + 2 < own && made < limit.reset_then) {
    limit.refills = true;
  }
  if (past <= 0 || (!limit.refills && limit.reset_then <= made)) {
    limit.measure_from(made);
    return std::nullopt;
  }
  auto const spent = std::max(shrunk / past, -0.9 * refill) + refill;  // a second, by everybody
  if (past * rate_ < 0.9 || past * spent < units_to_measure + 2 * blur) {
    return std::nullopt;  // goes on measuring
  }
  auto const left = std::max(seconds(limit.reset - made), 0.5);
  auto const horizon = limit.refills ? std::max(left, limit.window / 4) : left;
  auto const share = std::clamp(rate_ / spent, 1e-6, 1.0);
  // Nothing need be kept from oneself.
  auto const kept =
      limit.quota * std::max(1 - 2 * share, 0.0) *
      (limit.refills ? reserve_of_refilled : reserve * std::min(left / limit.window, 1.0));
  auto const wanted = (static_cast<double>(limit.remaining) - kept) / horizon + refill;
  auto const factor = std::clamp(wanted / spent, correction_min, correction_max);
  auto const growth =
      std::min(growth_in_window * past / limit.window / std::sqrt(share), growth_max);
  limit.measure_from(made);
  // The factor is for the time up to the horizon; what of the next interval is behind it stays as it is.
  return 1 + growth + (factor - 1) * std::min(horizon * rate_, 1.0);
}

auto pacer::current() const -> state {
  state out;
  if (rate_ != 0) {
    out.rate = rate_;
  }
  out.blocked_until = blocked_until_;
  for (auto const& limit : limits_) {
    auto const allowance = allowance_of(limit);
    out.allowance = std::min(out.allowance.value_or(allowance), allowance);
  }
  return out;
}

pacers::pacers(pacing_options const& options, std::size_t size_max)
    : options_(options), size_max_(std::max<std::size_t>(size_max, 1)) {}

auto pacers::of(std::string_view origin, std::string_view partition) -> pacer& {
  // No origin has a line feed in it, so two keys are never the same by chance.
  std::string key;
  key.reserve(origin.size() + 1 + partition.size());
  key.append(origin).push_back('\n');
  key.append(partition);
  if (auto const found = by_key_.find(key); found != by_key_.end()) {
    by_use_.splice(by_use_.begin(), by_use_, found->second);
    return by_use_.front().paces;
  }
  if (by_use_.size() >= size_max_) {
    auto idle = std::find_if(by_use_.rbegin(), by_use_.rend(),
                             [](entry const& e) { return e.paces.in_flight() == 0; });
    if (idle != by_use_.rend()) {
      by_key_.erase(idle->key);
      by_use_.erase(std::next(idle).base());
    }
  }
  by_use_.push_front({std::move(key), pacer(options_)});
  by_key_.emplace(by_use_.front().key, by_use_.begin());
  return by_use_.front().paces;
}

}  // namespace tidegate::ratelimit
