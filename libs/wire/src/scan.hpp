// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/// Finds the next octet of a kind, 16 at a time where the processor can.
namespace tidegate::wire::scan {

/// What ends a field value, or may not stand in one: controls but HTAB.
struct control {
  [[nodiscard]] static constexpr auto matches(char c) noexcept -> bool {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
  }
#if defined(__SSE2__)
  [[nodiscard]] static auto matches(__m128i x) noexcept -> __m128i {
    auto const low = _mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(0x1f)), x);
    auto const tab = _mm_cmpeq_epi8(x, _mm_set1_epi8('\t'));
    return _mm_or_si128(_mm_andnot_si128(tab, low), _mm_cmpeq_epi8(x, _mm_set1_epi8(0x7f)));
  }
#endif
};

/// What ends a request target, or may not stand in one: all but printable ASCII, and "#".
struct target_end {
  [[nodiscard]] static constexpr auto matches(char c) noexcept -> bool {
    return static_cast<signed char>(c) <= 0x20 || c == 0x7f || c == '#';
  }
#if defined(__SSE2__)
  [[nodiscard]] static auto matches(__m128i x) noexcept -> __m128i {
    // Octets from 0x80 are negative.
    auto const outside = _mm_cmplt_epi8(x, _mm_set1_epi8(0x21));
    auto const others =
        _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8(0x7f)), _mm_cmpeq_epi8(x, _mm_set1_epi8('#')));
    return _mm_or_si128(outside, others);
  }
#endif
};

template <char C>
struct exactly {
  [[nodiscard]] static constexpr auto matches(char c) noexcept -> bool { return c == C; }
#if defined(__SSE2__)
  [[nodiscard]] static auto matches(__m128i x) noexcept -> __m128i {
    return _mm_cmpeq_epi8(x, _mm_set1_epi8(C));
  }
#endif
};

#if defined(__SSE2__)
template <class Kind>
[[nodiscard, gnu::always_inline]] inline auto mask_at(char const* p) noexcept -> unsigned {
  auto const x = _mm_loadu_si128(reinterpret_cast<__m128i const*>(p));
  return static_cast<unsigned>(_mm_movemask_epi8(Kind::matches(x)));
}
#endif

/// The first octet of that kind from `p` on, or `end`. `begin` is where the buffer begins: octets
/// between it and `p` may be looked at again.
template <class Kind>
[[nodiscard, gnu::always_inline]] inline auto find([[maybe_unused]] char const* begin,
                                                   char const* p, char const* end) noexcept
    -> char const* {
#if defined(__SSE2__)
  for (; end - p >= 16; p += 16) {
    if (auto const mask = mask_at<Kind>(p); mask != 0) {
      return p + std::countr_zero(mask);
    }
  }
  if (end - begin >= 16) {
    // The last few, looked at with those before them.
    auto const mask = mask_at<Kind>(end - 16) >> (16 - (end - p));
    return mask != 0 ? p + std::countr_zero(mask) : end;
  }
#endif
  while (p != end && !Kind::matches(*p)) {
    ++p;
  }
  return p;
}

}  // namespace tidegate::wire::scan
