// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/engine/loop.hpp>
#include <tidegate/store/quota_store.hpp>
#include <tidegate/store_redis/server_url.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace tidegate::store_redis {

struct quota_store_options {
  std::string gateway;     ///< the name of this gateway among those that share quotas
  std::size_t stores = 1;  ///< how many quota stores this gateway has, one for each thread
  std::chrono::milliseconds command_timeout{1'000};  ///< for an answer, and then for a connection
  /// A gateway that sent no heartbeat for so long counts no more: its slots of concurrent requests
  /// are free. The same for all gateways.
  std::chrono::milliseconds alive_for{9'000};
  /// A refusal is believed until the cost will fit, but no longer than that: units may be
  /// released meanwhile.
  std::chrono::milliseconds refusals_believed{1'000};
  /// The same where units are leased, which come back often.
  std::chrono::milliseconds lease_refusals_believed{100};
  /// A slice that nothing was spent of for so long is released.
  std::chrono::milliseconds lease_idle{250};
  std::size_t cached_verdicts_max = 16'384;  ///< partitions that are remembered
  std::size_t leases_max = 65'536;           ///< partitions with slices or concurrent requests
};

/// Quotas in Redis, for the thread of `on`; what is written to Redis begins with `tidegate:`. Needs
/// no server to be there yet. The error is one line for people.
///
/// Decisions are those of `store::quota_table` at the time of the server; see `store::quota_store`.
/// All that a turn of the loop asks goes out in one write, and the requests of a turn are decided
/// by one call of a script, as far as the keys of a cluster let them be. In a cluster the charges
/// of a request with several partitions are made one partition after the other, and released when a
/// later one refuses.
[[nodiscard]] auto open_quota_store(engine::loop& on, server_url const& url,
                                    quota_store_options const& options)
    -> result<std::unique_ptr<store::quota_store>, std::string>;

}  // namespace tidegate::store_redis
