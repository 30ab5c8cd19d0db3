// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/write.hpp>

#include <tidegate/ratelimit/read.hpp>
#include <tidegate/sf/parse.hpp>

#include "printing.hpp"
#include "support/allocations.hpp"

#include <gtest/gtest.h>

#include <array>

#include <limits>
#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {
namespace {

using namespace std::chrono_literals;
using policies = std::vector<quota_policy_view>;
using limits = std::vector<service_limit_view>;

/// Both fields, made both ways; the prepared one must not differ.
struct fields {
  std::string policy;
  std::string limit;
  auto operator==(fields const&) const -> bool = default;
};

auto written(policies const& p, limits const& l, draft version) -> fields {
  fields out;
  append_policies(out.policy, p, l, version);
  append_limits(out.limit, p, l, version);
  prepared_fields const prepared(p, version);
  fields again;
  prepared.append_policies(again.policy, l);
  prepared.append_limits(again.limit, l);
  EXPECT_EQ(again.policy, out.policy);
  EXPECT_EQ(again.limit, out.limit);
  auto const line = [](std::string_view name, std::string const& value) {
    return value.empty() ? "" : std::string(name) + ": " + value + "\r\n";
  };
  std::string lines = "A: b\r\n";
  prepared.append_lines(lines, l);
  EXPECT_EQ(lines,
            "A: b\r\n" + line("RateLimit-Policy", out.policy) + line("RateLimit", out.limit));
  return out;
}

TEST(ratelimit_write, writes_both_fields_of_draft_09) {
  auto const out = written({{.name = "burst", .quota = 100, .window = 1min},
                            {.name = "daily", .quota = 1000, .window = 24h}},
                           {{.remaining = 60, .reset = 58s}, {.remaining = 999, .reset = 36000s}},
                           draft::draft_09);
  EXPECT_EQ(out.policy, R"("burst";q=100;w=60, "daily";q=1000;w=86400)");
  EXPECT_EQ(out.limit, R"("burst";r=60;t=58, "daily";r=999;t=36000)");
}

TEST(ratelimit_write, writes_what_is_optional_only_where_it_is_there) {
  struct row {
    quota_policy_view policy;
    service_limit_view limit;
    std::string_view policy_text;
    std::string_view limit_text;
  };
  auto const comments =
      std::get<0>(sf::parse_list<field_dialect>("x;acme-burst=5;q=7;y").value().at(0)).parameters;
  for (auto const& row : {
           row{{.name = "a"}, {}, R"("a";q=0)", R"("a";r=0)"},
           {{.name = "a", .quota = 1, .unit = "requests"},
            {.remaining = 1, .reset = 0s},
            R"("a";q=1)",
            R"("a";r=1;t=0)"},
           {{.name = "slots", .quota = 20, .unit = "concurrent-requests"},
            {.remaining = 19},
            R"("slots";q=20;qu="concurrent-requests")",
            R"("slots";r=19)"},
           {{.name = "bytes", .quota = 65535, .unit = "content-bytes", .window = 10s},
            {.remaining = 300, .reset = 60s, .partition_key = "App-999"},
            R"("bytes";q=65535;qu="content-bytes";w=10;pk=:QXBwLTk5OQ==:)",
            R"("bytes";r=300;t=60;pk=:QXBwLTk5OQ==:)"},
           {{.name = "a", .quota = 1},
            {.partition_key = ""},
            R"("a";q=1;pk=::)",
            R"("a";r=0;pk=::)"},
           {{.name = R"(a "quoted\ name)", .quota = 1},
            {},
            R"("a \"quoted\\ name";q=1)",
            R"("a \"quoted\\ name";r=0)"},
           {{.name = "a", .quota = 1, .window = 1s, .comments = &comments},
            {.partition_key = "k"},
            R"("a";q=1;w=1;acme-burst=5;y;pk=:aw==:)",
            R"("a";r=0;pk=:aw==:)"},
       }) {
    auto const out = written({row.policy}, {row.limit}, draft::draft_09);
    EXPECT_EQ(out.policy, row.policy_text);
    EXPECT_EQ(out.limit, row.limit_text);
    EXPECT_TRUE(read_policies(std::vector<std::string_view>{out.policy}).has_value());
    EXPECT_TRUE(read_limits(std::vector<std::string_view>{out.limit}).has_value());
  }
}

TEST(ratelimit_write, puts_a_partition_key_where_one_is_and_none_where_none_is) {
  policies const p{{.name = "a", .quota = 1}, {.name = "b", .quota = 2}, {.name = "c", .quota = 3}};
  EXPECT_EQ(
      written(p, {{.partition_key = "x"}, {}, {.partition_key = "y"}}, draft::draft_09).policy,
      R"("a";q=1;pk=:eA==:, "b";q=2, "c";q=3;pk=:eQ==:)");
  EXPECT_EQ(written(p, {{}, {.partition_key = "x"}, {}}, draft::draft_09).policy,
            R"("a";q=1, "b";q=2;pk=:eA==:, "c";q=3)");
}

TEST(ratelimit_write, writes_both_fields_of_draft_07) {
  auto const out = written(
      {{.name = "hour", .quota = 1000, .window = 1h},
       {.name = "day", .quota = 5000, .window = 24h}},
      {{.remaining = 900, .reset = 10s, .partition_key = "x"}, {.remaining = 100, .reset = 36000s}},
      draft::draft_07);
  EXPECT_EQ(out.policy, "1000;w=3600, 5000;w=86400");
  EXPECT_EQ(out.limit, "limit=5000, remaining=100, reset=36000");
}

TEST(ratelimit_write, leaves_policies_without_a_window_out_of_draft_07) {
  quota_policy_view const slots{.name = "slots", .quota = 20, .unit = "concurrent-requests"};
  auto const out =
      written({slots, {.name = "a", .quota = 10, .window = 1s}, slots},
              {{.remaining = 0}, {.remaining = 5, .reset = 1s}, {.remaining = 0}}, draft::draft_07);
  EXPECT_EQ(out.policy, "10;w=1");
  EXPECT_EQ(out.limit, "limit=10, remaining=5, reset=1");
  EXPECT_EQ(written({slots}, {{}}, draft::draft_07), fields());
  EXPECT_EQ(written({}, {}, draft::draft_07), fields());
  EXPECT_EQ(written({}, {}, draft::draft_09), fields());
}

TEST(ratelimit_write, never_shows_two_policies_of_one_quota_in_draft_07) {
  limits const l(4, service_limit_view{.remaining = 1, .reset = 1s});
  EXPECT_EQ(written({{.name = "a", .quota = 10, .window = 1s},
                     {.name = "b", .quota = 10, .window = 60s},
                     {.name = "c", .quota = 10, .window = 60s},
                     {.name = "d", .quota = 10}},
                    l, draft::draft_07)
                .policy,
            "10;w=60");
}

TEST(ratelimit_write, chooses_the_policy_closest_to_exhaustion) {
  struct row {
    char const* what;
    limits l;
    std::optional<std::size_t> closest;
  };
  policies const p{{.name = "minute", .quota = 100, .window = 1min},
                   {.name = "hour", .quota = 1000, .window = 1h},
                   {.name = "slots", .quota = 5}};
  for (auto const& [what, l, closest] : {
           row{"the lower number", {{5, 1s}, {4, 1s}, {9, {}}}, 1},
           {"not the lower share", {{50, 1s}, {51, 1s}, {9, {}}}, 0},
           {"of equal ones the later reset", {{5, 7s}, {5, 8s}, {9, {}}}, 1},
           {"of equal ones the later reset, the other way", {{5, 8s}, {5, 7s}, {9, {}}}, 0},
           {"of entirely equal ones the first", {{5, 8s}, {5, 8s}, {9, {}}}, 0},
           {"an unknown reset is the window", {{5, 60s}, {5, {}}, {9, {}}}, 1},
           {"never one without a window", {{5, 60s}, {6, 1s}, {0, {}}}, 0},
       }) {
    EXPECT_EQ(closest_to_exhaustion(p, l), closest) << what;
  }
  EXPECT_EQ(closest_to_exhaustion({}, {}), std::nullopt);
  EXPECT_EQ(closest_to_exhaustion(policies{p[2]}, limits{{0, {}}}), std::nullopt);
}

TEST(ratelimit_write, has_the_numbers_of_the_x_ratelimit_fields) {
  policies const p{{.name = "minute", .quota = 100, .window = 1min},
                   {.name = "hour", .quota = 1000, .window = 1h}};
  auto const numbers = find_expiring_limit(p, limits{{7, 1500ms}, {9, {}}});
  EXPECT_EQ(numbers, (expiring_limit{100, 7, 2}));
  EXPECT_EQ(find_expiring_limit(p, limits{{7, 1500ms}, {-3, {}}}), (expiring_limit{1000, 0, 3600}));
  EXPECT_EQ(find_expiring_limit({}, {}), std::nullopt);
  std::string out = "X-RateLimit-Reset: ";
  append_count(out, numbers->reset);
  EXPECT_EQ(out, "X-RateLimit-Reset: 2");
}

TEST(ratelimit_write, rounds_times_up) {
  struct row {
    std::chrono::nanoseconds wait;
    std::string_view text;
  };
  for (auto const& [wait, text] : {
           row{0ns, "0"},
           {-1ns, "0"},
           {-5s, "0"},
           {std::chrono::nanoseconds::min(), "0"},
           {1ns, "1"},
           {1s - 1ns, "1"},
           {1s, "1"},
           {1s + 1ns, "2"},
           {59'001ms, "60"},
           {366 * 24h, "31622400"},
           {std::chrono::nanoseconds::max(), "9223372037"},
       }) {
    std::string out;
    append_retry_after(out, wait);
    EXPECT_EQ(out, text);
    EXPECT_EQ(
        written({{.name = "a", .quota = 1, .window = 1s}}, {{0, wait}}, draft::draft_09).limit,
        R"("a";r=0;t=)" + std::string(text));
    EXPECT_EQ(
        written({{.name = "a", .quota = 1, .window = 1s}}, {{0, wait}}, draft::draft_07).limit,
        "limit=1, remaining=0, reset=" + std::string(text));
  }
}

TEST(ratelimit_write, makes_retry_after_no_earlier_than_any_t) {
  for (auto wait : {0ns, 1ns, 999'999'999ns, 1'000'000'000ns, 1'000'000'001ns}) {
    for (auto earlier : {0ns, 1ns, 500'000'000ns}) {
      EXPECT_GE(seconds_until(wait), seconds_until(wait - earlier));
      EXPECT_GE(std::chrono::seconds(seconds_until(wait)), wait);
    }
  }
}

TEST(ratelimit_write, keeps_numbers_within_what_an_integer_can_say) {
  auto const most = std::numeric_limits<std::int64_t>::max();
  auto const out =
      written({{.name = "a", .quota = most, .window = std::chrono::seconds::max()},
               {.name = "b", .quota = -1, .window = 0s}},
              {{.remaining = most, .reset = 1s}, {.remaining = -7, .reset = -1s}}, draft::draft_09);
  EXPECT_EQ(out.policy, R"("a";q=999999999999999;w=999999999999999, "b";q=0;w=1)");
  EXPECT_EQ(out.limit, R"("a";r=999999999999999;t=1, "b";r=0;t=0)");
  auto const older = written(
      {{.name = "a", .quota = most, .window = 1s}, {.name = "b", .quota = most - 1, .window = 2s}},
      {{.remaining = most}, {.remaining = most}}, draft::draft_07);
  EXPECT_EQ(older.policy, "999999999999999;w=2");
  EXPECT_EQ(older.limit, "limit=999999999999999, remaining=999999999999999, reset=2");
}

TEST(ratelimit_write, appends_to_what_is_there) {
  policies const p{{.name = "a", .quota = 1, .window = 1s}};
  limits const l{{0, 1s}};
  std::string out = "RateLimit-Policy: ";
  append_policies(out, p, l, draft::draft_09);
  out += "\r\nRateLimit: ";
  prepared_fields(p, draft::draft_09).append_limits(out, l);
  EXPECT_EQ(out, "RateLimit-Policy: \"a\";q=1;w=1\r\nRateLimit: \"a\";r=0;t=1");
}

TEST(ratelimit_write, allocates_nothing_when_there_is_room) {
  policies const p{{.name = "burst of requests", .quota = 100, .window = 1min},
                   {.name = "daily", .quota = 1'000'000, .unit = "content-bytes", .window = 24h}};
  std::string const key = "a partition key that is longer than what a string holds inside";
  limits const l{{60, 58s, key}, {999'999, 36000s, key}};
  for (auto version : {draft::draft_09, draft::draft_07}) {
    // Room for exactly what is written.
    auto const expected = written(p, l, version);
    prepared_fields const prepared(p, version);
    std::string policy;
    std::string limit;
    policy.reserve(2 * expected.policy.size());
    limit.reserve(2 * expected.limit.size());
    auto const before = test::allocations();
    append_policies(policy, p, l, version);
    append_limits(limit, p, l, version);
    prepared.append_policies(policy, l);
    prepared.append_limits(limit, l);
    append_retry_after(limit.assign(1, ' '), 5s);
    EXPECT_EQ(test::allocations(), before);
    EXPECT_EQ(policy, expected.policy + expected.policy);
  }
}

TEST(ratelimit_write, has_a_row_for_each_draft) {
  EXPECT_EQ(name_of(draft::draft_07), "draft-07");
  EXPECT_EQ(name_of(draft::draft_09), "draft-09");
  EXPECT_EQ(name_of(draft::draft_10), "draft-10");
  std::array<quota_policy_view, 1> const policies{{{"p", 5, "requests", std::chrono::seconds(60)}}};
  std::array<service_limit_view, 1> const limits{{{5, std::nullopt}}};
  std::string policy;
  std::string limit;
  append_policies(policy, policies, limits, draft::draft_10);
  append_limits(limit, policies, limits, draft::draft_10);
  EXPECT_EQ(policy, R"("p";q=5;w=60)");
  EXPECT_EQ(limit, R"("p";r=5)");
  prepared_fields const prepared(policies, draft::draft_10);
  std::string lines;
  prepared.append_lines(lines, limits);
  EXPECT_EQ(lines, "RateLimit-Policy: \"p\";q=5;w=60\r\nRateLimit: \"p\";r=5\r\n");
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::ratelimit
