// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

/// Authenticated encryption with associated data (RFC 5116), by AES-256-GCM.
namespace tidegate::TIDEGATE_ABI::aead {

/// How many octets a nonce has, and the tag that is appended.
inline constexpr std::size_t nonce_size = 12;
inline constexpr std::size_t tag_size = 16;

/// What a text is sealed by, and what it must be opened by. Borrows all of it.
struct seal {
  std::span<std::byte const, 32> key;
  /// Never used twice with one key: two texts that were would betray each other and the key of the
  /// tag.
  std::span<std::byte const, nonce_size> nonce;
  std::string_view associated_data;  ///< signed along with the text, not stored
};

/// Appends `text` in sealed form, `tag_size` octets longer. False when that cannot be done, for
/// want of memory or because `text` is larger than 2 GB; then `out` is as it was.
[[nodiscard]] auto append_sealed(std::string& out, seal const& by, std::string_view text) -> bool;

/// Appends what was sealed. False when it was not sealed by this key, nonce and associated data, or
/// was changed since; then `out` is as it was.
[[nodiscard]] auto append_opened(std::string& out, seal const& by, std::string_view sealed) -> bool;

}  // namespace tidegate::TIDEGATE_ABI::aead
