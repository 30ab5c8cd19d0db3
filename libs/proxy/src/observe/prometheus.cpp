// SPDX-License-Identifier: Apache-2.0
#include "observe/prometheus.hpp"

#include "observe/prometheus_text.hpp"

namespace tidegate::gateway {

using namespace prometheus;

namespace {

using all_workers = std::span<std::shared_ptr<worker_metrics> const>;

struct route_sums {
  std::map<std::size_t, std::uint64_t> by_status;
  latency_sums latency;
  std::array<std::uint64_t, keyed_outcomes_count> keyed{};
  bool has_keys = false;

  void add(route_metrics const& counted) {
    counted.by_status.for_each(
        [&](std::size_t status, std::uint64_t count) { by_status[status] += count; });
    latency.add(counted.latency);
    for (std::size_t i = 0; i < keyed.size(); ++i) {
      keyed[i] += counted.keyed[i].value();
    }
    has_keys = has_keys || counted.has_keys.load(std::memory_order_relaxed);
  }
};

constexpr std::array<char const*, scim_operations_count> scim_operation_names = {
    "none", "read", "list", "create", "replace", "patch", "delete", "bulk", "discovery"};

/// What the threads do not count.
struct figures {
  process_figures const& process;
  program_figures const& program;
};

/// One series with fixed labels: what the threads count, and what is counted elsewhere.
struct series {
  char const* name;
  char const* kind;
  char const* help;    ///< null: another series of the metric before
  char const* labels;  ///< may be empty
  counter worker_counters::*counted = nullptr;
  double (*elsewhere)(figures const&) = nullptr;
};

constexpr auto traffic = std::to_array<series>({
    {"tidegate_connections_accepted_total", "counter", "Connections of clients.", "",
     &worker_counters::connections_accepted},
    {"tidegate_connections_open", "gauge", "Connections of clients that are open.", "",
     &worker_counters::connections_open},
    {"tidegate_connections_refused_total", "counter",
     "Connections that were closed before a request was read.", "reason=\"max-connections\"",
     &worker_counters::connections_refused},
    {"tidegate_connections_refused_total", "counter", nullptr, "reason=\"untrusted-proxy\"",
     &worker_counters::connections_untrusted},
    {"tidegate_connections_refused_total", "counter", nullptr, "reason=\"proxy-header\"",
     &worker_counters::connections_without_header},
    {"tidegate_connections_shed_total", "counter",
     "Connections that were closed because more than http.max-buffered waited for clients.", "",
     &worker_counters::connections_shed},
    {"tidegate_tunnels_open", "gauge", "Connections that were upgraded and are open.", "",
     &worker_counters::tunnels_open},
    {"tidegate_tunnel_bytes_total", "counter", "Octets that passed after an upgrade.",
     "direction=\"to-upstream\"", &worker_counters::tunnel_octets_to_upstream},
    {"tidegate_tunnel_bytes_total", "counter", nullptr, "direction=\"to-client\"",
     &worker_counters::tunnel_octets_to_client},
    {"tidegate_out_of_memory_total", "counter",
     "Times that there was no memory for a request, whose connection was closed.", "",
     &worker_counters::out_of_memory,
     [](figures const& all) { return static_cast<double>(all.program.out_of_memory); }},
    {"tidegate_buffered_bytes", "gauge",
     "Bytes in memory that wait for slow clients: of responses and of requests.", "", nullptr,
     [](figures const& all) {
       return static_cast<double>(std::max<std::int64_t>(all.process.buffered_octets, 0));
     }},
    {"tidegate_accept_failures_total", "counter",
     "Times that the system had no descriptor or memory for a new connection.", "",
     &worker_counters::accept_failures},
    {"tidegate_requests_malformed_total", "counter", "Requests that HTTP does not allow.", "",
     &worker_counters::requests_malformed},
    {"tidegate_upstream_fields_dropped_total", "counter",
     "Malformed RateLimit headers of upstreams that were left out.", "",
     &worker_counters::origin_fields_dropped},
    {"tidegate_access_log_dropped_total", "counter",
     "Lines of the access log that were lost: the file did not take them in time, or at all.", "",
     &worker_counters::log_lines_dropped,
     [](figures const& all) { return static_cast<double>(all.process.log_lines_lost); }},
    {"tidegate_idempotency_waiting", "gauge",
     "Requests that wait for the answer to another one with the same key.", "", nullptr,
     [](figures const& all) { return static_cast<double>(all.process.keys_waited_for); }},
    {"tidegate_idempotency_store_failures_total", "counter",
     "Times that the store of idempotency keys gave no answer or took no change.", "",
     &worker_counters::idempotency_store_failures},
    {"tidegate_quota_store_decisions_total", "counter",
     "Requests whose quotas are shared, by who decided: the store, this gateway by what it was "
     "given or told, or this gateway since the store did not answer.",
     "by=\"store\"", &worker_counters::quota_store_asked},
    {"tidegate_quota_store_decisions_total", "counter", nullptr, "by=\"gateway\"",
     &worker_counters::quota_store_here},
    {"tidegate_quota_store_decisions_total", "counter", nullptr, "by=\"failure\"",
     &worker_counters::quota_store_failures},
    {"tidegate_quota_store_round_trips_total", "counter",
     "Writes to the store of quotas; one may hold many questions.", "",
     &worker_counters::quota_store_round_trips},
    {"tidegate_quota_buckets", "gauge", "Buckets and states in the quota table.", "", nullptr,
     [](figures const& all) { return static_cast<double>(all.process.quota_buckets); }},
    {"tidegate_quota_table_bytes", "gauge", "Memory of the quota table.", "", nullptr,
     [](figures const& all) { return static_cast<double>(all.process.quota_octets); }},
});

constexpr auto reloads_and_log = std::to_array<series>({
    {"tidegate_config_last_reload_successful", "gauge",
     "Whether the last reload was applied; 1 before the first.", "", nullptr,
     [](figures const& all) { return all.program.last_reload_is_good ? 1.0 : 0.0; }},
    {"tidegate_config_last_reload_success_timestamp_seconds", "gauge",
     "When a configuration was applied last; the start counts.", "", nullptr,
     [](figures const& all) { return seconds_of(all.program.last_good_reload); }},
    {"tidegate_config_reload_failures_total", "counter", "Reloads that were refused.", "", nullptr,
     [](figures const& all) { return static_cast<double>(all.program.reload_failures); }},
    {"tidegate_log_dropped_total", "counter",
     "Lines for standard error that were lost, since it was not read.", "", nullptr,
     [](figures const& all) { return static_cast<double>(all.process.event_lines_dropped); }},
});

void append_series(std::string& out, std::span<series const> table, all_workers workers,
                   figures const& all) {
  for (auto const& each : table) {
    if (each.help != nullptr) {
      describe(out, each.name, each.kind, each.help);
    }
    auto value = each.elsewhere != nullptr ? each.elsewhere(all) : 0;
    if (each.counted != nullptr) {
      std::uint64_t count = 0;
      for (auto const& worker : workers) {
        count += ((*worker).*each.counted).value();
      }
      value += static_cast<double>(count);
    }
    sample(out, each.name, each.labels, value);
  }
}

void append_routes(std::string& out, std::map<std::string, route_sums> const& routes) {
  describe(out, "tidegate_requests_total", "counter", "Requests that were answered.");
  for (auto const& [name, sum] : routes) {
    for (auto const& [status, count] : sum.by_status) {
      sample(out, "tidegate_requests_total",
             label("route", name) + "," + label("status", std::to_string(status)),
             static_cast<double>(count));
    }
  }
  describe(out, "tidegate_request_duration_seconds", "histogram",
           "From the head of a request to the end of its response.");
  for (auto const& [name, sum] : routes) {
    histogram(out, "tidegate_request_duration_seconds", label("route", name), sum.latency);
  }
  describe(out, "tidegate_idempotency_total", "counter",
           "What became of requests with an Idempotency-Key.");
  for (auto const& [name, sum] : routes) {
    // From 0 on, since the first one of them is to be seen as an increase.
    for (std::size_t i = 0; i < sum.keyed.size() && sum.has_keys; ++i) {
      sample(out, "tidegate_idempotency_total",
             label("route", name) + "," + label("outcome", name_of(static_cast<keyed_outcome>(i))),
             static_cast<double>(sum.keyed[i]));
    }
  }
}

/// Only what is known of the store of keys.
void append_key_store(std::string& out, process_figures const& process) {
  if (process.keys_unresolved) {
    single(out, "tidegate_idempotency_unresolved", "gauge",
           "Unknown outcomes in the store that are not resolved: look them up and resolve them.",
           static_cast<double>(*process.keys_unresolved));
  }
  if (process.keys_octets_max != 0) {
    single(out, "tidegate_idempotency_store_bytes", "gauge",
           "What keys and responses take in memory or in SQLite.",
           static_cast<double>(process.keys_octets));
    single(out, "tidegate_idempotency_store_bytes_max", "gauge",
           "What they may take (stores.idempotency-size): beyond, new keys get 503.",
           static_cast<double>(process.keys_octets_max));
  }
  if (process.keys_full) {
    single(out, "tidegate_idempotency_store_full", "gauge",
           "1 while the store of idempotency keys has no room for new keys by its own bound, which "
           "then get 503; it works all the same.",
           *process.keys_full ? 1 : 0);
  }
}

void append_policies(std::string& out, std::map<std::string, policy_sums> const& policies) {
  describe(out, "tidegate_decisions_total", "counter", "What policies said to requests.");
  for (auto const& [name, sum] : policies) {
    auto const decided = [&out, policy = label("policy", name)](char const* decision,
                                                                std::uint64_t count) {
      sample(out, "tidegate_decisions_total", policy + "," + label("decision", decision),
             static_cast<double>(count));
    };
    decided("admitted", sum.admitted);
    decided("refused", sum.refused);
    decided("shadow-refused", sum.shadow_refused);
    decided("blocked", sum.blocked);
  }
  describe(out, "tidegate_decisions_shared_total", "counter",
           "Decisions on partitions that found no room in the quota table and share a quota.");
  for (auto const& [name, sum] : policies) {
    sample(out, "tidegate_decisions_shared_total", label("policy", name),
           static_cast<double>(sum.shared));
  }
}

void append_scim_requests(std::string& out, all_workers workers) {
  describe(out, "tidegate_scim_requests_total", "counter",
           "Requests to the SCIM service, by what was asked of it.");
  for (std::size_t i = 1; i < scim_operations_count; ++i) {
    std::map<std::size_t, std::uint64_t> by_status;
    for (auto const& worker : workers) {
      worker->scim[i].for_each(
          [&](std::size_t status, std::uint64_t count) { by_status[status] += count; });
    }
    for (auto const& [status, count] : by_status) {
      sample(out, "tidegate_scim_requests_total",
             label("operation", scim_operation_names[i]) + "," +
                 label("status", std::to_string(status)),
             static_cast<double>(count));
    }
  }
}

}  // namespace

void append_prometheus(std::string& out, std::span<std::shared_ptr<worker_metrics> const> workers,
                       process_figures const& process, program_figures const& program) {
  std::map<std::string, route_sums> routes;
  std::map<std::string, policy_sums> policies;
  for (auto const& worker : workers) {
    std::lock_guard const lock(worker->mutex);
    for (auto const& [name, route] : worker->routes) {
      routes[name].add(*route);
    }
    for (auto const& [name, policy] : worker->policies) {
      policies[name].add(*policy);
    }
  }
  figures const all{process, program};
  append_routes(out, routes);
  append_key_store(out, process);
  append_policies(out, policies);
  append_series(out, traffic, workers, all);
  append_scim_requests(out, workers);
  append_series(out, reloads_and_log, workers, all);
  describe(out, "tidegate_build_info", "gauge",
           "1, with the version and the commit of the program.");
  sample(out, "tidegate_build_info",
         label("version", program.version) + "," + label("commit", program.commit), 1);
  append_process_metrics(out, program.started);
}

namespace {

/// One server of an upstream, by all threads.
struct server_sums {
  std::string labels;
  bool is_up = true;
  std::uint64_t failures_in_a_row = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t failures = 0;
  std::map<std::size_t, std::uint64_t> by_status;
  std::optional<instant> down_since;
};

}  // namespace

void append_upstreams(std::string& out, active_config const& active,
                      std::span<std::shared_ptr<worker_metrics> const> workers,
                      upstream_reports& reports, instant now) {
  std::vector<server_sums> all;
  std::map<std::string, latency_sums> latencies;
  for (auto const& upstream : active.upstreams) {
    auto const& name = upstream.settings->name;
    auto& latency = latencies[name];
    for (auto const& worker : workers) {
      std::lock_guard const lock(worker->mutex);
      if (auto const found = worker->upstreams.find(name); found != worker->upstreams.end()) {
        latency.add(*found->second);
      }
    }
    auto const listed = upstream.servers->list();
    for (auto const& [server, weight] : *listed) {
      auto& sum = all.emplace_back();
      sum.labels = label("upstream", name) + "," + label("server", server->identity.label);
      sum.is_up = server->is_up(now);
      sum.failures_in_a_row = server->failures_in_a_row();
      for (auto const& worker : workers) {
        std::lock_guard const lock(worker->mutex);
        auto const found = worker->servers.find({name, server->identity.label});
        if (found != worker->servers.end()) {
          auto const& counts = *found->second;
          sum.in_flight += counts.in_flight.value();
          sum.failures += counts.failures.value();
          counts.by_status.for_each(
              [&](std::size_t status, std::uint64_t count) { sum.by_status[status] += count; });
        }
      }
      sum.down_since = reports.of(name, server->identity.label)->down_since();
    }
  }
  auto const each = [&](char const* metric, char const* kind, char const* help, auto value) {
    describe(out, metric, kind, help);
    for (auto const& sum : all) {
      sample(out, metric, sum.labels, static_cast<double>(value(sum)));
    }
  };
  each(
      "tidegate_upstream_up", "gauge",
      "Whether a server does well: 0 while it is ejected or unhealthy, also where it is used since "
      "there is no other.",
      [](server_sums const& sum) { return sum.is_up ? 1 : 0; });
  each("tidegate_upstream_in_flight", "gauge", "Requests that a server has not answered yet.",
       [](server_sums const& sum) { return sum.in_flight; });
  describe(out, "tidegate_upstream_requests_total", "counter",
           "Responses of servers, by status. Those that did not come are failures.");
  for (auto const& sum : all) {
    for (auto const& [status, count] : sum.by_status) {
      sample(out, "tidegate_upstream_requests_total",
             sum.labels + "," + label("status", std::to_string(status)),
             static_cast<double>(count));
    }
  }
  each("tidegate_upstream_failures_total", "counter",
       "Times that a server could not be reached, or gave no whole answer.",
       [](server_sums const& sum) { return sum.failures; });
  each("tidegate_upstream_failures_in_a_row", "gauge",
       "Failures and responses 500, 502, 503 and 504 since the last other response of a server.",
       [](server_sums const& sum) { return sum.failures_in_a_row; });
  each("tidegate_upstream_down_since_timestamp_seconds", "gauge",
       "Since when a server gives no answer, from the failures in a row that eject one to its next "
       "answer; 0 "
       "while it does.",
       [now, wall = std::chrono::system_clock::now()](server_sums const& sum) {
         using std::chrono::system_clock;
         return sum.down_since ? seconds_of(std::chrono::round<std::chrono::seconds>(
                                     wall - std::chrono::duration_cast<system_clock::duration>(
                                                now - *sum.down_since)))
                               : 0;
       });
  describe(out, "tidegate_upstream_duration_seconds", "histogram",
           "From sending a request to an upstream, with connecting where that was needed, to the "
           "head of its response.");
  for (auto const& [name, sums] : latencies) {
    histogram(out, "tidegate_upstream_duration_seconds", label("upstream", name), sums);
  }
}

void append_names(std::string& out, std::span<name_figures const> names) {
  auto const labels = [](name_figures const& each) { return label("name", each.name); };
  describe(out, "tidegate_name_up", "gauge",
           "Whether the last look-up of a name of a server succeeded; the last addresses are used "
           "in any case.");
  for (auto const& each : names) {
    sample(out, "tidegate_name_up", labels(each), each.is_failing ? 0 : 1);
  }
  describe(out, "tidegate_name_addresses", "gauge", "Addresses of a name that are in use.");
  for (auto const& each : names) {
    sample(out, "tidegate_name_addresses", labels(each), static_cast<double>(each.addresses));
  }
  describe(out, "tidegate_name_failures_total", "counter", "Look-ups of a name that failed.");
  for (auto const& each : names) {
    sample(out, "tidegate_name_failures_total", labels(each), static_cast<double>(each.failures));
  }
}

void append_certificates(std::string& out, active_config const& active) {
  describe(out, "tidegate_certificate_expiry_timestamp_seconds", "gauge",
           "Until when the certificate of a listener is good.");
  auto const& listen = active.config.listen;
  for (std::size_t i = 0; i < listen.size(); ++i) {
    if (auto const& tls = active.listener_tls[i]; tls && tls->expires()) {
      sample(out, "tidegate_certificate_expiry_timestamp_seconds",
             label("listener", listen[i].address), seconds_of(*tls->expires()));
    }
  }
}

void append_stores(std::string& out, std::span<store_figures const> stores) {
  auto const labels = [](store_figures const& each) {
    return label("store", each.store) + "," + label("kind", each.kind);
  };
  describe(out, "tidegate_store_up", "gauge",
           "Whether a store works: 0 when it takes no change or gives no answer, to requests "
           "or when it is asked.");
  for (auto const& each : stores) {
    sample(out, "tidegate_store_up", labels(each), each.failing_since ? 0 : 1);
  }
  describe(out, "tidegate_store_failing_since_timestamp_seconds", "gauge",
           "Since when a store fails; 0 while it works.");
  for (auto const& each : stores) {
    sample(out, "tidegate_store_failing_since_timestamp_seconds", labels(each),
           each.failing_since
               ? seconds_of(std::chrono::floor<std::chrono::seconds>(*each.failing_since))
               : 0);
  }
}

void append_scim_ignored(std::string& out, config const& settings,
                         std::map<std::string, scim_ignored::counts> const& by_route) {
  describe(
      out, "tidegate_scim_ignored_total", "counter",
      "Attributes and schema URNs in requests to the SCIM service that no schema has: they were "
      "ignored.");
  for (auto const& route : settings.routes) {
    if (!route.scim) {
      continue;
    }
    auto const found = by_route.find(route.name);
    auto const counts = found == by_route.end() ? scim_ignored::counts() : found->second;
    auto const counted = [&out, name = label("route", route.name)](char const* what,
                                                                   std::uint64_t count) {
      sample(out, "tidegate_scim_ignored_total", name + "," + label("what", what),
             static_cast<double>(count));
    };
    counted("attribute", counts.attributes);
    counted("schema", counts.schemas);
  }
}

}  // namespace tidegate::gateway
