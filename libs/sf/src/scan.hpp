// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <bit>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tidegate::TIDEGATE_ABI::sf::detail {

/// True for what may stand in a String as itself: printable ASCII but the quote and the backslash.
[[nodiscard]] constexpr auto is_plain(char c) noexcept -> bool {
  return c >= 0x20 && c != 0x7f && c != '"' && c != '\\';  // bytes from 0x80 are negative
}

#if defined(__SSE2__)

/// A bit for every one of the 16 bytes at `p` that is not plain.
[[nodiscard, gnu::always_inline]] inline auto special_mask(char const* p) noexcept -> unsigned {
  auto const bytes = _mm_loadu_si128(reinterpret_cast<__m128i const*>(p));
  auto const shifted = _mm_sub_epi8(bytes, _mm_set1_epi8(0x20));  // printable: 0 to 0x5e
  auto const outside = _mm_adds_epu8(shifted, _mm_set1_epi8(0x7f - 0x5e));
  auto const quote = _mm_cmpeq_epi8(shifted, _mm_set1_epi8('"' - 0x20));
  auto const backslash = _mm_cmpeq_epi8(shifted, _mm_set1_epi8('\\' - 0x20));
  return static_cast<unsigned>(
      _mm_movemask_epi8(_mm_or_si128(outside, _mm_or_si128(quote, backslash))));
}

/// True when the `Vectors` times 16 bytes at `p` are all plain. May be false when they are, if "|"
/// or "}" is among them: so six instructions do for 16 bytes, where an exact answer takes eight.
template <int Vectors>
[[nodiscard, gnu::always_inline]] inline auto surely_plain(char const* p) noexcept -> bool {
  auto backslash = _mm_setzero_si128();
  auto largest = _mm_setzero_si128();
#pragma GCC unroll 8
  for (int i = 0; i < Vectors; ++i) {
    auto const bytes = _mm_loadu_si128(reinterpret_cast<__m128i const*>(p + i * 16));
    // Swapped by this, the quote comes to stand at 0x20, next to the controls, and 0x7f, "|" and
    // "}" between 0x7d and 0x7f: everything to look for is outside of 0x21 to 0x7c, but the
    // backslash.
    auto const swapped = _mm_xor_si128(bytes, _mm_set1_epi8(2));
    auto const shifted = _mm_sub_epi8(swapped, _mm_set1_epi8(0x21));
    largest = _mm_max_epu8(largest, shifted);
    backslash = _mm_or_si128(backslash, _mm_cmpeq_epi8(shifted, _mm_set1_epi8(('\\' ^ 2) - 0x21)));
  }
  auto const outside = _mm_adds_epu8(largest, _mm_set1_epi8(0x7f - (0x7c - 0x21)));
  return _mm_movemask_epi8(_mm_or_si128(outside, backslash)) == 0;
}

/// The first byte from `p` on that is not plain, or `end`. `begin` is where readable memory starts.
[[nodiscard, gnu::always_inline]] inline auto find_special(char const* begin, char const* p,
                                                           char const* end) noexcept
    -> char const* {
  auto i = p - end;  // goes up to 0
  if (i <= -16) {
    if (auto const mask = special_mask(p); mask != 0) {
      return p + std::countr_zero(mask);
    }
    i += 16;
    while (i <= -128 && surely_plain<8>(end + i)) {
      i += 128;
    }
    if (i <= -64 && surely_plain<4>(end + i)) {
      i += 64;
    }
    for (; i <= -16; i += 16) {
      if (auto const mask = special_mask(end + i); mask != 0) {
        return end + i + std::countr_zero(mask);
      }
    }
  }
  if (end - begin >= 16) {  // the last few bytes, looked at with those before them
    auto const mask = special_mask(end - 16) >> (16 + i);
    return mask != 0 ? end + i + std::countr_zero(mask) : end;
  }
  while (p != end && is_plain(*p)) {
    ++p;
  }
  return p;
}

#else

[[nodiscard, gnu::always_inline]] inline auto find_special(char const*, char const* p,
                                                           char const* end) noexcept
    -> char const* {
  while (p != end && is_plain(*p)) {
    ++p;
  }
  return p;
}

#endif

}  // namespace tidegate::TIDEGATE_ABI::sf::detail
