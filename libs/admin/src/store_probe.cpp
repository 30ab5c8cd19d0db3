// SPDX-License-Identifier: Apache-2.0
#include "store_probe.hpp"

#include <algorithm>
#include <utility>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

constexpr auto interval = 1s;
/// Of a directory in a file: a probe reads it, and while nothing reads it, writes are quicker.
constexpr auto file_interval = 15s;
/// A store that takes longer to answer a question of one key is of no use to requests.
constexpr auto answer_timeout = 3s;

[[nodiscard]] auto name_of(store_kind kind) -> std::string_view {
  switch (kind) {
    case store_kind::memory: return "memory";
    case store_kind::sqlite: return "sqlite";
    case store_kind::redis: return "redis";
    case store_kind::postgres: return "postgres";
  }
  return "memory";
}

/// A reload makes the directory before any thread has the settings that need it.
[[nodiscard]] auto has_directory(config const& settings) -> bool {
  return std::ranges::any_of(settings.routes,
                             [](route_config const& route) { return route.scim.has_value(); });
}

}  // namespace

store_probe::store_probe(control& seen) : control_(seen) {
  set(seen.loop.timers(), seen.loop.now());
}

auto store_probe::figures() const -> std::vector<store_figures> {
  auto const& settings = control_.active->config;
  std::vector<store_figures> all;
  if (!settings.policies.empty()) {
    all.push_back(
        {"quota", name_of(settings.stores.quota.kind), control_.quota_health().failing_since()});
  }
  if (control_.keys) {
    all.push_back({"idempotency", name_of(settings.stores.idempotency.kind),
                   control_.keys->health.failing_since()});
  }
  if (has_directory(settings)) {
    all.push_back({"directory", name_of(settings.stores.directory.kind),
                   control_.scim->health().failing_since()});
  }
  return all;
}

void store_probe::expired() {
  set(control_.loop.timers(), control_.loop.now() + interval);  // also when there is no memory
  ask_quotas();
  ask_keys();
  ask_directory();
}

auto store_probe::is_due(state& probed, store::store_health& health) const -> bool {
  if (probed.is_asked) {
    if (control_.loop.now() - probed.asked_at >= answer_timeout) {
      store::store_error const late{store::store_fault::unavailable, "no answer in 3 seconds"};
      health.note(&late);
    }
    return false;
  }
  probed.is_asked = true;
  probed.asked_at = control_.loop.now();
  return true;
}

void store_probe::ask_quotas() {
  auto const active = control_.active;
  auto const& policies = active->config.policies;
  // Not one of concurrent requests: who asks about those is taken for one that holds some.
  auto const found = std::ranges::find_if(policies, [](policy_config const& each) {
    return each.policy.unit() != ratelimit::quota_unit::concurrent_requests;
  });
  auto const id = found == policies.end() ? std::nullopt : policy_id_of(*active, *found);
  if (!control_.quotas || !id || !is_due(*quota_, control_.quota_health())) {
    return;
  }
  bool const is_failing = control_.quota_health().is_failing();
  // Lines of partitions have a "=", so that no request is in this one.
  store::shared_charge const probe{{&found->policy, *id, "probe\n", is_failing ? 1 : 0, false},
                                   found->name,
                                   store::counting::exact};
  control_.quotas->spend({&probe, 1}, control_.loop.now(),
                         [probed = quota_, active, is_failing,
                          &health = control_.quota_health()](store::spend_answer const& answer) {
                           probed->is_asked = false;
                           if (!answer && answer.error().fault != store::store_fault::stopped) {
                             health.note(&answer.error());
                           } else if (answer && is_failing) {
                             health.note(nullptr);
                           }
                         });
}

void store_probe::ask_keys() {
  if (!control_.keys || !is_due(*idempotency_, control_.keys->health)) {
    return;
  }
  bool const is_failing = control_.keys->health.is_failing();
  if (is_failing || control_.keys->is_full.load(std::memory_order_relaxed)) {
    try_keys(!is_failing);
    return;
  }
  // No answer owns the store: the last one to let it go must not be a thread of its own.
  control_.keys->store->find({}, [probed = idempotency_, &health = control_.keys->health,
                                  &on = control_.loop](store::find_answer const& answer) {
    if (!answer && answer.error().fault != store::store_fault::stopped) {
      health.note(&answer.error());
    }
    auto done = [probed] { probed->is_asked = false; };
    on.runs_here() ? done() : on.post(std::move(done));
  });
}

/// A record that is forgotten by itself, should this process not come to remove it.
void store_probe::try_keys(bool bounded) {
  auto const now = control_.keys->clock.at(control_.loop.now());
  idempotency::record const probe{
      .state = idempotency::record_state::tombstone,
      .token = static_cast<std::uint64_t>(now.time_since_epoch().count()),
      .created = now,
      .changed = now,
      .ttl = interval,
      .tombstone = interval};
  // No answer owns the store, which gives its last ones while it goes.
  auto removed = [probed = idempotency_, &keys = *control_.keys,
                  &on = control_.loop](store::apply_answer const& answer) {
    keys.note(answer ? nullptr : &answer.error());
    on.post([probed] { probed->is_asked = false; });
  };
  control_.keys->store->apply(
      {.key = {}, .when = {}, .next = probe, .bounded = bounded},
      [probe, bounded, removed = std::move(removed), weak = std::weak_ptr(control_.keys),
       &keys = *control_.keys, &on = control_.loop](store::apply_answer const& answer) {
        if (!answer) {
          removed(answer);
          return;
        }
        if (bounded && answer->made) {
          keys.is_full.store(false, std::memory_order_relaxed);
        }
        // One that is there is of another gateway, or of one that ended.
        auto const mine = answer->found ? answer->found->record : probe;
        on.post([weak, mine, removed] {
          if (auto const there = weak.lock()) {
            there->store->apply({.key = {}, .when = {mine.token, {mine.state}}}, removed);
          }
        });
      });
}

void store_probe::ask_directory() {
  auto const& settings = control_.active->config;
  if (!has_directory(settings)) {
    return;
  }
  auto& health = control_.scim->health();
  bool const is_file = settings.stores.directory.kind == store_kind::sqlite;
  bool const is_early = is_file && !directory_->is_asked && directory_->asked_at != instant{} &&
                        !health.is_failing() &&
                        control_.loop.now() - directory_->asked_at < file_interval;
  if (is_early || !is_due(*directory_, health)) {
    return;
  }
  control_.scim->probe([probed = directory_, &on = control_.loop] {
    auto done = [probed] { probed->is_asked = false; };
    on.runs_here() ? done() : on.post(std::move(done));
  });
}

}  // namespace tidegate::gateway
