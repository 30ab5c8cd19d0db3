// SPDX-License-Identifier: Apache-2.0
#include "keys/idempotency_worker.hpp"

#include "backoff.hpp"
#include "server_schema.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
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
/// More unknown outcomes than these are not counted: that would keep the server busy every second.
constexpr std::int64_t unknown_counted_max = 100'000;
/// A job that loses against others on the server is tried so many times.
constexpr int attempts_max = 5;
/// Of `idempotency_check_secret`.
constexpr std::string_view other_secret_state = "TG001";
constexpr std::chrono::milliseconds tick_time{100};
/// Where no caller asks, the server is asked all the same, so that the clocks are compared.
constexpr std::chrono::seconds count_again{60};
/// The server is asked for its time when our clock has been moved by more than that.
constexpr std::chrono::milliseconds drift_max{500};

constexpr std::array<std::pair<char const*, char const*>, 7> statements = {{
    {"find", "SELECT record, response FROM idempotency_record WHERE key = $1::bytea"},
    {"apply",
     "SELECT outcome, found_record, found_response FROM idempotency_apply($1::bytea, $2::bigint,"
     " $3::bigint, $4::bigint, $5::bigint, $6::bigint, $7::bigint, $8::bigint, $9::bytea,"
     " $10::bytea, $11::bigint, $12::boolean)"},
    {"sweep",
     "SELECT key, record FROM idempotency_record WHERE due <= $1::bigint ORDER BY due LIMIT "
     "$2::bigint"},
    {"unknown",
     "SELECT key, record FROM idempotency_record WHERE state = 2 ORDER BY due DESC LIMIT "
     "$1::bigint"},
    {"count_unknown",
     "SELECT count(*) FROM (SELECT FROM idempotency_record WHERE state = 2 LIMIT $1::bigint) AS u"},
    {"count",
     "SELECT coalesce(sum(keys), 0)::bigint,"
     " (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM idempotency_scope"},
    {"secret", "SELECT idempotency_check_secret($1::bytea, $2::boolean)"},
}};

[[nodiscard]] auto milliseconds_of(wall_time time) noexcept -> std::int64_t {
  return time.time_since_epoch().count();
}
[[nodiscard]] auto time_of(std::int64_t milliseconds) noexcept -> wall_time {
  return wall_time(std::chrono::milliseconds(milliseconds));
}

[[nodiscard]] auto octets_of(lookup_key const& key) noexcept -> std::string_view {
  return {reinterpret_cast<char const*>(key.octets.data()), key.octets.size()};
}

/// When time makes something of it: `expire` has a change for it then.
[[nodiscard]] auto due(record const& r) noexcept -> wall_time {
  switch (r.state) {
    case record_state::dispatched: return std::min(r.lease_until, forgotten(r));
    case record_state::completed: return std::min(expires(r), forgotten(r));
    default: return forgotten(r);
  }
}

[[nodiscard]] auto bits_of(idempotency::record_states states) noexcept -> std::int64_t {
  std::int64_t bits = 0;
  for (auto const state : {record_state::dispatched, record_state::completed, record_state::unknown,
                           record_state::tombstone}) {
    bits |= states.contains(state) ? std::int64_t{1} << static_cast<int>(state) : 0;
  }
  return bits;
}

/// Keys and records, in the time of the server. Who asks for one that is damaged hears that it is.
[[nodiscard]] auto listed(rows const& found) -> std::vector<store::listed_record> {
  std::vector<store::listed_record> all;
  for (int i = 0; i < found.size(); ++i) {
    lookup_key key;
    auto const octets = found.octets(i, 0);
    auto read = idempotency::read_record(found.octets(i, 1));
    if (octets.size() == key.octets.size() && read) {
      std::transform(octets.begin(), octets.end(), key.octets.begin(),
                     [](char c) { return static_cast<std::byte>(c); });
      all.push_back({key, *std::move(read)});
    }
  }
  return all;
}

/// Whether the counter of a scope is locked for it.
[[nodiscard]] auto locks_scope(idempotency::change const& change) noexcept -> bool {
  return !change.when.token || !change.next;
}

}  // namespace

// ---- its life ----

idempotency_store::worker::worker(idempotency_options options, server_settings settings,
                                  std::unique_ptr<engine::loop> loop)
    : options_(std::move(options)),
      settings_(std::move(settings)),
      loop_(std::move(loop)),
      alarm_(*this) {}

auto idempotency_store::worker::make(idempotency_options options, server_settings settings)
    -> outcome<std::unique_ptr<worker>> {
  auto loop = engine::loop::make();
  if (!loop) {
    return failure(store_error{store_fault::unavailable, to_string(loop.error())});
  }
  TIDEGATE_TRY(auto made, connect_and_prepare(options, settings));
  std::unique_ptr<worker> all(
      new worker(std::move(options), std::move(settings), *std::move(loop)));
  all->use(std::move(made));
  all->thread_ = std::thread([w = all.get()] { w->loop_->run(); });
  return all;
}

idempotency_store::worker::~worker() {
  {
    std::lock_guard const lock(mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) {
    loop_->post([this] {
      is_stopping_ = true;
      take();
      stop_when_done();
    });
    thread_.join();
  }
  if (connecting_.joinable()) {
    connecting_.join();
  }
}

/// Whatever waits is answered, in time: by the server, or by a time-out.
void idempotency_store::worker::stop_when_done() {
  if (is_stopping_ && flights_.empty() && waiting_.empty()) {
    alarm_.cancel();
    socket_.close();
    handle_.reset();
    loop_->stop();
  }
}

auto idempotency_store::worker::now() const -> wall_time {
  return options_.clock
             ? options_.clock()
             : std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

// ---- by those who ask ----

auto idempotency_store::worker::refuse(std::size_t octets) -> std::optional<store_error> {
  if (stopping_) {
    return store_error{store_fault::stopped, settings_.name + ": is being closed"};
  }
  if (waiting_jobs_ >= options_.queue_max || waiting_octets_ + octets > options_.queue_octets_max) {
    return store_error{store_fault::unavailable, settings_.name + ": too many requests wait"};
  }
  return std::nullopt;
}

void idempotency_store::worker::enqueue(job job) {
  std::unique_lock lock(mutex_);
  if (auto const error = refuse(job.octets)) {
    lock.unlock();
    fail(job, *error);
    return;
  }
  ++waiting_jobs_;
  waiting_octets_ += job.octets;
  bool const is_first = incoming_.empty();
  incoming_.push_back(std::move(job));
  lock.unlock();
  if (is_first) {
    loop_->post([this] { take(); });
  }
}

void idempotency_store::worker::find(lookup_key const& key,
                                     std::move_only_function<void(store::find_answer)> answer) {
  enqueue({key, find_job{std::move(answer)}});
}

void idempotency_store::worker::apply(idempotency::change change,
                                      std::move_only_function<void(store::apply_answer)> answer) {
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
  job asked{key, change_job{std::move(change), std::move(sealed), std::move(answer)}};
  asked.octets = octets;
  enqueue(std::move(asked));
}

void idempotency_store::worker::sweep(wall_time now, std::size_t records) {
  {
    std::lock_guard const lock(mutex_);
    if (sweep_waits_ || refuse(0)) {
      return;
    }
    sweep_waits_ = true;
  }
  enqueue({{}, sweep_job{now, std::min(records, sweep_max)}});
}

void idempotency_store::worker::list_unknown(
    std::size_t records, std::move_only_function<void(store::list_answer)> answer) {
  enqueue({{}, list_job{std::min(records, list_max), std::move(answer)}});
}

auto idempotency_store::worker::used() const -> usage {
  return {static_cast<std::size_t>(std::max<std::int64_t>(0, records_)), 0,
          waiting_jobs_ * sizeof(job) + waiting_octets_,
          unknown_ < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(unknown_))};
}

auto idempotency_store::worker::counted() const -> counts {
  return {transactions_, requests_};
}

// ---- sending ----

void idempotency_store::worker::take() {
  std::vector<job> jobs;
  {
    std::lock_guard const lock(mutex_);
    jobs.swap(incoming_);
  }
  for (auto& job : jobs) {
    job.deadline = loop_->now() + options_.timeout;
    if (!handle_ && !is_connecting_) {
      fail(job, down_error_);
    } else {
      waiting_.push_back(std::move(job));
    }
  }
  // A clock that is set, or runs faster or slower to be right again, is another one to the server.
  auto const ahead = now().time_since_epoch() - loop_->now().time_since_epoch();
  bool const has_drifted = abs(ahead - learned_ahead_) > drift_max;
  if ((loop_->now() >= counted_at_ + count_again || has_drifted) && handle_) {
    learned_ahead_ = ahead;
    counted_at_ = loop_->now();
    ++waiting_jobs_;
    waiting_.push_back({{}, count_job{}, loop_->now() + options_.timeout});
  }
  send();
}

auto idempotency_store::worker::next_flight() -> flight {
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
  // All gateways lock in this order. What is asked of one key stays in the order in which it came.
  auto const place = [](job const& j) {
    auto const* const asked = std::get_if<change_job>(&j.what);
    auto const* const aged = std::get_if<aged_job>(&j.what);
    bool const is_first =
        (asked != nullptr && locks_scope(asked->change)) || (aged != nullptr && !aged->change.next);
    return std::tuple(j.key.scope(), !is_first, octets_of(j.key));
  };
  std::stable_sort(next.jobs.begin(), next.jobs.end(),
                   [&](job const& a, job const& b) { return place(a) < place(b); });
  next.asked = now();
  next.deadline = loop_->now() + options_.timeout;
  return next;
}

void idempotency_store::worker::send() {
  while (handle_ && flights_.size() < flights_max && !waiting_.empty()) {
    flights_.push_back(next_flight());
    auto& next = flights_.back();
    next.is_checking = !options_.secret_digest.empty();
    bool is_sent = !next.is_checking || run("secret", parameters(options_.secret_digest, true));
    for (auto const& job : next.jobs) {
      is_sent = is_sent && send_one(job);
    }
    if (!is_sent || PQpipelineSync(handle_.get()) != 1 || PQflush(handle_.get()) < 0) {
      lose_connection(error_text(PQerrorMessage(handle_.get())));
      return;
    }
  }
  if (!flights_.empty() || !waiting_.empty()) {
    if (!alarm_.is_set()) {
      alarm_.set(loop_->timers(), loop_->now() + tick_time);
    }
  }
}

auto idempotency_store::worker::run(char const* name, parameters const& values) -> bool {
  return PQsendQueryPrepared(handle_.get(), name, values.size(), values.values().data(),
                             values.lengths(), values.formats(), 1) == 1;
}

auto idempotency_store::worker::send_one(job const& job) -> bool {
  auto const apply = [&](idempotency::change const& change, std::optional<record> const& next,
                         std::string_view response, std::int64_t due_max) {
    std::string octets;
    if (next) {
      append_record(octets, *next);
    }
    parameters values(octets_of(change.key), static_cast<std::int64_t>(change.key.scope()));
    values.add(change.when.token ? std::optional(static_cast<std::int64_t>(*change.when.token))
                                 : std::nullopt);
    values.add(bits_of(change.when.states));
    values.add(due_max);
    values.add(next ? static_cast<std::int64_t>(next->token) : 0);
    values.add(next ? static_cast<std::int64_t>(next->state) : 0);
    values.add(next ? milliseconds_of(due(*next)) : 0);
    values.add(next ? std::optional<std::string_view>(octets) : std::nullopt);
    values.add(response.empty() ? std::nullopt : std::optional(response));
    values.add(static_cast<std::int64_t>(
        std::min<std::size_t>(change.scope_keys_max, std::numeric_limits<std::int64_t>::max())));
    values.add(change.bounded && records_ >= static_cast<std::int64_t>(options_.records_max));
    return run("apply", values);
  };
  if (std::holds_alternative<find_job>(job.what)) {
    return run("find", parameters(octets_of(job.key)));
  }
  if (auto const* const asked = std::get_if<change_job>(&job.what)) {
    auto next = asked->change.next;
    if (next) {
      next = clock_.to_server(*std::move(next));
    }
    return apply(asked->change, next, asked->response, std::numeric_limits<std::int64_t>::max());
  }
  if (auto const* const aged = std::get_if<aged_job>(&job.what)) {
    return apply(aged->change, aged->change.next, {}, milliseconds_of(aged->due_max));
  }
  if (auto const* const asked = std::get_if<sweep_job>(&job.what)) {
    return run("sweep", parameters(milliseconds_of(clock_.to_server(asked->now)),
                                   static_cast<std::int64_t>(asked->records)));
  }
  if (auto const* const asked = std::get_if<list_job>(&job.what)) {
    return run("unknown", parameters(static_cast<std::int64_t>(asked->records)));
  }
  if (std::holds_alternative<count_unknown_job>(job.what)) {
    return run("count_unknown", parameters(unknown_counted_max));
  }
  return run("count", parameters());
}

// ---- receiving ----

void idempotency_store::worker::ready(engine::readiness /*what*/) {
  pump();
}

void idempotency_store::worker::pump() {
  // It is told once that there is something to read, so all of it is read. What TLS has decrypted
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

void idempotency_store::worker::take_result(PGresult* result) {
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

void idempotency_store::worker::end_flight(flight done) {
  if (!done.error) {
    ++transactions_;
    requests_ += done.jobs.size();
    for (auto& job : done.jobs) {
      if (std::holds_alternative<count_job>(job.what)) {
        clock_.learn(done.asked, time_of(job.found.number(0, 1)), now());
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

auto idempotency_store::worker::read_found(lookup_key const& key, rows const& found, int record,
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

void idempotency_store::worker::answer(job& job) {
  --waiting_jobs_;
  waiting_octets_ -= job.octets;
  if (auto* const asked = std::get_if<find_job>(&job.what)) {
    if (job.found.size() == 0) {
      asked->answer(std::optional<found_record>());
    } else if (auto found = read_found(job.key, job.found, 0, 1)) {
      asked->answer(*std::move(found));
    } else {
      asked->answer(failure(std::move(found).error()));
    }
  } else if (auto* const change = std::get_if<change_job>(&job.what)) {
    answer_change(job, *change);
  } else if (auto const* const sweep = std::get_if<sweep_job>(&job.what)) {
    age_found(job, *sweep);
  } else if (auto* const list = std::get_if<list_job>(&job.what)) {
    answer_list(job, *list);
  } else if (std::holds_alternative<count_job>(job.what)) {
    records_ = job.found.number(0, 0);
  } else if (std::holds_alternative<count_unknown_job>(job.what)) {
    unknown_ = job.found.number(0, 0);
  } else {
    records_ -= job.found.number(0, 0) == 3 ? 1 : 0;
  }
}

void idempotency_store::worker::answer_change(job& job, change_job& asked) {
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
      asked.answer(
          failure(store_error{store_fault::full, settings_.name + ": has as many keys as it may"}));
      return;
    case 5:
      asked.answer(
          failure(store_error{store_fault::scope_full, "the scope has as many keys as it may"}));
      return;
    default:
      records_ += code == 2 ? 1 : code == 3 ? -1 : 0;
      asked.answer(applied{true, std::nullopt});
      return;
  }
}

/// What was found is changed before anything else that waits. Who renews a lease meanwhile is not
/// overtaken: then it is not due any more.
void idempotency_store::worker::age_found(job& job, sweep_job const& asked) {
  {
    std::lock_guard const lock(mutex_);
    sweep_waits_ = false;
  }
  auto const now = clock_.to_server(asked.now);
  for (auto const& [key, found] : listed(job.found)) {
    if (auto aged = expire(key, found, now)) {
      ++waiting_jobs_;
      waiting_.push_front({key, aged_job{*std::move(aged), now}, loop_->now() + options_.timeout});
    }
  }
  ++waiting_jobs_;
  waiting_.push_back({{}, count_unknown_job{}, loop_->now() + options_.timeout});
}

void idempotency_store::worker::answer_list(job& job, list_job& asked) {
  auto all = listed(job.found);
  for (auto& each : all) {
    each.record = clock_.to_ours(each.record);
  }
  store::keep_newest(all, asked.records);
  asked.answer(std::move(all));
}

void idempotency_store::worker::fail(job& job, store_error const& error) {
  if (job.deadline != instant()) {  // it was taken into the queue
    --waiting_jobs_;
    waiting_octets_ -= job.octets;
  }
  if (auto* const asked = std::get_if<find_job>(&job.what)) {
    asked->answer(failure(error));
  } else if (auto* const change = std::get_if<change_job>(&job.what)) {
    change->answer(failure(error));
  } else if (auto* const list = std::get_if<list_job>(&job.what)) {
    list->answer(failure(error));
  } else if (std::holds_alternative<sweep_job>(job.what)) {
    std::lock_guard const lock(mutex_);
    sweep_waits_ = false;
  }
}

// ---- connecting ----

auto idempotency_store::worker::connect_and_prepare(idempotency_options const& options,
                                                    server_settings const& settings)
    -> outcome<opened> {
  TIDEGATE_TRY(auto handle, connect(settings));
  auto* const c = handle.get();
  auto const failed = [&] {
    return failure(store_error{store_fault::unavailable,
                               settings.name + ": " + error_text(PQerrorMessage(c))});
  };
  auto const answered = [&](int sent) -> outcome<rows> {
    auto got = receive(c, sent, options.timeout);
    if (!got) {
      return failure(store_error{store_fault::unavailable, settings.name + ": " + got.error()});
    }
    return *std::move(got);
  };
  // The server gives up what we have given up. All of it is one message: requests wait for the
  // connection, and round trips are what takes long where the server is far or busy.
  auto setup = "SET statement_timeout TO " + std::to_string(options.timeout.count());
  for (auto const& [name, text] : statements) {
    setup += std::string("; PREPARE ") + name + " AS " + text;
  }
  TIDEGATE_TRY_VOID(answered(PQsendQuery(c, setup.c_str())));
  if (!options.secret_digest.empty()) {
    parameters const values(options.secret_digest, false);
    TIDEGATE_TRY(auto const told,
                 answered(PQsendQueryPrepared(c, "secret", values.size(), values.values().data(),
                                              values.lengths(), values.formats(), 1)));
    if (told.size() != 1 || !told.boolean(0, 0)) {
      return failure(store::stored_with_another_secret(settings.name));
    }
  }
  opened made{std::move(handle), {}, 0};
  auto const read_clock = [&] {
    return options.clock
               ? options.clock()
               : std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  };
  for (int i = 0; i < 3; ++i) {
    auto const asked = read_clock();
    TIDEGATE_TRY(auto const told,
                 answered(PQsendQueryPrepared(c, "count", 0, nullptr, nullptr, nullptr, 1)));
    if (told.size() != 1) {
      return failed();
    }
    made.clock.learn(asked, time_of(told.number(0, 1)), read_clock());
    made.records = told.number(0, 0);
  }
  if (PQsetnonblocking(c, 1) != 0 || PQenterPipelineMode(c) != 1) {
    return failed();
  }
  return made;
}

void idempotency_store::worker::use(opened made) {
  handle_ = std::move(made.handle);
  // What was learned is kept, unless it cannot be.
  clock_ = made.clock;
  learned_ahead_ = now().time_since_epoch() - loop_->now().time_since_epoch();
  records_ = made.records;
  counted_at_ = loop_->now();
  failures_ = 0;
  socket_ = engine::descriptor(dup(PQsocket(handle_.get())));
  if (!socket_.is_open() || !loop_->watch(socket_, *this)) {
    lose_connection("the system has no descriptor for it");
  }
}

void idempotency_store::worker::lose_connection(std::string const& why) {
  socket_.close();
  handle_.reset();
  down_error_ = {store_fault::unavailable, settings_.name + ": " + why};
  auto lost = std::exchange(flights_, {});
  for (auto& each : lost) {
    for (auto& job : each.jobs) {
      fail(job, down_error_);
    }
  }
  begin_to_connect();
}

/// In a thread of its own: names are looked up there, and a host that is silent is waited for.
void idempotency_store::worker::begin_to_connect() {
  if (is_stopping_) {
    auto left = std::exchange(waiting_, {});
    for (auto& job : left) {
      fail(job, down_error_);
    }
    return;
  }
  if (connecting_.joinable()) {
    connecting_.join();  // it has posted what it made and is at its end
  }
  is_connecting_ = true;
  alarm_.set(loop_->timers(), loop_->now() + tick_time);
  connecting_ = std::thread([this] {
    auto made = std::make_shared<outcome<opened>>(connect_and_prepare(options_, settings_));
    loop_->post([this, made] { connected(std::move(*made)); });
  });
}

void idempotency_store::worker::connected(outcome<opened> made) {
  is_connecting_ = false;
  if (made) {
    use(*std::move(made));
    send();
  } else {
    down_error_ = made.error();
    down_until_ = loop_->now() + backoff(failures_++);
    auto left = std::exchange(waiting_, {});
    for (auto& job : left) {
      fail(job, down_error_);
    }
    alarm_.set(loop_->timers(), loop_->now() + tick_time);
  }
  stop_when_done();
}

void idempotency_store::worker::tick() {
  auto const now = loop_->now();
  if (!flights_.empty() && flights_.front().deadline + tick_time < now) {
    lose_connection("no answer in time");
  }
  while (!waiting_.empty() && waiting_.front().deadline < now) {
    auto late = std::move(waiting_.front());
    waiting_.pop_front();
    fail(late, {store_fault::unavailable, settings_.name + ": no answer in time"});
  }
  if (!handle_ && !is_connecting_ && now >= down_until_) {
    begin_to_connect();
  }
  if (!handle_ || !flights_.empty() || !waiting_.empty()) {
    alarm_.set(loop_->timers(), now + tick_time);
  }
  stop_when_done();
}

}  // namespace tidegate::store_postgres
