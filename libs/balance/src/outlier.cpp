// SPDX-License-Identifier: Apache-2.0
#include <tidegate/balance/outlier.hpp>

#include <algorithm>

namespace tidegate::balance {

auto outlier::failed(outlier_settings const& settings, instant now) -> bool {
  if (now < until_) {  // what was under way when it was ejected says nothing new
    return false;
  }
  auto const needed = static_cast<std::size_t>(std::max<std::int64_t>(settings.failures, 1));
  while (times_.size() >= needed) {  // only the last so many count
    times_.erase(times_.begin());
  }
  times_.push_back(now);
  return times_.size() == needed && now - times_.front() <= settings.within;
}

auto outlier::eject(outlier_settings const& settings, instant now) -> std::chrono::nanoseconds {
  bool const did_well = until_ == instant::min() || now - until_ >= lasted_;
  lasted_ =
      did_well ? settings.eject : std::clamp(lasted_ * 2, settings.eject, settings.eject * longest);
  until_ = now + lasted_;
  times_.clear();
  return lasted_;
}

}  // namespace tidegate::balance
