// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "keys/bucket_counts.hpp"
#include "keys/server_check.hpp"
#include "keys/stored_record.hpp"
#include "keys/task_inbox.hpp"
#include "protocol/client.hpp"
#include "protocol/script.hpp"

#include <tidegate/engine/loop.hpp>
#include <tidegate/store_redis/idempotency_store.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>

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
  [[nodiscard]] auto used() const -> usage { return counts_.used(); }

 private:
  [[nodiscard]] auto clock() const -> idempotency::wall_time;

  // ---- on the thread of the loop ----
  void do_find(idempotency::lookup_key const& key,
               std::move_only_function<void(store::find_answer)> answer);
  void do_apply(idempotency::change change,
                std::move_only_function<void(store::apply_answer)> answer);
  struct listing;
  void do_list(std::shared_ptr<listing> const& what);
  void take_listed(listing& what, answer const& got);
  void do_sweep(idempotency::wall_time now, std::size_t records);
  void check_eviction();
  void take_due(std::size_t bucket, idempotency::wall_time now, answer const& got);
  [[nodiscard]] auto read_applied(idempotency::lookup_key const& key, answer const& got)
      -> store::apply_answer;
  [[nodiscard]] auto read_found(idempotency::lookup_key const& key, resp_value const& record,
                                resp_value const& response, std::chrono::milliseconds store_time)
      -> store::find_answer;

  idempotency_options options_;
  std::string name_;
  writer_id const id_;
  key_scripts scripts_;
  std::unique_ptr<engine::loop> loop_;
  std::unique_ptr<client> client_;
  task_inbox inbox_;
  bucket_counts counts_;
  server_check server_;
  std::atomic<std::chrono::nanoseconds> ahead_;  // of the steady clock
  std::size_t sweeping_ = 0;                     // answers that the last sweep waits for
  std::size_t next_checked_ = 0;                 // the bucket whose server is asked next
  std::thread thread_;
};

}  // namespace tidegate::store_redis
