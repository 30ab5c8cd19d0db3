// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/loop.hpp>
#include <tidegate/store_postgres/idempotency_store.hpp>

#include "connection.hpp"
#include "keys/clock_offset.hpp"
#include "keys/job_inbox.hpp"
#include "keys/key_connection.hpp"
#include "keys/key_job.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

namespace tidegate::store_postgres {

/// The thread that talks to the server, and the queue before it.
///
/// Requests are sent in flights: each is a transaction, and is answered when it is committed. Two
/// may be under way, so that the server never waits for us; what comes meanwhile makes up the next
/// one.
class idempotency_worker final : public store::idempotency_store, private engine::watched {
 public:
  /// Connects before it returns.
  [[nodiscard]] static auto make(idempotency_options options, server_settings settings)
      -> outcome<std::unique_ptr<idempotency_worker>>;
  ~idempotency_worker() override;

  void find(idempotency::lookup_key const& key, store::find_callback answer) override;
  void apply(idempotency::change change, store::apply_callback answer) override;
  void list_unknown(std::size_t records, store::list_callback answer) override;
  void sweep(idempotency::wall_time now, std::size_t records) override;
  [[nodiscard]] auto is_shared() const -> bool override { return true; }
  /// Records by the last answers; nothing of them is in the memory of this process.
  [[nodiscard]] auto used() const -> usage override;

  /// How many transactions there were, and how many requests they answered.
  struct counts {
    std::uint64_t transactions = 0;
    std::uint64_t requests = 0;
  };
  [[nodiscard]] auto counted() const -> counts;

 private:
  /// Ticks while there is something to wait for.
  class tick_timer final : public engine::timer {
   public:
    explicit tick_timer(idempotency_worker& owner) : owner_(owner) {}

   private:
    void expired() override { owner_.tick(); }
    idempotency_worker& owner_;
  };
  /// What any thread may ask for.
  struct figures {
    std::atomic<std::int64_t> records = 0;
    std::atomic<std::int64_t> unknown = -1;  // outcomes; -1: not known yet
    std::atomic<std::uint64_t> transactions = 0;
    std::atomic<std::uint64_t> requests = 0;
  };

  idempotency_worker(idempotency_options options, server_settings settings,
                     std::unique_ptr<engine::loop> loop);

  // ---- by those who ask ----
  void enqueue(key_job job);

  // ---- on the thread ----
  void ready(engine::readiness what) override;
  void take();
  void send();
  [[nodiscard]] auto next_flight() -> flight;
  void take_result(PGresult* result);
  void end_flight(flight done);
  void answer(key_job& job);
  void answer_change(key_job const& job, change_job& asked);
  void expire_found(key_job const& job, sweep_job const& asked);
  void fail(key_job& job, store::store_error const& error);
  void fail_waiting();
  [[nodiscard]] auto read_found(idempotency::lookup_key const& key, rows const& found, int record,
                                int response) const -> outcome<store::found_record>;
  void lose_connection(std::string const& why);
  void begin_to_connect();
  void connected(outcome<key_connection> made);
  void use(key_connection made);
  void tick();
  void stop_when_done();
  [[nodiscard]] auto now() const -> idempotency::wall_time;

  idempotency_options options_;
  server_settings settings_;
  std::unique_ptr<engine::loop> loop_;

  job_inbox inbox_;
  figures figures_;

  // ---- of the thread ----
  connection_handle handle_;
  engine::descriptor socket_;  // the same as that of libpq, which closes its own
  clock_offset clock_;
  std::chrono::nanoseconds clock_ahead_{};  // of the steady one, when the server was asked
  std::deque<key_job> waiting_;
  std::deque<flight> flights_;
  tick_timer timer_;
  instant counted_at_{};
  bool is_stopping_ = false;
  int failures_ = 0;  // to connect, in a row
  instant down_until_{};
  store::store_error down_error_{};
  key_connector connector_;
  std::thread thread_;
};

}  // namespace tidegate::store_postgres
