// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/legacy.hpp>

#include <tidegate/http/field.hpp>
#include <tidegate/sf/parse.hpp>

#include "printing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {
namespace {

using namespace std::chrono_literals;
using lines = std::vector<http::field_view>;

// Mon, 05 Aug 2019 09:27:00 GMT
constexpr std::int64_t now_count = 1'564'997'220;
constexpr std::chrono::sys_seconds now{std::chrono::seconds(now_count)};

auto limit_of(std::string_view name, std::optional<std::int64_t> limit,
              std::optional<std::int64_t> remaining, std::optional<std::int64_t> reset)
    -> service_limit {
  service_limit out;
  out.name = name;
  out.limit = limit;
  out.remaining = remaining;
  out.reset = reset;
  return out;
}

auto policy_of(std::string_view name, std::int64_t quota, std::int64_t window) -> quota_policy {
  quota_policy out;
  out.name = name;
  out.quota = quota;
  out.window = window;
  return out;
}

TEST(ratelimit_legacy, decides_what_a_reset_means) {
  using enum reset_form;
  struct row {
    std::string_view value;
    std::optional<legacy_reset> expected;
  };
  for (auto const& [value, expected] : {
           row{"0", legacy_reset{delta_seconds, 0}},
           {"30", legacy_reset{delta_seconds, 30}},
           {" 30\t", legacy_reset{delta_seconds, 30}},
           {"007", legacy_reset{delta_seconds, 7}},
           {"598.0", legacy_reset{delta_seconds, 598}},
           {"1.5", legacy_reset{delta_seconds, 2}},
           {"64.0000001", legacy_reset{delta_seconds, 65}},
           // The longest month is still a number of seconds.
           {"2678400", legacy_reset{delta_seconds, 2'678'400}},
           {"2678401", legacy_reset{delta_milliseconds, 2'679}},
           {"2678400000", legacy_reset{delta_milliseconds, 2'678'400}},
           {"2678400001", std::nullopt},
           // A moment in seconds: a day ago, just now, in a year.
           {"1564910819", legacy_reset{delta_milliseconds, 1'564'911}},
           {"1564910820", legacy_reset{epoch_seconds, 0}},
           {"1564997220", legacy_reset{epoch_seconds, 0}},
           {"1564997221", legacy_reset{epoch_seconds, 1}},
           {"1564997250.123", legacy_reset{epoch_seconds, 31}},
           {"1596619620", legacy_reset{epoch_seconds, 366 * 86'400}},
           {"1596619621", legacy_reset{delta_milliseconds, 1'596'620}},
           // A moment in milliseconds.
           {"1564910819000", std::nullopt},
           {"1564910820000", legacy_reset{epoch_milliseconds, 0}},
           {"1564997250000", legacy_reset{epoch_milliseconds, 30}},
           {"1564997250001", legacy_reset{epoch_milliseconds, 31}},
           {"1596619620000", legacy_reset{epoch_milliseconds, 366 * 86'400}},
           {"1596619620001", std::nullopt},
           {"999999999999999", std::nullopt},
           {"1000000000000000", std::nullopt},
           {"99999999999999999999999999", std::nullopt},
           // Dates.
           {"Mon, 05 Aug 2019 09:27:05 GMT", legacy_reset{http_date, 5}},
           {"Monday, 05-Aug-19 09:27:05 GMT", legacy_reset{http_date, 5}},
           {"Mon Aug  5 09:27:05 2019", legacy_reset{http_date, 5}},
           {"Mon, 05 Aug 2019 09:26:00 GMT", legacy_reset{http_date, 0}},
           {"Thu, 01 Jan 1970 00:00:00 GMT", std::nullopt},
           {"Fri, 31 Dec 9999 23:59:59 GMT", std::nullopt},
           {"2019-08-05T09:27:05Z", legacy_reset{rfc3339, 5}},
           {"2019-08-05T11:27:05.1234567+02:00", legacy_reset{rfc3339, 5}},
           {"2018-08-05T09:27:05Z", std::nullopt},
           // Durations.
           {"1s", legacy_reset{duration, 1}},
           {"6m0s", legacy_reset{duration, 360}},
           {"1h2m3.5s", legacy_reset{duration, 3'724}},
           {"20ms", legacy_reset{duration, 1}},
           {"1001ms", legacy_reset{duration, 2}},
           {"0s", legacy_reset{duration, 0}},
           {"0.0001ms", legacy_reset{duration, 1}},
           {"8784h", legacy_reset{duration, 366 * 86'400}},
           {"8784h1s", std::nullopt},
           {"999999999999999h", std::nullopt},
           // Nonsense.
           {"", std::nullopt},
           {" ", std::nullopt},
           {"-1", std::nullopt},
           {"+1", std::nullopt},
           {"1.", std::nullopt},
           {".5", std::nullopt},
           {"1e3", std::nullopt},
           {"0x10", std::nullopt},
           {"soon", std::nullopt},
           {"s", std::nullopt},
           {"1d", std::nullopt},
           {"1m 2s", std::nullopt},
           {"Tue Feb 16 2021 09:02:42 GMT+0100 (Central European Standard Time)", std::nullopt},
           {"2019-08-05 09:27:05", std::nullopt},
       }) {
    EXPECT_EQ(read_legacy_reset(value, now), expected) << value;
  }
}

TEST(ratelimit_legacy, uses_the_window_to_tell_seconds_from_milliseconds) {
  using enum reset_form;
  struct row {
    std::string_view value;
    std::chrono::seconds window;
    std::optional<legacy_reset> expected;
  };
  for (auto const& [value, window, expected] : {
           row{"60", 60s, legacy_reset{delta_seconds, 60}},
           {"120", 60s, legacy_reset{delta_seconds, 120}},
           {"121", 60s, legacy_reset{delta_milliseconds, 1}},
           {"59001", 60s, legacy_reset{delta_milliseconds, 60}},
           {"60000", 60s, legacy_reset{delta_milliseconds, 60}},
           {"60001", 60s, legacy_reset{delta_seconds, 60'001}},
           {"31536000", 365 * 24h, legacy_reset{delta_seconds, 31'536'000}},
           {"1564997250", 60s, legacy_reset{epoch_seconds, 30}},
           {"1564997250000", 60s, legacy_reset{epoch_milliseconds, 30}},
           {"Mon, 05 Aug 2019 09:27:05 GMT", 60s, legacy_reset{http_date, 5}},
       }) {
    EXPECT_EQ(read_legacy_reset(value, now, window), expected) << value;
  }
}

TEST(ratelimit_legacy, reads_the_three_fields_in_every_family_and_case) {
  for (std::string const prefix : {"X-RateLimit-", "x-ratelimit-", "X-Ratelimit-", "X-Rate-Limit-",
                                   "X-RATE-LIMIT-", "RateLimit-", "ratelimit-"}) {
    auto const limit = prefix + "Limit";
    auto const remaining = prefix + "REMAINING";
    auto const reset = prefix + "reset";
    auto const fields =
        read_legacy(lines{{reset, "50"}, {limit, " 100 "}, {remaining, "99\t"}}, now);
    EXPECT_EQ(fields.limits, std::vector{limit_of("", 100, 99, 50)}) << prefix;
    EXPECT_EQ(fields.policies, std::vector<quota_policy>()) << prefix;
  }
}

TEST(ratelimit_legacy, looks_at_no_other_fields) {
  for (std::string_view name :
       {"RateLimit", "RateLimit-Policy", "X-RateLimit", "X-RateLimit-", "X-RateLimit-Used",
        "X-RateLimit-Resource", "X-RateLimit-Limits", "X-RateLimit-Limit-", "X-RateLimit-Limited",
        "XX-RateLimit-Limit", "X-RateLimit-Retry-After", "Retry-After", "X-RateLimitLimit", "",
        "RateLimit-Remaining:", "X-RateLimit-ResetTime", "acme-RateLimit-Limit"}) {
    EXPECT_EQ(read_legacy(lines{{name, "5"}}, now), legacy_fields()) << name;
  }
}

/// Responses as they are seen.
struct seen {
  char const* who;
  lines fields;
  std::vector<quota_policy> policies;
  std::vector<service_limit> limits;
};

TEST(ratelimit_legacy, reads_what_servers_send) {
  for (auto const& [who, fields, policies, limits] : {
           seen{"a moment, with fields that mean nothing here",
                {{"X-RateLimit-Limit", "5000"},
                 {"X-RateLimit-Remaining", "4999"},
                 {"X-RateLimit-Reset", "1564997280"},
                 {"X-RateLimit-Used", "1"},
                 {"X-RateLimit-Resource", "core"}},
                {},
                {limit_of("", 5000, 4999, 60)}},
           {"seconds, with what remains as a decimal",
            {{"X-Ratelimit-Remaining", "599.0"},
             {"X-Ratelimit-Used", "1"},
             {"X-Ratelimit-Reset", "598"}},
            {},
            {limit_of("", {}, 599, 598)}},
           {"what remains, alone",
            {{"RateLimit-Remaining", "2400"}},
            {},
            {limit_of("", {}, 2400, {})}},
           {"a limit, alone", {{"X-RateLimit-Limit", "60"}}, {}, {limit_of("", 60, {}, {})}},
           {"names with windows, and an earlier draft beside them",
            {{"X-RateLimit-Limit-Minute", "10"},
             {"X-RateLimit-Remaining-Minute", "9"},
             {"X-RateLimit-Limit-Hour", "100"},
             {"X-RateLimit-Remaining-Hour", "99"},
             {"RateLimit-Limit", "10"},
             {"RateLimit-Remaining", "9"},
             {"RateLimit-Reset", "42"}},
            {policy_of("minute", 10, 60), policy_of("hour", 100, 3600)},
            {limit_of("minute", 10, 9, {}), limit_of("hour", 100, 99, {}),
             limit_of("", 10, 9, 42)}},
           {"all windows that have a name",
            {{"X-RateLimit-Limit-Second", "1"},
             {"X-RateLimit-Limit-Day", "2"},
             {"X-RateLimit-Limit-Week", "3"},
             {"X-RateLimit-Limit-Month", "4"},
             {"X-RateLimit-Limit-Year", "5"}},
            {policy_of("second", 1, 1), policy_of("day", 2, 86'400), policy_of("week", 3, 604'800),
             policy_of("month", 4, 2'592'000), policy_of("year", 5, 31'536'000)},
            {limit_of("second", 1, {}, {}), limit_of("day", 2, {}, {}), limit_of("week", 3, {}, {}),
             limit_of("month", 4, {}, {}), limit_of("year", 5, {}, {})}},
           {"a window in the name and milliseconds",
            {{"x-ratelimit-limit-minute", "10"},
             {"x-ratelimit-remaining-minute", "9"},
             {"x-ratelimit-reset-minute", "30500"}},
            {policy_of("minute", 10, 60)},
            {limit_of("minute", 10, 9, 31)}},
           {"several of a window",
            {{"x-ratelimit-limit-tokens-5-minute", "1000"}},
            {policy_of("tokens-5-minute", 1000, 300)},
            {limit_of("tokens-5-minute", 1000, {}, {})}},
           {"names without a window, and durations",
            {{"x-ratelimit-limit-requests", "60"},
             {"x-ratelimit-limit-tokens", "150000"},
             {"x-ratelimit-remaining-requests", "59"},
             {"x-ratelimit-remaining-tokens", "149984"},
             {"x-ratelimit-reset-requests", "1s"},
             {"x-ratelimit-reset-tokens", "6m0s"}},
            {},
            {limit_of("requests", 60, 59, 1), limit_of("tokens", 150'000, 149'984, 360)}},
           {"a window as parameter",
            {{"X-RateLimit-Limit", "100;w=60"}, {"X-RateLimit-Remaining", "5"}},
            {policy_of("", 100, 60)},
            {limit_of("", 100, 5, {})}},
           {"a list of early drafts, the first is the expiring limit",
            {{"RateLimit-Limit", "10, 10;w=1, 50;w=60, 1000;w=3600, 5000;w=86400"},
             {"RateLimit-Remaining", "1"},
             {"RateLimit-Reset", "2"}},
            {policy_of("", 10, 1), policy_of("", 50, 60), policy_of("", 1000, 3600),
             policy_of("", 5000, 86'400)},
            {limit_of("", 10, 1, 2)}},
           {"the parameter by its first name",
            {{"RateLimit-Limit", "10, 10;window=1"}},
            {policy_of("", 10, 1)},
            {limit_of("", 10, {}, {})}},
           {"the window of the expiring limit decides on milliseconds",
            {{"RateLimit-Limit", "10, 50;w=60, 10;w=1"}, {"RateLimit-Reset", "900"}},
            {policy_of("", 50, 60), policy_of("", 10, 1)},
            {limit_of("", 10, {}, 1)}},
           {"two limits in one list each",
            {{"X-RateLimit-Limit", "1, 15000"},
             {"X-RateLimit-Remaining", "0, 1000"},
             {"X-RateLimit-Reset", "1, 1419704"}},
            {},
            {limit_of("", 1, 0, 1), limit_of("", 15'000, 1000, 1'419'704)}},
           {"two layers that add their own lines",
            {{"X-RateLimit-Limit", "10"},
             {"X-RateLimit-Remaining", "5"},
             {"X-RateLimit-Reset", "7"},
             {"X-RateLimit-Limit", "20"},
             {"X-RateLimit-Remaining", "3"},
             {"X-RateLimit-Reset", "Mon, 05 Aug 2019 09:27:05 GMT"}},
            {},
            {limit_of("", 10, 5, 7), limit_of("", 20, 3, 5)}},
           {"lists that do not pair: no limit, and the latest reset",
            {{"X-RateLimit-Limit", "10"},
             {"X-RateLimit-Remaining", "5, 3"},
             {"X-RateLimit-Reset", "7, 9, 8"}},
            {},
            {limit_of("", {}, 5, 9), limit_of("", {}, 3, 9)}},
           {"a moment that is long past and the time from now, as Discord prints them",
            {{"X-RateLimit-Limit", "5"},
             {"X-RateLimit-Remaining", "0"},
             {"X-RateLimit-Reset", "1470173023"},
             {"X-RateLimit-Reset-After", "1.5"}},
            {},
            {limit_of("", 5, 0, 2)}},
           {"a moment that is later than the time from now",
            {{"X-RateLimit-Remaining", "0"},
             {"X-RateLimit-Reset-After", "10"},
             {"X-RateLimit-Reset", "1564997284"}},
            {},
            {limit_of("", {}, 0, 10)}},
           {"a time from now that is none",
            {{"X-RateLimit-Remaining", "0"},
             {"X-RateLimit-Reset-After", "soon"},
             {"X-RateLimit-Reset", "30"}},
            {},
            {limit_of("", {}, 0, {})}},
           {"a moment and the time from now, which is the later by a rounding",
            {{"X-RateLimit-Limit", "5"},
             {"X-RateLimit-Remaining", "0"},
             {"X-RateLimit-Reset", "1564997284.123"},
             {"X-RateLimit-Reset-After", "64.57"}},
            {},
            {limit_of("", 5, 0, 65)}},
           {"the time from now may be as long as it likes",
            {{"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset-After", "2678401"}},
            {},
            {limit_of("", {}, 0, 2'678'401)}},
           {"milliseconds by name",
            {{"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset-Ms", "1500"}},
            {},
            {limit_of("", {}, 0, 2)}},
           {"a moment in milliseconds by name",
            {{"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset-Ms", "1564997250000"}},
            {},
            {limit_of("", {}, 0, 30)}},
           {"a period where the limit should be, and a date-time",
            {{"X-Rate-Limit-Limit", "1m"},
             {"X-Rate-Limit-Remaining", "4"},
             {"X-Rate-Limit-Reset", "2019-08-05T09:27:30.7612345Z"}},
            {},
            {limit_of("", {}, 4, 30)}},
           {"the same in two families",
            {{"X-RateLimit-Limit", "10"},
             {"X-RateLimit-Remaining", "9"},
             {"RateLimit-Limit", "10"},
             {"RateLimit-Remaining", "9"}},
            {},
            {limit_of("", 10, 9, {})}},
       }) {
    auto const out = read_legacy(fields, now);
    EXPECT_EQ(out.policies, policies) << who;
    EXPECT_EQ(out.limits, limits) << who;
  }
}

TEST(ratelimit_legacy, keeps_the_comments_of_early_drafts) {
  auto const fields = read_legacy(
      lines{{"RateLimit-Limit", R"(100, 100;w=60;burst=1000;comment="sliding window")"}}, now);
  ASSERT_EQ(fields.policies.size(), 1U);
  EXPECT_EQ(fields.policies[0].window, 60);
  EXPECT_EQ(
      fields.policies[0].comments,
      std::get<0>(sf::parse_list<field_dialect>(R"(x;burst=1000;comment="sliding window")")->at(0))
          .parameters);
}

TEST(ratelimit_legacy, has_nothing_for_nonsense) {
  for (std::string_view value :
       {"", " ", "-1", "many", "10 requests", "100/min", "1e3", "1,,2", "(1 2)", "\"10\"", "?1",
        "1, x", "1000000000000000", "-0.5", "\x01", ","}) {
    EXPECT_EQ(read_legacy(lines{{"X-RateLimit-Limit", value}}, now), legacy_fields()) << value;
    EXPECT_EQ(read_legacy(lines{{"X-RateLimit-Remaining", value}}, now), legacy_fields()) << value;
  }
  EXPECT_EQ(read_legacy({}, now), legacy_fields());
  // A reset of nothing.
  EXPECT_EQ(read_legacy(lines{{"X-RateLimit-Reset", "5"}}, now), legacy_fields());
  // Each value is judged for itself.
  EXPECT_EQ(read_legacy(lines{{"X-RateLimit-Limit", "10"},
                              {"X-RateLimit-Remaining", "many"},
                              {"X-RateLimit-Reset", "1, soon"}},
                        now)
                .limits,
            std::vector{limit_of("", 10, {}, {})});
  // No window, or none that can be one.
  EXPECT_EQ(read_legacy(lines{{"X-RateLimit-Limit", "10;w=0, 20;w=-1, 30;w=x"}}, now).policies,
            std::vector<quota_policy>());
  EXPECT_EQ(read_legacy(lines{{"X-RateLimit-Limit-0-Minute", "10"}}, now).policies,
            std::vector<quota_policy>());
  EXPECT_EQ(read_legacy(lines{{"X-RateLimit-Limit-99999999999999-Year", "10"}}, now).policies,
            std::vector<quota_policy>());
}

TEST(ratelimit_legacy, looks_at_so_many_names_and_items_and_no_more) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i <= legacy_groups_max; ++i) {
    names.push_back("X-RateLimit-Limit-n" + std::to_string(i));
  }
  lines many;
  for (auto const& name : names) {
    many.push_back({name, "10"});
  }
  EXPECT_EQ(read_legacy(many, now).limits.size(), legacy_groups_max);

  std::string items = "1";
  for (std::size_t i = 1; i < legacy_items_max; ++i) {
    items += ", " + std::to_string(i + 1);
  }
  EXPECT_EQ(read_legacy(lines{{"X-RateLimit-Remaining", items}}, now).limits.size(),
            legacy_items_max);
  items += ", 1";
  EXPECT_EQ(read_legacy(lines{{"X-RateLimit-Remaining", items}}, now), legacy_fields());
}

TEST(ratelimit_legacy, reads_what_services_send) {
  auto const moment = [](std::chrono::sys_seconds at) {
    return std::to_string(at.time_since_epoch().count());
  };
  // GitHub
  EXPECT_EQ(read_legacy(lines{{"x-ratelimit-limit", "60"},
                              {"x-ratelimit-remaining", "59"},
                              {"x-ratelimit-used", "1"},
                              {"x-ratelimit-resource", "core"},
                              {"x-ratelimit-reset", moment(now + std::chrono::seconds(1800))}},
                        now)
                .limits,
            std::vector{limit_of("", 60, 59, 1800)});
  // OpenAI
  EXPECT_EQ(
      read_legacy(lines{{"x-ratelimit-limit-requests", "60"},
                        {"x-ratelimit-limit-tokens", "150000"},
                        {"x-ratelimit-remaining-requests", "59"},
                        {"x-ratelimit-remaining-tokens", "149984"},
                        {"x-ratelimit-reset-requests", "1s"},
                        {"x-ratelimit-reset-tokens", "6m0s"}},
                  now)
          .limits,
      (std::vector{limit_of("requests", 60, 59, 1), limit_of("tokens", 150'000, 149'984, 360)}));
  // Discord
  EXPECT_EQ(read_legacy(lines{{"X-RateLimit-Limit", "5"},
                              {"X-RateLimit-Remaining", "0"},
                              {"X-RateLimit-Reset", "1470173023"},
                              {"X-RateLimit-Reset-After", "1.2"},
                              {"X-RateLimit-Bucket", "abcd1234"}},
                        now)
                .limits,
            std::vector{limit_of("", 5, 0, 2)});
  // Anthropic
  EXPECT_EQ(
      read_legacy(lines{{"anthropic-ratelimit-requests-limit", "50"},
                        {"Anthropic-RateLimit-Requests-Remaining", "49"},
                        {"anthropic-ratelimit-input-tokens-limit", "40000"},
                        {"anthropic-ratelimit-input-tokens-remaining", "0"},
                        {"anthropic-ratelimit-unified-status", "allowed"},
                        {"anthropic-ratelimit-limit", "1"}},
                  now)
          .limits,
      (std::vector{limit_of("requests", 50, 49, {}), limit_of("input-tokens", 40'000, 0, {})}));
  // draft-06, and a server that tries it out
  EXPECT_EQ(read_legacy(lines{{"RateLimit-Limit", "100, 100;w=60"},
                              {"RateLimit-Remaining", "7"},
                              {"RateLimit-Reset", "12"}},
                        now)
                .limits,
            std::vector{limit_of("", 100, 7, 12)});
  EXPECT_EQ(read_legacy(lines{{"Beta-RateLimit-Limit", "100"},
                              {"Beta-RateLimit-Remaining", "7"},
                              {"Beta-RateLimit-Reset", "12"}},
                        now)
                .limits,
            std::vector{limit_of("", 100, 7, 12)});
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::ratelimit
