// SPDX-License-Identifier: Apache-2.0
#include "directory/executor.hpp"

#include <tidegate/base/fail_point.hpp>

#include "directory/old_journal.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace tidegate::store_sqlite {

using store::store_error;
using store::store_fault;

namespace {

/// How many transactions share a commit at most: more would make the first of them wait for the
/// last.
constexpr std::size_t group_max = 512;
/// With so many rows the others of a group wait for the next one: bulk requests are large.
constexpr std::int64_t group_rows = 4096;
/// When nothing was written for so long, the log is copied into the file.
constexpr std::chrono::milliseconds idle_time{50};
/// When the disk did not take something, it is tried again so much later.
constexpr std::chrono::milliseconds retry_time{1000};

/// A read on the thread of the caller that has waited for the disk and took longer is followed by a
/// pause of so many times as long: it is the threads of the directory that wait then.
constexpr std::chrono::milliseconds here_time_max{1};
constexpr int here_pause = 100;

/// Why nothing more is queued.
[[nodiscard]] auto refusal(bool is_stopping, std::string const& file, char const* what)
    -> store_error {
  return is_stopping ? store_error{store_fault::stopped, file + ": is being closed"}
                     : store_error{store_fault::unavailable, file + ": too many " + what + " wait"};
}

/// How often the calling thread had to wait for something.
[[nodiscard]] auto waits_of_thread() noexcept -> long {
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw;
}

/// A connection with the settings of a directory.
[[nodiscard]] auto connect(directory_options const& options) -> outcome<connection> {
  TIDEGATE_TRY(auto made, connection::open(options.file, sharing::in_process));
  TIDEGATE_TRY_VOID(made.execute("PRAGMA temp_store=MEMORY"));
  TIDEGATE_TRY_VOID(made.execute("PRAGMA wal_autocheckpoint=0"));
  return made;
}

[[nodiscard]] auto connect_writer(directory_options const& options) -> outcome<connection> {
  TIDEGATE_TRY(auto made, connect(options));
  auto const pages = "PRAGMA cache_size=-" + std::to_string(options.cache_octets >> 10);
  TIDEGATE_TRY_VOID(made.execute(pages.c_str()));
  return made;
}

/// The cache of a reader is void after each commit of the writer; mapped pages are not.
[[nodiscard]] auto connect_reader(directory_options const& options) -> outcome<connection> {
  TIDEGATE_TRY(auto made, connect(options));
  TIDEGATE_TRY_VOID(made.execute("PRAGMA mmap_size=2147418112"));
  return made;
}

}  // namespace

directory_executor::directory_executor(directory_options options, file_lock lock,
                                       std::unique_ptr<directory_session> writer,
                                       connection checkpointer,
                                       std::vector<std::unique_ptr<directory_session>> readers,
                                       std::vector<std::unique_ptr<directory_session>> readers_here)
    : options_(std::move(options)),
      lock_(std::move(lock)),
      writer_(std::move(writer)),
      readers_(std::move(readers)),
      checkpoint_(std::make_unique<log_checkpoint>(std::move(checkpointer), writer_->file(),
                                                   options_.log_octets_max)),
      readers_here_(std::move(readers_here)) {
  write_thread_ = std::thread([this] { run_writes(); });
  for (auto const& reader : readers_) {
    read_threads_.emplace_back([this, session = reader.get()] { run_reads(*session); });
  }
}

directory_executor::~directory_executor() {
  writes_.stop();
  write_thread_.join();
  reads_.stop();
  for (auto& thread : read_threads_) {
    thread.join();
  }
  readers_.clear();
  readers_here_.clear();
  if (checkpoint_) {
    checkpoint_->stop();
    bool const has_failed = checkpoint_->has_failed();
    checkpoint_.reset();
    // All in one file, where that is possible. Else the log is kept, which SQLite would remove.
    if (has_failed ||
        sqlite3_wal_checkpoint_v2(writer_->file().get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE,
                                  nullptr, nullptr) != SQLITE_OK) {
      writer_->file().keep_log();
    }
  }
}

auto directory_executor::counted() const noexcept -> counts {
  return {transactions_.load(std::memory_order_relaxed), written_.load(std::memory_order_relaxed)};
}

// ---- reads ----

void directory_executor::read(std::string_view tenant, read_transaction transaction) {
  std::unique_lock lock(reads_.mutex);
  if (reads_.is_stopping || reads_.jobs.size() >= options_.reads_max) {
    auto const error = refusal(reads_.is_stopping, options_.file, "reads");
    lock.unlock();
    transaction(failure(error));
    return;
  }
  reads_.jobs.push_back({std::string(tenant), std::move(transaction)});
  lock.unlock();
  reads_.added.notify_one();
}

auto directory_executor::read_here(std::string_view tenant,
                                   std::function<void(store::directory_reader&)> const& transaction)
    -> bool {
  auto const begin = std::chrono::steady_clock::now();
  if (begin < here_again_.load(std::memory_order_relaxed)) {
    return false;
  }
  std::shared_lock const file(file_mutex_, std::try_to_lock);
  if (!file) {
    return false;
  }
  std::unique_ptr<directory_session> session;
  {
    std::lock_guard const lock(reads_.mutex);
    if (reads_.is_stopping || readers_here_.empty() || !readers_here_.back()->is_open()) {
      return false;
    }
    session = std::move(readers_here_.back());
    readers_here_.pop_back();
  }
  auto const waits = waits_of_thread();
  bool const begun = session->begin_read(tenant).has_value();
  if (begun) {
    transaction(*session);
  }
  session->end_read();
  {
    std::lock_guard const lock(reads_.mutex);
    readers_here_.push_back(std::move(session));
  }
  auto const end = std::chrono::steady_clock::now();
  // A thread that was not let run while all it needed was there has not waited.
  if (end - begin > here_time_max && waits_of_thread() != waits) {
    here_again_.store(end + here_pause * (end - begin), std::memory_order_relaxed);
  }
  return begun;
}

void directory_executor::run_reads(directory_session& session) {
  for (;;) {
    std::unique_lock lock(reads_.mutex);
    reads_.added.wait(lock, [this] { return reads_.is_stopping || !reads_.jobs.empty(); });
    if (reads_.jobs.empty()) {
      return;
    }
    auto job = std::move(reads_.jobs.front());
    reads_.jobs.pop_front();
    lock.unlock();
    std::shared_lock const file(file_mutex_);
    if (!session.is_open()) {
      job.transaction(
          failure(store_error{store_fault::unavailable, options_.file + ": cannot be opened"}));
    } else if (auto const begun = session.begin_read(job.tenant)) {
      job.transaction(&session);
      session.end_read();
    } else {
      session.end_read();
      job.transaction(failure(begun.error()));
    }
  }
}

// ---- writes ----

void directory_executor::write(std::string_view tenant, write_transaction transaction,
                               write_answer answer) {
  std::unique_lock lock(writes_.mutex);
  if (writes_.is_stopping || writes_.jobs.size() >= options_.writes_max) {
    auto const error = refusal(writes_.is_stopping, options_.file, "writes");
    lock.unlock();
    answer(failure(error));
    return;
  }
  writes_.jobs.push_back(
      {std::string(tenant), std::move(transaction), std::move(answer), {}, false});
  lock.unlock();
  writes_.added.notify_one();
}

void directory_executor::run_writes() {
  std::vector<write_job> jobs;
  auto const ready = [this] { return writes_.is_stopping || !writes_.jobs.empty(); };
  for (;;) {
    std::unique_lock lock(writes_.mutex);
    auto idle = idle_time;
    while (!writes_.added.wait_for(lock, idle, ready)) {
      lock.unlock();
      reopen_file();
      overwrite_failed_commit();
      if (checkpoint_) {
        checkpoint_->note_idle();
      }
      lock.lock();
      if (!commit_has_failed_ && checkpoint_ && !checkpoint_->has_failed()) {
        writes_.added.wait(lock, ready);
        break;
      }
      idle = retry_time;
    }
    if (writes_.jobs.empty()) {
      return;
    }
    auto const some = std::min(writes_.jobs.size(), group_max);
    auto const end = writes_.jobs.begin() + static_cast<std::ptrdiff_t>(some);
    jobs.assign(std::move_iterator(writes_.jobs.begin()), std::move_iterator(end));
    writes_.jobs.erase(writes_.jobs.begin(), end);
    lock.unlock();
    make(jobs);
    for (auto& job : jobs) {
      job.answer(std::move(job.made));
    }
    jobs.clear();
  }
}

void directory_executor::make(std::span<write_job> jobs) {
  while (!jobs.empty()) {
    auto done = commit_group(jobs);
    if (done.is_committed) {
      jobs = jobs.subspan(done.stopped_at);
      continue;
    }
    if (done.is_of_all || jobs.size() == 1) {
      for (auto& job : jobs) {
        job.made = done.made;
        if (!job.made && job.may_be_in_log && commit_has_failed_) {
          job.made = failure(store_error{store_fault::in_doubt, job.made.error().text});
        }
      }
      return;
    }
    if (done.stopped_at == jobs.size()) {
      // An error of one is its own.
      for (auto& job : jobs) {
        make({&job, 1});
      }
      return;
    }
    // One that is to be undone, or that failed, is made alone. Those before it are made again.
    make(jobs.first(done.stopped_at));
    make(jobs.subspan(done.stopped_at, 1));
    jobs = jobs.subspan(done.stopped_at + 1);
  }
}

auto directory_executor::commit_group(std::span<write_job> jobs) -> group_outcome {
  auto const fail = [&](std::size_t at, outcome<void> why) -> group_outcome {
    writer_->rollback();
    return {.stopped_at = at, .made = std::move(why)};
  };
  reopen_file();
  if (!checkpoint_) {
    return {.is_of_all = true,
            .made = failure(
                store_error{store_fault::unavailable, options_.file + ": cannot be opened again"})};
  }
  overwrite_failed_commit();
  auto begun = checkpoint_->make_room();
  if (begun) {
    begun = writer_->begin_write();
  }
  if (!begun) {
    writer_->rollback();
    return {.is_of_all = true, .made = std::move(begun)};
  }
  auto const commits = checkpoint_->commits();
  auto const rows_before = sqlite3_total_changes64(writer_->file().get());
  auto const is_large = [&] {
    return sqlite3_total_changes64(writer_->file().get()) - rows_before >= group_rows;
  };
  std::size_t count = 0;
  for (std::size_t i = 0; i < jobs.size() && !is_large(); ++i) {
    writer_->begin_transaction(jobs[i].tenant);
    bool const keep = jobs[i].transaction(*writer_);
    if (auto const& failed = writer_->failed()) {
      return fail(i, failure(*failed));
    }
    if (!keep && writer_->has_written()) {
      return fail(i, {});
    }
    ++count;
    fail_point("directory_written");
  }
  if (auto made = writer_->commit(); !made) {
    bool const may_be_whole = sqlite3_extended_errcode(writer_->file().get()) == SQLITE_IOERR_FSYNC;
    writer_->rollback();
    commit_has_failed_ = true;
    overwrite_failed_commit();
    if (commit_has_failed_ && may_be_whole) {
      for (auto& job : jobs) {
        job.may_be_in_log = true;
      }
      made = failure(store_error{store_fault::in_doubt, made.error().text});
    }
    return {.stopped_at = jobs.size(), .made = std::move(made)};
  }
  commit_has_failed_ = commit_has_failed_ && checkpoint_->commits() == commits;
  fail_point("directory_committed");
  transactions_.fetch_add(1, std::memory_order_relaxed);
  written_.fetch_add(count, std::memory_order_relaxed);
  return {.is_committed = true, .stopped_at = count};
}

/// What was refused because the disk failed may be in the log as a whole, and would be there after
/// a crash: something else is written in its place. Until that succeeds it is in doubt.
void directory_executor::overwrite_failed_commit() {
  if (commit_has_failed_ && writer_->is_open() && mark_directory(writer_->file())) {
    commit_has_failed_ = false;
  }
}

// ---- the file after a failed sync ----

void directory_executor::reopen_file() {
  if (checkpoint_ && !checkpoint_->has_failed()) {
    return;
  }
  std::unique_lock const lock(file_mutex_);  // no reader is inside
  checkpoint_.reset();
  if (writer_->is_open()) {
    // SQLite would take all of the log for copied and remove it.
    writer_->file().keep_log();
    writer_->close();
  }
  for (auto* const all : {&readers_, &readers_here_}) {
    for (auto const& reader : *all) {
      if (reader->is_open()) {
        reader->file().keep_log();
        reader->close();
      }
    }
  }
  if (!reopen_all()) {
    checkpoint_.reset();  // it is tried again
  }
}

auto directory_executor::reopen_all() -> outcome<void> {
  TIDEGATE_TRY(auto file, connect_writer(options_));
  TIDEGATE_TRY_VOID(file.limit_file(options_.file_octets_max));
  TIDEGATE_TRY(auto checkpointer, connect(options_));
  for (auto* const all : {&readers_, &readers_here_}) {
    for (auto const& reader : *all) {
      TIDEGATE_TRY(auto another, connect_reader(options_));
      reader->reopen(std::move(another));
    }
  }
  writer_->reopen(std::move(file));
  checkpoint_ = std::make_unique<log_checkpoint>(std::move(checkpointer), writer_->file(),
                                                 options_.log_octets_max);
  return {};
}

// ---- the directory ----

auto open_directory(directory_options options, std::shared_ptr<scim::model const> model)
    -> result<std::unique_ptr<store::directory>, store_error> {
  TIDEGATE_TRY(auto lock, file_lock::take(options.file));
  TIDEGATE_TRY(auto file, connect_writer(options));
  TIDEGATE_TRY_VOID(file.execute("PRAGMA wal_autocheckpoint=4096"));
  TIDEGATE_TRY_VOID(prepare_directory(file, *model));
  auto writer = std::make_unique<directory_session>(std::move(file), model);
  TIDEGATE_TRY_VOID(carry_over_old_journal(*writer, *model));
  TIDEGATE_TRY_VOID(writer->file().execute("PRAGMA wal_autocheckpoint=0"));
  TIDEGATE_TRY_VOID(writer->file().limit_file(options.file_octets_max));
  TIDEGATE_TRY(auto checkpointer, connect(options));
  auto const make_readers =
      [&](std::size_t count) -> outcome<std::vector<std::unique_ptr<directory_session>>> {
    std::vector<std::unique_ptr<directory_session>> made;
    while (made.size() < count) {
      TIDEGATE_TRY(auto another, connect_reader(options));
      made.push_back(std::make_unique<directory_session>(std::move(another), model));
    }
    return made;
  };
  TIDEGATE_TRY(auto readers, make_readers(std::max<std::size_t>(1, options.readers)));
  TIDEGATE_TRY(auto readers_here, make_readers(options.readers_here));
  return std::make_unique<directory_executor>(std::move(options), std::move(lock),
                                              std::move(writer), std::move(checkpointer),
                                              std::move(readers), std::move(readers_here));
}

}  // namespace tidegate::store_sqlite
