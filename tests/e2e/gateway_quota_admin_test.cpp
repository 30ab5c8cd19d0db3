// SPDX-License-Identifier: Apache-2.0
#include "gateway.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate::e2e {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view config = R"(policies:
  burst: {quota: 2, window: 1m, partition: [header:x-api-key, method]}
  shown: {quota: 9, window: 1m, partition: [header:x-name], partition-key: plain, enforce: shadow}
  slots: {quota: 5, unit: concurrent-requests, partition: []}
routes:
  - {match: {path: /a/**}, name: first, service: echo, limits: [burst, shown, slots]}
  - {match: {path: /b/**}, name: second, service: echo, limits: [shown]}
)";

TEST(gateway_quota_admin, tells_what_policies_are_and_what_they_said) {
  gateway const running{std::string(config)};
  for (int i = 0; i < 3; ++i) {
    (void)running.get("/a/x");
  }
  auto const answer = running.admin("/api/v1/policies");
  EXPECT_EQ(answer.status(), 200);
  EXPECT_EQ(answer.field("Content-Type"), "application/json");
  EXPECT_THAT(
      answer.body,
      HasSubstr(R"({"name":"burst","quota":2,"unit":"requests","window":60,"algorithm":"sliding",)"
                R"("enforced":true,"partition":{"sources":["header:x-api-key","method"],)"));
  EXPECT_THAT(
      answer.body,
      HasSubstr(R"("routes":["first"],"admitted":2,"refused":1,"shadow-refused":0,"blocked":0})"));
  EXPECT_THAT(answer.body, HasSubstr(R"("routes":["first","second"])"));
}

TEST(gateway_quota_admin, tells_the_hottest_partitions_and_hides_what_may_be_secret) {
  gateway const running(std::string(config), 2);
  for (int i = 0; i < 3; ++i) {
    (void)running.get("/a/x", "X-Api-Key: swordfish\r\nX-Name: Ada\r\n");
  }
  (void)running.get("/a/x", "X-Api-Key: shark\r\nX-Name: Bob\r\n");
  auto const answer = running.admin("/api/v1/partitions?policy=burst");
  EXPECT_EQ(answer.status(), 200);
  // The key is the documented digest, which a client can make by itself:
  // printf 'header:x-api-key=swordfish\nmethod=GET\n' | sha256sum | head -c 32
  EXPECT_THAT(
      answer.body,
      ContainsRegex(
          R"(^\{"window":10,"partitions":\[\{"policy":"burst","partition":\[)"
          R"(\{"source":"header:x-api-key"\},\{"source":"method","value":"GET"\}\],)"
          R"("key":"150e641dbfa4728362cba4baad1a7196","requests":[0-3]\.[0-9],"refused":[01]\.[0-9],)"
          R"("quota":2,"remaining":0,"reset":[0-9]+\},\{)"));
  EXPECT_THAT(answer.body, Not(HasSubstr("swordfish")));
  EXPECT_THAT(answer.body, Not(HasSubstr("\"policy\":\"shown\"")));
  auto const all = running.admin("/api/v1/partitions").body;
  EXPECT_THAT(all, HasSubstr(R"("partition":[{"source":"header:x-name","value":"Ada"}])"));
  EXPECT_THAT(
      all,
      ContainsRegex(
          R"("policy":"slots","partition":\[\],"key":"[0-9a-f]{32}",[^}]*"remaining":[0-9]+\})"));
}

TEST(gateway_quota_admin, still_shows_a_partition_that_is_blocked) {
  gateway const running(
      "policies:\n"
      "  p: {quota: 1, window: 1m, partition: [header:x-name], partition-key: plain,\n"
      "      abuse: {refusals: 2, within: 1m, block: 10m}}\n"
      "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n");
  // One is admitted, two are refused by quota, and the others because of those.
  for (int i = 0; i < 23; ++i) {
    (void)running.get("/a", "X-Name: greedy\r\n");
  }
  auto const body = running.admin("/api/v1/partitions?policy=p").body;
  EXPECT_THAT(body, HasSubstr(R"("value":"greedy")"));
  EXPECT_THAT(body, ContainsRegex(R"("refused":[12][0-9]\.[0-9],)"));
  EXPECT_THAT(body, ContainsRegex(R"("remaining":0,"reset":(5[0-9][0-9]|600)\})"));
}

TEST(gateway_quota_admin, tells_of_partitions_with_long_values) {
  gateway const running{std::string(config)};
  (void)running.get("/a/x", "X-Api-Key: " + std::string(4000, 'k') + "\r\n");
  auto const body = running.admin("/api/v1/partitions?policy=burst").body;
  EXPECT_THAT(body,
              HasSubstr(R"({"source":"header:x-api-key"},{"source":"method","value":"GET"})"));
  // printf 'header:x-api-key=%s\nmethod=GET\n' "$KEY" | sha256sum | head -c 32
  EXPECT_THAT(body, HasSubstr(R"("key":"159219391a157dd3cb2725d61e00b187")"));
}

TEST(gateway_quota_admin, gives_as_many_as_are_asked_for) {
  gateway const running{std::string(config)};
  for (int i = 0; i < 5; ++i) {
    (void)running.get("/b/x", "X-Name: " + std::to_string(i) + "\r\n");
  }
  auto const count = [&](std::string const& query) {
    auto const body = running.admin("/api/v1/partitions?" + query).body;
    std::size_t found = 0;
    for (auto at = body.find("\"key\""); at != std::string::npos;
         at = body.find("\"key\"", at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("policy=shown"), 5);
  EXPECT_EQ(count("limit=2"), 2);
  for (std::string const wrong : {"limit=0", "limit=65", "limit=x", "limit=", "limit=1x"}) {
    EXPECT_EQ(running.admin("/api/v1/partitions?" + wrong).status(), 400) << wrong;
  }
  EXPECT_EQ(running.admin("/api/v1/partitions?policy=none").status(), 404);
}

TEST(gateway_quota_admin, goes_by_the_settings_that_hold_now) {
  gateway running{std::string(config)};
  (void)running.get("/a/x");
  (void)running.reload(
      "policies: {other: {quota: 7, window: 1h}}\n"
      "routes: [{match: {path: /**}, service: echo, limits: [other]}]\n");
  (void)running.get("/a/x");
  auto const body = running.admin("/api/v1/policies").body;
  EXPECT_THAT(body, HasSubstr(R"("name":"other","quota":7)"));
  EXPECT_THAT(body, Not(HasSubstr("burst")));
  EXPECT_EQ(running.admin("/api/v1/partitions?policy=burst").status(), 404);
}

TEST(gateway_quota_admin, only_reads) {
  gateway const running{std::string(config)};
  auto connection = running.connect_admin();
  connection.send("POST /api/v1/policies HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
  auto const answer = connection.read_response();
  EXPECT_EQ(answer.status(), 405);
  EXPECT_EQ(answer.field("Allow"), "GET, HEAD");
}

}  // namespace
}  // namespace tidegate::e2e
