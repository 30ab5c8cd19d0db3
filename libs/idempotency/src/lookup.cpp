// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency/lookup.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/hex.hpp>

#include <algorithm>

namespace tidegate::TIDEGATE_ABI::idempotency {

namespace {

/// One key of its own for each purpose, so that no code of one can pass for one of another.
[[nodiscard]] auto derived(std::span<std::byte const> master, std::string_view purpose) noexcept
    -> hmac_sha256 {
  hmac_sha256 code(master);
  code.update(purpose);
  auto const key = code.finish();
  return hmac_sha256(std::span<std::byte const>(key));
}

void update_with_size(hmac_sha256& code, std::string_view text) noexcept {
  std::array<std::byte, 8> size{};
  for (std::size_t i = 0; i < size.size(); ++i) {
    size[i] = static_cast<std::byte>(static_cast<std::uint64_t>(text.size()) >> (56 - 8 * i));
  }
  code.update(std::span<std::byte const>(size));
  code.update(text);
}

}  // namespace

auto to_string(lookup_key const& key) -> std::string {
  return to_hex(key.octets);
}

auto parse_lookup_key(std::string_view text) noexcept -> std::optional<lookup_key> {
  lookup_key key;
  if (text.size() != 2 * key.octets.size()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto const digit = hex_value(text[i]);
    if (digit < 0 || is_upper(text[i])) {
      return std::nullopt;
    }
    key.octets[i / 2] = key.octets[i / 2] << 4 | static_cast<std::byte>(digit);
  }
  return key;
}

secret::secret(std::span<std::byte const> master) noexcept
    : lookups_(derived(master, "tidegate idempotency lookup")),
      fingerprints_(derived(master, "tidegate idempotency fingerprint")) {}

auto secret::lookup(std::string_view scope, std::string_view key) const noexcept -> lookup_key {
  auto code = lookups_;
  update_with_size(code, scope);
  auto code_of_scope = code;
  update_with_size(code, key);
  lookup_key made{code.finish()};
  auto const owner = code_of_scope.finish();
  std::copy_n(owner.begin(), sizeof(std::uint64_t), made.octets.begin() + lookup_key::scope_offset);
  return made;
}

}  // namespace tidegate::TIDEGATE_ABI::idempotency
