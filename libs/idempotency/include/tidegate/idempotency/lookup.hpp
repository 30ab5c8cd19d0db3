// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/sha256.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// By what a record is found: a code of scope and key that cannot be made without the secret.
namespace tidegate::TIDEGATE_ABI::idempotency {

/// Stands for one key of one scope. The key cannot be told from it, so it may be stored, logged and
/// shown where the key may not.
struct lookup_key {
  sha256_digest octets{};
  /// The same for all keys of a scope, and different for others as far as chance lets it; so that
  /// what a scope takes can be bounded.
  [[nodiscard]] auto scope() const noexcept -> std::uint64_t {
    std::uint64_t tag = 0;
    std::memcpy(&tag, octets.data() + scope_offset, sizeof tag);
    return tag;
  }
  static constexpr std::size_t scope_offset = 16;
  /// As memory: octet by octet takes ten times as long.
  auto operator==(lookup_key const& other) const noexcept -> bool {
    return std::memcmp(octets.data(), other.octets.data(), sizeof octets) == 0;
  }
};

/// For hash tables: the octets are as good as random without the secret.
struct lookup_key_hash {
  [[nodiscard]] auto operator()(lookup_key const& key) const noexcept -> std::size_t {
    std::size_t hash = 0;
    std::memcpy(&hash, key.octets.data(), sizeof hash);
    return hash;
  }
};

/// 64 hexadecimal digits in lower case.
[[nodiscard]] auto to_string(lookup_key const& key) -> std::string;
/// Reads what `to_string` wrote, and nothing else.
[[nodiscard]] auto parse_lookup_key(std::string_view text) noexcept -> std::optional<lookup_key>;

/// What lookup keys and fingerprints are made with. Gateways that share a store share it; with
/// another one no record is found any more.
class secret {
 public:
  /// Different keys are derived from `master` for each purpose; it may die afterwards. It should
  /// have 32 random octets.
  explicit secret(std::span<std::byte const> master) noexcept;

  /// HMAC-SHA-256 over scope and key with their lengths, so that no two pairs have one encoding.
  /// Eight of its octets are instead those of a code of the scope alone.
  [[nodiscard]] auto lookup(std::string_view scope, std::string_view key) const noexcept
      -> lookup_key;

  /// The code that fingerprints are made with, at its beginning.
  [[nodiscard]] auto fingerprints() const noexcept -> hmac_sha256 const& { return fingerprints_; }

 private:
  hmac_sha256 lookups_;
  hmac_sha256 fingerprints_;
};

}  // namespace tidegate::TIDEGATE_ABI::idempotency
