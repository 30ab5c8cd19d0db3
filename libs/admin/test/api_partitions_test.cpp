// SPDX-License-Identifier: Apache-2.0
#include "api/api_partitions.hpp"

#include "control_fixture.hpp"

#include <tidegate/ratelimit/abuse.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using enum wire::method;

constexpr std::string_view settings = R"(policies:
  burst: {quota: 2, window: 1h, algorithm: fixed, partition: [header:x-api-key, method]}
  other: {quota: 9, window: 1h, algorithm: fixed, partition: [header:x-api-key]}
  address: {quota: 5, window: 1h, partition: [client-ip]}
  place: {quota: 5, window: 1h, partition: [host, path]}
  slots: {quota: 5, unit: concurrent-requests, partition: []}
  unused: {quota: 5, window: 1h}
routes:
  - {match: {path: /a/**}, service: echo, limits: [burst, other, slots]}
  - {match: {path: /b/**}, service: echo, limits: [address, place]}
)";

// printf 'header:x-api-key=swordfish\nmethod=GET\n' | sha256sum | head -c 32
constexpr std::string_view swordfish_key = "150e641dbfa4728362cba4baad1a7196";
constexpr std::string_view swordfish = R"("policy":"burst","values":["swordfish","GET"])";
constexpr std::string_view swordfish_by_key =
    R"("policy":"burst","key":"150e641dbfa4728362cba4baad1a7196")";

class admin_api_partitions : public testing::Test {
 protected:
  auto ask(wire::method method, std::string_view target, std::string_view content = "",
           std::string_view content_type = json_content) -> admin_answer {
    with.loop->turn(0ms);
    return answer_of(*with.loop, [&](auto reply) {
      api.answer(
          make_request(method, target, content, content_type),
          [this](std::string_view words, int status) {
            notes.push_back(std::string(words) + ": " + std::to_string(status));
          },
          std::move(reply));
    });
  }
  /// `members` are those of the content.
  auto post_to(std::string_view action, std::string_view members) -> admin_answer {
    return ask(post, "/api/v1/partitions/" + std::string(action), "{" + std::string(members) + "}");
  }
  auto use() -> std::string { return with.get("/a/x", "X-Api-Key: swordfish\r\n"); }

  control_fixture with{std::string(settings)};
  partition_api api{with.seen()};
  std::vector<std::string> notes;
};

TEST_F(admin_api_partitions, refuses_contents_that_it_does_not_understand) {
  struct row {
    std::string_view action;
    std::string_view members;
    int status;
    std::string_view part;
  };
  for (auto const& [action, members, status, part] : {
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
           row{"lookup", R"("policy":"burst","key":"0")", 404, "was seen lately"},
           row{"lookup", R"("policy":"slots","values":["a"])", 400, "all requests are in one"},
           row{"lookup", R"("policy":"address","values":["here"])", 400, "must be an address"},
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
           row{"quota", R"("policy":"burst","values":["a","b"],"quota":1)", 400, "seconds must be"},
           row{"quota", R"("policy":"burst","values":["a","b"],"quota":1,"seconds":0)", 400,
               "seconds must be"},
           row{"quota", R"("policy":"burst","values":["a","b"],"quota":1,"seconds":2592001)", 400,
               "seconds must be"},
       }) {
    SCOPED_TRACE(members);
    expect_problem(post_to(action, members), status, part);
  }
  constexpr std::string_view path = "/api/v1/partitions/lookup";
  expect_problem(ask(post, path, "{"), 400, "The body is not JSON: ");
  expect_problem(ask(post, path, ""), 400, "The body is not JSON: ");
  expect_problem(ask(post, path, "[]"), 400, "JSON object");
  expect_problem(ask(post, path, "{}", "text/plain"), 415, "application/json");
}

TEST_F(admin_api_partitions, notes_refused_changes_and_no_lookups) {
  (void)post_to("lookup", swordfish);
  (void)post_to("lookup", "");
  EXPECT_THAT(notes, IsEmpty());
  (void)post_to("reset", "");
  (void)post_to("quota", R"("policy":"none")");
  EXPECT_THAT(notes, ElementsAre("reset a partition: 400", "give a partition another quota: 404"));
}

TEST_F(admin_api_partitions, tells_what_is_left_without_spending_it) {
  EXPECT_EQ(post_to("lookup", swordfish).content,
            R"({"policy":"burst","partition":[{"source":"header:x-api-key"},)"
            R"({"source":"method","value":"GET"}],"key":"150e641dbfa4728362cba4baad1a7196",)"
            R"("quota":2,"remaining":2,"reset":3600,"blocked":false})"
            "\n");
  (void)use();
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(post_to("lookup", swordfish).content, HasSubstr(R"("quota":2,"remaining":1,)"));
  }
  EXPECT_THAT(post_to("lookup", R"("policy":"slots","values":[])").content,
              HasSubstr(R"("quota":5,"remaining":5,"blocked":false})"));
}

TEST_F(admin_api_partitions, takes_values_in_any_spelling) {
  struct row {
    std::string_view members;
    std::string_view shown;
  };
  for (auto const& [members, shown] : {
           row{R"("policy":"address","values":["127.0.0.1"])", R"("value":"127.0.0.1")"},
           row{R"("policy":"address","values":["2001:DB8:0:0::7"])", R"("value":"2001:db8::/64")"},
           row{R"("policy":"address","values":["2001:db8::/64"])", R"("value":"2001:db8::/64")"},
           row{R"("policy":"place","values":["A.Example","/b/%7Ea"])",
               R"("value":"a.example"},{"source":"path","value":"/b/~a"})"},
       }) {
    EXPECT_THAT(post_to("lookup", members).content, HasSubstr(shown)) << members;
  }
}

TEST_F(admin_api_partitions, finds_by_its_key_what_clients_used_and_what_was_shown) {
  expect_problem(post_to("lookup", swordfish_by_key), 404, "by the values of its sources");
  (void)use();
  EXPECT_THAT(post_to("lookup", swordfish_by_key).content,
              AllOf(HasSubstr(R"("remaining":1,)"), Not(HasSubstr("swordfish"))));
  // It is none of a policy with other sources.
  expect_problem(post_to("lookup", R"("policy":"other","key":"150e641dbfa4728362cba4baad1a7196")"),
                 404, "was seen lately");
  api.shown().add("header:x-api-key=shark\nmethod=GET\n");
  EXPECT_EQ(post_to("lookup", R"("policy":"burst","key":")" +
                                  partition_key_of("header:x-api-key=shark\nmethod=GET\n") + "\"")
                .status,
            200);
}

TEST_F(admin_api_partitions, resets_one_partition_of_one_policy) {
  for (int i = 0; i < 3; ++i) {
    (void)use();
  }
  EXPECT_THAT(use(), HasSubstr(" 429 "));
  auto const done = post_to("reset", swordfish_by_key);
  EXPECT_EQ(done.status, 200);
  EXPECT_THAT(done.content, HasSubstr(R"("quota":2,"remaining":2,)"));
  EXPECT_THAT(post_to("lookup", R"("policy":"other","values":["swordfish"])").content,
              HasSubstr(R"("remaining":7,)"));
  EXPECT_THAT(use(), HasSubstr(" 200 "));
  EXPECT_THAT(notes, ElementsAre("reset the partition " + std::string(swordfish_key) +
                                 " of the policy burst: 200"));
  expect_problem(post_to("reset", R"("policy":"slots","values":[])"), 409, "held until they end");
}

TEST_F(admin_api_partitions, gives_another_quota_lists_it_and_takes_it_back) {
  EXPECT_EQ(ask(get, "/api/v1/partitions/overrides").content, "{\"overrides\":[],\"most\":1000}\n");
  auto const given = post_to("quota", std::string(swordfish) + R"(,"quota":50,"seconds":600)");
  EXPECT_EQ(given.status, 200);
  EXPECT_THAT(given.content, HasSubstr(R"("quota":50,"remaining":50,"reset":3600,"blocked":false,)"
                                       R"("usual-quota":2,"seconds":600})"));
  EXPECT_THAT(use(), HasSubstr("\"burst\";q=50;"));
  EXPECT_THAT(
      ask(get, "/api/v1/partitions/overrides").content,
      AllOf(ContainsRegex(R"("key":"150e641dbfa4728362cba4baad1a7196","usual-quota":2,"quota":50,)"
                          R"("seconds":(600|59[0-9])\}\],"most":1000\})"),
            Not(HasSubstr("swordfish"))));
  struct row {
    std::string_view name;
    std::string query;
    int status;
  };
  for (auto const& [name, query, status] : std::vector<row>{
           {"no key", "policy=burst", 400},
           {"no policy", "key=" + std::string(swordfish_key), 400},
           {"another policy", "policy=other&key=" + std::string(swordfish_key), 404},
           {"another key", "policy=burst&key=0", 404},
           {"it is there", "policy=burst&key=" + std::string(swordfish_key), 204},
           {"it is gone", "policy=burst&key=" + std::string(swordfish_key), 404},
       }) {
    EXPECT_EQ(ask(delete_, "/api/v1/partitions/overrides?" + query).status, status) << name;
  }
  EXPECT_THAT(use(), HasSubstr("\"burst\";q=2;"));
  EXPECT_THAT(notes, ElementsAre("give the partition " + std::string(swordfish_key) +
                                     " of the policy burst a quota of 50 for 600 s: 200",
                                 "remove the temporary quota of the partition " +
                                     std::string(swordfish_key) + " of the policy burst: 204"));
}

TEST_F(admin_api_partitions, ends_a_temporary_quota_by_itself) {
  EXPECT_EQ(post_to("quota", std::string(swordfish) + R"(,"quota":0,"seconds":1)").status, 200);
  EXPECT_THAT(use(), HasSubstr(" 429 "));
  turn_until(*with.loop, [&] { return with.seen().overrides().list().empty(); });
  EXPECT_THAT(use(), HasSubstr(" 200 "));
}

TEST_F(admin_api_partitions, has_so_many_temporary_quotas_and_no_more) {
  auto const give = [&](std::size_t n) {
    return post_to("quota", R"("policy":"other","values":[")" + std::to_string(n) +
                                R"("],"quota":1,"seconds":600)");
  };
  for (std::size_t i = 0; i < store::quota_overrides::entries_max; ++i) {
    ASSERT_EQ(give(i).status, 200);
  }
  expect_problem(give(store::quota_overrides::entries_max), 409, "remove one first");
  EXPECT_EQ(give(0).status, 200);  // that has one
}

TEST(admin_api_partitions_abuse, shows_a_block_and_lifts_it) {
  control_fixture with(
      "policies:\n"
      "  p: {quota: 1, window: 1h, partition: [header:x-api-key],\n"
      "      abuse: {refusals: 2, within: 1m, block: 10m}}\n"
      "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n");
  partition_api api(with.seen());
  auto const ask = [&](std::string_view action) {
    with.loop->turn(0ms);
    return answer_of(*with.loop, [&](auto reply) {
      api.answer(
          make_request(post, "/api/v1/partitions/" + std::string(action),
                       R"({"policy":"p","values":["greedy"]})"),
          [](std::string_view, int) {}, std::move(reply));
    });
  };
  for (int i = 0; i < 5; ++i) {
    (void)with.get("/a", "X-Api-Key: greedy\r\n");
  }
  EXPECT_THAT(ask("lookup").content,
              ContainsRegex(R"("blocked":true,"blocked-for":(5[0-9][0-9]|600)\})"));
  EXPECT_THAT(ask("reset").content, HasSubstr("\"blocked\":false}"));
  EXPECT_THAT(with.get("/a", "X-Api-Key: greedy\r\n"), HasSubstr(" 200 "));
}

}  // namespace
}  // namespace tidegate::gateway
