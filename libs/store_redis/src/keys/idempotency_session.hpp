// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "keys/stored_record.hpp"
#include "protocol/client.hpp"
#include "protocol/script.hpp"

#include <tidegate/engine/loop.hpp>
#include <tidegate/store_redis/idempotency_store.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::store_redis {

/// A thread with a loop that asks Redis what all threads want to know.
class idempotency_store::session {
 public:
  session(idempotency_options options, std::unique_ptr<engine::loop> loop);
  ~session();
  session(session const&) = delete;
  auto operator=(session const&) -> session& = delete;

  /// Connects and looks whether this Redis will do.
  [[nodiscard]] auto open() -> result<void, store::store_error>;

  void find(idempotency::lookup_key const& key,
            std::move_only_function<void(store::find_answer)> answer);
  void apply(idempotency::change change, std::move_only_function<void(store::apply_answer)> answer);
  void list_unknown(std::size_t records, std::move_only_function<void(store::list_answer)> answer);
  void sweep(idempotency::wall_time now, std::size_t records);
  [[nodiscard]] auto used() const -> usage;

 private:
  using task = std::move_only_function<void()>;

  // ---- by any thread ----
  /// False when too many wait. Who enters posts a task, and leaves with the same octets when there
  /// is its answer.
  [[nodiscard]] auto enter(std::size_t octets) -> bool;
  void post(task what);
  void leave(std::size_t octets);
  [[nodiscard]] auto clock() const -> idempotency::wall_time;

  // ---- on the thread of the loop ----
  void run_inbox();
  using checked_function = std::function<void(result<void, store::store_error>)>;
  void check(std::size_t bucket, checked_function done);
  void leave_secret(std::size_t bucket, checked_function done);
  void take_secret_back(std::vector<std::size_t> from, checked_function done);
  [[nodiscard]] auto is_other_secret(resp_value const& stored) const -> bool;
  void do_find(idempotency::lookup_key const& key,
               std::move_only_function<void(store::find_answer)> answer);
  void do_apply(idempotency::change change,
                std::move_only_function<void(store::apply_answer)> answer);
  struct listing;
  void do_list(std::shared_ptr<listing> const& what);
  void take_listed(listing& what, answer const& got);
  void do_sweep(idempotency::wall_time now, std::size_t records);
  void look_at_eviction();
  void take_due(std::size_t bucket, idempotency::wall_time now, answer const& got);
  [[nodiscard]] auto read_applied(idempotency::lookup_key const& key, answer const& got)
      -> store::apply_answer;
  [[nodiscard]] auto read_found(idempotency::lookup_key const& key, resp_value const& record,
                                resp_value const& response, std::chrono::milliseconds store_time)
      -> store::find_answer;
  /// Takes the answer to INFO.
  void note_eviction(resp_value const& info);
  void note_records(std::size_t bucket, resp_value const& count);
  void note_unknown(std::size_t bucket, resp_value const& count);
  [[nodiscard]] auto room_in(std::size_t bucket) const -> std::int64_t;

  idempotency_options options_;
  std::string name_;
  writer_id const id_;
  script change_script_{store_redis::change_script()};
  script due_script_{store_redis::due_script()};
  script unknown_script_{store_redis::unknown_script()};
  std::unique_ptr<engine::loop> loop_;
  std::unique_ptr<client> client_;
  std::array<std::atomic<std::int64_t>, buckets> records_{};
  /// How many unknown outcomes each bucket has, and one more; 0 while that is not known.
  std::array<std::atomic<std::int64_t>, buckets> unknown_and_one_{};
  std::atomic<std::chrono::nanoseconds> ahead_;   // of the steady clock
  std::size_t sweeping_ = 0;                      // answers that the last sweep waits for
  std::size_t looked_at_ = 0;                     // the bucket whose server is asked next
  std::optional<store::store_error> drops_keys_;  // while it may
  bool is_secret_missing_ = false;                // in a bucket, when it was opened
  std::vector<std::size_t> secret_left_;          // the buckets that had none before

  std::mutex mutex_;
  std::condition_variable left_;
  std::vector<task> inbox_;
  std::size_t inside_ = 0;  // that entered and did not leave
  std::size_t inside_octets_ = 0;
  std::thread thread_;
};

}  // namespace tidegate::store_redis
