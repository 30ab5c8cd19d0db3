// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_redis/quota_store.hpp>

#include "protocol/client.hpp"
#include "quotas/quota_key.hpp"
#include "quotas/quota_script.hpp"
#include "quotas/quota_sender.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <span>
#include <utility>

namespace tidegate::store_redis {

namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using store::charged;
using store::counting;
using store::shared_charge;
using store::store_error;
using store::store_fault;

/// Decides by leases and cached verdicts where it can; the rest goes to the store at the end of the
/// turn.
class redis_quotas final : public store::quota_store {
 public:
  redis_quotas(engine::loop& on, std::unique_ptr<client> to, quota_store_options const& options,
               bool is_cluster)
      : options_(options),
        is_cluster_(is_cluster),
        seed_(random_seed()),
        state_(on, options_, [this] { sender_.send_all(); }),
        sender_(on, std::move(to), options_, is_cluster, state_, status_) {}

  ~redis_quotas() override {
    is_stopping_ = true;
    state_.held.release_all();
    sender_.close();
  }

  [[nodiscard]] auto spend_here(std::span<shared_charge const> charges, instant now,
                                std::span<charged> results)
      -> result<std::optional<bool>, store_error> override;
  void spend(std::span<shared_charge const> charges, instant now,
             std::move_only_function<void(store::spend_answer)> answer) override;
  void settle(shared_charge const& charge, instant admitted_at, instant now,
              std::int64_t units) override;
  void forget(shared_charge const& charge,
              std::move_only_function<void(result<void, store_error>)> answer) override;
  void forget_here(shared_charge const& charge) override;
  [[nodiscard]] auto look(shared_charge const& charge, instant now) const
      -> ratelimit::service override;

 private:
  [[nodiscard]] auto begin(shared_charge const& charge, instant now)
      -> result<pending_charge, store_error>;
  void forget_known(store::key_hash const& id);

  quota_store_options options_;
  bool is_cluster_;
  bool is_stopping_ = false;
  store::hash_seed seed_;
  quota_state state_;
  quota_sender sender_;
};

auto redis_quotas::spend_here(std::span<shared_charge const> charges, instant now,
                              std::span<charged> results)
    -> result<std::optional<bool>, store_error> {
  constexpr auto most = store::quota_table::charges_max;
  assert(charges.size() <= most && results.size() >= charges.size());
  std::array<lease*, most> usable{};
  std::array<cached_verdict const*, most> refusals{};
  bool is_refused = false;
  bool is_known = true;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    auto const& charge = charges[i].local;
    auto const id = id_of(seed_, charge);
    auto const cost = std::max<std::int64_t>(charge.cost, 0);
    if (is_leased(charges[i])) {
      usable[i] = state_.held.find_usable(id, cost, charge.policy->quota(), now);
      if (usable[i] != nullptr) {
        continue;
      }
    }
    if (auto const* const known = state_.verdicts.find(id);
        known != nullptr && known->refuses(cost, now)) {
      refusals[i] = known;
      is_refused = is_refused || charge.enforced;
      continue;
    }
    is_known = false;
  }
  if (!is_refused && !is_known) {
    auto const key = is_cluster_ ? key_of(charges[0]) : std::string();
    if (!sender_.is_up(key)) {
      return failure(store_error{store_fault::unavailable, sender_.error_text(key)});
    }
    return std::optional<bool>();
  }
  ++status_.here;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    results[i] = {};
    auto& decision = results[i].decision;
    if (refusals[i] != nullptr) {
      decision = {false, refusals[i]->left_at(now),
                  std::max(refusals[i]->retry_at - now, nanoseconds(0))};
    } else if (is_refused) {
      decision = {true, look(charges[i], now), {}};
    } else {
      state_.held.spend(*usable[i], std::max<std::int64_t>(charges[i].local.cost, 0), now);
      decision = {true, usable[i]->left(now), {}};
    }
  }
  return std::optional(!is_refused);
}

auto redis_quotas::look(shared_charge const& charge, instant now) const -> ratelimit::service {
  auto const id = id_of(seed_, charge.local);
  if (auto const* const found = state_.held.find(id);
      found != nullptr && (found->is_concurrent() || now < found->reset_at)) {
    return found->left(now);
  }
  auto const& policy = *charge.local.policy;
  auto const* const known = state_.verdicts.find(id);
  if (known == nullptr || now - known->at >= policy.window() ||
      (policy.algorithm() == ratelimit::algorithm::fixed && now - known->at >= known->left.reset)) {
    return ratelimit::look(policy, {}, now);
  }
  return known->left_at(now);
}

void redis_quotas::spend(std::span<shared_charge const> charges, instant now,
                         std::move_only_function<void(store::spend_answer)> answer) {
  ++status_.asked;
  auto request = std::make_unique<pending_request>();
  request->answer = std::move(answer);
  request->asked_at = now;
  request->charges.reserve(charges.size());
  for (auto const& charge : charges) {
    auto made = begin(charge, now);
    if (!made) {
      request->error = made.error();
      break;
    }
    request->charges.push_back(*std::move(made));
  }
  state_.queue.add(std::move(request));
}

auto redis_quotas::begin(shared_charge const& charge, instant now)
    -> result<pending_charge, store_error> {
  pending_charge made{.id = id_of(seed_, charge.local),
                      .key = key_of(charge),
                      .policy = *charge.local.policy,
                      .cost = std::max<std::int64_t>(charge.local.cost, 0),
                      .enforced = charge.local.enforced,
                      .mode = is_leased(charge) ? counting::lease : counting::exact};
  bool const concurrent = is_concurrent(made.policy);
  bool const leased = made.mode == counting::lease;
  if (!concurrent && !leased) {
    return made;
  }
  if (auto* const usable =
          leased ? state_.held.find_usable(made.id, made.cost, made.policy.quota(), now)
                 : nullptr) {
    made.at = pending_charge::stage::local;
    made.window_end = usable->window_end;
    state_.held.spend(*usable, made.cost, now);
    made.result.decision = {true, usable->left(now), {}};
    return made;
  }
  auto* const found = state_.held.find_or_add(made.id, charge, now);
  if (found == nullptr && concurrent) {
    // Without a lease there would be no report that it is still held.
    return failure(store_error{store_fault::full, "too many partitions have concurrent requests"});
  }
  if (found != nullptr) {
    made.has_lease = true;
    ++found->charges;
    found->rate.add(now, made.cost);
    if (leased && made.policy.quota() >= found->policy.quota()) {
      state_.held.refill(*found, now);
    }
  }
  return made;
}

void redis_quotas::settle(shared_charge const& charge, instant admitted_at, instant now,
                          std::int64_t units) {
  if (is_stopping_ || units == 0) {
    return;
  }
  auto const id = id_of(seed_, charge.local);
  bool const concurrent = is_concurrent(*charge.local.policy);
  if (concurrent || is_leased(charge)) {
    // What was never asked about is held as well.
    auto* const found =
        concurrent && units > 0 ? state_.held.find_or_add(id, charge, now) : state_.held.find(id);
    if (found != nullptr) {
      units = state_.held.settle(*found, admitted_at, now, units);
    }
  }
  // Without a time of the store nothing was spent there that could be released.
  if (units == 0 || (units < 0 && !state_.offset.is_known)) {
    return;
  }
  auto const* const known = state_.verdicts.find(id);
  auto at = std::chrono::floor<microseconds>(admitted_at.time_since_epoch()).count() +
            (known != nullptr ? known->ahead : state_.offset.ahead);
  if (known != nullptr && admitted_at >= known->first_asked) {
    at = std::max(at, known->first_at);
  }
  if (charge.local.policy->has_window_begin()) {
    at = wall_time(*charge.local.policy, admitted_at);
  }
  state_.held.settle_in_store(id, key_of(charge), *charge.local.policy, units, at);
}

void redis_quotas::forget_here(shared_charge const& charge) {
  if (!is_concurrent(*charge.local.policy)) {
    forget_known(id_of(seed_, charge.local));
  }
}

void redis_quotas::forget_known(store::key_hash const& id) {
  state_.verdicts.forget(id);
  state_.held.forget(id);
}

void redis_quotas::forget(shared_charge const& charge,
                          std::move_only_function<void(result<void, store_error>)> answer) {
  if (is_concurrent(*charge.local.policy)) {
    answer({});
    return;
  }
  sender_.remove(key_of(charge),
                 [this, id = id_of(seed_, charge.local),
                  answer = std::move(answer)](store_redis::answer const& got) mutable {
                   forget_known(id);  // and what was answered meanwhile
                   if (!got) {
                     answer(failure(got.error()));
                   } else if (got->is_error()) {
                     answer(failure(store_error{store_fault::unavailable, got->text}));
                   } else {
                     answer({});
                   }
                 });
}

}  // namespace

auto open_quota_store(engine::loop& on, server_url const& url, quota_store_options const& options)
    -> result<std::unique_ptr<store::quota_store>, std::string> {
  connection_options connections;
  connections.command_timeout = options.command_timeout;
  connections.connect_timeout = 2 * options.command_timeout;
  TIDEGATE_TRY(auto client, client::make(on, url, std::move(connections)));
  return std::make_unique<redis_quotas>(on, std::move(client), options,
                                        url.kind == topology::cluster);
}

}  // namespace tidegate::store_redis
