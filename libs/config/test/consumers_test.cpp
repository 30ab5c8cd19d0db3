// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/config.hpp>

#include <tidegate/config/consumers.hpp>
#include <tidegate/config/describe.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

// SHA-256 of "alpha" and of "beta".
constexpr std::string_view alpha =
    "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8";
constexpr std::string_view beta =
    "f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753";

auto key(std::string_view digest, std::string const& name = "main") -> std::string {
  return "{name: " + name + ", sha256: " + std::string(digest) + "}";
}

auto fault_texts(std::vector<config_fault> const& faults) -> std::vector<std::string> {
  std::vector<std::string> texts;
  for (auto const& fault : faults) {
    texts.push_back(to_string(fault).substr(2));
  }
  return texts;
}

auto faults(std::string_view text) -> std::vector<std::string> {
  auto const made = parse_config(text, "t");
  return made ? std::vector<std::string>() : fault_texts(made.error());
}

auto parsed(std::string_view text) -> config {
  auto made = parse_config(text, "dir/t.yaml");
  EXPECT_TRUE(made) << (made ? "" : to_string(made.error().front()));
  return made ? *std::move(made) : config{};
}

/// A route with `auth`, and consumers.
auto with_auth(std::string const& auth, std::string const& before = "") -> std::string {
  return "consumers: {acme: {keys: [" + key(alpha) + "]}}\n" + before +
         "upstreams: {a: 'http://127.0.0.1:1'}\nroutes: [{match: {path: /**}, upstream: a, auth: "
         "{" +
         auth + "}}]\n";
}

TEST(config_consumers, reads_who_may_ask) {
  auto const made =
      parsed("consumers:\n  acme: {plan: pro, keys: [" + key(alpha) +
             ", {name: next, sha256: " + std::string(beta) +
             ", expires: 2027-01-01T00:00:00Z}], attributes: {region: eu, seats: 5}}\n"
             "  free rider: {}\n"
             "routes: [{match: {path: /**}, service: echo}]\n");
  EXPECT_TRUE(made.consumers.given);
  ASSERT_EQ(made.consumers.listed.size(), 2U);
  auto const& acme = made.consumers.listed[0];
  EXPECT_EQ(acme.name, "acme");
  EXPECT_EQ(acme.plan, "pro");
  ASSERT_EQ(acme.keys.size(), 2U);
  EXPECT_EQ(acme.keys[0].digest, sha256::of(std::string_view("alpha")));
  EXPECT_FALSE(acme.keys[0].expires);
  EXPECT_EQ(acme.keys[1].expires, std::chrono::sys_days(std::chrono::year(2027) / 1 / 1));
  EXPECT_THAT(acme.attributes,
              ElementsAre(consumer_attribute{"region", "eu"}, consumer_attribute{"seats", "5"}));
  EXPECT_EQ(made.consumers.listed[1], (consumer_config{.name = "free rider"}));
}

TEST(config_consumers, takes_a_file_for_a_place_and_a_mapping_for_a_consumer) {
  auto const file =
      parsed("consumers: {file: who.yaml}\nroutes: [{match: {path: /**}, service: echo}]\n");
  EXPECT_EQ(file.consumers.file, "dir/who.yaml");
  EXPECT_THAT(file.consumers.listed, IsEmpty());
  auto const consumer =
      parsed("consumers: {file: {plan: a}}\nroutes: [{match: {path: /**}, service: echo}]\n");
  EXPECT_EQ(consumer.consumers.file, "");
  EXPECT_EQ(consumer.consumers.listed.at(0).name, "file");
}

TEST(config_consumers, shows_no_digest_among_the_effective_options) {
  auto const made = parsed(with_auth("api-keys: {in: bearer}"));
  std::string all;
  for (auto const& option : made.effective) {
    all += option.path + "=" + option.value + "\n";
  }
  EXPECT_THAT(all, HasSubstr("consumers.acme.keys[main].sha256=(hidden)\n"));
  EXPECT_THAT(all, testing::Not(HasSubstr(std::string(alpha))));
  EXPECT_THAT(all, HasSubstr("routes[/**].auth.api-keys.in=[bearer]\n"));
  auto const file =
      parsed("consumers: {file: who.yaml}\nroutes: [{match: {path: /**}, service: echo}]\n");
  auto const found = std::ranges::find(file.effective, "consumers.file", &effective_option::path);
  ASSERT_NE(found, file.effective.end());
  EXPECT_EQ(found->value, "who.yaml");
}

TEST(config_consumers, says_what_is_wrong_and_where) {
  std::string const route = "\nroutes: [{match: {path: /**}, service: echo}]\n";
  struct row {
    std::string consumers;
    std::vector<std::string> wanted;
  };
  for (auto const& [consumers, wanted] : std::vector<row>{
           {"[a]", {"1:12: consumers: expected a mapping from names"}},
           {"{a: 1}",
            {"1:16: expected a mapping for \"consumers\" (keys: plan, keys, attributes)"}},
           {"{store: 'sqlite:a.db'}",
            {"1:13: \"store\" is not available in this version (expected file: FILE, or a mapping "
             "from names)"}},
           {"{a: {plans: b}}",
            {"1:17: unknown key \"plans\"; did you mean \"plan\"? (expected plan, keys, "
             "attributes)"}},
           {"{a: {keys: [{name: x}]}}",
            {"1:24: \"sha256\" is missing (expected 64 lower-case hexadecimal digits)"}},
           {"{a: {keys: [" + key("alpha") + "]}}",
            {"1:45: sha256: invalid SHA-256 digest (expected 64 lower-case hexadecimal digits)"}},
           {"{a: {keys: [{name: x, sha256: " + std::string(alpha) + ", expires: 2027-02-30}]}}",
            {"1:117: expires: invalid time \"2027-02-30\" (expected a time, e.g. "
             "2027-01-01T00:00:00Z)"}},
           {"{a: {keys: [" + key(alpha) + ", " + key(beta) + "]}}",
            {"1:119: name: duplicate \"main\""}},
           {"{a: {keys: [" + key(alpha) + "]}, b: {keys: [" + key(alpha) + "]}}",
            {"1:146: sha256: same key as one of \"a\""}},
           {"{a: {attributes: {\"b c\": d}}}",
            {"1:30: invalid name \"b c\" (expected letters, digits and characters of "
             "!#$%&'*+-.^_`|~)"}},
       }) {
    EXPECT_EQ(faults("consumers: " + consumers + route), wanted) << consumers;
  }
}

TEST(config_consumers, reads_a_file_which_is_the_mapping_itself) {
  auto const made = parse_consumers("acme: {plan: pro, keys: [" + key(alpha) + "]}\n", "w");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->at(0).name, "acme");
  EXPECT_TRUE(parse_consumers("{}", "w"));
  struct row {
    std::string text;
    std::string wanted;
  };
  for (auto const& [text, wanted] : std::vector<row>{
           {"", "1:1: expected a mapping from names of consumers; {} for a file without any"},
           {"- a\n", "1:1: expected a mapping from names of consumers; {} for a file without any"},
           {"a: {plan: '${PLAN}'}\n",
            "1:11: \"${PLAN}\": a file of consumers has no variables (expected the value itself)"},
           {"a: {keys: [{sha256: x}]}\n",
            "1:12: \"name\" is missing (expected a name of printable ASCII characters)"},
           {"a: [\n", "2:1: this is not YAML: a ] or a comma is missing; the line: \"a: [\""},
       }) {
    auto const refused = parse_consumers(text, "w");
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(fault_texts(refused.error()).front(), wanted);
  }
}

TEST(config_consumers, are_let_in_by_keys_in_any_place) {
  auto const made = parsed(with_auth(
      "api-keys: {in: [header:X-Api-Key, query:api_key, bearer]}, optional: true, "
      "forward-credentials: true, pass: {principal: X-Consumer, plan: X-Plan, attribute:r: X-R}"));
  auto const& auth = *made.routes[0].auth;
  using enum key_place::place_kind;
  EXPECT_THAT(auth.api_keys, ElementsAre(key_place{header, "x-api-key"},
                                         key_place{query, "api_key"}, key_place{bearer, ""}));
  EXPECT_TRUE(auth.optional);
  EXPECT_EQ(auth.forward_credentials, true);
  constexpr auto principal = ratelimit::partition_source_kind::principal;
  constexpr auto plan = ratelimit::partition_source_kind::plan;
  constexpr auto attribute = ratelimit::partition_source_kind::attribute;
  EXPECT_THAT(auth.pass, ElementsAre(passed_field{{principal, ""}, "X-Consumer"},
                                     passed_field{{plan, ""}, "X-Plan"},
                                     passed_field{{attribute, "r"}, "X-R"}));
  EXPECT_EQ(parsed(with_auth("api-keys: {in: bearer}")).routes[0].auth->forward_credentials,
            std::nullopt);
}

TEST(config_consumers, says_what_is_wrong_with_auth) {
  struct row {
    std::string auth;
    std::string wanted;
  };
  for (auto const& [auth, wanted] : std::vector<row>{
           {"api-keys: {}", "\"in\" is missing (expected header:NAME, query:NAME or bearer)"},
           {"api-keys: {in: []}", "in: empty list (expected at least one place)"},
           {"api-keys: {in: [cookie:a]}", "in: invalid place of a key \"cookie:a\" (expected"},
           {"api-keys: {in: [bearer, bearer]}", "in: duplicate \"bearer\""},
           {"api-keys: {in: [bearer, header:Authorization]}",
            "in: \"bearer\" and \"header:authorization\" cannot be combined"},
           {"api-keys: {in: [header:host]}", "in: \"header:host\": a request has one Host"},
           {"api-keys: {in: [header:cookie]}", "in: \"header:cookie\" has all cookies in one"},
           {"api-keys: {in: bearer}, pass: {who: X-A}",
            "pass: \"who\" cannot be passed (expected principal, plan or attribute:NAME)"},
           {"api-keys: {in: bearer}, pass: {claim:email: X-A}",
            "pass: \"claim:email\" is not available in this version (expected"},
           {"api-keys: {in: bearer}, pass: {principal: Content-Length}",
            "pass: \"Content-Length\": it says where a message ends"},
           {"api-keys: {in: bearer}, pass: {principal: x-a, plan: X-A}", "pass: duplicate \"X-A\""},
           {"api-keys: {in: bearer}, jwt: {}", "\"jwt\" is not available in this version"},
       }) {
    auto const found = faults(with_auth(auth));
    ASSERT_EQ(found.size(), 1U) << auth << testing::PrintToString(found);
    EXPECT_THAT(found[0], HasSubstr(wanted)) << auth;
  }
  EXPECT_THAT(
      faults("routes: [{match: {path: /**}, service: echo, auth: {api-keys: {in: bearer}}}]"),
      ElementsAre("1:53: api-keys: needs \"consumers\" at the top of the file"));
}

// ---- quotas by plan ----

auto with_quota(std::string const& policy, std::string const& more = "") -> std::string {
  return with_auth("api-keys: {in: bearer}}, limits: [p], cost: {default: 1" + more,
                   "policies: {p: {" + policy + "}}\n");
}

TEST(config_quota_choice, has_a_quota_for_each_plan) {
  auto const made =
      parsed(with_quota("quota: {by: plan, free: 100, pro: 5000, none: 0, default: 10}, window: "
                        "1m, algorithm: gcra"));
  auto const& policy = made.policies[0];
  ASSERT_TRUE(policy.choice);
  EXPECT_EQ(policy.policy.quota(), 10);
  for (auto const& [plan, quota] : std::vector<std::pair<std::string_view, std::int64_t>>{
           {"free", 100}, {"pro", 5000}, {"none", 0}, {"", 10}, {"other", 10}, {"default", 10}}) {
    EXPECT_EQ(policy.choice->quota_for(plan, 10), quota) << plan;
  }
  EXPECT_EQ(policy.choice->largest(10), 5000);
  EXPECT_EQ(policy.choice->smallest(10), 10);
  auto const pro = policy.choice->policy_with(policy.policy, 5000);
  EXPECT_EQ(pro.quota(), 5000);
  EXPECT_EQ(pro.burst(), 5000);
  EXPECT_EQ(policy.choice->policy_with(policy.policy, 0).cost_max(), 0);
}

TEST(config_quota_choice, gives_every_plan_the_same_burst) {
  auto const made =
      parsed(with_quota("quota: {by: plan, free: 100, pro: 5000, default: 0}, window: 1m, "
                        "algorithm: gcra, burst: 20"));
  auto const& policy = made.policies[0];
  EXPECT_EQ(policy.policy.cost_max(), 0);
  for (auto const quota : {100, 5000}) {
    EXPECT_EQ(policy.choice->policy_with(policy.policy, quota).burst(), 20);
  }
}

TEST(config_quota_choice, takes_the_number_from_an_attribute) {
  auto const made = parsed(with_quota(
      "quota: {by: attribute:quota, default: 10, max: 1MiB}, window: 1m, unit: content-bytes"));
  auto const& choice = *made.policies[0].choice;
  for (auto const& [value, quota] :
       std::vector<std::pair<std::string_view, std::int64_t>>{{"0", 0},
                                                              {"7", 7},
                                                              {"9999999", 1024 * 1024},
                                                              {"", 10},
                                                              {"-1", 10},
                                                              {"7.5", 10},
                                                              {"0x7", 10},
                                                              {"99999999999999999999", 10}}) {
    EXPECT_EQ(choice.quota_for(value, 10), quota) << value;
  }
}

TEST(config_quota_choice, says_what_is_wrong) {
  struct row {
    std::string quota;
    std::string wanted;
  };
  for (auto const& [quota, wanted] : std::vector<row>{
           {"{free: 1, default: 1}", "quota: \"by\" is missing (expected plan or attribute:NAME)"},
           {"{by: plan, free: 1}", "quota: \"default\" is missing (expected a number"},
           {"{by: principal, default: 1}", "by: invalid source of a quota \"principal\" (expected"},
           {"{by: claim:plan, default: 1}", "by: \"claim:plan\" is not available in this version"},
           {"{by: plan, default: 1, free: -1}", "free: invalid quota \"-1\""},
           {"{by: plan, default: 1, free: 1MiB}", "free: \"1MiB\" is a size, which is only for"},
           {"{by: plan, default: 1, max: 5}", "max: only with by: attribute:NAME"},
           {"{by: plan, default: 0, free: 0}", "quota: every plan has 0"},
           {"{by: plan, default: 1, a: 1, a: 2}", "duplicate plan \"a\""},
           {"{by: attribute:a, default: 1}", "quota: \"max\" is missing"},
           {"{by: attribute:a, default: 9, max: 5}", "max: less than the default, or 0"},
           {"{by: attribute:a, default: 1, max: 5, free: 1}", "quota: unknown key \"free\""},
       }) {
    auto const found = faults(with_quota("quota: " + quota + ", window: 1m"));
    ASSERT_FALSE(found.empty()) << quota;
    EXPECT_THAT(found[0], HasSubstr(wanted)) << quota << testing::PrintToString(found);
  }
}

TEST(config_quota_choice, goes_with_a_log_and_with_windows_of_the_calendar) {
  auto const found =
      faults(with_quota("quota: {by: plan, a: 10001, default: 1}, window: 1m, algorithm: log"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0], HasSubstr("10000"));
  auto const monthly = parsed(with_quota(
      "quota: {by: plan, a: 5, default: 1}, window: {calendar: month}, algorithm: fixed"));
  EXPECT_TRUE(monthly.policies[0].calendar);
  EXPECT_EQ(monthly.policies[0].choice->policy_with(monthly.policies[0].policy, 5).quota(), 5);
}

TEST(config_quota_choice, warns_of_a_cost_that_some_plan_can_never_pay) {
  auto const policy = "quota: {by: plan, free: 3, pro: 50, default: 10}, window: 1m";
  auto const made = parsed(with_quota(policy, ", \"POST /a\": 5"));
  ASSERT_EQ(made.warnings.size(), 1U);
  EXPECT_THAT(made.warnings[0].message,
              HasSubstr("cost: 5 is more than policy \"p\" can ever admit for some callers (3)"));
  EXPECT_THAT(faults(with_quota(policy, ", \"POST /a\": 51")).at(0),
              HasSubstr("cost: 51 is more than policy \"p\" can ever admit (expected at most 50)"));
  EXPECT_THAT(parsed(with_quota("quota: {by: plan, free: 0, pro: 50, default: 5}, window: 1m",
                                ", \"POST /a\": 5"))
                  .warnings,
              IsEmpty());
}

TEST(config_quota_choice, warns_where_no_caller_has_a_plan) {
  auto const made = parsed(
      "policies: {p: {quota: {by: plan, a: 1, default: 1}, window: 1m}}\n"
      "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n");
  ASSERT_EQ(made.warnings.size(), 1U);
  EXPECT_THAT(made.warnings[0].message, HasSubstr("the route has no \"auth\""));
}

TEST(config_quota_choice, keeps_quotas_apart_in_draft_07) {
  auto const with = [](std::string const& second) {
    return with_auth(
        "api-keys: {in: bearer}}, limits: [p, q], cost: {default: 1",
        "fields: {ratelimit: draft-07}\npolicies:\n  p: {quota: {by: plan, a: 1, b: 2, "
        "default: 9}, window: 1m}\n  q: {quota: " +
            second + ", window: 1h}\n");
  };
  EXPECT_THAT(faults(with("3")), IsEmpty());
  EXPECT_THAT(faults(with("{by: plan, a: 2, b: 1, default: 5}")), IsEmpty());
  EXPECT_THAT(faults(with("2")).at(0), HasSubstr("has the same quota as \"p\""));
  EXPECT_THAT(faults(with("9")).at(0), HasSubstr("has the same quota as \"p\""));
  EXPECT_THAT(faults(with("{by: attribute:x, default: 20, max: 30}")).at(0),
              HasSubstr("may have the same quota as \"p\""));
}

TEST(config_quota_choice, is_described_for_programs_and_people) {
  auto const by_plan =
      parsed(with_quota("quota: {by: plan, free: 1, pro: 50, default: 2}, window: 1m"));
  EXPECT_THAT(
      describe_as_json(by_plan),
      HasSubstr(R"("quota":2,"quotas":{"by":"plan","default":2,"plans":{"free":1,"pro":50}})"));
  EXPECT_THAT(
      describe_as_html(by_plan),
      HasSubstr("free: 1 requests; pro: 50 requests; all others: 2 requests in 60 seconds"));
  auto const by_attribute =
      parsed(with_quota("quota: {by: attribute:q, default: 2, max: 9}, window: 1m"));
  EXPECT_THAT(describe_as_json(by_attribute),
              HasSubstr(R"("quotas":{"by":"attribute:q","default":2,"max":9})"));
}

}  // namespace
}  // namespace tidegate::gateway
