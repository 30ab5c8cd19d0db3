// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the lines of RateLimit-Policy and, behind a NUL, of RateLimit, as an origin sent
// them:
//
// - never a crash; an error names an item or a byte that is there;
// - what is read and passed on reads equal;
// - merged with policies of our own, both fields are valid and ours come first; an item of a shared
//   name, unit and partition key has no larger r and no smaller t than either side said, its policy
//   no larger quota and no faster rate; every other item of the origin is there unchanged, in its
//   order;
// - merging the result again with the same policies changes nothing, unless one name has several
//   units;
// - in draft-07 the limit that is shown has no more remaining than any of those it was chosen from.
#include "check.hpp"

#include <tidegate/ratelimit/merge.hpp>
#include <tidegate/ratelimit/read.hpp>
#include <tidegate/ratelimit/write.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tidegate::ratelimit;
using namespace std::chrono_literals;
using tidegate::fuzz::check;
using lines = std::vector<std::string_view>;
namespace sf = tidegate::sf;

__extension__ using wide = unsigned __int128;

auto split(std::string_view text) -> lines {
  lines out;
  for (;;) {
    auto const end = text.find('\n');
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return out;
    }
    text.remove_prefix(end + 1);
  }
}

auto size_of(lines const& text) -> std::size_t {
  std::size_t size = 0;
  for (auto line : text) {
    size += line.size() + 2;
  }
  return size;
}

/// What the origin said, in the terms of draft-09; nothing where it was malformed.
auto named(policy_field field, limit_field const& limits) -> std::vector<quota_policy> {
  if (field.version == draft::draft_07) {
    for (auto& policy : field.policies) {
      policy.name = "upstream";
    }
  }
  if (field.policies.empty() && limits.version == draft::draft_07) {
    quota_policy policy;
    policy.name = "upstream";
    policy.quota = *limits.limits.at(0).limit;
    field.policies.push_back(policy);
  }
  return field.policies;
}

auto named(limit_field field) -> std::vector<service_limit> {
  if (field.version == draft::draft_07) {
    auto& limit = field.limits.at(0);
    limit.name = "upstream";
    limit.remaining = limit.remaining ? limit.remaining : limit.limit;
  }
  return field.limits;
}

struct merged {
  policy_field policy;
  limit_field limit;
  std::string policy_text;
  std::string limit_text;
};

struct own {
  std::vector<quota_policy_view> policies;
  std::vector<service_limit_view> limits;
};

auto merge(lines const& policy, lines const& limit, own const& ours, draft version) -> merged {
  merged out;
  auto const dropped = merge_fields({policy, limit}, ours.policies, ours.limits, version,
                                    out.policy_text, out.limit_text);
  auto const policies = read_policies(policy);
  auto const limits = read_limits(limit);
  check(dropped.policy.has_value() == !policies.has_value());
  check(dropped.limit.has_value() == !limits.has_value());
  check(!dropped.policy || *dropped.policy == policies.error());
  check(!dropped.limit || *dropped.limit == limits.error());
  auto const policy_again =
      read_policies(out.policy_text.empty() ? lines() : lines{out.policy_text});
  auto const limit_again = read_limits(out.limit_text.empty() ? lines() : lines{out.limit_text});
  check(policy_again.has_value());
  check(limit_again.has_value());
  out.policy = *policy_again;
  out.limit = *limit_again;
  check(out.policy.policies.empty() || out.policy.version == version);
  check(out.limit.limits.empty() || out.limit.version == version);
  return out;
}

auto is_no_faster(quota_policy const& a, std::int64_t quota, std::int64_t window) -> bool {
  return static_cast<wide>(a.quota) * static_cast<wide>(window) <=
         static_cast<wide>(quota) * static_cast<wide>(*a.window);
}

auto is_same_unit(quota_policy_view const& own, quota_policy const& their) -> bool {
  auto const unit = quota_unit_named(own.unit.text());
  return unit == their.unit && (unit != quota_unit::other || own.unit.text() == their.unit_name);
}

/// Whether the origin means the unit of one of ours by its name and key.
auto is_of_our_unit(own const& ours, std::size_t i, std::vector<quota_policy> const& theirs)
    -> bool {
  std::vector<quota_policy> of_name;
  std::copy_if(theirs.begin(), theirs.end(), std::back_inserter(of_name),
               [&](auto const& their) { return their.name == ours.policies[i].name.text(); });
  std::vector<quota_policy> of_key;
  std::copy_if(of_name.begin(), of_name.end(), std::back_inserter(of_key), [&](auto const& their) {
    return their.partition_key == ours.limits[i].partition_key;
  });
  auto const& telling = of_key.empty() ? of_name : of_key;
  return std::all_of(telling.begin(), telling.end(),
                     [&](auto const& their) { return is_same_unit(ours.policies[i], their); }) &&
         (!telling.empty() || ours.policies[i].unit == "requests");
}

void check_policies(std::vector<quota_policy> const& out, std::vector<quota_policy> const& theirs,
                    bool renamed, own const& ours) {
  check(out.size() >= ours.policies.size());
  auto next = ours.policies.size();
  for (std::size_t i = 0; i < ours.policies.size(); ++i) {
    auto const& own = ours.policies[i];
    check(out[i].name == own.name.text());
    check(out[i].quota <= own.quota);
    check(!out[i].window || !own.window || is_no_faster(out[i], own.quota, own.window->count()));
  }
  for (auto const& their : theirs) {
    auto const same =
        std::find_if(ours.policies.begin(), ours.policies.end(), [&](auto const& own) {
          auto const i = static_cast<std::size_t>(&own - ours.policies.data());
          return own.name.text() == their.name && is_same_unit(own, their) &&
                 ours.limits[i].partition_key == their.partition_key;
        });
    if (same != ours.policies.end()) {
      auto const& together = out[static_cast<std::size_t>(same - ours.policies.begin())];
      check(together.quota <= their.quota);
      check(!together.window || !their.window ||
            is_no_faster(together, their.quota, *their.window));
    } else {
      check(next < out.size());
      check(out[next].name == their.name && out[next].quota == their.quota);
      check(renamed || out[next] == their);
      ++next;
    }
  }
  check(next == out.size());
}

void check_limits(std::vector<service_limit> const& out, std::vector<service_limit> const& theirs,
                  std::vector<quota_policy> const& their_policies, bool renamed, own const& ours) {
  check(out.size() >= ours.limits.size());
  auto next = ours.limits.size();
  for (std::size_t i = 0; i < ours.limits.size(); ++i) {
    check(out[i].name == ours.policies[i].name.text());
    check(out[i].remaining <= ours.limits[i].remaining);
    check(!ours.limits[i].reset || out[i].reset >= seconds_until(*ours.limits[i].reset));
  }
  for (auto const& their : theirs) {
    auto const same =
        std::find_if(ours.policies.begin(), ours.policies.end(), [&](auto const& own) {
          auto const i = static_cast<std::size_t>(&own - ours.policies.data());
          return own.name.text() == their.name &&
                 ours.limits[i].partition_key == their.partition_key &&
                 is_of_our_unit(ours, i, their_policies);
        });
    if (same != ours.policies.end()) {
      auto const& together = out[static_cast<std::size_t>(same - ours.policies.begin())];
      check(together.remaining <= their.remaining);
      check(!their.reset || together.reset >= their.reset);
    } else {
      check(next < out.size());
      check(out[next].name == their.name && out[next].remaining == their.remaining &&
            out[next].reset == their.reset);
      check(renamed || out[next] == their);
      ++next;
    }
  }
  check(next == out.size());
}

void check_older(merged const& out, policy_field const& policies, limit_field const& limits,
                 own const& ours) {
  auto const expiring = find_expiring_limit(ours.policies, ours.limits);
  if (expiring) {
    check(out.limit.limits.size() == 1);
  }
  if (out.limit.limits.empty()) {
    return;
  }
  auto const& shown = out.limit.limits[0];
  auto const remaining = shown.remaining ? shown.remaining : shown.limit;
  check(!expiring || remaining <= expiring->remaining);
  for (auto const& limit : limits.limits) {
    check(!limit.reset || remaining <= (limit.remaining ? limit.remaining : limit.limit));
  }
  for (auto const& policy : policies.policies) {
    auto const found = std::find_if(out.policy.policies.begin(), out.policy.policies.end(),
                                    [&](auto const& other) { return other.quota == policy.quota; });
    check(!policy.window ||
          (found != out.policy.policies.end() && *found->window >= *policy.window));
  }
}

/// Numbers for our own side that depend on the input and on nothing else.
class numbers {
 public:
  explicit numbers(std::string_view seed) {
    for (char c : seed) {
      state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
  }
  auto below(std::int64_t bound) -> std::int64_t {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<std::int64_t>((state_ >> 33) % static_cast<std::uint64_t>(bound));
  }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325;
};

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  auto const input = std::string_view(reinterpret_cast<char const*>(data), size);
  auto const nul = input.find('\0');
  auto const policy_lines = split(input.substr(0, nul));
  auto const limit_lines = nul == std::string_view::npos ? lines() : split(input.substr(nul + 1));

  auto const policies = read_policies(policy_lines);
  auto const limits = read_limits(limit_lines);
  if (policies) {
    check(merge(policy_lines, {}, {}, policies->version).policy == *policies);
  } else {
    check(policies.error().syntax.offset <= size_of(policy_lines));
    check(policies.error().item <= size);
    check(!to_string(policies.error()).empty());
  }
  if (limits) {
    check(merge({}, limit_lines, {}, limits->version).limit == *limits);
  } else {
    check(limits.error().syntax.offset <= size_of(limit_lines));
    check(limits.error().item <= size);
    check(!to_string(limits.error()).empty());
  }

  numbers random(input);
  std::array<std::int64_t, 3> const bounds{20, 5'000, sf::integer::max};
  auto number = [&] { return random.below(bounds[static_cast<std::size_t>(random.below(3))]); };
  own const ours{{{.name = "a", .quota = number(), .window = std::chrono::seconds(number() + 1)},
                  {.name = "upstream", .quota = number(), .window = std::chrono::seconds(60)},
                  {.name = "b", .quota = number()},
                  {.name = "c", .quota = number(), .unit = "content-bytes", .window = 10s}},
                 {{.remaining = number(), .reset = std::chrono::nanoseconds(number())},
                  {.remaining = number(), .reset = std::chrono::seconds(random.below(1000))},
                  {.remaining = number()},
                  {.remaining = number(), .reset = 5s, .partition_key = "key"}}};
  auto const their_policies = policies.value_or(policy_field());
  auto const their_limits = limits.value_or(limit_field());

  auto const out = merge(policy_lines, limit_lines, ours, draft::draft_09);
  auto const named_policies = named(their_policies, their_limits);
  check_policies(out.policy.policies, named_policies, their_policies.version == draft::draft_07,
                 ours);
  check_limits(out.limit.limits, named(their_limits), named_policies,
               their_limits.version == draft::draft_07, ours);
  bool has_one_unit = true;
  for (std::size_t i = 0; i < ours.policies.size(); ++i) {
    has_one_unit = has_one_unit && is_of_our_unit(ours, i, named_policies) &&
                   is_of_our_unit(ours, i, out.policy.policies);
  }
  auto const again = merge({out.policy_text}, {out.limit_text}, ours, draft::draft_09);
  check(again.policy == out.policy);
  check(!has_one_unit || again.limit == out.limit);

  check_older(merge(policy_lines, limit_lines, ours, draft::draft_07), their_policies, their_limits,
              ours);
  return 0;
}
