// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/event_log.hpp>

#include "observe/access_log_line.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

/// How long the end of the program waits for the last lines.
constexpr auto last_lines_max = 1s;
/// How often a reader that takes nothing is looked at again.
constexpr auto look_again_after = 100ms;

void append_line(std::string& out, log_level level, std::string_view text) {
  auto const begin = out.size();
  append_log_time(out, std::chrono::system_clock::now());
  out.append(" ").append(name_of(level)).append(": ");
  auto const room = event_log::line_octets_max - (out.size() - begin) - 1;
  auto const text_begin = out.size();
  out.append(text.substr(0, room));
  std::replace_if(
      out.begin() + static_cast<std::ptrdiff_t>(text_begin), out.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
  out += '\n';
}

}  // namespace

/// Of lines of one kind: the last one that was not written, and how many were not.
struct limited_line {
  log_level level{};
  std::string text;
  std::uint64_t unwritten = 0;
  std::chrono::nanoseconds pause{};
  std::chrono::steady_clock::time_point until{};  // nothing is written before
};

struct event_log::state {
  using clock = std::chrono::steady_clock;

  explicit state(int descriptor) : file(descriptor) {}

  int const file;
  std::mutex mutex;
  std::condition_variable changed;
  std::string lines;                                 // that wait
  std::map<std::string_view, limited_line> limited;  // by their kinds
  std::uint64_t lost = 0;                            // since the last line that said so
  std::uint64_t lost_in_all = 0;                     // of all time
  bool stopping = false;
  bool done = false;

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      wait_for_line(lock);
      if (lines.empty()) {
        break;
      }
      auto const end = lines.find('\n') + 1;
      auto const line = lines.substr(0, end);
      lines.erase(0, end);
      lock.unlock();
      bool const is_written = write_line(line);
      lock.lock();
      if (!is_written) {
        lost += 1;
        lost_in_all += 1;
      } else if (lines.empty() && lost != 0) {
        auto const count = std::exchange(lost, 0);
        append_line(lines, log_level::warning,
                    std::to_string(count) +
                        (count == 1 ? " line of this log was" : " lines of this log were") +
                        " dropped: standard error was not read");
      }
    }
    done = true;
    changed.notify_all();
  }

  /// Until there is one, or none will be.
  void wait_for_line(std::unique_lock<std::mutex>& lock) {
    for (;;) {
      add_limited(stopping ? clock::time_point::max() : clock::now());
      if (!lines.empty() || stopping) {
        return;
      }
      auto due = clock::time_point::max();
      for (auto const& [kind, line] : limited) {
        due = line.unwritten != 0 ? std::min(due, line.until) : due;
      }
      if (due == clock::time_point::max()) {
        changed.wait(lock);
      } else {
        changed.wait_until(lock, due);
      }
    }
  }

  /// Adds what waited for a pause to end.
  void add_limited(clock::time_point now) {
    for (auto& [kind, line] : limited) {
      if (line.unwritten != 0 && now >= line.until) {
        auto const more = std::exchange(line.unwritten, 0) - 1;
        add(line.level,
            more == 0 ? line.text
                      : line.text + "; " + std::to_string(more) + " more since the last such line");
        line.until = clock::now() + line.pause;
      }
    }
  }

  /// With the lock.
  void add(log_level level, std::string_view text) {
    if (lines.size() > waiting_octets_max - line_octets_max) {
      ++lost;
      ++lost_in_all;
      return;
    }
    append_line(lines, level, text);
  }

  /// Waits until it is taken. False when it never will be.
  [[nodiscard]] auto write_line(std::string_view line) const -> bool {
    while (!line.empty()) {
      // Not by O_NONBLOCK, which others who write to the same terminal or pipe would get too.
      pollfd polled{file, POLLOUT, 0};
      auto const ready =
          ::poll(&polled, 1, static_cast<int>(std::chrono::milliseconds(look_again_after).count()));
      if (ready < 0 && errno != EINTR) {
        return false;
      }
      if (ready < 1) {
        continue;
      }
      auto const written = ::write(file, line.data(), line.size());
      if (written < 0 && errno != EAGAIN && errno != EINTR) {
        return false;
      }
      line.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
    }
    return true;
  }
};

event_log::event_log() = default;

event_log::event_log(int descriptor) : state_(std::make_shared<state>(descriptor)) {
  // No signal is for this thread; and a reader that goes away is a failed write, not the end of the
  // gateway.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([shared = state_] { shared->run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

event_log::~event_log() {
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
    thread_.detach();  // it waits for a reader that takes nothing, and ends with the process
  }
}

void event_log::write(log_level level, std::string_view text) {
  if (!state_ || !shows(level)) {
    return;
  }
  std::lock_guard const lock(state_->mutex);
  state_->add(level, text);
  state_->changed.notify_all();
}

void event_log::write_limited(std::string_view kind, log_level level, std::string_view text,
                              std::chrono::nanoseconds pause) {
  if (!state_ || !shows(level)) {
    return;
  }
  std::lock_guard const lock(state_->mutex);
  auto& line = state_->limited[kind];
  line.level = level;
  line.text = text.substr(0, line_octets_max);
  line.pause = pause;
  ++line.unwritten;
  state_->add_limited(state::clock::now());
  state_->changed.notify_all();  // also to wait for its time
}

auto event_log::dropped() const -> std::uint64_t {
  if (!state_) {
    return 0;
  }
  std::lock_guard const lock(state_->mutex);
  return state_->lost_in_all;
}

}  // namespace tidegate::gateway
