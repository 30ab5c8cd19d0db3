// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/field.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/lint.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::lint {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::sys_seconds now{1715947200s};

auto answer(probe purpose, int status, std::vector<http::field> fields = {},
            std::string content = {}) -> exchange {
  return {.request = {.purpose = purpose,
                      .method = purpose >= probe::key_missing && purpose <= probe::key_concurrent
                                    ? "POST"
                                    : "GET",
                      .url = "http://api.example.com/orders?x=1"},
          .status = status,
          .fields = std::move(fields),
          .content = std::move(content),
          .received = now};
}

auto problem(probe purpose, int status, std::string content, std::vector<http::field> fields = {})
    -> exchange {
  fields.push_back({"Content-Type", "application/problem+json"});
  return answer(purpose, status, std::move(fields), std::move(content));
}

auto scim(probe purpose, std::string content, int status = 200) -> exchange {
  return answer(purpose, status, {{"Content-Type", "application/scim+json"}}, std::move(content));
}

/// A page with these ids; `more` is put before the resources.
auto page(probe purpose, std::vector<std::string> const& ids, std::string const& more) -> exchange {
  std::string content = R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],)" +
                        more + R"("Resources":[)";
  for (auto const& id : ids) {
    content += (content.ends_with('[') ? R"({"id":")" : R"(,{"id":")") + id + R"("})";
  }
  return scim(purpose, content + "]}");
}

auto config(std::string const& pagination) -> exchange {
  return scim(probe::scim_config,
              R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"])" +
                  pagination + "}");
}

auto scim_error(probe purpose, int status, std::string const& type) -> exchange {
  return scim(purpose,
              R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"status":")" +
                  std::to_string(status) + R"(","scimType":")" + type + R"("})",
              status);
}

auto judged(std::string_view id, std::vector<exchange> const& exchanges) -> judgement {
  for (auto& one : judge(exchanges)) {
    if (one.rule.id == id) {
      return one;
    }
  }
  ADD_FAILURE() << "there is no rule " << id;
  return {};
}

using exchanges = std::vector<exchange>;

struct row {
  std::string_view rule;
  exchanges wrong;
  exchanges right;
};

constexpr std::string_view quota_type =
    "https://iana.org/assignments/http-problem-types#quota-exceeded";

auto quota_problem(std::string const& members, int status = 429,
                   std::vector<http::field> fields = {}) -> exchange {
  return problem(probe::sample, status,
                 R"({"type":")" + std::string(quota_type) + "\"" + members + "}",
                 std::move(fields));
}

auto with_secret(std::string const& key) -> exchange {
  auto made = answer(probe::sample, 200, {{"RateLimit", "\"a\";r=1;pk=:" + key + ":"}});
  made.request.fields = {{"Authorization", "Bearer swordfish"}};
  return made;
}

/// The first page of two, and what may follow it.
auto first_page(std::string const& more = R"("totalResults":3,"nextCursor":"abc",)") -> exchange {
  return page(probe::scim_first_page, {"1", "2"}, more);
}

auto rows() -> std::vector<row> const& {
  using enum probe;
  static http::field const limit = {"RateLimit", R"("a";r=1;t=9)"};
  static std::vector<row> const all = {
      // RateLimit
      {"ratelimit-advertised", {answer(sample, 200)}, {answer(sample, 200, {limit})}},
      {"ratelimit-policy-stable",
       {answer(sample, 200, {{"RateLimit-Policy", R"("a";q=1)"}}),
        answer(sample, 200, {{"RateLimit-Policy", R"("a";q=2)"}})},
       {answer(sample, 200, {{"RateLimit-Policy", R"("a";q=1)"}}),
        answer(sample, 200, {{"RateLimit-Policy", R"("a";q=1)"}})}},
      {"ratelimit-partition-key-secret", {with_secret("c3dvcmRmaXNo")}, {with_secret("c2hhcms=")}},
      {"ratelimit-refusal-says-when",
       {answer(sample, 429)},
       {answer(sample, 429, {{"Retry-After", "1"}})}},
      {"ratelimit-refusal-says-when",
       {answer(sample, 429, {{"RateLimit", R"("a";r=0)"}})},
       {answer(sample, 429, {limit})}},
      {"ratelimit-problem-type",
       {problem(sample, 429,
                R"({"type":"http://www.iana.org/assignments/http-problem-types#quota-exceeded"})")},
       {quota_problem("")}},
      {"ratelimit-problem-status", {quota_problem("", 403)}, {quota_problem("")}},
      {"ratelimit-violated-missing",
       {quota_problem(R"(,"policy-violations":["a"])")},
       {quota_problem(R"(,"violated-policies":["a"])")}},
      {"ratelimit-violated-policies",
       {quota_problem(R"(,"violated-policies":"a")")},
       {quota_problem(R"(,"violated-policies":[])")}},
      {"ratelimit-violated-names",
       {quota_problem(R"(,"violated-policies":["b"])", 429, {{"RateLimit-Policy", R"("a";q=1)"}})},
       {quota_problem(R"(,"violated-policies":["a"])", 429, {{"RateLimit-Policy", R"("a";q=1)"}})}},
      // of single fields, by way of explain
      {"ratelimit-remaining-missing",
       {answer(sample, 200, {{"RateLimit", R"("a";t=1)"}})},
       {answer(sample, 200, {limit})}},
      {"ratelimit-quota-repeated",
       {answer(sample, 200, {{"RateLimit-Policy", "10;w=1, 10;w=60"}})},
       {answer(sample, 200, {{"RateLimit-Policy", "10;w=1, 20;w=60"}})}},
      {"retry-after-before-reset",
       {answer(sample, 429, {{"RateLimit", R"("a";r=0;t=60)"}, {"Retry-After", "1"}})},
       {answer(sample, 429, {{"RateLimit", R"("a";r=0;t=60)"}, {"Retry-After", "60"}})}},
      {"ratelimit-redirect-exhausted",
       {answer(sample, 302, {{"RateLimit", R"("a";r=0;t=60)"}})},
       {answer(sample, 302, {limit})}},
      {"x-ratelimit-value",
       {answer(sample, 200, {{"X-RateLimit-Remaining", "NaN"}})},
       {answer(sample, 200, {{"X-RateLimit-Remaining", "1"}})}},
      // problem details
      {"problem-object",
       {problem(missing_page, 404, "nothing")},
       {problem(missing_page, 404, "{}")}},
      {"problem-object",
       {problem(missing_page, 404, "[]")},
       {problem(missing_page, 404, R"({"a":1})")}},
      {"problem-members",
       {problem(missing_page, 404, R"({"status":"404"})")},
       {problem(missing_page, 404, R"({"status":404})")}},
      {"problem-members",
       {problem(missing_page, 404, R"({"title":1})")},
       {problem(missing_page, 404, R"({"title":"a"})")}},
      {"problem-status",
       {problem(missing_page, 404, R"({"status":400})")},
       {problem(missing_page, 404, R"({"status":404})")}},
      {"problem-uri",
       {problem(missing_page, 404, R"({"type":"not found"})")},
       {problem(missing_page, 404, R"({"type":"about:blank"})")}},
      {"problem-uri",
       {problem(missing_page, 404, R"({"instance":"/a%2"})")},
       {problem(missing_page, 404, R"({"instance":"/a%20"})")}},
      {"problem-media-type",
       {answer(missing_page, 404, {{"Content-Type", "application/json"}},
               R"({"type":"/a","title":"b"})")},
       {problem(missing_page, 404, R"({"type":"/a","title":"b"})")}},
      {"problem-extension-names",
       {problem(missing_page, 404, R"({"id":1})")},
       {problem(missing_page, 404, R"({"violated-policies":[]})")}},
      // keys
      {"idempotency-missing-key-refused", {answer(key_missing, 201)}, {answer(key_missing, 400)}},
      {"idempotency-missing-key-status", {answer(key_missing, 428)}, {answer(key_missing, 400)}},
      {"idempotency-first-processed", {answer(key_first, 409)}, {answer(key_first, 201)}},
      {"idempotency-retry-status",
       {answer(key_first, 201), answer(key_retry, 409)},
       {answer(key_first, 201), answer(key_retry, 201)}},
      {"idempotency-retry-content",
       {answer(key_first, 201, {}, "1"), answer(key_retry, 201, {}, "2")},
       {answer(key_first, 201, {}, "1"), answer(key_retry, 201, {}, "1")}},
      {"idempotency-reuse-refused",
       {answer(key_first, 201), answer(key_reused, 201)},
       {answer(key_first, 201), answer(key_reused, 422)}},
      {"idempotency-reuse-status",
       {answer(key_first, 201), answer(key_reused, 409)},
       {answer(key_first, 201), answer(key_reused, 422)}},
      {"idempotency-malformed-refused",
       {answer(key_missing, 400), answer(key_malformed, 201)},
       {answer(key_missing, 400), answer(key_malformed, 400)}},
      {"idempotency-malformed-ignored", {answer(key_malformed, 201)}, {answer(key_malformed, 400)}},
      {"idempotency-concurrent-once",
       {answer(key_concurrent, 201, {}, "1"), answer(key_concurrent, 201, {}, "2")},
       {answer(key_concurrent, 201, {}, "1"), answer(key_concurrent, 201, {}, "1")}},
      {"idempotency-concurrent-status",
       {answer(key_concurrent, 423), answer(key_concurrent, 201)},
       {answer(key_concurrent, 409), answer(key_concurrent, 201)}},
      {"idempotency-refusal-documented",
       {problem(key_missing, 400, R"({"title":"key missing"})")},
       {problem(key_missing, 400, R"({"type":"/docs#key-missing"})")}},
      {"idempotency-refusal-documented",
       {answer(key_first, 201), answer(key_reused, 422)},
       {answer(key_first, 201),
        answer(key_reused, 422, {{"Link", R"(</docs>; rel="describedby")"}})}},
      {"idempotency-conflict-described",
       {answer(key_concurrent, 201), answer(key_concurrent, 409)},
       {answer(key_concurrent, 201), problem(key_concurrent, 409, R"({"title":"in flight"})")}},
      // SCIM
      {"scim-config", {scim_error(scim_config, 404, "")}, {config("")}},
      {"scim-config-pagination",
       {config(""), first_page()},
       {config(R"(,"pagination":{"cursor":true,"index":true})"), first_page()}},
      {"scim-config-booleans",
       {config(R"(,"pagination":{"cursor":"true"})")},
       {config(R"(,"pagination":{"cursor":true,"index":false})")}},
      {"scim-config-numbers",
       {config(R"(,"pagination":{"cursorTimeout":"600"})")},
       {config(R"(,"pagination":{"cursorTimeout":600})")}},
      {"scim-config-numbers",
       {config(R"(,"pagination":{"maximumPageSize":-1})")},
       {config(R"(,"pagination":{"maxPageSize":0})")}},
      {"scim-config-names",
       {config(R"(,"pagination":{"defaultCount":10})")},
       {config(R"(,"pagination":{"defaultPageSize":10})")}},
      {"scim-config-method",
       {config(R"(,"pagination":{"defaultPaginationMethod":"offset"})")},
       {config(R"(,"pagination":{"defaultPaginationMethod":"index"})")}},
      {"scim-config-true",
       {config(R"(,"pagination":{"cursor":false,"index":true})"), first_page()},
       {config(R"(,"pagination":{"cursor":true,"index":true})"), first_page()}},
      {"scim-config-true",
       {config(R"(,"pagination":{"cursor":true,"index":true})"),
        scim_error(scim_first_page, 400, "invalidValue")},
       {config(R"(,"pagination":{"cursor":false,"index":true})"),
        scim_error(scim_first_page, 400, "invalidValue")}},
      {"scim-media-type",
       {answer(scim_config, 200, {{"Content-Type", "text/html"}}, "<html>")},
       {config("")}},
      {"scim-list-form", {scim(scim_first_page, R"({"Resources":[]})")}, {first_page()}},
      {"scim-list-form",
       {first_page(R"("totalResults":"3",)")},
       {first_page(R"("totalResults":3,)")}},
      {"scim-list-form",
       {first_page(R"("itemsPerPage":"3",)")},
       {first_page(R"("itemsPerPage":3,)")}},
      {"scim-count", {page(scim_first_page, {"1", "2", "3"}, "")}, {first_page()}},
      {"scim-count-zero",
       {page(scim_count_zero, {"1"}, "")},
       {page(scim_count_zero, {}, R"("totalResults":3,)")}},
      {"scim-count-zero",
       {page(scim_count_zero, {"1"}, "")},
       {scim_error(scim_count_zero, 400, "invalidCount")}},
      {"scim-count-negative",
       {page(scim_count_negative, {"1"}, "")},
       {page(scim_count_negative, {}, "")}},
      {"scim-next-cursor",
       {config(R"(,"pagination":{"cursor":true,"index":true})"),
        first_page(R"("totalResults":3,)")},
       {config(R"(,"pagination":{"cursor":true,"index":true})"),
        first_page(R"("totalResults":2,)")}},
      {"scim-cursor-form",
       {first_page(R"("nextCursor":"",)")},
       {first_page(R"("nextCursor":"a-b._~",)")}},
      {"scim-cursor-form",
       {first_page(R"("nextCursor":null,)")},
       {first_page(R"("previousCursor":"a",)")}},
      {"scim-cursor-form",
       {first_page(R"("nextCursor":"YQ==",)")},
       {first_page(R"("nextCursor":"YQ",)")}},
      {"scim-next-page",
       {first_page(), scim_error(scim_next_page, 400, "invalidCursor")},
       {first_page(), page(scim_next_page, {"3"}, "")}},
      {"scim-pages-disjoint",
       {first_page(), page(scim_next_page, {"2"}, "")},
       {first_page(), page(scim_next_page, {"3"}, "")}},
      {"scim-total-results",
       {first_page(R"("totalResults":1,)")},
       {first_page(R"("totalResults":2,)")}},
      {"scim-total-results",
       {first_page(R"("totalResults":9,"nextCursor":"a",)"), page(scim_next_page, {"3"}, "")},
       {first_page(R"("totalResults":9,"nextCursor":"a",)"),
        page(scim_next_page, {"3"}, R"("nextCursor":"b",)")}},
      {"scim-first-previous", {first_page(R"("previousCursor":"x",)")}, {first_page()}},
      {"scim-previous-page",
       {first_page(), page(scim_previous_page, {"2", "3"}, "")},
       {first_page(), page(scim_previous_page, {"1", "2"}, "")}},
      {"scim-page-size",
       {config(R"(,"pagination":{"defaultPageSize":1})"), page(scim_default_page, {"1", "2"}, "")},
       {config(R"(,"pagination":{"defaultPageSize":2})"), page(scim_default_page, {"1", "2"}, "")}},
      {"scim-invalid-cursor",
       {first_page(), page(scim_invalid_cursor, {"1"}, "")},
       {first_page(), scim_error(scim_invalid_cursor, 400, "")}},
      {"scim-invalid-cursor-type",
       {first_page(), scim_error(scim_invalid_cursor, 400, "invalidValue")},
       {first_page(), scim_error(scim_invalid_cursor, 400, "invalidCursor")}},
      {"scim-invalid-count",
       {first_page(), page(scim_count_word, {"1"}, "")},
       {first_page(), scim_error(scim_count_word, 400, "")}},
      {"scim-invalid-count-type",
       {first_page(), scim_error(scim_count_word, 400, "")},
       {first_page(), scim_error(scim_count_word, 400, "invalidCount")}},
      {"scim-error-form",
       {scim(scim_config, R"({"error":"no"})", 404)},
       {scim_error(scim_config, 404, "")}},
      {"scim-error-form",
       {scim(scim_config,
             R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"status":404})", 404)},
       {scim_error(scim_config, 404, "")}},
  };
  return all;
}

TEST(lint_rules, are_found_broken_where_they_are_and_hold_where_they_do) {
  for (auto const& [rule, wrong, right] : rows()) {
    SCOPED_TRACE(std::string(rule) + ": " + wrong.back().content);
    EXPECT_EQ(name_of(judged(rule, wrong).result), name_of(outcome::broken));
    EXPECT_EQ(name_of(judged(rule, right).result), name_of(outcome::holds));
  }
}

TEST(lint_rules, are_not_judged_where_nothing_was_seen) {
  for (auto const& one : judge({})) {
    EXPECT_EQ(name_of(one.result), name_of(outcome::not_seen)) << one.rule.id;
  }
}

TEST(lint_rules, of_behaviour_are_each_in_the_table_of_this_test) {
  std::set<std::string_view> tested;
  for (auto const& one : rows()) {
    tested.insert(one.rule);
  }
  std::set<std::string_view> of_fields;
  for (auto const& one : explain::field_rules()) {
    of_fields.insert(one.id);  // tested with explain
  }
  std::set<std::string_view> ids;
  for (auto const& one : rules()) {
    EXPECT_TRUE(ids.insert(one.id).second) << one.id << " is there twice";
    EXPECT_TRUE(tested.contains(one.id) || of_fields.contains(one.id)) << one.id;
    EXPECT_TRUE(one.summary.ends_with('.')) << one.id;
    EXPECT_FALSE(one.section.empty()) << one.id;
  }
}

TEST(lint_rules, judge_refusals_by_quota_only_by_their_fields) {
  exchanges const refused = {answer(probe::key_first, 201), answer(probe::key_reused, 429),
                             answer(probe::key_retry, 429), answer(probe::scim_config, 429),
                             answer(probe::scim_invalid_cursor, 503)};
  for (auto const& one : judge(refused)) {
    if (one.rule.id.starts_with("scim-") || one.rule.id.starts_with("idempotency-re")) {
      EXPECT_EQ(name_of(one.result), name_of(outcome::not_seen)) << one.rule.id;
    }
  }
}

TEST(lint_rules, leave_problem_types_of_others_alone) {
  for (std::string const type : {"https://errors.example.com/quota-exceeded", "/quota-exceeded",
                                 "https://iana.org.example.com/assignments/"
                                 "http-problem-types#quota-exceeded"}) {
    exchanges const own = {problem(probe::sample, 429,
                                   R"({"type":")" + type + R"(","violated-policies":1})",
                                   {{"Retry-After", "1"}})};
    for (std::string_view const rule :
         {"ratelimit-problem-type", "ratelimit-problem-status", "ratelimit-violated-missing",
          "ratelimit-violated-policies", "ratelimit-violated-names"}) {
      EXPECT_EQ(name_of(judged(rule, own).result), name_of(outcome::not_seen)) << rule << type;
    }
  }
}

TEST(lint_rules, make_a_missing_member_no_error) {
  auto const found = judge(exchanges{quota_problem("")});
  EXPECT_EQ(count_broken(found, explain::severity::error), 0);
  EXPECT_EQ(judged("ratelimit-violated-missing", {quota_problem("")}).rule.level,
            explain::severity::warning);
}

TEST(lint_rules, let_optional_keys_that_cannot_be_parsed_be_ignored) {
  exchanges const ignored = {answer(probe::key_first, 201), answer(probe::key_malformed, 201)};
  EXPECT_EQ(judged("idempotency-malformed-refused", ignored).result, outcome::not_seen);
  EXPECT_EQ(judged("idempotency-malformed-ignored", ignored).rule.level, explain::severity::advice);
}

TEST(lint_rules, of_cursors_are_not_judged_by_servers_without) {
  for (auto const& word :
       {page(probe::scim_count_word, {"1"}, ""), scim_error(probe::scim_count_word, 400, "")}) {
    exchanges const by_index = {config(R"(,"pagination":{"cursor":false,"index":true})"), word};
    EXPECT_EQ(judged("scim-invalid-count", by_index).result, outcome::not_seen);
    EXPECT_EQ(judged("scim-invalid-count-type", by_index).result, outcome::not_seen);
  }
}

TEST(lint_rules, of_one_draft_are_not_judged_by_the_other) {
  exchanges const newer = {answer(probe::sample, 200, {{"RateLimit", R"("a";r=1)"}})};
  EXPECT_EQ(judged("ratelimit-limit-missing", newer).result, outcome::not_seen);
  EXPECT_EQ(judged("ratelimit-remaining-missing", newer).result, outcome::holds);
  exchanges const older = {
      answer(probe::sample, 200, {{"RateLimit", "limit=1, remaining=1, reset=1"}})};
  EXPECT_EQ(judged("ratelimit-limit-missing", older).result, outcome::holds);
  EXPECT_EQ(judged("ratelimit-remaining-missing", older).result, outcome::not_seen);
  EXPECT_EQ(judged("ratelimit-remaining-value", older).result, outcome::holds);
}

TEST(lint_rules, count_what_repeats_and_bound_what_differs) {
  exchanges many;
  for (int i = 0; i < 20; ++i) {
    many.push_back(answer(probe::sample, 200, {{"RateLimit", R"("a";t=1)"}}));
    many.push_back(answer(probe::sample, 200,
                          {{"RateLimit", "\"" + std::to_string(i) + "\";r=1;t=1715947212"}}));
  }
  auto const same = judged("ratelimit-remaining-missing", many);
  ASSERT_EQ(same.findings.size(), 1);
  EXPECT_EQ(same.findings[0].times, 20);
  EXPECT_EQ(same.findings[0].where, "GET /orders?x=1: 200");
  EXPECT_EQ(judged("ratelimit-reset-implausible", many).findings.size(), broken_max);
}

TEST(lint_report, does_not_praise_an_api_that_says_nothing_about_its_limits) {
  exchanges const silent = {answer(probe::sample, 200, {}), answer(probe::sample, 429, {})};
  auto const text = to_text("x", silent, judge(silent), detail::broken, explain::colours::off);
  EXPECT_THAT(text, testing::HasSubstr("\nthis API says nothing about its limits: 0 rules hold, "));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("nothing is wrong")));
}

TEST(lint_report, reads_well) {
  exchanges const seen = {answer(probe::sample, 200, {{"RateLimit", R"("a";t=1)"}})};
  auto const text =
      to_text("http://api.example.com/", seen, judge(seen), detail::broken, explain::colours::off);
  EXPECT_THAT(
      text,
      testing::StartsWith(
          "http://api.example.com/: 1 request\n\nRateLimit and Retry-After\n"
          "  error  RateLimit: item 1: r is required; clients have to ignore the whole field\n"
          "    ratelimit-remaining-missing (draft-ietf-httpapi-ratelimit-headers-09, section 4.1)\n"
          "    GET /orders?x=1: 200\n"));
  EXPECT_THAT(text, testing::EndsWith("\n1 error, 0 warnings, 0 advice\n"));
  EXPECT_THAT(text, testing::HasSubstr("nothing to judge: --write"));
  EXPECT_THAT(to_text("x", seen, judge(seen), detail::every_rule, explain::colours::off),
              testing::HasSubstr("not seen  scim-config: "));
  EXPECT_THAT(to_text("x", seen, judge(seen), detail::broken, explain::colours::on),
              testing::HasSubstr("\x1b[31m"));
}

TEST(lint_report, is_json_for_programs) {
  exchanges const seen = {answer(probe::sample, 200, {{"RateLimit", R"("a";t=1)"}})};
  auto const read = json::parse(to_json("http://a/", seen, judge(seen)));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read->find("errors")->if_integer(), 1);
  EXPECT_EQ(read->find("rules")->if_array()->size(), rules().size());
}

TEST(lint_report, is_the_same_as_the_page_of_reference) {
  std::ifstream file(TIDEGATE_SOURCE_DIR "/docs/reference/lint.md");
  std::string const page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(page, rules_page()) << "write it again: tidegate lint --rules > docs/reference/lint.md";
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::lint
