// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/reload.hpp>
#include <tidegate/engine/loop.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace tidegate::gateway {

enum class reload_mode : std::uint8_t { preview, apply };

/// Reads the configuration again on a thread of its own, since that reads files and resolves names.
/// The first request starts the thread; the destructor waits for it.
class config_reloader {
 public:
  using reload_function = std::function<reload_outcome(reload_mode mode)>;
  using reply_function = std::move_only_function<void(reload_mode mode, reload_outcome const&)>;

  /// `run` is called on the thread, one call after the other.
  explicit config_reloader(reload_function run) : run_(std::move(run)) {}
  config_reloader(config_reloader const&) = delete;
  auto operator=(config_reloader const&) -> config_reloader& = delete;
  ~config_reloader();

  /// False when as many wait as may. Else `reply` is called once, on the thread of `on`, unless
  /// that ends before.
  [[nodiscard]] auto ask(engine::loop& on, reload_mode mode, reply_function reply) -> bool;

 private:
  struct job {
    engine::loop* on;
    reload_mode mode;
    reply_function reply;
  };
  static constexpr std::size_t jobs_max = 8;

  void work();

  reload_function run_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<job> jobs_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tidegate::gateway
