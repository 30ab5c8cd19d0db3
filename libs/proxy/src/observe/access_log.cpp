// SPDX-License-Identifier: Apache-2.0
#include "observe/access_log.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

/// Lines gather for so long, unless there are many.
constexpr auto gather_for = 50ms;
/// How long a pipe or the like may refuse to take more.
constexpr auto blocked_max = 1s;
/// How long the end of the program waits for the last lines.
constexpr auto last_lines_max = 5s;

auto count_lines(std::string_view text) -> std::uint64_t {
  return static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
}

/// Writes as much as it can and returns the rest.
auto write_all(int file, std::string_view text) -> std::string_view {
  while (!text.empty()) {
    auto const written = ::write(file, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd polled{file, POLLOUT, 0};
      if (::poll(&polled, 1, static_cast<int>(std::chrono::milliseconds(blocked_max).count())) <
          1) {
        break;
      }
    } else if (errno != EINTR) {
      break;
    }
  }
  return text;
}

}  // namespace

struct access_log::state {
  std::mutex mutex;
  std::condition_variable changed;
  bool has_lines = false;
  bool at_once = false;
  bool stopping = false;
  bool done = false;
  std::shared_ptr<engine::descriptor const> file;
  std::vector<std::unique_ptr<source>> sources;
  counter lost;

  void run() {
    // A reader that goes away is a failed write, not the end of the gateway.
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::unique_lock lock(mutex);
    while (!done) {
      changed.wait(lock, [&] { return has_lines || stopping; });
      changed.wait_for(lock, gather_for, [&] { return at_once || stopping; });
      has_lines = false;
      at_once = false;
      bool const is_last = stopping;
      auto const to = file;
      lock.unlock();
      write_waiting(to.get());
      lock.lock();
      done = is_last;
    }
    changed.notify_all();
  }

  void write_waiting(engine::descriptor const* to) {
    std::string lines;
    for (auto const& each : sources) {
      lines.clear();
      {
        std::lock_guard const lock(each->mutex_);
        lines.swap(each->lines_);
      }
      lost.add(count_lines(to == nullptr ? lines : write_all(to->get(), lines)));
    }
  }
};

access_log::access_log() : state_(std::make_shared<state>()) {}

access_log::~access_log() {
  if (!thread_.joinable()) {
    return;
  }
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->changed.notify_all();
  bool const is_done = state_->changed.wait_for(lock, last_lines_max, [&] { return state_->done; });
  lock.unlock();
  if (is_done) {
    thread_.join();
  } else {
    thread_.detach();  // it hangs in a write that nothing can end, and ends with the process
  }
}

auto access_log::open(access_log_config const& settings)
    -> result<engine::descriptor, std::string> {
  switch (settings.to) {
    case access_log_config::destination::off: break;
    case access_log_config::destination::standard_output:
      return engine::descriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
    case access_log_config::destination::file: {
      // Else a pipe without a reader would be waited for.
      engine::descriptor file(::open(settings.file.c_str(),
                                     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640));
      if (!file.is_open()) {
        return failure("access-log: cannot write " + settings.file + ": " +
                       engine::to_string(engine::system_error{"open", errno}));
      }
      return file;
    }
  }
  return engine::descriptor();
}

void access_log::use(engine::descriptor file) {
  auto next =
      file.is_open() ? std::make_shared<engine::descriptor const>(std::move(file)) : nullptr;
  bool const is_used = next != nullptr;
  {
    std::lock_guard const lock(state_->mutex);
    state_->file.swap(next);
  }
  if (is_used && !thread_.joinable()) {
    thread_ = std::thread([shared = state_] { shared->run(); });
  }
}

auto access_log::add_source() -> source& {
  return *state_->sources.emplace_back(std::make_unique<source>(*this));
}

auto access_log::lost() const -> std::uint64_t {
  return state_->lost.value();
}

void access_log::wake(bool at_once) {
  std::lock_guard const lock(state_->mutex);
  state_->has_lines = true;
  state_->at_once = state_->at_once || at_once;
  state_->changed.notify_all();
}

auto access_log::source::add(std::string_view line) -> bool {
  bool is_first = false;
  bool is_half_full = false;
  {
    std::lock_guard const lock(mutex_);
    auto const before = lines_.size();
    if (line.size() > waiting_octets_max - before) {
      return false;
    }
    lines_.append(line);
    is_first = before == 0;
    is_half_full = before < waiting_octets_max / 2 && lines_.size() >= waiting_octets_max / 2;
  }
  if (is_first || is_half_full) {
    log_.wake(is_half_full);
  }
  return true;
}

}  // namespace tidegate::gateway
