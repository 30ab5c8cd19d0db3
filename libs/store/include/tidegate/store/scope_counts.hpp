// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/idempotency/lookup.hpp>

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace tidegate::TIDEGATE_ABI::store {

/// How many keys each scope has. Takes memory for scopes that have any. Not for several threads at
/// once.
class scope_counts {
 public:
  /// How many keys the scope of this one has.
  [[nodiscard]] auto of(idempotency::lookup_key const& key) const -> std::size_t {
    auto const found = counts_.find(key.scope());
    return found == counts_.end() ? 0 : found->second;
  }
  /// A key of a scope comes or goes.
  void add(idempotency::lookup_key const& key) { ++counts_[key.scope()]; }
  void remove(idempotency::lookup_key const& key) {
    auto const found = counts_.find(key.scope());
    if (found != counts_.end() && --found->second == 0) {
      counts_.erase(found);
    }
  }
  /// How many bytes the counts take.
  [[nodiscard]] auto memory() const noexcept -> std::size_t {
    constexpr std::size_t node =
        4 * sizeof(void*);  // what a node takes here, with its place in the heap
    return counts_.size() * node + counts_.bucket_count() * sizeof(void*);
  }

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> counts_;
};

}  // namespace tidegate::TIDEGATE_ABI::store
