// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/merge.hpp>

#include <tidegate/ratelimit/read.hpp>

#include "printing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {
namespace {

using namespace std::chrono_literals;
using lines = std::vector<std::string_view>;
using policies = std::vector<quota_policy_view>;
using limits = std::vector<service_limit_view>;

struct merged {
  std::string policy;
  std::string limit;
  dropped_fields dropped;
};

auto merge(lines const& policy, lines const& limit, policies const& p, limits const& l,
           draft version = draft::draft_09) -> merged {
  merged out;
  out.dropped = merge_fields({policy, limit}, p, l, version, out.policy, out.limit);
  EXPECT_TRUE(read_policies(lines{out.policy}).has_value() || out.policy.empty()) << out.policy;
  EXPECT_TRUE(read_limits(lines{out.limit}).has_value()) << out.limit;
  return out;
}

policies const our_policies{{.name = "burst", .quota = 100, .window = 1min},
                            {.name = "daily", .quota = 1000, .window = 24h}};
limits const our_limits{{.remaining = 60, .reset = 58s}, {.remaining = 999, .reset = 36000s}};

TEST(ratelimit_merge, passes_on_what_was_read) {
  for (std::string_view text : {
           R"("burst";q=100;w=60, "daily";q=1000;w=86400)",
           R"("a";q=1;qu="tokens";w=5;pk=:aGk=:;acme-x=?0;y, "a";q=2)",
           R"("\"\\";q=0)",
           "10;w=1;burst=1000, 1000;w=0",
           R"(100;w=60;comment="sliding window";q=1;pk)",
       }) {
    std::vector const lines{text};
    auto const field = read_policies(lines);
    ASSERT_TRUE(field.has_value()) << text;
    std::string policy;
    std::string limit;
    EXPECT_EQ(merge_fields({.policy = lines, .limit = {}}, {}, {}, field->version, policy, limit),
              dropped_fields{});
    EXPECT_EQ(policy, text);
    EXPECT_EQ(limit, "");
  }
  for (std::string_view text : {
           R"("default";r=50;t=30)",
           R"("a";r=1;pk=:aGk=:;q=12, "a";r=0;t=0;x)",
           "limit=100, remaining=50, reset=5",
           "limit=10, reset=1",
           R"(limit=10, remaining=0, reset=1, r=7, x, note="hi")",
           "",
       }) {
    std::vector const lines{text};
    auto const field = read_limits(lines);
    ASSERT_TRUE(field.has_value()) << text;
    std::string policy;
    std::string limit;
    EXPECT_EQ(merge_fields({.policy = {}, .limit = lines}, {}, {}, field->version, policy, limit),
              dropped_fields{});
    EXPECT_EQ(limit, text);
  }
}

TEST(ratelimit_merge, is_ours_alone_where_the_origin_says_nothing) {
  auto const out = merge({}, {}, our_policies, our_limits);
  EXPECT_EQ(out.policy, R"("burst";q=100;w=60, "daily";q=1000;w=86400)");
  EXPECT_EQ(out.limit, R"("burst";r=60;t=58, "daily";r=999;t=36000)");
  EXPECT_EQ(out.dropped, dropped_fields());
  auto const older = merge({}, {}, our_policies, our_limits, draft::draft_07);
  EXPECT_EQ(older.policy, "100;w=60, 1000;w=86400");
  EXPECT_EQ(older.limit, "limit=100, remaining=60, reset=58");
}

TEST(ratelimit_merge, is_theirs_alone_where_we_say_nothing) {
  auto const out = merge({R"("a";q=1)"}, {R"("a";r=1)"}, {}, {});
  EXPECT_EQ(out.policy, R"("a";q=1)");
  EXPECT_EQ(out.limit, R"("a";r=1)");
  auto const older = merge({"10;w=1"}, {"limit=10, reset=1"}, {}, {}, draft::draft_07);
  EXPECT_EQ(older.policy, "10;w=1");
  EXPECT_EQ(older.limit, "limit=10, reset=1");
  auto const nothing = merge({}, {}, {}, {});
  EXPECT_EQ(nothing.policy + nothing.limit, "");
}

TEST(ratelimit_merge, puts_theirs_after_ours_with_all_their_parameters) {
  auto const out =
      merge({R"("origin";acme-x="y";w=5;q=1;qu="requests")", R"("bytes";q=2;pk=:aGk=:)"},
            {R"("origin";acme;t=7;r=3;pk=::, "bytes";r=0)"}, our_policies, our_limits);
  EXPECT_EQ(out.policy, R"("burst";q=100;w=60, "daily";q=1000;w=86400, )"
                        R"("origin";acme-x="y";w=5;q=1;qu="requests", "bytes";q=2;pk=:aGk=:)");
  EXPECT_EQ(out.limit, R"("burst";r=60;t=58, "daily";r=999;t=36000, )"
                       R"("origin";acme;t=7;r=3;pk=::, "bytes";r=0)");
}

TEST(ratelimit_merge, takes_the_lower_r_and_the_later_t_of_one_name_and_key) {
  struct row {
    service_limit_view ours;
    std::string_view theirs;
    std::string_view out;
  };
  for (auto const& [ours, theirs, expected] : {
           row{{.remaining = 5, .reset = 10s}, R"("a";r=7;t=5)", R"("a";r=5;t=10)"},
           {{.remaining = 5, .reset = 10s}, R"("a";r=3;t=5)", R"("a";r=3;t=10)"},
           {{.remaining = 5, .reset = 10s}, R"("a";r=7;t=50)", R"("a";r=5;t=50)"},
           {{.remaining = 5, .reset = 10s}, R"("a";r=0;t=50)", R"("a";r=0;t=50)"},
           {{.remaining = 5}, R"("a";r=4;t=50)", R"("a";r=4;t=50)"},
           {{.remaining = 5}, R"("a";r=4;t=0)", R"("a";r=4;t=0)"},
           {{.remaining = 5, .reset = 10s}, R"("a";r=4)", R"("a";r=4;t=10)"},
           {{.remaining = 5}, R"("a";r=4)", R"("a";r=4)"},
           {{.remaining = 5, .reset = 10s}, R"("a";x;r=4;y=1)", R"("a";r=4;t=10;x;y=1)"},
           {{.remaining = 5, .partition_key = "k"},
            R"("a";r=4;t=1;pk=:aw==:)",
            R"("a";r=4;pk=:aw==:;t=1)"},
           // Another partition has a quota of its own: both items stay, ours first.
           {{.remaining = 5, .reset = 10s},
            R"("a";x;r=4;y=1;pk=:aGk=:)",
            R"("a";r=5;t=10, "a";x;r=4;y=1;pk=:aGk=:)"},
           {{.remaining = 5, .partition_key = "k"},
            R"("a";r=0;t=1;pk=:aGk=:)",
            R"("a";r=5;pk=:aw==:, "a";r=0;t=1;pk=:aGk=:)"},
           {{.remaining = 5, .partition_key = "k"},
            R"("a";r=4;t=1)",
            R"("a";r=5;pk=:aw==:, "a";r=4;t=1)"},
           {{.remaining = 5, .partition_key = "k"},
            R"("a";r=9;t=55;pk=:QQ==:, "a";r=3;t=20;pk=:aw==:, "a";r=1;pk=:Qg==:)",
            R"("a";r=3;pk=:aw==:;t=20, "a";r=9;t=55;pk=:QQ==:, "a";r=1;pk=:Qg==:)"},
           {{.remaining = 5, .reset = 60s},
            R"("a";r=9;t=55;pk=:QQ==:, "a";r=3;t=20;pk=:Qg==:)",
            R"("a";r=5;t=60, "a";r=9;t=55;pk=:QQ==:, "a";r=3;t=20;pk=:Qg==:)"},
           {{.remaining = 5, .reset = 1s},
            R"("a";r=4;x=1, "b";r=1, "a";r=3;t=9;x=2;y)",
            R"("a";r=3;t=9;x=1;y, "b";r=1)"},
           {{.remaining = 5}, R"("A";r=4)", R"("a";r=5, "A";r=4)"},
       }) {
    EXPECT_EQ(merge({}, {theirs}, {{.name = "a", .quota = 9, .window = 60s}}, {ours}).limit,
              expected)
        << theirs;
  }
}

TEST(ratelimit_merge, compares_limits_of_one_unit_only) {
  struct row {
    char const* what;
    sf::string_view unit;
    lines policy;
    std::string_view limit;
    std::string_view out;
  };
  for (auto const& [what, unit, policy, limit, expected] : {
           row{"the unit of the policy",
               "requests",
               {R"("a";q=1000;qu="content-bytes";w=10)"},
               R"("a";r=7;t=3)",
               R"("a";r=50;t=60, "a";r=7;t=3)"},
           {"the same one",
            "content-bytes",
            {R"("a";q=1000;qu="content-bytes";w=10)"},
            R"("a";r=7;t=3)",
            R"("a";r=7;t=60)"},
           {"the default, spelled out",
            "requests",
            {R"("a";q=1000;qu="requests";w=10)"},
            R"("a";r=7;t=3)",
            R"("a";r=7;t=60)"},
           {"no policy: the default",
            "content-bytes",
            {R"("b";q=1000;qu="content-bytes";w=10)"},
            R"("a";r=7;t=3)",
            R"("a";r=50;t=60, "a";r=7;t=3)"},
           {"no policy of that key: that of the name",
            "requests",
            {R"("a";q=1000;qu="content-bytes";pk=:QQ==:)"},
            R"("a";r=7;t=3)",
            R"("a";r=50;t=60, "a";r=7;t=3)"},
           {"the policy of the key before others of the name",
            "requests",
            {R"("a";q=1000;qu="content-bytes";pk=:QQ==:, "a";q=5)"},
            R"("a";r=7;t=3)",
            R"("a";r=7;t=60)"},
           {"policies of two units",
            "requests",
            {R"("a";q=5, "a";q=1000;qu="content-bytes")"},
            R"("a";r=7;t=3)",
            R"("a";r=50;t=60, "a";r=7;t=3)"},
           {"units that are not registered",
            "tokens",
            {R"("a";q=5;qu="coins")"},
            R"("a";r=7;t=3)",
            R"("a";r=50;t=60, "a";r=7;t=3)"},
           {"the same one of those",
            "tokens",
            {R"("a";q=5;qu="tokens")"},
            R"("a";r=7;t=3)",
            R"("a";r=7;t=60)"},
       }) {
    EXPECT_EQ(merge(policy, {limit}, {{.name = "a", .quota = 99, .unit = unit, .window = 60s}},
                    {{.remaining = 50, .reset = 60s}})
                  .limit,
              expected)
        << what;
  }
}

TEST(ratelimit_merge, makes_one_policy_of_one_name_that_keeps_to_both) {
  struct row {
    quota_policy_view ours;
    std::string_view theirs;
    std::string_view out;
  };
  for (auto const& [ours, theirs, expected] : {
           // One window: the lower quota.
           row{{.name = "a", .quota = 100, .window = 60s}, R"("a";q=50;w=60)", R"("a";q=50;w=60)"},
           {{.name = "a", .quota = 100, .window = 60s}, R"("a";q=500;w=60)", R"("a";q=100;w=60)"},
           // One quota: the longer window.
           {{.name = "a", .quota = 100, .window = 60s}, R"("a";q=100;w=90)", R"("a";q=100;w=90)"},
           {{.name = "a", .quota = 100, .window = 60s}, R"("a";q=100;w=9)", R"("a";q=100;w=60)"},
           // 100 a minute and 1000 an hour: the hour allows 100 in six minutes.
           {{.name = "a", .quota = 100, .window = 60s},
            R"("a";q=1000;w=3600)",
            R"("a";q=100;w=360)"},
           {{.name = "a", .quota = 1000, .window = 3600s},
            R"("a";q=100;w=60)",
            R"("a";q=100;w=360)"},
           // The lower quota is the slower rate as well.
           {{.name = "a", .quota = 10, .window = 60s}, R"("a";q=1000;w=60)", R"("a";q=10;w=60)"},
           {{.name = "a", .quota = 10, .window = 60s}, R"("a";q=100;w=1)", R"("a";q=10;w=60)"},
           // Rounded up.
           {{.name = "a", .quota = 10, .window = 1s}, R"("a";q=300;w=100)", R"("a";q=10;w=4)"},
           // Nothing at all stays nothing.
           {{.name = "a", .quota = 0, .window = 60s}, R"("a";q=100;w=90)", R"("a";q=0;w=60)"},
           {{.name = "a", .quota = 100, .window = 60s}, R"("a";q=0;w=9)", R"("a";q=0;w=9)"},
           {{.name = "a", .quota = 0, .window = 60s}, R"("a";q=0;w=9)", R"("a";q=0;w=60)"},
           // A window that is not known on one side.
           {{.name = "a", .quota = 100, .window = 60s}, R"("a";q=200)", R"("a";q=100;w=60)"},
           {{.name = "a", .quota = 100, .window = 60s}, R"("a";q=50)", R"("a";q=50)"},
           {{.name = "a", .quota = 100}, R"("a";q=50;w=60)", R"("a";q=50;w=60)"},
           {{.name = "a", .quota = 100}, R"("a";q=100;w=60)", R"("a";q=100;w=60)"},
           {{.name = "a", .quota = 100, .window = 60s}, R"("a";q=100)", R"("a";q=100;w=60)"},
           {{.name = "a", .quota = 100}, R"("a";q=200;w=60)", R"("a";q=100)"},
           // Three of a name, in which the first two alone have lost their window.
           {{.name = "a", .quota = 50}, R"("a";q=101;w=60, "a";q=2;w=1)", R"("a";q=2;w=2)"},
           // The largest numbers do not overflow.
           {{.name = "a", .quota = 999'999'999'999'998, .window = 1s},
            R"("a";q=999999999999999;w=999999999999999)",
            R"("a";q=999999999999998;w=999999999999998)"},
           // Units: a default that is spelled out is the same, another one cannot be compared.
           {{.name = "a", .quota = 9, .window = 60s},
            R"("a";q=5;w=60;qu="requests")",
            R"("a";q=5;w=60)"},
           {{.name = "a", .quota = 9, .unit = "content-bytes", .window = 60s},
            R"("a";q=5;w=60;qu="content-bytes")",
            R"("a";q=5;qu="content-bytes";w=60)"},
           {{.name = "a", .quota = 9, .window = 60s},
            R"("a";q=5;w=60;qu="content-bytes")",
            R"("a";q=9;w=60, "a";q=5;w=60;qu="content-bytes")"},
           {{.name = "a", .quota = 9, .unit = "tokens", .window = 60s},
            R"("a";q=5;w=60;qu="coins")",
            R"("a";q=9;qu="tokens";w=60, "a";q=5;w=60;qu="coins")"},
           // Comments stay.
           {{.name = "a", .quota = 9, .window = 60s},
            R"("a";acme-burst=3;q=5;w=60;y)",
            R"("a";q=5;w=60;acme-burst=3;y)"},
           // Quotas are of a partition key.
           {{.name = "a", .quota = 9, .window = 60s},
            R"("a";acme-burst=3;q=5;w=60;pk=:aGk=:;y)",
            R"("a";q=9;w=60, "a";acme-burst=3;q=5;w=60;pk=:aGk=:;y)"},
       }) {
    EXPECT_EQ(merge({theirs}, {}, {ours}, {{.remaining = 1}}).policy, expected) << theirs;
  }
}

TEST(ratelimit_merge, shows_an_origin_of_draft_07_as_upstream) {
  auto const out =
      merge({R"(10;w=1;burst=1000;q=7, 5000;w=86400, 7;w=0)"},
            {R"(limit=10, remaining=3, reset=1, acme="x", r=9)"}, our_policies, our_limits);
  EXPECT_EQ(out.policy,
            R"("burst";q=100;w=60, "daily";q=1000;w=86400, )"
            R"("upstream";q=10;w=1;burst=1000, "upstream";q=5000;w=86400, "upstream";q=7)");
  EXPECT_EQ(out.limit, R"("burst";r=60;t=58, "daily";r=999;t=36000, "upstream";r=3;t=1;acme="x")");
}

TEST(ratelimit_merge,
     has_a_policy_and_what_remains_from_the_limit_of_draft_07_where_it_says_no_more) {
  auto const out = merge({}, {"limit=10, reset=1"}, our_policies, our_limits);
  EXPECT_EQ(out.policy, R"("burst";q=100;w=60, "daily";q=1000;w=86400, "upstream";q=10)");
  EXPECT_EQ(out.limit, R"("burst";r=60;t=58, "daily";r=999;t=36000, "upstream";r=10;t=1)");
}

TEST(ratelimit_merge, treats_our_own_upstream_like_any_shared_name) {
  auto const out =
      merge({"10;w=1, 50;w=60"}, {"limit=10, remaining=3, reset=1"},
            {{.name = "upstream", .quota = 20, .window = 1s}}, {{.remaining = 9, .reset = 5s}});
  // 50 a minute are 10 in 12 seconds.
  EXPECT_EQ(out.policy, R"("upstream";q=10;w=12)");
  EXPECT_EQ(out.limit, R"("upstream";r=3;t=5)");
}

TEST(ratelimit_merge, drops_a_malformed_field_and_reports_it) {
  auto const out = merge({"quota;q=100;w=1"}, {R"("a";r=1)"}, our_policies, our_limits);
  EXPECT_EQ(out.policy, R"("burst";q=100;w=60, "daily";q=1000;w=86400)");
  EXPECT_EQ(out.limit, R"("burst";r=60;t=58, "daily";r=999;t=36000, "a";r=1)");
  ASSERT_TRUE(out.dropped.policy.has_value());
  EXPECT_EQ(out.dropped.policy->rule, field_rule::name_type);
  EXPECT_EQ(out.dropped.limit, std::nullopt);

  auto const other = merge({R"("a";q=1)"}, {R"("a";r=1,)"}, our_policies, our_limits);
  EXPECT_EQ(other.policy, R"("burst";q=100;w=60, "daily";q=1000;w=86400, "a";q=1)");
  EXPECT_EQ(other.limit, R"("burst";r=60;t=58, "daily";r=999;t=36000)");
  EXPECT_EQ(other.dropped.policy, std::nullopt);
  ASSERT_TRUE(other.dropped.limit.has_value());
  EXPECT_EQ(other.dropped.limit->rule, field_rule::syntax);
  EXPECT_EQ(other.dropped.limit->syntax.offset, 8U);

  auto const both = merge({""}, {"limit=1"}, our_policies, our_limits, draft::draft_07);
  EXPECT_EQ(both.policy, "100;w=60, 1000;w=86400");
  EXPECT_EQ(both.limit, "limit=100, remaining=60, reset=58");
  EXPECT_TRUE(both.dropped.policy.has_value());
  EXPECT_TRUE(both.dropped.limit.has_value());
}

TEST(ratelimit_merge, shows_the_closest_of_both_in_draft_07) {
  struct row {
    char const* what;
    lines policy;
    lines limit;
    std::string_view out;
  };
  for (auto const& [what, policy, limit, expected] : {
           row{"theirs is lower",
               {},
               {"limit=9, remaining=5, reset=1"},
               "limit=9, remaining=5, reset=1"},
           {"ours is lower",
            {},
            {"limit=90, remaining=61, reset=99"},
            "limit=100, remaining=60, reset=58"},
           {"equal, theirs is later",
            {},
            {"limit=90, remaining=60, reset=99"},
            "limit=90, remaining=60, reset=99"},
           {"entirely equal",
            {},
            {"limit=90, remaining=60, reset=58"},
            "limit=100, remaining=60, reset=58"},
           {"what remains is the limit", {}, {"limit=9, reset=1, x"}, "limit=9, reset=1, x"},
           {"draft-09 with its policy",
            {R"("a";q=9;w=1)"},
            {R"("a";r=5;t=1)"},
            "limit=9, remaining=5, reset=1"},
           {"draft-09 without",
            {R"("b";q=9;w=1)"},
            {R"("a";r=5;t=1)"},
            "limit=5, remaining=5, reset=1"},
           {"draft-09, several",
            {},
            {R"("a";r=5;t=1, "b";r=4;t=2, "c";r=4;t=1)"},
            "limit=4, remaining=4, reset=2"},
           {"draft-09 without a reset", {}, {R"("a";r=5)"}, "limit=100, remaining=60, reset=58"},
           {"draft-09 with a window instead",
            {R"("a";q=9;w=7)"},
            {R"("a";r=5)"},
            "limit=9, remaining=5, reset=7"},
       }) {
    EXPECT_EQ(merge(policy, limit, our_policies, our_limits, draft::draft_07).limit, expected)
        << what;
  }
}

TEST(ratelimit_merge, lists_the_policies_of_both_in_draft_07_with_one_of_each_quota) {
  struct row {
    std::string_view theirs;
    std::string_view out;
  };
  for (auto const& [theirs, expected] : {
           row{"10;burst=5;w=1", "100;w=60, 1000;w=86400, 10;burst=5;w=1"},
           {"100;w=1;x, 10;w=1", "100;w=60;x, 1000;w=86400, 10;w=1"},
           {"100;w=90", "100;w=90, 1000;w=86400"},
           {R"("a";q=10;w=1;qu="content-bytes";pk=:aGk=:;x)",
            R"(100;w=60, 1000;w=86400, 10;w=1;qu="content-bytes";pk=:aGk=:;x)"},
           {R"("a";q=10;w=1, "b";q=10;w=2;y, "c";q=5)", "100;w=60, 1000;w=86400, 10;w=2;y"},
       }) {
    EXPECT_EQ(merge({theirs}, {}, our_policies, our_limits, draft::draft_07).policy, expected);
  }
}

TEST(ratelimit_merge, takes_thousands_of_items_in_its_stride) {
  std::string policy;
  std::string limit;
  for (int i = 0; i < 5'000; ++i) {
    auto const number = std::to_string(i);
    policy.append(i == 0 ? "" : ", ")
        .append("\"n")
        .append(number)
        .append("\";w=1;q=")
        .append(number);
    limit.append(i == 0 ? "" : ", ").append("\"burst\";r=5;t=1;k").append(number);
  }
  auto const out = merge({policy}, {limit}, our_policies, our_limits);
  EXPECT_TRUE(out.limit.starts_with(R"("burst";r=5;t=58;k0;k1;)"));
  EXPECT_TRUE(merge({policy}, {limit}, our_policies, our_limits, draft::draft_07)
                  .policy.ends_with(", 4999;w=1"));
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::ratelimit
