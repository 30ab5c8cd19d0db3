// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/ascii.hpp>

#include <algorithm>
#include <string>
#include <string_view>

/// Header fields, and what they consist of (RFC 9110, section 5).
namespace tidegate::TIDEGATE_ABI::http {

/// One line of a field section.
struct field {
  std::string name;
  std::string value;
  auto operator==(field const&) const -> bool = default;
};

/// One line, borrowed.
struct field_view {
  std::string_view name;
  std::string_view value;
};

/// tchar (section 5.6.2)
[[nodiscard]] constexpr auto is_token_character(char c) noexcept -> bool {
  return is_letter_or_digit(c) || std::string_view("!#$%&'*+-.^_`|~").contains(c);
}

/// Whether `text` is a token (RFC 9110, section 5.6.2), as names of fields and methods are.
[[nodiscard]] constexpr auto is_token(std::string_view text) noexcept -> bool {
  return !text.empty() && std::ranges::all_of(text, is_token_character);
}

/// field-value (section 5.5): no control characters but tabs, so that nothing in it ends a line or
/// a message.
[[nodiscard]] constexpr auto is_field_value(std::string_view text) noexcept -> bool {
  return std::ranges::all_of(text, [](char c) {
    return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  });
}

/// Takes the element before the next comma off the front of `list`, without the blanks around it.
[[nodiscard]] constexpr auto take_element(std::string_view& list, char separator = ',') noexcept
    -> std::string_view {
  return trimmed(take_until(list, separator));
}

/// The media type of a Content-Type, without parameters.
[[nodiscard]] constexpr auto media_type(std::string_view content_type) noexcept
    -> std::string_view {
  return trimmed(content_type.substr(0, content_type.find(';')));
}

/// Whether a Content-Type is that of JSON, whatever its parameters.
[[nodiscard]] inline auto is_json(std::string_view content_type) noexcept -> bool {
  return equal_ignoring_case(media_type(content_type), "application/json");
}

}  // namespace tidegate::TIDEGATE_ABI::http
