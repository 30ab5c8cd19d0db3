// SPDX-License-Identifier: Apache-2.0
#include "directory/executor.hpp"

#include "backoff.hpp"
#include "server_schema.hpp"

#include <algorithm>
#include <random>
#include <utility>

namespace tidegate::store_postgres {

using store::store_error;
using store::store_fault;

namespace {

/// How many transactions share a commit: each is a subtransaction, and PostgreSQL keeps 64 of them
/// at hand.
constexpr std::size_t group_max = 48;
/// How many times a write is made again when the server or the connection gets in the way.
constexpr int attempts_max = 5;
/// Rows of writers that wrote nothing for so long are not asked for any more.
constexpr char const* drop_old_writers =
    "DELETE FROM directory_writer WHERE used < now() - interval '1 day'";

/// Of a writer that there was not before.
[[nodiscard]] auto new_mark() -> write_mark {
  std::random_device random;
  write_mark mark;
  for (int i = 0; i < 4; ++i) {
    auto const number = random();
    for (int shift = 24; shift >= 0; shift -= 8) {
      mark.writer += static_cast<char>(number >> shift & 0xffU);
    }
  }
  return mark;
}

}  // namespace

directory_executor::directory_executor(directory_options options, server_settings settings,
                                       std::shared_ptr<scim::model const> model,
                                       std::unique_ptr<directory_session> first)
    : options_(std::move(options)), settings_(std::move(settings)), model_(std::move(model)) {
  options_.connections = std::max<std::size_t>(2, options_.connections);
  threads_.reserve(options_.connections);
  for (std::size_t i = 0; i < options_.connections; ++i) {
    threads_.emplace_back(
        [this, slot = session_slot{std::exchange(first, nullptr), new_mark()}]() mutable {
          run(std::move(slot));
        });
  }
}

directory_executor::~directory_executor() {
  {
    std::lock_guard const lock(mutex_);
    stopping_ = true;
  }
  queued_.notify_all();
  stop_.notify_all();
  for (auto& thread : threads_) {
    thread.join();
  }
}

auto directory_executor::counted() const noexcept -> counts {
  return {transactions_.load(std::memory_order_relaxed), writes_.load(std::memory_order_relaxed)};
}

auto directory_executor::stopped_or_full(bool is_full, char const* what) const -> store_error {
  return is_full ? store_error{store_fault::unavailable, settings_.name + ": too many " + what}
                 : store_error{store_fault::stopped, settings_.name + ": is being closed"};
}

void directory_executor::read(std::string_view tenant, read_transaction transaction) {
  std::unique_lock lock(mutex_);
  if (stopping_ || reads_.size() >= options_.reads_max) {
    auto const error = stopped_or_full(!stopping_, "reads wait");
    lock.unlock();
    transaction(failure(error));
    return;
  }
  reads_.push_back({std::string(tenant), std::move(transaction)});
  lock.unlock();
  queued_.notify_one();
}

void directory_executor::write(std::string_view tenant, write_transaction transaction,
                               write_answer answer) {
  std::unique_lock lock(mutex_);
  if (stopping_ || writes_waiting_ >= options_.writes_max) {
    auto const error = stopped_or_full(!stopping_, "writes wait");
    lock.unlock();
    answer(failure(error));
    return;
  }
  auto const [at, is_new] = tenants_.try_emplace(std::string(tenant));
  at->second.push_back({std::move(transaction), std::move(answer), {}});
  ++writes_waiting_;
  if (is_new) {
    ready_.push_back(at->first);
  }
  lock.unlock();
  queued_.notify_one();
}

void directory_executor::run(session_slot slot) {
  std::unique_lock lock(mutex_);
  auto const all = options_.connections;
  // Those who write may wait for other gateways, and then half of the threads still read.
  auto const may_read = [&] { return !reads_.empty() && reading_ < all - 1; };
  auto const may_write = [&] { return !ready_.empty() && writing_ < (all + 1) / 2; };
  for (;;) {
    queued_.wait(lock, [&] {
      return may_read() || may_write() || (stopping_ && reads_.empty() && writes_waiting_ == 0);
    });
    if (may_write()) {
      auto const tenant = std::move(ready_.front());
      ready_.pop_front();
      auto& writes = tenants_.at(tenant);
      auto const some = std::min(writes.size(), group_max);
      auto const end = writes.begin() + static_cast<std::ptrdiff_t>(some);
      std::vector<write_job> jobs(std::move_iterator(writes.begin()), std::move_iterator(end));
      writes.erase(writes.begin(), end);
      writes_waiting_ -= some;
      ++writing_;
      lock.unlock();
      make_writes(slot, tenant, jobs);
      lock.lock();
      --writing_;
      // References to what is in the map stay good, whatever was added meanwhile.
      if (writes.empty()) {
        tenants_.erase(tenant);
      } else {
        ready_.push_back(tenant);
      }
    } else if (may_read()) {
      auto job = std::move(reads_.front());
      reads_.pop_front();
      ++reading_;
      lock.unlock();
      make_read(slot, std::move(job));
      lock.lock();
      --reading_;
    } else {
      return;
    }
    queued_.notify_one();  // what another thread was not allowed may be allowed now
    if (stopping_) {
      queued_.notify_all();
    }
  }
}

// ---- connecting ----

auto directory_executor::connect(session_slot& slot) -> outcome<void> {
  if (slot.session && !slot.session->is_broken()) {
    return {};
  }
  slot.session.reset();
  {
    std::lock_guard const lock(down_mutex_);
    if (steady::now() < down_until_) {
      return failure(down_error_);
    }
  }
  auto made = directory_session::open(settings_, options_.timeout, model_);
  std::lock_guard const lock(down_mutex_);
  if (!made) {
    down_error_ = made.error();
    down_until_ = steady::now() + backoff(failures_++);
    return failure(down_error_);
  }
  failures_ = 0;
  slot.session = *std::move(made);
  return {};
}

// ---- reads ----

void directory_executor::make_read(session_slot& slot, read_job job) {
  // A connection that broke since it was last used is noticed here: then there is another one.
  for (int attempt = 0;; ++attempt) {
    auto begun = connect(slot);
    auto& session = slot.session;
    if (begun) {
      begun = session->begin_read(job.tenant);
    }
    if (begun) {
      job.transaction(session.get());
      session->end_read();
      return;
    }
    if (session && !session->is_broken()) {
      session->rollback();
      job.transaction(failure(std::move(begun).error()));
      return;
    }
    if (!session || attempt > 0) {
      job.transaction(failure(std::move(begun).error()));
      return;
    }
  }
}

// ---- writes ----

void directory_executor::make_writes(session_slot& slot, std::string const& tenant,
                                     std::span<write_job> jobs) {
  auto const made = commit_group(slot, tenant, jobs);
  if (!made && !made.error().is_in_doubt && slot.session && jobs.size() > 1) {
    for (auto& job : jobs) {
      // An error of one is its own.
      if (auto const alone = commit_group(slot, tenant, {&job, 1}); !alone) {
        job.made = failure(alone.error().error);
      }
    }
  } else if (!made) {
    for (auto& job : jobs) {
      job.made = failure(made.error().error);
    }
  }
  for (auto& job : jobs) {
    job.answer(std::move(job.made));
  }
}

auto directory_executor::commit_group(session_slot& slot, std::string const& tenant,
                                      std::span<write_job> jobs) -> result<void, write_failure> {
  ++slot.mark.number;
  for (int attempt = 1;; ++attempt) {
    auto made = connect(slot);
    if (!made) {
      return failure(write_failure{std::move(made).error()});
    }
    made = make_once(slot, tenant, jobs);
    auto& session = slot.session;
    bool is_made = made.has_value();
    // Before the rollback, which may find the connection broken.
    bool const is_in_doubt = !is_made && session->is_in_doubt();
    bool again = false;
    if (is_in_doubt) {
      session->rollback();
      auto const found = was_committed(slot, tenant);
      if (!found) {
        return failure(write_failure{found.error(), true});
      }
      // Work has made its answer when it was called last: that is the one which was committed.
      is_made = *found;
      again = true;
    } else if (!is_made) {
      session->rollback();
      again = session->may_try_again();
    }
    if (is_made) {
      transactions_.fetch_add(1, std::memory_order_relaxed);
      writes_.fetch_add(jobs.size(), std::memory_order_relaxed);
      return {};
    }
    if (!again || attempt == attempts_max) {
      return failure(write_failure{std::move(made).error()});
    }
  }
}

auto directory_executor::was_committed(session_slot& slot, std::string const& tenant)
    -> outcome<bool> {
  auto const deadline = steady::now() + options_.timeout;
  for (int attempt = 0;; ++attempt) {
    auto connected = connect(slot);
    outcome<bool> found = connected ? slot.session->was_committed(tenant, slot.mark)
                                    : failure(std::move(connected).error());
    if (found) {
      return found;
    }
    if (slot.session) {
      slot.session->rollback();
    }
    auto const again = steady::now() + backoff(attempt);
    std::unique_lock lock(mutex_);
    if (again >= deadline || stop_.wait_until(lock, again, [&] { return stopping_; })) {
      // The old transaction may still have the row: the next one must not wait for it.
      slot.mark = new_mark();
      return failure(store_error{
          store_fault::in_doubt,
          settings_.name +
              ": the connection was lost while a change was committed, and the server does not "
              "say whether it was made: " +
              found.error().text});
    }
  }
}

auto directory_executor::make_once(session_slot& slot, std::string const& tenant,
                                   std::span<write_job> jobs) -> outcome<void> {
  auto& session = *slot.session;
  TIDEGATE_TRY_VOID(session.begin_write(tenant));
  bool const is_alone = jobs.size() == 1;
  bool any = false;
  for (auto& job : jobs) {
    job.made = {};
    session.begin_transaction(is_alone);
    bool const keep = job.transaction(session);
    if (session.failed()) {
      if (is_alone || session.may_try_again()) {
        return failure(*session.failed());
      }
      job.made = failure(*session.failed());
    } else if (keep) {
      TIDEGATE_TRY_VOID(session.keep_transaction());
      any = true;
      continue;
    }
    if (!is_alone) {
      TIDEGATE_TRY_VOID(session.undo_transaction());
    }
  }
  if (any) {
    return session.commit(slot.mark);
  }
  session.rollback();
  return {};
}

// ---- the directory ----

auto open_directory(directory_options options, std::shared_ptr<scim::model const> model)
    -> result<std::unique_ptr<store::directory>, store_error> {
  TIDEGATE_TRY(auto settings, read_url(options.url));
  TIDEGATE_TRY_VOID(prepare_schema(settings));
  {
    // Building an index takes as long as it takes.
    TIDEGATE_TRY(auto server, connection::open(settings, std::chrono::hours(1), {}));
    TIDEGATE_TRY_VOID(update_indexes(server, *model));
    TIDEGATE_TRY_VOID(server.ask(std::string(drop_old_writers)));
  }
  TIDEGATE_TRY(auto first, directory_session::open(settings, options.timeout, model));
  return std::make_unique<directory_executor>(std::move(options), std::move(settings),
                                              std::move(model), std::move(first));
}

}  // namespace tidegate::store_postgres
