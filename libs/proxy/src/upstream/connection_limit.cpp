// SPDX-License-Identifier: Apache-2.0
#include "upstream/connection_limit.hpp"

#include <algorithm>

namespace tidegate::gateway {

namespace {

/// How long a request waits at least where a connection of another thread rests, which is closed
/// for it.
constexpr std::chrono::nanoseconds handover = std::chrono::milliseconds(100);

}  // namespace

auto connection_limit::open() -> bool {
  if (!max_) {
    return true;
  }
  if (counts().open.fetch_add(1, std::memory_order_relaxed) < *max_) {
    return true;
  }
  counts().open.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

void connection_limit::add_open() {
  if (max_) {
    counts().open.fetch_add(1, std::memory_order_relaxed);
  }
}

void connection_limit::closed(bool rested) {
  if (!max_) {
    return;
  }
  counts().open.fetch_sub(1, std::memory_order_relaxed);
  if (rested) {
    counts().idle.fetch_sub(1, std::memory_order_relaxed);
  }
  tell();
}

void connection_limit::rests() {
  if (max_) {
    counts().idle.fetch_add(1, std::memory_order_relaxed);
    tell();
  }
}

void connection_limit::is_used_again() {
  if (max_) {
    counts().idle.fetch_sub(1, std::memory_order_relaxed);
  }
}

void connection_limit::has_room() const {
  if (max_ && !waiting_.empty()) {
    tell();
  }
}

auto connection_limit::may_wait_until() const -> std::optional<instant> {
  auto wait = max_wait_;
  if (counts().idle.load(std::memory_order_relaxed) > 0) {
    wait = std::max(wait, handover);
  }
  return wait.count() > 0 &&
                 counts().waiting.load(std::memory_order_relaxed) < connection_counts::waiting_max
             ? std::optional(worker_.loop.now() + wait)
             : std::nullopt;
}

void connection_limit::add_waiting(request_pause& who, bool is_next) {
  is_next ? waiting_.push_front(&who) : waiting_.push_back(&who);
  counts().waiting.fetch_add(1, std::memory_order_relaxed);
  if (counts().idle.load(std::memory_order_relaxed) > 0) {
    tell();
  }
}

void connection_limit::remove_waiting(request_pause& who) noexcept {
  std::erase(waiting_, &who);
  counts().waiting.fetch_sub(1, std::memory_order_relaxed);
}

auto connection_limit::others_wait() const noexcept -> bool {
  return counts().waiting.load(std::memory_order_relaxed) >
         static_cast<std::int64_t>(waiting_.size());
}

auto connection_limit::may_open() const noexcept -> bool {
  return !max_ || counts().open.load(std::memory_order_relaxed) < *max_;
}

}  // namespace tidegate::gateway
