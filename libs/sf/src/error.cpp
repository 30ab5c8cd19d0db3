// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf/error.hpp>

namespace tidegate::TIDEGATE_ABI::sf {

auto message(parse_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case parse_fault::unexpected_end: return "the value ends too early";
    case parse_fault::unexpected_character: return "unexpected character";
    case parse_fault::trailing_comma: return "a member must follow the comma";
    case parse_fault::key_expected: return "expected a key";
    case parse_fault::value_expected: return "expected \"=\" and a value after the key";
    case parse_fault::unknown_item_type: return "no item begins with this character";
    case parse_fault::digit_expected: return "expected a digit";
    case parse_fault::too_many_digits: return "too many digits";
    case parse_fault::date_with_fraction: return "a Date must be an Integer";
    case parse_fault::invalid_boolean: return "a Boolean must be ?0 or ?1";
    case parse_fault::invalid_escape: return "only a quote or a backslash can be escaped";
    case parse_fault::invalid_character: return "this character cannot stand in a string";
    case parse_fault::invalid_base64: return "invalid base64";
    case parse_fault::invalid_hex: return "expected two lower-case hexadecimal digits after \"%\"";
    case parse_fault::invalid_utf8: return "invalid UTF-8 in a Display String";
    case parse_fault::repeated_key: return "the key was there before";
  }
  return "unknown fault";
}

auto to_string(parse_error const& error) -> std::string {
  return std::string(message(error.fault)) + " at offset " + std::to_string(error.offset);
}

auto message(make_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case make_fault::empty: return "must not be empty";
    case make_fault::invalid_character: return "holds a character that is not allowed";
    case make_fault::invalid_utf8: return "is not valid UTF-8";
    case make_fault::out_of_range: return "is out of range";
    case make_fault::not_a_number: return "is not a number";
    case make_fault::too_precise: return "needs more than 15 digits";
  }
  return "unknown fault";
}

}  // namespace tidegate::TIDEGATE_ABI::sf
