// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/loop.hpp>
#include <tidegate/store_postgres/idempotency_store.hpp>

#include "connection.hpp"
#include "keys/clock_offset.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace tidegate::store_postgres {

/// The thread that talks to the server, and the queue before it.
///
/// Requests are sent in flights: each is a transaction, and is answered when it is committed. Two
/// may be under way, so that the server never waits for us; what comes meanwhile makes up the next
/// one.
class idempotency_store::worker final : private engine::watched {
 public:
  /// Connects before it returns.
  [[nodiscard]] static auto make(idempotency_options options, server_settings settings)
      -> outcome<std::unique_ptr<worker>>;
  ~worker() override;

  void find(idempotency::lookup_key const& key,
            std::move_only_function<void(store::find_answer)> answer);
  void apply(idempotency::change change, std::move_only_function<void(store::apply_answer)> answer);
  void list_unknown(std::size_t records, std::move_only_function<void(store::list_answer)> answer);
  void sweep(idempotency::wall_time now, std::size_t records);
  [[nodiscard]] auto used() const -> usage;
  [[nodiscard]] auto counted() const -> counts;

 private:
  struct find_job {
    std::move_only_function<void(store::find_answer)> answer;
  };
  struct change_job {
    idempotency::change change;  // in our time; without its response
    std::string response;        // sealed; empty: none
    std::move_only_function<void(store::apply_answer)> answer;
  };
  /// Looks for what time has made something of; what is found becomes `aged_job`s.
  struct sweep_job {
    idempotency::wall_time now;
    std::size_t records;
  };
  struct aged_job {
    idempotency::change change;  // in the time of the server
    idempotency::wall_time due_max;
  };
  struct count_job {};
  struct count_unknown_job {};
  struct list_job {
    std::size_t records;
    std::move_only_function<void(store::list_answer)> answer;
  };

  struct job {
    idempotency::lookup_key key{};
    std::variant<find_job, change_job, sweep_job, aged_job, count_job, count_unknown_job, list_job>
        what;
    instant deadline{};
    std::size_t octets = 0;
    bool is_alone = false;  // it failed, or others did with it
    int attempts = 0;
    rows found{};
  };
  struct flight {
    std::vector<job> jobs;
    bool is_checking = false;  // what it says of the secret comes next
    std::size_t at = 0;        // whose result comes next
    idempotency::wall_time asked{};
    instant deadline{};
    std::optional<store::store_error> error{};
    std::string sqlstate{};
  };
  /// Ticks while there is something to wait for.
  class alarm final : public engine::timer {
   public:
    explicit alarm(worker& owner) : owner_(owner) {}

   private:
    void expired() override { owner_.tick(); }
    worker& owner_;
  };
  /// A connection that is ready for flights.
  struct opened {
    connection_handle handle;
    clock_offset clock;
    std::int64_t records = 0;
  };

  worker(idempotency_options options, server_settings settings, std::unique_ptr<engine::loop> loop);

  // ---- by those who ask ----
  [[nodiscard]] auto refuse(std::size_t octets) -> std::optional<store::store_error>;
  void enqueue(job job);

  // ---- on the thread ----
  void ready(engine::readiness what) override;
  void take();
  void send();
  [[nodiscard]] auto run(char const* name, parameters const& values) -> bool;
  [[nodiscard]] auto send_one(job const& job) -> bool;
  [[nodiscard]] auto next_flight() -> flight;
  void pump();
  void take_result(PGresult* result);
  void end_flight(flight done);
  void answer(job& job);
  void answer_change(job& job, change_job& asked);
  void age_found(job& job, sweep_job const& asked);
  void answer_list(job& job, list_job& asked);
  void fail(job& job, store::store_error const& error);
  [[nodiscard]] auto read_found(idempotency::lookup_key const& key, rows const& found, int record,
                                int response) const -> outcome<store::found_record>;
  void lose_connection(std::string const& why);
  void begin_to_connect();
  void connected(outcome<opened> made);
  void use(opened made);
  void tick();
  void stop_when_done();
  [[nodiscard]] auto now() const -> idempotency::wall_time;
  [[nodiscard]] static auto connect_and_prepare(idempotency_options const& options,
                                                server_settings const& settings) -> outcome<opened>;

  idempotency_options options_;
  server_settings settings_;
  std::unique_ptr<engine::loop> loop_;

  std::mutex mutex_;
  std::vector<job> incoming_;
  bool stopping_ = false;
  bool sweep_waits_ = false;
  std::atomic<std::size_t> waiting_jobs_ = 0;  // not answered yet
  std::atomic<std::size_t> waiting_octets_ = 0;
  std::atomic<std::int64_t> records_ = 0;
  std::atomic<std::int64_t> unknown_ = -1;  // outcomes; -1: not known yet
  std::atomic<std::uint64_t> transactions_ = 0;
  std::atomic<std::uint64_t> requests_ = 0;

  // ---- of the thread ----
  connection_handle handle_;
  engine::descriptor socket_;  // the same as that of libpq, which closes its own
  clock_offset clock_;
  std::chrono::nanoseconds
      learned_ahead_{};  // of our clock to the steady one, when the server was asked
  std::deque<job> waiting_;
  std::deque<flight> flights_;
  alarm alarm_;
  instant counted_at_{};
  bool is_connecting_ = false;
  bool is_stopping_ = false;
  int failures_ = 0;  // to connect, in a row
  instant down_until_{};
  store::store_error down_error_{};
  std::thread connecting_;
  std::thread thread_;
};

}  // namespace tidegate::store_postgres
