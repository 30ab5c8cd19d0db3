// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/sf/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

/// Which characters may stand where: one table, from which the readers, the checked text types and
/// the writers all take their rules.
namespace tidegate::TIDEGATE_ABI::sf::grammar {

/// What a character may be a part of.
enum char_class : std::uint8_t {
  rfc_key_start = 1 << 0,      // lcalpha "*"
  rfc_key_char = 1 << 1,       // lcalpha DIGIT "_" "-" "." "*"
  rfc_token_start = 1 << 2,    // ALPHA "*"
  rfc_token_char = 1 << 3,     // tchar ":" "/"
  draft_key_start = 1 << 4,    // lcalpha
  draft_key_char = 1 << 5,     // lcalpha DIGIT "_" "-"
  draft_token_start = 1 << 6,  // ALPHA
  draft_token_char = 1 << 7,   // ALPHA DIGIT "_" "-" "." ":" "%" "*" "/"
};

/// The classes of each character.
inline constexpr auto classes = [] {
  std::array<std::uint8_t, 256> table{};
  auto add = [&table](std::string_view characters, unsigned bits) {
    for (char c : characters) {
      auto& entry = table[static_cast<unsigned char>(c)];
      entry = static_cast<std::uint8_t>(entry | bits);
    }
  };
  constexpr std::string_view lcalpha = "abcdefghijklmnopqrstuvwxyz";
  constexpr std::string_view ucalpha = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr std::string_view digit = "0123456789";
  add(lcalpha, 0xff);
  add(ucalpha, rfc_token_start | rfc_token_char | draft_token_start | draft_token_char);
  add(digit, rfc_key_char | rfc_token_char | draft_key_char | draft_token_char);
  add("*", rfc_key_start | rfc_key_char | rfc_token_start | rfc_token_char | draft_token_char);
  add("_-", rfc_key_char | rfc_token_char | draft_key_char | draft_token_char);
  add(".", rfc_key_char | rfc_token_char | draft_token_char);
  add("%:/", rfc_token_char | draft_token_char);
  add("!#$&'+^`|~", rfc_token_char);
  return table;
}();

/// Whether `c` is of that class.
[[nodiscard]] constexpr auto is(char c, unsigned bits) noexcept -> bool {
  return (classes[static_cast<unsigned char>(c)] & bits) != 0;
}

/// Finds the byte that keeps `text` from being what begins with one of `start` and goes on with
/// `rest`.
[[nodiscard]] constexpr auto find_fault(std::string_view text, unsigned start,
                                        unsigned rest) noexcept -> std::optional<make_error> {
  if (text.empty()) {
    return make_error{make_fault::empty, 0};
  }
  if (!is(text[0], start)) {
    return make_error{make_fault::invalid_character, 0};
  }
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (!is(text[i], rest)) {
      return make_error{make_fault::invalid_character, i};
    }
  }
  return std::nullopt;
}

/// Key: RFC 9651, section 3.1.2; draft11, section 3.1.
template <bool IsDraft11>
struct key {
  /// How it begins and goes on, and what is wrong with a text that does not.
  static constexpr unsigned start = IsDraft11 ? draft_key_start : rfc_key_start;
  static constexpr unsigned rest = IsDraft11 ? draft_key_char : rfc_key_char;
  [[nodiscard]] static constexpr auto fault(std::string_view text) noexcept {
    return find_fault(text, start, rest);
  }
};

/// Token: RFC 9651, section 3.3.4; draft11, section 3.7.
template <bool IsDraft11>
struct token {
  /// How it begins and goes on, and what is wrong with a text that does not.
  static constexpr unsigned start = IsDraft11 ? draft_token_start : rfc_token_start;
  static constexpr unsigned rest = IsDraft11 ? draft_token_char : rfc_token_char;
  [[nodiscard]] static constexpr auto fault(std::string_view text) noexcept {
    return find_fault(text, start, rest);
  }
};

/// String: printable ASCII in every dialect (RFC 9651, section 3.3.3).
struct string {
  /// The character that cannot stand in one, if there is one.
  [[nodiscard]] static constexpr auto fault(std::string_view text) noexcept
      -> std::optional<make_error> {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] < 0x20 || text[i] == 0x7f) {  // bytes from 0x80 are negative
        return make_error{make_fault::invalid_character, i};
      }
    }
    return std::nullopt;
  }
};

/// Takes UTF-8 byte by byte (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
class utf8_checker {
 public:
  /// False when `byte` cannot follow what came before.
  [[nodiscard]] constexpr auto feed(std::uint8_t byte) noexcept -> bool {
    if (missing_ == 0) {
      return byte < 0x80 || begin_sequence(byte);
    }
    if (byte < low_ || byte > high_) {
      return false;
    }
    low_ = 0x80;
    high_ = 0xbf;
    --missing_;
    return true;
  }

  /// True between two code points.
  [[nodiscard]] constexpr auto complete() const noexcept -> bool { return missing_ == 0; }

 private:
  [[nodiscard]] constexpr auto begin_sequence(std::uint8_t byte) noexcept -> bool {
    if (byte < 0xc2 || byte > 0xf4) {
      return false;
    }
    missing_ = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    low_ = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
    high_ = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
    return true;
  }

  std::uint8_t missing_ = 0;
  std::uint8_t low_ = 0x80;
  std::uint8_t high_ = 0xbf;
};

/// Display String: any Unicode text, held as UTF-8 (RFC 9651, section 3.3.8).
struct display_string {
  /// Where the text is not UTF-8, if it is not.
  [[nodiscard]] static constexpr auto fault(std::string_view text) noexcept
      -> std::optional<make_error> {
    utf8_checker utf8;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (!utf8.feed(static_cast<std::uint8_t>(text[i]))) {
        return make_error{make_fault::invalid_utf8, i};
      }
    }
    if (!utf8.complete()) {
      return make_error{make_fault::invalid_utf8, text.size()};
    }
    return std::nullopt;
  }
};

}  // namespace tidegate::TIDEGATE_ABI::sf::grammar
