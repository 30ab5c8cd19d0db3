// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"
#include "words.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/ratelimit/read.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <tuple>

namespace tidegate::TIDEGATE_ABI::explain {

namespace {

using ratelimit::draft;
using ratelimit::field_error;
using ratelimit::field_kind;
using ratelimit::field_rule;
using ratelimit::quota_policy;
using ratelimit::quota_unit;
using ratelimit::service_limit;

/// From here on a number of seconds is rather a moment since 1970.
constexpr std::int64_t epoch_like = 1'000'000'000;
/// A rate that is so many times the one of the policy, over a window of that length, is worth a
/// word.
constexpr double rate_excess = 10;
/// So long a client waits without asking (draft-09, section 8.5.1).
constexpr std::int64_t client_patience = 600;
/// And so far a reset is worth a word even while something is left.
constexpr std::int64_t far_reset = std::int64_t{7} * 24 * 3600;
constexpr std::int64_t long_window = 600;

[[nodiscard]] auto rule_for(field_rule broken) -> rule const& {
  switch (broken) {
    case field_rule::syntax: return rule_of("ratelimit-syntax");
    case field_rule::no_items: return rule_of("ratelimit-policy-empty");
    case field_rule::inner_list: return rule_of("ratelimit-inner-list");
    case field_rule::name_type: return rule_of("ratelimit-name-type");
    case field_rule::quota_missing: return rule_of("ratelimit-quota-missing");
    case field_rule::quota_value: return rule_of("ratelimit-quota-value");
    case field_rule::quota_repeated: return rule_of("ratelimit-quota-repeated");
    case field_rule::unit_type: return rule_of("ratelimit-unit-type");
    case field_rule::window_missing: return rule_of("ratelimit-window-missing");
    case field_rule::window_value: return rule_of("ratelimit-window-value");
    case field_rule::partition_key_type: return rule_of("ratelimit-partition-key-type");
    case field_rule::limit_missing: return rule_of("ratelimit-limit-missing");
    case field_rule::limit_value: return rule_of("ratelimit-limit-value");
    case field_rule::remaining_missing: return rule_of("ratelimit-remaining-missing");
    case field_rule::remaining_value: return rule_of("ratelimit-remaining-value");
    case field_rule::reset_missing: return rule_of("ratelimit-reset-missing");
    case field_rule::reset_value: break;
  }
  return rule_of("ratelimit-reset-value");
}

void say_malformed(field_error const& error, report& out) {
  auto text = to_string(error);
  // The finding has the name and the section itself.
  auto const name = ratelimit::name_of(error.field);
  text.erase(0, name.size() + 2);
  text.erase(text.rfind(" ("));
  bool const is_syntax = error.rule == field_rule::syntax;
  auto const of = is_syntax                          ? specification::structured_fields
                  : error.version == draft::draft_07 ? specification::ratelimit_07
                                                     : specification::ratelimit_09;
  out.break_rule_at(rule_for(error.rule), of, section_of(error), name,
                    text + "; clients have to ignore the whole field");
}

[[nodiscard]] auto unit_words(quota_policy const* policy, std::int64_t number) -> std::string {
  if (policy == nullptr) {
    return std::to_string(number) + (number == 1 ? " unit" : " units");
  }
  switch (policy->unit) {
    case quota_unit::content_bytes: return octets_words(number) + " of content";
    case quota_unit::concurrent_requests:
      return std::to_string(number) + (number == 1 ? " request at a time" : " requests at a time");
    case quota_unit::other: return std::to_string(number) + " " + quoted(policy->unit_name);
    case quota_unit::requests: break;
  }
  return std::to_string(number) + (number == 1 ? " request" : " requests");
}

[[nodiscard]] auto key_words(std::optional<std::string> const& key) -> std::string {
  if (!key) {
    return {};
  }
  bool const is_text =
      !key->empty() && std::ranges::all_of(*key, [](char c) { return c >= ' ' && c <= '~'; });
  return " for the partition key " +
         (is_text ? quoted(*key) : "of " + std::to_string(key->size()) + " octets");
}

[[nodiscard]] auto policy_words(quota_policy const& policy) -> std::string {
  auto text = unit_words(&policy, policy.quota);
  if (policy.window) {
    auto const name = window_name(*policy.window);
    text += name.empty() ? " in " + duration_words(*policy.window)
                         : (name == "hour" ? " an " : " a ") + std::string(name);
  }
  return text + key_words(policy.partition_key);
}

/// "38 of 100 requests left in this minute, resets in 12 s; pace yourself to 3.1 requests a second
/// until then".
[[nodiscard]] auto limit_words(service_limit const& limit, quota_policy const* policy)
    -> std::string {
  auto const quota = policy != nullptr ? std::optional(policy->quota) : limit.limit;
  auto const unit = policy != nullptr ? policy->unit : quota_unit::requests;
  bool const has_left = limit.remaining.value_or(0) > 0;
  std::string text;
  if (!limit.remaining) {
    text = "of " + unit_words(policy, quota.value_or(0)) + " it is not said how many are left";
  } else {
    text = has_left
               ? (quota ? std::to_string(*limit.remaining) : unit_words(policy, *limit.remaining))
               : "nothing";
    if (has_left && quota && unit == quota_unit::content_bytes) {
      text = octets_words(*limit.remaining);
    }
    text += (quota ? " of " + unit_words(policy, *quota) : "") + " left";
  }
  auto const window = policy != nullptr ? policy->window : std::nullopt;
  if (window) {
    auto const name = window_name(*window);
    text += name.empty() ? " in this window of " + duration_words(*window)
                         : " in this " + std::string(name);
  }
  text += key_words(limit.partition_key);
  if (!limit.reset) {
    return text + (unit == quota_unit::concurrent_requests ? "" : ", no word on when it resets");
  }
  text += ", resets in " + duration_words(*limit.reset);
  if (limit.remaining && !has_left) {
    text += "; wait until then";
  } else if (has_left && *limit.reset > 0 &&
             (unit == quota_unit::requests || unit == quota_unit::content_bytes)) {
    bool const are_octets = unit == quota_unit::content_bytes;
    // What is left over the time to the reset can be far above what the policy means (section 8.5).
    std::int64_t const length =
        policy != nullptr && policy->window.has_value() ? *policy->window : 0;
    auto const all = quota.value_or(0);
    bool const is_above = length > 0 && all > 0 &&
                          static_cast<double>(*limit.remaining) * static_cast<double>(length) >
                              2 * static_cast<double>(all) * static_cast<double>(*limit.reset);
    text += "; pace yourself to " +
            (is_above ? pace_words(all, length, are_octets) + ", as the policy has it"
                      : pace_words(*limit.remaining, *limit.reset, are_octets) + " until then");
  } else if (has_left && *limit.reset > 0 && unit == quota_unit::other) {
    text += "; what a request costs of it shows in how it shrinks";
  }
  if (*limit.reset > (has_left ? far_reset : client_patience)) {
    text += "; that is longer than ten minutes: a client asks in between whether it still holds";
  }
  return text;
}

/// Finds the policy that a limit is about: in draft-09 by its name and partition key, in draft-07
/// by its quota. Strangers decide how many there are of both, so that no limit goes through all
/// policies. Borrows them.
class policy_index {
 public:
  policy_index(std::span<quota_policy const> policies, draft version)
      : policies_(policies), version_(version) {
    for (auto const& policy : policies_) {
      named_.try_emplace(policy.name, &policy);
      keyed_.try_emplace({policy.name, policy.partition_key}, &policy);
    }
  }

  /// The first one; nothing when there is none.
  [[nodiscard]] auto find(service_limit const& limit) const -> quota_policy const* {
    if (version_ == draft::draft_07) {
      // Its RateLimit has one limit.
      auto const same = std::ranges::find(policies_, limit.limit, &quota_policy::quota);
      return same == policies_.end() ? nullptr : &*same;
    }
    if (!limit.partition_key) {
      auto const named = named_.find(limit.name);
      return named == named_.end() ? nullptr : named->second;
    }
    auto const keyed = keyed_.find({limit.name, limit.partition_key});
    auto const keyless = keyed_.find({limit.name, std::nullopt});
    if (keyed == keyed_.end() || keyless == keyed_.end()) {
      auto const found = keyed == keyed_.end() ? keyless : keyed;
      return found == keyed_.end() ? nullptr : found->second;
    }
    return std::min(keyed->second, keyless->second);
  }

 private:
  std::span<quota_policy const> policies_;
  draft version_;
  std::map<std::string_view, quota_policy const*> named_;
  std::map<std::pair<std::string_view, std::optional<std::string_view>>, quota_policy const*>
      keyed_;
};

[[nodiscard]] auto title_of(std::string const& name, draft version) -> std::string {
  return version == draft::draft_07 ? "" : quoted(name) + ": ";
}

/// Parameters of one's own are to have a prefix. Those of the other field need none, and in
/// draft-07 neither do those three that its own examples have without.
void judge_comments(ratelimit::comment_parameters const& comments, std::string const& title,
                    std::string_view field, draft version, report& out) {
  constexpr std::array<std::string_view, 6> known = {"q", "w", "qu", "r", "t", "pk"};
  constexpr std::array<std::string_view, 3> of_examples = {"burst", "comment", "policy"};
  for (auto const& [key, value] : comments) {
    std::string_view const name = key.text();
    bool const is_shown =
        version == draft::draft_07 && std::ranges::find(of_examples, name) != of_examples.end();
    if (!name.contains('-') && !is_shown && std::ranges::find(known, name) == known.end()) {
      out.break_rule(
          rule_of("ratelimit-parameter-prefix"), field,
          title + "the parameter " + std::string(name) +
              " is none of the draft and has no prefix of a vendor; clients take it for a comment",
          version);
    }
  }
}

/// Items of one name and partition key say it twice.
template <class Items>
void judge_repeats(Items const& items, std::string_view field, report& out) {
  std::set<std::tuple<std::string_view, bool, std::string_view>> seen;
  for (auto const& item : items) {
    auto const key =
        item.partition_key ? std::string_view(*item.partition_key) : std::string_view();
    if (!seen.emplace(item.name, item.partition_key.has_value(), key).second) {
      out.break_rule(
          rule_of("ratelimit-name-repeated"), field,
          quoted(item.name) + " is there more than once; clients cannot know which one counts");
    }
  }
}

void judge_policies(ratelimit::policy_field const& field, report& out) {
  auto const name = ratelimit::name_of(field_kind::policy);
  for (auto const& policy : field.policies) {
    auto const title = title_of(policy.name, field.version);
    if (policy.unit == quota_unit::other) {
      out.break_rule(rule_of("ratelimit-unit-unknown"), name,
                     title + "the unit " + quoted(policy.unit_name) +
                         " is none of requests, content-bytes and concurrent-requests");
    } else if (policy.unit_name == "request") {
      out.break_rule(rule_of("ratelimit-unit-spelling"), name,
                     title +
                         "the draft defines the unit \"requests\" and registers it as \"request\"; "
                         "more clients know the first");
    }
    judge_comments(policy.comments, title, name, field.version, out);
  }
  if (field.version == draft::draft_09) {
    judge_repeats(field.policies, name, out);
  }
}

void judge_reset(service_limit const& limit, quota_policy const* policy, std::string const& title,
                 draft version, report& out) {
  if (!limit.reset) {
    return;
  }
  std::int64_t const window = policy != nullptr ? policy->window.value_or(0) : 0;
  auto const seconds = *limit.reset;
  std::string why;
  if (seconds >= epoch_like) {
    why = " looks like a Unix time; it has to be seconds from now";
  } else if (window > 0 && seconds / 2 > window) {
    why = " is far behind the window of " + duration_words(window) +
          (seconds / 1000 <= window ? "; are these milliseconds?" : "");
  }
  if (!why.empty()) {
    out.break_rule(rule_of("ratelimit-reset-implausible"), ratelimit::name_of(field_kind::limit),
                   title + "the reset of " + std::to_string(seconds) + why, version);
    return;
  }
  if (window < long_window || seconds == 0 || policy->unit != quota_unit::requests) {
    return;
  }
  auto const remaining = limit.remaining.value_or(0);
  auto const invited = static_cast<double>(remaining) / static_cast<double>(seconds);
  auto const average = static_cast<double>(policy->quota) / static_cast<double>(window);
  if (invited > rate_excess * average) {
    out.break_rule(
        rule_of("ratelimit-rate-uncapped"), ratelimit::name_of(field_kind::limit),
        title + "what is left invites " + pace_words(remaining, seconds, false) +
            ", far above the average of the policy; a lower r or a later t would spread it",
        version);
  }
}

/// Policies that an item of RateLimit is about.
using told_policies = std::set<quota_policy const*>;

[[nodiscard]] auto judge_limits(ratelimit::limit_field const& field,
                                std::optional<ratelimit::policy_field> const& policies, report& out)
    -> told_policies {
  auto const name = ratelimit::name_of(field_kind::limit);
  bool const is_same = policies && policies->version == field.version;
  auto const known =
      is_same ? std::span<quota_policy const>(policies->policies) : std::span<quota_policy const>();
  policy_index const index(known, field.version);
  told_policies told;
  for (auto const& limit : field.limits) {
    auto const title = title_of(limit.name, field.version);
    auto const* const policy = index.find(limit);
    told.insert(policy);
    out.say(name, title + limit_words(limit, policy));
    if (policy == nullptr && !known.empty()) {
      out.break_rule(rule_of("ratelimit-policy-unknown"), name,
                     title + (field.version == draft::draft_07
                                  ? "the limit of " + std::to_string(*limit.limit) +
                                        " is the quota of no policy in RateLimit-Policy"
                                  : "there is no such policy in RateLimit-Policy"),
                     field.version);
    }
    auto const quota = policy != nullptr ? std::optional(policy->quota) : limit.limit;
    if (quota && limit.remaining && *limit.remaining > *quota) {
      out.break_rule(rule_of("ratelimit-remaining-above-quota"), name,
                     title + "more is left than the quota of " + std::to_string(*quota),
                     field.version);
    }
    judge_reset(limit, policy, title, field.version, out);
    judge_comments(limit.comments, title, name, field.version, out);
  }
  if (field.version == draft::draft_09) {
    judge_repeats(field.limits, name, out);
  }
  return told;
}

/// Policies that no item of RateLimit is about.
void say_policies(ratelimit::policy_field const& field, told_policies const& told, report& out) {
  for (auto const& policy : field.policies) {
    if (!told.contains(&policy)) {
      out.say(ratelimit::name_of(field_kind::policy), title_of(policy.name, field.version) +
                                                          policy_words(policy) +
                                                          "; it is not said how much is left");
    }
  }
}

void judge_message(message_view const& message, told_limits const& told, report& out) {
  auto const name = ratelimit::name_of(field_kind::limit);
  auto const version = told.limits ? told.limits->version : told.policies->version;
  if (told.limits && told.policies && told.limits->version != told.policies->version) {
    out.break_rule(rule_of("ratelimit-drafts-mixed"), name,
                   "RateLimit follows " + std::string(ratelimit::name_of(told.limits->version)) +
                       " and RateLimit-Policy " +
                       std::string(ratelimit::name_of(told.policies->version)) +
                       "; clients that know one of them cannot put them together");
  }
  bool const is_exhausted =
      told.limits && std::ranges::any_of(told.limits->limits, [](service_limit const& limit) {
        return limit.remaining == 0;
      });
  if (message.status && *message.status / 100 == 3 && *message.status != 304 && is_exhausted) {
    out.break_rule(rule_of("ratelimit-redirect-exhausted"), name,
                   "a redirect says that nothing is left; clients will wait before they follow it",
                   version);
  }
  auto const ages = lines_of(message, "age");
  auto const age = ages.empty() ? std::string_view() : trimmed(ages.front());
  if (age.find_first_not_of('0') != std::string_view::npos) {
    out.break_rule(rule_of("ratelimit-from-cache"), name,
                   "the response comes from a cache (Age: " + std::string(age.substr(0, 20)) +
                       "), so that clients have to ignore what it says about quotas",
                   version);
  }
}

}  // namespace

auto explain_ratelimit(message_view const& message, report& out) -> told_limits {
  told_limits told;
  auto limit_lines = lines_of(message, ratelimit::name_of(field_kind::limit));
  auto policy_lines = lines_of(message, ratelimit::name_of(field_kind::policy));
  if (limit_lines.empty() && policy_lines.empty()) {  // of a server that tries them out
    limit_lines = lines_of(message, "Beta-RateLimit");
    policy_lines = lines_of(message, "Beta-RateLimit-Policy");
  }
  told.is_there = !limit_lines.empty();
  if (!limit_lines.empty()) {
    if (auto limits = ratelimit::read_limits(limit_lines)) {
      told.limits = *std::move(limits);
    } else {
      say_malformed(limits.error(), out);
    }
  }
  if (!policy_lines.empty()) {
    if (auto policies = ratelimit::read_policies(policy_lines)) {
      told.policies = *std::move(policies);
    } else {
      say_malformed(policies.error(), out);
    }
  }
  told_policies told_about;
  if (told.limits) {
    if (told.limits->limits.empty()) {
      out.say(ratelimit::name_of(field_kind::limit), "an empty list, which says nothing");
    }
    told_about = judge_limits(*told.limits, told.policies, out);
  }
  if (told.policies) {
    say_policies(*told.policies, told_about, out);
    judge_policies(*told.policies, out);
  }
  if (told.limits || told.policies) {
    judge_message(message, told, out);
  }
  return told;
}

}  // namespace tidegate::TIDEGATE_ABI::explain
