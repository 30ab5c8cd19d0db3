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
/// Where turns are closer than this, a client may be late for several: those who wait wake up no
/// more exactly.
constexpr nanoseconds lateness = 1ms;
/// A refused request means that the rate was too high.
constexpr double refused = 0.8;
/// How much faster than quota over window a client may go to catch up (draft-09, section 8.5: what
/// remains over the time to the reset can be far above what the policy means).
constexpr double catching_up = 1.25;
/// So many units would have been spent by others if there were any: who sees none of them is alone.
constexpr double units_to_be_alone = 4;
/// How much the latest request counts in what one is expected to cost.
constexpr double newest_weighs = 0.25;
/// Within this part of a window those come back who know no rate yet, twice as much after each
/// refusal.
constexpr double first_return = 0.02;

/// A server that never has more than this part of its quota at a time lets units come one by one.
constexpr double little_of_quota = 0.25;
/// What is waited for the next unit there, of the time before, after each answer that is no
/// refusal.
constexpr double impatience = 0.7;
constexpr double patience_min = 0.01;

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

/// Reads one line of draft-09 without a tree, since every response has one. False when there is
/// anything unusual about it: then `read_limits` says what it means.
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

/// What counts of a header section, found in one go.
struct pacer::relevant_lines {
  few_views limits;
  few_views policies;
  few_views dates;
  few_views retry_after;
  bool from_cache = false;

  explicit relevant_lines(std::span<field_line const> fields) {
    bool has_age = false;
    for (auto const& [name, value] : fields) {
      if (same_name(name, "ratelimit")) {
        limits.push_back(value);
      } else if (same_name(name, "ratelimit-policy")) {
        policies.push_back(value);
      } else if (same_name(name, "retry-after")) {
        retry_after.push_back(value);
      } else if (same_name(name, "date")) {
        dates.push_back(value);
      } else if (same_name(name, "age") && !has_age && !value.empty() &&
                 value.find_first_not_of("0123456789") == std::string_view::npos) {
        // A response out of a cache has a positive age (RFC 9111, section 5.1). What is no number
        // is ignored.
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

  /// Of several lines, which one server does not send, the one that wants the longest wait.
  [[nodiscard]] auto wait(std::chrono::sys_seconds wall_clock) const
      -> std::optional<std::chrono::seconds> {
    std::optional<std::chrono::seconds> out;
    for (auto const value : retry_after.get()) {
      out = std::max(out, http::parse_retry_after(value, made_at(wall_clock)));
    }
    return out;
  }
};

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
    had_to_wait_ = true;
    return {false, 0, at};
  }
  // Whoever comes a little late for a turn does not push the following ones back.
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
  relevant_lines const lines(response.fields);
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
    // meant for whoever gets them, also from there.
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
  } else if (is_refused && rate_ != 0 && landed->sent > slowed_) {
    // Those that were under way meanwhile went at the old rate.
    set_rate(rate_ * refused);
    slowed_ = now;
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
  auto most = rate_ == 0 ? 0 : seconds(interval());
  if (rate_ == 0 && refusals_ > 0) {
    for (auto const& limit : limits_) {
      auto const doubled = std::ldexp(first_return, static_cast<int>(std::min(refusals_, 6U)));
      most = std::max(most, limit.window * std::min(doubled, 1.0));
    }
  } else if (is_alone()) {
    most = 0;
  }
  offset_ = std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(most * chance));
}

auto pacer::read_said(relevant_lines const& lines, paced_response const& response) -> limit_field {
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
  return said;
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

void pacer::learn(limit_field const& limits, seen_in const& from) {
  auto const [ticket, content_bytes, made, now, is_refused] = from;
  in_flight_limit_.reset();
  constexpr auto none = std::numeric_limits<double>::infinity();
  auto start = none;   // where nothing is known of others yet
  auto wanted = none;  // after what was measured
  auto floor = none;   // what all limits allow this client, for all that it has seen
  for (auto const& seen : limits.limits) {
    auto remaining = seen.remaining.value_or(seen.limit.value_or(0));
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
    auto const* const policy = policy_of(seen, policies_);
    limit.unit = policy != nullptr ? policy->unit : unit_of_name(seen.name);
    if (limit.unit == quota_unit::content_bytes) {
      // A server that counts what it sends can do so only afterwards.
      remaining = std::max<std::int64_t>(remaining - content_bytes, 0);
      limit.per_request = std::max(bytes_of_one_, 1.0);
    } else if (limit.unit == quota_unit::other) {
      limit.learn_cost(is_new ? 0 : limit.remaining - remaining, ticket);
    }
    auto const share = is_new ? 0 : share_of_window(limit);
    limit.remaining = remaining;
    limit.most = std::max(limit.most, static_cast<double>(remaining));
    limit.ticket = ticket;
    limit.own = std::max(limit.own, ticket - all_refusals_);
    limit.overtaken =
        std::ranges::count_if(in_flight_, [&](auto const& other) { return other.ticket < ticket; });
    limit.quota = std::max(limit.quota, static_cast<double>(std::max<std::int64_t>(remaining, 1)));
    limit.window = std::max({limit.window, seconds(wait), 1.0});
    if (policy != nullptr) {
      limit.has_policy = policy->window.has_value();
      limit.quota = static_cast<double>(std::max<std::int64_t>(policy->quota, 1));
      limit.window =
          policy->window ? std::max(static_cast<double>(*policy->window), 1.0) : limit.window;
    }
    // The reset is in whole seconds, rounded up: several of them show the moment more exactly.
    auto const latest = after(made, wait);
    auto own_floor = none;
    auto const reset_before = limit.reset;
    if (is_new || limit.reset > latest || limit.reset < latest - 1s) {
      limit.reset = latest;
    }
    if (is_new) {
      limit.measure_from(made);
      limit.begin_window(made);
      start = std::min(start, first_rate(limit, made));
      own_floor = 0;
    } else if (has_new_window(limit, made)) {
      limit.reset = reset_before <= made ? latest : limit.reset;
      limit.measure_from(made);
      limit.begin_window(made);
      limit.alone = !sees_others(limit, made).value_or(!limit.alone);
      start = std::min(start, first_rate(limit, made));
      own_floor = remaining > 0 || limit.alone ? share * spread_rate(limit, made) : 0;
    } else {
      auto const others = sees_others(limit, made);
      limit.alone = !others.value_or(!limit.alone);
      own_floor = others.value_or(true) ? 0 : spread_rate(limit, made);
      wanted = std::min(wanted, corrected(limit, made).value_or(none));
    }
    limit.until = after(std::min(limit.reset, after(made, options_.wait_max)), offset_);
    if (limit.holds_little(made) && (!is_refused || remaining == 0)) {
      limit.learn_patience(is_refused, made);
    }
    if (limit.holds_little(made)) {
      limit.longest = remaining == 0 ? seconds(wait) : limit.longest;
      auto const one = limit.window / limit.requests(limit.quota);
      auto const pace = std::max(limit.longest * limit.patience, one);
      if (remaining == 0) {
        auto const part = std::chrono::duration<double>(std::min(pace, limit.longest));
        limit.until =
            after(now, std::min(std::chrono::duration_cast<nanoseconds>(part), options_.wait_max));
      }
      // What such a server did not keep looks as if others had taken it.
      if (limit.longest > 0 || limit.most <= units_to_be_alone) {
        own_floor = std::max(own_floor, 1 / pace);
      }
    }
    floor = std::min(floor, own_floor);
  }
  // Of what is not mentioned any more, only what has not been reset yet still holds.
  std::erase_if(limits_, [&](auto const& limit) {
    return limit.ticket != ticket && limit.until <= made && limit.reset <= made;
  });
  if (limits_.empty()) {
    rate_ = 0;  // the server says nothing any more
    is_measured_ = false;
    return;
  }
  if (wanted != none) {
    // A rate that was not used up is not too low.
    set_rate(had_to_wait_ || rate_ == 0 ? wanted : std::min(wanted, rate_));
    had_to_wait_ = false;
    is_measured_ = true;
  } else if (!is_measured_ && start != none && start > 0) {
    set_rate(start);
  }
  if (floor != none && floor > rate_ && (had_to_wait_ || rate_ == 0)) {
    set_rate(floor);
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

/// The rate at which what remains lasts until the reset, where all of it is for one client: with
/// the last request the next window begins.
auto pacer::spread_rate(known_limit const& limit, instant made) -> double {
  auto const left = std::max(seconds(limit.reset - made), 0.5);
  auto const refill = limit.requests(limit.quota) / limit.window;
  auto const remaining = limit.requests(static_cast<double>(limit.remaining));
  if (limit.refills) {
    return refill + remaining / std::max(left, limit.window);
  }
  auto const rate = (remaining + 1) / left;
  return limit.has_policy ? std::min(rate, catching_up * refill) : rate;
}

/// Nothing is known of others yet. 0 when nothing remains: that says nothing about a rate.
auto pacer::first_rate(known_limit const& limit, instant made) -> double {
  if (limit.remaining == 0) {
    return 0;
  }
  auto const left = std::max(seconds(limit.reset - made), 0.5);
  // What is gone from the quota may be the work of many or of one: take the middle, on a scale of
  // powers.
  auto const gone =
      std::max(limit.requests(limit.quota - static_cast<double>(limit.remaining)), 1.0);
  auto const remaining = limit.requests(static_cast<double>(limit.remaining));
  auto const alone = spread_rate(limit, made);
  auto const shared = limit.refills ? alone / std::sqrt(gone)
                                    : std::max((remaining + 1) / std::sqrt(gone), 1.0) / left;
  // No later than it takes to see whether there are others.
  auto const tries = limit.requests(limit.quota) / limit.window / units_to_be_alone;
  return std::min(std::max(shared, tries), alone);
}

/// What a request costs in a unit that a client cannot count: what was gone after it, others' share
/// included.
void pacer::known_limit::learn_cost(std::int64_t spent, std::uint64_t now_answered) noexcept {
  if (ticket == 0) {
    per_request = 0;
  }
  if (spent > 0 && now_answered > ticket) {
    auto const each = static_cast<double>(spent) / static_cast<double>(now_answered - ticket);
    per_request = per_request == 0 ? each : per_request + (each - per_request) * newest_weighs;
  }
}

/// Whether quota comes back bit by bit and never is there at once: a burst that is far below the
/// quota, which no field tells.
auto pacer::known_limit::holds_little(instant made) const noexcept -> bool {
  return refills && has_policy && most <= quota * little_of_quota && made >= shared_until;
}

/// Less is waited as long as nothing is refused. Who came too early may not be alone, and waits for
/// the reset for a window, and twice as many each time.
void pacer::known_limit::learn_patience(bool is_refused, instant made) noexcept {
  if (!is_refused) {
    patience = std::max(patience * impatience, patience_min);
    return;
  }
  auto const windows =
      std::min(std::ldexp(window, static_cast<int>(std::min(came_too_early++, 6U))),
               static_cast<double>(reset_max));
  patience = 1;
  shared_until =
      after(made, std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(windows)));
}

void pacer::known_limit::measure_from(instant made) noexcept {
  since = made;
  remaining_then = remaining;
  reset_then = reset;
  own_then = own;
}

void pacer::known_limit::begin_window(instant made) noexcept {
  window_since = made;
  window_remaining = remaining;
  window_own = own;
}

/// Whether the quota was filled up since the last measurement. Finds out, too, whether it comes
/// back bit by bit.
auto pacer::has_new_window(known_limit& limit, instant made) const -> bool {
  auto const past = seconds(made - limit.since);
  auto const grown = limit.requests(static_cast<double>(limit.remaining - limit.remaining_then));
  auto const quota = limit.requests(limit.quota);
  // As much as may have come back in the meantime, for all that is known.
  auto const refill = quota / limit.window;
  if (grown > 1.5 * refill * past + 1) {
    limit.refills = false;
    return true;
  }
  // Requests that overtake each other blur what remained when.
  auto const blur = 2.0 * static_cast<double>(in_flight_.size());
  auto const own = static_cast<double>(limit.own - limit.own_then);
  bool const was_reset = limit.reset_then <= made;
  if (!was_reset) {
    limit.refills = limit.refills || blur + 2 - grown < own;
  } else if (!limit.refills) {
    // A window is not over long before its time, nor is so much of the next one gone at once.
    bool const is_early = seconds(limit.reset - limit.reset_then) < limit.window / 2;
    bool const is_little = seconds(made - limit.reset_then) < limit.window / 4 &&
                           limit.requests(static_cast<double>(limit.remaining)) + 1 < quota / 2;
    limit.refills = is_early || is_little;
    return true;
  }
  return false;
}

/// Whether others have spent of the quota lately; nothing when that cannot be said yet.
auto pacer::sees_others(known_limit const& limit, instant made) const -> std::optional<bool> {
  auto const blur = static_cast<double>(in_flight_.size());
  auto const since = limit.refills ? limit.since : limit.window_since;
  auto const then = limit.refills ? limit.remaining_then : limit.window_remaining;
  auto const own =
      static_cast<double>(limit.own - (limit.refills ? limit.own_then : limit.window_own));
  auto const refilled = limit.requests(limit.quota) / limit.window * seconds(made - since);
  auto const spent =
      limit.requests(static_cast<double>(then - limit.remaining)) + (limit.refills ? refilled : 0);
  auto const gone = limit.requests(limit.quota - static_cast<double>(limit.remaining));
  // Where little is held at a time, it is never all of the quota that is there.
  auto const missing = limit.holds_little(made) && limit.most > units_to_be_alone
                           ? limit.requests(limit.most - static_cast<double>(limit.remaining)) + 1
                           : gone;
  if (limit.refills && missing <= 1 + blur) {
    return false;  // nothing is missing but what this client has just taken
  }
  if (spent > own + blur + (limit.refills ? 1 : 0.5)) {
    return true;
  }
  bool const had_all = !limit.refills && limit.remaining == 0 && gone <= own + 1;
  return had_all || refilled >= units_to_be_alone + 4 * blur ? std::optional(false) : std::nullopt;
}

/// The part of the quota that this client had in the window so far. The sum over all clients is at
/// most 1.
auto pacer::share_of_window(known_limit const& limit) -> double {
  if (limit.alone) {
    return 1;
  }
  auto const own = static_cast<double>(limit.own - limit.window_own + 1);
  auto const gone = limit.requests(limit.quota - static_cast<double>(limit.remaining));
  // Who has seen nothing of others may try more.
  return std::min(own * (gone <= own ? 2 : 1) / std::max(limit.requests(limit.quota), 1.0), 1.0);
}

auto pacer::corrected(known_limit& limit, instant made) const -> std::optional<double> {
  auto const past = seconds(made - limit.since);
  if (past <= 0) {
    limit.measure_from(made);
    return std::nullopt;
  }
  auto const shrunk = limit.requests(static_cast<double>(limit.remaining_then - limit.remaining));
  auto const quota = limit.requests(limit.quota);
  auto const refill = quota / limit.window;
  auto const blur = 2.0 * static_cast<double>(in_flight_.size());
  auto const spent = std::max(shrunk / past, -0.9 * refill) + refill;  // a second, by everybody
  auto const rate = rate_ != 0 ? rate_ : static_cast<double>(limit.own - limit.own_then) / past;
  if (past * rate < 0.9 || past * spent < units_to_measure + 2 * blur) {
    return std::nullopt;  // goes on measuring
  }
  auto const left = std::max(seconds(limit.reset - made), 0.5);
  auto const horizon = limit.refills ? std::max(left, limit.window / 4) : left;
  auto const share = std::clamp(rate / spent, 1e-6, 1.0);
  // Nothing need be kept from oneself.
  auto const kept =
      quota * std::max(1 - 2 * share, 0.0) *
      (limit.refills ? reserve_of_refilled : reserve * std::min(left / limit.window, 1.0));
  auto const remaining = limit.requests(static_cast<double>(limit.remaining));
  auto lasts = (remaining - kept) / horizon;
  if (limit.has_policy) {
    lasts = std::min(lasts, catching_up * refill);
  }
  auto const factor = std::clamp((lasts + refill) / spent, correction_min, correction_max);
  auto const growth =
      std::min(growth_in_window * past / limit.window / std::sqrt(share), growth_max);
  limit.measure_from(made);
  // The factor is for the time up to the horizon; what of the next interval is behind it stays as
  // it is.
  return rate * (1 + growth + (factor - 1) * std::min(horizon * rate, 1.0));
}

auto pacer::current() const -> state {
  state out;
  if (rate_ != 0) {
    out.rate = rate_;
  }
  out.blocked_until = blocked_until_;
  for (auto const& limit : limits_) {
    auto const allowance = static_cast<std::int64_t>(room_of(limit) / limit.cost_of_one());
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
