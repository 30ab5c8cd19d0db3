// SPDX-License-Identifier: Apache-2.0
#include "filter/filter_terms.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/scim/case_fold.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

/// A number in one form.
auto whole_if_it_fits(double number) -> filter_value {
  constexpr double bound = 9223372036854775808.0;  // 2^63
  if (number >= -bound && number < bound && std::trunc(number) == number) {
    return static_cast<std::int64_t>(number);
  }
  return number;
}

/// Whether a word is a number of JSON (RFC 8259, section 6): `-1`, `1.5e3`, but neither `0012` nor
/// `1.`.
auto is_json_number(std::string_view word) noexcept -> bool {
  auto const skip_digits = [&] {
    auto const digits = std::min(word.find_first_not_of("0123456789"), word.size());
    word.remove_prefix(digits);
    return digits != 0;
  };
  auto const skip = [&](std::string_view any) {
    bool const there = !word.empty() && any.find(word.front()) != std::string_view::npos;
    word.remove_prefix(there ? 1 : 0);
    return there;
  };
  skip("-");
  if (!skip("0") && !skip_digits()) {
    return false;
  }
  if (skip(".") && !skip_digits()) {
    return false;
  }
  if (skip("eE")) {
    skip("+-");
    if (!skip_digits()) {
      return false;
    }
  }
  return word.empty();
}

}  // namespace

auto is_allowed(compare_op op, attribute_type type) noexcept -> bool {
  using enum attribute_type;
  switch (op) {
    case compare_op::eq:
    case compare_op::ne: return true;
    case compare_op::co:
    case compare_op::sw:
    case compare_op::ew: return type == string || type == reference || type == binary;
    default: return type != boolean && type != binary;
  }
}

auto convert(json::value const& literal, attribute const& a) -> std::optional<filter_value> {
  auto const* const text = literal.if_string();
  switch (a.type) {
    case attribute_type::string:
    case attribute_type::reference:
    case attribute_type::binary:
      if (text != nullptr) {
        return a.case_exact ? *text : case_fold(*text);
      }
      return std::nullopt;
    case attribute_type::boolean:
      if (auto const* const boolean = literal.if_bool()) {
        return *boolean;
      }
      if (text != nullptr &&
          (equal_ignoring_case(*text, "true") || equal_ignoring_case(*text, "false"))) {
        return equal_ignoring_case(*text, "true");
      }
      return std::nullopt;
    case attribute_type::integer:
    case attribute_type::decimal:
      if (auto const* const integer = literal.if_integer()) {
        return *integer;
      }
      if (auto const* const decimal = literal.if_decimal()) {
        return whole_if_it_fits(*decimal);
      }
      return std::nullopt;
    case attribute_type::date_time:
      if (text != nullptr) {
        if (auto const moment = parse_date_time(*text)) {
          return *moment;
        }
      }
      return std::nullopt;
    case attribute_type::complex: break;
  }
  return std::nullopt;
}

auto is_bare_word(std::string_view word) noexcept -> bool {
  if (word.empty()) {
    return false;
  }
  auto const first = word.front();
  bool const begins_one = is_letter(first) || is_digit(first) || (first & 0x80) != 0 ||
                          std::string_view("_-+./@").find(first) != std::string_view::npos;
  constexpr std::array<std::string_view, 3> literals{"true", "false", "null"};
  constexpr std::array<std::string_view, 3> operators{"and", "or", "not"};
  return begins_one && !is_json_number(word) &&
         std::ranges::find(literals, word) == literals.end() &&
         std::ranges::none_of(operators, [&](auto o) { return equal_ignoring_case(o, word); });
}

}  // namespace tidegate::TIDEGATE_ABI::scim
