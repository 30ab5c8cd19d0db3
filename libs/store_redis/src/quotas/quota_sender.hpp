// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/callback_timer.hpp"
#include "protocol/client.hpp"
#include "protocol/script.hpp"
#include "quotas/leases.hpp"
#include "quotas/quota_script.hpp"
#include "quotas/verdict_cache.hpp"
#include "quotas/write_queue.hpp"

#include <tidegate/engine/loop.hpp>
#include <tidegate/store/quota_store.hpp>
#include <tidegate/store_redis/quota_store.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace tidegate::store_redis {

/// How far the clock of the store is ahead of the steady clock here, by what was answered last.
struct clock_offset {
  std::int64_t ahead = 0;  ///< microseconds, at least
  bool is_known = false;

  /// What was answered is over, so that the store's clock is now ahead at least as far as this.
  void update(std::int64_t store_time) noexcept {
    auto const now = std::chrono::steady_clock::now().time_since_epoch();
    ahead = store_time - std::chrono::ceil<std::chrono::microseconds>(now).count();
    is_known = true;
  }
};

/// What a quota store knows; its sender changes it by what the store answers.
struct quota_state {
  quota_state(engine::loop& on, quota_store_options const& options, std::function<void()> flush)
      : queue(on, std::move(flush)),
        held(on, options, queue),
        verdicts(options.cached_verdicts_max) {}

  write_queue queue;
  leases held;
  verdict_cache verdicts;
  clock_offset offset;
};

/// Sends what is in the write queue by calls of scripts, and takes their answers.
class quota_sender {
 public:
  quota_sender(engine::loop& on, std::unique_ptr<client> to, quota_store_options const& options,
               bool is_cluster, quota_state& state, store::quota_store_status& status);

  /// Sends what the turn has queued.
  void send_all();
  /// Sends what is released, and answers all requests with `stopped`.
  void close();

  [[nodiscard]] auto is_up(std::string_view key) const -> bool { return client_->is_up(key); }
  [[nodiscard]] auto error_text(std::string_view key) const -> std::string {
    return client_->error_text(key);
  }
  /// Deletes a bucket.
  void remove(std::string const& key, answer_function answer) {
    client_->send(key, command{"DEL", key}, std::move(answer));
  }

 private:
  struct scripts {
    script spend{spend_script()};
    script settle{settle_script()};
    script take{take_script()};
    script hold{hold_script()};
    script gateways{gateways_script()};
  };

  [[nodiscard]] auto argument(ratelimit::policy const& policy, std::int64_t cost,
                              bool enforced = true) const -> std::string {
    return charge_argument(policy, cost, enforced, holder_, options_.alive_for, loop_.now());
  }
  [[nodiscard]] auto lease_of(pending_charge const& charge) const noexcept -> lease* {
    return charge.has_lease ? state_.held.find(charge.id) : nullptr;
  }

  void send_settlements();
  void send_hold_reports();
  void send_lease_requests();
  void send_requests();
  void send(pending_requests requests);
  void send_heartbeat();

  void take_lease_answer(store::key_hash const& id, instant sent, answer const& got);
  void take_answer(pending_requests requests, instant sent, answer const& got);
  void take_charge(pending_charge& charge, bool is_call_admitted, std::int64_t at, instant asked,
                   instant sent);
  void cache_verdict(pending_charge const& charge, instant asked, instant sent);
  void finish(pending_request& request, bool admitted);
  void fail(pending_request& request, store::store_error const& error);
  void undo(pending_charge& charge);

  engine::loop& loop_;
  quota_store_options const& options_;
  bool is_cluster_;
  std::string holder_;
  quota_state& state_;
  store::quota_store_status& status_;
  scripts scripts_;
  callback_timer heartbeat_;
  std::unique_ptr<client> client_;
};

}  // namespace tidegate::store_redis
