// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/pacing.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace tidegate::TIDEGATE_ABI::ratelimit {

pacers::pacers(pacing_options const& options, std::size_t size_max)
    : options_(options), size_max_(std::max<std::size_t>(size_max, 1)) {}

auto pacers::of(std::string_view origin, std::string_view partition) -> pacer& {
  // No origin has a line feed in it, so two keys are never the same by chance.
  std::string key;
  key.reserve(origin.size() + 1 + partition.size());
  key.append(origin).push_back('\n');
  key.append(partition);
  if (auto const found = by_key_.find(key); found != by_key_.end()) {
    by_use_.splice(by_use_.begin(), by_use_, found->second);
    return by_use_.front().paces;
  }
  if (by_use_.size() >= size_max_) {
    auto idle = std::find_if(by_use_.rbegin(), by_use_.rend(),
                             [](entry const& e) { return e.paces.in_flight() == 0; });
    if (idle != by_use_.rend()) {
      by_key_.erase(idle->key);
      by_use_.erase(std::next(idle).base());
    }
  }
  by_use_.push_front({std::move(key), pacer(options_)});
  by_key_.emplace(by_use_.front().key, by_use_.begin());
  return by_use_.front().paces;
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
