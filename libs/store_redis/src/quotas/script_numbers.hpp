// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/connection.hpp"

#include <tidegate/base/result.hpp>
#include <tidegate/ratelimit/limiter.hpp>
#include <tidegate/store/idempotency_store.hpp>
#include <tidegate/store_redis/resp.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tidegate::store_redis {

/// An answer of a quota script: whole numbers, as many as were awaited.
class script_numbers {
 public:
  /// The numbers are those of `got`, which has to live as long.
  [[nodiscard]] static auto read(answer const& got, std::size_t count)
      -> result<script_numbers, store::store_error>;

  [[nodiscard]] auto next() noexcept -> std::int64_t { return items_[at_++].integer; }
  /// What remains, reset, retry and their nanoseconds.
  [[nodiscard]] auto next_verdict(bool admitted) noexcept -> ratelimit::verdict;

 private:
  explicit script_numbers(std::span<resp_value const> items) : items_(items) {}

  std::span<resp_value const> items_;
  std::size_t at_ = 0;
};

}  // namespace tidegate::store_redis
