// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/known_field.hpp>

#include "grammar.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/// The names of known fields and the table that finds them: length, first and last but one
/// character lead to the only entry that a name can be, which is then compared whole.
namespace tidegate::TIDEGATE_ABI::wire::detail {

// In the order of the enumeration; `other` has no name.
inline constexpr std::array<std::string_view, known_fields_count> known_names = {
    std::string_view(),
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "expect",
    "upgrade",
    "te",
    "keep-alive",
    "proxy-connection",
    "http2-settings",
    "trailer",
    "proxy-authenticate",
    "proxy-authorization",
    "via",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-real-ip",
    "x-request-id",
    "traceparent",
    "ratelimit",
    "ratelimit-policy",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "retry-after",
    "idempotency-key",
    "idempotency-attempt",
    "x-api-key",
    "authorization",
    "www-authenticate",
    "cookie",
    "set-cookie",
    "date",
    "age",
    "server",
    "location",
    "content-type",
    "content-encoding",
    "cache-control",
    "etag",
    "last-modified",
    "vary",
    "link",
    "range",
    "accept",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "user-agent",
    "referer",
    "origin",
    "if-match",
    "if-none-match",
    "if-modified-since",
};

inline constexpr std::size_t known_name_size_min = 2;

// The factors are found by trial: no two names share a slot, which the table checks.
[[nodiscard]] constexpr auto slot_of(char first, char last_but_one, std::size_t size) noexcept
    -> std::uint8_t {
  auto const low_bits = [](char c) { return static_cast<unsigned>(c) & 0x1fU; };  // of either case
  return static_cast<std::uint8_t>(low_bits(first) + low_bits(last_but_one) * 13 + size * 10);
}

struct known_entry {
  std::array<char, 30> name{};  // in lower case, zeros behind
  std::uint8_t size = 0;
  known_field field = known_field::other;
};

/// Has no definition that a constant expression may call.
void two_names_share_a_slot();

inline constexpr auto known_entries = [] {
  std::array<known_entry, 256> entries{};
  for (std::size_t i = 1; i < known_names.size(); ++i) {
    auto const name = known_names[i];
    auto& entry = entries[slot_of(name.front(), name[name.size() - 2], name.size())];
    if (entry.size != 0) {
      two_names_share_a_slot();
    }
    std::copy(name.begin(), name.end(), entry.name.begin());
    entry.size = static_cast<std::uint8_t>(name.size());
    entry.field = static_cast<known_field>(i);
  }
  return entries;
}();

#if defined(__SSE2__)
/// True when the letters of the 16 octets at `text` are, in lower case, those at `name`, as far as
/// `size` goes.
[[nodiscard, gnu::always_inline]] inline auto same_16(char const* text, char const* name,
                                                      std::size_t size) noexcept -> bool {
  auto const x = _mm_loadu_si128(reinterpret_cast<__m128i const*>(text));
  // Only octets from 0x40 on have a case; "-" and digits must be themselves.
  auto const case_bit = _mm_srli_epi16(_mm_and_si128(x, _mm_set1_epi8(0x40)), 1);
  auto const folded = _mm_or_si128(x, case_bit);
  auto const wanted = _mm_loadu_si128(reinterpret_cast<__m128i const*>(name));
  auto const differ = ~static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(folded, wanted)));
  return (differ & ((1U << size) - 1)) == 0;
}
#endif

/// As `find_known_field`, for a name with `readable` octets from its first on in the buffer.
[[nodiscard, gnu::always_inline]] inline auto find_known(
    char const* name, std::size_t size, [[maybe_unused]] std::size_t readable) noexcept
    -> known_field {
  if (size < known_name_size_min) {
    return known_field::other;
  }
  known_entry const& entry = known_entries[slot_of(name[0], name[size - 2], size)];
  if (entry.size != size) {
    return known_field::other;
  }
#if defined(__SSE2__)
  if (readable >= 16) {
    bool const same = size <= 16 ? same_16(name, entry.name.data(), size)
                                 : same_16(name, entry.name.data(), 16) &&
                                       same_16(name + size - 16, entry.name.data() + size - 16, 16);
    return same ? entry.field : known_field::other;
  }
#endif
  return equal_ignoring_case({name, size}, {entry.name.data(), size}) ? entry.field
                                                                      : known_field::other;
}

}  // namespace tidegate::TIDEGATE_ABI::wire::detail
