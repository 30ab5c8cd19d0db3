// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/log_level.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>

namespace tidegate::gateway {

/// What the gateway says about itself, for people: one line each, with time and level.
///
///     2026-11-17T19:22:43.123Z error: upstream "orders": server 127.0.0.1:3000 failed: ...
///
/// Lines are written by a thread of its own. Who has something to say never waits: what finds no
/// room is dropped and counted, and a line says how many once there is room again. From any thread.
class event_log {
 public:
  /// A longer line is cut. So much is written to a pipe at once or not at all.
  static constexpr std::size_t line_octets_max = 4096;
  /// What waits to be written is never more than this.
  static constexpr std::size_t waiting_octets_max = 256 * 1024;

  /// Says nothing to anybody.
  event_log();
  /// Writes to a descriptor, which stays open for as long as this lives, and is not closed.
  explicit event_log(int descriptor);
  event_log(event_log const&) = delete;
  auto operator=(event_log const&) -> event_log& = delete;
  /// Writes what waits, for a second at most.
  ~event_log();

  /// Lines of this level and of those that are more important are written; at first up to `info`.
  void use(log_level level) noexcept { level_.store(level, std::memory_order_relaxed); }
  [[nodiscard]] auto shows(log_level level) const noexcept -> bool {
    return level <= level_.load(std::memory_order_relaxed);
  }

  /// Control characters in `text` become spaces.
  void write(log_level level, std::string_view text);
  void error(std::string_view text) { write(log_level::error, text); }
  void warning(std::string_view text) { write(log_level::warning, text); }
  void info(std::string_view text) { write(log_level::info, text); }
  void debug(std::string_view text) { write(log_level::debug, text); }

  /// For lines that may come often. The first of a kind is written at once. Of those that come
  /// within `pause` of it, the last is written when the pause ends, or this does, with how many
  /// more there were. `kind` is a literal.
  void write_limited(std::string_view kind, log_level level, std::string_view text,
                     std::chrono::nanoseconds pause = std::chrono::seconds(10));

  /// Lines that could not be written so far.
  [[nodiscard]] auto dropped() const -> std::uint64_t;

 private:
  struct state;

  std::atomic<log_level> level_{log_level::info};
  std::shared_ptr<state> state_;  // the thread's too, which may have to be left behind
  std::thread thread_;
};

}  // namespace tidegate::gateway
