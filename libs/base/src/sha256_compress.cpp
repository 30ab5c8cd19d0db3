// SPDX-License-Identifier: Apache-2.0
#include "sha256_compress.hpp"

#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace tidegate::TIDEGATE_ABI::detail {

namespace {

constexpr std::size_t block_size = 64;

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (section
/// 4.2.2).
constexpr std::array<std::uint32_t, 64> round_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

[[nodiscard]] auto load_big_endian(std::byte const* bytes) noexcept -> std::uint32_t {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return std::endian::native == std::endian::big ? word : std::byteswap(word);
}

/// One round. The letters are those of the specification; the caller passes them on by one each
/// time, so that no value has to move.
inline void round(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t& d,
                  std::uint32_t e, std::uint32_t f, std::uint32_t g, std::uint32_t& h,
                  std::uint32_t constant_and_word) noexcept {
  auto const sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
  auto const choice = (e & f) ^ (~e & g);
  auto const t1 = h + sum1 + choice + constant_and_word;
  auto const sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
  auto const majority = (a & b) ^ (a & c) ^ (b & c);
  d += t1;
  h = t1 + sum0 + majority;
}

}  // namespace

void compress_portable(sha256_words& state, std::byte const* blocks, std::size_t count) noexcept {
  for (; count > 0; --count, blocks += block_size) {
    std::array<std::uint32_t, 64> w;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    for (std::size_t t = 0; t < 16; ++t) {
      w[t] = load_big_endian(blocks + 4 * t);
    }
    for (std::size_t t = 16; t < 64; ++t) {
      auto const s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
      auto const s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
      w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t t = 0; t < 64; t += 8) {
      auto const* const k = round_constants.data() + t;
      auto const* const m = w.data() + t;
      round(a, b, c, d, e, f, g, h, k[0] + m[0]);
      round(h, a, b, c, d, e, f, g, k[1] + m[1]);
      round(g, h, a, b, c, d, e, f, k[2] + m[2]);
      round(f, g, h, a, b, c, d, e, k[3] + m[3]);
      round(e, f, g, h, a, b, c, d, k[4] + m[4]);
      round(d, e, f, g, h, a, b, c, k[5] + m[5]);
      round(c, d, e, f, g, h, a, b, k[6] + m[6]);
      round(b, c, d, e, f, g, h, a, k[7] + m[7]);
    }
    sha256_words const last = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state.size(); ++i) {
      state[i] += last[i];
    }
  }
}

#if defined(__x86_64__)

// The instructions want the letters a, b, e, f in one register and c, d, g, h in the other, from
// the highest word down.
namespace {

/// Four rounds with the words in `w0`, which then becomes the four that come sixteen later; `w1` to
/// `w3` are those between.
[[gnu::target("sha,sse4.1")]] inline void four_rounds(__m128i& abef, __m128i& cdgh, __m128i& w0,
                                                      __m128i w1, __m128i w2, __m128i w3,
                                                      std::uint32_t const* constants) noexcept {
  auto const k = _mm_loadu_si128(reinterpret_cast<__m128i const*>(constants));
  auto const sum = _mm_add_epi32(w0, k);
  cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
  abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
  auto const seven_before = _mm_alignr_epi8(w3, w2, 4);
  w0 = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), seven_before), w3);
}

[[gnu::target("sha,sse4.1")]] inline auto load_words(std::byte const* bytes) noexcept -> __m128i {
  auto const swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  return _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<__m128i const*>(bytes)), swap);
}

}  // namespace

auto has_sha_instructions() noexcept -> bool {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  bool const has_sse = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_1) != 0;
  return has_sse && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
}

[[gnu::target("sha,sse4.1")]] void compress_x86(sha256_words& state, std::byte const* blocks,
                                                std::size_t count) noexcept {
  auto* const words = reinterpret_cast<__m128i*>(state.data());
  auto const cdab = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1);
  auto const efgh = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
  auto abef = _mm_alignr_epi8(cdab, efgh, 8);
  auto cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  for (; count > 0; --count, blocks += block_size) {
    auto const abef_before = abef;
    auto const cdgh_before = cdgh;
    auto w0 = load_words(blocks);
    auto w1 = load_words(blocks + 16);
    auto w2 = load_words(blocks + 32);
    auto w3 = load_words(blocks + 48);
    for (std::size_t t = 0; t < 64; t += 16) {
      auto const* const k = round_constants.data() + t;
      four_rounds(abef, cdgh, w0, w1, w2, w3, k);
      four_rounds(abef, cdgh, w1, w2, w3, w0, k + 4);
      four_rounds(abef, cdgh, w2, w3, w0, w1, k + 8);
      four_rounds(abef, cdgh, w3, w0, w1, w2, k + 12);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  auto const feba = _mm_shuffle_epi32(abef, 0x1b);
  auto const dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

void compress(sha256_words& state, std::byte const* blocks, std::size_t count) noexcept {
  static bool const is_fast = has_sha_instructions();
  (is_fast ? compress_x86 : compress_portable)(state, blocks, count);
}

#else

void compress(sha256_words& state, std::byte const* blocks, std::size_t count) noexcept {
  compress_portable(state, blocks, count);
}

#endif

}  // namespace tidegate::TIDEGATE_ABI::detail
