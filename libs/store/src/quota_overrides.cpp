// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store/quota_overrides.hpp>

#include <algorithm>
#include <mutex>

namespace tidegate::TIDEGATE_ABI::store {

auto quota_overrides::find(std::uint32_t policy_id, std::string_view partition, instant now) const
    -> std::optional<standing> {
  std::shared_lock const lock(mutex_);
  auto const found = entries_.find(key_view(policy_id, partition));
  if (found == entries_.end() || found->second.until <= now) {
    return std::nullopt;
  }
  return found->second;
}

auto quota_overrides::set(entry made) -> bool {
  std::unique_lock const lock(mutex_);
  auto const found = entries_.find(key_view(made.policy_id, made.partition));
  if (found != entries_.end()) {
    found->second = {made.quota, made.until};
    return true;
  }
  if (entries_.size() >= entries_max ||
      made.partition.size() > partition_octets_max - std::min(octets_, partition_octets_max)) {
    return false;
  }
  octets_ += made.partition.size();
  entries_.emplace(std::pair(made.policy_id, std::move(made.partition)),
                   standing{made.quota, made.until});
  size_.store(entries_.size(), std::memory_order_release);
  return true;
}

void quota_overrides::erase(table::iterator at) {
  octets_ -= at->first.second.size();
  entries_.erase(at);
  size_.store(entries_.size(), std::memory_order_release);
}

auto quota_overrides::remove(std::uint32_t policy_id, std::string_view partition) -> bool {
  std::unique_lock const lock(mutex_);
  auto const found = entries_.find(key_view(policy_id, partition));
  if (found == entries_.end()) {
    return false;
  }
  erase(found);
  return true;
}

auto quota_overrides::take_ended(instant now) -> std::vector<entry> {
  std::vector<entry> ended;
  std::unique_lock const lock(mutex_);
  for (auto at = entries_.begin(); at != entries_.end();) {
    auto const here = at++;
    if (here->second.until <= now) {
      ended.push_back(
          {here->first.first, here->first.second, here->second.quota, here->second.until});
      erase(here);
    }
  }
  return ended;
}

auto quota_overrides::list() const -> std::vector<entry> {
  std::vector<entry> all;
  {
    std::shared_lock const lock(mutex_);
    all.reserve(entries_.size());
    for (auto const& [key, each] : entries_) {
      all.push_back({key.first, key.second, each.quota, each.until});
    }
  }
  std::ranges::stable_sort(all, {}, &entry::until);
  return all;
}

}  // namespace tidegate::TIDEGATE_ABI::store
