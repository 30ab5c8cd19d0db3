// SPDX-License-Identifier: Apache-2.0
#include <tidegate/gateway/event_log.hpp>

#include "access_log_line.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string>
#include <utility>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

/// How long the end of the program waits for the last lines.
constexpr auto last_lines_max = 1s;
/// How often a reader that takes nothing is looked at again.
constexpr auto look_again_after = 100ms;

constexpr std::array<std::string_view, 4> level_names = {"error", "warning", "info", "debug"};

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

auto name_of(log_level level) noexcept -> std::string_view {
  return level_names[static_cast<std::size_t>(level)];
}

auto log_level_named(std::string_view name) noexcept -> std::optional<log_level> {
  auto const* const found = std::ranges::find(level_names, name);
  return found == level_names.end()
             ? std::nullopt
             : std::optional(static_cast<log_level>(found - level_names.begin()));
}

struct event_log::state {
  explicit state(int descriptor) : file(descriptor) {}

  int const file;
  std::mutex mutex;
  std::condition_variable changed;
  std::string lines;              // that wait
  std::uint64_t lost = 0;         // since the last line that said so
  std::uint64_t lost_in_all = 0;  // of all time
  bool stopping = false;
  bool done = false;

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return !lines.empty() || stopping; });
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
  // No signal is for this thread; and a reader that goes away is a failed write, not the end of the gateway.
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
  if (state_->lines.size() > waiting_octets_max - line_octets_max) {
    ++state_->lost;
    ++state_->lost_in_all;
    return;
  }
  append_line(state_->lines, level, text);
  state_->changed.notify_all();
}

auto event_log::dropped() const -> std::uint64_t {
  if (!state_) {
    return 0;
  }
  std::lock_guard const lock(state_->mutex);
  return state_->lost_in_all;
}

}  // namespace tidegate::gateway
