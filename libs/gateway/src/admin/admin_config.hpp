// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "admin/admin_idempotency.hpp"

#include <tidegate/engine/loop.hpp>
#include <tidegate/gateway/server.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>

namespace tidegate::gateway {

/// True for the paths that `answer_config` knows.
[[nodiscard]] auto is_config_path(std::string_view path) -> bool;

/// Reads the configuration again on a thread of its own, since that reads files and asks for names. The thread is
/// made when somebody first asks; the destructor waits for it.
class config_desk {
 public:
  enum class errand : std::uint8_t { look, reload };
  using errand_function =
      std::function<result<std::vector<config_change>, reload_refusal>(errand what)>;
  using reply_function = std::move_only_function<void(errand what, reload_outcome const&)>;

  /// `run` is called on the thread, one errand after the other.
  explicit config_desk(errand_function run) : run_(std::move(run)) {}
  config_desk(config_desk const&) = delete;
  auto operator=(config_desk const&) -> config_desk& = delete;
  ~config_desk();

  /// False when as many wait as may. Else `reply` is called once, on the thread of `on`, unless that ends before.
  [[nodiscard]] auto ask(engine::loop& on, errand what, reply_function reply) -> bool;

 private:
  struct job {
    engine::loop* on;
    errand what;
    reply_function reply;
  };
  static constexpr std::size_t jobs_max = 8;

  void work();

  errand_function run_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<job> jobs_;
  bool stopping_ = false;
  std::thread thread_;
};

/// The admin API for the configuration:
///
///     GET  /api/v1/config           every option, its value and where that comes from
///     GET  /api/v1/config/reload    what a reload would change, or why there would be none
///     POST /api/v1/config/reload    reloads, as SIGHUP does
///
/// `reply` is called once, on the thread of `on`, perhaps before this returns; never when the gateway ends before.
void answer_config(engine::loop& on, config const& settings, config_desk& desk,
                   admin_request const& request, std::move_only_function<void(admin_answer)> reply);

}  // namespace tidegate::gateway
