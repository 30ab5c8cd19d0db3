// SPDX-License-Identifier: Apache-2.0
#include "quotas/quota_sender.hpp"

#include "protocol/cluster_slots.hpp"
#include "quotas/lease_size.hpp"
#include "quotas/quota_key.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace tidegate::store_redis {

namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using store::store_error;
using store::store_fault;
using stage = pending_charge::stage;

/// Charges that one call of a script decides about: it has the server for itself meanwhile.
constexpr std::size_t call_charges_max = 64;
constexpr std::string_view gateways_key = "tidegate:gateways";

/// An answer of a quota script: whole numbers, as many as were awaited.
class script_numbers {
 public:
  /// The numbers are those of `got`, which has to live as long.
  [[nodiscard]] static auto read(answer const& got, std::size_t count)
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

  [[nodiscard]] auto next() noexcept -> std::int64_t { return items_[at_++].integer; }
  /// What remains, reset, retry and their nanoseconds.
  [[nodiscard]] auto next_verdict(bool admitted) noexcept -> ratelimit::verdict {
    auto const remaining = next();
    auto const reset = microseconds(next());
    auto const retry = microseconds(next());
    auto const ns = next();
    return {admitted, {remaining, reset + nanoseconds(ns / 1000)}, retry + nanoseconds(ns % 1000)};
  }

 private:
  explicit script_numbers(std::span<resp_value const> items) : items_(items) {}
  /// Scripts know no larger numbers, and as microseconds they can be added.
  [[nodiscard]] static auto is_sensible(resp_value const& item) -> bool {
    return item.is_integer() && item.integer >= 0 && item.integer < std::int64_t{1} << 53;
  }

  std::span<resp_value const> items_;
  std::size_t at_ = 0;
};

}  // namespace

quota_sender::quota_sender(engine::loop& on, std::unique_ptr<client> to,
                           quota_store_options const& options, bool is_cluster, quota_state& state,
                           store::quota_store_status& status)
    : loop_(on),
      options_(options),
      is_cluster_(is_cluster),
      holder_(random_holder(options.gateway)),
      state_(state),
      status_(status),
      heartbeat_(on, [this] { send_heartbeat(); }),
      client_(std::move(to)) {
  heartbeat_.set_in(std::chrono::milliseconds(0));
}

void quota_sender::close() {
  send_settlements();
  client_.reset();
  for (auto& request : std::exchange(state_.queue.requests, {})) {
    request->answer(failure(store_error{store_fault::stopped, "the store is being closed"}));
  }
}

/// In this order: what is held is said before something changes it, and what is released is there
/// for those that ask.
void quota_sender::send_all() {
  status_.round_trips += state_.queue.is_empty() ? 0U : 1U;
  send_hold_reports();
  send_settlements();
  send_lease_requests();
  send_requests();
}

void quota_sender::send_settlements() {
  auto const all = std::exchange(state_.queue.settlements, {});
  auto const step = is_cluster_ ? 1 : call_charges_max;
  for (std::size_t i = 0; i < all.size(); i += step) {
    word_list keys;
    word_list arguments;
    std::vector<store::key_hash> ids;
    for (auto const& each : std::span(all).subspan(i, std::min(step, all.size() - i))) {
      keys.add(each.key);
      arguments.add(argument(each.policy, each.units));
      arguments.add(std::to_string(each.admitted_at));
      if (auto* const found = state_.held.find(each.id)) {  // it stays until that is answered
        found->unsent = 0;
        ++found->in_flight;
        ids.push_back(each.id);
      }
    }
    run(*client_, scripts_.settle, std::move(keys), std::move(arguments),
        [this, ids = std::move(ids)](answer const& got) {
          auto numbers = script_numbers::read(got, 1);
          if (numbers) {
            state_.offset.update(numbers->next());
          }
          for (auto const& id : ids) {
            auto& settled = *state_.held.find(id);
            --settled.in_flight;
            settled.needs_report = settled.needs_report || (!numbers && settled.is_concurrent());
          }
        });
  }
}

void quota_sender::send_hold_reports() {
  auto all = std::exchange(state_.queue.hold_reports, {});
  for (auto const& request : state_.queue.requests) {
    for (auto const& charge : request->charges) {
      if (auto const* const found = lease_of(charge);
          found != nullptr && found->needs_report && found->in_flight == 0) {
        all.push_back(charge.id);
      }
    }
  }
  struct report {
    store::key_hash id;
    bool is_known;  // else what is in flight may change it
  };
  auto const sent = loop_.now();
  auto const step = is_cluster_ ? 1 : call_charges_max;
  for (std::size_t i = 0; i < all.size(); i += step) {
    word_list keys;
    word_list arguments;
    std::vector<report> reports;
    for (auto const& id : std::span(all).subspan(i, std::min(step, all.size() - i))) {
      if (auto const* const found = state_.held.find(id)) {
        bool const is_known = found->in_flight == 0;
        reports.push_back({id, is_known});
        keys.add(found->key);
        arguments.add(argument(found->policy, is_known ? found->held_in_store() : -1));
      }
    }
    if (reports.empty()) {
      continue;
    }
    run_in_order(*client_, scripts_.hold, keys, arguments,
                 [this, reports = std::move(reports), sent](answer const& got) {
                   auto numbers = script_numbers::read(got, 1);
                   if (!numbers) {
                     return;
                   }
                   state_.offset.update(numbers->next());
                   for (auto const& [id, is_known] : reports) {
                     if (auto* const found = state_.held.find(id)) {
                       found->needs_report = found->needs_report && !is_known;
                       found->valid_until = std::max(found->valid_until, sent + options_.alive_for);
                     }
                   }
                 });
  }
}

void quota_sender::send_lease_requests() {
  auto const sent = loop_.now();
  for (auto const& id : std::exchange(state_.queue.lease_requests, {})) {
    auto& low = *state_.held.find(id);  // it is kept while it is requested
    ++low.in_flight;
    word_list keys;
    keys.add(low.key);
    word_list arguments;
    arguments.add(argument(low.policy, state_.held.wanted(low, sent)));
    arguments.add("1");
    arguments.add(std::to_string(lease_parts(state_.held.takers())));
    run(*client_, scripts_.take, std::move(keys), std::move(arguments),
        [this, id, sent](answer const& got) { take_lease_answer(id, sent, got); });
  }
}

void quota_sender::send_requests() {
  pending_requests batch;
  std::size_t charges = 0;
  auto requests = std::exchange(state_.queue.requests, {});
  for (auto& request : requests) {
    if (request->error) {
      fail(*request, *request->error);
      continue;
    }
    auto const queued = static_cast<std::size_t>(
        std::ranges::count(request->charges, stage::queued, &pending_charge::at));
    if (queued == 0) {
      finish(*request, true);
      continue;
    }
    if (!batch.empty() && (is_cluster_ || charges + queued > call_charges_max)) {
      send(std::exchange(batch, {}));
      charges = 0;
    }
    charges += queued;
    batch.push_back(std::move(request));
  }
  if (!batch.empty()) {
    send(std::move(batch));
  }
}

/// Sends what is queued, in a cluster only as far as it has the same key as the first, but for the
/// policy.
void quota_sender::send(pending_requests requests) {
  word_list keys;
  std::string sizes;
  std::vector<pending_charge*> sent;
  for (auto const& request : requests) {
    auto const before = sent.size();
    for (auto& charge : request->charges) {
      if (charge.at != stage::queued ||
          (is_cluster_ && !sent.empty() && slot_of(charge.key) != slot_of(sent[0]->key))) {
        continue;
      }
      charge.at = stage::sent;
      sent.push_back(&charge);
      keys.add(charge.key);
      if (auto* const found = lease_of(charge)) {
        ++found->in_flight;
      }
    }
    sizes += static_cast<char>(sent.size() - before);
  }
  word_list arguments;
  arguments.add(sizes);
  for (auto const* const charge : sent) {
    arguments.add(argument(charge->policy, charge->cost, charge->enforced));
  }
  run(*client_, scripts_.spend, std::move(keys), std::move(arguments),
      [this, requests = std::move(requests), at = loop_.now()](answer const& got) mutable {
        take_answer(std::move(requests), at, got);
      });
}

void quota_sender::send_heartbeat() {
  state_.held.report_held();
  word_list keys;
  keys.add(gateways_key);
  word_list arguments;
  arguments.add(options_.gateway);
  arguments.add(std::to_string(microseconds(options_.alive_for).count()));
  run(*client_, scripts_.gateways, std::move(keys), std::move(arguments),
      [this](answer const& got) {
        if (auto numbers = script_numbers::read(got, 2)) {
          state_.offset.update(numbers->next());
          status_.gateways = static_cast<std::size_t>(std::max<std::int64_t>(numbers->next(), 1));
          state_.held.set_takers(status_.gateways * options_.stores);
        }
      });
  heartbeat_.set_in(options_.alive_for / 3);
}

// ---- answers ----

void quota_sender::take_lease_answer(store::key_hash const& id, instant sent, answer const& got) {
  auto& asked = *state_.held.find(id);
  --asked.in_flight;
  auto numbers = script_numbers::read(got, 7);
  if (!numbers) {
    state_.held.take_failure(asked, sent);
    return;
  }
  lease_grant grant;
  grant.at = numbers->next();
  state_.offset.update(grant.at);
  grant.units = numbers->next();
  grant.lasts = microseconds(numbers->next());
  grant.verdict = numbers->next_verdict(grant.units > 0);
  state_.held.take_grant(asked, grant, sent);
}

void quota_sender::take_answer(pending_requests requests, instant sent, answer const& got) {
  std::size_t count = 1;
  for (auto const& request : requests) {
    count += 1;
    for (auto const& charge : request->charges) {
      count += charge.at == stage::sent ? 5 : 0;
    }
  }
  auto numbers = script_numbers::read(got, count);
  if (!numbers) {
    for (auto const& request : requests) {
      fail(*request, numbers.error());
    }
    return;
  }
  auto const at = numbers->next();
  state_.offset.update(at);
  for (auto& request : requests) {
    bool const admitted = numbers->next() == 1;
    bool is_queued = false;
    for (auto& charge : request->charges) {
      if (charge.at == stage::sent) {
        bool const is_charge_admitted = numbers->next() == 1;
        charge.result.decision = numbers->next_verdict(is_charge_admitted);
        take_charge(charge, admitted, at, request->asked_at, sent);
      }
      is_queued = is_queued || charge.at == stage::queued;
    }
    if (admitted && is_queued) {  // in another slot
      state_.queue.add(std::move(request));
    } else {
      finish(*request, admitted);
    }
  }
}

void quota_sender::take_charge(pending_charge& charge, bool is_call_admitted, std::int64_t at,
                               instant asked, instant sent) {
  auto const& decision = charge.result.decision;
  charge.at = stage::answered;
  charge.is_spent = is_call_admitted && decision.admitted;
  charge.spent_at = at;
  if (auto* const found = lease_of(charge)) {
    --found->charges;
    --found->in_flight;
    found->store_remaining = decision.left.remaining;
    found->reset_at = sent + decision.left.reset;
    found->held += found->is_concurrent() && charge.is_spent ? charge.cost : 0;
  }
  if (!is_concurrent(charge.policy)) {
    cache_verdict(charge, asked, sent);
  }
}

void quota_sender::cache_verdict(pending_charge const& charge, instant asked, instant sent) {
  auto const& verdict = charge.result.decision;
  auto& entry = state_.verdicts.entry(charge.id);
  entry.at = sent;
  entry.ahead = state_.offset.ahead;
  entry.left = verdict.left;
  entry.refused_until = {};
  if (!verdict.admitted) {
    auto const believed = charge.mode == store::counting::lease ? options_.lease_refusals_believed
                                                                : options_.refusals_believed;
    entry.refused_cost = charge.cost;
    entry.retry_at = sent + verdict.retry;
    entry.refused_until = std::min(entry.retry_at, sent + believed);
  }
  if (charge.is_spent && charge.spent_at >= entry.window_end) {
    // One that was asked in the same moment may have been decided in the window before.
    entry.first_asked = asked == entry.last_asked ? asked + nanoseconds(1) : asked;
    entry.first_at = charge.spent_at;
    entry.window_end =
        charge.spent_at + std::chrono::duration_cast<microseconds>(verdict.left.reset).count();
  }
  entry.last_asked = asked;
}

void quota_sender::finish(pending_request& request, bool admitted) {
  store::spent spent;
  spent.admitted = admitted;
  for (std::size_t i = 0; i < request.charges.size(); ++i) {
    if (!admitted) {
      undo(request.charges[i]);
    }
    spent.results[i] = request.charges[i].result;
  }
  request.answer(std::move(spent));
}

void quota_sender::fail(pending_request& request, store_error const& error) {
  ++status_.failed;
  for (auto& charge : request.charges) {
    undo(charge);
  }
  request.answer(failure(error));
}

/// The request was not admitted after all; what is left is said as it stands.
void quota_sender::undo(pending_charge& charge) {
  auto const now = loop_.now();
  auto* const found = state_.held.find(charge.id);
  auto& decision = charge.result.decision;
  switch (charge.at) {
    case stage::local:
      if (found != nullptr && found->window_end == charge.window_end) {
        found->units += charge.cost;
        found->held -= found->is_concurrent() ? charge.cost : 0;
        decision.left = found->left(now);
      }
      break;
    case stage::queued: {
      if (found != nullptr && charge.has_lease) {
        --found->charges;
      }
      auto const* const known = state_.verdicts.find(charge.id);
      decision = {true,
                  known != nullptr ? known->left_at(now) : ratelimit::look(charge.policy, {}, now),
                  {}};
      break;
    }
    case stage::sent:  // and not answered
      if (found != nullptr && charge.has_lease) {
        --found->charges;
        --found->in_flight;
        found->needs_report = found->needs_report || found->is_concurrent();
      }
      break;
    case stage::answered:
      if (charge.is_spent) {  // in a cluster, before another slot refused
        decision.left.remaining += charge.cost;
        if (found != nullptr && found->is_concurrent()) {
          found->held -= charge.cost;
        }
        state_.held.settle_in_store(
            charge.id, charge.key, charge.policy, -charge.cost,
            charge.policy.has_window_begin() ? wall_time(charge.policy, now) : charge.spent_at);
      }
      break;
  }
}

}  // namespace tidegate::store_redis
