// SPDX-License-Identifier: Apache-2.0
#include <tidegate/balance/name_record.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace tidegate::balance {

auto name_record::answered(name_answer answer, resolve_bounds const& within, instant now) -> bool {
  auto& found = answer.addresses;
  std::ranges::copy_if(addresses_, std::back_inserter(found), [&](http::ip_address const& old) {
    return old.is_v4() ? answer.lacks_v4 : answer.lacks_v6;
  });
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  if (found.empty()) {
    failed(within, now);
    return false;
  }
  found.resize(std::min(found.size(), addresses_max));
  failures_ = 0;
  due_ = now + std::clamp(answer.good_for.value_or(within.max), within.min, within.max);
  if (std::exchange(known_, true) && found == addresses_) {
    return false;
  }
  addresses_ = std::move(found);
  return true;
}

void name_record::failed(resolve_bounds const& within, instant now) noexcept {
  auto const longest = std::clamp<std::chrono::nanoseconds>(pause_max, within.min, within.max);
  auto pause = within.min;
  for (unsigned i = 0; i < failures_ && pause < longest; ++i) {
    pause *= 2;
  }
  due_ = now + std::min(pause, longest);
  ++failures_;
}

}  // namespace tidegate::balance
