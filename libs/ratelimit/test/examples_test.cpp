// SPDX-License-Identifier: Apache-2.0
//
// Every example of both drafts that shows one of the fields: read by a client, and written by a
// server where a server can. The problem details of draft-09, section 5, are not fields.
#include <tidegate/http/retry_after.hpp>
#include <tidegate/ratelimit/merge.hpp>
#include <tidegate/ratelimit/read.hpp>
#include <tidegate/ratelimit/write.hpp>
#include <tidegate/sf/parse.hpp>

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

/// The text of all lines as a server writes it: the drafts leave spaces out here and there.
auto as_written(lines const& text) -> std::string {
  std::string scratch;
  std::string out;
  for (auto const value = sf::combine(text, scratch); char c : value) {
    if (!out.empty() && out.back() == ',' && c != ' ') {
      out.push_back(' ');
    }
    out.push_back(c);
  }
  return out;
}

auto comments(std::string_view text) -> comment_parameters {
  return std::get<0>(sf::parse_list<field_dialect>("x;" + std::string(text)).value().at(0))
      .parameters;
}

/// What a server has to know to write a field.
struct example {
  char const* section;
  lines text;
  policies p;
  limits l;
};

void expect_read_and_written_again(example const& e, field_kind kind, draft version) {
  std::string policy;
  std::string limit;
  if (kind == field_kind::policy) {
    auto const field = read_policies(e.text);
    ASSERT_TRUE(field.has_value()) << e.section << ": " << to_string(field.error());
    EXPECT_EQ(field->version, version) << e.section;
    EXPECT_EQ(merge_fields({e.text, {}}, {}, {}, version, policy, limit), dropped_fields{})
        << e.section;
    EXPECT_EQ(read_policies(lines{policy}), *field) << e.section;
  } else {
    auto const field = read_limits(e.text);
    ASSERT_TRUE(field.has_value()) << e.section << ": " << to_string(field.error());
    EXPECT_EQ(field->version, version) << e.section;
    EXPECT_EQ(merge_fields({{}, e.text}, {}, {}, version, policy, limit), dropped_fields{})
        << e.section;
    EXPECT_EQ(read_limits(lines{limit}), *field) << e.section;
  }
}

void expect_same_policies(example const& e, draft version) {
  expect_read_and_written_again(e, field_kind::policy, version);
  auto const field = read_policies(e.text).value();
  ASSERT_EQ(field.policies.size(), e.p.size()) << e.section;
  for (std::size_t i = 0; i < e.p.size(); ++i) {
    auto const& read = field.policies[i];
    auto const& known = e.p[i];
    EXPECT_EQ(read.quota, known.quota) << e.section;
    EXPECT_EQ(read.unit_name, known.unit.text()) << e.section;
    EXPECT_EQ(read.window, known.window->count()) << e.section;
    EXPECT_EQ(read.partition_key, e.l[i].partition_key) << e.section;
    EXPECT_EQ(read.comments, known.comments == nullptr ? comment_parameters() : *known.comments)
        << e.section;
    EXPECT_EQ(read.name, version == draft::draft_09 ? known.name.text() : "") << e.section;
  }
  std::string direct;
  append_policies(direct, e.p, e.l, version);
  std::string prepared;
  prepared_fields(e.p, version).append_policies(prepared, e.l);
  EXPECT_EQ(direct, as_written(e.text)) << e.section;
  EXPECT_EQ(prepared, direct) << e.section;
}

void expect_same_limits(example const& e, draft version) {
  expect_read_and_written_again(e, field_kind::limit, version);
  auto const field = read_limits(e.text).value();
  ASSERT_EQ(field.limits.size(), e.l.size()) << e.section;
  for (std::size_t i = 0; i < e.l.size(); ++i) {
    auto const& read = field.limits[i];
    auto const& known = e.l[i];
    EXPECT_EQ(read.remaining, known.remaining) << e.section;
    EXPECT_EQ(read.reset.has_value(), known.reset.has_value()) << e.section;
    EXPECT_EQ(std::chrono::seconds(read.reset.value_or(0)), known.reset.value_or(0s)) << e.section;
    EXPECT_EQ(read.partition_key, known.partition_key) << e.section;
    if (version == draft::draft_09) {
      EXPECT_EQ(read.name, e.p[i].name.text()) << e.section;
    } else {
      EXPECT_EQ(read.limit, e.p[i].quota) << e.section;
    }
  }
  std::string direct;
  append_limits(direct, e.p, e.l, version);
  std::string prepared;
  prepared_fields(e.p, version).append_limits(prepared, e.l);
  EXPECT_EQ(direct, as_written(e.text)) << e.section;
  EXPECT_EQ(prepared, direct) << e.section;
}

TEST(ratelimit_examples, of_policies_in_draft_09_are_read_and_written) {
  auto const burst_1000 = comments("burst=1000");
  auto const burst_0 = comments("burst=0");
  for (auto const& e : {
           example{"3",
                   {R"("burst";q=100;w=60,"daily";q=1000;w=86400)"},
                   {{.name = "burst", .quota = 100, .window = 60s},
                    {.name = "daily", .quota = 1000, .window = 86400s}},
                   {{}, {}}},
           {"3.2",
            {R"("default";q=100;w=10)"},
            {{.name = "default", .quota = 100, .window = 10s}},
            {{}}},
           {"3.2, multiple policies",
            {R"("permin";q=50;w=60,"perhr";q=1000;w=3600)"},
            {{.name = "permin", .quota = 50, .window = 60s},
             {.name = "perhr", .quota = 1000, .window = 3600s}},
            {{}, {}}},
           {"8.5",
            {R"("somepolicy";q=10000;w=1000)"},
            {{.name = "somepolicy", .quota = 10000, .window = 1000s}},
            {{}}},
           {"B.1.3",
            {R"("basic";q=100;w=60)"},
            {{.name = "basic", .quota = 100, .window = 60s}},
            {{}}},
           {"B.2.1",
            {R"("fixedwindow";q=100;w=60)"},
            {{.name = "fixedwindow", .quota = 100, .window = 60s}},
            {{}}},
           {"B.2.2 and B.3",
            {R"("dynamic";q=100;w=60)"},
            {{.name = "dynamic", .quota = 100, .window = 60s}},
            {{}}},
           {"B.2.3",
            {R"("dynamic";q=15;w=20)"},
            {{.name = "dynamic", .quota = 15, .window = 20s}},
            {{}}},
           {"B.3.2",
            {R"("hour";q=1000;w=3600, "day";q=5000;w=86400)"},
            {{.name = "hour", .quota = 1000, .window = 3600s},
             {.name = "day", .quota = 5000, .window = 86400s}},
            {{}, {}}},
           {"C, 8",
            {R"("sliding";q=100;w=60;burst=1000)", R"("fixed";q=5000;w=3600;burst=0)"},
            {{.name = "sliding", .quota = 100, .window = 60s, .comments = &burst_1000},
             {.name = "fixed", .quota = 5000, .window = 3600s, .comments = &burst_0}},
            {{}, {}}},
           {"D", {R"("sliding";q=12;w=1)"}, {{.name = "sliding", .quota = 12, .window = 1s}}, {{}}},
       }) {
    expect_same_policies(e, draft::draft_09);
  }
}

TEST(ratelimit_examples, of_partition_keys_with_set_pad_bits_are_read_and_written_without_them) {
  // Section 3.2: the base64 of both examples has bits behind the last octet, which no encoder
  // writes.
  struct row {
    std::string_view text;
    std::string_view key;
    std::string_view written;
  };
  using namespace std::string_view_literals;
  for (auto const& [text, key, written] : {
           row{R"("peruser";q=100;w=60;pk=:cHsdsRa894==:)", "\x70\x7b\x1d\xb1\x16\xbc\xf7"sv,
               R"("peruser";q=100;w=60;pk=:cHsdsRa89w==:)"},
           {R"("peruser";q=65535;qu="content-bytes";w=10;pk=:sdfjLJUOUH==:)",
            "\xb1\xd7\xe3\x2c\x95\x0e\x50"sv,
            R"("peruser";q=65535;qu="content-bytes";w=10;pk=:sdfjLJUOUA==:)"},
       }) {
    auto const field = read_policies(lines{text});
    ASSERT_TRUE(field.has_value()) << text;
    auto const& policy = field->policies.at(0);
    EXPECT_EQ(policy.partition_key, key);
    std::string out;
    append_policies(out,
                    policies{{.name = "peruser",
                              .quota = policy.quota,
                              .unit = sf::string_view::make(policy.unit_name).value(),
                              .window = std::chrono::seconds(*policy.window)}},
                    limits{{.partition_key = key}}, draft::draft_09);
    EXPECT_EQ(out, written);
    EXPECT_EQ(read_policies(lines{out}), *field);
  }
}

TEST(ratelimit_examples, of_limits_in_draft_09_are_read_and_written) {
  for (auto const& e : {
           example{"4, 4.2", {R"("default";r=50;t=30)"}, {{.name = "default"}}, {{50, 30s}}},
           {"4.2, no reset",
            {R"("default";r=999;pk=:dHJpYWwxMjEzMjM=:)"},
            {{.name = "default"}},
            {{999, {}, "trial121323"}}},
           {"4.2, bytes",
            {R"("default";r=300000000;t=60;pk=:QXBwLTk5OQ==:)"},
            {{.name = "default"}},
            {{300'000'000, 60s, "App-999"}}},
           {"6, on a redirect",
            {R"("problemPolicy";r=0;t=10)"},
            {{.name = "problemPolicy"}},
            {{0, 10s}}},
           {"7", {R"("default";r=1;t=7)"}, {{.name = "default"}}, {{1, 7s}}},
           {"8.5", {R"("daily";r=1;t=36400)"}, {{.name = "daily"}}, {{1, 36400s}}},
           {"8.5, a large window",
            {R"("somepolicy";r=10000;t=10)"},
            {{.name = "somepolicy"}},
            {{10000, 10s}}},
           {"B.1.1", {R"("default";r=0;t=50)"}, {{.name = "default"}}, {{0, 50s}}},
           {"B.1.1, later", {R"("default";r=0;t=48)"}, {{.name = "default"}}, {{0, 48s}}},
           {"B.1.2", {R"("dayLimit";r=100;t=36000)"}, {{.name = "dayLimit"}}, {{100, 36000s}}},
           {"B.1.3", {R"("basic";r=60;t=58)"}, {{.name = "basic"}}, {{60, 58s}}},
           {"B.1.3, later", {R"("basic";r=20;t=56)"}, {{.name = "basic"}}, {{20, 56s}}},
           {"B.1.4", {R"("default";r=0;t=5)"}, {{.name = "default"}}, {{0, 5s}}},
           {"B.2.1", {R"("fixedwindow";r=99;t=50)"}, {{.name = "fixedwindow"}}, {{99, 50s}}},
           {"B.2.2", {R"("dynamic";r=9;t=50)"}, {{.name = "dynamic"}}, {{9, 50s}}},
           {"B.2.3", {R"("dynamic";r=0;t=20)"}, {{.name = "dynamic"}}, {{0, 20s}}},
           {"B.3", {R"("dynamic";r=15;t=40)"}, {{.name = "dynamic"}}, {{15, 40s}}},
           {"B.3.2", {R"("day";r=100;t=36000)"}, {{.name = "day"}}, {{100, 36000s}}},
           {"C, 8", {R"("default";r=50;t=60)"}, {{.name = "default"}}, {{50, 60s}}},
           {"C, 8, sliding", {R"("sliding";r=50;t=44)"}, {{.name = "sliding"}}, {{50, 44s}}},
       }) {
    expect_same_limits(e, draft::draft_09);
  }
}

TEST(ratelimit_examples, of_a_quota_among_the_limits_keep_it_as_a_comment) {
  // Appendix D: q has no meaning in RateLimit, and our server does not write it there.
  for (std::string_view text : {R"("sliding";q=12;r=6;t=1)", R"("sliding";q=12;r=1;t=1)"}) {
    expect_read_and_written_again({"D", {text}, {}, {}}, field_kind::limit, draft::draft_09);
    EXPECT_EQ(read_limits(lines{text}).value().limits.at(0).comments, comments("q=12"));
  }
}

TEST(ratelimit_examples, of_draft_09_that_break_its_own_rules_are_malformed) {
  // Section B.3.1 has Tokens where section 3 asks for Strings, and no r, which section 4.1
  // requires.
  for (std::string_view text : {"quota;q=100;w=1", "quota;q=10"}) {
    auto const field = read_policies(lines{text});
    ASSERT_FALSE(field.has_value()) << text;
    EXPECT_EQ(field.error().rule, field_rule::name_type);
    EXPECT_EQ(section_of(field.error()), "3");
  }
  auto const field = read_limits(lines{"quota;t=1"});
  ASSERT_FALSE(field.has_value());
  EXPECT_EQ(field.error().rule, field_rule::name_type);
  EXPECT_EQ(field.error().version, draft::draft_09);
  // What was meant is not in the draft's terms either.
  EXPECT_EQ(read_limits(lines{R"("quota";t=1)"}).error().rule, field_rule::remaining_missing);
}

TEST(ratelimit_examples, of_policies_in_draft_07_are_read_and_written) {
  auto const fixed = comments(R"(comment="fixed window")");
  auto const leaky = comments(R"(burst=1000;policy="leaky bucket")");
  auto const burst = comments("burst=1000");
  auto const sliding_1000 = comments(R"(burst=1000;comment="sliding window")");
  auto const fixed_0 = comments(R"(burst=0;comment="fixed window")");
  for (auto const& e : {
           example{"2.1", {"100;w=60"}, {{.name = "a", .quota = 100, .window = 60s}}, {{}}},
           {"2.3",
            {R"(100;w=60;comment="fixed window")", R"(12;w=1;burst=1000;policy="leaky bucket")"},
            {{.name = "a", .quota = 100, .window = 60s, .comments = &fixed},
             {.name = "b", .quota = 12, .window = 1s, .comments = &leaky}},
            {{}, {}}},
           {"3.5", {"100;w=10"}, {{.name = "a", .quota = 100, .window = 10s}}, {{}}},
           {"3.5, multiple policies",
            {"10;w=1, 50;w=60, 1000;w=3600, 5000;w=86400"},
            {{.name = "a", .quota = 10, .window = 1s},
             {.name = "b", .quota = 50, .window = 60s},
             {.name = "c", .quota = 1000, .window = 3600s},
             {.name = "d", .quota = 5000, .window = 86400s}},
            {{}, {}, {}, {}}},
           {"3.5, with a burst",
            {"10;w=1;burst=1000, 1000;w=3600"},
            {{.name = "a", .quota = 10, .window = 1s, .comments = &burst},
             {.name = "b", .quota = 1000, .window = 3600s}},
            {{}, {}}},
           {"6.5", {"10000;w=1000"}, {{.name = "a", .quota = 10000, .window = 1000s}}, {{}}},
           {"B.2.1, B.2.2 and B.3",
            {"100;w=60"},
            {{.name = "a", .quota = 100, .window = 60s}},
            {{}}},
           {"B.2.3", {"15;w=20"}, {{.name = "a", .quota = 15, .window = 20s}}, {{}}},
           {"B.3.2",
            {"1000;w=3600, 5000;w=86400"},
            {{.name = "hour", .quota = 1000, .window = 3600s},
             {.name = "day", .quota = 5000, .window = 86400s}},
            {{}, {}}},
           {"C, 9",
            {R"(100;w=60;burst=1000;comment="sliding window", )"
             R"(5000;w=3600;burst=0;comment="fixed window")"},
            {{.name = "a", .quota = 100, .window = 60s, .comments = &sliding_1000},
             {.name = "b", .quota = 5000, .window = 3600s, .comments = &fixed_0}},
            {{}, {}}},
           {"D", {"12;w=1"}, {{.name = "a", .quota = 12, .window = 1s}}, {{}}},
       }) {
    expect_same_policies(e, draft::draft_07);
  }
}

TEST(ratelimit_examples, of_a_quota_that_comes_twice_in_draft_07_are_malformed) {
  auto const field = read_policies(lines{"10;w=1, 10;w=60"});
  ASSERT_FALSE(field.has_value());
  EXPECT_EQ(field.error().rule, field_rule::quota_repeated);
  EXPECT_EQ(section_of(field.error()), "3.5");
}

TEST(ratelimit_examples, of_limits_in_draft_07_are_read_and_written) {
  // The window of an example that does not show it is not written either: any will do.
  auto row = [](char const* section, std::string_view text, std::int64_t limit,
                std::int64_t remaining, std::chrono::seconds reset) {
    return example{section,
                   {text},
                   {{.name = "a", .quota = limit, .window = 1h}},
                   {{.remaining = remaining, .reset = reset}}};
  };
  for (auto const& e : {
           row("3.5", "limit=100, remaining=50, reset=5", 100, 50, 5s),
           row("4, on a redirect", "limit=10, remaining=0, reset=10", 10, 0, 10s),
           row("5", "limit=10, remaining=1, reset=7", 10, 1, 7s),
           row("6.5", "limit=1, remaining=1, reset=36000", 1, 1, 36000s),
           row("6.5, a large window", "limit=10000, remaining=10000, reset=10", 10000, 10000, 10s),
           row("B.1.1", "limit=100, remaining=0, reset=50", 100, 0, 50s),
           row("B.1.1, later", "limit=100, remaining=0, reset=48", 100, 0, 48s),
           row("B.1.2", "limit=5000, remaining=100, reset=36000", 5000, 100, 36000s),
           row("B.1.3", "limit=100, remaining=60, reset=58", 100, 60, 58s),
           row("B.1.3, later", "limit=100, remaining=20, reset=56", 100, 20, 56s),
           row("B.1.4", "limit=100, remaining=0, reset=5", 100, 0, 5s),
           row("B.2.1", "limit=100, remaining=99, reset=50", 100, 99, 50s),
           row("B.2.2", "limit=10, remaining=9, reset=50", 10, 9, 50s),
           row("B.2.3", "limit=0, remaining=0, reset=20", 0, 0, 20s),
           row("B.3", "limit=15, remaining=15, reset=40", 15, 15, 40s),
           row("C, 9", "limit=100, remaining=50, reset=60", 100, 50, 60s),
           row("C, 9, sliding", "limit=100, remaining=50, reset=44", 100, 50, 44s),
           // Appendix D breaks its lines and annotates them; this is what it shows.
           row("D", "limit=12, remaining=6, reset=1", 12, 6, 1s),
           row("D, at the top", "limit=12, remaining=1, reset=1", 12, 1, 1s),
       }) {
    expect_same_limits(e, draft::draft_07);
  }
}

TEST(ratelimit_examples, of_single_members_of_draft_07_are_not_a_field_alone) {
  // Sections 3.2 to 3.4 show one member each; limit and reset are required.
  EXPECT_EQ(read_limits(lines{"limit=100"}).error().rule, field_rule::reset_missing);
  EXPECT_EQ(read_limits(lines{"remaining=50"}).error().rule, field_rule::limit_missing);
  EXPECT_EQ(read_limits(lines{"reset=50"}).error().rule, field_rule::limit_missing);
  EXPECT_TRUE(read_limits(lines{"limit=100", "remaining=50", "reset=50"}).has_value());
}

TEST(ratelimit_examples, of_a_server_without_counters_are_read_in_draft_07) {
  // Section B.3.1. Our server always knows what remains.
  std::string_view const text = "limit=10, reset=1";
  expect_read_and_written_again({"B.3.1", {text}, {}, {}}, field_kind::limit, draft::draft_07);
  auto const limit = read_limits(lines{text}).value().limits.at(0);
  EXPECT_EQ(limit.limit, 10);
  EXPECT_EQ(limit.remaining, std::nullopt);
  EXPECT_EQ(limit.reset, 1);
}

TEST(ratelimit_examples, of_the_closest_limit_are_chosen_in_draft_07) {
  // Section B.3.2: 4900 of 5000 units a day are spent, and few of the 1000 in this hour.
  policies const p{{.name = "hour", .quota = 1000, .window = 3600s},
                   {.name = "day", .quota = 5000, .window = 86400s}};
  limits const l{{.remaining = 900, .reset = 1800s}, {.remaining = 100, .reset = 36000s}};
  std::string policy;
  std::string limit;
  append_policies(policy, p, l, draft::draft_07);
  append_limits(limit, p, l, draft::draft_07);
  EXPECT_EQ(policy, "1000;w=3600, 5000;w=86400");
  EXPECT_EQ(limit, "limit=5000, remaining=100, reset=36000");
  EXPECT_EQ(find_expiring_limit(p, l), (expiring_limit{5000, 100, 36000}));
}

TEST(ratelimit_examples, of_retry_after_agree_with_the_reset) {
  // Section B.1.4 of both drafts, at Mon, 05 Aug 2019 09:27:00 GMT.
  std::chrono::sys_seconds const date{1'564'997'220s};
  EXPECT_EQ(http::parse_retry_after("Mon, 05 Aug 2019 09:27:05 GMT", date), 5s);
  EXPECT_EQ(read_limits(lines{R"("default";r=0;t=5)"}).value().limits.at(0).reset, 5);
  EXPECT_EQ(read_limits(lines{"limit=100, remaining=0, reset=5"}).value().limits.at(0).reset, 5);
  // Section B.3 of both.
  EXPECT_EQ(http::parse_retry_after("20", date), 20s);
  std::string out;
  append_retry_after(out, 20s);
  EXPECT_EQ(out, "20");
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::ratelimit
