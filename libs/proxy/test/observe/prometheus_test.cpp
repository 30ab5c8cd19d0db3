// SPDX-License-Identifier: Apache-2.0
#include "observe/prometheus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

class proxy_prometheus : public testing::Test {
 protected:
  [[nodiscard]] auto text() const -> std::string {
    std::string out;
    append_prometheus(out, workers_, process_, program_);
    return out;
  }
  /// The configuration of a gateway with two servers behind it.
  [[nodiscard]] auto with_upstream(std::string const& servers) -> active_config const& {
    auto read = parse_config("listen: 127.0.0.1:0\nupstreams: {api: {servers: [" + servers +
                                 "]}}\nroutes: [{match: {path: /**}, upstream: api}]\n",
                             "t.yaml");
    EXPECT_TRUE(read);
    policy_ids ids;
    upstream_states loads;
    auto made = active_config::make(*std::move(read), ids, loads);
    EXPECT_TRUE(made);
    active_ = *std::move(made);
    return *active_;
  }
  [[nodiscard]] auto upstreams_text(instant now = instant(1h)) -> std::string {
    std::string out;
    append_upstreams(out, *active_, workers_, reports_, now);
    return out;
  }

  std::vector<std::shared_ptr<worker_metrics>> workers_{std::make_shared<worker_metrics>(),
                                                        std::make_shared<worker_metrics>()};
  process_figures process_;
  program_figures program_{.version = "1.2.3", .commit = "abc"};
  event_log log_;
  upstream_reports reports_{log_};
  std::shared_ptr<active_config const> active_;
};

TEST_F(proxy_prometheus, has_every_fixed_series_from_zero_on) {
  for (auto const* const series : {
           "tidegate_connections_accepted_total 0\n",
           "tidegate_connections_open 0\n",
           "tidegate_connections_refused_total{reason=\"max-connections\"} 0\n",
           "tidegate_connections_refused_total{reason=\"untrusted-proxy\"} 0\n",
           "tidegate_connections_refused_total{reason=\"proxy-header\"} 0\n",
           "tidegate_connections_shed_total 0\n",
           "tidegate_tunnels_open 0\n",
           "tidegate_tunnel_bytes_total{direction=\"to-upstream\"} 0\n",
           "tidegate_tunnel_bytes_total{direction=\"to-client\"} 0\n",
           "tidegate_out_of_memory_total 0\n",
           "tidegate_buffered_bytes 0\n",
           "tidegate_accept_failures_total 0\n",
           "tidegate_requests_malformed_total 0\n",
           "tidegate_upstream_fields_dropped_total 0\n",
           "tidegate_access_log_dropped_total 0\n",
           "tidegate_idempotency_waiting 0\n",
           "tidegate_idempotency_store_failures_total 0\n",
           "tidegate_quota_store_decisions_total{by=\"store\"} 0\n",
           "tidegate_quota_store_decisions_total{by=\"gateway\"} 0\n",
           "tidegate_quota_store_decisions_total{by=\"failure\"} 0\n",
           "tidegate_quota_store_round_trips_total 0\n",
           "tidegate_quota_buckets 0\n",
           "tidegate_quota_table_bytes 0\n",
           "tidegate_config_last_reload_successful 1\n",
           "tidegate_config_last_reload_success_timestamp_seconds 0\n",
           "tidegate_config_reload_failures_total 0\n",
           "tidegate_log_dropped_total 0\n",
           "tidegate_build_info{version=\"1.2.3\",commit=\"abc\"} 1\n",
       }) {
    EXPECT_THAT(text(), HasSubstr("\n" + std::string(series)));
  }
}

TEST_F(proxy_prometheus, adds_up_what_the_threads_count) {
  struct row {
    counter worker_counters::*count;
    std::string_view series;
  };
  for (auto const& each : {
           row{&worker_counters::connections_accepted, "connections_accepted_total"},
           row{&worker_counters::connections_open, "connections_open"},
           row{&worker_counters::connections_refused,
               "connections_refused_total{reason=\"max-connections\"}"},
           row{&worker_counters::connections_untrusted,
               "connections_refused_total{reason=\"untrusted-proxy\"}"},
           row{&worker_counters::connections_without_header,
               "connections_refused_total{reason=\"proxy-header\"}"},
           row{&worker_counters::connections_shed, "connections_shed_total"},
           row{&worker_counters::tunnels_open, "tunnels_open"},
           row{&worker_counters::tunnel_octets_to_upstream,
               "tunnel_bytes_total{direction=\"to-upstream\"}"},
           row{&worker_counters::tunnel_octets_to_client,
               "tunnel_bytes_total{direction=\"to-client\"}"},
           row{&worker_counters::out_of_memory, "out_of_memory_total"},
           row{&worker_counters::accept_failures, "accept_failures_total"},
           row{&worker_counters::requests_malformed, "requests_malformed_total"},
           row{&worker_counters::origin_fields_dropped, "upstream_fields_dropped_total"},
           row{&worker_counters::log_lines_dropped, "access_log_dropped_total"},
           row{&worker_counters::idempotency_store_failures, "idempotency_store_failures_total"},
           row{&worker_counters::quota_store_asked, "quota_store_decisions_total{by=\"store\"}"},
           row{&worker_counters::quota_store_here, "quota_store_decisions_total{by=\"gateway\"}"},
           row{&worker_counters::quota_store_failures,
               "quota_store_decisions_total{by=\"failure\"}"},
           row{&worker_counters::quota_store_round_trips, "quota_store_round_trips_total"},
       }) {
    ((*workers_[0]).*each.count).add(2);
    ((*workers_[1]).*each.count).add(3);
    auto const line = "\ntidegate_" + std::string(each.series) + " 5\n";
    EXPECT_THAT(text(), HasSubstr(line));
    ((*workers_[0]).*each.count).subtract(2);
    ((*workers_[1]).*each.count).subtract(3);
    EXPECT_THAT(text(), Not(HasSubstr(line))) << "another series has the same counter";
  }
}

TEST_F(proxy_prometheus, adds_what_is_counted_elsewhere) {
  workers_[0]->out_of_memory.add();
  workers_[0]->log_lines_dropped.add(2);
  program_.out_of_memory = 10;
  process_ = {.quota_buckets = 4,
              .quota_octets = 4096,
              .buffered_octets = 77,
              .log_lines_lost = 40,
              .keys_waited_for = 3,
              .event_lines_dropped = 6};
  for (auto const* const series :
       {"tidegate_out_of_memory_total 11\n", "tidegate_access_log_dropped_total 42\n",
        "tidegate_quota_buckets 4\n", "tidegate_quota_table_bytes 4096\n",
        "tidegate_buffered_bytes 77\n", "tidegate_idempotency_waiting 3\n",
        "tidegate_log_dropped_total 6\n"}) {
    EXPECT_THAT(text(), HasSubstr(series));
  }
}

TEST_F(proxy_prometheus, shows_no_octets_below_zero) {
  process_.buffered_octets = -1;  // threads count one after the other
  EXPECT_THAT(text(), HasSubstr("tidegate_buffered_bytes 0\n"));
}

TEST_F(proxy_prometheus, says_how_reloads_went) {
  program_.last_reload_is_good = false;
  program_.last_good_reload = std::chrono::system_clock::time_point(1700000000250ms);
  program_.reload_failures = 2;
  EXPECT_THAT(text(), HasSubstr("tidegate_config_last_reload_successful 0\n"));
  EXPECT_THAT(text(), HasSubstr("tidegate_config_last_reload_success_timestamp_seconds "
                                "1700000000.25\n"));
  EXPECT_THAT(text(), HasSubstr("tidegate_config_reload_failures_total 2\n"));
}

TEST_F(proxy_prometheus, counts_requests_by_route_and_status) {
  workers_[0]->of_route("a").count(200, 1ms);
  workers_[1]->of_route("a").count(200, 1ms);
  workers_[1]->of_route("a").count(429, 1ms);
  workers_[1]->of_route("say \"b\"").count(200, 1ms);
  EXPECT_THAT(text(), HasSubstr("tidegate_requests_total{route=\"a\",status=\"200\"} 2\n"
                                "tidegate_requests_total{route=\"a\",status=\"429\"} 1\n"
                                "tidegate_requests_total{route=\"say \\\"b\\\"\",status=\"200\"} "
                                "1\n"));
  EXPECT_THAT(text(), HasSubstr("tidegate_request_duration_seconds_count{route=\"a\"} 3\n"));
}

TEST_F(proxy_prometheus, has_every_outcome_of_keys_from_zero_on_where_a_route_has_them) {
  auto& plain = workers_[0]->of_route("plain");
  auto& keyed = workers_[0]->of_route("keyed");
  keyed.has_keys = true;
  keyed.of(keyed_outcome::replayed).add(3);
  plain.of(keyed_outcome::replayed).add(3);
  for (auto const* const outcome :
       {"first", "conflict", "reused", "unknown", "unknown-refused", "expired", "not-replayable",
        "missing", "malformed", "too-many-keys", "store-failed", "bypassed", "not-sent",
        "refused"}) {
    EXPECT_THAT(text(), HasSubstr("tidegate_idempotency_total{route=\"keyed\",outcome=\"" +
                                  std::string(outcome) + "\"} 0\n"));
  }
  EXPECT_THAT(text(), HasSubstr("{route=\"keyed\",outcome=\"replayed\"} 3\n"));
  EXPECT_THAT(text(), Not(HasSubstr("{route=\"plain\",outcome=")));
}

TEST_F(proxy_prometheus, says_of_the_store_of_keys_only_what_is_known) {
  EXPECT_THAT(text(), Not(HasSubstr("tidegate_idempotency_unresolved")));
  EXPECT_THAT(text(), Not(HasSubstr("tidegate_idempotency_store_bytes")));
  EXPECT_THAT(text(), Not(HasSubstr("tidegate_idempotency_store_full")));
  process_.keys_unresolved = 0;
  process_.keys_octets = 10;
  process_.keys_octets_max = 100;
  process_.keys_full = false;
  EXPECT_THAT(text(), HasSubstr("\ntidegate_idempotency_unresolved 0\n"));
  EXPECT_THAT(text(), HasSubstr("\ntidegate_idempotency_store_bytes 10\n"));
  EXPECT_THAT(text(), HasSubstr("\ntidegate_idempotency_store_bytes_max 100\n"));
  EXPECT_THAT(text(), HasSubstr("\ntidegate_idempotency_store_full 0\n"));
  process_.keys_full = true;
  EXPECT_THAT(text(), HasSubstr("\ntidegate_idempotency_store_full 1\n"));
}

TEST_F(proxy_prometheus, counts_decisions_by_policy) {
  auto& first = workers_[0]->of_policy("p");
  auto& second = workers_[1]->of_policy("p");
  first.admitted.add(5);
  second.admitted.add(1);
  first.refused.add(4);
  second.shadow_refused.add(3);
  second.blocked.add(2);
  second.shared.add(7);
  EXPECT_THAT(text(), HasSubstr("tidegate_decisions_total{policy=\"p\",decision=\"admitted\"} 6\n"
                                "tidegate_decisions_total{policy=\"p\",decision=\"refused\"} 4\n"
                                "tidegate_decisions_total{policy=\"p\",decision=\"shadow-refused\""
                                "} 3\n"
                                "tidegate_decisions_total{policy=\"p\",decision=\"blocked\"} 2\n"));
  EXPECT_THAT(text(), HasSubstr("tidegate_decisions_shared_total{policy=\"p\"} 7\n"));
}

TEST_F(proxy_prometheus, counts_scim_requests_by_operation) {
  workers_[0]->scim[static_cast<std::size_t>(scim_operation::create)].add(201);
  workers_[1]->scim[static_cast<std::size_t>(scim_operation::create)].add(201);
  workers_[1]->scim[static_cast<std::size_t>(scim_operation::remove)].add(404);
  workers_[1]->scim[static_cast<std::size_t>(scim_operation::none)].add(200);
  EXPECT_THAT(text(),
              HasSubstr("tidegate_scim_requests_total{operation=\"create\",status=\"201\"} 2\n"));
  EXPECT_THAT(text(),
              HasSubstr("tidegate_scim_requests_total{operation=\"delete\",status=\"404\"} 1\n"));
  EXPECT_THAT(text(), Not(HasSubstr("operation=\"none\"")));
}

TEST_F(proxy_prometheus, describes_each_metric_once_and_before_its_samples) {
  workers_[0]->of_route("a").count(200, 1ms);
  workers_[0]->of_policy("p").admitted.add();
  process_.keys_unresolved = 1;
  process_.keys_octets_max = 1;
  process_.keys_full = true;
  std::set<std::string> described;
  std::string line;
  for (std::istringstream lines(text()); std::getline(lines, line);) {
    ASSERT_FALSE(line.empty());
    if (line.starts_with("# HELP ")) {
      auto const name = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(described.insert(name).second) << name;
    } else if (!line.starts_with("# TYPE ")) {
      auto name = line.substr(0, line.find_first_of("{ "));
      for (std::string_view const end : {"_bucket", "_sum", "_count"}) {
        if (name.ends_with(end) && !described.contains(name)) {
          name.resize(name.size() - end.size());
        }
      }
      EXPECT_TRUE(described.contains(name)) << line;
    }
  }
}

TEST_F(proxy_prometheus, says_what_every_process_says) {
  program_.started = std::chrono::system_clock::time_point(5s);
  EXPECT_THAT(text(), HasSubstr("\nprocess_start_time_seconds 5\n"));
  for (auto const* const name :
       {"process_open_fds ", "process_max_fds ", "process_virtual_memory_bytes ",
        "process_resident_memory_bytes ", "process_cpu_seconds_total "}) {
    EXPECT_THAT(text(), HasSubstr("\n" + std::string(name)));
  }
}

TEST_F(proxy_prometheus, has_every_server_of_an_upstream_from_zero_on) {
  (void)with_upstream("\"http://127.0.0.1:3000\", \"http://127.0.0.1:3001\"");
  auto const out = upstreams_text();
  for (auto const* const server : {"http://127.0.0.1:3000", "http://127.0.0.1:3001"}) {
    auto const labels = "{upstream=\"api\",server=\"" + std::string(server) + "\"}";
    EXPECT_THAT(out, HasSubstr("tidegate_upstream_up" + labels + " 1\n"));
    EXPECT_THAT(out, HasSubstr("tidegate_upstream_in_flight" + labels + " 0\n"));
    EXPECT_THAT(out, HasSubstr("tidegate_upstream_failures_total" + labels + " 0\n"));
    EXPECT_THAT(out, HasSubstr("tidegate_upstream_down_since_timestamp_seconds" + labels + " 0\n"));
    EXPECT_THAT(out, HasSubstr("tidegate_upstream_failures_in_a_row" + labels + " 0\n"));
  }
  EXPECT_THAT(out, HasSubstr("tidegate_upstream_duration_seconds_count{upstream=\"api\"} 0\n"));
}

TEST_F(proxy_prometheus, says_that_a_server_is_ejected_and_what_it_answered) {
  auto const& active = with_upstream("\"http://127.0.0.1:3000\", \"http://127.0.0.1:3001\"");
  auto& servers = *active.upstreams.front().servers;
  auto& server = *servers.list()->front().server;
  std::string const label = "http://127.0.0.1:3000";
  for (int i = 0; i < 5; ++i) {
    (void)servers.failed(server, instant(1h));
  }
  workers_[0]->of_server("api", label)->failures.add(4);
  workers_[0]->of_server("api", label)->by_status.add(200);
  workers_[1]->of_server("api", label)->by_status.add(200);
  workers_[1]->of_server("api", label)->by_status.add(503);
  auto const out = upstreams_text();
  std::string const labels = "{upstream=\"api\",server=\"" + label + "\"";
  EXPECT_THAT(out, HasSubstr("tidegate_upstream_up" + labels + "} 0\n"));
  EXPECT_THAT(out, HasSubstr("tidegate_upstream_failures_total" + labels + "} 4\n"));
  EXPECT_THAT(out, HasSubstr("tidegate_upstream_failures_in_a_row" + labels + "} 5\n"));
  EXPECT_THAT(out, HasSubstr("tidegate_upstream_requests_total" + labels + ",status=\"200\"} 2\n"));
  EXPECT_THAT(out, HasSubstr("tidegate_upstream_requests_total" + labels + ",status=\"503\"} 1\n"));
  EXPECT_THAT(upstreams_text(instant(1h + 10s)),
              HasSubstr("tidegate_upstream_up" + labels + "} 1\n"))
      << "the time is over";
}

TEST_F(proxy_prometheus, says_that_the_only_server_is_down_though_it_is_used) {
  auto const& active = with_upstream("\"http://127.0.0.1:3000\"");
  auto& servers = *active.upstreams.front().servers;
  auto& server = *servers.list()->front().server;
  for (int i = 0; i < 5; ++i) {
    (void)servers.failed(server, instant(1h));
  }
  std::string const up = "tidegate_upstream_up{upstream=\"api\",server=\"http://127.0.0.1:3000\"} ";
  auto const report = reports_.of("api", "http://127.0.0.1:3000");
  report->failed("refused", {5, true, std::nullopt}, instant(1h));
  EXPECT_THAT(upstreams_text(), HasSubstr(up + "0\n"));
  EXPECT_THAT(
      upstreams_text(),
      Not(HasSubstr("tidegate_upstream_down_since_timestamp_seconds{upstream=\"api\",server="
                    "\"http://127.0.0.1:3000\"} 0\n")));
  servers.answered(server);
  EXPECT_THAT(upstreams_text(), HasSubstr(up + "1\n"));
}

TEST_F(proxy_prometheus, says_how_names_are_looked_up) {
  std::string out;
  append_names(out, {});
  EXPECT_THAT(out, Not(HasSubstr("name="))) << "described also where there are none";
  out.clear();
  std::vector<name_figures> const names{{"a.example", 2, 3, true}, {"b.example", 1, 0, false}};
  append_names(out, names);
  EXPECT_THAT(out, HasSubstr("tidegate_name_up{name=\"a.example\"} 0\n"));
  EXPECT_THAT(out, HasSubstr("tidegate_name_up{name=\"b.example\"} 1\n"));
  EXPECT_THAT(out, HasSubstr("tidegate_name_addresses{name=\"a.example\"} 2\n"));
  EXPECT_THAT(out, HasSubstr("tidegate_name_failures_total{name=\"a.example\"} 3\n"));
}

TEST_F(proxy_prometheus, says_how_stores_are) {
  std::vector<store_figures> const stores{
      {.store = "quota", .kind = "memory"},
      {.store = "directory",
       .kind = "sqlite",
       .failing_since = std::chrono::system_clock::time_point(1700000000900ms)}};
  std::string out;
  append_stores(out, stores);
  EXPECT_THAT(out, HasSubstr("tidegate_store_up{store=\"quota\",kind=\"memory\"} 1\n"
                             "tidegate_store_up{store=\"directory\",kind=\"sqlite\"} 0\n"));
  EXPECT_THAT(out, HasSubstr("{store=\"quota\",kind=\"memory\"} 0\n"));
  EXPECT_THAT(out, HasSubstr("{store=\"directory\",kind=\"sqlite\"} 1700000000\n"));
}

TEST_F(proxy_prometheus, describes_certificates_also_where_there_are_none) {
  std::string out;
  append_certificates(out, with_upstream("\"http://127.0.0.1:3000\""));
  EXPECT_EQ(out,
            "# HELP tidegate_certificate_expiry_timestamp_seconds Until when the certificate of a "
            "listener is good.\n# TYPE tidegate_certificate_expiry_timestamp_seconds gauge\n");
}

TEST_F(proxy_prometheus, counts_ignored_names_for_routes_of_scim_only) {
  auto const read = parse_config(
      "listen: 127.0.0.1:0\nroutes: [{name: users, match: {path: /scim/**}, service: scim},\n"
      "  {name: all, match: {path: /**}, service: echo}]\n",
      "t.yaml");
  ASSERT_TRUE(read);
  std::string out;
  append_scim_ignored(out, *read, {});
  EXPECT_THAT(out, HasSubstr("tidegate_scim_ignored_total{route=\"users\",what=\"attribute\"} 0\n"
                             "tidegate_scim_ignored_total{route=\"users\",what=\"schema\"} 0\n"));
  EXPECT_THAT(out, Not(HasSubstr("route=\"all\"")));
  out.clear();
  append_scim_ignored(out, *read, {{"users", {.attributes = 2, .schemas = 1}}});
  EXPECT_THAT(out, HasSubstr("{route=\"users\",what=\"attribute\"} 2\n"));
  EXPECT_THAT(out, HasSubstr("{route=\"users\",what=\"schema\"} 1\n"));
}

}  // namespace
}  // namespace tidegate::gateway
