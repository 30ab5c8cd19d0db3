// SPDX-License-Identifier: Apache-2.0
#include "keys/key_log.hpp"

#include <tidegate/base/fail_point.hpp>

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

namespace tidegate::store_sqlite {

using idempotency::lookup_key;
using idempotency::record;
using idempotency::record_state;
using idempotency::stored_response;
using store::applied;
using store::store_error;
using store::store_fault;

namespace {

/// How many changes share a transaction at most: more would make the first of them wait for the
/// last.
constexpr std::size_t transaction_max = 1024;

[[nodiscard]] auto octets_of(record const& record) -> std::string {
  std::string out;
  append_record(out, record);
  return out;
}

/// Whether a response is stored with it. A request that an operator said was carried out has none.
[[nodiscard]] auto has_response(record const& record) noexcept -> bool {
  return record.state == record_state::completed && record.status != 0;
}

}  // namespace

idempotency_store::key_log::key_log(options options, key_file file)
    : options_(std::move(options)), file_(std::move(file)) {}

idempotency_store::key_log::~key_log() {
  {
    std::lock_guard const lock(queue_mutex_);
    stopping_ = true;
  }
  queued_.notify_one();
  if (thread_.joinable()) {
    thread_.join();
  }
}

auto idempotency_store::key_log::load(idempotency::wall_time now) -> outcome<void> {
  std::vector<lookup_key> dispatched;
  TIDEGATE_TRY_VOID(file_.load([&](key_file::stored_row const& row) -> outcome<void> {
    auto const damaged = [&](std::string_view what) {
      return failure(store_error{
          store_fault::damaged,
          options_.file + ": row " + std::to_string(row.row) + " " + std::string(what)});
    };
    lookup_key key;
    if (row.key.size() != key.octets.size()) {
      return damaged("has no lookup key");
    }
    std::transform(row.key.begin(), row.key.end(), key.octets.begin(),
                   [](char c) { return static_cast<std::byte>(c); });
    auto read = idempotency::read_record(row.record);
    if (!read) {
      return damaged(to_string(read.error()));
    }
    if (table_.find(key)) {
      return damaged("has the key of another row");
    }
    if (read->state == record_state::dispatched) {
      dispatched.push_back(key);
    }
    newest_ = std::max({newest_, read->created, read->changed});
    table_.put(key, {*std::move(read), nullptr, row.row, row.response_octets});
    scopes_.add(key);
    return {};
  }));

  TIDEGATE_TRY_VOID(file_.begin());
  changed pending;
  for (auto const& key : dispatched) {
    auto const before = table_.find(key);
    auto const lost =
        mark_unknown(key, before->record, idempotency::unknown_reason::gateway_stopped, now);
    TIDEGATE_TRY_VOID(write(lost, before, nullptr, pending));
  }
  fail_point("recovery_written");
  TIDEGATE_TRY_VOID(file_.commit());
  fail_point("recovery_committed");
  publish(pending);
  counts_ = {};
  return {};
}

void idempotency_store::key_log::start() {
  thread_ = std::thread([this] { run(); });
}

// ---- by those who ask ----

auto idempotency_store::key_log::enqueue(job job) -> std::optional<store_error> {
  {
    std::lock_guard const lock(queue_mutex_);
    if (stopping_) {
      return store_error{store_fault::stopped, options_.file + ": is being closed"};
    }
    if (queue_.size() >= options_.queue_max) {
      return store_error{store_fault::unavailable, options_.file + ": too many changes wait"};
    }
    queue_.push_back(std::move(job));
  }
  queued_.notify_one();
  return std::nullopt;
}

void idempotency_store::key_log::find(lookup_key const& key,
                                      std::move_only_function<void(store::find_answer)> answer) {
  std::optional<entry> entry;
  {
    std::lock_guard const lock(table_mutex_);
    entry = table_.find(key);
  }
  if (!entry) {
    answer(std::optional<store::found_record>());
  } else if (entry->response || !has_response(entry->record)) {
    answer(store::found_record{std::move(entry->record), std::move(entry->response)});
  } else {
    // In a box of its own, since it may have to be answered here after all.
    auto shared =
        std::make_shared<std::move_only_function<void(store::find_answer)>>(std::move(answer));
    auto const refused =
        enqueue(find_job{key, [shared](store::find_answer a) { (*shared)(std::move(a)); }});
    if (refused) {
      (*shared)(failure(*refused));
    }
  }
}

void idempotency_store::key_log::apply(idempotency::change change,
                                       std::move_only_function<void(store::apply_answer)> answer) {
  auto response = change.response
                      ? std::make_shared<stored_response const>(*std::move(change.response))
                      : nullptr;
  change.response.reset();
  auto shared =
      std::make_shared<std::move_only_function<void(store::apply_answer)>>(std::move(answer));
  auto const refused = enqueue(
      change_job{std::move(change), std::move(response),
                 [shared](store::apply_answer a) { (*shared)(std::move(a)); }, std::nullopt});
  if (refused) {
    (*shared)(failure(*refused));
  }
}

void idempotency_store::key_log::list_unknown(
    std::size_t records, std::move_only_function<void(store::list_answer)> answer) {
  std::vector<store::listed_record> all;
  {
    std::lock_guard const lock(table_mutex_);
    for (auto const& key : table_.newest_unknown(records)) {
      all.push_back({key, table_.find(key)->record});
    }
  }
  answer(std::move(all));
}

void idempotency_store::key_log::sweep(idempotency::wall_time now, std::size_t records) {
  {
    std::lock_guard const lock(queue_mutex_);
    if (sweep_queued_ || stopping_) {
      return;
    }
    sweep_queued_ = true;
    queue_.push_back(sweep_job{now, records});
  }
  queued_.notify_one();
}

auto idempotency_store::key_log::used() const -> usage {
  std::lock_guard const lock(table_mutex_);
  return {table_.size(),
          table_.response_octets(),
          table_.memory() + scopes_.memory() + cached_.size() * sizeof(cached_.front()),
          table_.unknown(),
          stored_octets(),
          options_.octets_max};
}

/// As it is bounded. With the lock on the table, or on the thread that writes.
auto idempotency_store::key_log::stored_octets() const -> std::size_t {
  return table_.size() * store::record_octets + table_.stored_octets();
}

auto idempotency_store::key_log::counted() const -> counts {
  std::lock_guard const lock(table_mutex_);
  return counts_;
}

// ---- on the thread that writes ----

void idempotency_store::key_log::run() {
  for (;;) {
    std::vector<job> jobs;
    {
      std::unique_lock lock(queue_mutex_);
      queued_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) {
        return;
      }
      auto const end =
          queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), transaction_max));
      jobs.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
      queue_.erase(queue_.begin(), end);
    }
    run_jobs(jobs);
  }
}

void idempotency_store::key_log::run_jobs(std::vector<job>& jobs) {
  std::vector<change_job> changes;
  std::optional<sweep_job> sweep;
  for (auto& job : jobs) {
    if (auto* const change = std::get_if<change_job>(&job)) {
      changes.push_back(std::move(*change));
    } else if (auto const* const asked = std::get_if<sweep_job>(&job)) {
      sweep = *asked;
      std::lock_guard const lock(queue_mutex_);
      sweep_queued_ = false;
    }
  }
  if (!changes.empty() || sweep) {
    if (!transact(changes, sweep)) {
      // Perhaps one of them was too much: each for itself. The sweep comes first, since it makes
      // room.
      if (sweep) {
        std::ignore = transact({}, sweep);
      }
      for (auto& change : changes) {
        if (auto const alone = transact(std::span(&change, 1), std::nullopt); !alone) {
          change.outcome = failure(alone.error());
        }
      }
    }
  }
  if (file_.has_failed_commit()) {
    // What was refused may be in the log, whole: a crash now would find it there. A commit of
    // nothing writes over it; when that fails too, the next sweep tries again.
    std::ignore = transact({}, std::nullopt);
  }
  for (auto& change : changes) {
    fail_point("change_committed");
    change.answer(*std::move(change.outcome));
  }
  for (auto& job : jobs) {
    if (auto* const find = std::get_if<find_job>(&job)) {
      find->answer(found(find->key));
    }
  }
}

auto idempotency_store::key_log::transact(std::span<change_job> jobs,
                                          std::optional<sweep_job> const& sweep) -> outcome<void> {
  changed pending;
  auto const made = [&]() -> outcome<void> {
    TIDEGATE_TRY_VOID(file_.begin());
    for (auto& job : jobs) {
      TIDEGATE_TRY_VOID(make(job, pending));
      fail_point("change_written");
    }
    if (sweep) {
      TIDEGATE_TRY_VOID(clean_up(*sweep, pending));
    }
    if (pending.entries.empty() && !file_.has_failed_commit()) {
      file_.rollback();  // nothing to make durable
      return {};
    }
    return file_.commit();
  }();
  if (!made) {
    // After a failed sync the pages of this transaction are written again by the next one, so
    // nothing is taken for stored that is not.
    file_.rollback();
    return made;
  }
  publish(pending);
  return {};
}

/// Makes one change in the open transaction and notes what became of it. An error is one of the
/// transaction.
auto idempotency_store::key_log::make(change_job& job, changed& pending) -> outcome<void> {
  auto const& change = job.change;
  auto const before = current(change.key, pending);
  if (!holds(change.when, before ? &before->record : nullptr)) {
    applied refused;
    if (before) {
      auto there = shown(change.key, *before);
      if (!there) {  // the change is refused in any case, but by what is not known
        job.outcome = failure(there.error());
        return {};
      }
      refused.found = *std::move(there);
    }
    job.outcome = std::move(refused);
    return {};
  }
  bool const is_bounded = !before && change.next && change.bounded;
  if (is_bounded && table_.size() + pending.added >= options_.records_max) {
    job.outcome =
        failure(store_error{store_fault::full, options_.file + ": has the maximum number of keys"});
    return {};
  }
  if (is_bounded && options_.octets_max != 0 &&
      stored_octets() + pending.added * store::record_octets >= options_.octets_max) {
    job.outcome = failure(store_error{
        store_fault::full, options_.file + ": keys and responses take as much as they may"});
    return {};
  }
  if (!before && change.next && change.scope_keys_max != 0 &&
      scopes_.of(change.key) + pending.added_to.of(change.key) >= change.scope_keys_max) {
    job.outcome = failure(store_error{
        store_fault::scope_full, options_.file + ": the scope has the maximum number of keys"});
    return {};
  }
  TIDEGATE_TRY_VOID(write(change, before, job.response, pending));
  job.outcome = applied{true, {}};
  return {};
}

auto idempotency_store::key_log::write(idempotency::change const& change,
                                       std::optional<entry> const& before,
                                       std::shared_ptr<stored_response const> response,
                                       changed& pending) -> outcome<void> {
  if (!change.next) {
    if (before) {
      TIDEGATE_TRY_VOID(file_.remove(before->row));
    }
    pending.entries.insert_or_assign(change.key, std::nullopt);
    return {};
  }
  std::optional<std::string> sealed;
  if (response) {
    std::string text;
    append_response(text, *response);
    auto const keys =
        change.seal ? std::span<seal_key const>(options_.seal_keys) : std::span<seal_key const>();
    TIDEGATE_TRY(sealed, store::seal(keys, {change.key, change.next->token}, text));
  }
  auto const octets = octets_of(*change.next);
  auto row = before ? before->row : 0;
  if (before) {
    TIDEGATE_TRY_VOID(file_.update(row, change.key, octets, sealed));
  } else {
    TIDEGATE_TRY(row, file_.insert(change.key, octets, sealed));
    ++pending.added;
    pending.added_to.add(change.key);
  }
  auto const stored = static_cast<std::uint32_t>(std::min<std::size_t>(
      sealed ? sealed->size() : 0, std::numeric_limits<std::uint32_t>::max()));
  pending.entries.insert_or_assign(change.key,
                                   entry{*change.next, std::move(response), row, stored});
  return {};
}

auto idempotency_store::key_log::clean_up(sweep_job const& sweep, changed& pending)
    -> outcome<void> {
  for (auto left = std::min(sweep.records, table_.places()); left > 0; --left) {
    swept_ = swept_ < table_.places() ? swept_ : 0;
    auto const key = table_.key_at(swept_++);
    auto const before = key ? current(*key, pending) : std::nullopt;
    if (auto const expiry = before ? expire(*key, before->record, sweep.now) : std::nullopt) {
      TIDEGATE_TRY_VOID(write(*expiry, before, nullptr, pending));
      fail_point("record_aged");
    }
  }
  return {};
}

void idempotency_store::key_log::publish(changed const& pending) {
  std::lock_guard const lock(table_mutex_);
  ++counts_.transactions;
  counts_.changes += pending.entries.size();
  for (auto const& [key, entry] : pending.entries) {
    bool const was_there = table_.contains(key);
    if (entry) {
      cache(key, *entry);
    } else {
      table_.erase(key);
    }
    if (entry && !was_there) {
      scopes_.add(key);
    } else if (!entry && was_there) {
      scopes_.remove(key);
    }
  }
}

/// Puts an entry into the table with its response, and lets the oldest responses go that are too
/// much. With the lock on the table.
void idempotency_store::key_log::cache(lookup_key const& key, entry const& entry) {
  table_.put(key, entry);
  if (entry.response) {
    cached_.emplace_back(key, entry.record.token);
  }
  while (!cached_.empty() && (table_.response_octets() > options_.response_cache_octets_max ||
                              cached_.size() > 2 * table_.size())) {
    auto const [oldest, token] = cached_.front();
    cached_.pop_front();
    if (auto const old = table_.find(oldest); old && old->record.token == token) {
      table_.drop_response(oldest);
    }
  }
}

auto idempotency_store::key_log::current(lookup_key const& key, changed const& pending) const
    -> std::optional<entry> {
  auto const found = pending.entries.find(key);
  return found != pending.entries.end() ? found->second : table_.find(key);
}

auto idempotency_store::key_log::shown(lookup_key const& key, entry entry)
    -> outcome<store::found_record> {
  if (!entry.response && has_response(entry.record)) {
    TIDEGATE_TRY(entry.response, read_response_of(key, entry));
  }
  return store::found_record{std::move(entry.record), std::move(entry.response)};
}

auto idempotency_store::key_log::read_response_of(lookup_key const& key, entry const& entry)
    -> outcome<std::shared_ptr<stored_response const>> {
  TIDEGATE_TRY(auto const sealed, file_.response(entry.row, key));
  if (!sealed) {
    return failure(store_error{store_fault::damaged, options_.file + ": a response is missing"});
  }
  TIDEGATE_TRY(auto const text,
               store::unseal(options_.seal_keys, {key, entry.record.token}, *sealed));
  auto read = idempotency::read_response(text);
  if (!read) {
    return failure(store_error{store_fault::damaged,
                               options_.file + ": a response " + to_string(read.error())});
  }
  return std::make_shared<stored_response const>(*std::move(read));
}

auto idempotency_store::key_log::found(lookup_key const& key) -> store::find_answer {
  auto entry = table_.find(key);
  if (!entry) {
    return std::nullopt;
  }
  auto const was_cached = entry->response != nullptr;
  TIDEGATE_TRY(auto there, shown(key, *entry));
  if (there.response && !was_cached) {
    entry->response = there.response;
    std::lock_guard const lock(table_mutex_);
    cache(key, *entry);
  }
  return there;
}

}  // namespace tidegate::store_sqlite
