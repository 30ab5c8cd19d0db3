// SPDX-License-Identifier: Apache-2.0
//
// How upstreams and stores are, as metrics and the console say it.
#include "gateway.hpp"
#include "keyed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

auto labels(origin const& of) -> std::string {
  return "{upstream=\"api\",server=\"" + of.authority() + "\"}";
}

TEST(gateway_health, tells_which_servers_are_taken_out_and_how_many_requests_they_have) {
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
    ASSERT_LT(i, 10);
    client.send("GET /more HTTP/1.1\r\nHost: a\r\n\r\n");
    (void)held.read_request();
    held.send(response("200 OK", "more"));
    EXPECT_EQ(client.read_response().body, "more");
  }
  EXPECT_EQ(with.metric("tidegate_upstream_up" + labels(gone)), 0);
  EXPECT_EQ(with.metric("tidegate_upstream_up" + labels(well)), 1);
  EXPECT_EQ(with.metric("tidegate_upstream_failures_total" + labels(gone)), 3);
  EXPECT_EQ(with.metric("tidegate_upstream_failures_in_a_row" + labels(gone)), 3);
  EXPECT_EQ(with.metric("tidegate_upstream_in_flight" + labels(well)), 0);
}

TEST(gateway_health, tells_that_the_only_server_fails_though_it_is_asked_again) {
  auto const gone = origin::refusing();
  gateway const with(proxy_config(gone.url()));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(with.get("/").status(), 502);
  }
  auto const metrics = with.admin("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("tidegate_upstream_failures_in_a_row{upstream="));
  EXPECT_THAT(metrics, HasSubstr("server=\"" + gone.authority() + "\"} 1\n"));  // it is up
  EXPECT_THAT(metrics, Not(HasSubstr("server=\"" + gone.authority() + "\"} 3\n")));
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
