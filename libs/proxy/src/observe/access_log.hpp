// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "observe/metrics.hpp"

#include <tidegate/config/config.hpp>
#include <tidegate/engine/socket.hpp>

#include <condition_variable>
#include <thread>

namespace tidegate::gateway {

/// Writes the lines of all workers to a file, on a thread of its own: a disk that is slow costs
/// lines, never time of a worker.
class access_log {
 public:
  /// What waits of one worker is never more than this, and as much again is being written.
  static constexpr std::size_t waiting_octets_max = 1024 * 1024;

  /// Where one worker puts its lines.
  class source {
   public:
    explicit source(access_log& of) : log_(of) {}
    /// A whole line with its end. False when there is no room: the line is lost.
    [[nodiscard]] auto add(std::string_view line) -> bool;

   private:
    friend class access_log;
    access_log& log_;
    std::mutex mutex_;
    std::string lines_;
  };

  access_log();
  access_log(access_log const&) = delete;
  auto operator=(access_log const&) -> access_log& = delete;
  /// Writes what waits, for a few seconds at most.
  ~access_log();

  /// Opens the file to append to it, and makes it when it is missing. An error is one line for
  /// people.
  [[nodiscard]] static auto open(access_log_config const& settings)
      -> result<engine::descriptor, std::string>;
  /// From now on lines go there; while it is not open they are lost. The first that is open starts
  /// the thread.
  void use(engine::descriptor file);
  /// One for each worker, all before the first line.
  [[nodiscard]] auto add_source() -> source&;
  /// Lines that could not be written.
  [[nodiscard]] auto lost() const -> std::uint64_t;

 private:
  struct state;
  void wake(bool at_once);

  std::shared_ptr<state> state_;  // the thread's too, which may have to be left behind
  std::thread thread_;
};

}  // namespace tidegate::gateway
