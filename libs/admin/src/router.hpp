// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "access.hpp"
#include "api/api_partitions.hpp"
#include "api/api_session.hpp"
#include "api/api_try.hpp"
#include "history_sampler.hpp"
#include "http.hpp"
#include "store_probe.hpp"

#include <tidegate/admin/server.hpp>
#include <tidegate/proxy/control.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::gateway {

/// Who may use a path.
enum class admin_role : std::uint8_t {
  anyone,  ///< also without a token: orchestrators have none
  reader,  ///< any token and any method: nothing here changes the gateway
  writer,  ///< any token reads; for other methods it must not be read-only
};

/// A request that was read whole, and where its answer goes.
struct admin_exchange {
  admin_request const& request;
  admin_caller& caller;
  session_cookie const& cookie;
  /// Logs a change, in words without secrets, and the status of its answer.
  admin_note note;
  /// Answers, if the client is still there. To be called once, on the thread of the loop.
  admin_reply reply;
};

/// The change that a request asks for, for the log: `POST /api/v1/config/reload`. Nothing for what
/// only reads.
[[nodiscard]] auto change_in_words(admin_request const& request) -> std::optional<std::string>;

/// What there is at each path of the admin address, and what its endpoints share. Of one thread.
class admin_router {
 public:
  /// How often figures are made for consoles.
  static constexpr std::chrono::seconds event_interval{1};
  /// Consoles at a time; other clients need connections, too.
  static constexpr std::size_t streams_max = 32;

  /// `reloader` and `about` outlive it.
  admin_router(control seen, admin_config const& settings, config_reloader& reloader,
               program_facts const& about);

  [[nodiscard]] static auto role_of(std::string_view path) -> admin_role;
  void answer(admin_exchange exchange);

  [[nodiscard]] auto seen() noexcept -> control& { return control_; }
  [[nodiscard]] auto access() noexcept -> admin_access& { return access_; }
  /// How much of the history comes with the page.
  static constexpr std::chrono::minutes history_shown{15};
  /// All metrics and the last sample of the history. The same for all consoles.
  [[nodiscard]] auto figures() -> std::string const&;
  /// A console reads events from now on, or does no longer.
  void begin_stream() noexcept { ++streams_; }
  void end_stream() noexcept { --streams_; }
  void note_out_of_memory() noexcept;

 private:
  struct route;
  [[nodiscard]] static auto find(std::string_view path) -> route const*;

  void get_about(admin_exchange& exchange);
  void get_console(admin_exchange& exchange);
  void get_events(admin_exchange& exchange);
  void get_health(admin_exchange& exchange);
  void get_history(admin_exchange& exchange);
  void get_metrics(admin_exchange& exchange);
  void get_quotas(admin_exchange& exchange);
  void get_readiness(admin_exchange& exchange);
  void explain(admin_exchange& exchange);
  void use_config(admin_exchange& exchange);
  void use_directory(admin_exchange& exchange);
  void use_keys(admin_exchange& exchange);
  void use_partition(admin_exchange& exchange);
  void use_session(admin_exchange& exchange);
  void try_request(admin_exchange& exchange);
  [[nodiscard]] auto metrics() const -> std::string;
  /// The history from a sample on, as JSON.
  [[nodiscard]] auto history_from(std::size_t first) const -> std::string;

  control control_;
  admin_access access_;
  config_reloader& reloader_;
  program_facts const& about_;
  partition_api partitions_;
  try_api tries_;
  store_probe stores_;
  history_sampler sampler_;
  std::uint64_t out_of_memory_ = 0;  // times
  std::size_t streams_ = 0;
  std::string figures_;  // what consoles were last told
  instant figures_at_{};
};

}  // namespace tidegate::gateway
