// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store/memory_idempotency_store.hpp>

#include <tidegate/store/record_table.hpp>

#include <utility>

namespace tidegate::TIDEGATE_ABI::store {

using idempotency::lookup_key;

namespace {

constexpr std::size_t shards_size = 16;

[[nodiscard]] auto shown(record_table::entry entry) -> found_record {
  return {std::move(entry.record), std::move(entry.response)};
}

}  // namespace

struct memory_idempotency_store::shard {
  mutable std::mutex mutex;
  record_table table;
  std::size_t swept = 0;  // up to this place
  // What it has added to the sums of the store.
  std::size_t counted_records = 0;
  std::size_t counted_octets = 0;
};

memory_idempotency_store::memory_idempotency_store(options const& options)
    : options_(options), shards_(std::make_unique<shard[]>(shards_size)) {}

memory_idempotency_store::~memory_idempotency_store() = default;

auto memory_idempotency_store::shard_of(lookup_key const& key) const noexcept -> shard& {
  // Not the octets that the table hashes by.
  return shards_[std::to_integer<std::size_t>(key.octets.back()) % shards_size];
}

void memory_idempotency_store::find(lookup_key const& key, find_callback answer) {
  std::optional<record_table::entry> entry;
  {
    auto const& s = shard_of(key);
    std::lock_guard const lock(s.mutex);
    entry = s.table.find(key);
  }
  answer(entry ? std::optional(shown(*std::move(entry))) : std::nullopt);
}

void memory_idempotency_store::apply(idempotency::change change, apply_callback answer) {
  answer(make(std::move(change)));
}

auto memory_idempotency_store::make(idempotency::change change) -> apply_answer {
  auto response =
      change.response
          ? std::make_shared<idempotency::stored_response const>(*std::move(change.response))
          : nullptr;
  auto& s = shard_of(change.key);
  std::lock_guard const lock(s.mutex);
  auto entry = s.table.find(change.key);
  if (!holds(change.when, entry ? &entry->record : nullptr)) {
    return applied{false, entry ? std::optional(shown(*std::move(entry))) : std::nullopt};
  }
  // Threads in other shards may get in between: then there are a few more than the bound.
  if (!entry && change.next && change.bounded &&
      (records_ >= options_.records_max ||
       records_ * record_octets + response_octets_ >= options_.octets_max)) {
    return failure(store_error{store_fault::full, "the memory for idempotency keys is full"});
  }
  if (!entry && change.next && !add_to_scope(change)) {
    return failure(
        store_error{store_fault::scope_full, "the scope has the maximum number of keys"});
  }
  if (change.next) {
    s.table.put(change.key, {*std::move(change.next), std::move(response), 0});
  } else if (entry) {
    s.table.erase(change.key);
    remove_from_scope(change.key);
  }
  count(s);
  return applied{true, {}};
}

/// False when it has as many as it may.
auto memory_idempotency_store::add_to_scope(idempotency::change const& change) -> bool {
  std::lock_guard const lock(scopes_mutex_);
  if (change.scope_keys_max != 0 && scopes_.of(change.key) >= change.scope_keys_max) {
    return false;
  }
  scopes_.add(change.key);
  return true;
}

void memory_idempotency_store::remove_from_scope(lookup_key const& key) {
  std::lock_guard const lock(scopes_mutex_);
  scopes_.remove(key);
}

void memory_idempotency_store::count(shard& s) {
  records_ += s.table.size() - s.counted_records;
  response_octets_ += s.table.response_octets() - s.counted_octets;
  s.counted_records = s.table.size();
  s.counted_octets = s.table.response_octets();
}

void memory_idempotency_store::list_unknown(std::size_t records, list_callback answer) {
  std::vector<listed_record> all;
  for (std::size_t i = 0; i < shards_size; ++i) {
    auto const& s = shards_[i];
    std::lock_guard const lock(s.mutex);
    for (auto const& key : s.table.newest_unknown(records)) {
      all.push_back({key, s.table.find(key)->record});
    }
  }
  keep_newest(all, records);
  answer(std::move(all));
}

void memory_idempotency_store::sweep(idempotency::wall_time now, std::size_t records) {
  for (std::size_t i = 0; i < shards_size; ++i) {
    auto& s = shards_[i];
    std::lock_guard const lock(s.mutex);
    for (auto left = records / shards_size + 1; left > 0 && s.table.places() > 0; --left) {
      s.swept = s.swept < s.table.places() ? s.swept : 0;
      auto const key = s.table.key_at(s.swept++);
      auto entry = key ? s.table.find(*key) : std::nullopt;
      auto expiry = entry ? expire(*key, entry->record, now) : std::nullopt;
      if (!expiry) {
        continue;
      }
      if (expiry->next) {
        s.table.put(*key, {*std::move(expiry->next), nullptr, 0});
      } else {
        s.table.erase(*key);
        remove_from_scope(*key);
      }
    }
    count(s);
  }
}

auto memory_idempotency_store::used() const -> usage {
  usage all{.unknown = 0};
  for (std::size_t i = 0; i < shards_size; ++i) {
    auto const& s = shards_[i];
    std::lock_guard const lock(s.mutex);
    all.records += s.table.size();
    all.response_octets += s.table.response_octets();
    all.memory += s.table.memory();
    *all.unknown += s.table.unknown();
  }
  all.stored_octets = all.records * record_octets + all.response_octets;
  all.stored_octets_max = options_.octets_max;
  std::lock_guard const lock(scopes_mutex_);
  all.memory += scopes_.memory();
  return all;
}

}  // namespace tidegate::TIDEGATE_ABI::store
