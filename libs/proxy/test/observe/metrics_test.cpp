// SPDX-License-Identifier: Apache-2.0
#include "observe/metrics.hpp"

#include <tidegate/proxy/control.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;

TEST(proxy_metrics, count_up_and_down) {
  counter count;
  count.add();
  count.add(5);
  count.subtract(2);
  EXPECT_EQ(count.value(), 4U);
}

TEST(proxy_metrics, list_only_the_statuses_that_were_seen) {
  status_counts counts;
  for (auto const status : {0, 63, 64, 200, 200, 200, 404, 599}) {
    counts.add(static_cast<std::size_t>(status));
  }
  std::map<std::size_t, std::uint64_t> seen;
  counts.for_each([&](std::size_t status, std::uint64_t count) { seen[status] = count; });
  EXPECT_EQ(seen, (std::map<std::size_t, std::uint64_t>{
                      {0, 1}, {63, 1}, {64, 1}, {200, 3}, {404, 1}, {599, 1}}));
}

TEST(proxy_metrics, keep_a_status_within_its_bounds) {
  route_metrics counts;
  counts.count(-1, 0ns);
  counts.count(1000, 0ns);
  std::set<std::size_t> seen;
  counts.by_status.for_each([&](std::size_t status, std::uint64_t) { seen.insert(status); });
  EXPECT_EQ(seen, (std::set<std::size_t>{0, 599}));
}

TEST(proxy_metrics, sort_latencies_into_bounds) {
  struct row {
    std::string_view name;
    std::chrono::nanoseconds latency;
    std::size_t bound;
    std::uint64_t microseconds;
  };
  for (auto const& each : {
           row{"none", 0ns, 0, 0},
           row{"a clock that stepped back", -1ms, 0, 0},
           row{"less than a microsecond", 999ns, 0, 0},
           row{"a bound", 100us, 0, 100},
           row{"just above it", 101us, 1, 101},
           row{"a second", 1s, 12, 1'000'000},
           row{"the last bound", 5s, 13, 5'000'000},
           row{"above all", 6s, 14, 6'000'000},
       }) {
    latency_counts counts;
    counts.count(each.latency);
    EXPECT_EQ(counts.by_bound[each.bound].value(), 1U) << each.name;
    EXPECT_EQ(counts.sum.value(), each.microseconds) << each.name;
  }
}

TEST(proxy_metrics, find_the_same_counts_by_the_same_name) {
  worker_metrics metrics;
  auto& route = metrics.of_route("a");
  EXPECT_EQ(&metrics.of_route("a"), &route);
  EXPECT_NE(&metrics.of_route("b"), &route);
  auto& policy = metrics.of_policy("p");
  EXPECT_EQ(&metrics.of_policy("p"), &policy);
  auto const server = metrics.of_server("api", "127.0.0.1:1");
  EXPECT_EQ(metrics.of_server("api", "127.0.0.1:1"), server);
  EXPECT_NE(metrics.of_server("api", "127.0.0.1:2"), server);
  EXPECT_NE(metrics.of_server("other", "127.0.0.1:1"), server);
}

TEST(proxy_metrics, forget_a_server_that_is_in_use_no_more) {
  worker_metrics metrics;
  auto server = metrics.of_server("api", "a");
  server->failures.add(1);
  metrics.forget_server("api", "a");
  EXPECT_EQ(metrics.of_server("api", "a"), server) << "it is in use";
  server.reset();
  metrics.forget_server("api", "a");
  EXPECT_EQ(metrics.of_server("api", "a")->failures.value(), 0U);
}

TEST(proxy_metrics, add_up_what_policies_said) {
  policy_metrics counted;
  counted.admitted.add(1);
  counted.refused.add(2);
  counted.shadow_refused.add(3);
  counted.blocked.add(4);
  counted.shared.add(5);
  policy_sums sums;
  sums.add(counted);
  sums.add(counted);
  EXPECT_EQ(sums.admitted, 2U);
  EXPECT_EQ(sums.refused, 4U);
  EXPECT_EQ(sums.shadow_refused, 6U);
  EXPECT_EQ(sums.blocked, 8U);
  EXPECT_EQ(sums.shared, 10U);
}

TEST(proxy_metrics, name_every_outcome_of_a_key_differently) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < keyed_outcomes_count; ++i) {
    auto const name = name_of(static_cast<keyed_outcome>(i));
    EXPECT_FALSE(name.empty());
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(name_of(keyed_outcome::first), "first");
  EXPECT_EQ(name_of(keyed_outcome::refused), "refused");
}

TEST(proxy_metrics, tell_operations_of_scim_by_method_and_path) {
  struct row {
    std::string_view method;
    std::string_view path;
    scim_operation expected;
  };
  for (auto const& each : {
           row{"GET", "/Users", scim_operation::list},
           row{"GET", "/Users/", scim_operation::list},
           row{"GET", "/Users/1", scim_operation::read},
           row{"GET", "", scim_operation::list},
           row{"GET", "/", scim_operation::list},
           row{"POST", "/Users", scim_operation::create},
           row{"POST", "/Users/.search", scim_operation::list},
           row{"POST", "/.search", scim_operation::list},
           row{"PUT", "/Users/1", scim_operation::replace},
           row{"PATCH", "/Groups/1", scim_operation::patch},
           row{"DELETE", "/Groups/1", scim_operation::remove},
           row{"POST", "/Bulk", scim_operation::bulk},
           row{"GET", "/Schemas", scim_operation::discovery},
           row{"GET", "/Schemas/urn:x", scim_operation::discovery},
           row{"GET", "/ResourceTypes/User", scim_operation::discovery},
           row{"GET", "/ServiceProviderConfig", scim_operation::discovery},
       }) {
    EXPECT_EQ(scim_operation_of(each.method, each.path), each.expected)
        << each.method << " " << each.path;
  }
}

}  // namespace
}  // namespace tidegate::gateway
