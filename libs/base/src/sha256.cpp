// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/sha256.hpp>

#include <algorithm>
#include <bit>
#include <cstring>

namespace tidegate {

namespace {

/// The first 32 bits of the fractional parts of the square roots of the first 8 primes (section 5.3.3).
constexpr std::array<std::uint32_t, 8> initial_state = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

/// The same of the cube roots of the first 64 primes (section 4.2.2).
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

template <class Word>
void store_big_endian(std::byte* bytes, Word word) noexcept {
  word = std::endian::native == std::endian::big ? word : std::byteswap(word);
  std::memcpy(bytes, &word, sizeof word);
}

[[nodiscard]] auto as_span(std::string_view text) noexcept -> std::span<std::byte const> {
  return std::as_bytes(std::span(text));
}

}  // namespace

sha256::sha256() noexcept : state_(initial_state) {}

/// Section 6.2.2, over several blocks.
void sha256::compress(std::byte const* blocks, std::size_t count) noexcept {
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
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t t = 0; t < 64; ++t) {
      auto const sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      auto const choice = (e & f) ^ (~e & g);
      auto const t1 = h + sum1 + choice + round_constants[t] + w[t];
      auto const sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      auto const majority = (a & b) ^ (a & c) ^ (b & c);
      h = g;
      g = f;
      f = e;
      e = d + t1;
      d = c;
      c = b;
      b = a;
      a = t1 + sum0 + majority;
    }
    std::array<std::uint32_t, 8> const last = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state_.size(); ++i) {
      state_[i] += last[i];
    }
  }
}

void sha256::update(std::span<std::byte const> bytes) noexcept {
  if (bytes.empty()) {
    return;
  }
  auto const held = static_cast<std::size_t>(size_ % block_size);
  size_ += bytes.size();
  if (held > 0) {
    auto const taken = std::min(bytes.size(), block_size - held);
    std::memcpy(block_.data() + held, bytes.data(), taken);
    if (held + taken < block_size) {
      return;
    }
    compress(block_.data(), 1);
    bytes = bytes.subspan(taken);
  }
  auto const whole = bytes.size() / block_size;
  compress(bytes.data(), whole);
  auto const rest = bytes.subspan(whole * block_size);
  std::copy(rest.begin(), rest.end(), block_.begin());
}

void sha256::update(std::string_view bytes) noexcept {
  update(as_span(bytes));
}

auto sha256::finish() noexcept -> sha256_digest {
  // A one bit, zeros, and the size in bits at the end of a block (section 5.1.1).
  constexpr std::size_t size_at = block_size - 8;
  auto used = static_cast<std::size_t>(size_ % block_size);
  block_[used] = std::byte{0x80};
  ++used;
  if (used > size_at) {
    std::fill(block_.begin() + static_cast<std::ptrdiff_t>(used), block_.end(), std::byte{0});
    compress(block_.data(), 1);
    used = 0;
  }
  std::fill(block_.begin() + static_cast<std::ptrdiff_t>(used), block_.end(), std::byte{0});
  store_big_endian(block_.data() + size_at, size_ * 8);
  compress(block_.data(), 1);

  sha256_digest digest;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (std::size_t i = 0; i < state_.size(); ++i) {
    store_big_endian(digest.data() + 4 * i, state_[i]);
  }
  *this = sha256();
  return digest;
}

auto sha256::of(std::span<std::byte const> message) noexcept -> sha256_digest {
  sha256 hash;
  hash.update(message);
  return hash.finish();
}

auto sha256::of(std::string_view message) noexcept -> sha256_digest {
  return of(as_span(message));
}

hmac_sha256::hmac_sha256(std::span<std::byte const> key) noexcept {
  std::array<std::byte, sha256::block_size> padded{};
  if (key.size() > padded.size()) {
    auto const digest = sha256::of(key);
    std::copy(digest.begin(), digest.end(), padded.begin());
  } else {
    std::copy(key.begin(), key.end(), padded.begin());
  }
  auto inner_pad = padded;
  auto outer_pad = padded;
  for (std::size_t i = 0; i < padded.size(); ++i) {
    inner_pad[i] ^= std::byte{0x36};
    outer_pad[i] ^= std::byte{0x5c};
  }
  keyed_inner_.update(inner_pad);
  keyed_outer_.update(outer_pad);
  inner_ = keyed_inner_;
}

hmac_sha256::hmac_sha256(std::string_view key) noexcept : hmac_sha256(as_span(key)) {}

auto hmac_sha256::finish() noexcept -> sha256_digest {
  auto outer = keyed_outer_;
  outer.update(inner_.finish());
  inner_ = keyed_inner_;
  return outer.finish();
}

auto hmac_sha256::of(std::string_view key, std::string_view message) noexcept -> sha256_digest {
  hmac_sha256 code(key);
  code.update(message);
  return code.finish();
}

auto equal_in_constant_time(std::span<std::byte const> a, std::span<std::byte const> b) noexcept
    -> bool {
  if (a.size() != b.size()) {
    return false;
  }
  // volatile, so that no compiler finds a way to stop at the first difference.
  unsigned char volatile difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = difference | std::to_integer<unsigned char>(a[i] ^ b[i]);
  }
  return difference == 0;
}

auto equal_in_constant_time(std::string_view a, std::string_view b) noexcept -> bool {
  return equal_in_constant_time(as_span(a), as_span(b));
}

}  // namespace tidegate
