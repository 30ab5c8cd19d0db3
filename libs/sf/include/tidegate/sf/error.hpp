// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::sf {

/// Why a field value could not be parsed.
enum class parse_fault : std::uint8_t {
  unexpected_end,        ///< the value ends where something must follow
  unexpected_character,  ///< something else must stand here, or nothing
  trailing_comma,        ///< a comma with no member after it
  key_expected,          ///< a key cannot begin like this
  value_expected,        ///< draft11: a dictionary member without "="
  unknown_item_type,     ///< no bare item begins like this
  digit_expected,        ///< a number without a digit where one must be
  too_many_digits,       ///< more digits than the type has room for
  date_with_fraction,    ///< a Date is whole seconds
  invalid_boolean,       ///< neither ?0 nor ?1
  invalid_escape,        ///< a backslash before something that cannot be escaped
  invalid_character,     ///< a character that the String or Display String cannot hold
  invalid_base64,        ///< a character, padding or length that base64 cannot have
  invalid_hex,           ///< "%" without two lower-case hexadecimal digits
  invalid_utf8,          ///< a Display String that is not UTF-8
  repeated_key,          ///< draft11: a key that was there before
};

/// What was wrong with a field value and at which byte of the combined value.
///
/// `offset` is the first byte with which no valid value could go on; it is the length of the value
/// when that ends too early. For `invalid_utf8` it is where the wrong octet begins, at its "%", and
/// for `repeated_key` where the key begins. The caller ignores the whole field.
struct parse_error {
  parse_fault fault{};
  std::size_t offset{};
  auto operator==(parse_error const&) const -> bool = default;
};

/// One sentence for people, without the offset.
[[nodiscard]] auto message(parse_fault fault) noexcept -> std::string_view;
/// The sentence followed by ` at offset N`.
[[nodiscard]] auto to_string(parse_error const& error) -> std::string;

/// Why a value could not be made.
enum class make_fault : std::uint8_t {
  empty,              ///< a Key or Token needs at least one character
  invalid_character,  ///< `offset` says which
  invalid_utf8,       ///< a Display String must be UTF-8
  out_of_range,       ///< beyond what the type can carry
  not_a_number,       ///< text that is not a decimal number, or a float that is not finite
  too_precise,        ///< a draft11 Float that 15 digits cannot tell from its neighbours
};

/// Why a value cannot exist in the dialect, and at which byte of the text it was to be made from.
struct make_error {
  make_fault fault{};
  std::size_t offset{};
  auto operator==(make_error const&) const -> bool = default;
};

/// What is wrong, for people.
[[nodiscard]] auto message(make_fault fault) noexcept -> std::string_view;

}  // namespace tidegate::TIDEGATE_ABI::sf
