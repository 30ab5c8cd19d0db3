// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/merge.hpp>

#include <tidegate/sf/parse.hpp>
#include <tidegate/sf/serialize.hpp>
#include <tidegate/sf/writer.hpp>

#include "parsed_field.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {

namespace {

using detail::field_item;
using detail::field_list;
using detail::is_one_of;
using detail::parsed_limits;
using detail::parsed_policies;
using bare_item = sf::basic_bare_item<field_dialect>;

__extension__ using wide = unsigned __int128;  // a quota times a window

using key_view = sf::basic_key_view<field_dialect>;

void set(comment_parameters& parameters, key_view key, bare_item value) {
  parameters.set(sf::basic_key<field_dialect>(key), std::move(value));
}
void set(comment_parameters& parameters, key_view key, std::int64_t value) {
  set(parameters, key, bare_item(sf::integer::clamp(value)));
}

/// Of a parameter that was checked to be an Integer where it is there.
[[nodiscard]] auto find_integer(comment_parameters const& parameters, std::string_view key) noexcept
    -> std::optional<std::int64_t> {
  auto const* value = parameters.find(key);
  return value == nullptr ? std::nullopt : std::optional(value->as_integer().value());
}

/// Adds what is not there yet and is none of `left_out`.
void add_others(comment_parameters& to, comment_parameters const& from,
                std::span<std::string_view const> left_out) {
  for (auto const& [key, value] : from) {
    if (!is_one_of(key.text(), left_out) && !to.contains(key.text())) {
      set(to, key, value);
    }
  }
}

[[nodiscard]] auto item_of(field_list::value_type& member) noexcept -> field_item& {
  return *std::get_if<0>(&member);
}

/// Our own field as a tree: written and parsed again, so that what it says has one source.
template <class Append>
[[nodiscard]] auto own_items(Append append) -> field_list {
  std::string text;
  append(text);
  auto list = sf::parse_list<field_dialect>(text);
  assert(list.has_value());
  return *std::move(list);
}

// ── draft-09 ──

[[nodiscard]] auto is_same_unit(std::string_view a, std::string_view b) noexcept -> bool {
  auto const unit = quota_unit_named(a);
  return unit == quota_unit_named(b) && (unit != quota_unit::other || a == b);
}

[[nodiscard]] auto have_same_unit(comment_parameters const& a, comment_parameters const& b) noexcept
    -> bool {
  auto name = [](comment_parameters const& policy) -> std::string_view {
    auto const* unit = policy.find("qu");
    return unit == nullptr ? "requests" : unit->as_string().text();
  };
  return is_same_unit(name(a), name(b));
}

/// Items without a partition key are of one partition as well.
[[nodiscard]] auto have_same_key(comment_parameters const& a, comment_parameters const& b) noexcept
    -> bool {
  auto const* const of_a = a.find("pk");
  auto const* const of_b = b.find("pk");
  return of_a == nullptr || of_b == nullptr ? of_a == of_b : *of_a == *of_b;
}

/// In which unit the origin counts what it calls by the name and partition key of one of ours. An
/// item of RateLimit does not say: the policy of that name and key does, else the policies of that
/// name, else it is the default.
class unit_of_origin {
 public:
  explicit unit_of_origin(sf::string_view own) noexcept : own_(own.text()) {}

  void add(quota_policy const& policy, bool same_key) noexcept {
    auto const use = is_same_unit(own_, policy.unit_name) ? seen::same : seen::other;
    note(by_name_, use);
    if (same_key) {
      note(by_key_, use);
    }
  }
  /// Not where policies contradict each other.
  [[nodiscard]] auto is_ours() const noexcept -> bool {
    auto const found = by_key_ != seen::none ? by_key_ : by_name_;
    return found == seen::none ? is_same_unit(own_, "requests") : found == seen::same;
  }

 private:
  enum class seen : std::uint8_t { none, same, other };
  static void note(seen& before, seen now) noexcept {
    before = before == seen::other ? before : now;
  }

  std::string_view own_;
  seen by_name_ = seen::none;
  seen by_key_ = seen::none;
};

/// For each of our policies whether the origin counts in the same unit.
[[nodiscard]] auto find_shared_units(std::span<quota_policy_view const> ours,
                                     std::span<service_limit_view const> limits,
                                     policy_field const& theirs) -> std::vector<bool> {
  std::vector<bool> shared;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    unit_of_origin unit(ours[i].unit);
    for (auto const& policy : theirs.policies) {
      auto const name =
          theirs.version == draft::draft_07 ? origin_name.text() : std::string_view(policy.name);
      if (name == ours[i].name.text()) {
        unit.add(policy, policy.partition_key == limits[i].partition_key);
      }
    }
    shared.push_back(unit.is_ours());
  }
  return shared;
}

/// What keeps to all policies of one name: the lowest quota, in the window that makes it the
/// slowest rate.
class strictest {
 public:
  explicit strictest(comment_parameters const& policy) { add(policy); }

  void add(comment_parameters const& policy) {
    auto const quota = *find_integer(policy, "q");
    if (auto const window = find_integer(policy, "w")) {
      timed_ = std::min(timed_.value_or(quota), quota);
      if (!slowest_ || is_slower({quota, *window}, *slowest_)) {
        slowest_ = {quota, *window};
      }
    } else {
      untimed_ = std::min(untimed_.value_or(quota), quota);
    }
  }

  void write_to(comment_parameters& policy) const {
    // A quota with an unknown window is not given one.
    bool const timed = timed_ && (!untimed_ || *timed_ <= *untimed_);
    auto const quota = timed ? *timed_ : *untimed_;
    set(policy, "q", quota);
    if (!timed) {
      policy.erase("w");
    } else if (slowest_->quota == 0) {
      set(policy, "w", slowest_->window);
    } else {
      auto const slowest = static_cast<wide>(slowest_->quota);
      auto const window = (times(quota, slowest_->window) + slowest - 1) / slowest;
      set(policy, "w", static_cast<std::int64_t>(window));
    }
  }

 private:
  struct rate {
    std::int64_t quota = 0;
    std::int64_t window = 0;
  };
  [[nodiscard]] static auto times(std::int64_t a, std::int64_t b) noexcept -> wide {
    return static_cast<wide>(a) * static_cast<wide>(b);
  }
  [[nodiscard]] static auto is_slower(rate const& a, rate const& b) noexcept -> bool {
    auto const left = times(a.quota, b.window);
    auto const right = times(b.quota, a.window);
    return left < right || (left == right && a.window > b.window);
  }

  std::optional<std::int64_t> timed_;    // the lowest quota with a window
  std::optional<std::int64_t> untimed_;  // and without
  std::optional<rate> slowest_;
};

void restrict_limit(comment_parameters& ours, comment_parameters const& theirs) {
  set(ours, "r", std::min(*find_integer(ours, "r"), *find_integer(theirs, "r")));
  if (auto const reset = find_integer(theirs, "t")) {
    set(ours, "t", std::max(*reset, find_integer(ours, "t").value_or(0)));
  }
  constexpr std::array<std::string_view, 2> settled{"r", "t"};
  add_others(ours, theirs, settled);
}

/// A policy of draft-07 as an item of draft-09, which has no window of 0.
[[nodiscard]] auto named(quota_policy const& older) -> field_item {
  field_item item{origin_name, {}};
  set(item.parameters, "q", older.quota);
  if (older.window.value_or(0) != 0) {
    set(item.parameters, "w", *older.window);
  }
  add_others(item.parameters, older.comments, detail::policy_parameters);
  return item;
}

[[nodiscard]] auto named(service_limit const& older) -> field_item {
  field_item item{origin_name, {}};
  set(item.parameters, "r", older.remaining ? *older.remaining : *older.limit);
  set(item.parameters, "t", *older.reset);
  add_others(item.parameters, older.comments, detail::limit_parameters);
  return item;
}

[[nodiscard]] auto named_policies(parsed_policies&& policies, parsed_limits const& limits)
    -> field_list {
  if (policies.model.policies.empty() && limits.model.version == draft::draft_07) {
    quota_policy policy;
    policy.quota = *limits.model.limits.front().limit;
    return {named(policy)};
  }
  if (policies.model.version == draft::draft_09) {
    return std::move(policies.list);
  }
  field_list list;
  for (auto const& policy : policies.model.policies) {
    list.emplace_back(named(policy));
  }
  return list;
}

[[nodiscard]] auto named_limits(parsed_limits&& limits) -> field_list {
  if (limits.model.version == draft::draft_09) {
    return std::move(limits.list);
  }
  return {named(limits.model.limits.front())};
}

/// Puts `theirs` behind `ours`, or calls `restrict` with the index of the one of ours that `match`,
/// which gets the index too, takes for the same.
template <class Match, class Restrict>
void put_together(field_list& ours, field_list theirs, Match match, Restrict restrict) {
  auto const own_size = static_cast<std::ptrdiff_t>(ours.size());
  for (auto& member : theirs) {
    auto const& item = item_of(member);
    auto const last = ours.begin() + own_size;
    std::size_t i = 0;
    auto const same =
        std::find_if(ours.begin(), last, [&](auto& own) { return match(i++, item_of(own), item); });
    if (same != last) {
      restrict(static_cast<std::size_t>(same - ours.begin()), item.parameters);
    } else {
      ours.push_back(std::move(member));
    }
  }
}

void put_policies_together(field_list& ours, field_list theirs) {
  std::vector<strictest> bounds;
  for (auto& member : ours) {
    bounds.emplace_back(item_of(member).parameters);
  }
  put_together(
      ours, std::move(theirs),
      [](std::size_t /*i*/, field_item const& own, field_item const& their) {
        return own.value == their.value && have_same_unit(own.parameters, their.parameters) &&
               have_same_key(own.parameters, their.parameters);
      },
      [&](std::size_t i, comment_parameters const& their) {
        constexpr std::array<std::string_view, 3> settled{"q", "qu", "w"};
        bounds[i].add(their);
        add_others(item_of(ours[i]).parameters, their, settled);
      });
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    bounds[i].write_to(item_of(ours[i]).parameters);
  }
}

void put_limits_together(field_list& ours, field_list theirs,
                         std::vector<bool> const& shared_units) {
  put_together(
      ours, std::move(theirs),
      [&](std::size_t i, field_item const& own, field_item const& their) {
        return own.value == their.value && shared_units[i] &&
               have_same_key(own.parameters, their.parameters);
      },
      [&](std::size_t i, comment_parameters const& their) {
        restrict_limit(item_of(ours[i]).parameters, their);
      });
}

// ── draft-07 ──

/// Adds a policy; of one quota there may be one only (section 3.5).
void add_older(field_list& list, std::map<std::int64_t, std::size_t>& by_quota, std::int64_t quota,
               comment_parameters parameters) {
  auto const [known, added] = by_quota.try_emplace(quota, list.size());
  if (added) {
    list.emplace_back(field_item{sf::integer::clamp(quota), std::move(parameters)});
    return;
  }
  auto& before = item_of(list[known->second]).parameters;
  set(before, "w", std::max(*find_integer(before, "w"), *find_integer(parameters, "w")));
  add_others(before, parameters, {});
}

[[nodiscard]] auto older_policies(field_list const& ours, parsed_policies const& theirs)
    -> field_list {
  field_list list;
  std::map<std::int64_t, std::size_t> by_quota;
  for (auto const& member : ours) {
    auto const& item = *std::get_if<0>(&member);
    add_older(list, by_quota, item.value.as_integer().value(), item.parameters);
  }
  for (std::size_t i = 0; i < theirs.list.size(); ++i) {
    auto const& policy = theirs.model.policies[i];
    auto const& item = *std::get_if<0>(&theirs.list[i]);
    if (theirs.model.version == draft::draft_07) {
      add_older(list, by_quota, policy.quota, item.parameters);
    } else if (policy.window) {
      comment_parameters parameters;
      set(parameters, "w", *policy.window);
      constexpr std::array<std::string_view, 1> settled{"q"};
      add_others(parameters, item.parameters, settled);
      add_older(list, by_quota, policy.quota, std::move(parameters));
    }
  }
  return list;
}

void append_older_limit(std::string& out, std::optional<expiring_limit> closest,
                        parsed_policies const& policies, parsed_limits const& limits) {
  auto is_closer = [&closest](expiring_limit const& other) {
    return !closest || other.remaining < closest->remaining ||
           (other.remaining == closest->remaining && other.reset > closest->reset);
  };
  if (limits.model.version == draft::draft_07) {
    auto const& theirs = limits.model.limits.front();
    if (is_closer({*theirs.limit, theirs.remaining.value_or(*theirs.limit), *theirs.reset})) {
      sf::serialize(limits.dictionary, out);
      return;
    }
  } else {
    std::map<std::string_view, quota_policy const*> by_name;
    for (auto const& policy : policies.model.policies) {
      by_name.try_emplace(policy.name, &policy);
    }
    for (auto const& theirs : limits.model.limits) {
      auto const found = by_name.find(theirs.name);
      auto const* policy = found == by_name.end() ? nullptr : found->second;
      // A reset that is not known is the window, as in our own.
      auto const reset = theirs.reset || policy == nullptr ? theirs.reset : policy->window;
      if (reset) {
        expiring_limit const other{policy == nullptr ? *theirs.remaining : policy->quota,
                                   *theirs.remaining, *reset};
        closest = is_closer(other) ? other : closest;
      }
    }
  }
  if (closest) {
    append_expiring_limit(out, *closest);
  }
}

}  // namespace

auto merge_fields(origin_fields const& origin, std::span<quota_policy_view const> policies,
                  std::span<service_limit_view const> limits, draft version,
                  std::string& policy_out, std::string& limit_out) -> dropped_fields {
  dropped_fields dropped;
  parsed_policies their_policies;
  parsed_limits their_limits;
  if (auto parsed = detail::parse_policies(origin.policy)) {
    their_policies = *std::move(parsed);
  } else {
    dropped.policy = parsed.error();
  }
  if (auto parsed = detail::parse_limits(origin.limit)) {
    their_limits = *std::move(parsed);
  } else {
    dropped.limit = parsed.error();
  }
  if (their_policies.model.policies.empty() && their_limits.model.limits.empty()) {
    append_policies(policy_out, policies, limits, version);
    append_limits(limit_out, policies, limits, version);
    return dropped;
  }

  auto our_policies =
      own_items([&](std::string& text) { append_policies(text, policies, limits, version); });
  if (!rules_of(version).has_names) {
    sf::serialize(older_policies(our_policies, their_policies), policy_out);
    append_older_limit(limit_out, find_expiring_limit(policies, limits), their_policies,
                       their_limits);
    return dropped;
  }
  auto our_limits =
      own_items([&](std::string& text) { append_limits(text, policies, limits, version); });
  auto const shared_units = find_shared_units(policies, limits, their_policies.model);
  put_policies_together(our_policies, named_policies(std::move(their_policies), their_limits));
  put_limits_together(our_limits, named_limits(std::move(their_limits)), shared_units);
  sf::serialize(our_policies, policy_out);
  sf::serialize(our_limits, limit_out);
  return dropped;
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
