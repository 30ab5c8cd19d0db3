// SPDX-License-Identifier: Apache-2.0
//
// Single partitions at the admin address: looked up, reset, given another quota for a while.
#include "gateway.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tidegate::e2e {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view config = R"(policies:
  burst: {quota: 2, window: 1h, algorithm: fixed, partition: [header:x-api-key, method]}
  other: {quota: 9, window: 1h, algorithm: fixed, partition: [header:x-api-key]}
  address: {quota: 5, window: 1h, partition: [client-ip]}
  slots: {quota: 5, unit: concurrent-requests, partition: []}
  unused: {quota: 5, window: 1h}
routes:
  - {match: {path: /a/**}, service: echo, limits: [burst, other, slots]}
  - {match: {path: /b/**}, service: echo, limits: [address]}
)";

// printf 'header:x-api-key=swordfish\nmethod=GET\n' | sha256sum | head -c 32
constexpr std::string_view swordfish_key = "150e641dbfa4728362cba4baad1a7196";
constexpr std::string_view swordfish = R"("policy":"burst","values":["swordfish","GET"])";
constexpr std::string_view swordfish_by_key =
    R"("policy":"burst","key":"150e641dbfa4728362cba4baad1a7196")";

auto ask(gateway const& with, std::string_view method, std::string_view target,
         std::string_view content = "", std::string_view lines = "") -> message {
  auto client = with.connect_admin();
  client.send(std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n" +
              std::string(lines) + "Content-Length: " + std::to_string(content.size()) +
              "\r\n\r\n" + std::string(content));
  return client.read_response();
}

/// `members` are those of the content.
auto post_to(gateway const& with, std::string_view what, std::string_view members) -> message {
  return ask(with, "POST", "/api/v1/partitions/" + std::string(what),
             "{" + std::string(members) + "}", "Content-Type: application/json\r\n");
}

auto use(gateway const& with) -> message {
  return with.get("/a/x", "X-Api-Key: swordfish\r\n");
}

void expect_problem(message const& answer, int status, std::string_view part) {
  EXPECT_EQ(answer.status(), status) << answer.body;
  EXPECT_EQ(answer.field("Content-Type"), "application/problem+json");
  EXPECT_THAT(answer.body, HasSubstr(part));
}

TEST(gateway_partition_admin, tells_what_is_left_without_spending_it) {
  gateway const with(std::string(config), 2);
  auto const unused = post_to(with, "lookup", swordfish);
  EXPECT_EQ(unused.status(), 200);
  EXPECT_EQ(unused.field("Content-Type"), "application/json");
  EXPECT_THAT(unused.body, HasSubstr(R"("quota":2,"remaining":2,"reset":3600,"blocked":false})"));
  (void)use(with);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(
        post_to(with, "lookup", swordfish).body,
        ContainsRegex(
            R"(^\{"policy":"burst","partition":\[\{"source":"header:x-api-key"\},)"
            R"(\{"source":"method","value":"GET"\}\],"key":"150e641dbfa4728362cba4baad1a7196",)"
            R"("quota":2,"remaining":1,"reset":3[56][0-9][0-9],"blocked":false\})"));
  }
  EXPECT_THAT(post_to(with, "lookup", R"("policy":"slots","values":[])").body,
              HasSubstr(R"("partition":[],)"));
  EXPECT_THAT(post_to(with, "lookup", R"("policy":"slots","values":[])").body,
              HasSubstr(R"("quota":5,"remaining":5,"blocked":false})"));
}

TEST(gateway_partition_admin, takes_an_address_in_any_spelling) {
  gateway const with{std::string(config)};
  (void)with.get("/b/x");
  EXPECT_THAT(post_to(with, "lookup", R"("policy":"address","values":["127.0.0.1"])").body,
              HasSubstr(R"("value":"127.0.0.1"}],)"));
  EXPECT_THAT(post_to(with, "lookup", R"("policy":"address","values":["127.0.0.1"])").body,
              HasSubstr(R"("remaining":4,)"));
  for (auto const* const spelling : {"2001:DB8:0:0::7", "2001:db8::/64"}) {
    EXPECT_THAT(post_to(with, "lookup",
                        R"("policy":"address","values":[")" + std::string(spelling) + R"("])")
                    .body,
                HasSubstr(R"("value":"2001:db8::/64")"));
  }
  expect_problem(post_to(with, "lookup", R"("policy":"address","values":["here"])"), 400,
                 "must be an address");
}

TEST(gateway_partition_admin, finds_by_its_key_what_was_used_and_nothing_else) {
  gateway const with(std::string(config), 2);
  expect_problem(post_to(with, "lookup", swordfish_by_key), 404, "by the values of its sources");
  (void)use(with);
  EXPECT_THAT(post_to(with, "lookup", swordfish_by_key).body,
              AllOf(HasSubstr(R"("remaining":1,)"), Not(HasSubstr("swordfish"))));
  // It is none of a policy with other sources.
  expect_problem(
      post_to(with, "lookup", R"("policy":"other","key":"150e641dbfa4728362cba4baad1a7196")"), 404,
      "was seen lately");
  expect_problem(
      post_to(with, "lookup", R"("policy":"burst","key":"00000000000000000000000000000000")"), 404,
      "was seen lately");
}

TEST(gateway_partition_admin, resets_one_partition_of_one_policy_and_says_so) {
  gateway with(std::string(config), 2);
  for (int i = 0; i < 3; ++i) {
    (void)use(with);
  }
  (void)with.get("/a/x", "X-Api-Key: shark\r\n");
  EXPECT_EQ(use(with).status(), 429);
  EXPECT_THAT(with.admin("/api/v1/partitions?policy=burst").body, HasSubstr(R"("remaining":0,)"));
  auto const done = post_to(with, "reset", swordfish_by_key);
  EXPECT_EQ(done.status(), 200);
  EXPECT_THAT(done.body, HasSubstr(R"("quota":2,"remaining":2,)"));
  // The list of the hottest shows it at once, and no other policy or partition was touched.
  EXPECT_THAT(with.admin("/api/v1/partitions?policy=burst").body,
              Not(HasSubstr(R"("remaining":0,)")));
  EXPECT_THAT(post_to(with, "lookup", R"("policy":"burst","values":["shark","GET"])").body,
              HasSubstr(R"("remaining":1,)"));
  EXPECT_THAT(post_to(with, "lookup", R"("policy":"other","values":["swordfish"])").body,
              HasSubstr(R"("remaining":7,)"));
  auto const again = use(with);
  EXPECT_EQ(again.status(), 200);
  EXPECT_THAT(again.field("RateLimit"), HasSubstr(R"("burst";r=1;)"));
  auto const said = with.errors_until("of the policy burst: answered 200");
  EXPECT_THAT(said,
              ContainsRegex("asked by 127.0.0.1:[0-9]+ to reset the partition " +
                            std::string(swordfish_key) + " of the policy burst: answered 200"));
  EXPECT_THAT(said, Not(HasSubstr("swordfish")));
}

TEST(gateway_partition_admin, lifts_the_block_of_abuse) {
  gateway const with(
      "policies:\n"
      "  p: {quota: 1, window: 1h, partition: [header:x-api-key],\n"
      "      abuse: {refusals: 2, within: 1m, block: 10m}}\n"
      "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n");
  for (int i = 0; i < 5; ++i) {
    (void)with.get("/a", "X-Api-Key: greedy\r\n");
  }
  EXPECT_THAT(with.get("/a", "X-Api-Key: greedy\r\n").body, HasSubstr("abnormal-usage"));
  constexpr std::string_view greedy = R"("policy":"p","values":["greedy"])";
  EXPECT_THAT(post_to(with, "lookup", greedy).body,
              ContainsRegex(R"("remaining":0,.*"blocked":true,"blocked-for":(5[0-9][0-9]|600)\})"));
  EXPECT_THAT(post_to(with, "reset", greedy).body,
              HasSubstr(R"("remaining":1,"reset":3600,"blocked":false})"));
  EXPECT_EQ(with.get("/a", "X-Api-Key: greedy\r\n").status(), 200);
}

TEST(gateway_partition_admin, resets_nothing_that_is_held) {
  gateway const with{std::string(config)};
  expect_problem(post_to(with, "reset", R"("policy":"slots","values":[])"), 409,
                 "held until they end");
}

TEST(gateway_partition_admin, gives_another_quota_that_clients_see_and_takes_it_back) {
  gateway with(std::string(config), 2);
  for (int i = 0; i < 3; ++i) {
    (void)use(with);
  }
  auto const given =
      post_to(with, "quota", std::string(swordfish_by_key) + R"(,"quota":50,"seconds":600)");
  EXPECT_EQ(given.status(), 200);
  // What was spent stays spent.
  EXPECT_THAT(given.body,
              ContainsRegex(R"("quota":50,"remaining":48,"reset":3[56][0-9][0-9],)"
                            R"("blocked":false,"usual-quota":2,"seconds":(600|599)\})"));
  auto const seen = use(with);
  EXPECT_EQ(seen.status(), 200);
  EXPECT_EQ(seen.field("RateLimit-Policy"),
            R"("burst";q=50;w=3600, "other";q=9;w=3600, "slots";q=5;qu="concurrent-requests")");
  EXPECT_THAT(seen.field("RateLimit"), HasSubstr(R"("burst";r=47;)"));
  auto const others = with.get("/a/x", "X-Api-Key: shark\r\n");
  EXPECT_THAT(others.field("RateLimit-Policy"), HasSubstr(R"("burst";q=2;)"));
  EXPECT_THAT(others.field("RateLimit"), HasSubstr(R"("burst";r=1;)"));

  EXPECT_THAT(
      with.admin("/api/v1/partitions/overrides").body,
      ContainsRegex(
          R"(^\{"overrides":\[\{"policy":"burst","partition":\[\{"source":"header:x-api-key"\},)"
          R"(\{"source":"method","value":"GET"\}\],"key":"150e641dbfa4728362cba4baad1a7196",)"
          R"("usual-quota":2,"quota":50,"seconds":[0-9]+\}\],"most":1000\})"));
  EXPECT_THAT(with.admin("/api/v1/partitions?policy=burst").body,
              ContainsRegex(R"("quota":50,"remaining":47,"reset":[0-9]+,"usual-quota":2\})"));

  auto const path = "/api/v1/partitions/overrides?policy=burst&key=" + std::string(swordfish_key);
  EXPECT_EQ(ask(with, "DELETE", path).status(), 204);
  expect_problem(ask(with, "DELETE", path), 404, "no temporary quota");
  auto const refused = use(with);
  EXPECT_EQ(refused.status(), 429);
  EXPECT_THAT(refused.field("RateLimit-Policy"), HasSubstr(R"("burst";q=2;)"));
  EXPECT_THAT(refused.field("RateLimit"), HasSubstr(R"("burst";r=0;)"));
  EXPECT_EQ(with.admin("/api/v1/partitions/overrides").body, "{\"overrides\":[],\"most\":1000}\n");
  auto const said = with.errors_until("of the policy burst: answered 204");
  EXPECT_THAT(said, HasSubstr("to give the partition " + std::string(swordfish_key) +
                              " of the policy burst a quota of 50 for 600 s: answered 200"));
  EXPECT_THAT(said, HasSubstr("to remove the temporary quota of the partition " +
                              std::string(swordfish_key) + " of the policy burst: answered 204"));
  EXPECT_THAT(said, Not(HasSubstr("swordfish")));
}

TEST(gateway_partition_admin, ends_a_temporary_quota_by_itself_and_says_so) {
  gateway with(std::string(config), 2);
  EXPECT_EQ(post_to(with, "quota", std::string(swordfish) + R"(,"quota":0,"seconds":1)").status(),
            200);
  EXPECT_EQ(use(with).status(), 429);
  expect_eventually([&] { return use(with).status() == 200; }, "the quota is the usual one");
  std::string said;
  expect_eventually(
      [&] {
        said += with.errors();
        return said.contains("the temporary quota of the partition " + std::string(swordfish_key) +
                             " of the policy burst has ended");
      },
      "its end is said");
  EXPECT_EQ(with.admin("/api/v1/partitions/overrides").body, "{\"overrides\":[],\"most\":1000}\n");
}

TEST(gateway_partition_admin, keeps_a_temporary_quota_over_a_reload) {
  gateway with{std::string(config)};
  EXPECT_EQ(
      post_to(with, "quota", std::string(swordfish) + R"(,"quota":50,"seconds":600)").status(),
      200);
  (void)with.reload(
      "policies: {burst: {quota: 3, window: 2h, algorithm: fixed, partition: [header:x-api-key, "
      "method]}}\n"
      "routes: [{match: {path: /**}, service: echo, limits: [burst]}]\n");
  expect_eventually([&] { return use(with).field("RateLimit-Policy") == R"("burst";q=50;w=7200)"; },
                    "the new window, and the quota that it was given");
  (void)with.reload("routes: [{match: {path: /**}, service: echo}]\n");
  expect_eventually([&] { return use(with).count("RateLimit-Policy") == 0; }, "no policy");
  EXPECT_THAT(with.admin("/api/v1/partitions/overrides").body,
              HasSubstr(R"([{"policy":"burst","partition":[],"key":"150e641dbfa4728)"));
}

TEST(gateway_partition_admin, shows_no_secret_of_sources_that_a_reload_has_changed) {
  gateway with{std::string(config)};
  (void)use(with);
  EXPECT_EQ(post_to(with, "quota", std::string(swordfish) + R"(,"quota":9,"seconds":600)").status(),
            200);
  (void)with.reload(
      "policies: {burst: {quota: 3, window: 1h, partition: [client-ip]}}\n"
      "routes: [{match: {path: /**}, service: echo, limits: [burst]}]\n");
  expect_eventually([&] { return use(with).field("RateLimit-Policy") == R"("burst";q=3;w=3600)"; },
                    "the new policy");
  auto const overrides = with.admin("/api/v1/partitions/overrides").body;
  EXPECT_THAT(overrides,
              AllOf(HasSubstr(R"("partition":[],"key":"150e641dbfa4728)"), Not(HasSubstr("fish"))));
  auto const hottest = with.admin("/api/v1/partitions").body;
  EXPECT_THAT(hottest, AllOf(HasSubstr(R"("value":"127.0.0.1")"), Not(HasSubstr("fish"))));
  expect_problem(post_to(with, "reset", swordfish_by_key), 404, "was seen lately");
}

TEST(gateway_partition_admin, shows_the_other_quota_in_older_fields_too) {
  for (std::string const draft : {"draft-09", "draft-07"}) {
    gateway const with(
        "policies: {burst: {quota: 2, window: 1h, algorithm: fixed, partition: [header:x-api-key, "
        "method], partition-key: hashed}}\n"
        "routes: [{match: {path: /**}, service: echo, limits: [burst]}]\n"
        "fields: {ratelimit: " +
        draft + ", legacy: true}\n");
    EXPECT_EQ(
        post_to(with, "quota", std::string(swordfish) + R"(,"quota":50,"seconds":600)").status(),
        200);
    auto const seen = use(with);
    EXPECT_EQ(seen.field("X-RateLimit-Limit"), "50");
    EXPECT_EQ(seen.field("X-RateLimit-Remaining"), "49");
    EXPECT_THAT(
        seen.field("RateLimit-Policy"),
        testing::StartsWith(draft == "draft-09" ? "\"burst\";q=50;w=3600;pk=:" : "50;w=3600"));
    EXPECT_THAT(seen.field("RateLimit"),
                HasSubstr(draft == "draft-09" ? "r=49" : "limit=50, remaining=49"));
  }
}

TEST(gateway_partition_admin, releases_slots_that_were_taken_under_another_quota) {
  origin api;
  gateway const with("upstreams: {api: " + api.url() +
                     "}\npolicies: {slots: {quota: 1, unit: concurrent-requests, partition: []}}\n"
                     "routes: [{match: {path: /**}, upstream: api, limits: [slots]}]\n");
  constexpr std::string_view slots = R"("policy":"slots","values":[])";
  EXPECT_EQ(post_to(with, "quota", std::string(slots) + R"(,"quota":2,"seconds":600)").status(),
            200);
  auto first = with.connect();
  auto second = with.connect();
  first.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n");
  auto one = api.accept();
  (void)one.read_request();
  second.send("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
  auto two = api.accept();
  (void)two.read_request();
  EXPECT_EQ(with.get("/3").status(), 429);
  EXPECT_THAT(ask(with, "DELETE",
                  "/api/v1/partitions/overrides?policy=slots&key="
                  "e3b0c44298fc1c149afbf4c8996fb924")
                  .status(),
              204);
  one.send(response("200 OK", "1"));
  two.send(response("200 OK", "2"));
  EXPECT_EQ(first.read_response().body, "1");
  EXPECT_EQ(second.read_response().body, "2");
  EXPECT_THAT(post_to(with, "lookup", slots).body, HasSubstr(R"("quota":1,"remaining":1,)"));
}

TEST(gateway_partition_admin, has_so_many_temporary_quotas_and_no_more) {
  gateway const with{
      std::string(config)};  // it says each of them, and goes on though that is not read
  auto const give = [&](int n) {
    return post_to(
        with, "quota",
        R"("policy":"other","values":[")" + std::to_string(n) + R"("],"quota":1,"seconds":600)");
  };
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(give(i).status(), 200);
  }
  expect_problem(give(1000), 409, "remove one first");
  EXPECT_EQ(give(999).status(), 200);  // that has one
}

TEST(gateway_partition_admin, lets_a_token_for_reading_look_and_nothing_else) {
  gateway_options options;
  // The digests of `secret` and `reader`.
  options.admin =
      "{address: \"127.0.0.1:0\", tokens: [{name: ops, sha256: "
      "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b}, {name: look, sha256: "
      "3d0941964aa3ebdcb00ccef58b1bb399f9f898465e9886d5aec7f31090a0fb30, read-only: true}]}";
  gateway with(std::string(config), options);
  auto const status = [&](std::string_view what, std::string_view token, std::string_view members) {
    return ask(with, "POST", "/api/v1/" + std::string(what), "{" + std::string(members) + "}",
               "Authorization: Bearer " + std::string(token) + "\r\n")
        .status();
  };
  EXPECT_EQ(status("partitions/lookup", "missing", swordfish), 401);
  EXPECT_EQ(status("partitions/lookup", "reader", swordfish), 200);
  EXPECT_EQ(status("idempotency/lookup", "reader", R"("scope":"x","key":"k")"), 404);
  EXPECT_EQ(status("partitions/reset", "reader", swordfish), 403);
  EXPECT_EQ(status("partitions/quota", "reader", swordfish), 403);
  EXPECT_EQ(status("try", "reader", R"("path":"/a/x")"), 403);
  EXPECT_EQ(status("partitions/reset", "secret", swordfish), 200);
  EXPECT_EQ(status("try", "secret", R"("path":"/a/x")"), 200);
  auto const said = with.errors_until("(token ops) to reset the");
  EXPECT_THAT(said, ContainsRegex(R"(asked by 127.0.0.1:[0-9]+ \(token ops\) to reset the)"));
  EXPECT_THAT(said, AllOf(Not(HasSubstr("swordfish")), Not(HasSubstr("lookup"))));
}

TEST(gateway_partition_admin, refuses_what_it_does_not_understand) {
  gateway const with{std::string(config)};
  struct row {
    std::string_view what;
    std::string_view members;
    int status;
    std::string_view part;
  };
  for (auto const& [what, members, status, part] : {
           row{"lookup", "", 400, "policy is missing"},
           row{"lookup", R"("policy":7,"values":[])", 400, "policy is missing"},
           row{"lookup", R"("policy":"none","values":[])", 404, "no such policy"},
           row{"lookup", R"("policy":"unused","values":["127.0.0.1"])", 409, "No route uses"},
           row{"lookup", R"("policy":"burst")", 400, "Either values or key"},
           row{"lookup", R"("policy":"burst","values":["a","b"],"key":"0")", 400, "Either values"},
           row{"lookup", R"("policy":"burst","values":["a"])", 400, "header:x-api-key, method"},
           row{"lookup", R"("policy":"burst","values":["a",1])", 400, "array of strings"},
           row{"lookup", R"("policy":"burst","values":"a")", 400, "array of strings"},
           row{"lookup", R"("policy":"burst","key":1)", 400, "key must be a string"},
           row{"lookup", R"("policy":"slots","values":["a"])", 400, "all requests are in one"},
           row{"lookup", R"("policy":"burst","values":["a","b"],"quota":1)", 400, "nknown member"},
           row{"reset", R"("policy":"burst","values":["a","b"],"x":1)", 400, "nknown member"},
           row{"quota", R"("policy":"burst","values":["a","b"],"seconds":1)", 400, "quota must be"},
           row{"quota", R"("policy":"burst","values":["a","b"],"quota":-1,"seconds":1)", 400,
               "quota must be"},
           row{"quota", R"("policy":"burst","values":["a","b"],"quota":1.5,"seconds":1)", 400,
               "quota must be"},
           row{"quota",
               R"("policy":"burst","values":["a","b"],"quota":1000000000000000,"seconds":1)", 400,
               "quota must be"},
           row{"quota", R"("policy":"burst","values":["a","b"],"quota":1,"seconds":0)", 400,
               "seconds must be"},
           row{"quota", R"("policy":"burst","values":["a","b"],"quota":1,"seconds":2592001)", 400,
               "seconds must be"},
           row{"other", "", 404, "nothing at this path"},
       }) {
    SCOPED_TRACE(members);
    expect_problem(post_to(with, what, members), status, part);
  }
  expect_problem(ask(with, "POST", "/api/v1/partitions/lookup", "{"), 400, "not JSON");
  expect_problem(ask(with, "POST", "/api/v1/partitions/lookup", "[]"), 400, "JSON object");
  expect_problem(
      ask(with, "POST", "/api/v1/partitions/reset", "{}", "Content-Type: text/plain\r\n"), 415,
      "application/json");
  expect_problem(
      ask(with, "POST", "/api/v1/partitions/reset", "{}", "Origin: http://evil.example\r\n"), 403,
      "other origins");
  expect_problem(ask(with, "GET", "/api/v1/partitions/reset"), 405, "POST");
  expect_problem(ask(with, "POST", "/api/v1/partitions/overrides"), 405, "DELETE");
  expect_problem(ask(with, "DELETE", "/api/v1/partitions/overrides?policy=burst"), 400, "key");
}

}  // namespace
}  // namespace tidegate::e2e
