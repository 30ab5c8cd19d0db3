// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store/store_health.hpp>

namespace tidegate::TIDEGATE_ABI::store {

void store_health::note(store_error const* error) {
  bool const fails = error != nullptr;
  if (failing_.load(std::memory_order_relaxed) == fails) {
    return;
  }
  constexpr std::chrono::seconds pause{1};
  std::lock_guard const lock(mutex_);
  auto const now = std::chrono::steady_clock::now();
  bool const is_first = changed_ == std::chrono::steady_clock::time_point();
  if (failing_.load(std::memory_order_relaxed) == fails || (!is_first && now < changed_ + pause)) {
    return;
  }
  changed_ = now;
  since_ = std::chrono::system_clock::now();
  failing_.store(fails, std::memory_order_relaxed);
  if (report_) {
    std::string line(fails ? said_.fails : said_.works);
    if (auto const at = line.find("{}"); fails && at != std::string::npos) {
      line.replace(at, 2, error->text);
    }
    report_(fails, line);
  }
}

auto store_health::failing_since() const -> std::optional<std::chrono::system_clock::time_point> {
  std::lock_guard const lock(mutex_);
  return is_failing() ? std::optional(since_) : std::nullopt;
}

}  // namespace tidegate::TIDEGATE_ABI::store
