// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/idempotency/wall_time.hpp>
#include <tidegate/store/idempotency_store.hpp>

#include "connection.hpp"
#include "keys/clock_offset.hpp"
#include "keys/key_job.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

/// What is said to the server about idempotency keys.
namespace tidegate::store_postgres {

/// SQLSTATE of `idempotency_check_secret`.
inline constexpr std::string_view other_secret_state = "TG001";

/// One command that prepares all statements, and has the server give up what we have given up.
[[nodiscard]] auto setup_command(std::chrono::milliseconds timeout) -> std::string;

/// Runs a prepared statement in the pipeline. False when the connection is lost.
[[nodiscard]] auto send_prepared(PGconn* to, char const* name, parameters const& values) -> bool;

/// Sends the statement of a job. `is_full`: keys that are new and bounded are refused.
[[nodiscard]] auto send_job(PGconn* to, key_job const& job, clock_offset const& clock, bool is_full)
    -> bool;

/// Where a job stands in a flight. All gateways lock in this order.
struct lock_order {
  std::uint64_t scope = 0;
  bool is_behind = false;  ///< what locks the counter of the scope comes first
  std::string_view key;
  auto operator<=>(lock_order const&) const = default;
};
/// Good as long as the job is.
[[nodiscard]] auto lock_order_of(key_job const& job) noexcept -> lock_order;

/// The keys and records that a statement found, in the time of the server. Those that are damaged
/// are left out: a caller that asks for one gets the error.
[[nodiscard]] auto read_listed(rows const& found) -> std::vector<store::listed_record>;

[[nodiscard]] constexpr auto time_of(std::int64_t milliseconds) noexcept -> idempotency::wall_time {
  return idempotency::wall_time(std::chrono::milliseconds(milliseconds));
}

}  // namespace tidegate::store_postgres
