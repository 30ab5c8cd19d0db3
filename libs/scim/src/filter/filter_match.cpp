// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/filter.hpp>

#include <tidegate/scim/case_fold.hpp>
#include <tidegate/scim/resource.hpp>

#include <algorithm>
#include <compare>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

/// Exact, although a double cannot hold every integer.
auto compare_numbers(std::int64_t a, double b) noexcept -> std::partial_ordering {
  constexpr double bound = 9223372036854775808.0;  // 2^63
  if (b >= bound) {
    return std::partial_ordering::less;
  }
  if (b < -bound) {
    return std::partial_ordering::greater;
  }
  auto const whole = static_cast<std::int64_t>(b);
  if (a != whole) {
    return a <=> whole;
  }
  return 0.0 <=> b - static_cast<double>(whole);
}

auto reversed(std::partial_ordering order) noexcept -> std::partial_ordering {
  return order == std::partial_ordering::less      ? std::partial_ordering::greater
         : order == std::partial_ordering::greater ? std::partial_ordering::less
                                                   : order;
}

/// How a value of a resource compares with `wanted`; unordered when it is of another type.
auto compare_values(json::value const& value, filter_value const& wanted) -> std::partial_ordering {
  if (auto const* const integer = std::get_if<std::int64_t>(&wanted)) {
    if (auto const* const mine = value.if_integer()) {
      return *mine <=> *integer;
    }
    if (auto const* const mine = value.if_decimal()) {
      return reversed(compare_numbers(*integer, *mine));
    }
  } else if (auto const* const decimal = std::get_if<double>(&wanted)) {
    if (auto const* const mine = value.if_integer()) {
      return compare_numbers(*mine, *decimal);
    }
    if (auto const* const mine = value.if_decimal()) {
      return *mine <=> *decimal;
    }
  } else if (auto const* const boolean = std::get_if<bool>(&wanted)) {
    if (auto const* const mine = value.if_bool()) {
      return *mine <=> *boolean;
    }
  } else if (auto const* const moment = std::get_if<date_time>(&wanted)) {
    if (auto const* const text = value.if_string()) {
      if (auto const mine = parse_date_time(*text)) {
        return *mine <=> *moment;
      }
    }
  }
  return std::partial_ordering::unordered;
}

auto has_order(compare_op op, std::partial_ordering order) noexcept -> bool {
  switch (op) {
    case compare_op::eq: return order == 0;
    case compare_op::ne: return order != 0;
    case compare_op::gt: return order > 0;
    case compare_op::ge: return order >= 0;
    case compare_op::lt: return order < 0;
    case compare_op::le: return order <= 0;
    default: return false;
  }
}

/// `text` is folded when `wanted` is.
auto matches_text(std::string_view text, compare_op op, std::string_view wanted) noexcept -> bool {
  switch (op) {
    case compare_op::co: return text.find(wanted) != std::string_view::npos;
    case compare_op::sw: return text.starts_with(wanted);
    case compare_op::ew: return text.ends_with(wanted);
    default: return has_order(op, text <=> wanted);
  }
}

auto matches_one(json::value const& value, filter const& f) -> bool {
  if (auto const* const wanted = std::get_if<std::string>(&f.value)) {
    auto const* const text = value.if_string();
    if (text == nullptr) {
      return f.op == compare_op::ne;
    }
    return f.path.leaf()->case_exact ? matches_text(*text, f.op, *wanted)
                                     : matches_text(case_fold(*text), f.op, *wanted);
  }
  return has_order(f.op, compare_values(value, f.value));
}

/// Whether `test` holds for a value; each value of an array counts for itself.
template <class Test>
auto any_of_values(json::value const& value, Test test) -> bool {
  auto const* const array = value.if_array();
  return array == nullptr ? test(value) : std::ranges::any_of(*array, test);
}

auto find_or_null(json::value const& object, std::string_view name) -> json::value const& {
  static json::value const null;
  auto const* const found = object.find(name);
  return found == nullptr ? null : *found;
}

/// Whether `test` holds for a value of the attribute. What is not there, or is an empty array, is
/// null.
template <class Test>
auto any_value_of(json::value const& object, attribute const& a, attribute const* sub, Test test)
    -> bool {
  static json::value const null;
  auto const& value = find_or_null(object, a.name);
  if (auto const* const array = value.if_array(); array != nullptr && array->empty()) {
    return test(null);
  }
  return any_of_values(value, [&](json::value const& one) {
    return sub == nullptr ? test(one) : any_value_of(one, *sub, nullptr, test);
  });
}

/// The same for the path of `f`, in a resource or in one value of a value path.
template <class Test>
auto any_value(filter const& f, json::value const& context, bool in_value_path, Test test) -> bool {
  auto const& path = f.path;
  if (in_value_path) {
    return any_value_of(context, *path.sub, nullptr, test);
  }
  auto const& owner =
      path.extension == nullptr ? context : find_or_null(context, path.extension->id);
  return path.parent == nullptr ? test(owner) : any_value_of(owner, *path.parent, path.sub, test);
}

auto matches_in(filter const& f, json::value const& context, bool in_value_path) -> bool {
  auto const operand_matches = [&](filter const& operand) {
    return matches_in(operand, context, in_value_path);
  };
  auto const present = [&] { return any_value(f, context, in_value_path, is_present); };
  switch (f.kind) {
    case filter_kind::all_of: return std::ranges::all_of(f.operands, operand_matches);
    case filter_kind::any_of: return std::ranges::any_of(f.operands, operand_matches);
    case filter_kind::negation: return !operand_matches(f.operands.front());
    case filter_kind::present: return present();
    case filter_kind::value_path:
      return any_value(f, context, false, [&](json::value const& value) {
        return value.if_object() != nullptr && matches_in(f.operands.front(), value, true);
      });
    case filter_kind::compare: break;
  }
  if (std::holds_alternative<std::nullptr_t>(f.value)) {
    return present() == (f.op == compare_op::ne);
  }
  return any_value(f, context, in_value_path,
                   [&](json::value const& value) { return matches_one(value, f); });
}

}  // namespace

auto matches(filter const& f, json::value const& resource) -> bool {
  return matches_in(f, resource, false);
}

auto matches_value(filter const& f, json::value const& value) -> bool {
  return matches_in(f, value, true);
}

}  // namespace tidegate::TIDEGATE_ABI::scim
