// SPDX-License-Identifier: Apache-2.0
#include "quotas/script_numbers.hpp"

#include <algorithm>
#include <chrono>

namespace tidegate::store_redis {

namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using store::store_error;
using store::store_fault;

/// Scripts know no larger numbers, and as microseconds they can be added.
auto is_sensible(resp_value const& item) -> bool {
  return item.is_integer() && item.integer >= 0 && item.integer < std::int64_t{1} << 53;
}

}  // namespace

auto script_numbers::read(answer const& got, std::size_t count)
    -> result<script_numbers, store_error> {
  if (!got) {
    return failure(got.error());
  }
  if (got->is_error()) {
    return failure(store_error{store_fault::unavailable, got->text});
  }
  std::span<resp_value const> const items =
      got->is_integer() ? std::span<resp_value const>(&*got, 1) : got->items;
  if (items.size() != count || !std::ranges::all_of(items, is_sensible)) {
    return failure(store_error{store_fault::damaged, "invalid answer of a quota script"});
  }
  return script_numbers(items);
}

auto script_numbers::next_verdict(bool admitted) noexcept -> ratelimit::verdict {
  auto const remaining = next();
  auto const reset = microseconds(next());
  auto const retry = microseconds(next());
  auto const ns = next();
  return {admitted, {remaining, reset + nanoseconds(ns / 1000)}, retry + nanoseconds(ns % 1000)};
}

}  // namespace tidegate::store_redis
