// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "keys/stored_record.hpp"

#include <tidegate/store/idempotency_store.hpp>
#include <tidegate/store_redis/resp.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tidegate::store_redis {

/// How many records and unknown outcomes each bucket has, by the last answers. Written by one
/// thread, read by any.
class bucket_counts {
 public:
  void set_records(std::size_t bucket, resp_value const& count) noexcept {
    records_[bucket].store(std::max<std::int64_t>(count.integer, 0), std::memory_order_relaxed);
  }
  void set_unknown(std::size_t bucket, resp_value const& count) noexcept {
    unknown_and_one_[bucket].store(std::max<std::int64_t>(count.integer, 0) + 1,
                                   std::memory_order_relaxed);
  }

  [[nodiscard]] auto used() const -> store::idempotency_store::usage {
    store::idempotency_store::usage all{.records = static_cast<std::size_t>(records()),
                                        .unknown = 0};
    for (auto const& each : unknown_and_one_) {
      auto const count = each.load(std::memory_order_relaxed);
      if (count == 0) {
        all.unknown.reset();
        break;
      }
      *all.unknown += static_cast<std::size_t>(count - 1);
    }
    return all;
  }

  /// How many records a bucket may have when all of them may have `records_max`.
  [[nodiscard]] auto room_in(std::size_t bucket, std::size_t records_max) const noexcept
      -> std::int64_t {
    auto const others = records() - records_[bucket].load(std::memory_order_relaxed);
    return std::max<std::int64_t>(static_cast<std::int64_t>(records_max) - others, 0);
  }

 private:
  [[nodiscard]] auto records() const noexcept -> std::int64_t {
    std::int64_t sum = 0;
    for (auto const& each : records_) {
      sum += each.load(std::memory_order_relaxed);
    }
    return sum;
  }

  std::array<std::atomic<std::int64_t>, buckets> records_{};
  /// How many unknown outcomes each bucket has, and one more; 0 while that is not known.
  std::array<std::atomic<std::int64_t>, buckets> unknown_and_one_{};
};

}  // namespace tidegate::store_redis
