// SPDX-License-Identifier: Apache-2.0
#include "observe/metrics.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace tidegate::gateway {

void latency_counts::count(std::chrono::nanoseconds latency) noexcept {
  auto const microseconds =
      static_cast<std::uint64_t>(std::max<std::int64_t>(latency / std::chrono::microseconds(1), 0));
  std::size_t bound = 0;  // one by one, as most are within the first few
  while (bound < latency_bounds.size() && latency_bounds[bound] < microseconds) {
    ++bound;
  }
  by_bound[bound].add();
  sum.add(microseconds);
}

void route_metrics::count(int status, std::chrono::nanoseconds took) noexcept {
  by_status.add(static_cast<std::size_t>(std::clamp(status, 0, 599)));
  latency.count(took);
}

auto scim_operation_of(std::string_view method, std::string_view path) noexcept -> scim_operation {
  auto const type = path.substr(0, path.find('/', 1));
  if (type == "/ServiceProviderConfig" || type == "/Schemas" || type == "/ResourceTypes") {
    return scim_operation::discovery;
  }
  if (type == "/Bulk") {
    return scim_operation::bulk;
  }
  if (path.ends_with("/.search")) {
    return scim_operation::list;
  }
  if (method == "POST") {
    return scim_operation::create;
  }
  if (method == "PUT") {
    return scim_operation::replace;
  }
  if (method == "PATCH") {
    return scim_operation::patch;
  }
  if (method == "DELETE") {
    return scim_operation::remove;
  }
  return type.size() + 1 < path.size() ? scim_operation::read : scim_operation::list;
}

void policy_sums::add(policy_metrics const& of) noexcept {
  admitted += of.admitted.value();
  refused += of.refused.value();
  shadow_refused += of.shadow_refused.value();
  blocked += of.blocked.value();
  shared += of.shared.value();
}

auto worker_metrics::of_route(std::string const& name) -> route_metrics& {
  std::lock_guard const lock(mutex);
  auto& found = routes[name];
  if (!found) {
    found = std::make_unique<route_metrics>();
  }
  return *found;
}

auto worker_metrics::of_policy(std::string const& name) -> policy_metrics& {
  std::lock_guard const lock(mutex);
  auto& found = policies[name];
  if (!found) {
    found = std::make_unique<policy_metrics>();
  }
  return *found;
}

auto worker_metrics::of_server(std::string const& upstream, std::string const& authority)
    -> server_metrics& {
  std::lock_guard const lock(mutex);
  auto& found = servers[{upstream, authority}];
  if (!found) {
    found = std::make_unique<server_metrics>();
  }
  return *found;
}

namespace {

/// The value of a label, without its quotes.
auto label(std::string_view text) -> std::string {
  std::string out;
  for (auto const c : text) {
    if (c == '\\' || c == '"') {
      out += '\\';
    }
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

void describe(std::string& out, std::string_view name, std::string_view kind,
              std::string_view help) {
  out.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ");
  out.append(name).append(" ").append(kind).append("\n");
}

void line(std::string& out, std::string_view name, std::string const& labels, double value) {
  out.append(name);
  if (!labels.empty()) {
    out.append("{").append(labels).append("}");
  }
  // Nearly all are counts, and every open console has all of them written once a second.
  std::array<char, 40> text{};
  constexpr double counts_max = 1e15;
  auto const count = value >= 0 && value < counts_max ? static_cast<std::uint64_t>(value) : 0;
  if (static_cast<double>(count) == value) {
    auto const end = std::to_chars(text.data(), text.data() + text.size(), count).ptr;
    out.append(" ").append(text.data(), end).append("\n");
  } else {
    std::snprintf(text.data(), text.size(), " %.15g\n", value);
    out.append(text.data());
  }
}

/// `,le="0.005"` for each bound of latency, and for what is above all of them.
auto latency_labels() -> std::array<std::string, latency_bounds.size() + 1> const& {
  static auto const made = [] {
    std::array<std::string, latency_bounds.size() + 1> labels;
    for (std::size_t i = 0; i < latency_bounds.size(); ++i) {
      std::array<char, 32> bound{};
      std::snprintf(bound.data(), bound.size(), ",le=\"%g\"", latency_bounds[i] / 1e6);
      labels[i] = bound.data();
    }
    labels.back() = ",le=\"+Inf\"";
    return labels;
  }();
  return made;
}

struct latency_sums {
  std::array<std::uint64_t, latency_bounds.size() + 1> by_bound{};
  std::uint64_t sum = 0;

  void add(latency_counts const& of) noexcept {
    for (std::size_t i = 0; i < by_bound.size(); ++i) {
      by_bound[i] += of.by_bound[i].value();
    }
    sum += of.sum.value();
  }
};

struct route_sums {
  std::map<std::size_t, std::uint64_t> by_status;
  latency_sums latency;
  std::array<std::uint64_t, keyed_outcomes_count> keyed{};
  bool has_keys = false;
};

constexpr std::array<std::string_view, keyed_outcomes_count> keyed_outcome_names = {
    "first",           "replayed",     "conflict",       "reused",   "unknown",
    "unknown-refused", "expired",      "not-replayable", "missing",  "malformed",
    "too-many-keys",   "store-failed", "bypassed",       "not-sent", "refused"};

void histogram(std::string& out, std::string const& name, std::string const& labels,
               latency_sums const& sums) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < sums.by_bound.size(); ++i) {
    count += sums.by_bound[i];
    line(out, name + "_bucket", labels + latency_labels()[i], static_cast<double>(count));
  }
  line(out, name + "_sum", labels, static_cast<double>(sums.sum) / 1e6);
  line(out, name + "_count", labels, static_cast<double>(count));
}

auto seconds_of(std::chrono::system_clock::time_point time) -> double {
  return std::chrono::duration<double>(
             std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()))
      .count();
}

constexpr std::array<char const*, scim_operations_count> scim_operation_names = {
    "none", "read", "list", "create", "replace", "patch", "delete", "bulk", "discovery"};

void single(std::string& out, char const* name, char const* kind, char const* help, double value) {
  describe(out, name, kind, help);
  line(out, name, "", value);
}

/// How many descriptors are open. Linux 6.2 and later say so at once; else they are counted, which takes a while where
/// there are many, so not every time.
auto open_descriptors() -> std::optional<std::uint64_t> {
  struct stat about {};
  if (::stat("/proc/self/fd", &about) == 0 && about.st_size > 0) {
    return static_cast<std::uint64_t>(about.st_size);
  }
  using clock = std::chrono::steady_clock;
  constexpr auto good_for = std::chrono::seconds(10);
  static std::mutex mutex;
  static std::optional<std::pair<clock::time_point, std::uint64_t>> counted;
  std::lock_guard const lock(mutex);
  if (!counted || clock::now() >= counted->first + good_for) {
    std::error_code fault;
    auto const begin = std::filesystem::directory_iterator("/proc/self/fd", fault);
    if (fault) {
      return std::nullopt;
    }
    // Less the one that looks.
    auto const count = std::distance(begin, std::filesystem::directory_iterator()) - 1;
    counted = {clock::now(), static_cast<std::uint64_t>(count)};
  }
  return counted->second;
}

/// What every program of Prometheus says of its process, by the same names.
void append_process(std::string& out, std::chrono::system_clock::time_point started) {
  single(out, "process_start_time_seconds", "gauge", "When the process was started.",
         seconds_of(started));
  if (auto const count = open_descriptors()) {
    single(out, "process_open_fds", "gauge", "Descriptors that are open.",
           static_cast<double>(*count));
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    single(out, "process_max_fds", "gauge", "Descriptors that may be open.",
           static_cast<double>(limit.rlim_cur));
  }
  std::size_t pages = 0;
  std::size_t resident = 0;
  if (std::ifstream("/proc/self/statm") >> pages >> resident) {
    single(out, "process_resident_memory_bytes", "gauge", "Memory of the process.",
           static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  }
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0) {
    auto const seconds = [](timeval const& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    single(out, "process_cpu_seconds_total", "counter", "CPU time of the process.",
           seconds(used.ru_utime) + seconds(used.ru_stime));
  }
}

}  // namespace

auto name_of(keyed_outcome outcome) noexcept -> std::string_view {
  return keyed_outcome_names[static_cast<std::size_t>(outcome)];
}

void append_prometheus(std::string& out, std::span<std::shared_ptr<worker_metrics> const> workers,
                       process_figures const& process, program_figures const& program) {
  std::map<std::string, route_sums> routes;
  std::map<std::string, policy_sums> policies;
  std::uint64_t accepted = 0;
  std::uint64_t open = 0;
  std::uint64_t refused = 0;
  std::uint64_t untrusted = 0;
  std::uint64_t without_header = 0;
  std::uint64_t shed = 0;
  auto out_of_memory = program.out_of_memory;
  std::uint64_t accept_failures = 0;
  std::uint64_t malformed = 0;
  std::uint64_t dropped = 0;
  std::uint64_t store_failures = 0;
  std::uint64_t quotas_asked = 0;
  std::uint64_t quotas_here = 0;
  std::uint64_t quotas_without = 0;
  std::uint64_t quota_round_trips = 0;
  auto log_lines_lost = process.log_lines_lost;
  for (auto const& worker : workers) {
    accepted += worker->connections_accepted.value();
    open += worker->connections_open.value();
    refused += worker->connections_refused.value();
    untrusted += worker->connections_untrusted.value();
    without_header += worker->connections_without_header.value();
    shed += worker->connections_shed.value();
    out_of_memory += worker->out_of_memory.value();
    accept_failures += worker->accept_failures.value();
    malformed += worker->requests_malformed.value();
    dropped += worker->origin_fields_dropped.value();
    log_lines_lost += worker->log_lines_dropped.value();
    store_failures += worker->idempotency_store_failures.value();
    quotas_asked += worker->quota_store_asked.value();
    quotas_here += worker->quota_store_here.value();
    quotas_without += worker->quota_store_failures.value();
    quota_round_trips += worker->quota_store_round_trips.value();
    std::lock_guard const lock(worker->mutex);
    for (auto const& [name, route] : worker->routes) {
      auto& sum = routes[name];
      route->by_status.for_each(
          [&](std::size_t status, std::uint64_t count) { sum.by_status[status] += count; });
      sum.latency.add(route->latency);
      for (std::size_t i = 0; i < sum.keyed.size(); ++i) {
        sum.keyed[i] += route->keyed[i].value();
      }
      sum.has_keys = sum.has_keys || route->has_keys.load(std::memory_order_relaxed);
    }
    for (auto const& [name, policy] : worker->policies) {
      policies[name].add(*policy);
    }
  }
  describe(out, "tidegate_requests_total", "counter", "Requests that were answered.");
  for (auto const& [name, sum] : routes) {
    for (auto const& [status, count] : sum.by_status) {
      line(out, "tidegate_requests_total",
           "route=\"" + label(name) + "\",status=\"" + std::to_string(status) + "\"",
           static_cast<double>(count));
    }
  }
  describe(out, "tidegate_request_duration_seconds", "histogram",
           "From the head of a request to the end of its response.");
  for (auto const& [name, sum] : routes) {
    histogram(out, "tidegate_request_duration_seconds", "route=\"" + label(name) + "\"",
              sum.latency);
  }
  describe(out, "tidegate_idempotency_total", "counter",
           "What became of requests with an Idempotency-Key.");
  for (auto const& [name, sum] : routes) {
    // From 0 on, since the first one of them is to be seen as an increase.
    for (std::size_t i = 0; i < sum.keyed.size() && sum.has_keys; ++i) {
      line(out, "tidegate_idempotency_total",
           "route=\"" + label(name) + "\",outcome=\"" + std::string(keyed_outcome_names[i]) + "\"",
           static_cast<double>(sum.keyed[i]));
    }
  }
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
  describe(out, "tidegate_decisions_total", "counter", "What policies said to requests.");
  for (auto const& [name, sum] : policies) {
    auto const decided = [&out, policy = label(name)](char const* decision, std::uint64_t count) {
      line(out, "tidegate_decisions_total",
           "policy=\"" + policy + "\",decision=\"" + decision + "\"", static_cast<double>(count));
    };
    decided("admitted", sum.admitted);
    decided("refused", sum.refused);
    decided("shadow-refused", sum.shadow_refused);
    decided("blocked", sum.blocked);
  }
  describe(out, "tidegate_decisions_shared_total", "counter",
           "Decisions on partitions that found no room in the quota table and share a quota.");
  for (auto const& [name, sum] : policies) {
    line(out, "tidegate_decisions_shared_total", "policy=\"" + label(name) + "\"",
         static_cast<double>(sum.shared));
  }
  single(out, "tidegate_connections_accepted_total", "counter", "Connections of clients.",
         static_cast<double>(accepted));
  single(out, "tidegate_connections_open", "gauge", "Connections of clients that are open.",
         static_cast<double>(open));
  describe(out, "tidegate_connections_refused_total", "counter",
           "Connections that were closed before a request was read.");
  auto const refused_for = [&](char const* reason, std::uint64_t count) {
    line(out, "tidegate_connections_refused_total", std::string("reason=\"") + reason + "\"",
         static_cast<double>(count));
  };
  refused_for("max-connections", refused);
  refused_for("untrusted-proxy", untrusted);
  refused_for("proxy-header", without_header);
  single(out, "tidegate_connections_shed_total", "counter",
         "Connections that were closed because more than http.max-buffered waited for clients.",
         static_cast<double>(shed));
  single(out, "tidegate_out_of_memory_total", "counter",
         "Times that there was no memory for a request, whose connection was closed.",
         static_cast<double>(out_of_memory));
  single(out, "tidegate_buffered_bytes", "gauge",
         "Octets in memory that wait for slow clients: of responses and of requests.",
         static_cast<double>(std::max<std::int64_t>(process.buffered_octets, 0)));
  single(out, "tidegate_accept_failures_total", "counter",
         "Times that the system had no descriptor or memory for a new connection.",
         static_cast<double>(accept_failures));
  single(out, "tidegate_requests_malformed_total", "counter", "Requests that HTTP does not allow.",
         static_cast<double>(malformed));
  single(out, "tidegate_upstream_fields_dropped_total", "counter",
         "Malformed RateLimit fields of upstreams that were left out.",
         static_cast<double>(dropped));
  single(out, "tidegate_access_log_dropped_total", "counter",
         "Lines of the access log that were lost: the file did not take them in time, or at all.",
         static_cast<double>(log_lines_lost));
  single(out, "tidegate_idempotency_waiting", "gauge",
         "Requests that wait for the answer to another one with the same key.",
         static_cast<double>(process.keys_waited_for));
  single(out, "tidegate_idempotency_store_failures_total", "counter",
         "Times that the store of idempotency keys gave no answer or took no change.",
         static_cast<double>(store_failures));
  describe(
      out, "tidegate_quota_store_decisions_total", "counter",
      "Requests whose quotas are shared, by who decided: the store, this gateway by what it was "
      "given or told, or this gateway since the store did not answer.");
  auto const decided_by = [&](char const* who, std::uint64_t count) {
    line(out, "tidegate_quota_store_decisions_total", std::string("by=\"") + who + "\"",
         static_cast<double>(count));
  };
  decided_by("store", quotas_asked);
  decided_by("gateway", quotas_here);
  decided_by("failure", quotas_without);
  single(out, "tidegate_quota_store_round_trips_total", "counter",
         "Writes to the store of quotas; one may hold many questions.",
         static_cast<double>(quota_round_trips));
  single(out, "tidegate_quota_buckets", "gauge", "Buckets and states in the quota table.",
         static_cast<double>(process.quota_buckets));
  single(out, "tidegate_quota_table_bytes", "gauge", "Memory of the quota table.",
         static_cast<double>(process.quota_octets));
  describe(out, "tidegate_scim_requests_total", "counter",
           "Requests to the SCIM service, by what was asked of it.");
  for (std::size_t i = 1; i < scim_operations_count; ++i) {
    std::map<std::size_t, std::uint64_t> by_status;
    for (auto const& worker : workers) {
      worker->scim[i].for_each(
          [&](std::size_t status, std::uint64_t count) { by_status[status] += count; });
    }
    for (auto const& [status, count] : by_status) {
      line(out, "tidegate_scim_requests_total",
           std::string("operation=\"") + scim_operation_names[i] + "\",status=\"" +
               std::to_string(status) + "\"",
           static_cast<double>(count));
    }
  }
  single(out, "tidegate_config_last_reload_successful", "gauge",
         "Whether the last reload was taken over; 1 before the first.",
         program.last_reload_is_good ? 1 : 0);
  single(out, "tidegate_config_last_reload_success_timestamp_seconds", "gauge",
         "When a configuration was taken over last; the start counts.",
         seconds_of(program.last_good_reload));
  single(out, "tidegate_config_reload_failures_total", "counter", "Reloads that were refused.",
         static_cast<double>(program.reload_failures));
  single(out, "tidegate_log_dropped_total", "counter",
         "Lines for standard error that were lost, since it was not read.",
         static_cast<double>(process.event_lines_dropped));
  describe(out, "tidegate_build_info", "gauge",
           "1, with the version and the commit of the program.");
  line(out, "tidegate_build_info",
       "version=\"" + label(program.version) + "\",commit=\"" + label(std::string(program.commit)) +
           "\"",
       1);
  append_process(out, program.started);
}

void append_upstreams(std::string& out, active_config const& active,
                      std::span<std::shared_ptr<worker_metrics> const> workers,
                      upstream_reports& reports, instant now) {
  struct server_sums {
    std::string labels;
    std::uint64_t in_flight = 0;
    std::uint64_t failures = 0;
    std::uint64_t failures_in_a_row = 0;
    std::size_t out = 0;  // for so many threads
  };
  std::vector<server_sums> all;
  std::map<std::string, latency_sums> latencies;
  for (auto const& upstream : active.upstreams) {
    auto const& name = upstream.settings->name;
    auto& latency = latencies[name];
    for (auto const& server : upstream.servers) {
      auto& sum = all.emplace_back();
      sum.labels = "upstream=\"" + label(name) + "\",server=\"" + label(server.authority) + "\"";
      for (auto const& worker : workers) {
        std::lock_guard const lock(worker->mutex);
        auto const found = worker->servers.find({name, server.authority});
        if (found != worker->servers.end()) {
          auto const& counts = *found->second;
          sum.in_flight += counts.in_flight.value();
          sum.failures += counts.failures.value();
          sum.failures_in_a_row = std::max(sum.failures_in_a_row, counts.failures_in_a_row.value());
          sum.out += counts.out_until.load(std::memory_order_relaxed) > now ? 1U : 0U;
          latency.add(counts.latency);
        }
      }
      // The only one is used whatever it does: nothing takes it out.
      if (upstream.servers.size() == 1 && reports.of(name, server.authority).is_down()) {
        sum.out = std::max<std::size_t>(workers.size(), 1);
      }
    }
  }
  auto const each = [&](char const* metric, char const* kind, char const* help, auto value) {
    describe(out, metric, kind, help);
    for (auto const& sum : all) {
      line(out, metric, sum.labels, value(sum));
    }
  };
  each("tidegate_upstream_up", "gauge",
       "The share of threads that send to a server: 1 is all of them, 0 that it is taken out, or "
       "that it is the only one and has not answered since three failures in a row.",
       [&](server_sums const& sum) {
         auto const threads = static_cast<double>(std::max<std::size_t>(workers.size(), 1));
         return (threads - static_cast<double>(sum.out)) / threads;
       });
  each("tidegate_upstream_in_flight", "gauge", "Requests that a server has not answered yet.",
       [](server_sums const& sum) { return static_cast<double>(sum.in_flight); });
  each("tidegate_upstream_failures_total", "counter",
       "Times that a server could not be reached, or gave no whole answer.",
       [](server_sums const& sum) { return static_cast<double>(sum.failures); });
  each("tidegate_upstream_failures_in_a_row", "gauge",
       "Failures since the last answer of a server, of the thread that had most.",
       [](server_sums const& sum) { return static_cast<double>(sum.failures_in_a_row); });
  describe(out, "tidegate_upstream_duration_seconds", "histogram",
           "From sending a request to an upstream, with connecting where that was needed, to the "
           "head of its response.");
  for (auto const& [name, sums] : latencies) {
    histogram(out, "tidegate_upstream_duration_seconds", "upstream=\"" + label(name) + "\"", sums);
  }
}

void append_certificates(std::string& out, active_config const& active) {
  describe(out, "tidegate_certificate_expiry_timestamp_seconds", "gauge",
           "Until when the certificate of a listener is good.");
  auto const& listen = active.config.listen;
  for (std::size_t i = 0; i < listen.size(); ++i) {
    if (auto const& tls = active.listener_tls[i]; tls && tls->expires()) {
      line(out, "tidegate_certificate_expiry_timestamp_seconds",
           "listener=\"" + label(listen[i].address) + "\"", seconds_of(*tls->expires()));
    }
  }
}

void append_stores(std::string& out, std::span<store_figures const> stores) {
  auto const labels = [](store_figures const& each) {
    return "store=\"" + std::string(each.store) + "\",kind=\"" + std::string(each.kind) + "\"";
  };
  describe(out, "tidegate_store_up", "gauge",
           "Whether a store works: 0 when it takes no change or gives no answer, to requests "
           "or when it is asked.");
  for (auto const& each : stores) {
    line(out, "tidegate_store_up", labels(each), each.failing_since ? 0 : 1);
  }
  describe(out, "tidegate_store_failing_since_timestamp_seconds", "gauge",
           "Since when a store fails; 0 while it works.");
  for (auto const& each : stores) {
    line(out, "tidegate_store_failing_since_timestamp_seconds", labels(each),
         each.failing_since
             ? std::chrono::duration<double>(
                   std::chrono::floor<std::chrono::seconds>(each.failing_since->time_since_epoch()))
                   .count()
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
    auto const counted = [&out, name = label(route.name)](char const* what, std::uint64_t count) {
      line(out, "tidegate_scim_ignored_total", "route=\"" + name + "\",what=\"" + what + "\"",
           static_cast<double>(count));
    };
    counted("attribute", counts.attributes);
    counted("schema", counts.schemas);
  }
}

}  // namespace tidegate::gateway
