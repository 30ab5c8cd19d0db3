// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/idempotency/record.hpp>

#include <mutex>
#include <unordered_map>

namespace tidegate::gateway {

/// The claims whose requests this process has under way. A store that loses its records, by
/// FLUSHALL or by a replica that took over too early, does not make the gateway send again what it
/// knows to be running. As many as there are requests with keys under way. From any thread.
class running_keys {
 public:
  void add(idempotency::lookup_key const& key, idempotency::record const& claim) {
    auto& part = part_of(key);
    std::lock_guard const lock(part.mutex);
    part.claims.insert_or_assign(key, claim);
  }
  /// The claim with this token is over.
  void remove(idempotency::lookup_key const& key, idempotency::fencing_token token) {
    auto& part = part_of(key);
    std::lock_guard const lock(part.mutex);
    auto const found = part.claims.find(key);
    if (found != part.claims.end() && found->second.token == token) {
      part.claims.erase(found);
    }
  }
  /// An operator has said what became of it: that counts from now on.
  void forget(idempotency::lookup_key const& key) {
    auto& part = part_of(key);
    std::lock_guard const lock(part.mutex);
    part.claims.erase(key);
  }
  [[nodiscard]] auto find(idempotency::lookup_key const& key) const
      -> std::optional<idempotency::record> {
    auto const& part = part_of(key);
    std::lock_guard const lock(part.mutex);
    auto const found = part.claims.find(key);
    return found == part.claims.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  struct part {
    mutable std::mutex mutex;
    std::unordered_map<idempotency::lookup_key, idempotency::record, idempotency::lookup_key_hash>
        claims;
  };
  static constexpr std::size_t parts_count = 16;

  [[nodiscard]] auto part_of(idempotency::lookup_key const& key) const noexcept -> part const& {
    return parts_[std::to_integer<std::size_t>(key.octets.back()) % parts_count];
  }
  [[nodiscard]] auto part_of(idempotency::lookup_key const& key) noexcept -> part& {
    return parts_[std::to_integer<std::size_t>(key.octets.back()) % parts_count];
  }

  std::array<part, parts_count> parts_;
};

}  // namespace tidegate::gateway
