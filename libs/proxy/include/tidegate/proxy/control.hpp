// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/proxy/active_config.hpp>
#include <tidegate/proxy/bearer.hpp>
#include <tidegate/proxy/consumers.hpp>
#include <tidegate/proxy/event_log.hpp>
#include <tidegate/proxy/heavy_hitters.hpp>
#include <tidegate/proxy/idempotency_service.hpp>
#include <tidegate/proxy/partition_key.hpp>
#include <tidegate/proxy/traffic.hpp>
#include <tidegate/scim_server/service.hpp>
#include <tidegate/store/quota_overrides.hpp>

namespace tidegate::gateway {

struct shared_state;
struct policy_metrics;

/// A listener, as the configuration calls it and as it is bound.
struct bound_listener {
  std::string configured;
  engine::socket_address address;
};

/// What all threads together counted for one policy.
struct policy_sums {
  std::uint64_t admitted = 0;
  std::uint64_t refused = 0;
  std::uint64_t shadow_refused = 0;
  std::uint64_t blocked = 0;
  std::uint64_t shared = 0;

  void add(policy_metrics const& counted) noexcept;
};

/// How a store is: what the console and metrics say of it.
struct store_figures {
  std::string_view store;  ///< `quota`, `idempotency`, `directory`
  std::string_view kind;   ///< `memory`, `sqlite` and so on
  /// Since when it fails; nothing while it works.
  std::optional<std::chrono::system_clock::time_point> failing_since{};
};

/// What metrics say of the program besides the data plane.
struct program_figures {
  std::string_view version{};
  std::string_view commit{};
  std::chrono::system_clock::time_point started{};
  bool last_reload_is_good = true;
  std::chrono::system_clock::time_point last_good_reload{};
  std::uint64_t reload_failures = 0;
  std::uint64_t out_of_memory = 0;  ///< times, besides those of workers
};

/// What the admin address may see and do. Used on one thread, that of `loop`, which serves no
/// request of a client.
class control {
 public:
  /// `shared` outlives it.
  control(engine::loop& on, shared_state& shared) : loop(on), shared_(shared) {}

  [[nodiscard]] auto events() const -> std::shared_ptr<event_log> const&;
  [[nodiscard]] auto listeners() const -> std::span<bound_listener const>;
  [[nodiscard]] auto is_draining() const -> bool;

  /// The consumers of the last content of their file.
  [[nodiscard]] auto consumers() const -> std::shared_ptr<consumer_index const>;

  // Quotas in memory.
  [[nodiscard]] auto quota_table() const -> store::quota_table&;
  [[nodiscard]] auto overrides() const -> store::quota_overrides&;
  /// Of the store where gateways share quotas.
  [[nodiscard]] auto quota_health() const -> store::store_health&;
  /// Runs `task` on the thread of each worker, with its connection to the shared store.
  void post_to_workers(std::function<void(store::quota_store&)> const& task) const;

  /// What was counted of all routes.
  [[nodiscard]] auto traffic() const -> traffic_sums;
  /// The sums of one policy.
  [[nodiscard]] auto sums_of(std::string const& policy) const -> policy_sums;
  /// The partitions that all threads saw most often lately.
  [[nodiscard]] auto hottest_of(std::string const& policy, instant now) const
      -> std::vector<heavy_hitters::partition>;
  /// Has lists show at once what is left of a partition.
  void correct_hottest(std::string const& policy, std::string_view partition,
                       ratelimit::service const& left) const;

  /// All metrics in the text format of Prometheus.
  void append_metrics(std::string& out, program_figures const& program,
                      std::span<store_figures const> stores) const;

  engine::loop& loop;
  /// The last that was applied; workers may take a moment to follow.
  std::shared_ptr<active_config const> active;
  /// Quotas that gateways share, over a connection of this thread; null where they are in memory.
  std::unique_ptr<store::quota_store> quotas;
  std::shared_ptr<idempotency_service> keys;  ///< null while no route has keys
  scim_service* scim = nullptr;               ///< null while no route is one of SCIM

 private:
  shared_state& shared_;
};

}  // namespace tidegate::gateway
