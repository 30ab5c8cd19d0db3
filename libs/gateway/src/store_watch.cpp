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

void store_watch::state::note(bool is_well) {
  if (is_well) {
    failing_since.reset();
  } else if (!failing_since) {
    failing_since = std::chrono::system_clock::now();
  }
}

store_watch::store_watch(engine::loop& on, shared_state& shared, worker const& first)
    : loop_(on), shared_(shared), first_(first) {
  set(loop_.timers(), loop_.now());
}

auto store_watch::figures() const -> std::vector<store_figures> {
  auto const& settings = first_.current->settings->settings;
  std::vector<store_figures> all;
  if (!settings.policies.empty()) {
    all.push_back({"quota", name_of(settings.quota_store.kind), quota_->failing_since});
  }
  if (keys_) {
    all.push_back(
        {"idempotency", name_of(settings.idempotency_store.kind), idempotency_->failing_since});
  }
  if (has_directory(settings)) {
    all.push_back({"directory", name_of(settings.directory_store.kind), directory_->failing_since});
  }
  return all;
}

void store_watch::expired() {
  ask_quotas();
  ask_keys();
  ask_directory();
  set(loop_.timers(), loop_.now() + interval);
}

auto store_watch::is_due(state& of) const -> bool {
  if (of.is_asked) {
    if (loop_.now() - of.asked_at >= answer_timeout) {
      of.note(false);
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
  // Not one of concurrent requests: whoever asks about those is taken for somebody who holds some.
  auto const found = std::ranges::find_if(policies, [](policy_config const& each) {
    return each.policy.unit() != ratelimit::quota_unit::concurrent_requests;
  });
  auto const id = found == policies.end() ? std::nullopt : policy_id_of(*settings, *found);
  if (!first_.quotas || !id || !is_due(*quota_)) {
    return;
  }
  // Lines of partitions have a "=", so that no request is in this one.
  store::shared_charge const nothing{
      {&found->policy, *id, "probe\n", 0, false}, found->name, store::counting::exact};
  first_.quotas->spend({&nothing, 1}, loop_.now(),
                       [of = quota_, settings](store::spend_answer const& answer) {
                         of->is_asked = false;
                         of->note(answer.has_value());
                       });
}

void store_watch::ask_keys() {
  if (!keys_ || !is_due(*idempotency_)) {
    return;
  }
  keys_->store->find({}, [of = idempotency_, &on = loop_](store::find_answer const& answer) {
    auto note = [of, is_well = answer.has_value()] {
      of->is_asked = false;
      of->note(is_well);
    };
    on.runs_here() ? note() : on.post(std::move(note));
  });
}

void store_watch::ask_directory() {
  auto const& settings = first_.current->settings->settings;
  bool const is_file = settings.directory_store.kind == store_kind::sqlite;
  bool const is_early = is_file && !directory_->is_asked && directory_->asked_at != instant{} &&
                        !directory_->failing_since &&
                        loop_.now() - directory_->asked_at < file_interval;
  if (!has_directory(settings) || is_early || !is_due(*directory_)) {
    return;
  }
  shared_.scim->probe([of = directory_, &on = loop_](bool is_well) {
    auto note = [of, is_well] {
      of->is_asked = false;
      of->note(is_well);
    };
    on.runs_here() ? note() : on.post(std::move(note));
  });
}

}  // namespace tidegate::gateway
