// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/json_string.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace tidegate::http {

namespace {

/// True for ASCII that stands for itself in a JSON string (RFC 8259, section 7).
constexpr auto plain = [] {
  std::array<bool, 256> table{};
  for (std::size_t c = 0x20; c < 0x80; ++c) {
    table[c] = c != '"' && c != '\\';
  }
  return table;
}();

struct utf8_sequence {
  std::size_t octets;
  bool well_formed;
};

/// The character that `text` begins with, which is not ASCII; or what one U+FFFD takes the place of: the
/// longest beginning of a well-formed sequence, at least one octet (Unicode, definition D93b, table 3-7).
[[nodiscard]] auto first_sequence(std::string_view text) noexcept -> utf8_sequence {
  auto const octet = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  auto const lead = octet(0);
  if (lead < 0xc2 || lead > 0xf4) {
    return {1, false};
  }
  std::size_t const octets = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The second octet rules out overlong forms, surrogates and what is above U+10FFFF.
  std::uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  std::uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (std::size_t i = 1; i < octets; ++i) {
    if (i == text.size() || octet(i) < low || octet(i) > high) {
      return {i, false};
    }
    low = 0x80;
    high = 0xbf;
  }
  return {octets, true};
}

void append_escape(std::string& out, char c) {
  constexpr std::string_view values = "\"\\\b\f\n\r\t";
  constexpr std::string_view names = "\"\\bfnrt";
  constexpr std::string_view hex = "0123456789abcdef";
  if (auto const simple = values.find(c); simple != std::string_view::npos) {
    out.push_back('\\');
    out.push_back(names[simple]);
    return;
  }
  auto const octet = static_cast<std::uint8_t>(c);
  out.append("\\u00", 4);
  out.push_back(hex[octet >> 4]);
  out.push_back(hex[octet & 15]);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view replacement_character = "\xef\xbf\xbd";
  out.push_back('"');
  std::size_t copied = 0;  // up to here; from here to i everything stands for itself
  std::size_t i = 0;
  auto const copy = [&] { out.append(text.data() + copied, i - copied); };
  while (i < text.size()) {
    auto const octet = static_cast<std::uint8_t>(text[i]);
    if (plain[octet]) {
      ++i;
    } else if (octet < 0x80) {
      copy();
      append_escape(out, text[i]);
      copied = ++i;
    } else if (auto const sequence = first_sequence(text.substr(i)); sequence.well_formed) {
      i += sequence.octets;
    } else {
      copy();
      out.append(replacement_character);
      copied = i += sequence.octets;
    }
  }
  copy();
  out.push_back('"');
}

}  // namespace tidegate::http
