// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/read.hpp>

#include <tidegate/sf/parse.hpp>

#include "printing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {
namespace {

using lines = std::vector<std::string_view>;

auto comments_in(std::string_view text) -> comment_parameters {
  return std::get<0>(sf::parse_list<field_dialect>(text).value().at(0)).parameters;
}

TEST(ratelimit_read, reads_the_policies_of_draft_09) {
  auto const field = read_policies(lines{
      R"("burst";q=100;w=60, "bytes";q=65535;qu="content-bytes";w=10;pk=:aGk=:;acme-x=?0;y)"});
  ASSERT_TRUE(field.has_value());
  EXPECT_EQ(field->version, draft::draft_09);
  ASSERT_EQ(field->policies.size(), 2U);
  quota_policy burst;
  burst.name = "burst";
  burst.quota = 100;
  burst.window = 60;
  EXPECT_EQ(field->policies[0], burst);
  quota_policy bytes;
  bytes.name = "bytes";
  bytes.quota = 65535;
  bytes.unit = quota_unit::content_bytes;
  bytes.unit_name = "content-bytes";
  bytes.window = 10;
  bytes.partition_key = "hi";
  bytes.comments = comments_in("x;acme-x=?0;y");
  EXPECT_EQ(field->policies[1], bytes);
}

TEST(ratelimit_read, reads_the_limits_of_draft_09) {
  auto const field =
      read_limits(lines{R"("default";r=50;t=30, "\"odd\\";r=0;pk=::, "x";r=1;t=0;limit=7;q=12)"});
  ASSERT_TRUE(field.has_value());
  EXPECT_EQ(field->version, draft::draft_09);
  ASSERT_EQ(field->limits.size(), 3U);
  service_limit plain;
  plain.name = "default";
  plain.remaining = 50;
  plain.reset = 30;
  EXPECT_EQ(field->limits[0], plain);
  service_limit odd;
  odd.name = R"("odd\)";
  odd.remaining = 0;
  odd.partition_key = "";
  EXPECT_EQ(field->limits[1], odd);
  service_limit commented;
  commented.name = "x";
  commented.remaining = 1;
  commented.reset = 0;
  commented.comments = comments_in("x;limit=7;q=12");
  EXPECT_EQ(field->limits[2], commented);
}

TEST(ratelimit_read, reads_the_policies_of_draft_07) {
  auto const field = read_policies(lines{R"(10;w=1;burst=1000;comment="sliding window", 0;w=0)"});
  ASSERT_TRUE(field.has_value());
  EXPECT_EQ(field->version, draft::draft_07);
  ASSERT_EQ(field->policies.size(), 2U);
  quota_policy ten;
  ten.quota = 10;
  ten.window = 1;
  ten.comments = comments_in(R"(x;burst=1000;comment="sliding window")");
  EXPECT_EQ(field->policies[0], ten);
  quota_policy none;
  none.window = 0;
  EXPECT_EQ(field->policies[1], none);
}

TEST(ratelimit_read, reads_the_limit_of_draft_07) {
  auto const field = read_limits(lines{"limit=100, remaining=50, reset=5"});
  ASSERT_TRUE(field.has_value());
  EXPECT_EQ(field->version, draft::draft_07);
  ASSERT_EQ(field->limits.size(), 1U);
  service_limit limit;
  limit.limit = 100;
  limit.remaining = 50;
  limit.reset = 5;
  EXPECT_EQ(field->limits[0], limit);
}

TEST(ratelimit_read, needs_no_remaining_in_draft_07) {
  auto const field = read_limits(lines{"reset=1,limit=10"});
  ASSERT_TRUE(field.has_value());
  EXPECT_EQ(field->limits.at(0).remaining, std::nullopt);
  EXPECT_EQ(field->limits.at(0).limit, 10);
  EXPECT_EQ(field->limits.at(0).reset, 1);
}

TEST(ratelimit_read, ignores_parameters_and_other_members_of_draft_07s_dictionary) {
  auto const field =
      read_limits(lines{R"(acme, limit=100;w="x";limit=1, other=(1 2), note="hi";x, reset=5;r)"});
  ASSERT_TRUE(field.has_value());
  EXPECT_EQ(field->version, draft::draft_07);
  EXPECT_EQ(field->limits.at(0).limit, 100);
  EXPECT_EQ(field->limits.at(0).reset, 5);
  EXPECT_EQ(field->limits.at(0).comments, comments_in(R"(x;acme;note="hi")"));
}

TEST(ratelimit_read, tells_the_drafts_apart) {
  struct row {
    std::string_view policy;
    std::string_view limit;
    draft version;
  };
  for (auto const& [policy, limit, version] : {
           row{R"("a";q=1)", R"("a";r=1)", draft::draft_09},
           {R"(  "a";q=1)", R"(  "a";r=1)", draft::draft_09},
           {R"("";q=1)", R"("limit";r=1)", draft::draft_09},
           {"1;w=1", "limit=1, reset=1", draft::draft_07},
           {"  1;w=1", "  reset=1,\tlimit=1", draft::draft_07},
           {"1;w=1;q=1", "x, *=?0, reset=1, limit=1", draft::draft_07},
       }) {
    auto const policies = read_policies(lines{policy});
    ASSERT_TRUE(policies.has_value()) << policy << ": " << to_string(policies.error());
    EXPECT_EQ(policies->version, version) << policy;
    auto const limits = read_limits(lines{limit});
    ASSERT_TRUE(limits.has_value()) << limit << ": " << to_string(limits.error());
    EXPECT_EQ(limits->version, version) << limit;
  }
}

TEST(ratelimit_read, joins_the_lines_of_a_field) {
  auto const policies = read_policies(lines{R"("a";q=1, "b";q=2)", R"("c";q=3)"});
  ASSERT_TRUE(policies.has_value());
  ASSERT_EQ(policies->policies.size(), 3U);
  EXPECT_EQ(policies->policies[2].name, "c");

  auto const limits = read_limits(lines{R"("a";r=1)", R"("b";r=2)"});
  ASSERT_TRUE(limits.has_value());
  EXPECT_EQ(limits->limits.size(), 2U);

  auto const older = read_limits(lines{"limit=10", "remaining=3", "reset=7"});
  ASSERT_TRUE(older.has_value());
  EXPECT_EQ(older->limits.at(0).remaining, 3);
}

TEST(ratelimit_read, has_nothing_where_there_is_no_field) {
  EXPECT_EQ(read_policies({}), policy_field());
  EXPECT_EQ(read_limits({}), limit_field());
  // Only RateLimit-Policy is a non-empty List.
  EXPECT_EQ(read_limits(lines{""}), limit_field());
  EXPECT_EQ(read_limits(lines{"  "}), limit_field());
}

TEST(ratelimit_read, takes_the_last_of_repeated_parameters_and_keys) {
  EXPECT_EQ(read_policies(lines{R"("a";q="x";w=0;q=5;w=6)"}).value().policies.at(0).quota, 5);
  EXPECT_EQ(read_limits(lines{R"("a";r=-1;r=5)"}).value().limits.at(0).remaining, 5);
  EXPECT_EQ(read_limits(lines{"limit=(1), reset=1, limit=9"}).value().limits.at(0).limit, 9);
}

TEST(ratelimit_read, keeps_several_items_of_one_name) {
  EXPECT_EQ(read_policies(lines{R"("a";q=1;pk=:YQ==:, "a";q=1;pk=:Yg==:)"}).value().policies.size(),
            2U);
  EXPECT_EQ(read_limits(lines{R"("a";r=1, "a";r=1)"}).value().limits.size(), 2U);
}

TEST(ratelimit_read, knows_the_units_of_the_draft_and_keeps_others) {
  struct row {
    std::string_view text;
    quota_unit unit;
    std::string_view name;
  };
  for (auto const& [text, unit, name] : {
           row{R"("a";q=1)", quota_unit::requests, "requests"},
           {R"("a";q=1;qu="requests")", quota_unit::requests, "requests"},
           {R"("a";q=1;qu="request")", quota_unit::requests, "request"},  // section 10.3
           {R"("a";q=1;qu="content-bytes")", quota_unit::content_bytes, "content-bytes"},
           {R"("a";q=1;qu="concurrent-requests")", quota_unit::concurrent_requests,
            "concurrent-requests"},
           {R"("a";q=1;qu="tokens")", quota_unit::other, "tokens"},
           {R"("a";q=1;qu="Requests")", quota_unit::other, "Requests"},
           {R"("a";q=1;qu="")", quota_unit::other, ""},
       }) {
    auto const field = read_policies(lines{text});
    ASSERT_TRUE(field.has_value()) << text;
    EXPECT_EQ(field->policies.at(0).unit, unit) << text;
    EXPECT_EQ(field->policies.at(0).unit_name, name) << text;
    if (unit != quota_unit::other && name != "request") {
      EXPECT_EQ(name_of(unit), name);
    }
  }
}

TEST(ratelimit_read, takes_the_largest_numbers) {
  auto const policies = read_policies(lines{R"("a";q=999999999999999;w=999999999999999)"});
  EXPECT_EQ(policies.value().policies.at(0).quota, 999'999'999'999'999);
  EXPECT_EQ(policies.value().policies.at(0).window, 999'999'999'999'999);
  auto const limits = read_limits(lines{R"("a";r=999999999999999;t=999999999999999)"});
  EXPECT_EQ(limits.value().limits.at(0).remaining, 999'999'999'999'999);
  auto const older = read_limits(lines{"limit=999999999999999, reset=0, remaining=-0"});
  EXPECT_EQ(older.value().limits.at(0).remaining, 0);
}

/// A field that is malformed, the rule it breaks and where.
struct refused {
  std::string_view text;
  field_rule rule;
  std::size_t item;
  std::string_view section;
};

using enum field_rule;

TEST(ratelimit_read, refuses_policies_that_break_a_rule_of_draft_09) {
  for (auto const& [text, rule, item, section] : {
           refused{"", no_items, 0, "3"},
           {"   ", no_items, 0, "3"},
           {"quota;q=100;w=1", name_type, 0, "3"},
           {"?1;q=100", name_type, 0, "3"},
           {"1.5;q=100", name_type, 0, "3"},
           {":YQ==:;q=100", name_type, 0, "3"},
           {R"("a";q=1, b;q=1)", name_type, 1, "3"},
           {R"("a";q=1, 10;w=1)", name_type, 1, "3"},
           {R"(("a");q=1)", inner_list, 0, "3"},
           {R"("a";q=1, ("b" "c");q=1)", inner_list, 1, "3"},
           {R"("a")", quota_missing, 0, "3.1"},
           {R"("a";w=60)", quota_missing, 0, "3.1"},
           {R"("a";q=1, "b";Q=1)", syntax, 0, "4.2"},
           {R"("a";q)", quota_value, 0, "3.1.1"},
           {R"("a";q=-1)", quota_value, 0, "3.1.1"},
           {R"("a";q=1.0)", quota_value, 0, "3.1.1"},
           {R"("a";q="1")", quota_value, 0, "3.1.1"},
           {R"("a";q=one)", quota_value, 0, "3.1.1"},
           {R"("a";q=:MQ==:)", quota_value, 0, "3.1.1"},
           {R"("a";q=1, "b";q=1, "c";q=-1)", quota_value, 2, "3.1.1"},
           {R"("a";q=1;q=-1)", quota_value, 0, "3.1.1"},
           {R"("a";q=1;qu=requests)", unit_type, 0, "3.1.2"},
           {R"("a";q=1;qu=1)", unit_type, 0, "3.1.2"},
           {R"("a";q=1;qu)", unit_type, 0, "3.1.2"},
           {R"("a";q=1;w=0)", window_value, 0, "3.1.3"},
           {R"("a";q=1;w=-60)", window_value, 0, "3.1.3"},
           {R"("a";q=1;w=1.5)", window_value, 0, "3.1.3"},
           {R"("a";q=1;w="60")", window_value, 0, "3.1.3"},
           {R"("a";q=1;w)", window_value, 0, "3.1.3"},
           {R"("a";q=1;pk="key")", partition_key_type, 0, "3.1.4"},
           {R"("a";q=1;pk=key)", partition_key_type, 0, "3.1.4"},
           {R"("a";q=1;pk)", partition_key_type, 0, "3.1.4"},
       }) {
    auto const field = read_policies(lines{text});
    ASSERT_FALSE(field.has_value()) << text;
    EXPECT_EQ(field.error().rule, rule) << text << "\n" << to_string(field.error());
    EXPECT_EQ(field.error().item, item) << text;
    EXPECT_EQ(field.error().version, draft::draft_09) << text;
    EXPECT_EQ(field.error().field, field_kind::policy) << text;
    EXPECT_EQ(section_of(field.error()), section) << text;
  }
}

TEST(ratelimit_read, refuses_limits_that_break_a_rule_of_draft_09) {
  for (auto const& [text, rule, item, section] : {
           refused{"quota;t=1", name_type, 0, "4.1"},
           {"quota;r=1;t=1", name_type, 0, "4.1"},
           {"1;r=1", name_type, 0, "4.1"},
           {"100;w=60", name_type, 0, "4.1"},
           {R"("a";r=1, b;r=1)", name_type, 1, "4.1"},
           {R"(("a");r=1)", inner_list, 0, "4"},
           {R"("a";r=1, ();r=1)", inner_list, 1, "4"},
           {R"("a")", remaining_missing, 0, "4.1"},
           {R"("a";t=1)", remaining_missing, 0, "4.1"},
           {R"("a";r=-1)", remaining_value, 0, "4.1.1"},
           {R"("a";r=0.5)", remaining_value, 0, "4.1.1"},
           {R"("a";r="1")", remaining_value, 0, "4.1.1"},
           {R"("a";r)", remaining_value, 0, "4.1.1"},
           {R"("a";r=1;t=-1)", reset_value, 0, "4.1.2"},
           {R"("a";r=1;t=1.0)", reset_value, 0, "4.1.2"},
           {R"("a";r=1;t=soon)", reset_value, 0, "4.1.2"},
           {R"("a";r=1;t)", reset_value, 0, "4.1.2"},
           {R"("a";r=1;pk="key")", partition_key_type, 0, "4.1.3"},
           {R"("a";r=1;pk=?0)", partition_key_type, 0, "4.1.3"},
       }) {
    auto const field = read_limits(lines{text});
    ASSERT_FALSE(field.has_value()) << text;
    EXPECT_EQ(field.error().rule, rule) << text << "\n" << to_string(field.error());
    EXPECT_EQ(field.error().item, item) << text;
    EXPECT_EQ(field.error().version, draft::draft_09) << text;
    EXPECT_EQ(field.error().field, field_kind::limit) << text;
    EXPECT_EQ(section_of(field.error()), section) << text;
  }
}

TEST(ratelimit_read, refuses_policies_that_break_a_rule_of_draft_07) {
  for (auto const& [text, rule, item, section] : {
           refused{"10;w=1, 10;w=60", quota_repeated, 1, "3.5"},
           {"10;w=1, 20;w=1, 5;w=1, 20;w=1", quota_repeated, 3, "3.5"},
           {"-1;w=1", quota_value, 0, "2.2"},
           {"10;w=1, 1.5;w=1", quota_value, 1, "2.2"},
           {R"(10;w=1, "a";q=1)", quota_value, 1, "2.2"},
           {"10;w=1, (1);w=1", inner_list, 1, "3.5"},
           {"10", window_missing, 0, "2.1"},
           {"10;w=1, 20", window_missing, 1, "2.1"},
           {"10;w", window_value, 0, "2.3"},
           {"10;w=-1", window_value, 0, "2.3"},
           {"10;w=1.5", window_value, 0, "2.3"},
           {"10;w=minute", window_value, 0, "2.3"},
       }) {
    auto const field = read_policies(lines{text});
    ASSERT_FALSE(field.has_value()) << text;
    EXPECT_EQ(field.error().rule, rule) << text << "\n" << to_string(field.error());
    EXPECT_EQ(field.error().item, item) << text;
    EXPECT_EQ(field.error().version, draft::draft_07) << text;
    EXPECT_EQ(section_of(field.error()), section) << text;
  }
}

TEST(ratelimit_read, refuses_limits_that_break_a_rule_of_draft_07) {
  for (auto const& [text, rule, item, section] : {
           refused{"remaining=1, reset=1", limit_missing, 0, "3.1"},
           {"limit=1, remaining=1", reset_missing, 0, "3.1"},
           {"remaining=1", limit_missing, 0, "3.1"},
           {"foo=1", limit_missing, 0, "3.1"},
           {"limit=-1, reset=1", limit_value, 0, "3.2"},
           {"reset=1, limit=1.0", limit_value, 1, "3.2"},
           {"reset=1, limit", limit_value, 1, "3.2"},
           {R"(limit="1", reset=1)", limit_value, 0, "3.2"},
           {"limit=1, remaining=-1, reset=1", remaining_value, 1, "3.3"},
           {"limit=1, remaining=many, reset=1", remaining_value, 1, "3.3"},
           {"limit=1, reset=-1", reset_value, 1, "3.4"},
           {"limit=1, reset=@1", syntax, 0, "4.2"},
           {"limit=(1), reset=1", inner_list, 0, "3.1"},
           {"limit=1, reset=()", inner_list, 1, "3.1"},
       }) {
    auto const field = read_limits(lines{text});
    ASSERT_FALSE(field.has_value()) << text;
    EXPECT_EQ(field.error().rule, rule) << text << "\n" << to_string(field.error());
    EXPECT_EQ(field.error().item, item) << text;
    EXPECT_EQ(field.error().version, draft::draft_07) << text;
    EXPECT_EQ(section_of(field.error()), section) << text;
  }
}

TEST(ratelimit_read, says_where_the_syntax_fails_and_by_which_draft) {
  struct row {
    lines text;
    std::size_t offset;
    draft version;
  };
  for (auto const& [text, offset, version] : {
           row{{R"("a";r=1,)"}, 8, draft::draft_09},
           {{R"("a";r=1, "b)"}, 11, draft::draft_09},
           {{R"("a";r=1)", "", R"("b";r=1)"}, 9, draft::draft_09},
           {{R"("a";r=1)", "limit=1"}, 14, draft::draft_09},
           {{"limit=1, reset="}, 15, draft::draft_07},
           {{"limit=1, reset=1, \"a\""}, 18, draft::draft_07},
           {{"limit, reset=1, x=\x01"}, 18, draft::draft_07},
           {{"\x01"}, 0, draft::draft_09},
           {{R"("a";r=1000000000000000)"}, 21, draft::draft_09},
       }) {
    auto const field = read_limits(text);
    ASSERT_FALSE(field.has_value()) << text[0];
    EXPECT_EQ(field.error().rule, syntax) << text[0];
    EXPECT_EQ(field.error().syntax.offset, offset) << text[0];
    EXPECT_EQ(field.error().version, version) << text[0];
  }
  auto const policies = read_policies(lines{R"("a";q=1)", "\"b\";q=\x7f"});
  ASSERT_FALSE(policies.has_value());
  EXPECT_EQ(policies.error().syntax.offset, 15U);
}

TEST(ratelimit_read, knows_no_types_that_are_younger_than_the_drafts) {
  EXPECT_EQ(read_policies(lines{R"("a";q=1;since=@1659578233)"}).error().rule, syntax);
  EXPECT_EQ(read_limits(lines{R"("a";r=1;note=%"f%c3%bc")"}).error().rule, syntax);
}

TEST(ratelimit_read, tells_people_what_is_wrong) {
  auto policy = [](std::string_view text) { return to_string(read_policies(lines{text}).error()); };
  auto limit = [](std::string_view text) { return to_string(read_limits(lines{text}).error()); };
  EXPECT_EQ(policy(R"("a";q=1, "b";q=-1)"),
            "RateLimit-Policy, item 2: q must be a non-negative Integer (draft-09, section 3.1.1)");
  EXPECT_EQ(policy("10;w=1, 10;w=60"),
            "RateLimit-Policy, item 2: an item before has the same quota (draft-07, section 3.5)");
  EXPECT_EQ(policy(""), "RateLimit-Policy: the List must not be empty (draft-09, section 3)");
  EXPECT_EQ(limit(R"("a";t=5)"), "RateLimit, item 1: r is required (draft-09, section 4.1)");
  EXPECT_EQ(limit("limit=5"), "RateLimit: reset is required (draft-07, section 3.1)");
  EXPECT_EQ(limit(R"("a";r=5,)"),
            "RateLimit: a member must follow the comma at offset 8 (RFC 8941, section 4.2)");
}

TEST(ratelimit_read, has_a_text_and_a_section_for_every_rule) {
  for (int rule = 0; rule <= static_cast<int>(reset_value); ++rule) {
    for (auto version : {draft::draft_09, draft::draft_07}) {
      for (auto field : {field_kind::policy, field_kind::limit}) {
        field_error const error{static_cast<field_rule>(rule), field, version, 0, {}};
        EXPECT_FALSE(section_of(error).empty()) << rule;
        EXPECT_EQ(to_string(error).find("unknown"), std::string::npos) << rule;
      }
    }
  }
}

TEST(ratelimit_read, takes_thousands_of_items_in_its_stride) {
  std::string policies;
  std::string limits;
  for (int i = 0; i < 20'000; ++i) {
    policies += (i == 0 ? "" : ", ") + std::to_string(i) + ";w=1";
    limits += std::string(i == 0 ? "" : ", ") + "\"a\";r=" + std::to_string(i);
  }
  EXPECT_EQ(read_policies(lines{policies}).value().policies.size(), 20'000U);
  EXPECT_EQ(read_limits(lines{limits}).value().limits.size(), 20'000U);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::ratelimit
