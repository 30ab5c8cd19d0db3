// SPDX-License-Identifier: Apache-2.0
#include "keys/idempotency_worker.hpp"

#include "backoff.hpp"
#include "keys/key_statements.hpp"
#include "server_schema.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace tidegate::store_postgres {

using idempotency::lookup_key;
using idempotency::record;
using idempotency::record_state;
using idempotency::wall_time;
using store::applied;
using store::found_record;
using store::store_error;
using store::store_fault;

namespace {

constexpr std::size_t flight_max = 256;
constexpr std::size_t flights_max = 2;
constexpr std::size_t sweep_max = 1000;
constexpr std::size_t list_max = 1000;
/// A job that loses against others on the server is tried so many times.
constexpr int attempts_max = 5;
constexpr std::chrono::milliseconds tick_time{100};
/// Where no caller asks, the server is asked all the same, so that the clocks are compared.
constexpr std::chrono::seconds count_again{60};
/// The server is asked for its time when our clock has been moved by more than that.
constexpr std::chrono::milliseconds drift_max{500};

}  // namespace

auto open_idempotency_store(idempotency_options options)
    -> result<std::unique_ptr<store::idempotency_store>, store_error> {
  TIDEGATE_TRY(auto settings, read_url(options.url));
  TIDEGATE_TRY_VOID(prepare_schema(settings));
  return idempotency_worker::make(std::move(options), std::move(settings));
}

// ---- its life ----

idempotency_worker::idempotency_worker(idempotency_options options, server_settings settings,
                                       std::unique_ptr<engine::loop> loop)
    : options_(std::move(options)),
      settings_(std::move(settings)),
      loop_(std::move(loop)),
      inbox_(settings_.name, options_.queue_max, options_.queue_octets_max),
      timer_(*this),
      connector_(*loop_, options_, settings_,
                 [this](outcome<key_connection> made) { connected(std::move(made)); }) {}

auto idempotency_worker::make(idempotency_options options, server_settings settings)
    -> outcome<std::unique_ptr<idempotency_worker>> {
  auto loop = engine::loop::make();
  if (!loop) {
    return failure(store_error{store_fault::unavailable, to_string(loop.error())});
  }
  TIDEGATE_TRY(auto made, open_key_connection(options, settings));
  std::unique_ptr<idempotency_worker> all(
      new idempotency_worker(std::move(options), std::move(settings), *std::move(loop)));
  all->use(std::move(made));
  all->thread_ = std::thread([w = all.get()] { w->loop_->run(); });
  return all;
}

idempotency_worker::~idempotency_worker() {
  inbox_.stop();
  if (thread_.joinable()) {
    loop_->post([this] {
      is_stopping_ = true;
      take();
      stop_when_done();
    });
    thread_.join();
  }
}

/// Whatever waits is answered, in time: by the server, or by a time-out.
void idempotency_worker::stop_when_done() {
  if (is_stopping_ && flights_.empty() && waiting_.empty()) {
    timer_.cancel();
    socket_.close();
    handle_.reset();
    loop_->stop();
  }
}

auto idempotency_worker::now() const -> wall_time {
  return options_.clock
             ? options_.clock()
             : std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

// ---- by those who ask ----

void idempotency_worker::enqueue(key_job job) {
  auto const is_first = inbox_.add(job);
  if (!is_first) {
    fail(job, is_first.error());
  } else if (*is_first) {
    loop_->post([this] { take(); });
  }
}

void idempotency_worker::find(lookup_key const& key, store::find_callback answer) {
  enqueue({key, find_job{std::move(answer)}});
}

void idempotency_worker::apply(idempotency::change change, store::apply_callback answer) {
  std::string sealed;
  if (change.response && change.next) {
    std::string text;
    append_response(text, *change.response);
    auto const keys = change.seal ? std::span<store::seal_key const>(options_.seal_keys)
                                  : std::span<store::seal_key const>();
    auto made = store::seal(keys, {change.key, change.next->token}, text);
    if (!made) {
      answer(failure(std::move(made).error()));
      return;
    }
    sealed = *std::move(made);
  }
  change.response.reset();
  auto const key = change.key;
  auto const octets = sealed.size();
  key_job asked{key, change_job{std::move(change), std::move(sealed), std::move(answer)}};
  asked.octets = octets;
  enqueue(std::move(asked));
}

void idempotency_worker::sweep(wall_time now, std::size_t records) {
  if (!inbox_.begin_sweep()) {
    return;
  }
  enqueue({{}, sweep_job{now, std::min(records, sweep_max)}});
}

void idempotency_worker::list_unknown(std::size_t records, store::list_callback answer) {
  enqueue({{}, list_job{std::min(records, list_max), std::move(answer)}});
}

auto idempotency_worker::used() const -> usage {
  return {static_cast<std::size_t>(std::max<std::int64_t>(0, figures_.records)), 0,
          inbox_.waiting_octets(),
          figures_.unknown < 0 ? std::nullopt
                               : std::optional(static_cast<std::size_t>(figures_.unknown))};
}

auto idempotency_worker::counted() const -> counts {
  return {figures_.transactions, figures_.requests};
}

// ---- sending ----

void idempotency_worker::take() {
  for (auto& job : inbox_.take_all()) {
    job.deadline = loop_->now() + options_.timeout;
    if (!handle_ && !connector_.is_connecting()) {
      fail(job, down_error_);
    } else {
      waiting_.push_back(std::move(job));
    }
  }
  // A clock that is set, or runs faster or slower to be right again, is another one to the server.
  auto const ahead = now().time_since_epoch() - loop_->now().time_since_epoch();
  bool const has_drifted = abs(ahead - clock_ahead_) > drift_max;
  if ((loop_->now() >= counted_at_ + count_again || has_drifted) && handle_) {
    clock_ahead_ = ahead;
    counted_at_ = loop_->now();
    inbox_.note_added(0);
    waiting_.push_back({{}, count_job{}, loop_->now() + options_.timeout});
  }
  send();
}

auto idempotency_worker::next_flight() -> flight {
  flight next;
  while (!waiting_.empty() && next.jobs.size() < flight_max) {
    bool const is_alone = waiting_.front().is_alone;
    if (is_alone && !next.jobs.empty()) {
      break;
    }
    next.jobs.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    if (is_alone) {
      break;
    }
  }
  // What is asked of one key stays in the order in which it came.
  std::ranges::stable_sort(next.jobs, {}, lock_order_of);
  next.asked = now();
  next.deadline = loop_->now() + options_.timeout;
  return next;
}

void idempotency_worker::send() {
  while (handle_ && flights_.size() < flights_max && !waiting_.empty()) {
    flights_.push_back(next_flight());
    auto& next = flights_.back();
    next.is_checking = !options_.secret_digest.empty();
    bool is_sent = !next.is_checking ||
                   send_prepared(handle_.get(), "secret", parameters(options_.secret_digest, true));
    bool const is_full = figures_.records >= static_cast<std::int64_t>(options_.records_max);
    for (auto const& job : next.jobs) {
      is_sent = is_sent && send_job(handle_.get(), job, clock_, is_full);
    }
    if (!is_sent || PQpipelineSync(handle_.get()) != 1 || PQflush(handle_.get()) < 0) {
      lose_connection(error_text(PQerrorMessage(handle_.get())));
      return;
    }
  }
  if (!flights_.empty() || !waiting_.empty()) {
    if (!timer_.is_set()) {
      timer_.set(loop_->timers(), loop_->now() + tick_time);
    }
  }
}

// ---- receiving ----

void idempotency_worker::ready(engine::readiness /*what*/) {
  // There is one event for all that can be read, so all of it is read. What TLS has decrypted
  // and libpq has not taken does not show on the socket: at most a record, which takes a few calls.
  for (int more = 0; handle_ && more >= 0;) {
    auto* const c = handle_.get();
    if (PQflush(c) < 0 || PQconsumeInput(c) != 1) {
      lose_connection(error_text(PQerrorMessage(c)));
      break;
    }
    while (handle_ && !flights_.empty() && PQisBusy(handle_.get()) == 0) {
      take_result(PQgetResult(handle_.get()));
    }
    if (handle_) {
      pollfd readable{PQsocket(handle_.get()), POLLIN, 0};
      bool const is_readable = poll(&readable, 1, 0) > 0;
      more = is_readable ? 4 : more - (PQsslInUse(handle_.get()) != 0 ? 1 : 5);
    }
  }
  send();
  stop_when_done();
}

void idempotency_worker::take_result(PGresult* result) {
  auto& f = flights_.front();
  rows given(result);
  if (f.at == f.jobs.size()) {
    if (result == nullptr || PQresultStatus(result) != PGRES_PIPELINE_SYNC) {
      lose_connection(error_text(PQerrorMessage(handle_.get())));
      return;
    }
    auto done = std::move(f);
    flights_.pop_front();
    end_flight(std::move(done));
    return;
  }
  if (result == nullptr) {
    if (PQstatus(handle_.get()) != CONNECTION_OK) {
      lose_connection(error_text(PQerrorMessage(handle_.get())));
      return;
    }
    f.at += std::exchange(f.is_checking, false) ? 0U : 1U;
    return;
  }
  switch (PQresultStatus(result)) {
    case PGRES_TUPLES_OK:
    case PGRES_COMMAND_OK:
      if (!f.is_checking) {
        f.jobs[f.at].found = std::move(given);
      }
      break;
    case PGRES_PIPELINE_ABORTED: break;
    default: {
      auto const text = error_text(PQresultErrorMessage(result));
      if (PQstatus(handle_.get()) != CONNECTION_OK) {
        lose_connection(text);
        return;
      }
      if (!f.error) {
        auto const* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        f.sqlstate = state != nullptr ? state : "";
        f.error = f.sqlstate == other_secret_state
                      ? store::stored_with_another_secret(settings_.name)
                      : store_error{f.sqlstate == "53100" ? store_fault::no_space
                                                          : store_fault::unavailable,
                                    settings_.name + ": " + text};
      }
      break;
    }
  }
}

void idempotency_worker::end_flight(flight done) {
  if (!done.error) {
    ++figures_.transactions;
    figures_.requests += done.jobs.size();
    for (auto& job : done.jobs) {
      if (std::holds_alternative<count_job>(job.request)) {
        clock_.update(done.asked, time_of(job.found.number(0, 1)), now());
      }
      answer(job);
    }
    return;
  }
  // Nothing of it was made. An error is that of one of them; 40001 and 40P01 are those of other
  // transactions. What is wrong with the secret is wrong for all of them.
  bool const may_try_again = done.sqlstate == "40001" || done.sqlstate == "40P01";
  bool const is_of_one = done.jobs.size() > 1 && done.sqlstate != other_secret_state;
  for (auto job = done.jobs.rbegin(); job != done.jobs.rend(); ++job) {
    if (++job->attempts < attempts_max && (is_of_one || may_try_again)) {
      job->is_alone = true;
      job->found = {};
      waiting_.push_front(std::move(*job));
    } else {
      fail(*job, *done.error);
    }
  }
}

auto idempotency_worker::read_found(lookup_key const& key, rows const& found, int record,
                                    int response) const -> outcome<found_record> {
  auto const damaged = [&](std::string const& why) {
    return failure(store_error{store_fault::damaged,
                               settings_.name + ": record " + to_string(key) + " " + why});
  };
  auto read = idempotency::read_record(found.octets(0, record));
  if (!read) {
    return damaged(to_string(read.error()));
  }
  found_record all{clock_.to_ours(*read), nullptr};
  if (!found.is_null(0, response)) {
    TIDEGATE_TRY(auto const text,
                 store::unseal(options_.seal_keys, {key, read->token}, found.octets(0, response)));
    auto parsed = idempotency::read_response(text);
    if (!parsed) {
      return damaged(to_string(parsed.error()));
    }
    all.response = std::make_shared<idempotency::stored_response const>(*std::move(parsed));
  }
  return all;
}

void idempotency_worker::answer(key_job& job) {
  inbox_.note_answered(job.octets);
  if (auto* const asked = std::get_if<find_job>(&job.request)) {
    if (job.found.size() == 0) {
      asked->answer(std::optional<found_record>());
    } else if (auto found = read_found(job.key, job.found, 0, 1)) {
      asked->answer(*std::move(found));
    } else {
      asked->answer(failure(std::move(found).error()));
    }
  } else if (auto* const change = std::get_if<change_job>(&job.request)) {
    answer_change(job, *change);
  } else if (auto const* const sweep = std::get_if<sweep_job>(&job.request)) {
    expire_found(job, *sweep);
  } else if (auto* const list = std::get_if<list_job>(&job.request)) {
    auto all = read_listed(job.found);
    for (auto& each : all) {
      each.record = clock_.to_ours(each.record);
    }
    store::keep_newest(all, list->records);
    list->answer(std::move(all));
  } else if (std::holds_alternative<count_job>(job.request)) {
    figures_.records = job.found.number(0, 0);
  } else if (std::holds_alternative<count_unknown_job>(job.request)) {
    figures_.unknown = job.found.number(0, 0);
  } else {
    figures_.records -= job.found.number(0, 0) == 3 ? 1 : 0;
  }
}

void idempotency_worker::answer_change(key_job const& job, change_job& asked) {
  auto const code = job.found.number(0, 0);
  switch (code) {
    case 0:
      if (job.found.is_null(0, 1)) {
        asked.answer(applied{false, std::nullopt});
      } else if (auto found = read_found(job.key, job.found, 1, 2)) {
        asked.answer(applied{false, *std::move(found)});
      } else {
        asked.answer(failure(std::move(found).error()));
      }
      return;
    case 4:
      asked.answer(failure(
          store_error{store_fault::full, settings_.name + ": has the maximum number of keys"}));
      return;
    case 5:
      asked.answer(failure(
          store_error{store_fault::scope_full, "the scope has the maximum number of keys"}));
      return;
    default:
      figures_.records += code == 2 ? 1 : code == 3 ? -1 : 0;
      asked.answer(applied{true, std::nullopt});
      return;
  }
}

/// What was found is changed before anything else that waits. Who renews a lease meanwhile is not
/// overtaken: then it is not due any more.
void idempotency_worker::expire_found(key_job const& job, sweep_job const& asked) {
  inbox_.end_sweep();
  auto const now = clock_.to_server(asked.now);
  for (auto const& [key, found] : read_listed(job.found)) {
    if (auto expiry = expire(key, found, now)) {
      inbox_.note_added(0);
      waiting_.push_front(
          {key, expire_job{*std::move(expiry), now}, loop_->now() + options_.timeout});
    }
  }
  inbox_.note_added(0);
  waiting_.push_back({{}, count_unknown_job{}, loop_->now() + options_.timeout});
}

void idempotency_worker::fail(key_job& job, store_error const& error) {
  if (job.deadline != instant()) {  // it was taken into the queue
    inbox_.note_answered(job.octets);
  }
  if (auto* const asked = std::get_if<find_job>(&job.request)) {
    asked->answer(failure(error));
  } else if (auto* const change = std::get_if<change_job>(&job.request)) {
    change->answer(failure(error));
  } else if (auto* const list = std::get_if<list_job>(&job.request)) {
    list->answer(failure(error));
  } else if (std::holds_alternative<sweep_job>(job.request)) {
    inbox_.end_sweep();
  }
}

void idempotency_worker::fail_waiting() {
  for (auto& job : std::exchange(waiting_, {})) {
    fail(job, down_error_);
  }
}

// ---- connecting ----

void idempotency_worker::use(key_connection made) {
  handle_ = std::move(made.handle);
  clock_ = made.clock;
  clock_ahead_ = now().time_since_epoch() - loop_->now().time_since_epoch();
  figures_.records = made.records;
  counted_at_ = loop_->now();
  failures_ = 0;
  socket_ = engine::descriptor(dup(PQsocket(handle_.get())));
  if (!socket_.is_open() || !loop_->watch(socket_, *this)) {
    lose_connection("the system has no descriptor for it");
  }
}

void idempotency_worker::lose_connection(std::string const& why) {
  socket_.close();
  handle_.reset();
  down_error_ = {store_fault::unavailable, settings_.name + ": " + why};
  for (auto& each : std::exchange(flights_, {})) {
    for (auto& job : each.jobs) {
      fail(job, down_error_);
    }
  }
  begin_to_connect();
}

void idempotency_worker::begin_to_connect() {
  if (is_stopping_) {
    fail_waiting();
    return;
  }
  timer_.set(loop_->timers(), loop_->now() + tick_time);
  connector_.start();
}

void idempotency_worker::connected(outcome<key_connection> made) {
  if (made) {
    use(*std::move(made));
    send();
  } else {
    down_error_ = made.error();
    down_until_ = loop_->now() + backoff(failures_++);
    fail_waiting();
    timer_.set(loop_->timers(), loop_->now() + tick_time);
  }
  stop_when_done();
}

void idempotency_worker::tick() {
  auto const now = loop_->now();
  if (!flights_.empty() && flights_.front().deadline + tick_time < now) {
    lose_connection("no answer in time");
  }
  while (!waiting_.empty() && waiting_.front().deadline < now) {
    auto late = std::move(waiting_.front());
    waiting_.pop_front();
    fail(late, {store_fault::unavailable, settings_.name + ": no answer in time"});
  }
  if (!handle_ && !connector_.is_connecting() && now >= down_until_) {
    begin_to_connect();
  }
  if (!handle_ || !flights_.empty() || !waiting_.empty()) {
    timer_.set(loop_->timers(), now + tick_time);
  }
  stop_when_done();
}

}  // namespace tidegate::store_postgres
