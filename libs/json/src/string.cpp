// SPDX-License-Identifier: Apache-2.0
#include <tidegate/json/string.hpp>

#include <tidegate/base/hex.hpp>
#include <tidegate/base/utf8.hpp>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace tidegate::TIDEGATE_ABI::json {

namespace {

/// True for ASCII that stands for itself in a JSON string (RFC 8259, section 7).
constexpr auto plain = [] {
  std::array<bool, 256> table{};
  for (std::size_t c = 0x20; c < 0x80; ++c) {
    table[c] = c != '"' && c != '\\';
  }
  return table;
}();

template <class Word>
[[nodiscard]] auto load(char const* from) noexcept -> Word {
  Word octets{};
  std::memcpy(&octets, from, sizeof octets);
  return octets;
}

/// The high bit of every octet that is not plain, and maybe of some that are more significant than
/// such a one.
template <class Word>
[[nodiscard]] constexpr auto not_plain(Word octets) noexcept -> Word {
  constexpr auto each = static_cast<Word>(0x0101010101010101);
  return (octets | (octets - 0x20 * each) | ((octets ^ '"' * each) - each) |
          ((octets ^ '\\' * each) - each)) &
         0x80 * each;
}

/// Copies words that may overlap, so that there is no rest. False when they are not plain.
template <class Word>
[[nodiscard]] auto copy_words(char* to, std::string_view text) noexcept -> bool {
  Word other = 0;
  auto const copy = [&](std::size_t i) {
    auto const octets = load<Word>(text.data() + i);
    other |= not_plain(octets);
    std::memcpy(to + i, &octets, sizeof octets);
  };
  auto const last = text.size() - sizeof(Word);
  for (std::size_t i = 0; i < last; i += sizeof(Word)) {
    copy(i);
  }
  copy(last);
  return other == 0;
}

/// Copies `text`. False when something in it is not plain.
[[nodiscard]] auto copy_plain(char* to, std::string_view text) noexcept -> bool {
  if (text.size() >= sizeof(std::uint64_t)) {
    return copy_words<std::uint64_t>(to, text);
  }
  if (text.size() >= sizeof(std::uint32_t)) {
    return copy_words<std::uint32_t>(to, text);
  }
  bool is_plain = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    is_plain = is_plain && plain[static_cast<std::uint8_t>(text[i])];
    to[i] = text[i];
  }
  return is_plain;
}

void append_escape(std::string& out, char c) {
  constexpr std::string_view values = "\"\\\b\f\n\r\t";
  constexpr std::string_view names = "\"\\bfnrt";
  if (auto const simple = values.find(c); simple != std::string_view::npos) {
    out.push_back('\\');
    out.push_back(names[simple]);
    return;
  }
  out.append("\\u00", 4);
  append_hex(out, c);
}

}  // namespace

auto plain_octets(std::string_view text) noexcept -> std::size_t {
  std::size_t i = 0;
  for (; text.size() - i >= sizeof(std::uint64_t); i += sizeof(std::uint64_t)) {
    if (auto const other = not_plain(load<std::uint64_t>(text.data() + i)); other != 0) {
      if constexpr (std::endian::native == std::endian::little) {
        return i + static_cast<std::size_t>(std::countr_zero(other)) / 8;
      }
      break;
    }
  }
  while (i < text.size() && plain[static_cast<std::uint8_t>(text[i])]) {
    ++i;
  }
  return i;
}

void append_string(std::string& out, std::string_view text) {
  constexpr std::string_view replacement_character = "\xef\xbf\xbd";
  auto const begin = out.size();
  auto const end = begin + text.size() + 2;
  bool is_plain = false;
  // What libstdc++ 12 gives for the size is the capacity.
  out.resize_and_overwrite(end, [&](char* to, std::size_t /*size*/) {
    to[begin] = '"';
    is_plain = copy_plain(to + begin + 1, text);
    to[end - 1] = '"';
    return is_plain ? end : begin + 1;
  });
  if (is_plain) {
    return;
  }
  std::size_t copied = 0;  // up to here; from here to i everything stands for itself
  std::size_t i = 0;
  auto const copy = [&] { out.append(text.data() + copied, i - copied); };
  for (;;) {
    i += plain_octets(text.substr(i));
    if (i == text.size()) {
      break;
    }
    if (static_cast<std::uint8_t>(text[i]) < 0x80) {
      copy();
      append_escape(out, text[i]);
      copied = ++i;
    } else if (auto const sequence = utf8::first_sequence(text.substr(i)); sequence.well_formed) {
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

}  // namespace tidegate::TIDEGATE_ABI::json
