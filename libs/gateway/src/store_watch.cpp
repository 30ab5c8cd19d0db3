// SPDX-License-Identifier: Apache-2.0
#include "store_watch.hpp"

#include <algorithm>
#include <utility>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

constexpr auto interval = 1s;
/// A directory in a file: while nobody reads it, writes are quicker, and to ask is to read.
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

store_watch::store_watch(engine::loop& on, shared_state& shared, worker const& first)
    : loop_(on), shared_(shared), first_(first) {
  set(loop_.timers(), loop_.now());
}

auto store_watch::figures() const -> std::vector<store_figures> {
  auto const& settings = first_.current->settings->settings;
  std::vector<store_figures> all;
  if (!settings.policies.empty()) {
    all.push_back(
        {"quota", name_of(settings.quota_store.kind), shared_.quota_health.failing_since()});
  }
  if (keys_) {
    all.push_back(
        {"idempotency", name_of(settings.idempotency_store.kind), keys_->health.failing_since()});
  }
  if (has_directory(settings)) {
    all.push_back({"directory", name_of(settings.directory_store.kind),
                   shared_.scim->health().failing_since()});
  }
  return all;
}

void store_watch::expired() {
  ask_quotas();
  ask_keys();
  ask_directory();
  set(loop_.timers(), loop_.now() + interval);
}

auto store_watch::is_due(state& of, store_health& health) const -> bool {
  if (of.is_asked) {
    if (loop_.now() - of.asked_at >= answer_timeout) {
      store::store_error const late{store::store_fault::unavailable, "no answer in 3 seconds"};
      health.note(&late);
    }
    return false;
  }
  of.is_asked = true;
  of.asked_at = loop_.now();
  return true;
}

void store_watch::ask_quotas() {
  auto const settings = first_.current->settings;
  auto const& policies = settings->settings.policies;
  // Not one of concurrent requests: who asks about those is taken for one that holds some.
  auto const found = std::ranges::find_if(policies, [](policy_config const& each) {
    return each.policy.unit() != ratelimit::quota_unit::concurrent_requests;
  });
  auto const id = found == policies.end() ? std::nullopt : policy_id_of(*settings, *found);
  if (!first_.quotas || !id || !is_due(*quota_, shared_.quota_health)) {
    return;
  }
  bool const is_failing = shared_.quota_health.is_failing();
  // Lines of partitions have a "=", so that no request is in this one.
  store::shared_charge const probe{{&found->policy, *id, "probe\n", is_failing ? 1 : 0, false},
                                   found->name,
                                   store::counting::exact};
  first_.quotas->spend({&probe, 1}, loop_.now(),
                       [of = quota_, settings, is_failing,
                        &health = shared_.quota_health](store::spend_answer const& answer) {
                         of->is_asked = false;
                         if (!answer && answer.error().fault != store::store_fault::stopped) {
                           health.note(&answer.error());
                         } else if (answer && is_failing) {
                           health.note(nullptr);
                         }
                       });
}

void store_watch::ask_keys() {
  if (!keys_ || !is_due(*idempotency_, keys_->health)) {
    return;
  }
  if (keys_->health.is_failing()) {
    try_keys();
    return;
  }
  // No answer owns the store: the last one to let it go must not be a thread of its own.
  keys_->store->find({}, [of = idempotency_, &health = keys_->health,
                          &on = loop_](store::find_answer const& answer) {
    if (!answer && answer.error().fault != store::store_fault::stopped) {
      health.note(&answer.error());
    }
    auto done = [of] { of->is_asked = false; };
    on.runs_here() ? done() : on.post(std::move(done));
  });
}

/// A record that is forgotten by itself, should this process not come to remove it.
void store_watch::try_keys() {
  auto const now = keys_->clock.at(loop_.now());
  idempotency::record const probe{
      .state = idempotency::record_state::tombstone,
      .token = static_cast<std::uint64_t>(now.time_since_epoch().count()),
      .created = now,
      .changed = now,
      .ttl = interval,
      .tombstone = interval};
  auto removed = [of = idempotency_, &health = keys_->health,
                  &on = loop_](store::apply_answer const& answer) {
    if (answer || answer.error().fault != store::store_fault::stopped) {
      health.note(answer ? nullptr : &answer.error());
    }
    on.post([of] { of->is_asked = false; });
  };
  keys_->store->apply(
      {.key = {}, .when = {}, .next = probe},
      [probe, removed = std::move(removed), weak = std::weak_ptr(keys_),
       &on = loop_](store::apply_answer const& answer) {
        if (!answer) {
          removed(answer);
          return;
        }
        // One that is there is of another gateway, or of one that ended.
        auto const mine = answer->found ? answer->found->record : probe;
        on.post([weak, mine, removed] {
          if (auto const keys = weak.lock()) {
            keys->store->apply({.key = {}, .when = {mine.token, {mine.state}}}, removed);
          }
        });
      });
}

void store_watch::ask_directory() {
  auto const& settings = first_.current->settings->settings;
  if (!has_directory(settings)) {
    return;
  }
  auto& health = shared_.scim->health();
  bool const is_file = settings.directory_store.kind == store_kind::sqlite;
  bool const is_early = is_file && !directory_->is_asked && directory_->asked_at != instant{} &&
                        !health.is_failing() && loop_.now() - directory_->asked_at < file_interval;
  if (is_early || !is_due(*directory_, health)) {
    return;
  }
  shared_.scim->probe([of = directory_, &on = loop_] {
    auto done = [of] { of->is_asked = false; };
    on.runs_here() ? done() : on.post(std::move(done));
  });
}

}  // namespace tidegate::gateway
