// SPDX-License-Identifier: Apache-2.0
#include <tidegate/explain.hpp>

#include <tidegate/http/field.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::explain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

/// Fri, 17 May 2024 12:00:00 GMT.
constexpr std::chrono::sys_seconds now{1715947200s};

auto explain(std::vector<std::string> const& lines, std::optional<int> status = std::nullopt)
    -> std::vector<finding> {
  std::vector<http::field_view> fields;
  for (auto const& line : lines) {
    fields.push_back(*parse_field_line(line));
  }
  return explain_fields({.fields = fields, .status = status}, now);
}

/// What it says where nothing is wrong, one text for each finding.
auto said(std::vector<std::string> const& lines) -> std::vector<std::string> {
  std::vector<std::string> texts;
  for (auto const& one : explain(lines)) {
    if (one.level == severity::info) {
      texts.push_back(one.text);
    }
  }
  return texts;
}

auto broken(std::vector<std::string> const& lines, std::optional<int> status = std::nullopt)
    -> std::vector<std::string> {
  std::vector<std::string> ids;
  for (auto const& one : explain(lines, status)) {
    if (one.level != severity::info) {
      ids.emplace_back(one.rule);
    }
  }
  return ids;
}

// ── what fields mean ──

TEST(explain_fields, reads_fields_that_a_server_tries_out_where_the_others_are_missing) {
  EXPECT_EQ(said({R"(Beta-RateLimit: "burst";r=38;t=12)",
                  R"(Beta-RateLimit-Policy: "burst";q=100;w=60)"}),
            said({R"(RateLimit: "burst";r=38;t=12)", R"(RateLimit-Policy: "burst";q=100;w=60)"}));
  EXPECT_EQ(said({R"(Beta-RateLimit: "burst";r=1;t=1)", R"(RateLimit: "burst";r=38;t=12)"}),
            said({R"(RateLimit: "burst";r=38;t=12)"}));
  EXPECT_EQ(said({"Beta-RateLimit-Limit: 10", "Beta-RateLimit-Remaining: 3"}),
            said({"RateLimit-Limit: 10", "RateLimit-Remaining: 3"}));
}

TEST(explain_fields, puts_a_limit_and_its_policy_together) {
  EXPECT_THAT(said({R"(RateLimit: "burst";r=38;t=12)", R"(RateLimit-Policy: "burst";q=100;w=60)"}),
              ElementsAre(R"("burst": 38 of 100 requests left in this minute, resets in 12 s; )"
                          "pace yourself to 3.1 requests a second until then"));
}

TEST(explain_fields, says_what_an_item_of_draft_09_means) {
  EXPECT_THAT(said({R"(RateLimit: "a";r=5)"}),
              ElementsAre(R"("a": 5 units left, no word on when it resets)"));
  EXPECT_THAT(said({R"(RateLimit: "a";r=0;t=7)"}),
              ElementsAre(R"("a": nothing left, resets in 7 s; wait until then)"));
  EXPECT_THAT(
      said({R"(RateLimit: "a";r=1;t=3600)"}),
      ElementsAre(
          R"("a": 1 unit left, resets in 1 h; pace yourself to one request every 1 h until then)"));
  EXPECT_THAT(said({R"(RateLimit: "day";r=100;t=36000)",
                    R"(RateLimit-Policy: "hour";q=1000;w=3600, "day";q=5000;w=86400)"}),
              ElementsAre(R"("day": 100 of 5000 requests left in this day, resets in 10 h; )"
                          "pace yourself to one request every 6 min until then",
                          R"("hour": 1000 requests an hour; it is not said how much is left)"));
}

TEST(explain_fields, does_not_invite_to_far_more_than_the_policy_means) {
  // The example of draft-09, section 8.5.
  auto const lines = std::vector<std::string>{R"(RateLimit: "p";r=10000;t=10)",
                                              R"(RateLimit-Policy: "p";q=10000;w=1000)"};
  EXPECT_THAT(said(lines), ElementsAre(testing::HasSubstr(
                               "pace yourself to 10 requests a second, as the policy has it")));
  EXPECT_THAT(broken(lines), ElementsAre("ratelimit-rate-uncapped"));
}

TEST(explain_fields, says_that_clients_ask_before_a_reset_that_is_far_away) {
  EXPECT_THAT(said({R"(RateLimit: "a";r=0;t=1000000)"}),
              ElementsAre(testing::HasSubstr("a client asks in between whether it still holds")));
  EXPECT_THAT(said({R"(RateLimit: "a";r=0;t=600)"}),
              ElementsAre(testing::Not(testing::HasSubstr("asks in between"))));
}

TEST(explain_fields, speaks_of_tokens_where_tokens_are_counted) {
  EXPECT_THAT(said({"x-ratelimit-limit-tokens: 150000", "x-ratelimit-remaining-tokens: 149984",
                    "x-ratelimit-reset-tokens: 6m0s"}),
              testing::Contains("149984 of 150000 tokens left, resets in 6 min; pace yourself to "
                                "416.6 tokens a second until then"));
}

TEST(explain_fields, knows_the_fields_of_single_vendors) {
  EXPECT_THAT(said({"anthropic-ratelimit-input-tokens-limit: 40000",
                    "anthropic-ratelimit-input-tokens-remaining: 0",
                    "anthropic-ratelimit-input-tokens-reset: 2024-05-17T12:00:30Z",
                    "anthropic-ratelimit-requests-limit: 50",
                    "anthropic-ratelimit-requests-remaining: 49"}),
              ElementsAre("nothing of 40000 tokens left, full again in 30 s; wait until then",
                          "49 of 50 requests left"));
  EXPECT_THAT(
      said({"X-Shopify-Shop-Api-Call-Limit: 32/40"}),
      ElementsAre("32 of 40 calls are in the bucket of the shop, which drains all the time"));
  EXPECT_THAT(said({"Stripe-Rate-Limited-Reason: global-concurrency"}),
              ElementsAre(R"("global-concurrency": too many requests of the account at the same )"
                          "time: wait for answers"));
  EXPECT_THAT(
      said({"X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset-After: 64.57"}),
      testing::Contains(testing::StartsWith("resets in 65 s")));
}

TEST(explain_fields, names_what_comes_beside_a_limit_and_what_looks_like_one) {
  EXPECT_THAT(
      said({"X-RateLimit-Used: 3", "X-RateLimit-Resource: core", "X-RateLimit-Bucket: ab",
            "X-RateLimit-Global: true", "X-RateLimit-Scope: shared", "X-Acme-RateLimit-Max: 9"}),
      ElementsAre(R"("3": so much of the limit is used)",
                  R"("core": the part of the API that the limit is for)",
                  R"("ab": names the quota: requests that get the same name share it)",
                  R"("true": the limit is that of the whole account, not of this endpoint)",
                  R"("shared": whose limit it is)",
                  R"("9": looks like a limit, but is not known here: see the documentation of )"
                  "the API"));
  EXPECT_THAT(said({"X-Limit: 3", "Rate: 4"}), testing::IsEmpty());
}

TEST(explain_fields, takes_the_time_from_now_where_a_moment_is_beside_it) {
  // As the documentation of Discord prints it.
  std::vector<std::string> const discord{
      "X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1470173023",
      "X-RateLimit-Reset-After: 1.5", "X-RateLimit-Bucket: abcd1234"};
  auto const all = said(discord);
  EXPECT_THAT(all, testing::Contains("a Unix time that is past, 2016-08-02T21:23:43Z; "
                                     "X-RateLimit-Reset-After counts instead"));
  EXPECT_THAT(all, testing::Contains("resets in 2 s, given in seconds from now"));
  EXPECT_THAT(all, testing::Contains("nothing of 5 left, resets in 2 s; wait until then"));
  EXPECT_THAT(all,
              testing::Contains("wait 2 s, as X-RateLimit-Reset-After says, which counts from now; "
                                "X-RateLimit-Reset says 2016-08-02T21:23:43Z, which is past"));
  EXPECT_THAT(said({"X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 900",
                    "X-RateLimit-Reset-After: 10"}),
              testing::Contains("wait 10 s, as X-RateLimit-Reset-After says, which counts from "
                                "now; X-RateLimit-Reset says 15 min"));
  EXPECT_THAT(said({"X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 10",
                    "X-RateLimit-Reset-After: 9.2"}),
              testing::Not(testing::Contains(testing::StartsWith("wait "))));
}

TEST(explain_fields, takes_only_numbers_for_a_moment) {
  EXPECT_THAT(said({"X-RateLimit-Reset: 1470173023.abc", "X-RateLimit-Reset-After: 2"}),
              testing::Not(testing::Contains(testing::HasSubstr("that is past"))));
  for (auto const* const name : {"X-RateLimit-Reset-Ms", "X-RateLimit-Reset-After"}) {
    EXPECT_THAT(broken({std::string(name) + ": 1470173023.x", std::string(name) + "-After: 5"}),
                testing::Contains("x-ratelimit-value"));
  }
}

TEST(explain_fields, says_in_short_which_wait_to_obey_where_fields_differ) {
  EXPECT_THAT(said({"Retry-After: 60", "X-RateLimit-Limit: 60", "X-RateLimit-Remaining: 0",
                    "X-RateLimit-Reset: 3240"}),
              testing::Contains("wait 60 s, as Retry-After says, which wins over every reset; "
                                "X-RateLimit-* says 54 min"));
  EXPECT_THAT(said({R"(RateLimit: "a";r=0;t=60)", "Retry-After: 60"}),
              testing::Not(testing::Contains(testing::HasSubstr("wins over"))));
}

TEST(explain_fields, keeps_advice_to_authors_apart_from_what_callers_need) {
  auto const text = to_text(
      explain({"X-RateLimit-Limit: 60", "X-RateLimit-Remaining: 5", "X-RateLimit-Reset: 30"}));
  auto const advice = text.find("For the authors of this API:");
  ASSERT_NE(advice, std::string::npos) << text;
  EXPECT_LT(text.find("5 of 60 left"), advice);
  EXPECT_GT(text.find("advice: "), advice);
  EXPECT_EQ(text.find("NaN"), std::string::npos);
}

TEST(explain_fields, knows_units_and_partition_keys) {
  EXPECT_THAT(
      said({R"(RateLimit: "bytes";r=1048576;t=1024;pk=:QXBwLTk5OQ==:)",
            R"(RateLimit-Policy: "bytes";q=52428800;qu="content-bytes";w=3600)"}),
      ElementsAre(
          R"("bytes": 1 MiB of 50 MiB of content left in this hour for the partition key "App-999", )"
          "resets in 17 min 4 s; pace yourself to 1 KiB a second until then"));
  EXPECT_THAT(said({R"(RateLimit: "slots";r=15)",
                    R"(RateLimit-Policy: "slots";q=20;qu="concurrent-requests")"}),
              ElementsAre(R"("slots": 15 of 20 requests at a time left)"));
  EXPECT_THAT(
      said({R"(RateLimit-Policy: "p";q=1;w=10;pk=:AAE=:)"}),
      ElementsAre(
          R"("p": 1 request in 10 s for the partition key of 2 octets; it is not said how much is left)"));
}

TEST(explain_fields, tells_partitions_of_one_policy_apart) {
  EXPECT_THAT(said({R"(RateLimit: "p";r=1;pk=:YQ==:, "p";r=2;pk=:Yg==:)",
                    R"(RateLimit-Policy: "p";q=10;pk=:YQ==:, "p";q=20;pk=:Yg==:)"}),
              ElementsAre(HasSubstr("1 of 10 requests"), HasSubstr("2 of 20 requests")));
}

TEST(explain_fields, says_what_draft_07_means) {
  EXPECT_THAT(said({"RateLimit: limit=100, remaining=50, reset=5",
                    "RateLimit-Policy: 100;w=10, 1000;w=3600"}),
              ElementsAre("50 of 100 requests left in this window of 10 s, resets in 5 s; "
                          "pace yourself to 10 requests a second until then",
                          "1000 requests an hour; it is not said how much is left"));
  EXPECT_THAT(said({"RateLimit: limit=10, reset=1"}),
              ElementsAre("of 10 units it is not said how many are left, resets in 1 s"));
}

TEST(explain_fields, says_how_long_to_wait) {
  EXPECT_THAT(said({"Retry-After: 120"}), ElementsAre("wait 2 min, then try again"));
  EXPECT_THAT(said({"Retry-After: 0"}), ElementsAre("try again at once"));
  EXPECT_THAT(said({"Retry-After: Fri, 17 May 2024 12:01:30 GMT"}),
              ElementsAre("wait until Fri, 17 May 2024 12:01:30 GMT, which is in 90 s"));
}

TEST(explain_fields, goes_by_the_clock_of_the_server_where_it_has_one) {
  EXPECT_THAT(
      said({"Date: Fri, 17 May 2024 12:01:00 GMT", "Retry-After: Fri, 17 May 2024 12:01:30 GMT"}),
      ElementsAre("wait until Fri, 17 May 2024 12:01:30 GMT, which is in 30 s"));
}

TEST(explain_fields, knows_the_wild_variants_of_a_reset) {
  auto const taken = [](std::string const& value) {
    return said(
        {"X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 38", "X-RateLimit-Reset: " + value});
  };
  auto const left =
      "38 of 100 left, resets in 12 s; pace yourself to 3.1 requests a second until then";
  EXPECT_THAT(taken("12"),
              ElementsAre("taken for seconds from now; no specification says which", left));
  EXPECT_THAT(
      taken("1715947212"),
      ElementsAre("taken for a Unix time, 2024-05-17T12:00:12Z; no specification says which",
                  left));
  EXPECT_THAT(taken("1715947212000"),
              ElementsAre("taken for a Unix time in milliseconds, 2024-05-17T12:00:12Z; no "
                          "specification says which",
                          left));
  EXPECT_THAT(taken("Fri, 17 May 2024 12:00:12 GMT"),
              ElementsAre("taken for an HTTP-date; no specification says which", left));
  EXPECT_THAT(taken("2024-05-17T12:00:12Z"),
              ElementsAre("taken for a date of RFC 3339; no specification says which", left));
  EXPECT_THAT(taken("12s"), ElementsAre("taken for a duration; no specification says which", left));
}

TEST(explain_fields, knows_the_wild_variants_of_names_and_lists) {
  EXPECT_THAT(said({"x-ratelimit-limit-minute: 60", "x-ratelimit-remaining-minute: 0",
                    "x-ratelimit-reset-minute: 9"}),
              ElementsAre("taken for seconds from now; no specification says which",
                          "nothing of 60 left in this minute, resets in 9 s; wait until then"));
  EXPECT_THAT(said({"X-Rate-Limit-Limit: 10, 10;w=1, 50;w=60", "X-Rate-Limit-Remaining: 9",
                    "X-Rate-Limit-Reset: 1"}),
              ElementsAre("taken for seconds from now; no specification says which",
                          "9 of 10 left in this second, resets in 1 s; pace yourself to 9 requests "
                          "a second until then"));
  EXPECT_THAT(
      said({"RateLimit-Limit: 10", "RateLimit-Remaining: 9", "RateLimit-Reset: 3"}),
      ElementsAre("seconds from now, as the drafts up to 06 have it",
                  "9 of 10 left, resets in 3 s; pace yourself to 3 requests a second until then"));
  EXPECT_THAT(said({"RateLimit-Reset: 1715947212"}),
              ElementsAre("taken for a Unix time, 2024-05-17T12:00:12Z; "
                          "the drafts up to 06 have seconds from now"));
  EXPECT_THAT(
      broken({"X-RateLimit-Limit: 10", "X-RateLimit-Remaining: 1", "X-RateLimit-Reset-Ms: 250"}),
      ElementsAre("x-ratelimit-only"));
}

TEST(explain_fields, knows_which_fields_a_draft_had) {
  auto const advice = [](std::string const& family) {
    return explain({family + "Limit: 10", family + "Remaining: 9", family + "Reset: 3"}).back();
  };
  EXPECT_EQ(advice("RateLimit-").rule, "x-ratelimit-only");
  EXPECT_THAT(advice("RateLimit-").text, testing::StartsWith("drafts up to 06 have these fields"));
  EXPECT_THAT(advice("X-RateLimit-").text,
              testing::StartsWith("no specification has these fields"));
}

TEST(explain_fields, does_not_warn_of_what_the_draft_says_both_ways) {
  auto const findings = explain({R"(RateLimit-Policy: "a";q=1;qu="request")"});
  EXPECT_EQ(count(findings, severity::warning), 0);
  EXPECT_EQ(count(findings, severity::advice), 1);
}

TEST(explain_fields, knows_what_a_key_is_made_of) {
  EXPECT_THAT(said({R"(Idempotency-Key: "8e03978e-40d5-43e8-bc93-6894a57f9324")"}),
              ElementsAre("a random UUID (version 4), 36 characters"));
  EXPECT_THAT(said({R"(Idempotency-Key: "018f866c-5e00-7000-8000-000000000000")"}),
              ElementsAre("a UUID of version 7, made at 2024-05-17T12:00:00Z, 36 characters"));
  EXPECT_THAT(
      said({R"(Idempotency-Key: "clkyoesmbgybucifusbbtdsbohtyuuwz")"}),
      ElementsAre(
          "a key of 32 characters, to be sent with every retry of one request and with no other"));
}

TEST(explain_fields, passes_over_all_other_fields) {
  EXPECT_THAT(explain({"Content-Type: text/html", "Cache-Control: no-store", "Date: nonsense",
                       "X-Request-Id: 1"}),
              IsEmpty());
  EXPECT_THAT(explain({}), IsEmpty());
}

TEST(explain_fields, bounds_what_it_says) {
  std::string items = "\"a\";r=1";
  for (int i = 0; i < 5000; ++i) {
    items += ", \"a\";r=1";
  }
  auto const findings = explain({"RateLimit: " + items});
  ASSERT_EQ(findings.size(), findings_max);
  // One of each item, and one of each that repeats the first.
  EXPECT_EQ(findings.back().text, "and 9802 more findings, which are left out");
}

/// The work is bounded too: this would take minutes if each limit went through all policies.
TEST(explain_fields, finds_the_policies_of_many_limits_at_once) {
  std::string policies = R"("p";q=1)";
  std::string limits = R"("a";r=1)";
  std::string matching = R"("p";r=1)";
  for (int i = 0; i < 4000; ++i) {
    policies += ", \"p" + std::to_string(i) + "\";q=1";
    limits += ", \"a" + std::to_string(i) + "\";r=1";
    matching += ", \"p" + std::to_string(i) + "\";r=1";
  }
  auto const strange = explain({"RateLimit: " + limits, "RateLimit-Policy: " + policies});
  ASSERT_EQ(strange.size(), findings_max);
  // Of each limit what it says and that it has no policy, and of each policy what it says.
  EXPECT_EQ(strange.back().text, "and 11804 more findings, which are left out");
  auto const known = explain({"RateLimit: " + matching, "RateLimit-Policy: " + policies});
  ASSERT_EQ(known.size(), findings_max);
  EXPECT_EQ(known.back().text, "and 3802 more findings, which are left out");
}

TEST(explain_fields, takes_the_first_policy_that_a_limit_can_be_about) {
  EXPECT_THAT(said({R"(RateLimit: "p";r=1;pk=:Yg==:, "p";r=2)",
                    R"(RateLimit-Policy: "p";q=10;pk=:YQ==:, "p";q=20, "p";q=30;pk=:Yg==:)"}),
              ElementsAre(HasSubstr("1 of 20 requests"), HasSubstr("2 of 10 requests"),
                          HasSubstr("30 requests")));
  EXPECT_THAT(said({R"(RateLimit: "p";r=1;pk=:Yg==:)",
                    R"(RateLimit-Policy: "p";q=30;pk=:Yg==:, "p";q=20)"}),
              ElementsAre(HasSubstr("1 of 30 requests"), HasSubstr("20 requests")));
}

// ── what is wrong with them ──

struct broken_row {
  std::string_view rule;
  std::vector<std::string> wrong;
  std::vector<std::string> right;  ///< nearly the same, and the rule holds
  std::optional<int> status{};
};

auto rows() -> std::vector<broken_row> const& {
  static std::vector<broken_row> const all = {
      {"ratelimit-syntax", {R"(RateLimit: "a;r=1)"}, {R"(RateLimit: "a";r=1)"}},
      {"ratelimit-syntax",
       {R"(RateLimit-Policy: "a";q=1;W=60)"},
       {R"(RateLimit-Policy: "a";q=1;w=60)"}},
      {"ratelimit-policy-empty", {"RateLimit-Policy: "}, {"RateLimit: "}},
      {"ratelimit-inner-list", {R"(RateLimit: ("a");r=1)"}, {R"(RateLimit: "a";r=1)"}},
      {"ratelimit-name-type", {"RateLimit: default;r=1"}, {R"(RateLimit: "default";r=1)"}},
      {"ratelimit-quota-missing",
       {R"(RateLimit-Policy: "a";w=60)"},
       {R"(RateLimit-Policy: "a";q=1)"}},
      {"ratelimit-quota-value",
       {R"(RateLimit-Policy: "a";q=-1)"},
       {R"(RateLimit-Policy: "a";q=0)"}},
      {"ratelimit-quota-value",
       {R"(RateLimit-Policy: "a";q=Infinity)"},
       {R"(RateLimit-Policy: "a";q=1)"}},
      {"ratelimit-quota-repeated",
       {"RateLimit-Policy: 10;w=1, 10;w=60"},
       {"RateLimit-Policy: 10;w=1, 11;w=60"}},
      {"ratelimit-unit-type",
       {R"(RateLimit-Policy: "a";q=1;qu=requests)"},
       {R"(RateLimit-Policy: "a";q=1;qu="requests")"}},
      {"ratelimit-unit-unknown",
       {R"(RateLimit-Policy: "a";q=1;qu="pounds")"},
       {R"(RateLimit-Policy: "a";q=1;qu="content-bytes")"}},
      {"ratelimit-unit-spelling",
       {R"(RateLimit-Policy: "a";q=1;qu="request")"},
       {R"(RateLimit-Policy: "a";q=1;qu="requests")"}},
      {"ratelimit-window-missing", {"RateLimit-Policy: 10"}, {"RateLimit-Policy: 10;w=1"}},
      {"ratelimit-window-value",
       {R"(RateLimit-Policy: "a";q=1;w=0)"},
       {R"(RateLimit-Policy: "a";q=1;w=1)"}},
      {"ratelimit-window-value",
       {R"(RateLimit-Policy: "a";q=1;w=0.5)"},
       {"RateLimit-Policy: 1;w=0"}},
      {"ratelimit-partition-key-type",
       {R"(RateLimit: "a";r=1;pk="me")"},
       {R"(RateLimit: "a";r=1;pk=:bWU=:)"}},
      {"ratelimit-parameter-prefix",
       {R"(RateLimit-Policy: "a";q=1;burst=2)"},
       {R"(RateLimit-Policy: "a";q=1;acme-burst=2)"}},
      {"ratelimit-parameter-prefix",
       {"RateLimit-Policy: 12;w=1;kind=1000"},
       {R"(RateLimit-Policy: 12;w=1;burst=1000;policy="leaky bucket", 100;w=60;comment="fixed")"}},
      {"ratelimit-limit-missing",
       {"RateLimit: remaining=5, reset=5"},
       {"RateLimit: limit=5, remaining=5, reset=5"}},
      {"ratelimit-limit-value",
       {"RateLimit: limit=NaN, remaining=5, reset=5"},
       {"RateLimit: limit=5, remaining=5, reset=5"}},
      {"ratelimit-remaining-missing", {R"(RateLimit: "a";t=1)"}, {R"(RateLimit: "a";r=1;t=1)"}},
      {"ratelimit-remaining-value", {R"(RateLimit: "a";r=NaN;t=1)"}, {R"(RateLimit: "a";r=0;t=1)"}},
      {"ratelimit-remaining-value",
       {"RateLimit: limit=5, remaining=-1, reset=5"},
       {"RateLimit: limit=5, reset=5"}},
      {"ratelimit-reset-missing",
       {"RateLimit: limit=5, remaining=5"},
       {"RateLimit: limit=5, remaining=5, reset=0"}},
      {"ratelimit-reset-value", {R"(RateLimit: "a";r=1;t=1.5)"}, {R"(RateLimit: "a";r=1;t=2)"}},
      {"ratelimit-reset-implausible",
       {R"(RateLimit: "a";r=1;t=1715947212)"},
       {R"(RateLimit: "a";r=1;t=86400)"}},
      {"ratelimit-reset-implausible",
       {R"(RateLimit: "a";r=1;t=12000)", R"(RateLimit-Policy: "a";q=1;w=60)"},
       {R"(RateLimit: "a";r=1;t=61)", R"(RateLimit-Policy: "a";q=1;w=60)"}},
      {"ratelimit-remaining-above-quota",
       {R"(RateLimit: "a";r=2)", R"(RateLimit-Policy: "a";q=1)"},
       {R"(RateLimit: "a";r=1)", R"(RateLimit-Policy: "a";q=1)"}},
      {"ratelimit-remaining-above-quota",
       {"RateLimit: limit=5, remaining=6, reset=5"},
       {"RateLimit: limit=5, remaining=5, reset=5"}},
      {"ratelimit-policy-unknown",
       {R"(RateLimit: "b";r=2)", R"(RateLimit-Policy: "a";q=2)"},
       {R"(RateLimit: "a";r=2)", R"(RateLimit-Policy: "a";q=2)"}},
      {"ratelimit-policy-unknown",
       {"RateLimit: limit=5, remaining=5, reset=5", "RateLimit-Policy: 6;w=6"},
       {"RateLimit: limit=5, remaining=5, reset=5", "RateLimit-Policy: 5;w=6"}},
      {"ratelimit-name-repeated",
       {R"(RateLimit: "a";r=2, "a";r=3)"},
       {R"(RateLimit: "a";r=2, "a";r=2;pk=:YQ==:)"}},
      {"ratelimit-drafts-mixed",
       {R"(RateLimit: "a";r=2)", "RateLimit-Policy: 6;w=6"},
       {"RateLimit: limit=6, remaining=5, reset=5", "RateLimit-Policy: 6;w=6"}},
      {"ratelimit-rate-uncapped",
       {R"(RateLimit: "a";r=10000;t=10)", R"(RateLimit-Policy: "a";q=10000;w=3600)"},
       {R"(RateLimit: "a";r=10000;t=1000)", R"(RateLimit-Policy: "a";q=10000;w=3600)"}},
      {"ratelimit-redirect-exhausted",
       {R"(RateLimit: "a";r=0;t=10)"},
       {R"(RateLimit: "a";r=1;t=10)"},
       301},
      {"ratelimit-from-cache",
       {R"(RateLimit: "a";r=1;t=10)", "Age: 3"},
       {R"(RateLimit: "a";r=1;t=10)", "Age: 0"}},
      {"retry-after-syntax", {"Retry-After: 1.5"}, {"Retry-After: 1"}},
      {"retry-after-syntax", {"Retry-After: -1"}, {"Retry-After: 0"}},
      {"retry-after-syntax",
       {"Retry-After: 2024-05-17T12:00:12Z"},
       {"Retry-After: Fri, 17 May 2024 12:00:12 GMT"}},
      {"retry-after-syntax", {"Retry-After: NaN"}, {"Retry-After: 60"}},
      {"retry-after-repeated", {"Retry-After: 1", "Retry-After: 2"}, {"Retry-After: 1"}},
      {"retry-after-past",
       {"Retry-After: Fri, 17 May 2024 11:00:12 GMT"},
       {"Retry-After: Fri, 17 May 2024 12:00:12 GMT"}},
      {"retry-after-implausible", {"Retry-After: 1715947212"}, {"Retry-After: 86400"}},
      {"retry-after-before-reset",
       {"Retry-After: 5", R"(RateLimit: "a";r=0;t=30, "b";r=7;t=3)"},
       {"Retry-After: 30", R"(RateLimit: "a";r=0;t=30, "b";r=7;t=3)"},
       429},
      {"retry-after-before-reset",
       {"Retry-After: 5", "RateLimit: limit=9, remaining=0, reset=30"},
       {"Retry-After: 29", "RateLimit: limit=9, remaining=0, reset=30"}},
      {"retry-after-before-reset",
       {"Retry-After: 1", R"(RateLimit: "a";r=0;t=30)"},
       {"Retry-After: 1", R"(RateLimit: "a";r=5;t=30, "slots";r=0)"}},
      {"retry-after-behind-reset",
       {"Retry-After: 90", R"(RateLimit: "a";r=0;t=30)"},
       {"Retry-After: 31", R"(RateLimit: "a";r=0;t=30)"},
       429},
      {"x-ratelimit-only",
       {"X-RateLimit-Limit: 5"},
       {"X-RateLimit-Limit: 5", R"(RateLimit: "a";r=5)"}},
      {"x-ratelimit-value", {"X-RateLimit-Limit: NaN"}, {"X-RateLimit-Limit: 5"}},
      {"x-ratelimit-value", {"X-RateLimit-Remaining: -1"}, {"X-RateLimit-Remaining: 0"}},
      {"x-ratelimit-value", {"X-RateLimit-Reset: undefined"}, {"X-RateLimit-Reset: 5, 60"}},
      {"x-ratelimit-incomplete",
       {"X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 4"},
       {"X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 4", "X-RateLimit-Reset: 4"}},
      {"x-ratelimit-reset-clock", {"X-RateLimit-Reset: 1715947212"}, {"X-RateLimit-Reset: 12"}},
      {"x-ratelimit-disagrees",
       {"X-RateLimit-Remaining: 4", R"(RateLimit: "a";r=5)"},
       {"X-RateLimit-Remaining: 5", R"(RateLimit: "a";r=5)"}},
      {"idempotency-key-string",
       {"Idempotency-Key: 8e03978e-40d5-43e8-bc93-6894a57f9324"},
       {R"(Idempotency-Key: "8e03978e-40d5-43e8-bc93-6894a57f9324";a=1)"}},
      {"idempotency-key-string",
       {R"(Idempotency-Key: "never closed)"},
       {R"(Idempotency-Key: "never closed-never closed")"}},
      {"idempotency-key-repeated",
       {R"(Idempotency-Key: "a")", R"(Idempotency-Key: "b")"},
       {R"(Idempotency-Key: "a")"}},
      {"idempotency-key-empty", {R"(Idempotency-Key: "")"}, {R"(Idempotency-Key: "a")"}},
      {"idempotency-key-long",
       {"Idempotency-Key: \"" + std::string(256, 'k') + "\""},
       {"Idempotency-Key: \"" + std::string(255, 'k') + "\""}},
      {"idempotency-key-guessable",
       {R"(Idempotency-Key: "order-17")"},
       {R"(Idempotency-Key: "clkyoesmbgybucifusbb")"}},
      {"idempotency-key-guessable",
       {R"(Idempotency-Key: "2ed6657d-e927-11e2-8e8e-3c07545d8f1d")"},
       {R"(Idempotency-Key: "2ed6657d-e927-41e2-8e8e-3c07545d8f1d")"}},
  };
  return all;
}

TEST(explain_rules, are_found_broken_where_they_are_and_only_there) {
  for (auto const& row : rows()) {
    SCOPED_TRACE(row.wrong.front());
    EXPECT_THAT(broken(row.wrong, row.status), testing::Contains(row.rule));
    EXPECT_THAT(broken(row.right, row.status), testing::Not(testing::Contains(row.rule)));
  }
}

TEST(explain_rules, are_each_in_the_table_of_this_test) {
  std::set<std::string_view> tested;
  for (auto const& row : rows()) {
    tested.insert(row.rule);
  }
  std::set<std::string_view> ids;
  for (auto const& one : field_rules()) {
    EXPECT_TRUE(ids.insert(one.id).second) << one.id << " is there twice";
    EXPECT_TRUE(tested.contains(one.id)) << one.id;
    EXPECT_TRUE(one.summary.ends_with('.')) << one.id;
    EXPECT_FALSE(one.section.empty()) << one.id;
  }
}

TEST(explain_rules, name_the_section_of_the_draft_that_the_field_follows) {
  auto const newer = explain({R"(RateLimit: "a";r=x)"});
  ASSERT_EQ(newer.size(), 1);
  EXPECT_EQ(newer[0].specification, specification::ratelimit_09);
  EXPECT_EQ(newer[0].section, "4.1.1");
  EXPECT_EQ(newer[0].text,
            "item 1: r must be a non-negative Integer; clients have to ignore the whole field");
  auto const older = explain({"RateLimit: limit=1, remaining=x, reset=1"});
  ASSERT_EQ(older.size(), 1);
  EXPECT_EQ(older[0].specification, specification::ratelimit_07);
  EXPECT_EQ(older[0].section, "3.3");
  auto const syntax = explain({R"(RateLimit: "a)"});
  ASSERT_EQ(syntax.size(), 1);
  EXPECT_EQ(syntax[0].specification, specification::structured_fields);
}

TEST(explain_rules, do_not_compare_waits_that_are_not_for_a_quota) {
  EXPECT_THAT(broken({"Retry-After: 1", R"(RateLimit: "a";r=5;t=30)"}, 409), IsEmpty());
  EXPECT_THAT(broken({"Retry-After: 1", R"(RateLimit: "a";r=5;t=30)"}, 503), IsEmpty());
}

// ── texts ──

TEST(explain_text, groups_findings_by_field) {
  auto const findings = explain({R"(RateLimit: "a";r=1;t=1)", "Retry-After: x"}, 429);
  EXPECT_EQ(
      to_text(findings),
      "RateLimit\n"
      "  \"a\": 1 unit left, resets in 1 s; pace yourself to one request a second until then\n"
      "Retry-After\n"
      "  error: it is neither a number of seconds nor an HTTP-date such as Sun, 06 Nov 1994 "
      "08:49:37 GMT; "
      "clients act as if it were not there\n"
      "    retry-after-syntax (RFC 9110, section 10.2.3)\n");
  EXPECT_THAT(to_text(findings, colours::on), HasSubstr("\x1b[31merror:\x1b[0m"));
}

TEST(explain_text, shows_no_control_characters) {
  EXPECT_EQ(printable("a\x1b[2J\x7f\n\xc2\x9b"
                      "31m\xc3\xa9"),
            "a?[2J????31m\xc3\xa9");
  auto const findings = explain({"X-RateLimit-Remaining: \x1b]0;x\x07"});
  EXPECT_THAT(to_text(findings), testing::Not(HasSubstr("\x1b")));
}

TEST(explain_text, is_json_for_programs) {
  EXPECT_EQ(
      to_json(explain({R"(RateLimit: "a";t=1)"})),
      R"({"findings":[{"severity":"error","rule":"ratelimit-remaining-missing","field":"RateLimit",)"
      R"("specification":"draft-ietf-httpapi-ratelimit-headers-09","section":"4.1",)"
      R"("text":"item 1: r is required; clients have to ignore the whole field"}],"errors":1,"warnings":0})"
      "\n");
  EXPECT_EQ(to_json({}), "{\"findings\":[],\"errors\":0,\"warnings\":0}\n");
}

// ── header sections ──

TEST(explain_header_text, reads_what_curl_prints) {
  auto const read = read_header_text(
      "HTTP/1.1 301 Moved\r\nLocation: /x\r\n\r\nHTTP/2 429\r\nRetry-After:  5 "
      "\r\nnonsense\r\n\r\nA: body\r\n");
  EXPECT_EQ(read.status, 429);
  ASSERT_EQ(read.fields.size(), 1);
  EXPECT_EQ(read.fields[0].name, "Retry-After");
  EXPECT_EQ(read.fields[0].value, "5");
  EXPECT_EQ(read.other_lines, 1);
}

TEST(explain_header_text, reads_what_curl_says_when_it_is_verbose) {
  auto const read =
      read_header_text("* Connected\n> GET / HTTP/1.1\n> A: b\n>\n< HTTP/1.1 200 OK\n< X: y\n<\n");
  EXPECT_EQ(read.status, 200);
  ASSERT_EQ(read.fields.size(), 1);
  EXPECT_EQ(read.fields[0].name, "X");
}

TEST(explain_header_text, takes_lines_alone) {
  auto const read = read_header_text("A: 1\n\nB:2");
  EXPECT_EQ(read.status, std::nullopt);
  EXPECT_EQ(read.fields.size(), 2);
  EXPECT_FALSE(parse_field_line("no colon"));
  EXPECT_FALSE(parse_field_line(": no name"));
  EXPECT_FALSE(parse_field_line("a name: 1"));
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::explain
