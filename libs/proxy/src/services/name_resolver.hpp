// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "observe/prometheus.hpp"
#include "services/look_up.hpp"

#include <condition_variable>
#include <functional>
#include <thread>

namespace tidegate::gateway {

/// Looks up the names of servers on its own thread, again and again, and tells the `server_set` of
/// each what it found. A name that cannot be looked up keeps its last addresses.
class name_resolver {
 public:
  using lookup = std::function<result<balance::name_answer, std::string>(
      std::string const& name, std::optional<std::string> const& dns_server)>;

  explicit name_resolver(event_log& events, lookup how = look_up)
      : events_(events), look_up_(std::move(how)) {}
  name_resolver(name_resolver const&) = delete;
  auto operator=(name_resolver const&) -> name_resolver& = delete;
  ~name_resolver();

  /// From now on the names are those of `upstreams`. Waits for the first look-up of new ones, but
  /// not longer than `wait`.
  void use(std::span<upstream const> upstreams, std::chrono::milliseconds wait);
  [[nodiscard]] auto figures() const -> std::vector<name_figures>;

 private:
  struct entry {
    std::string name;
    std::shared_ptr<server_set> servers;
    resolve_config settings;
    std::string upstream;
    balance::name_record record{};
    std::uint64_t failures = 0;  // of all time
    bool was_asked = false;
  };

  void run();
  void take(entry& of, result<balance::name_answer, std::string> answer, instant now);
  /// The one that is due first; null when there is none.
  [[nodiscard]] auto first_due() const -> std::shared_ptr<entry>;

  event_log& events_;
  lookup look_up_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable asked_;
  std::vector<std::shared_ptr<entry>> entries_;
  bool stopped_ = false;
  std::thread thread_;  // from the first name on
};

}  // namespace tidegate::gateway
