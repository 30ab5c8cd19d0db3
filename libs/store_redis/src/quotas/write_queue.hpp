// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/engine/loop.hpp>
#include <tidegate/ratelimit/policy.hpp>
#include <tidegate/store/quota_store.hpp>
#include <tidegate/store_quota/keyed_hash.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tidegate::store_redis {

/// A charge of a request that waits for an answer.
struct pending_charge {
  enum class stage : std::uint8_t {
    local,   ///< spent of a lease: the store is not asked
    queued,  ///< to be sent
    sent,
    answered,
  };

  store::key_hash id;
  std::string key;
  ratelimit::policy policy;
  std::int64_t cost = 0;
  bool enforced = true;
  store::counting mode = store::counting::exact;
  stage at = stage::queued;
  bool has_lease = false;       ///< which counts it
  std::int64_t window_end = 0;  ///< of the lease that it was spent of
  bool is_spent = false;        ///< in the store
  std::int64_t spent_at = 0;    ///< by the store's clock
  store::charged result{};  // NOLINT(readability-redundant-member-init): so that it may be left out
};

struct pending_request {
  std::vector<pending_charge> charges;
  std::move_only_function<void(store::spend_answer)> answer;
  instant asked_at{};
  std::optional<store::store_error> error;  ///< it is answered with that, and not sent
};
using pending_requests = std::vector<std::unique_ptr<pending_request>>;

/// A correction of what a partition has spent.
struct pending_settlement {
  store::key_hash id;
  std::string key;
  ratelimit::policy policy;
  std::int64_t units = 0;
  std::int64_t admitted_at = 0;  ///< by the store's clock
};

/// What goes to the store at the end of the turn. The sender takes it out.
class write_queue {
 public:
  /// Calls `flush` at the end of each turn in which something was added.
  write_queue(engine::loop& on, std::function<void()> flush)
      : loop_(on), end_(std::make_unique<end_of_turn>(std::move(flush))) {}
  ~write_queue() { loop_.dispose(std::move(end_)); }
  write_queue(write_queue const&) = delete;
  auto operator=(write_queue const&) -> write_queue& = delete;

  void add(std::unique_ptr<pending_request> request) {
    requests.push_back(std::move(request));
    loop_.at_end_of_turn(*end_);
  }
  void add(pending_settlement settlement) {
    settlements.push_back(std::move(settlement));
    loop_.at_end_of_turn(*end_);
  }
  /// Asks for more of a lease.
  void add_lease_request(store::key_hash const& id) {
    lease_requests.push_back(id);
    loop_.at_end_of_turn(*end_);
  }
  /// Tells the store what is held of a lease.
  void add_hold_report(store::key_hash const& id) {
    hold_reports.push_back(id);
    loop_.at_end_of_turn(*end_);
  }

  [[nodiscard]] auto is_empty() const noexcept -> bool {
    return requests.empty() && settlements.empty() && lease_requests.empty() &&
           hold_reports.empty();
  }

  pending_requests requests;
  std::vector<pending_settlement> settlements;
  std::vector<store::key_hash> lease_requests;
  std::vector<store::key_hash> hold_reports;

 private:
  /// Lives until the loop has let go of it.
  struct end_of_turn final : engine::watched {
    explicit end_of_turn(std::function<void()> call) : flush(std::move(call)) {}
    void ready(engine::readiness) override {}
    void turn_ends() override { flush(); }
    std::function<void()> flush;
  };

  engine::loop& loop_;
  std::unique_ptr<end_of_turn> end_;
};

}  // namespace tidegate::store_redis
