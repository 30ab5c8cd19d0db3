// SPDX-License-Identifier: Apache-2.0
//
// How upstreams and stores are, as metrics and the console say it.
#include "gateway.hpp"
#include "keyed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>

#include <chrono>
#include <string>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

auto labels(origin const& of) -> std::string {
  return "{upstream=\"api\",server=\"" + of.url() + "\"}";
}

TEST(gateway_health, tells_which_servers_are_ejected_and_how_many_requests_they_have) {
  origin well;
  auto const gone = origin::refusing();
  gateway const with("upstreams: {api: {servers: [\"" + gone.url() + "\", \"" + well.url() +
                     "\"], retries: 1}}\nroutes: [{match: {path: /**}, upstream: api}]\n");
  EXPECT_EQ(with.metric("tidegate_upstream_up" + labels(gone)), 1);
  auto client = with.connect();
  client.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n");
  auto held = well.accept();
  (void)held.read_request();
  EXPECT_EQ(with.metric("tidegate_upstream_in_flight" + labels(well)), 1);
  EXPECT_EQ(with.metric("tidegate_upstream_in_flight" + labels(gone)), 0);
  held.send(response("200 OK", "held"));
  EXPECT_EQ(client.read_response().body, "held");
  for (int i = 0; with.metric("tidegate_upstream_up" + labels(gone)) == 1; ++i) {
    ASSERT_LT(i, 20);
    client.send("GET /more HTTP/1.1\r\nHost: a\r\n\r\n");
    (void)held.read_request();
    held.send(response("200 OK", "more"));
    EXPECT_EQ(client.read_response().body, "more");
  }
  EXPECT_EQ(with.metric("tidegate_upstream_up" + labels(gone)), 0);
  EXPECT_EQ(with.metric("tidegate_upstream_up" + labels(well)), 1);
  EXPECT_EQ(with.metric("tidegate_upstream_failures_total" + labels(gone)), 5);
  EXPECT_EQ(with.metric("tidegate_upstream_failures_in_a_row" + labels(gone)), 5);
  EXPECT_EQ(with.metric("tidegate_upstream_in_flight" + labels(well)), 0);
}

TEST(gateway_health, tells_that_the_only_server_is_down_though_it_is_asked_again) {
  auto gone = origin::refusing();
  gateway const with(proxy_config(gone.url()), 2);
  EXPECT_EQ(with.metric("tidegate_upstream_up" + labels(gone)), 1);
  auto client = with.connect();  // all by one thread
  for (int i = 0; i < 5; ++i) {
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(client.read_response().status(), 502);
  }
  EXPECT_EQ(with.metric("tidegate_upstream_up" + labels(gone)), 0);
  EXPECT_GE(with.metric("tidegate_upstream_failures_in_a_row" + labels(gone)), 3);
  ASSERT_EQ(::listen(gone.socket(), 8), 0);
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  auto server = gone.accept();
  (void)server.read_request();
  server.send(response("200 OK", "back"));
  EXPECT_EQ(client.read_response().body, "back");
  EXPECT_EQ(with.metric("tidegate_upstream_up" + labels(gone)), 1);
}

TEST(gateway_health, tells_what_the_program_is_and_how_it_does) {
  gateway const with("routes: [{match: {path: /**}, service: echo}]\n");
  auto const now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_THAT(with.admin("/metrics").body,
              testing::ContainsRegex("\ntidegate_build_info\\{version=\"[0-9.]+[^\"]*\",commit=\""
                                     "[^\"]+\"\\} 1\n"));
  EXPECT_NEAR(with.metric("process_start_time_seconds"), now, 60);
  EXPECT_GT(with.metric("process_open_fds"), 5);
  EXPECT_GE(with.metric("process_max_fds"), with.metric("process_open_fds"));
}

TEST(gateway_health, tells_how_reloads_went) {
  std::string const echo = "routes: [{match: {path: /**}, service: echo}]\n";
  gateway with(echo);
  auto const started = with.metric("tidegate_config_last_reload_success_timestamp_seconds");
  EXPECT_GT(started, 1e9);
  EXPECT_EQ(with.metric("tidegate_config_last_reload_successful"), 1);
  EXPECT_THAT(with.reload("routes: ["), HasSubstr("was not applied"));
  EXPECT_EQ(with.metric("tidegate_config_last_reload_successful"), 0);
  EXPECT_EQ(with.metric("tidegate_config_reload_failures_total"), 1);
  EXPECT_EQ(with.metric("tidegate_config_last_reload_success_timestamp_seconds"), started);
  EXPECT_THAT(with.reload(echo), HasSubstr("was applied"));
  EXPECT_EQ(with.metric("tidegate_config_last_reload_successful"), 1);
  EXPECT_EQ(with.metric("tidegate_config_reload_failures_total"), 1);
  EXPECT_GT(with.metric("tidegate_config_last_reload_success_timestamp_seconds"), started);
}

TEST(gateway_health, tells_how_long_an_upstream_takes) {
  serving_origin const api(response("200 OK", "done"));
  gateway const with(proxy_config(api.url()));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(with.get("/").status(), 200);
  }
  EXPECT_EQ(with.metric(R"(tidegate_upstream_duration_seconds_count{upstream="api"})"), 3);
  EXPECT_EQ(with.metric(R"(tidegate_upstream_duration_seconds_bucket{upstream="api",le="+Inf"})"),
            3);
  EXPECT_GT(with.metric(R"(tidegate_upstream_duration_seconds_sum{upstream="api"})"), 0);
}

TEST(gateway_health, counts_what_is_asked_of_scim) {
  data_folder const data;
  gateway const with("data: " + data.path() +
                     "\nroutes: [{match: {path: /scim/**}, service: scim}]\n");
  EXPECT_EQ(with.get("/scim/Users").status(), 200);
  EXPECT_EQ(with.get("/scim/Users/none").status(), 404);
  EXPECT_EQ(with.get("/scim/Schemas").status(), 200);
  EXPECT_EQ(with.metric(R"(tidegate_scim_requests_total{operation="list",status="200"})"), 1);
  EXPECT_EQ(with.metric(R"(tidegate_scim_requests_total{operation="read",status="404"})"), 1);
  EXPECT_EQ(with.metric(R"(tidegate_scim_requests_total{operation="discovery",status="200"})"), 1);
}

TEST(gateway_health, names_the_stores_that_are_in_use) {
  serving_origin const api(response("200 OK", "done"));
  data_folder const data;
  gateway const with(keyed_config(api.url(), data, "", "policies: {p: {quota: 1, window: 1h}}\n"));
  auto const metrics = with.admin("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("tidegate_store_up{store=\"quota\",kind=\"memory\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("tidegate_store_up{store=\"idempotency\",kind=\"sqlite\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("tidegate_store_failing_since_timestamp_seconds{store="
                                 "\"idempotency\",kind=\"sqlite\"} 0\n"));
  EXPECT_THAT(metrics, Not(HasSubstr("store=\"directory\"")));
}

TEST(gateway_health, watches_the_directory) {
  data_folder const data;
  gateway const with("data: " + data.path() +
                     "\nroutes: [{match: {path: /scim/**}, service: scim}]\n");
  auto const metrics = with.admin("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("tidegate_store_up{store=\"directory\",kind=\"sqlite\"} 1\n"));
  EXPECT_THAT(metrics, Not(HasSubstr("store=\"quota\"")));
}

}  // namespace
}  // namespace tidegate::e2e
