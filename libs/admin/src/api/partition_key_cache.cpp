// SPDX-License-Identifier: Apache-2.0
#include "api/partition_key_cache.hpp"

#include "api/api_quotas.hpp"

#include <iterator>
#include <utility>

namespace tidegate::gateway {

void partition_key_cache::add(std::string_view partition) {
  if (partition.size() > octets_max) {
    return;
  }
  auto key = partition_key_of(partition);
  if (auto const found = by_key_.find(key); found != by_key_.end()) {
    entries_.splice(entries_.end(), entries_, found->second);
    return;
  }
  while (entries_.size() >= entries_max || octets_ + partition.size() > octets_max) {
    octets_ -= entries_.front().partition.size();
    by_key_.erase(entries_.front().key);
    entries_.pop_front();
  }
  octets_ += partition.size();
  entries_.push_back({std::move(key), std::string(partition)});
  by_key_.emplace(entries_.back().key, std::prev(entries_.end()));
}

auto partition_key_cache::find(std::string_view key) const -> std::string const* {
  auto const found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &found->second->partition;
}

}  // namespace tidegate::gateway
