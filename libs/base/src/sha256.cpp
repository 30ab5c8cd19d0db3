// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/sha256.hpp>

#include "sha256_compress.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tidegate::TIDEGATE_ABI {

namespace {

/// The first 32 bits of the fractional parts of the square roots of the first 8 primes (section
/// 5.3.3).
constexpr std::array<std::uint32_t, 8> initial_state = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

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
    detail::compress(state_, block_.data(), 1);
    bytes = bytes.subspan(taken);
  }
  auto const whole = bytes.size() / block_size;
  detail::compress(state_, bytes.data(), whole);
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
    detail::compress(state_, block_.data(), 1);
    used = 0;
  }
  std::fill(block_.begin() + static_cast<std::ptrdiff_t>(used), block_.end(), std::byte{0});
  store_big_endian(block_.data() + size_at, size_ * 8);
  detail::compress(state_, block_.data(), 1);

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

}  // namespace tidegate::TIDEGATE_ABI
