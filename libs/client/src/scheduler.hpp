// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exchange.hpp"

#include <tidegate/base/instant.hpp>
#include <tidegate/client/session.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/idempotency/retry.hpp>
#include <tidegate/ratelimit/pacing.hpp>

#include <chrono>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tidegate::TIDEGATE_ABI::client {

/// The requests of one origin, route and partition: those that wait for their turn, and who says
/// when it is.
struct lane {
  explicit lane(ratelimit::pacing_options const& pacing) : paces(pacing) {}

  ratelimit::pacer paces;
  exchange_queue queue;
  bool is_ready = false;          ///< the pacer is to be asked
  instant wake = instant::max();  ///< when it is asked again, if nothing happens before
  std::uint64_t used = 0;         ///< later ones have higher numbers
  std::string_view name;          ///< as the table has it
};

/// What became of an attempt, as the transport saw it.
struct attempt_end {
  idempotency::delivery delivery = idempotency::delivery::answered;
  // NOLINTBEGIN(readability-redundant-member-init): so that they may be left out
  client_fault fault{};  ///< when it is not `answered`
  std::string detail{};  ///< for people
  // NOLINTEND(readability-redundant-member-init)
  bool permanent = false;  ///< another attempt would end the same way
};

/// Decides which request goes when, and what becomes of it. Does no I/O, reads no clock and starts
/// no thread: the session asks it and does what it says.
class scheduler {
 public:
  /// `seed` is for jitter only. `options` outlive the scheduler.
  scheduler(session_options const& options, std::uint64_t seed);

  /// Takes a new request. Its `id` is not in use.
  void submit(std::unique_ptr<exchange> fresh, instant now);

  /// The next request to be sent at `now`, which is under way from then on; null when there is
  /// none. Ask until there is none.
  [[nodiscard]] auto start(instant now) -> exchange*;

  /// An attempt has ended. `answer` of the exchange is whole when it was answered.
  void finish(exchange& ended, attempt_end const& how, instant now,
              std::chrono::sys_seconds wall_clock);

  /// Ends a request. When it is under way, it is returned: the transport lets go of it, and then it
  /// is `finish`ed.
  [[nodiscard]] auto cancel(request_id id) -> exchange*;
  /// All that there are.
  [[nodiscard]] auto ids() const -> std::vector<request_id>;

  /// Looks at what has been waiting: deadlines, retries and turns that have come.
  void pass_time(instant now);
  /// When to do that again, unless something happens before; `instant::max()` when nothing waits.
  [[nodiscard]] auto next() -> instant;

  struct outcome {
    std::unique_ptr<exchange> ended;
    result<response, client_error> answer;
  };
  /// What has finished since the last call, in place of what `out` had.
  void take_outcomes(std::vector<outcome>& out) {
    out.clear();
    std::swap(out, outcomes_);
  }

  [[nodiscard]] auto size() const noexcept -> std::size_t { return exchanges_.size(); }
  [[nodiscard]] auto under_way() const noexcept -> std::size_t { return under_way_; }
  [[nodiscard]] auto retries() const noexcept -> std::uint64_t { return retries_; }
  [[nodiscard]] auto lanes() const noexcept -> std::size_t { return lanes_.size(); }

  /// So many lanes are remembered when nothing is to be sent in them.
  static constexpr std::size_t lanes_max = 1024;

 private:
  [[nodiscard]] auto random() noexcept -> std::uint64_t;
  [[nodiscard]] auto lane_of(std::string const& name) -> lane&;
  void make_room();
  void make_ready(lane& each);
  void set_wake(lane& each, instant at);
  void set_timer(exchange& each, instant at);
  void enqueue(exchange& each, bool first);
  void set_timers_of_fresh();
  [[nodiscard]] auto retry_after_of(response const& answer,
                                    std::chrono::sys_seconds wall_clock) const
      -> std::optional<std::chrono::seconds>;
  [[nodiscard]] auto retries_again(exchange& ended, attempt_end const& how, instant now,
                                   std::chrono::sys_seconds wall_clock) -> bool;
  void end(exchange& ended, result<response, client_error> what);
  [[nodiscard]] auto error_of(exchange& ended, client_fault fault, std::string detail)
      -> client_error;

  session_options const& options_;
  std::uint64_t random_state_;
  std::unordered_map<request_id, std::unique_ptr<exchange>> exchanges_;
  std::unordered_map<std::string, std::unique_ptr<lane>> lanes_;
  std::deque<lane*> ready_;
  std::set<std::pair<instant, lane*>> wakes_;
  std::set<std::pair<instant, exchange*>> timers_;
  // New requests. Most of them go before anybody needs a timer for their deadline.
  std::vector<exchange*> fresh_;
  std::vector<outcome> outcomes_;
  std::vector<http::field_view> field_lines_;  // of the answer that is looked at
  idempotency::retry_budget budget_;
  std::size_t under_way_ = 0;
  std::uint64_t retries_ = 0;
  std::uint64_t uses_ = 0;
};

}  // namespace tidegate::TIDEGATE_ABI::client
