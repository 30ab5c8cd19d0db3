// SPDX-License-Identifier: Apache-2.0
#include "directory_threads.hpp"

#include <tidegate/base/fail_point.hpp>

#include "memory_limit.hpp"
#include "read_vfs.hpp"
#include "write_vfs.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <limits>
#include <utility>

namespace tidegate::store_sqlite {

using store::store_error;
using store::store_fault;

namespace {

/// How many writes share a transaction at most: more would make the first of them wait for the last.
constexpr std::size_t transaction_max = 512;

/// What is in the log goes into the file when nobody has come for a moment and it is worth it, and in any
/// case when it is long. Readers may keep it from beginning anew; then it waits for them, but not for ever.
constexpr int idle_pages = 1000;
constexpr std::chrono::milliseconds idle_time{20};
constexpr int readers_wait_ms = 200;

/// A read on the thread of the caller that has waited for the disk and took longer is followed by a pause of so many times
/// as long: it is the threads of the directory that wait then.
constexpr std::chrono::milliseconds here_time_max{1};
constexpr int here_pause = 100;

/// How often the calling thread had to wait for something.
[[nodiscard]] auto waits_of_thread() noexcept -> long {
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw;
}

/// Without readers for so long, writes go to the journal.
constexpr std::chrono::milliseconds quiet_time{100};
/// How many of them a transaction takes.
constexpr std::size_t waiting_max = 131'072;
/// For the pages of the writer.
[[nodiscard]] auto page_octets(directory_options const& options) -> std::uint64_t {
  return options.page_octets != 0 ? options.page_octets : page_octets_of(memory_limit());
}
/// One entry of an index may wait in memory for so many octets of pages. An entry takes 100 to 200 octets.
constexpr std::uint64_t page_octets_for_entry = 2048;
/// One octet of what is known of keys for so many.
constexpr std::uint64_t page_octets_for_key_octet = 128;

/// What is answered has to fit into the file later, so there has to be room enough: for all pages of a transaction in the log, those
/// that its entries come to lie on as well; and once more for what the file grows by.
[[nodiscard]] auto room_needed(directory_options const& options) -> std::uint64_t {
  constexpr std::uint64_t page = 4096;
  auto const pages = page_octets(options);
  return 2 * pages + pages / page_octets_for_entry * page + 2 * options.journal_octets_max;
}

/// When it did not fit, it is tried again so much later.
constexpr std::chrono::seconds retry_time{1};

/// Does again what the journal has after the group `committed`, up to the group `until`; the number of the last one.
[[nodiscard]] auto repeat_journal(directory_journal const& journal, std::uint64_t committed,
                                  std::uint64_t until, directory_session& session)
    -> outcome<std::uint64_t> {
  auto last = committed;
  TIDEGATE_TRY_VOID(
      journal.read([&](std::uint64_t number, std::string_view group) -> outcome<void> {
        if (number <= committed || number > until) {
          return {};
        }
        if (number != last + 1) {
          return failure(store_error{
              store_fault::damaged, session.file().file() + ": lacks what was before its journal"});
        }
        last = number;
        return session.repeat(group);
      }));
  return last;
}

}  // namespace

directory::threads::threads(directory_options options, file_lock lock, directory_journal journal,
                            std::uint64_t journaled, std::unique_ptr<directory_session> writer,
                            std::vector<std::unique_ptr<directory_session>> readers,
                            std::vector<std::unique_ptr<directory_session>> readers_here)
    : options_(std::move(options)),
      lock_(std::move(lock)),
      room_needed_(room_needed(options_)),
      journal_(std::move(journal)),
      journaled_(journaled),
      committed_(journaled),
      writer_(std::move(writer)),
      readers_(std::move(readers)),
      readers_here_(std::move(readers_here)) {
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
    closing_reads_ = true;
  }
  {
    std::lock_guard const lock(write_mutex_);
    stopping_writes_ = true;
  }
  write_queued_.notify_all();
  write_thread_.join();  // the last thing it does is to let all readers go on
  {
    std::lock_guard const lock(read_mutex_);
    stopping_reads_ = true;
  }
  read_queued_.notify_all();
  for (auto& thread : read_threads_) {
    thread.join();
  }
  readers_.clear();
  readers_here_.clear();
  // All in one file, where that is possible.
  bool const whole =
      sqlite3_wal_checkpoint_v2(writer_->file().get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr,
                                nullptr) == SQLITE_OK;
  if (whole && !is_behind()) {
    journal_.remove();
  }
}

auto directory::threads::counted() const noexcept -> counts {
  return {transactions_.load(std::memory_order_relaxed), writes_.load(std::memory_order_relaxed)};
}

// ---- reads ----

void directory::threads::read(std::string_view tenant, read_work work) {
  last_read_.store(std::chrono::steady_clock::now(), std::memory_order_relaxed);
  std::unique_lock lock(read_mutex_);
  if (closing_reads_ || reads_.size() + held_reads_.size() >= options_.reads_max) {
    auto const error =
        closing_reads_
            ? store_error{store_fault::stopped, options_.file + ": is being closed"}
            : store_error{store_fault::unavailable, options_.file + ": too many reads wait"};
    lock.unlock();
    work(failure(error));
    return;
  }
  bool const held = holding_reads_;
  (held ? held_reads_ : reads_).push_back({std::string(tenant), std::move(work)});
  lock.unlock();
  if (!held) {
    read_queued_.notify_one();
    return;
  }
  {
    std::lock_guard const writes(write_mutex_);
    has_held_ = true;
  }
  write_queued_.notify_one();
}

auto directory::threads::read_here(std::string_view tenant,
                                   std::function<void(store::directory_reader&)> const& work)
    -> bool {
  auto const begin = std::chrono::steady_clock::now();
  if (begin < here_again_.load(std::memory_order_relaxed)) {
    return false;
  }
  last_read_.store(begin, std::memory_order_relaxed);
  std::unique_ptr<directory_session> session;
  {
    std::lock_guard const lock(read_mutex_);
    if (closing_reads_ || holding_reads_ || readers_here_.empty()) {
      return false;
    }
    session = std::move(readers_here_.back());
    readers_here_.pop_back();
  }
  auto const waits = waits_of_thread();
  bool const begun = session->begin_read(tenant).has_value();
  if (begun) {
    work(*session);
  }
  session->end_read();
  {
    std::lock_guard const lock(read_mutex_);
    readers_here_.push_back(std::move(session));
  }
  auto const end = std::chrono::steady_clock::now();
  // A thread that was not let run while all it needed was there has not waited.
  if (end - begin > here_time_max && waits_of_thread() != waits) {
    here_again_.store(end + here_pause * (end - begin), std::memory_order_relaxed);
  }
  return begun;
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
  writes_queue_.push_back({std::string(tenant), std::move(work), std::move(answer), {}, false});
  lock.unlock();
  write_queued_.notify_one();
}

void directory::threads::run_writes() {
  std::vector<write_job> jobs;
  auto retry = std::chrono::milliseconds(idle_time);
  auto const ready = [this] { return stopping_writes_ || has_held_ || !writes_queue_.empty(); };
  for (;;) {
    std::unique_lock lock(write_mutex_);
    while (!ready() && (is_unsettled() || wal_pages_ >= idle_pages || has_pages_)) {
      bool const has_log = wal_pages_ >= idle_pages;
      bool const has_work = has_log || writer_->has_to_learn();
      auto const idle = is_unsettled() ? retry : has_work ? idle_time : options_.pages_kept;
      if (write_queued_.wait_for(lock, idle, ready)) {
        break;
      }
      lock.unlock();
      if (is_unsettled()) {
        retry = settle(false) ? idle_time : retry_time;
      } else if (has_log) {
        checkpoint(true);
      } else if (has_work) {
        writer_->learn();
      } else {
        writer_->give_back_memory();
        has_pages_ = false;
      }
      lock.lock();
    }
    write_queued_.wait(lock, ready);
    if (std::exchange(has_held_, false)) {
      lock.unlock();
      if (auto const settled = settle(false); !settled) {
        refuse_held(settled.error());
      }
      continue;
    }
    if (writes_queue_.empty()) {
      lock.unlock();
      if (auto const settled = settle(true); !settled) {
        refuse_held(settled.error());
      }
      return;
    }
    auto const some = std::min(writes_queue_.size(), transaction_max);
    auto const end = writes_queue_.begin() + static_cast<std::ptrdiff_t>(some);
    jobs.assign(std::move_iterator(writes_queue_.begin()), std::move_iterator(end));
    writes_queue_.erase(writes_queue_.begin(), end);
    lock.unlock();
    has_pages_ = true;
    make(jobs);
    jobs.clear();
    bound();
  }
}

void directory::threads::make(std::vector<write_job>& jobs) {
  if (!transact(jobs)) {
    // A work that is looked at alone has all of its pages in memory, so that the log can take it whatever is undone of it.
    writer_->set_spills(false);
    for (auto& job : jobs) {
      // An error of one is its own.
      job.undone = false;
      if (auto made = transact({&job, 1}); !made) {
        job.made = std::move(made);
      }
      static_cast<void>(settle(false));
    }
    writer_->set_spills(true);
  }
  if (is_behind()) {
    std::lock_guard const lock(read_mutex_);
    holding_reads_ = true;
  }
  for (auto& job : jobs) {
    job.answer(std::move(job.made));
  }
}

auto directory::threads::transact(std::span<write_job> jobs) -> outcome<void> {
  if (auto made = make_all(jobs); !made) {
    writer_->rollback();
    waiting_ = 0;
    if (is_behind()) {
      // Where it fails, it is tried again before anything is written.
      static_cast<void>(catch_up());
    }
    if (jobs.size() == 1 && jobs.front().undone) {
      return {};
    }
    return made;
  }
  transactions_.fetch_add(1, std::memory_order_relaxed);
  writes_.fetch_add(jobs.size(), std::memory_order_relaxed);
  return {};
}

auto directory::threads::make_all(std::span<write_job> jobs) -> outcome<void> {
  if (has_failed_to_sync(writer_->file().get())) {
    return failure(store_error{store_fault::unavailable,
                               options_.file + ": the disk did not keep what it was given; nothing "
                                               "is written until it is opened again"});
  }
  bool const waits = may_wait();
  if (!waits || (is_behind() && !writer_->file().in_transaction())) {
    TIDEGATE_TRY_VOID(settle(false));
  }
  if (!writer_->file().in_transaction()) {
    TIDEGATE_TRY_VOID(writer_->begin_write());
  }
  for (auto& job : jobs) {
    TIDEGATE_TRY_VOID(make_one(job));
    fail_point("directory_written");
  }
  if (!waits) {
    writer_->forget_written();
    TIDEGATE_TRY_VOID(commit(true));
    fail_point("directory_committed");
    return {};
  }
  waiting_ += jobs.size();
  if (!writer_->written().empty()) {
    TIDEGATE_TRY_VOID(journal_.append(journaled_ + 1, writer_->written()));
    ++journaled_;
    writer_->forget_written();
  }
  fail_point("directory_journaled");
  return {};
}

auto directory::threads::make_one(write_job& job) -> outcome<void> {
  job.made = {};
  writer_->begin_work(job.tenant);
  bool const keep = job.work(*writer_);
  job.undone = !keep && !writer_->failed();
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

// ---- the file behind the journal ----

auto directory::threads::may_wait() -> bool {
  auto const since = std::chrono::steady_clock::now() - last_read_.load(std::memory_order_relaxed);
  if (since < quiet_time) {
    return false;
  }
  std::error_code failed;
  auto const room = std::filesystem::space(options_.file, failed).available;
  // What is too large for a file with a limit is found out before it is answered.
  return options_.file_octets_max == 0 && !failed && room >= room_needed_;
}

auto directory::threads::commit(bool synced) -> outcome<void> {
  // A group that failed may be on the disk. What it was of is written now or refused, so it must never be repeated.
  auto const applied = journaled_ + (synced && journal_.is_doubtful() ? 1 : 0);
  set_log_syncs(writer_->file().get(), synced);
  auto made = writer_->commit(applied);
  set_log_syncs(writer_->file().get(), true);
  TIDEGATE_TRY_VOID(std::move(made));
  waiting_ = 0;
  journaled_ = applied;
  committed_ = applied;
  if (synced && (journal_.size() > 0 || journal_.is_doubtful()) &&
      sync_whole_log(writer_->file().get())) {
    journal_.restart();
  }
  return {};
}

auto directory::threads::settle(bool synced) -> outcome<void> {
  if (writer_->file().in_transaction()) {
    if (!commit(synced)) {
      writer_->rollback();
      waiting_ = 0;
    }
  }
  if (is_behind()) {
    TIDEGATE_TRY_VOID(catch_up());
  }
  show();
  return {};
}

auto directory::threads::catch_up() -> outcome<void> {
  auto const now = std::chrono::steady_clock::now();
  if (now < caught_up_next_) {
    return failure(caught_up_error_);
  }
  auto made = [&]() -> outcome<void> {
    TIDEGATE_TRY_VOID(writer_->begin_write());
    TIDEGATE_TRY(auto const last, repeat_journal(journal_, committed_, journaled_, *writer_));
    if (last != journaled_) {
      return failure(
          store_error{store_fault::damaged, options_.file + ".journal: lacks what was in it"});
    }
    return commit(false);
  }();
  if (!made) {
    writer_->rollback();
    caught_up_error_ = made.error();
    caught_up_next_ = now + retry_time;
  }
  return made;
}

void directory::threads::show() {
  {
    std::lock_guard const lock(read_mutex_);
    if (!holding_reads_) {
      return;
    }
    holding_reads_ = false;
    std::move(held_reads_.begin(), held_reads_.end(), std::back_inserter(reads_));
    held_reads_.clear();
  }
  read_queued_.notify_all();
}

void directory::threads::refuse_held(store_error const& error) {
  std::deque<read_job> held;
  {
    std::lock_guard const lock(read_mutex_);
    held.swap(held_reads_);
  }
  for (auto& job : held) {
    job.work(failure(error));
  }
}

/// Keeps memory, journal and log short. What fails here is tried again later; the journal has it all the same.
void directory::threads::bound() {
  if (waiting_ > 0) {
    bool const is_long = journal_.size() >= options_.journal_octets_max;
    bool const is_full = is_long || waiting_ >= waiting_max;
    // Before a commit that can wait a little, entries go to their table step by step: there are writers behind each. Those bring
    // new ones, so there may never be few.
    relief_steps_ = is_full ? relief_steps_ + 1 : 0;
    auto const relieved = is_full ? writer_->relieve_a_step() : writer_->relieve();
    bool const is_ready = writer_->is_relieved() || relief_steps_ > pending_indexes::count;
    if (!relieved) {
      writer_->rollback();
      waiting_ = 0;
    } else if (writer_->is_large() || (is_full && is_ready)) {
      relief_steps_ = 0;
      static_cast<void>(settle(is_long));
    }
  }
  if (wal_pages_ >= checkpoint_at_ && !writer_->file().in_transaction()) {
    checkpoint(false);
  }
}

/// What fails here is tried again later; the log has it all the same.
void directory::threads::checkpoint(bool idle) {
  auto* const file = writer_->file().get();
  int in_log = 0;
  int in_file = 0;
  sqlite3_busy_timeout(file, idle ? 0 : readers_wait_ms);
  int const code = sqlite3_wal_checkpoint_v2(
      file, nullptr, idle ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_RESTART, &in_log,
      &in_file);
  sqlite3_busy_timeout(file, 0);
  // What may be behind the last group is of a write that was refused: only another number keeps it from being repeated.
  if (code == SQLITE_OK && in_log == in_file && !is_behind() && journal_.size() > 0 &&
      !journal_.is_doubtful()) {
    journal_.restart();
  }
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
  TIDEGATE_TRY(auto file, connect(options, write_vfs_name()));
  auto const page_memory = page_octets(options);
  auto const pages = "PRAGMA cache_size=-" + std::to_string(page_memory >> 10);
  TIDEGATE_TRY_VOID(file.execute(pages.c_str()));
  TIDEGATE_TRY_VOID(file.execute("PRAGMA wal_autocheckpoint=4096"));
  TIDEGATE_TRY_VOID(prepare_directory(file, *model));
  TIDEGATE_TRY_VOID(file.execute("PRAGMA wal_autocheckpoint=0"));
  TIDEGATE_TRY_VOID(file.limit_file(options.file_octets_max));
  TIDEGATE_TRY(auto const identity, file.number("SELECT identity FROM journal"));
  TIDEGATE_TRY(auto const committed, file.number("SELECT applied FROM journal"));
  TIDEGATE_TRY(auto journal,
               directory_journal::open(options.file, static_cast<std::uint64_t>(identity)));
  auto writer = std::make_unique<directory_session>(std::move(file), model,
                                                    page_memory / page_octets_for_entry,
                                                    page_memory / page_octets_for_key_octet);
  TIDEGATE_TRY_VOID(writer->begin_write());
  TIDEGATE_TRY(auto const journaled,
               repeat_journal(journal, static_cast<std::uint64_t>(committed),
                              std::numeric_limits<std::uint64_t>::max(), *writer));
  TIDEGATE_TRY_VOID(writer->commit(journaled));
  // Whoever had it open before may have left commits that were never synced.
  if (!sync_whole_log(writer->file().get())) {
    return failure(store_error{store_fault::unavailable, options.file + "-wal: cannot be synced"});
  }
  journal.restart();
  auto const make_readers =
      [&](std::size_t count) -> outcome<std::vector<std::unique_ptr<directory_session>>> {
    std::vector<std::unique_ptr<directory_session>> made;
    while (made.size() < count) {
      TIDEGATE_TRY(auto another, connect(options, read_vfs_name()));
      made.push_back(std::make_unique<directory_session>(std::move(another), model));
    }
    return made;
  };
  TIDEGATE_TRY(auto readers, make_readers(std::max<std::size_t>(1, options.readers)));
  TIDEGATE_TRY(auto readers_here, make_readers(options.readers_here));
  return std::unique_ptr<directory>(new directory(
      std::make_unique<threads>(std::move(options), std::move(lock), std::move(journal), journaled,
                                std::move(writer), std::move(readers), std::move(readers_here))));
}

directory::directory(std::unique_ptr<threads> threads) : threads_(std::move(threads)) {}
directory::~directory() = default;

void directory::read(std::string_view tenant, read_work work) {
  threads_->read(tenant, std::move(work));
}

auto directory::read_here(std::string_view tenant,
                          std::function<void(store::directory_reader&)> const& work) -> bool {
  return threads_->read_here(tenant, work);
}

void directory::write(std::string_view tenant, write_work work, write_answer answer) {
  threads_->write(tenant, std::move(work), std::move(answer));
}

auto directory::counted() const -> counts {
  return threads_->counted();
}

}  // namespace tidegate::store_sqlite
