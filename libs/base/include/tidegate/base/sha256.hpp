// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tidegate::TIDEGATE_ABI {

/// What SHA-256 makes of a message.
using sha256_digest = std::array<std::byte, 32>;

/// SHA-256 (FIPS 180-4, section 6.2) of a message that may come in pieces. Allocates nothing; a
/// copy goes on by itself from what both have seen.
class sha256 {
 public:
  sha256() noexcept;

  /// Takes the next piece of the message.
  void update(std::span<std::byte const> bytes) noexcept;
  void update(std::string_view bytes) noexcept;

  /// The digest of all that was given since the last `finish`; then it starts over.
  [[nodiscard]] auto finish() noexcept -> sha256_digest;

  /// The digest of one message that is there as a whole.
  [[nodiscard]] static auto of(std::span<std::byte const> message) noexcept -> sha256_digest;
  [[nodiscard]] static auto of(std::string_view message) noexcept -> sha256_digest;

  /// How many octets are hashed at a time.
  static constexpr std::size_t block_size = 64;

 private:
  std::array<std::uint32_t, 8> state_;
  std::uint64_t size_ = 0;                     // of the message so far, in bytes
  std::array<std::byte, block_size> block_{};  // its last size_ % block_size bytes
};

/// HMAC (RFC 2104) with SHA-256 of a message that may come in pieces. A key longer than a block is
/// replaced by its digest. Allocates nothing.
class hmac_sha256 {
 public:
  /// `key` may die afterwards. What the key was cannot be told from a copy, but everything that the
  /// key signs can be: keep objects as secret as keys.
  explicit hmac_sha256(std::span<std::byte const> key) noexcept;
  explicit hmac_sha256(std::string_view key) noexcept;

  /// Takes the next piece of the message.
  void update(std::span<std::byte const> bytes) noexcept { inner_.update(bytes); }
  void update(std::string_view bytes) noexcept { inner_.update(bytes); }

  /// The code of all that was given since the last `finish`; then it starts over with the same key.
  [[nodiscard]] auto finish() noexcept -> sha256_digest;

  /// The code of one message that is there as a whole.
  [[nodiscard]] static auto of(std::string_view key, std::string_view message) noexcept
      -> sha256_digest;

 private:
  sha256 keyed_inner_;  // what both hashes are when they have seen the key
  sha256 keyed_outer_;
  sha256 inner_;
};

/// Whether both hold the same bytes, in a time that depends on their sizes only: for what an
/// attacker may guess at byte by byte, such as codes and digests of tokens.
[[nodiscard]] auto equal_in_constant_time(std::span<std::byte const> a,
                                          std::span<std::byte const> b) noexcept -> bool;
[[nodiscard]] auto equal_in_constant_time(std::string_view a, std::string_view b) noexcept -> bool;

}  // namespace tidegate::TIDEGATE_ABI
