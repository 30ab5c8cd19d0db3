// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/proxy/event_log.hpp>
#include <tidegate/proxy/server_set.hpp>

#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace tidegate::gateway {

/// What people are told of one server of an upstream, whichever thread finds it out: that it fails,
/// that it is taken out, that it answers again. Never for every request.
class server_report {
 public:
  /// How long nothing more is said of a server that fails now and then, and of one that does not
  /// answer.
  static constexpr auto pause_of_failures = std::chrono::seconds(10);
  static constexpr auto pause_while_down = std::chrono::seconds(60);
  /// A server that is down and up in turn is said to be so at most so often.
  static constexpr auto pause_of_turns = std::chrono::seconds(5);

  server_report(event_log& to, std::string const& upstream, std::string const& server)
      : log_(to), name_("upstream \"" + upstream + "\": server " + server) {}

  /// `what` went wrong, and what followed from it.
  void failed(std::string_view what, failure_verdict const& verdict, instant now);
  void answered(instant now);
  /// What health checks have found out; `what` went wrong.
  void is_unhealthy(std::string_view what);
  void is_healthy();

  /// From a verdict that says so until the next answer.
  [[nodiscard]] auto is_down() const noexcept -> bool {
    return down_.load(std::memory_order_relaxed);
  }
  /// Since when it is down; nothing while it is not.
  [[nodiscard]] auto down_since() -> std::optional<instant>;
  /// Whether an answer is news.
  [[nodiscard]] auto awaits_answer() const noexcept -> bool {
    return down_.load(std::memory_order_relaxed) || told_down_.load(std::memory_order_relaxed);
  }

 private:
  void say(log_level level, std::string const& what);

  event_log& log_;
  std::string name_;
  std::mutex mutex_;
  std::atomic<bool> down_{false};
  std::atomic<bool> told_down_{false};  // as people were told
  instant down_since_{};
  std::optional<instant> told_at_;  // that it is down, or up again
  std::optional<instant> said_at_;  // that it failed
  std::uint64_t unsaid_ = 0;        // failures since then
};

/// The reports of all servers that are in use; they outlive a reload.
class upstream_reports {
 public:
  explicit upstream_reports(event_log& to) : log_(to) {}

  [[nodiscard]] auto of(std::string const& upstream, std::string const& server)
      -> std::shared_ptr<server_report>;

 private:
  event_log& log_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::weak_ptr<server_report>> servers_;
};

}  // namespace tidegate::gateway
