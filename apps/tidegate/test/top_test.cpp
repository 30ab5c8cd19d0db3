// SPDX-License-Identifier: Apache-2.0
#include "top/snapshot.hpp"
#include "top/view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tidegate::app::top {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;

constexpr instant start{1000s};

constexpr std::string_view metrics =
    "# HELP tidegate_requests_total x\n"
    "tidegate_requests_total{route=\"/v1/**\",status=\"200\"} 100\n"
    "tidegate_requests_total{route=\"/v1/**\",status=\"429\"} 20\n"
    "tidegate_requests_total{route=\"a \\\"b\\\"\",status=\"503\"} 1\n"
    "tidegate_request_duration_seconds_bucket{route=\"/v1/**\",le=\"0.001\"} 110\n"
    "tidegate_request_duration_seconds_bucket{route=\"/v1/**\",le=\"0.01\"} 120\n"
    "tidegate_request_duration_seconds_bucket{route=\"/v1/**\",le=\"+Inf\"} 120\n"
    "tidegate_request_duration_seconds_sum{route=\"/v1/**\"} 0.24\n"
    "tidegate_idempotency_total{route=\"/v1/**\",outcome=\"replayed\"} 7\n"
    "tidegate_idempotency_total{route=\"/v1/**\",outcome=\"first\"} 9\n"
    "tidegate_decisions_total{policy=\"burst\",decision=\"admitted\"} 100\n"
    "tidegate_decisions_total{policy=\"burst\",decision=\"refused\"} 20\n"
    "tidegate_connections_open 3\n"
    "process_cpu_seconds_total 1.5\n"
    "process_resident_memory_bytes 10485760\n"
    "nonsense{ 1\nnonsense\n{} \n";
constexpr std::string_view policies =
    R"({"policies":[{"name":"burst","quota":100,"unit":"requests","window":60,"enforced":true},)"
    R"({"name":"slots","quota":20,"unit":"concurrent-requests","enforced":false}]})";
constexpr std::string_view partitions =
    R"({"window":10,"partitions":[{"policy":"burst","partition":[{"source":"header:x-api-key"},)"
    R"({"source":"client-ip","value":"192.0.2.1"}],"key":"0123456789abcdef","requests":50.0,"refused":20.0,)"
    R"("quota":100,"remaining":0,"reset":12}]})";

auto read(std::string_view text = metrics, instant at = start) -> snapshot {
  auto const made = read_snapshot({text, policies, partitions}, at);
  EXPECT_TRUE(made) << (made ? "" : made.error());
  return made.value_or(snapshot());
}

TEST(top_snapshot, reads_what_the_admin_address_says) {
  auto const made = read();
  ASSERT_TRUE(made.routes.contains("/v1/**"));
  auto const& route = made.routes.at("/v1/**");
  EXPECT_EQ(route.requests, 120);
  EXPECT_EQ(route.by_class[2], 100);
  EXPECT_EQ(route.throttled, 20);
  EXPECT_EQ(route.replayed, 7);
  EXPECT_EQ(route.within.size(), 2);
  EXPECT_TRUE(made.routes.contains("a \"b\""));
  EXPECT_EQ(made.policies.at("burst").refused, 20);
  EXPECT_EQ(made.policies.at("burst").window, 60);
  EXPECT_FALSE(made.policies.at("slots").enforced);
  ASSERT_EQ(made.partitions.size(), 1);
  EXPECT_EQ(made.partitions[0].text, "header:x-api-key=#01234567 client-ip=192.0.2.1");
  EXPECT_EQ(made.connections, 3);
}

TEST(top_snapshot, refuses_answers_of_another_server) {
  EXPECT_THAT(read_snapshot({metrics, "<html>", partitions}, start).error(), HasSubstr("policies"));
  EXPECT_THAT(read_snapshot({metrics, policies, "{}"}, start).error(), HasSubstr("partitions"));
}

TEST(top_snapshot, bounds_what_it_takes) {
  std::string many;
  for (std::size_t i = 0; i < 2 * entries_max; ++i) {
    many += "tidegate_requests_total{route=\"" + std::to_string(i) + "\",status=\"200\"} 1\n";
  }
  EXPECT_EQ(read(many).routes.size(), entries_max);
}

TEST(top_view, shows_totals_at_first_and_rates_from_then_on) {
  auto const first = read();
  auto const once = to_text(first, nullptr, {.address = "http://127.0.0.1:9901"});
  EXPECT_THAT(once,
              StartsWith("tidegate http://127.0.0.1:9901  3 connections  10.0 MiB\n\nROUTE "));
  EXPECT_THAT(once, testing::ContainsRegex("/v1/\\*\\* +- +- +- +- +- +- +2.0 +10.0 +120\n"));
  EXPECT_THAT(once, testing::ContainsRegex("burst +100/1m +- +- +- +100 +20\n"));
  EXPECT_THAT(once, testing::ContainsRegex("slots +20 at once shadow"));
  EXPECT_THAT(once, testing::ContainsRegex("client-ip=192.0.2.1 +burst +5.0 +2.0 +0 +100 +12 s\n"));

  std::string later(metrics);
  later.replace(later.find("} 100\n"), 6, "} 300\n");
  later.replace(later.find("total 1.5"), 9, "total 2.5");
  auto const rates = to_text(read(later, start + 2s), &first, {.address = "x"});
  EXPECT_THAT(rates, HasSubstr("cpu 50.0 %"));
  EXPECT_THAT(rates, testing::ContainsRegex("/v1/\\*\\* +100 +100 +0.0 +0.0 +0.0 +0.0 "));
}

TEST(top_view, starts_again_with_a_gateway_that_was_restarted) {
  auto const before = read();
  auto const now =
      read("tidegate_requests_total{route=\"/v1/**\",status=\"200\"} 10\n", start + 1s);
  EXPECT_THAT(to_text(now, &before, {}), testing::ContainsRegex("/v1/\\*\\* +10.0 "));
}

TEST(top_view, fits_into_any_terminal) {
  auto made = read();
  for (int i = 0; i < 100; ++i) {
    made.routes["/route/number/" + std::to_string(i) + std::string(100, 'x')].requests = 1;
    made.partitions.push_back(made.partitions.front());
  }
  for (std::size_t const columns : {20U, 40U, 80U, 200U}) {
    for (std::size_t const rows : {1U, 2U, 5U, 8U, 24U, 60U}) {
      auto const text = to_text(made, nullptr, {.address = "x", .columns = columns, .rows = rows});
      EXPECT_LE(std::ranges::count(text, '\n'), rows) << columns << "x" << rows;
      for (std::size_t begin = 0; begin < text.size();) {
        auto const end = text.find('\n', begin);
        EXPECT_LE(end - begin, columns);
        begin = end + 1;
      }
    }
  }
  EXPECT_THAT(to_text(made, nullptr, {.address = "x", .columns = 80, .rows = 24}),
              HasSubstr("HOTTEST"));
}

TEST(top_view, shows_no_control_characters) {
  auto made = read();
  made.routes["\x1b[2J"].requests = 1;
  made.partitions[0].text = "header:a=\x1b]0;x\x07";
  EXPECT_THAT(to_text(made, nullptr, {.address = "\x1b"}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(to_text(made, nullptr, {.address = "x", .colour = explain::colours::on}),
              HasSubstr("\x1b[7mROUTE"));
}

TEST(top_view, is_json_for_programs) {
  auto const first = read();
  auto const json = to_json(first, nullptr, std::chrono::sys_seconds(1715947200s));
  EXPECT_THAT(json,
              StartsWith(R"({"time":"2024-05-17T12:00:00Z","seconds":null,"connections":3,)"));
  EXPECT_THAT(json, HasSubstr(R"({"name":"/v1/**","requests":120,"1xx":0,"2xx":100,)"));
  EXPECT_THAT(json, HasSubstr(R"("remaining":0,"reset":12}]})"));
  EXPECT_THAT(json, EndsWith("\n"));
  EXPECT_THAT(to_json(read(metrics, start + 2s), &first, {}),
              HasSubstr(R"("requests-per-second":0.000)"));
}

TEST(top_view, speaks_of_times_and_of_one_connection_as_people_do) {
  snapshot now;
  now.connections = 1;
  now.partitions.push_back({.policy = "p", .text = "a", .quota = 10, .reset = 85'779});
  now.partitions.push_back({.policy = "p", .text = "b", .quota = 10, .reset = 60});
  auto const text = to_text(now, nullptr, {.address = "x", .columns = 120, .rows = 40});
  EXPECT_THAT(text, testing::HasSubstr("  1 connection  "));
  EXPECT_THAT(text, testing::HasSubstr("23 h 49 min\n"));
  EXPECT_THAT(text, testing::HasSubstr("1 min\n"));
}

TEST(top_view, colours_what_was_refused) {
  snapshot before;
  before.taken = instant(std::chrono::seconds(1));
  auto now = before;
  now.taken = instant(std::chrono::seconds(2));
  now.routes["r"].requests = 10;
  now.routes["r"].throttled = 5;
  view_options how{.address = "x", .columns = 120, .rows = 40};
  EXPECT_THAT(to_text(now, &before, how), testing::Not(testing::HasSubstr("\x1b")));
  how.colour = explain::colours::on;
  EXPECT_THAT(to_text(now, &before, how), testing::HasSubstr("\x1b[33m5.0\x1b[0m"));
}

}  // namespace
}  // namespace tidegate::app::top
