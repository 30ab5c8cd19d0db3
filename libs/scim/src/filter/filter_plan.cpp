// SPDX-License-Identifier: Apache-2.0
#include "filter/filter_plan.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/scim/index_key.hpp>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <variant>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

using maybe_plan = std::optional<filter_plan>;

/// The first key of all values, which empty text has.
constexpr std::string_view first_key = "\x01";

/// The first key behind `key`.
auto next(std::string key) -> std::string {
  key.push_back('\0');
  return key;
}

/// The first key behind all that begin with `prefix`, which is the beginning of a value.
auto behind(std::string prefix) -> std::string {
  while (prefix.back() == '\xff') {
    prefix.pop_back();
  }
  ++prefix.back();
  return prefix;
}

auto is_text(attribute const& a) noexcept -> bool {
  using enum attribute_type;
  return a.type == string || a.type == reference || a.type == binary;
}

auto is_multi_valued(attribute_path const& path) noexcept -> bool {
  return path.parent->multi_valued || path.leaf()->multi_valued;
}

auto keys_plan(std::size_t index, std::vector<std::string> keys, plan_reach reach) -> filter_plan {
  filter_plan plan;
  plan.kind = plan_kind::keys;
  plan.reach = reach;
  plan.index = index;
  plan.keys = std::move(keys);
  return plan;
}

auto range_plan(std::size_t index, std::string from, std::string to) -> filter_plan {
  filter_plan plan;
  plan.kind = plan_kind::range;
  plan.index = index;
  plan.from = std::move(from);
  plan.to = std::move(to);
  return plan;
}

auto negated(filter_plan operand) -> filter_plan {
  filter_plan plan;
  plan.kind = plan_kind::negation;
  plan.operands.push_back(std::move(operand));
  return plan;
}

auto member_plan(plan_kind kind, std::string key = {}) -> filter_plan {
  filter_plan plan;
  plan.kind = kind;
  if (!key.empty()) {
    plan.reach = plan_reach::some;
    plan.exact = key.size() < sort_key_octets_max;
    plan.keys.push_back(std::move(key));
  }
  return plan;
}

/// Whether a resource can be asked for it without reading an index from end to end.
auto is_asked_each(filter_plan const& plan) noexcept -> bool {
  switch (plan.kind) {
    case plan_kind::negation: return is_asked_each(plan.operands.front());
    case plan_kind::has_member:
    case plan_kind::in_group:
    case plan_kind::any_member:
    case plan_kind::in_any_group: return true;
    default: return false;
  }
}

void ask_each(filter_plan& plan) noexcept {
  plan.asked_each = true;
  std::ranges::for_each(plan.operands, ask_each);
}

class planner {
 public:
  planner(model_type const& type, bool with_members) : type_(type), with_members_(with_members) {}

  /// `whole`: it is going to be negated, so nothing of it may be left to `matches` for speed.
  auto plan(filter const& f, bool whole) -> maybe_plan {
    switch (f.kind) {
      case filter_kind::all_of: return plan_all(f, whole);
      case filter_kind::any_of:
        return plan_any(f, [&](filter const& operand) { return plan(operand, whole); });
      case filter_kind::negation: return negate(plan(f.operands.front(), true));
      case filter_kind::value_path: return plan_value(f.operands.front());
      case filter_kind::present: return plan_present(f.path);
      case filter_kind::compare: break;
    }
    if (std::holds_alternative<std::nullptr_t>(f.value)) {
      return f.op == compare_op::ne ? plan_present(f.path) : plan_missing(f.path);
    }
    if (f.op == compare_op::ne) {
      // Of several values, or of none among several, any may be the one that is not equal.
      return is_multi_valued(f.path) ? std::nullopt
                                     : negate(plan_compare(f.path, compare_op::eq, f.value));
    }
    return plan_compare(f.path, f.op, f.value);
  }

 private:
  static auto negate(maybe_plan plan) -> maybe_plan {
    return plan && plan->exact ? maybe_plan(negated(*std::move(plan))) : std::nullopt;
  }

  template <class Plan>
  static auto plan_any(filter const& f, Plan plan) -> maybe_plan {
    filter_plan any;
    any.kind = plan_kind::any_of;
    any.reach = plan_reach::few;
    for (auto const& operand : f.operands) {
      auto one = plan(operand);
      if (!one) {
        return std::nullopt;
      }
      any.exact = any.exact && one->exact;
      any.reach = std::max(any.reach, one->reach);
      auto const same_index = std::ranges::find_if(any.operands, [&](filter_plan const& p) {
        return p.kind == plan_kind::keys && one->kind == plan_kind::keys && p.index == one->index;
      });
      if (same_index != any.operands.end()) {
        std::ranges::move(one->keys, std::back_inserter(same_index->keys));
        same_index->reach = std::max(same_index->reach, one->reach);
        same_index->exact = same_index->exact && one->exact;
      } else {
        any.operands.push_back(*std::move(one));
      }
    }
    return any.operands.size() == 1 ? std::move(any.operands.front()) : std::move(any);
  }

  auto plan_all(filter const& f, bool whole) -> maybe_plan {
    filter_plan all;
    all.kind = plan_kind::all_of;
    for (auto const& operand : f.operands) {
      auto one = plan(operand, whole);
      if (!one) {
        all.exact = false;
      } else if (!merge_range(all.operands, *one, false)) {
        all.operands.push_back(*std::move(one));
      }
    }
    if (!whole) {
      leave_to_few(all);
    }
    return finish_all(std::move(all));
  }

  /// Where an index gives a few resources, it is faster to look at them than to read all of another
  /// index.
  static void leave_to_few(filter_plan& all) {
    if (std::ranges::none_of(all.operands,
                             [](auto const& p) { return p.reach == plan_reach::few; })) {
      return;
    }
    auto const left = std::erase_if(all.operands, [](filter_plan const& p) {
      return p.reach == plan_reach::many && !is_asked_each(p);
    });
    all.exact = all.exact && left == 0;
    for (auto& operand : all.operands) {
      if (is_asked_each(operand)) {
        ask_each(operand);
      }
    }
  }

  static auto finish_all(filter_plan all) -> maybe_plan {
    if (all.operands.empty()) {
      return std::nullopt;
    }
    std::vector<filter_plan> ordered;
    for (auto const reach : {plan_reach::few, plan_reach::some, plan_reach::many}) {
      for (auto& operand : all.operands) {
        if (operand.reach == reach) {
          ordered.push_back(std::move(operand));
        }
      }
    }
    all.operands = std::move(ordered);
    all.reach = all.operands.front().reach;
    for (auto const& operand : all.operands) {
      all.exact = all.exact && operand.exact;
    }
    if (all.operands.size() == 1) {
      auto only = std::move(all.operands.front());
      only.exact = all.exact;
      return only;
    }
    return all;
  }

  /// Makes one range of two over one index, of which a resource, or in a value path a value, has
  /// one key only.
  auto merge_range(std::vector<filter_plan>& plans, filter_plan const& one, bool in_value_path)
      -> bool {
    if (one.kind != plan_kind::range) {
      return false;
    }
    auto const& path = type_.indexes[one.index].path;
    if (in_value_path ? path.leaf()->multi_valued : is_multi_valued(path)) {
      return false;
    }
    auto const there = std::ranges::find_if(plans, [&](filter_plan const& p) {
      return p.kind == plan_kind::range && p.index == one.index;
    });
    if (there == plans.end()) {
      return false;
    }
    there->from = std::max(there->from, one.from);
    there->to = std::min(there->to, one.to);
    there->exact = there->exact && one.exact;
    return true;
  }

  /// Which resources have a value for which `f`, from inside of a value path, holds.
  auto plan_value(filter const& f) -> maybe_plan {
    switch (f.kind) {
      case filter_kind::all_of: return plan_all_of_value(f);
      case filter_kind::any_of:
        return plan_any(f, [&](filter const& operand) { return plan_value(operand); });
      case filter_kind::present: return plan_present(f.path);
      case filter_kind::compare: break;
      default: return std::nullopt;
    }
    if (std::holds_alternative<std::nullptr_t>(f.value)) {
      return f.op == compare_op::ne ? plan_present(f.path) : std::nullopt;
    }
    return f.op == compare_op::ne ? std::nullopt : plan_compare(f.path, f.op, f.value);
  }

  auto plan_all_of_value(filter const& f) -> maybe_plan {
    filter_plan all;
    all.kind = plan_kind::all_of;
    for (auto const& operand : f.operands) {
      auto one = plan_value(operand);
      if (!one) {
        all.exact = false;
      } else if (!merge_range(all.operands, *one, true)) {
        all.operands.push_back(*std::move(one));
      }
    }
    // What two operands ask for may be true of two values.
    all.exact = all.exact && all.operands.size() == 1;
    leave_to_few(all);
    return finish_all(std::move(all));
  }

  /// `has_member` or `in_group`, when that is what the path means.
  [[nodiscard]] auto membership(attribute_path const& path) const noexcept
      -> std::optional<plan_kind> {
    if (!with_members_ || path.extension != nullptr || path.parent == nullptr ||
        (path.sub != nullptr && !equal_ignoring_case(path.sub->name, "value"))) {
      return std::nullopt;
    }
    if (type_.has_members && equal_ignoring_case(path.parent->name, "members")) {
      return plan_kind::has_member;
    }
    if (type_.has_groups && equal_ignoring_case(path.parent->name, "groups")) {
      return plan_kind::in_group;
    }
    return std::nullopt;
  }

  /// The index of exactly this attribute: a complex one that is present may have no `value`.
  [[nodiscard]] auto index_of(attribute_path const& path) const noexcept
      -> std::optional<std::size_t> {
    return path.parent == nullptr || path.leaf()->type == attribute_type::complex
               ? std::nullopt
               : type_.find_index(path);
  }

  auto plan_present(attribute_path const& path) -> maybe_plan {
    if (auto const kind = membership(path)) {
      return member_plan(*kind == plan_kind::has_member ? plan_kind::any_member
                                                        : plan_kind::in_any_group);
    }
    auto const index = index_of(path);
    if (!index) {
      return std::nullopt;
    }
    // Empty text is a value, but it is not present.
    std::string const first(first_key);
    return range_plan(*index, is_text(*path.leaf()) ? next(first) : first,
                      std::string(missing_key));
  }

  auto plan_missing(attribute_path const& path) -> maybe_plan {
    auto const present = plan_present(path);
    if (!present || present->kind != plan_kind::range) {
      return negate(present);
    }
    auto missing = keys_plan(present->index, {std::string(missing_key)}, plan_reach::many);
    if (!is_text(*path.leaf())) {
      return missing;
    }
    if (!is_multi_valued(path)) {
      missing.keys.emplace_back(first_key);
      return missing;
    }
    // Empty text beside other values: rare, so that what is present is seldom looked for.
    filter_plan empty;
    empty.kind = plan_kind::all_of;
    empty.operands.push_back(keys_plan(present->index, {std::string(first_key)}, plan_reach::many));
    empty.operands.push_back(negated(*present));
    filter_plan any;
    any.kind = plan_kind::any_of;
    any.operands.push_back(std::move(missing));
    any.operands.push_back(std::move(empty));
    return any;
  }

  auto plan_compare(attribute_path const& path, compare_op op, filter_value const& value)
      -> maybe_plan {
    auto key = index_key(*path.leaf(), value);
    if (auto const kind = membership(path)) {
      return op == compare_op::eq ? maybe_plan(member_plan(*kind, std::move(key))) : std::nullopt;
    }
    auto const index = index_of(path);
    if (!index) {
      return std::nullopt;
    }
    // A key of full length may have been cut: others have the same, before it and behind it.
    bool const cut = key.size() == sort_key_octets_max;
    auto const before_missing = [] { return std::string(missing_key); };
    auto const from_first = [] { return std::string(first_key); };
    filter_plan made;
    switch (op) {
      case compare_op::eq:
        made = keys_plan(*index, {std::move(key)},
                         path.leaf()->type == attribute_type::boolean ? plan_reach::many
                         : type_.indexes[*index].identifies           ? plan_reach::few
                                                                      : plan_reach::some);
        break;
      case compare_op::sw: {
        auto end = behind(key);
        made = range_plan(*index, std::move(key), std::move(end));
        break;
      }
      case compare_op::gt:
        made = range_plan(*index, cut ? std::move(key) : next(std::move(key)), before_missing());
        break;
      case compare_op::ge: made = range_plan(*index, std::move(key), before_missing()); break;
      case compare_op::lt:
        made = range_plan(*index, from_first(), cut ? next(std::move(key)) : std::move(key));
        break;
      case compare_op::le: made = range_plan(*index, from_first(), next(std::move(key))); break;
      default: return std::nullopt;
    }
    made.exact = !cut;
    return made;
  }

  model_type const& type_;
  bool with_members_;
};

}  // namespace

auto plan_filter(filter const& f, model_type const& type, bool with_members)
    -> std::optional<filter_plan> {
  return planner(type, with_members).plan(f, false);
}

}  // namespace tidegate::TIDEGATE_ABI::scim
