// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/store/record_table.hpp>
#include <tidegate/store/scope_counts.hpp>
#include <tidegate/store_sqlite/idempotency_store.hpp>

#include "keys/key_file.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

namespace tidegate::store_sqlite {

/// The thread that writes, and what it shares with those who ask.
///
/// The table holds what is committed and nothing else, so that no caller acts on what a crash could
/// undo. A transaction collects its changes in `pending` beside it; they go into the table when it
/// is committed.
class idempotency_store::key_log {
 public:
  key_log(options options, key_file file);
  ~key_log();
  key_log(key_log const&) = delete;
  auto operator=(key_log const&) -> key_log& = delete;

  /// Reads every record, and loses what was dispatched when the last process ended.
  [[nodiscard]] auto load(idempotency::wall_time now) -> result<void, store::store_error>;
  void start();

  void find(idempotency::lookup_key const& key,
            std::move_only_function<void(store::find_answer)> answer);
  void apply(idempotency::change change, std::move_only_function<void(store::apply_answer)> answer);
  void list_unknown(std::size_t records, std::move_only_function<void(store::list_answer)> answer);
  void sweep(idempotency::wall_time now, std::size_t records);
  [[nodiscard]] auto used() const -> usage;
  [[nodiscard]] auto stored_octets() const -> std::size_t;
  [[nodiscard]] auto counted() const -> counts;
  [[nodiscard]] auto is_new() const noexcept -> bool { return is_new_; }
  [[nodiscard]] auto newest() const noexcept -> idempotency::wall_time { return newest_; }

 private:
  struct change_job {
    idempotency::change change;
    std::shared_ptr<idempotency::stored_response const> response;  // of the change
    std::move_only_function<void(store::apply_answer)> answer;
    std::optional<store::apply_answer> outcome;
  };
  struct find_job {
    idempotency::lookup_key key;
    std::move_only_function<void(store::find_answer)> answer;
  };
  struct sweep_job {
    idempotency::wall_time now;
    std::size_t records;
  };
  using job = std::variant<change_job, find_job, sweep_job>;
  using entry = store::record_table::entry;
  /// What a transaction has made of keys.
  struct changed {
    std::unordered_map<idempotency::lookup_key, std::optional<entry>, idempotency::lookup_key_hash>
        entries;            // nothing: removed
    std::size_t added = 0;  // keys that were not there
    store::scope_counts added_to;
  };
  /// An error when the queue is full or the store is being closed.
  [[nodiscard]] auto enqueue(job job) -> std::optional<store::store_error>;
  void run();
  void run_jobs(std::vector<job>& jobs);
  [[nodiscard]] auto transact(std::span<change_job> jobs, std::optional<sweep_job> const& sweep)
      -> outcome<void>;
  [[nodiscard]] auto make(change_job& job, changed& pending) -> outcome<void>;
  [[nodiscard]] auto write(idempotency::change const& change, std::optional<entry> const& before,
                           std::shared_ptr<idempotency::stored_response const> response,
                           changed& pending) -> outcome<void>;
  [[nodiscard]] auto clean_up(sweep_job const& sweep, changed& pending) -> outcome<void>;
  void publish(changed const& pending);
  void cache(idempotency::lookup_key const& key, entry const& entry);

  [[nodiscard]] auto current(idempotency::lookup_key const& key, changed const& pending) const
      -> std::optional<entry>;
  [[nodiscard]] auto shown(idempotency::lookup_key const& key, entry entry)
      -> outcome<store::found_record>;
  [[nodiscard]] auto read_response_of(idempotency::lookup_key const& key, entry const& entry)
      -> outcome<std::shared_ptr<idempotency::stored_response const>>;
  [[nodiscard]] auto found(idempotency::lookup_key const& key) -> store::find_answer;

  options options_;
  key_file file_;
  bool const is_new_ = file_.is_new();
  idempotency::wall_time newest_ = idempotency::wall_time::min();  // when it was loaded
  std::size_t swept_ = 0;                                          // up to this place of the table

  mutable std::mutex table_mutex_;  // the thread reads without it: it alone writes
  store::record_table table_;
  store::scope_counts scopes_;  // of the table
  std::deque<std::pair<idempotency::lookup_key, idempotency::fencing_token>> cached_;
  counts counts_;

  std::mutex queue_mutex_;
  std::condition_variable queued_;
  std::deque<job> queue_;
  bool sweep_queued_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tidegate::store_sqlite
