// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>
#include <tidegate/engine/tls.hpp>
#include <tidegate/proxy/server_set.hpp>
#include <tidegate/ratelimit/overload.hpp>
#include <tidegate/wire/http1_head.hpp>

#include <map>
#include <mutex>

namespace tidegate::gateway {

class upstream_pool;
struct policy_metrics;
struct auth_fields;
class consumer_index;
struct route_edge;
struct route_metrics;

/// Numbers for the names of policies that stay the same over reloads, so that counters do too.
class policy_ids {
 public:
  [[nodiscard]] auto of(std::string const& name) -> std::uint32_t {
    return ids_.try_emplace(name, static_cast<std::uint32_t>(ids_.size())).first->second;
  }

 private:
  std::map<std::string, std::uint32_t> ids_;
};

/// The states of abuse detection are kept under numbers that no policy has.
inline constexpr std::uint32_t abuse_domain = 0x8000'0000;

/// One policy of a route, ready for use.
struct limit {
  policy_config const* policy = nullptr;
  std::uint32_t id = 0;
  /// The position in the route's limits of an earlier one with the same sources, whose partition is
  /// the same; its own position when there is none.
  std::size_t partition_of = 0;
  /// For each source which field it is; `other` for a field that has no entry, and for what is not
  /// a field.
  std::vector<wire::known_field> source_fields;
  /// The content of the response to a request that this policy alone refuses, and what HTTP/1.1
  /// says of status and content before it.
  std::string problem;
  std::string problem_head;
};

struct route_variant;

struct route {
  route_config const* settings = nullptr;
  cost_table costs;
  std::vector<limit> limits;
  /// Both fields for the policies that are enforced, in order.
  std::vector<ratelimit::quota_policy_view> policies;
  ratelimit::prepared_fields fields;
  std::vector<wire::known_field> scope_fields;  ///< of the sources of `idempotency.scope`
  /// Fields besides the known ones that this gateway reads or writes here, in lower case: what some
  /// read as one of them is not sent on.
  std::vector<std::string> other_names;
  /// What an upstream says of its own limits and we say in its place; nothing where we say nothing.
  wire::field_set fields_made_anew;
  /// The same route for callers of a plan that some of its policies name.
  std::vector<route_variant> by_plan;
  /// The same for requests that are not let in: with the policies whose partitions need no
  /// principal. Empty where all of them are so.
  std::vector<route_variant> refused;
  bool gives_back = false;      ///< a charge may have to be corrected after the response
  bool has_own_quotas = false;  ///< a caller may have one that only it has
  bool tells_keys = false;      ///< a policy has a partition key that clients see
  bool watches_abuse = false;   ///< a policy does
  bool has_calendar = false;    ///< a policy has windows of a calendar
  /// The path is part of a partition or of the scope of keys: each spelling of it is another one.
  bool tells_paths_apart = false;
  /// Of the sources of `idempotency.scope`, for the digest by which an operator is shown who owns a
  /// key.
  ratelimit::partition_rule key_owner{{}};
  std::shared_ptr<route_edge const> edge{};   ///< null for most routes
  std::shared_ptr<auth_fields const> auth{};  ///< what `auth` changes in requests; null: nothing
};

/// A route with some of its policies, or with other quotas.
struct route_variant {
  std::string plan;
  std::vector<std::unique_ptr<policy_config const>> policies;  ///< that `limits` point to
  gateway::route route;
};

/// A route as one thread uses it.
struct worker_route {
  gateway::route const* route;
  upstream_pool* pool;   // null for a service of our own
  std::size_t upstream;  // the position of that of `pool`
  route_metrics* counts;
  std::vector<policy_metrics*> policies;  // in the order of its limits
  /// Where upstreams share the requests: the same route with each of them, and how much of
  /// all shares it has together with those before it.
  std::vector<std::pair<std::uint64_t, std::unique_ptr<worker_route const>>> split{};
  /// Those of `route`, in their order.
  std::vector<std::unique_ptr<worker_route const>> by_plan{};
  std::unique_ptr<worker_route const> refused{};

  /// The route for a caller of that plan.
  [[nodiscard]] auto of_plan(std::string_view plan) const -> worker_route const& {
    for (std::size_t i = 0; i < by_plan.size(); ++i) {
      if (route->by_plan[i].plan == plan) {
        return *by_plan[i];
      }
    }
    return *this;
  }

  /// The route for one request; `randomness` is any number.
  [[nodiscard]] auto chosen_by(std::uint64_t randomness) const -> worker_route const& {
    auto const at = randomness % split.back().first;
    auto found = split.begin();
    while (found->first <= at) {
      ++found;
    }
    return *found->second;
  }
};

/// Appends the status line of HTTP/1.1, and Content-Type and Content-Length of what follows the
/// head.
void append_content_head(std::string& out, int status, std::string_view content_type,
                         std::size_t content_octets);

/// How much of an upstream is in use, by all threads.
struct upstream_load {
  explicit upstream_load(overload_config const& settings)
      : guard({settings.max_in_flight, settings.target_latency}) {}

  /// Of a reload; what is in flight and what was learnt stays.
  void use(overload_config const& settings) {
    std::lock_guard const lock(mutex);
    guard.use({settings.max_in_flight, settings.target_latency});
  }

  std::mutex mutex;
  ratelimit::overload_guard guard;
  std::int64_t in_flight = 0;
};

/// What is known of upstreams by name, so that it stays the same over reloads. One that no
/// active_config has any more is forgotten.
class upstream_states {
 public:
  /// One that is there keeps its settings: they are changed when the reload can no longer fail.
  [[nodiscard]] auto load_of(std::string const& name, overload_config const& settings)
      -> std::shared_ptr<upstream_load> {
    return found_or_made(loads_, name, [&] { return std::make_shared<upstream_load>(settings); });
  }
  /// The same for its servers.
  [[nodiscard]] auto servers_of(upstream_config const& settings) -> std::shared_ptr<server_set> {
    return found_or_made(servers_, settings.name, [&] {
      auto made = std::make_shared<server_set>();
      made->use(settings);
      return made;
    });
  }

 private:
  template <class State, class Make>
  [[nodiscard]] static auto found_or_made(std::map<std::string, std::weak_ptr<State>>& all,
                                          std::string const& name, Make const& make)
      -> std::shared_ptr<State> {
    std::erase_if(all, [](auto const& each) { return each.second.expired(); });
    auto& known = all[name];
    auto state = known.lock();
    if (!state) {
      state = make();
      known = state;
    }
    return state;
  }

  std::map<std::string, std::weak_ptr<upstream_load>> loads_;
  std::map<std::string, std::weak_ptr<server_set>> servers_;
};

struct upstream {
  upstream_config const* settings = nullptr;
  std::shared_ptr<upstream_load> load;  ///< with `overload` only
  std::shared_ptr<server_set> servers;
  std::optional<engine::tls_context> tls;  ///< when any server is `https`
};

/// A configuration in the form that requests are served by. Immutable and shared by all threads.
struct active_config {
  gateway::config config;
  router routes_by_request;
  std::vector<route> routes;
  std::vector<upstream> upstreams;
  std::vector<std::optional<engine::tls_context>> listener_tls;  ///< in the order of `listen`
  http::cidr_set trusted_proxies;
  wire::head_limits head_limits;  ///< of requests
  std::string description_json;   ///< of /.well-known/tidegate
  std::string description_html;
  bool upgrades_websocket = false;                  ///< some route does
  bool has_cors = false;                            ///< some route has
  std::shared_ptr<consumer_index const> consumers;  ///< as they were when this was made
  /// Parameters that have API keys on some route: no log shows them.
  std::vector<std::string> secret_parameters;

  /// Reads certificates. An error is one line for people. Servers that are known by another
  /// configuration stay as they are until `server_set::use`.
  [[nodiscard]] static auto make(gateway::config config, policy_ids& ids, upstream_states& states)
      -> result<std::shared_ptr<active_config const>, std::string>;
};

/// The number of a policy of `settings`; nothing when no route has it.
[[nodiscard]] auto policy_id_of(active_config const& active, policy_config const& policy)
    -> std::optional<std::uint32_t>;

}  // namespace tidegate::gateway
