// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <bit>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/// Finds the next octet of a kind, 16 at a time where the processor can.
namespace tidegate::TIDEGATE_ABI::wire::scan {

#if defined(__SSE2__)
/// Sets the highest bit of every octet below `Bound`, of 0x7f and of those from 0x80 on.
template <char Bound>
[[nodiscard, gnu::always_inline]] inline auto below(__m128i x) noexcept -> __m128i {
  // One more, and 0x7f is negative like all above it; less the bound, so are those below that.
  return _mm_subs_epi8(_mm_add_epi8(x, _mm_set1_epi8(1)), _mm_set1_epi8(Bound + 1));
}
#endif

// Each kind says which octets it means. It has a quicker test of 16 at once, which sets the highest
// bit of those and, unless it is `exact`, perhaps of others; it has a second test then, for just
// those.

/// What ends a field value, or may not stand in one: controls but HTAB.
struct control {
  static constexpr bool exact = false;
  [[nodiscard]] static constexpr auto matches(char c) noexcept -> bool {
    return c == '\r' || (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
  }
#if defined(__SSE2__)
  /// Also HTAB and octets from 0x80, both of which are rare.
  [[nodiscard]] static auto may_match(__m128i x) noexcept -> __m128i {
    return below<0x20>(x);
  }
  /// Just those.
  [[nodiscard]] static auto match(__m128i x) noexcept -> __m128i {
    auto const low = _mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(0x1f)), x);
    auto const tab = _mm_cmpeq_epi8(x, _mm_set1_epi8('\t'));
    return _mm_or_si128(_mm_andnot_si128(tab, low), _mm_cmpeq_epi8(x, _mm_set1_epi8(0x7f)));
  }
#endif
};

/// What is not a letter, digit, "-" or ".": all of those may stand in a token and in the name of a
/// host.
struct unusual {
  static constexpr bool exact = true;
  [[nodiscard]] static constexpr auto matches(char c) noexcept -> bool {
    auto const letter = static_cast<unsigned>(static_cast<unsigned char>(c) | 0x20U) - 'a';
    return letter > 25 && (c < '-' || c > '9' || c == '/');
  }
#if defined(__SSE2__)
  [[nodiscard]] static auto may_match(__m128i x) noexcept -> __m128i {
    auto const folded = _mm_or_si128(x, _mm_set1_epi8(0x20));
    auto const no_letter = _mm_or_si128(_mm_cmplt_epi8(folded, _mm_set1_epi8('a')),
                                        _mm_cmpgt_epi8(folded, _mm_set1_epi8('z')));
    auto const no_other = _mm_or_si128(
        _mm_or_si128(_mm_cmplt_epi8(x, _mm_set1_epi8('-')), _mm_cmpgt_epi8(x, _mm_set1_epi8('9'))),
        _mm_cmpeq_epi8(x, _mm_set1_epi8('/')));
    return _mm_and_si128(no_letter, no_other);
  }
#endif
};

/// What is not a small letter, digit, "-" or ".".
struct unusual_in_name {
  static constexpr bool exact = true;
  [[nodiscard]] static constexpr auto matches(char c) noexcept -> bool {
    return (c < 'a' || c > 'z') && (c < '-' || c > '9' || c == '/');
  }
#if defined(__SSE2__)
  [[nodiscard]] static auto may_match(__m128i x) noexcept -> __m128i {
    auto const no_letter =
        _mm_or_si128(_mm_cmplt_epi8(x, _mm_set1_epi8('a')), _mm_cmpgt_epi8(x, _mm_set1_epi8('z')));
    auto const no_other = _mm_or_si128(
        _mm_or_si128(_mm_cmplt_epi8(x, _mm_set1_epi8('-')), _mm_cmpgt_epi8(x, _mm_set1_epi8('9'))),
        _mm_cmpeq_epi8(x, _mm_set1_epi8('/')));
    return _mm_and_si128(no_letter, no_other);
  }
#endif
};

/// What ends a request target, or may not stand in one: all but printable ASCII, and "#".
struct target_end {
  static constexpr bool exact = true;
  [[nodiscard]] static constexpr auto matches(char c) noexcept -> bool {
    return static_cast<signed char>(c) <= 0x20 || c == 0x7f || c == '#';
  }
#if defined(__SSE2__)
  [[nodiscard]] static auto may_match(__m128i x) noexcept -> __m128i {
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
  static constexpr bool exact = true;
  [[nodiscard]] static constexpr auto matches(char c) noexcept -> bool { return c == C; }
#if defined(__SSE2__)
  [[nodiscard]] static auto may_match(__m128i x) noexcept -> __m128i {
    return _mm_cmpeq_epi8(x, _mm_set1_epi8(C));
  }
#endif
};

#if defined(__SSE2__)
template <class Kind>
[[nodiscard, gnu::always_inline]] inline auto mask_at(char const* p) noexcept -> unsigned {
  auto const x = _mm_loadu_si128(reinterpret_cast<__m128i const*>(p));
  return static_cast<unsigned>(_mm_movemask_epi8(Kind::may_match(x)));
}
#endif

/// The first octet of that kind from `p` on, or `end`. `begin` is where the buffer begins: octets
/// between it and `p` may be looked at again.
template <class Kind>
[[nodiscard, gnu::always_inline]] inline auto find([[maybe_unused]] char const* begin,
                                                   char const* p, char const* end) noexcept
    -> char const* {
#if defined(__SSE2__)
  if (end - begin >= 16) [[likely]] {
    auto const* const last = end - 16;
    while (p <= last) {
      auto const mask = mask_at<Kind>(p);
      if (mask == 0) {
        p += 16;
        continue;
      }
      auto const* const found = p + std::countr_zero(mask);
      if (Kind::exact || Kind::matches(*found)) [[likely]] {
        return found;
      }
      if constexpr (!Kind::exact) {
        auto const x = _mm_loadu_si128(reinterpret_cast<__m128i const*>(p));
        if (auto const exact = static_cast<unsigned>(_mm_movemask_epi8(Kind::match(x)));
            exact != 0) {
          return p + std::countr_zero(exact);
        }
        p += 16;
      }
    }
    // The last few, looked at with those before them.
    auto const mask = mask_at<Kind>(last) >> (p - last);
    if (mask == 0) {
      return end;
    }
    p += static_cast<unsigned>(std::countr_zero(mask));
  }
#endif
  while (p != end && !Kind::matches(*p)) {
    ++p;
  }
  return p;
}

}  // namespace tidegate::TIDEGATE_ABI::wire::scan
