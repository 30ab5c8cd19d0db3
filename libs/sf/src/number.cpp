// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf/number.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <system_error>

namespace tidegate::TIDEGATE_ABI::sf {

namespace {

/// A decimal number as digits and the position of its point: `0.DIGITS` times ten to the
/// `exponent`.
struct parsed_number {
  bool negative = false;
  std::string digits;  // without leading and trailing zeros; empty for zero
  long exponent = 0;
};

[[nodiscard]] auto not_a_number(std::size_t offset) {
  return failure(make_error{make_fault::not_a_number, offset});
}

/// `["-"] 1*DIGIT ["." 1*DIGIT] [("e" / "E") ["+" / "-"] 1*DIGIT]`
[[nodiscard]] auto parse_number(std::string_view text) -> result<parsed_number, make_error> {
  // Beyond that the digits cannot make up for it: the number is as good as zero, or too large.
  auto const exponent_max = static_cast<long>(text.size()) + 1000;
  parsed_number number;
  std::size_t i = 0;
  auto at_digit = [&] { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  auto take_digits = [&](bool whole) {
    auto const first = i;
    for (; at_digit(); ++i) {
      if (number.digits.empty() && text[i] == '0') {
        number.exponent -= whole ? 0 : 1;
        continue;
      }
      number.digits.push_back(text[i]);
      number.exponent += whole ? 1 : 0;
    }
    return i != first;
  };
  if (i < text.size() && text[i] == '-') {
    number.negative = true;
    ++i;
  }
  if (!take_digits(true)) {
    return not_a_number(i);
  }
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (!take_digits(false)) {
      return not_a_number(i);
    }
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    bool const down = i < text.size() && text[i] == '-';
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) {
      ++i;
    }
    if (!at_digit()) {
      return not_a_number(i);
    }
    long exponent = 0;
    for (; at_digit(); ++i) {
      exponent = exponent >= exponent_max ? exponent : exponent * 10 + (text[i] - '0');
    }
    number.exponent += down ? -exponent : exponent;
  }
  if (i != text.size()) {
    return not_a_number(i);
  }
  number.digits.erase(number.digits.find_last_not_of('0') + 1);
  if (number.digits.empty()) {
    number.exponent = 0;
  }
  return number;
}

}  // namespace

auto decimal::from_text(std::string_view text) -> result<decimal, make_error> {
  TIDEGATE_TRY(auto number, parse_number(text));
  constexpr long whole_digits_max = 12;
  constexpr long places = 3;
  if (number.exponent > whole_digits_max) {
    return failure(make_error{make_fault::out_of_range, 0});
  }
  // Take the digits down to the third place, then look at what is left of them.
  auto const kept = number.exponent + places;
  std::int64_t thousandths = 0;
  for (long i = 0; i < kept; ++i) {
    auto const index = static_cast<std::size_t>(i);
    thousandths =
        thousandths * 10 + (index < number.digits.size() ? number.digits[index] - '0' : 0);
  }
  auto const rest =
      kept < 0 ? std::string_view()
               : std::string_view(number.digits)
                     .substr(std::min(static_cast<std::size_t>(kept), number.digits.size()));
  bool const more_than_half =
      !rest.empty() && (rest[0] > '5' || (rest[0] == '5' && rest.size() > 1));
  bool const half = rest == "5";
  if (more_than_half || (half && thousandths % 2 != 0)) {
    ++thousandths;
  }
  return from_thousandths(number.negative ? -thousandths : thousandths);
}

auto floating::make(double value) -> result<floating, make_error> {
  if (!std::isfinite(value)) {
    return failure(make_error{make_fault::not_a_number, 0});
  }
  if (value == 0) {
    return floating();
  }
  if (std::fabs(value) >= 1e14) {
    return failure(make_error{make_fault::out_of_range, 0});
  }
  // The shortest text that reads back equal; a value this close to zero may need hundreds of
  // digits.
  std::array<char, 32> buffer{};
  auto const [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(),
                                          std::fabs(value), std::chars_format::fixed);
  auto const text = std::string_view(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  auto const digits = text.size() - (text.find('.') == std::string_view::npos ? 0 : 1);
  if (error != std::errc() || digits > 15) {
    return failure(make_error{make_fault::too_precise, 0});
  }
  return floating(unchecked{}, value);
}

auto floating::from_text(std::string_view text) -> result<floating, make_error> {
  TIDEGATE_TRY(auto number, parse_number(text));
  if (number.exponent > 14) {
    return failure(make_error{make_fault::out_of_range, 0});
  }
  // At most fifteen digits in all, counting one before the point of a number below one.
  auto const whole_digits = number.exponent > 0 ? number.exponent : 1;
  auto const fraction_digits = static_cast<long>(number.digits.size()) - number.exponent;
  if (fraction_digits > 0 && whole_digits + fraction_digits > 15) {
    return failure(make_error{make_fault::too_precise, 0});
  }
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return make(value);
}

}  // namespace tidegate::TIDEGATE_ABI::sf
