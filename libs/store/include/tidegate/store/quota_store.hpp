// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/base/result.hpp>
#include <tidegate/store/idempotency_store.hpp>
#include <tidegate/store_quota/quota_table.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

/// Quotas that several gateways share.
namespace tidegate::TIDEGATE_ABI::store {

/// How a policy is counted where several gateways share it.
enum class counting : std::uint8_t {
  exact,  ///< the store is asked for every request
  lease,  ///< slices of the quota are taken ahead and spent here; what is left is released
};

/// A charge with what names it outside of this process.
struct shared_charge {
  charge local;  ///< as this process names it
  std::string_view policy_name;
  counting mode = counting::exact;
};

/// What became of the charges of one request, in their order.
struct spent {
  bool admitted = false;  ///< as `quota_table::spend` says it
  std::array<charged, quota_table::charges_max> results{};
};

/// The answer to `spend`.
using spend_answer = result<spent, store_error>;

/// Who shares the quotas, and what was done so far.
struct quota_store_status {
  std::size_t gateways = 1;       ///< that were there lately, with this one
  std::uint64_t asked = 0;        ///< requests that the store was asked about
  std::uint64_t here = 0;         ///< decisions without asking
  std::uint64_t round_trips = 0;  ///< writes to the store that held something to decide
  std::uint64_t failed = 0;       ///< requests without an answer
};

/// The quotas of one thread: calls and answers are made on it, and answers come in later turns of
/// its loop.
///
/// Time is that of the store; `now` is that of the thread and only tells how long ago something was
/// answered. Policies that a charge points to live until it is answered; partitions and names only
/// during the call.
class quota_store {
 public:
  quota_store() = default;
  virtual ~quota_store() = default;
  quota_store(quota_store const&) = delete;
  auto operator=(quota_store const&) -> quota_store& = delete;

  /// Decides as `quota_table::spend` does, where that can be done without asking: by slices that
  /// were taken ahead, or since nothing will be left until a time that is known. Nothing:
  /// `spend` has to be asked. An error: it is known that the store gives no answers now.
  [[nodiscard]] virtual auto spend_here(std::span<shared_charge const> charges, instant now,
                                        std::span<charged> results)
      -> result<std::optional<bool>, store_error> = 0;

  /// Asks the store. There is an answer within a bounded time, which may be an error; then it is
  /// not known whether something was spent.
  virtual void spend(std::span<shared_charge const> charges, instant now,
                     std::move_only_function<void(spend_answer)> answer) = 0;

  /// Corrects a charge after the fact, as `ratelimit::settle` says, without an answer. What does
  /// not reach the store is lost.
  virtual void settle(shared_charge const& charge, instant admitted_at, instant now,
                      std::int64_t units) = 0;

  /// Has the store forget what a partition has spent, for all gateways, and forgets it here. Other
  /// threads and gateways decide by what they know for a moment: `forget_here` is for those of this
  /// process. Concurrent requests are held for as long as they are: of them there is nothing to
  /// forget. The answer may come before it returns.
  virtual void forget(shared_charge const& charge,
                      std::move_only_function<void(result<void, store_error>)> answer) = 0;
  /// Forgets what this thread knows of a partition, and what it took ahead.
  virtual void forget_here(shared_charge const& charge) = 0;

  /// What the store last said of a partition, without asking; as if unused when it said nothing.
  [[nodiscard]] virtual auto look(shared_charge const& charge, instant now) const
      -> ratelimit::service = 0;

  /// Who shares the quotas, and what was done.
  [[nodiscard]] auto status() const noexcept -> quota_store_status const& { return status_; }

 protected:
  quota_store_status status_;  // kept up to date by the back end
};

}  // namespace tidegate::TIDEGATE_ABI::store
