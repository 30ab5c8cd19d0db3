// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/case_fold.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/utf8.hpp>

#include "text/normalization_table.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

/// The characters `first`, `first + step` and so on to `last` fold to the one `delta` further.
struct fold_row {
  std::uint32_t first;
  std::uint32_t last;
  std::uint32_t step;
  std::int32_t delta;
};

/// Simple case folding of Unicode 14 beyond ASCII, in order.
constexpr auto fold_table = std::to_array<fold_row>({
    {0xb5, 0xb5, 1, 775},        {0xc0, 0xd6, 1, 32},         {0xd8, 0xde, 1, 32},
    {0x100, 0x12e, 2, 1},        {0x132, 0x136, 2, 1},        {0x139, 0x147, 2, 1},
    {0x14a, 0x176, 2, 1},        {0x178, 0x178, 1, -121},     {0x179, 0x17d, 2, 1},
    {0x17f, 0x17f, 1, -268},     {0x181, 0x181, 1, 210},      {0x182, 0x184, 2, 1},
    {0x186, 0x186, 1, 206},      {0x187, 0x187, 1, 1},        {0x189, 0x18a, 1, 205},
    {0x18b, 0x18b, 1, 1},        {0x18e, 0x18e, 1, 79},       {0x18f, 0x18f, 1, 202},
    {0x190, 0x190, 1, 203},      {0x191, 0x191, 1, 1},        {0x193, 0x193, 1, 205},
    {0x194, 0x194, 1, 207},      {0x196, 0x196, 1, 211},      {0x197, 0x197, 1, 209},
    {0x198, 0x198, 1, 1},        {0x19c, 0x19c, 1, 211},      {0x19d, 0x19d, 1, 213},
    {0x19f, 0x19f, 1, 214},      {0x1a0, 0x1a4, 2, 1},        {0x1a6, 0x1a6, 1, 218},
    {0x1a7, 0x1a7, 1, 1},        {0x1a9, 0x1a9, 1, 218},      {0x1ac, 0x1ac, 1, 1},
    {0x1ae, 0x1ae, 1, 218},      {0x1af, 0x1af, 1, 1},        {0x1b1, 0x1b2, 1, 217},
    {0x1b3, 0x1b5, 2, 1},        {0x1b7, 0x1b7, 1, 219},      {0x1b8, 0x1b8, 1, 1},
    {0x1bc, 0x1bc, 1, 1},        {0x1c4, 0x1c4, 1, 2},        {0x1c5, 0x1c5, 1, 1},
    {0x1c7, 0x1c7, 1, 2},        {0x1c8, 0x1c8, 1, 1},        {0x1ca, 0x1ca, 1, 2},
    {0x1cb, 0x1db, 2, 1},        {0x1de, 0x1ee, 2, 1},        {0x1f1, 0x1f1, 1, 2},
    {0x1f2, 0x1f4, 2, 1},        {0x1f6, 0x1f6, 1, -97},      {0x1f7, 0x1f7, 1, -56},
    {0x1f8, 0x21e, 2, 1},        {0x220, 0x220, 1, -130},     {0x222, 0x232, 2, 1},
    {0x23a, 0x23a, 1, 10795},    {0x23b, 0x23b, 1, 1},        {0x23d, 0x23d, 1, -163},
    {0x23e, 0x23e, 1, 10792},    {0x241, 0x241, 1, 1},        {0x243, 0x243, 1, -195},
    {0x244, 0x244, 1, 69},       {0x245, 0x245, 1, 71},       {0x246, 0x24e, 2, 1},
    {0x345, 0x345, 1, 116},      {0x370, 0x372, 2, 1},        {0x376, 0x376, 1, 1},
    {0x37f, 0x37f, 1, 116},      {0x386, 0x386, 1, 38},       {0x388, 0x38a, 1, 37},
    {0x38c, 0x38c, 1, 64},       {0x38e, 0x38f, 1, 63},       {0x391, 0x3a1, 1, 32},
    {0x3a3, 0x3ab, 1, 32},       {0x3c2, 0x3c2, 1, 1},        {0x3cf, 0x3cf, 1, 8},
    {0x3d0, 0x3d0, 1, -30},      {0x3d1, 0x3d1, 1, -25},      {0x3d5, 0x3d5, 1, -15},
    {0x3d6, 0x3d6, 1, -22},      {0x3d8, 0x3ee, 2, 1},        {0x3f0, 0x3f0, 1, -54},
    {0x3f1, 0x3f1, 1, -48},      {0x3f4, 0x3f4, 1, -60},      {0x3f5, 0x3f5, 1, -64},
    {0x3f7, 0x3f7, 1, 1},        {0x3f9, 0x3f9, 1, -7},       {0x3fa, 0x3fa, 1, 1},
    {0x3fd, 0x3ff, 1, -130},     {0x400, 0x40f, 1, 80},       {0x410, 0x42f, 1, 32},
    {0x460, 0x480, 2, 1},        {0x48a, 0x4be, 2, 1},        {0x4c0, 0x4c0, 1, 15},
    {0x4c1, 0x4cd, 2, 1},        {0x4d0, 0x52e, 2, 1},        {0x531, 0x556, 1, 48},
    {0x10a0, 0x10c5, 1, 7264},   {0x10c7, 0x10c7, 1, 7264},   {0x10cd, 0x10cd, 1, 7264},
    {0x13f8, 0x13fd, 1, -8},     {0x1c80, 0x1c80, 1, -6222},  {0x1c81, 0x1c81, 1, -6221},
    {0x1c82, 0x1c82, 1, -6212},  {0x1c83, 0x1c84, 1, -6210},  {0x1c85, 0x1c85, 1, -6211},
    {0x1c86, 0x1c86, 1, -6204},  {0x1c87, 0x1c87, 1, -6180},  {0x1c88, 0x1c88, 1, 35267},
    {0x1c90, 0x1cba, 1, -3008},  {0x1cbd, 0x1cbf, 1, -3008},  {0x1e00, 0x1e94, 2, 1},
    {0x1e9b, 0x1e9b, 1, -58},    {0x1e9e, 0x1e9e, 1, -7615},  {0x1ea0, 0x1efe, 2, 1},
    {0x1f08, 0x1f0f, 1, -8},     {0x1f18, 0x1f1d, 1, -8},     {0x1f28, 0x1f2f, 1, -8},
    {0x1f38, 0x1f3f, 1, -8},     {0x1f48, 0x1f4d, 1, -8},     {0x1f59, 0x1f5f, 2, -8},
    {0x1f68, 0x1f6f, 1, -8},     {0x1f88, 0x1f8f, 1, -8},     {0x1f98, 0x1f9f, 1, -8},
    {0x1fa8, 0x1faf, 1, -8},     {0x1fb8, 0x1fb9, 1, -8},     {0x1fba, 0x1fbb, 1, -74},
    {0x1fbc, 0x1fbc, 1, -9},     {0x1fbe, 0x1fbe, 1, -7173},  {0x1fc8, 0x1fcb, 1, -86},
    {0x1fcc, 0x1fcc, 1, -9},     {0x1fd8, 0x1fd9, 1, -8},     {0x1fda, 0x1fdb, 1, -100},
    {0x1fe8, 0x1fe9, 1, -8},     {0x1fea, 0x1feb, 1, -112},   {0x1fec, 0x1fec, 1, -7},
    {0x1ff8, 0x1ff9, 1, -128},   {0x1ffa, 0x1ffb, 1, -126},   {0x1ffc, 0x1ffc, 1, -9},
    {0x2126, 0x2126, 1, -7517},  {0x212a, 0x212a, 1, -8383},  {0x212b, 0x212b, 1, -8262},
    {0x2132, 0x2132, 1, 28},     {0x2160, 0x216f, 1, 16},     {0x2183, 0x2183, 1, 1},
    {0x24b6, 0x24cf, 1, 26},     {0x2c00, 0x2c2f, 1, 48},     {0x2c60, 0x2c60, 1, 1},
    {0x2c62, 0x2c62, 1, -10743}, {0x2c63, 0x2c63, 1, -3814},  {0x2c64, 0x2c64, 1, -10727},
    {0x2c67, 0x2c6b, 2, 1},      {0x2c6d, 0x2c6d, 1, -10780}, {0x2c6e, 0x2c6e, 1, -10749},
    {0x2c6f, 0x2c6f, 1, -10783}, {0x2c70, 0x2c70, 1, -10782}, {0x2c72, 0x2c72, 1, 1},
    {0x2c75, 0x2c75, 1, 1},      {0x2c7e, 0x2c7f, 1, -10815}, {0x2c80, 0x2ce2, 2, 1},
    {0x2ceb, 0x2ced, 2, 1},      {0x2cf2, 0x2cf2, 1, 1},      {0xa640, 0xa66c, 2, 1},
    {0xa680, 0xa69a, 2, 1},      {0xa722, 0xa72e, 2, 1},      {0xa732, 0xa76e, 2, 1},
    {0xa779, 0xa77b, 2, 1},      {0xa77d, 0xa77d, 1, -35332}, {0xa77e, 0xa786, 2, 1},
    {0xa78b, 0xa78b, 1, 1},      {0xa78d, 0xa78d, 1, -42280}, {0xa790, 0xa792, 2, 1},
    {0xa796, 0xa7a8, 2, 1},      {0xa7aa, 0xa7aa, 1, -42308}, {0xa7ab, 0xa7ab, 1, -42319},
    {0xa7ac, 0xa7ac, 1, -42315}, {0xa7ad, 0xa7ad, 1, -42305}, {0xa7ae, 0xa7ae, 1, -42308},
    {0xa7b0, 0xa7b0, 1, -42258}, {0xa7b1, 0xa7b1, 1, -42282}, {0xa7b2, 0xa7b2, 1, -42261},
    {0xa7b3, 0xa7b3, 1, 928},    {0xa7b4, 0xa7c2, 2, 1},      {0xa7c4, 0xa7c4, 1, -48},
    {0xa7c5, 0xa7c5, 1, -42307}, {0xa7c6, 0xa7c6, 1, -35384}, {0xa7c7, 0xa7c9, 2, 1},
    {0xa7d0, 0xa7d0, 1, 1},      {0xa7d6, 0xa7d8, 2, 1},      {0xa7f5, 0xa7f5, 1, 1},
    {0xab70, 0xabbf, 1, -38864}, {0xff21, 0xff3a, 1, 32},     {0x10400, 0x10427, 1, 40},
    {0x104b0, 0x104d3, 1, 40},   {0x10570, 0x1057a, 1, 39},   {0x1057c, 0x1058a, 1, 39},
    {0x1058c, 0x10592, 1, 39},   {0x10594, 0x10595, 1, 39},   {0x10c80, 0x10cb2, 1, 64},
    {0x118a0, 0x118bf, 1, 32},   {0x16e40, 0x16e5f, 1, 32},   {0x1e900, 0x1e921, 1, 34},
});

auto fold_code_point(std::uint32_t c) noexcept -> std::uint32_t {
  if (c < 0x80) {
    return static_cast<std::uint32_t>(to_lower(static_cast<char>(c)));
  }
  auto const* const row =
      std::lower_bound(fold_table.begin(), fold_table.end(), c,
                       [](fold_row const& r, std::uint32_t value) { return r.last < value; });
  if (row == fold_table.end() || c < row->first || (c - row->first) % row->step != 0) {
    return c;
  }
  return c + static_cast<std::uint32_t>(row->delta);
}

auto find_decomposition(std::span<decomposition const> rows, std::uint32_t c) noexcept
    -> decomposition const* {
  auto const row = std::ranges::lower_bound(rows, c, {}, &decomposition::character);
  return row == rows.end() || row->character != c ? nullptr : &*row;
}

auto combining_class(std::uint32_t c) noexcept -> std::uint8_t {
  auto const row = std::ranges::lower_bound(combining_classes, c, {}, &class_range::last);
  return row == combining_classes.end() || c < row->first ? std::uint8_t{0} : row->combining_class;
}

/// Hangul syllables (The Unicode Standard, section 3.12): a leading consonant, a vowel, and maybe a
/// trailing consonant, which are numbered from these on.
namespace hangul {
constexpr std::uint32_t syllable = 0xac00;
constexpr std::uint32_t leading = 0x1100;
constexpr std::uint32_t vowel = 0x1161;
constexpr std::uint32_t trailing = 0x11a7;  // stands for none
constexpr std::uint32_t leadings = 19;
constexpr std::uint32_t vowels = 21;
constexpr std::uint32_t trailings = 28;
}  // namespace hangul

/// Appends what `c` canonically is.
void decompose(std::vector<std::uint32_t>& out, std::uint32_t c) {
  using namespace hangul;
  if (c - syllable < leadings * vowels * trailings) {
    auto const number = c - syllable;
    out.push_back(leading + number / (vowels * trailings));
    out.push_back(vowel + number / trailings % vowels);
    if (number % trailings != 0) {
      out.push_back(trailing + number % trailings);
    }
    return;
  }
  for (auto const& block : ideograph_blocks) {
    if (c - block.first < block.characters.size() && block.characters[c - block.first] != 0) {
      out.push_back(block.characters[c - block.first]);
      return;
    }
  }
  auto const* row = find_decomposition(composed_characters, c);
  if (row == nullptr) {
    row = find_decomposition(never_composed_characters, c);
  }
  if (row == nullptr) {
    out.push_back(c);
    return;
  }
  decompose(out, row->first);
  if (row->second != 0) {
    decompose(out, row->second);
  }
}

/// The character that is `first` and `second`, or 0.
auto compose(std::uint32_t first, std::uint32_t second) -> std::uint32_t {
  using namespace hangul;
  if (first - leading < leadings && second - vowel < vowels) {
    return syllable + ((first - leading) * vowels + second - vowel) * trailings;
  }
  if (first - syllable < leadings * vowels * trailings && (first - syllable) % trailings == 0 &&
      second - trailing - 1 < trailings - 1) {
    return first + second - trailing;
  }
  static auto const by_parts = [] {
    std::vector<decomposition> rows(composed_characters.begin(), composed_characters.end());
    std::ranges::sort(rows, {}, [](auto const& r) { return std::pair(r.first, r.second); });
    return rows;
  }();
  auto const row =
      std::ranges::lower_bound(by_parts, std::pair(first, second), {},
                               [](decomposition const& r) { return std::pair(r.first, r.second); });
  return row == by_parts.end() || row->first != first || row->second != second ? 0 : row->character;
}

/// Puts a run of marks in the order of their classes; those of one class stay as they are.
void order_run(std::span<std::uint32_t> marks) {
  constexpr int character_bits = 21;
  constexpr int class_shift = 56;
  std::vector<std::uint64_t> keyed;
  keyed.reserve(marks.size());
  for (auto const c : marks) {
    keyed.push_back(std::uint64_t{combining_class(c)} << class_shift |
                    std::uint64_t{keyed.size()} << character_bits | c);
  }
  std::ranges::sort(keyed);
  std::ranges::transform(keyed, marks.begin(), [](std::uint64_t key) {
    return static_cast<std::uint32_t>(key & ((1U << character_bits) - 1));
  });
}

void order_marks(std::vector<std::uint32_t>& characters) {
  auto const is_mark = [](std::uint32_t c) { return combining_class(c) != 0; };
  for (auto at = characters.begin(); at != characters.end();) {
    auto const begin = std::find_if(at, characters.end(), is_mark);
    at = std::find_if_not(begin, characters.end(), is_mark);
    if (at - begin > 1) {
      order_run({begin, at});
    }
  }
}

/// Makes one of what belongs together (UAX #15); the characters are decomposed and in order.
void compose_all(std::vector<std::uint32_t>& characters) {
  std::size_t size = 0;
  std::optional<std::size_t> starter;
  std::uint8_t last_class = 0;
  for (auto const c : characters) {
    auto const own_class = combining_class(c);
    // A mark of the same class, or another starter, stands between.
    bool const blocked = !starter || (size != *starter + 1 && last_class >= own_class);
    if (auto const made = blocked ? 0 : compose(characters[*starter], c); made != 0) {
      characters[*starter] = made;
      continue;
    }
    if (own_class == 0) {
      starter = size;
    }
    last_class = own_class;
    characters[size++] = c;
  }
  characters.resize(size);
}

/// Octets that are not UTF-8 stand for themselves, behind all characters.
constexpr std::uint32_t lone_octet = 0x110000;

/// Takes the character at the beginning of `text`, or an octet that is not part of one.
auto take_character(std::string_view& text) noexcept -> std::uint32_t {
  auto const lead = static_cast<std::uint8_t>(text.front());
  auto const size = utf8::character_octets(text);
  if (size <= 1) {
    text.remove_prefix(1);
    return size == 1 ? lead : lone_octet + lead;
  }
  std::uint32_t c = lead & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    c = c << 6 | (static_cast<std::uint8_t>(text[i]) & 63);
  }
  text.remove_prefix(size);
  return c;
}

void append_folded(std::string& out, std::string_view text,
                   std::vector<std::uint32_t>& characters) {
  characters.clear();
  while (!text.empty()) {
    decompose(characters, take_character(text));
  }
  order_marks(characters);
  // Folding makes a letter of one mark only, U+0345, which is the last of all marks: the order
  // holds. It turns no character into one that can be decomposed.
  std::ranges::transform(characters, characters.begin(), fold_code_point);
  compose_all(characters);
  for (auto const c : characters) {
    if (c >= lone_octet) {
      out.push_back(static_cast<char>(c - lone_octet));
    } else {
      utf8::append(out, c);
    }
  }
}

auto is_ascii(char c) noexcept -> bool {
  return static_cast<std::uint8_t>(c) < 0x80;
}

void append_folded_ascii(std::string& out, std::string_view text) {
  auto const size = out.size();
  out += text;
  std::transform(text.begin(), text.end(), out.begin() + static_cast<std::ptrdiff_t>(size),
                 to_lower);
}

}  // namespace

void append_case_fold(std::string& out, std::string_view text) {
  std::vector<std::uint32_t> characters;
  auto const* const end = text.data() + text.size();
  for (auto const* at = text.data(); at != end;) {
    auto const* const other = std::find_if_not(at, end, is_ascii);
    if (other == end) {
      append_folded_ascii(out, {at, end});
      return;
    }
    // A mark may belong to the last character before it. ASCII itself is not a mark and belongs to
    // nothing before it.
    auto const* const begin = other == at ? at : other - 1;
    append_folded_ascii(out, {at, begin});
    at = std::find_if(other, end, is_ascii);
    append_folded(out, {begin, at}, characters);
  }
}

auto case_fold(std::string_view text) -> std::string {
  std::string out;
  out.reserve(text.size());
  append_case_fold(out, text);
  return out;
}

}  // namespace tidegate::TIDEGATE_ABI::scim
