// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "phases/exchange.hpp"

namespace tidegate::gateway {

/// The exchanges of one thread: those that are kept for reuse, and those without their client.
class exchange_pool {
 public:
  explicit exchange_pool(worker& on);
  exchange_pool(exchange_pool const&) = delete;
  auto operator=(exchange_pool const&) -> exchange_pool& = delete;

  /// An exchange for one request; it goes back when it is over.
  [[nodiscard]] auto take() -> std::unique_ptr<exchange> {
    if (free_.empty()) [[unlikely]] {
      return std::make_unique<exchange>(worker_);
    }
    auto out = std::move(free_.back());
    free_.pop_back();
    return out;
  }
  void recycle(std::unique_ptr<exchange> done) {
    if (done->is_detached()) [[unlikely]] {
      keep_detached(std::move(done));
    } else if (free_.size() < exchanges_max) {
      free_.push_back(std::move(done));
    }
  }
  /// An exchange that went on without its client is over.
  void reclaim(exchange& done);

 private:
  /// That are kept for reuse. Their room is made at the start, so that keeping one allocates
  /// nothing.
  static constexpr std::size_t exchanges_max = 256;

  void keep_detached(std::unique_ptr<exchange> done);

  worker& worker_;
  std::vector<std::unique_ptr<exchange>> free_;
  std::unordered_map<exchange*, std::unique_ptr<exchange>> detached_;
};

}  // namespace tidegate::gateway
