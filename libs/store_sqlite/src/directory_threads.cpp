// SPDX-License-Identifier: Apache-2.0
#include "directory_threads.hpp"

#include <tidegate/base/fail_point.hpp>

#include "log_vfs.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace tidegate::store_sqlite {

using store::store_error;
using store::store_fault;

namespace {

/// How many writes share a transaction at most: more would make the first of them wait for the last.
constexpr std::size_t transaction_max = 1024;

/// What is in the log goes into the file when nobody has come for a moment and it is worth it, and in any
/// case when it is long. Readers may keep it from beginning anew; then it waits for them, but not for ever.
constexpr int idle_pages = 1000;
constexpr std::chrono::milliseconds idle_time{20};
constexpr int readers_wait_ms = 200;

}  // namespace

directory::threads::threads(directory_options options, file_lock lock,
                            std::unique_ptr<directory_session> writer,
                            std::vector<std::unique_ptr<directory_session>> readers)
    : options_(std::move(options)),
      lock_(std::move(lock)),
      writer_(std::move(writer)),
      readers_(std::move(readers)) {
  sqlite3_wal_hook(
      writer_->file().get(),
      [](void* self, sqlite3* /*connection*/, char const* /*name*/, int pages) {
        static_cast<threads*>(self)->wal_pages_ = pages;
        return SQLITE_OK;
      },
      this);
  write_thread_ = std::thread([this] { run_writes(); });
  for (auto const& reader : readers_) {
    read_threads_.emplace_back([this, session = reader.get()] { run_reads(*session); });
  }
}

directory::threads::~threads() {
  {
    std::lock_guard const lock(read_mutex_);
    stopping_reads_ = true;
  }
  {
    std::lock_guard const lock(write_mutex_);
    stopping_writes_ = true;
  }
  read_queued_.notify_all();
  write_queued_.notify_all();
  for (auto& thread : read_threads_) {
    thread.join();
  }
  write_thread_.join();
  readers_.clear();  // the last connection that is closed puts the log into the file
}

auto directory::threads::counted() const noexcept -> counts {
  return {transactions_.load(std::memory_order_relaxed), writes_.load(std::memory_order_relaxed)};
}

// ---- reads ----

void directory::threads::read(std::string_view tenant, read_work work) {
  std::unique_lock lock(read_mutex_);
  if (stopping_reads_ || reads_.size() >= options_.reads_max) {
    auto const error =
        stopping_reads_
            ? store_error{store_fault::stopped, options_.file + ": is being closed"}
            : store_error{store_fault::unavailable, options_.file + ": too many reads wait"};
    lock.unlock();
    work(failure(error));
    return;
  }
  reads_.push_back({std::string(tenant), std::move(work)});
  lock.unlock();
  read_queued_.notify_one();
}

void directory::threads::run_reads(directory_session& session) {
  for (;;) {
    std::unique_lock lock(read_mutex_);
    read_queued_.wait(lock, [this] { return stopping_reads_ || !reads_.empty(); });
    if (reads_.empty()) {
      return;
    }
    auto job = std::move(reads_.front());
    reads_.pop_front();
    lock.unlock();
    if (auto const begun = session.begin_read(job.tenant)) {
      job.work(&session);
      session.end_read();
    } else {
      session.end_read();
      job.work(failure(begun.error()));
    }
  }
}

// ---- writes ----

void directory::threads::write(std::string_view tenant, write_work work, write_answer answer) {
  std::unique_lock lock(write_mutex_);
  if (stopping_writes_ || writes_queue_.size() >= options_.writes_max) {
    auto const error =
        stopping_writes_
            ? store_error{store_fault::stopped, options_.file + ": is being closed"}
            : store_error{store_fault::unavailable, options_.file + ": too many writes wait"};
    lock.unlock();
    answer(failure(error));
    return;
  }
  writes_queue_.push_back({std::string(tenant), std::move(work), std::move(answer), {}});
  lock.unlock();
  write_queued_.notify_one();
}

void directory::threads::run_writes() {
  std::vector<write_job> jobs;
  for (;;) {
    std::unique_lock lock(write_mutex_);
    auto const ready = [this] { return stopping_writes_ || !writes_queue_.empty(); };
    if (wal_pages_ >= idle_pages && !write_queued_.wait_for(lock, idle_time, ready)) {
      lock.unlock();
      checkpoint(true);
      lock.lock();
    }
    write_queued_.wait(lock, ready);
    if (writes_queue_.empty()) {
      return;
    }
    auto const some = std::min(writes_queue_.size(), transaction_max);
    auto const end = writes_queue_.begin() + static_cast<std::ptrdiff_t>(some);
    jobs.assign(std::move_iterator(writes_queue_.begin()), std::move_iterator(end));
    writes_queue_.erase(writes_queue_.begin(), end);
    lock.unlock();
    make(jobs);
    jobs.clear();
    if (wal_pages_ >= checkpoint_at_) {
      checkpoint(false);
    }
  }
}

void directory::threads::make(std::vector<write_job>& jobs) {
  if (!transact(jobs)) {
    for (auto& job : jobs) {
      // An error of one is its own.
      if (auto made = transact({&job, 1}); !made) {
        job.made = std::move(made);
      }
    }
  }
  for (auto& job : jobs) {
    job.answer(std::move(job.made));
  }
}

auto directory::threads::transact(std::span<write_job> jobs) -> outcome<void> {
  auto const made = [&]() -> outcome<void> {
    TIDEGATE_TRY_VOID(writer_->begin_write());
    for (auto& job : jobs) {
      TIDEGATE_TRY_VOID(make_one(job));
      fail_point("directory_written");
    }
    return writer_->commit();
  }();
  if (!made) {
    // After a failed sync the pages of this transaction are written anew by the next one, so nothing
    // is taken for stored that is not.
    writer_->rollback();
    return made;
  }
  fail_point("directory_committed");
  transactions_.fetch_add(1, std::memory_order_relaxed);
  writes_.fetch_add(jobs.size(), std::memory_order_relaxed);
  return {};
}

auto directory::threads::make_one(write_job& job) -> outcome<void> {
  job.made = {};
  writer_->begin_work(job.tenant);
  bool const keep = job.work(*writer_);
  if (!writer_->failed()) {
    return keep ? writer_->keep_work() : writer_->undo_work();
  }
  // Where SQLite has rolled back all of the transaction, it is over for the others as well.
  job.made = failure(*writer_->failed());
  if (!writer_->file().in_transaction()) {
    return job.made;
  }
  return writer_->undo_work();
}

/// What fails here is tried again later; the log has it all the same.
void directory::threads::checkpoint(bool idle) {
  auto* const file = writer_->file().get();
  sqlite3_busy_timeout(file, idle ? 0 : readers_wait_ms);
  int const code = sqlite3_wal_checkpoint_v2(
      file, nullptr, idle ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_RESTART, nullptr,
      nullptr);
  sqlite3_busy_timeout(file, 0);
  if (idle) {
    wal_pages_ = 0;  // the next commit says how many there are
  } else {
    checkpoint_at_ = code == SQLITE_OK ? wal_pages_max : wal_pages_ + wal_pages_max / 4;
  }
}

// ---- the directory ----

namespace {

/// A connection with the settings of a directory.
[[nodiscard]] auto connect(directory_options const& options, char const* vfs)
    -> outcome<connection> {
  TIDEGATE_TRY(auto made, connection::open(options.file, sharing::in_process, vfs));
  TIDEGATE_TRY_VOID(made.execute("PRAGMA temp_store=MEMORY"));
  TIDEGATE_TRY_VOID(made.execute("PRAGMA mmap_size=2147418112"));
  TIDEGATE_TRY_VOID(made.execute("PRAGMA wal_autocheckpoint=0"));
  // Where readers made it longer than it should be, the log is cut when it begins anew.
  TIDEGATE_TRY_VOID(made.execute("PRAGMA journal_size_limit=67108864"));
  return made;
}

}  // namespace

auto directory::open(directory_options options, std::shared_ptr<scim::model const> model)
    -> result<std::unique_ptr<directory>, store_error> {
  TIDEGATE_TRY(auto lock, file_lock::take(options.file));
  TIDEGATE_TRY(auto file, connect(options, log_vfs_name()));
  TIDEGATE_TRY_VOID(file.execute("PRAGMA cache_size=-65536"));
  TIDEGATE_TRY_VOID(file.execute("PRAGMA wal_autocheckpoint=4096"));
  TIDEGATE_TRY_VOID(prepare_directory(file, *model));
  TIDEGATE_TRY_VOID(file.execute("PRAGMA wal_autocheckpoint=0"));
  TIDEGATE_TRY_VOID(file.limit_file(options.file_octets_max));
  auto writer = std::make_unique<directory_session>(std::move(file), model);
  std::vector<std::unique_ptr<directory_session>> readers;
  for (std::size_t i = 0; i < std::max<std::size_t>(1, options.readers); ++i) {
    TIDEGATE_TRY(auto another, connect(options, nullptr));
    readers.push_back(std::make_unique<directory_session>(std::move(another), model));
  }
  return std::unique_ptr<directory>(new directory(std::make_unique<threads>(
      std::move(options), std::move(lock), std::move(writer), std::move(readers))));
}

directory::directory(std::unique_ptr<threads> threads) : threads_(std::move(threads)) {}
directory::~directory() = default;

void directory::read(std::string_view tenant, read_work work) {
  threads_->read(tenant, std::move(work));
}

void directory::write(std::string_view tenant, write_work work, write_answer answer) {
  threads_->write(tenant, std::move(work), std::move(answer));
}

auto directory::counted() const -> counts {
  return threads_->counted();
}

}  // namespace tidegate::store_sqlite
