// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/pacing.hpp>

#include <tidegate/http/field.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// Mon, 05 Aug 2019 09:27:00 GMT
constexpr std::chrono::sys_seconds wall_clock{1'564'997'220s};

/// A pacer and a clock: a test is a script of steps.
class script {
 public:
  explicit script(pacing_options const& options = {}) : paces(options) {}

  /// Asks until a request may go and says how long that took.
  auto waits() -> nanoseconds {
    auto const begin = now;
    for (int i = 0; i < 10; ++i) {
      auto const answer = paces.ask(now);
      if (answer.go) {
        ticket = answer.ticket;
        return now - begin;
      }
      if (answer.at == instant::max()) {
        break;
      }
      now = answer.at;
    }
    return nanoseconds::max();
  }

  void gets(int status, std::initializer_list<http::field_view> fields) {
    gets(ticket, status, fields);
  }
  void gets(std::uint64_t which, int status, std::initializer_list<http::field_view> fields) {
    paces.answered(which, {status, {fields.begin(), fields.size()}, wall_clock}, now, randomness);
  }

  pacer paces;
  instant now{1000s};
  std::uint64_t ticket = 0;
  std::uint64_t randomness = 0;
};

auto burst_options() -> pacing_options {
  return {.strategy = pacing_strategy::burst};
}

TEST(ratelimit_pacing, sends_the_first_request_at_once_and_alone) {
  script s;
  EXPECT_EQ(s.waits(), 0s);
  EXPECT_EQ(s.paces.ask(s.now + 10min), (permission{false, 0, instant::max()}));
  EXPECT_EQ(s.paces.in_flight(), 1U);
}

TEST(ratelimit_pacing, holds_only_to_the_cap_when_a_server_says_nothing) {
  script s;
  EXPECT_EQ(s.waits(), 0s);
  s.gets(200, {{"Content-Type", "text/plain"}});
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(s.waits(), 1ms);
  }
  EXPECT_EQ(s.paces.in_flight(), 50U);
  EXPECT_EQ(s.paces.current().rate, std::nullopt);
}

TEST(ratelimit_pacing, spreads_what_remains_until_the_reset) {
  script s;
  ASSERT_EQ(s.waits(), 0s);
  s.gets(200, {{"RateLimit-Policy", R"("a";q=51;w=100)"}, {"RateLimit", R"("a";r=50;t=100)"}});
  EXPECT_EQ(s.paces.current().allowance, 50);
  auto const began = s.now;
  for (int left = 49; left >= 0; --left) {
    ASSERT_NE(s.waits(), nanoseconds::max());
    auto const seconds = 100 - (s.now - began) / 1s;
    auto const limit = "\"a\";r=" + std::to_string(left) + ";t=" + std::to_string(seconds);
    s.gets(200, {{"RateLimit-Policy", R"("a";q=51;w=100)"}, {"RateLimit", limit}});
  }
  // Fifty requests took about the hundred seconds, and no more go before the reset.
  EXPECT_GT(s.now - began, 85s);
  EXPECT_LT(s.now - began, 101s);
  (void)s.waits();
  EXPECT_GE(s.now - began, 100s);
}

TEST(ratelimit_pacing, spends_all_at_once_under_burst_and_then_waits_for_the_reset) {
  script s(burst_options());
  ASSERT_EQ(s.waits(), 0s);
  s.gets(200, {{"RateLimit", R"("a";r=3;t=30)"}});
  EXPECT_EQ(s.waits(), 1ms);
  EXPECT_EQ(s.waits(), 1ms);
  EXPECT_EQ(s.waits(), 1ms);
  // None of the three was answered; what remained is under way.
  EXPECT_EQ(s.waits(), nanoseconds::max());
  s.gets(200, {{"RateLimit", R"("a";r=0;t=30)"}});
  EXPECT_EQ(s.paces.in_flight(), 2U);
  auto const answered = s.now;
  s.paces.failed(2, s.now);
  s.paces.failed(3, s.now);
  (void)s.waits();
  EXPECT_EQ(s.now - answered, 30s);
}

TEST(ratelimit_pacing, sends_one_request_to_find_out_whether_the_quota_was_reset) {
  script s(burst_options());
  ASSERT_EQ(s.waits(), 0s);
  s.gets(200, {{"RateLimit", R"("a";r=0;t=5)"}});
  EXPECT_EQ(s.waits(), 5s);
  EXPECT_EQ(s.paces.ask(s.now + 1s), (permission{false, 0, instant::max()}));
  s.gets(200, {{"RateLimit", R"("a";r=9;t=10)"}});
  EXPECT_EQ(s.waits(), 1ms);
}

TEST(ratelimit_pacing, lets_retry_after_win_over_the_reset) {
  for (auto const* const delay : {"3", "90"}) {
    script s(burst_options());
    ASSERT_EQ(s.waits(), 0s);
    s.gets(429, {{"RateLimit", R"("a";r=0;t=20)"}, {"Retry-After", delay}});
    EXPECT_EQ(s.waits(), std::chrono::seconds(std::stoi(delay)));
  }
}

TEST(ratelimit_pacing, reads_retry_after_as_a_date_by_the_servers_clock) {
  script s(burst_options());
  ASSERT_EQ(s.waits(), 0s);
  s.gets(503, {{"Date", "Tue, 05 Aug 2025 10:00:00 GMT"},
               {"Retry-After", "Tue, 05 Aug 2025 10:00:45 GMT"}});
  EXPECT_EQ(s.waits(), 45s);
}

TEST(ratelimit_pacing, leaves_retry_after_alone_where_it_is_about_one_resource) {
  script s(burst_options());
  ASSERT_EQ(s.waits(), 0s);
  s.gets(202, {{"Retry-After", "120"}});
  EXPECT_EQ(s.waits(), 1ms);
}

TEST(ratelimit_pacing, ignores_the_fields_of_a_response_from_a_cache) {
  for (auto const* const age : {"1", "0005", "99999999999999999999999"}) {
    script s(burst_options());
    ASSERT_EQ(s.waits(), 0s);
    s.gets(200, {{"Age", age}, {"RateLimit", R"("a";r=0;t=600)"}, {"Retry-After", "77"}});
    EXPECT_EQ(s.waits(), 1ms) << age;
  }
  for (auto const* const age : {"0", "000", "", "-1", "soon"}) {
    script s(burst_options());
    ASSERT_EQ(s.waits(), 0s);
    s.gets(200, {{"Age", age}, {"RateLimit", R"("a";r=0;t=60)"}});
    EXPECT_EQ(s.waits(), 60s) << age;
  }
}

TEST(ratelimit_pacing, hears_a_fresh_response_after_one_from_a_cache_that_overtook_it) {
  script s(burst_options());
  ASSERT_EQ(s.waits(), 0s);
  s.gets(200, {});
  ASSERT_EQ(s.waits(), 1ms);
  ASSERT_EQ(s.waits(), 1ms);
  s.gets(3, 200, {{"Age", "12"}});
  s.gets(2, 200, {{"RateLimit", R"("a";r=0;t=60)"}});
  EXPECT_EQ(s.waits(), 60s);
}

TEST(ratelimit_pacing, ignores_a_malformed_field) {
  script s(burst_options());
  ASSERT_EQ(s.waits(), 0s);
  s.gets(200, {{"RateLimit", R"("a";r=0;t=-5)"}});
  EXPECT_EQ(s.waits(), 1ms);
}

TEST(ratelimit_pacing, reads_a_field_as_the_library_does_however_it_is_written) {
  for (auto const* const same :
       {R"("a";r=0;t=60)", R"(  "a";r=0;t=60 )", R"("a";r=5;r=0;t=60)", R"("a\"";r=0;t=60)",
        R"("a";t=60;x="y";r=0;pk=:Zm9v:)", R"("b";r=7;t=9 , "a";r=0;t=60)"}) {
    script s(burst_options());
    ASSERT_EQ(s.waits(), 0s);
    s.gets(200, {{"RateLimit", same}});
    EXPECT_EQ(s.waits(), 60s) << same;
  }
  for (auto const* const wrong :
       {R"("a";r=0;t=60, b)", R"("a";r=0;t=60, ("b");r=0;t=60)", R"("a";t=60)", R"("a";r=0.0;t=60)",
        R"("a";r=0;t=60;pk=foo)", R"("a";r=0;t=60, "b)", R"("a";r=-1;t=60)"}) {
    script s(burst_options());
    ASSERT_EQ(s.waits(), 0s);
    s.gets(200, {{"RateLimit", wrong}});
    EXPECT_EQ(s.waits(), 1ms) << wrong;
  }
}

TEST(ratelimit_pacing, keeps_limits_apart_that_differ_in_the_partition_key) {
  script s(burst_options());
  ASSERT_EQ(s.waits(), 0s);
  s.gets(200, {{"RateLimit", R"("a";r=9;t=60;pk=:Zm9v:, "a";r=0;t=30;pk=:YmFy:)"}});
  EXPECT_EQ(s.paces.current().allowance, 0);
  EXPECT_EQ(s.waits(), 30s);
}

TEST(ratelimit_pacing, waits_longer_each_time_when_a_server_refuses_without_a_word) {
  script s(burst_options());
  s.randomness = ~std::uint64_t{0};  // as long as it may be
  ASSERT_EQ(s.waits(), 0s);
  for (auto const seconds : {1, 2, 4, 8, 16, 32, 60, 60}) {
    s.gets(seconds == 4 ? 503 : 429, {});
    auto const wait = s.waits();
    EXPECT_LE(wait, std::chrono::seconds(seconds));
    EXPECT_GT(wait, std::chrono::seconds(seconds) - 1ms);
  }
  s.gets(200, {});
  ASSERT_LE(s.waits(), 1ms);
  s.gets(429, {});
  EXPECT_LE(s.waits(), 1s);
}

TEST(ratelimit_pacing, asks_after_ten_minutes_when_a_server_wants_more) {
  for (auto const& absurd : std::vector<std::vector<http::field_view>>{
           {{"RateLimit", R"("a";r=0;t=999999999999999)"}},
           {{"Retry-After", "999999999999999999999"}},
           {{"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset", "2000000"}}}) {
    script s(burst_options());
    ASSERT_EQ(s.waits(), 0s);
    s.paces.answered(s.ticket, {429, absurd, wall_clock}, s.now, 0);
    EXPECT_EQ(s.waits(), 10min) << absurd[0].name;
    EXPECT_EQ(s.paces.ask(s.now + 1h).go, false) << "one request, not more";
    s.paces.answered(s.ticket, {429, absurd, wall_clock}, s.now, 0);
    EXPECT_EQ(s.waits(), 10min) << absurd[0].name;
  }
}

TEST(ratelimit_pacing, keeps_to_the_cap_whatever_remains) {
  script s({.interval_min = 20ms});
  ASSERT_EQ(s.waits(), 0s);
  s.gets(200, {{"RateLimit", R"("a";r=999999999999999;t=1)"}});
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(s.waits(), 20ms);
  }
}

TEST(ratelimit_pacing, never_waits_longer_than_it_may_between_two_requests) {
  script s;
  ASSERT_EQ(s.waits(), 0s);
  s.gets(200, {{"RateLimit", R"("daily";r=2;t=86400)"}});
  EXPECT_EQ(s.waits(), 10min);
  EXPECT_EQ(s.waits(), 10min);
}

TEST(ratelimit_pacing, holds_to_the_tightest_of_several_limits) {
  script s(burst_options());
  ASSERT_EQ(s.waits(), 0s);
  s.gets(200, {{"RateLimit", R"("a";r=100;t=5, "b";r=0;t=40, "c";r=0;t=20)"}});
  EXPECT_EQ(s.waits(), 40s);
}

TEST(ratelimit_pacing, takes_a_limit_without_a_reset_for_one_of_requests_under_way) {
  script s(burst_options());
  ASSERT_EQ(s.waits(), 0s);
  s.gets(200, {{"RateLimit", R"("slots";r=2)"}});
  EXPECT_EQ(s.waits(), 1ms);
  EXPECT_EQ(s.waits(), 1ms);
  EXPECT_EQ(s.waits(), 1ms);
  EXPECT_EQ(s.paces.ask(s.now + 1s), (permission{false, 0, instant::max()}));
  s.gets(2, 200, {{"RateLimit", R"("slots";r=0)"}});
  EXPECT_EQ(s.waits(), 1ms);
  EXPECT_EQ(s.waits(), nanoseconds::max());
}

TEST(ratelimit_pacing, reads_draft_07_and_the_fields_before_it) {
  for (auto const& fields : std::vector<std::vector<http::field_view>>{
           {{"ratelimit", "limit=100, remaining=0, reset=50"}, {"RateLimit-Policy", "100;w=60"}},
           {{"X-RateLimit-Limit", "100"},
            {"X-RateLimit-Remaining", "0"},
            {"X-RateLimit-Reset", "50"}},
           {{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset", "1564997270"}}}) {
    script s(burst_options());
    ASSERT_EQ(s.waits(), 0s);
    s.paces.answered(s.ticket, {200, fields, wall_clock}, s.now, 0);
    EXPECT_EQ(s.waits(), 50s) << fields[0].name;
  }
}

TEST(ratelimit_pacing, does_not_count_on_fields_to_come_again) {
  script s;
  ASSERT_EQ(s.waits(), 0s);
  s.gets(200, {{"RateLimit", R"("a";r=1;t=10)"}});
  ASSERT_EQ(s.waits(), 5s);
  s.gets(200, {});
  EXPECT_EQ(s.paces.current().allowance, 0) << "until the reset it still holds";
  EXPECT_GE(s.waits(), 5s);
  s.gets(200, {});
  EXPECT_EQ(s.paces.current(), (pacer::state{std::nullopt, instant::min(), std::nullopt}));
}

TEST(ratelimit_pacing, counts_the_reset_from_when_the_response_was_made) {
  script s(burst_options());
  ASSERT_EQ(s.waits(), 0s);
  s.now += 400ms;  // there and back
  s.gets(200, {{"RateLimit", R"("a";r=0;t=5)"}});
  EXPECT_EQ(s.waits(), 4800ms);
}

TEST(ratelimit_pacing, becomes_only_more_careful_by_a_response_that_was_overtaken) {
  script s(burst_options());
  ASSERT_EQ(s.waits(), 0s);
  s.gets(200, {});
  ASSERT_EQ(s.waits(), 1ms);
  ASSERT_EQ(s.waits(), 1ms);
  ASSERT_EQ(s.waits(), 1ms);
  s.gets(4, 200, {{"RateLimit", R"("a";r=10;t=5)"}});
  EXPECT_EQ(s.paces.current().allowance, 8) << "two that were overtaken may not be counted yet";
  s.gets(3, 200, {{"RateLimit", R"("a";r=50;t=5)"}});
  EXPECT_EQ(s.paces.current().allowance, 9);
  s.gets(2, 200, {{"RateLimit", R"("a";r=3;t=5)"}});
  EXPECT_EQ(s.paces.current().allowance, 3);
  ASSERT_EQ(s.waits(), 1ms);
  ASSERT_EQ(s.waits(), 1ms);
  s.gets(6, 200, {{"RateLimit", R"("a";r=8;t=5)"}});
  s.gets(5, 429, {{"Retry-After", "7"}});
  EXPECT_EQ(s.waits(), 7s);
}

TEST(ratelimit_pacing, comes_back_at_a_random_time_within_its_interval_under_spread) {
  std::vector<nanoseconds> waits;
  for (auto const chance : {0.0, 0.25, 0.5, 0.75}) {
    script s;
    ASSERT_EQ(s.waits(), 0s);
    s.gets(200, {{"RateLimit-Policy", R"("a";q=10;w=20)"}, {"RateLimit", R"("a";r=9;t=20)"}});
    ASSERT_EQ(s.waits(), 2s);
    s.randomness = static_cast<std::uint64_t>(chance * 18446744073709551616.0);
    s.gets(429, {{"Retry-After", "20"}});
    waits.push_back(s.waits());
  }
  EXPECT_EQ(waits[0], 20s);
  EXPECT_EQ(waits[1], 20s + 500ms);
  EXPECT_EQ(waits[2], 21s);
  EXPECT_EQ(waits[3], 21s + 500ms);
}

TEST(ratelimit_pacing, begins_with_r_and_t_of_the_new_window_when_it_met_a_spent_quota) {
  script s;
  auto const policy = http::field_view{"RateLimit-Policy", R"("a";q=100;w=20)"};
  ASSERT_EQ(s.waits(), 0s);
  s.gets(429, {policy, {"RateLimit", R"("a";r=0;t=20)"}, {"Retry-After", "20"}});
  EXPECT_EQ(s.paces.current().rate, std::nullopt)
      << "nothing remains, which says nothing of a rate";
  EXPECT_EQ(s.waits(), 20s);
  s.gets(200, {policy, {"RateLimit", R"("a";r=99;t=20)"}});
  EXPECT_NEAR(*s.paces.current().rate, 5, 0.01);
  EXPECT_EQ(s.waits(), 200ms);
}

TEST(ratelimit_pacing, recovers_within_a_second_when_others_have_spent_the_quota_once) {
  script s;
  auto const policy = http::field_view{"RateLimit-Policy", R"("a";q=100;w=20)"};
  auto const tell = [&](int status, int remaining, int reset) {
    auto const limit = "\"a\";r=" + std::to_string(remaining) + ";t=" + std::to_string(reset);
    if (status == 429) {
      auto const wait = std::to_string(reset);
      s.gets(status, {policy, {"RateLimit", limit}, {"Retry-After", wait}});
    } else {
      s.gets(status, {policy, {"RateLimit", limit}});
    }
  };
  ASSERT_EQ(s.waits(), 0s);
  tell(200, 99, 20);
  for (int left = 98; left >= 60; --left) {
    ASSERT_LE(s.waits(), 250ms);
    tell(200, left, 12 + (left - 60) / 5);
  }
  ASSERT_LE(s.waits(), 250ms);
  tell(429, 0, 12);
  ASSERT_GE(s.waits(), 12s);
  auto const began = s.now;
  for (int left = 99; s.now - began < 2s; --left) {
    tell(200, left, 20 - static_cast<int>((s.now - began) / 1s));
    ASSERT_LE(s.waits(), 2s);
  }
  EXPECT_GE(*s.paces.current().rate, 4.5);
}

TEST(ratelimit_pacing, takes_requests_that_were_refused_together_for_one_sign) {
  script s({.interval_min = 1ms});
  auto const policy = http::field_view{"RateLimit-Policy", R"("a";q=1000;w=10)"};
  ASSERT_EQ(s.waits(), 0s);
  s.gets(200, {policy, {"RateLimit", R"("a";r=999;t=10)"}});
  auto const rate = *s.paces.current().rate;
  std::vector<std::uint64_t> tickets;
  for (int i = 0; i < 40; ++i) {
    ASSERT_NE(s.waits(), nanoseconds::max());
    tickets.push_back(s.ticket);
  }
  for (auto const ticket : tickets) {
    s.gets(ticket, 429, {{"Retry-After", "1"}});
  }
  EXPECT_NEAR(*s.paces.current().rate, 0.8 * rate, 0.01 * rate);
}

TEST(ratelimit_pacing, takes_no_higher_rate_from_r_over_t_than_the_policy_means) {
  script s;
  ASSERT_EQ(s.waits(), 0s);
  // The example of draft-09, section 8.5.
  s.gets(200,
         {{"RateLimit-Policy", R"("p";q=10000;w=1000)"}, {"RateLimit", R"("p";r=10000;t=10)"}});
  EXPECT_LE(*s.paces.current().rate, 12.5);
  auto const began = s.now;
  for (int i = 1; i <= 100; ++i) {
    ASSERT_NE(s.waits(), nanoseconds::max());
    auto const limit = "\"p\";r=" + std::to_string(10000 - i) +
                       ";t=" + std::to_string(std::max<long>(10 - (s.now - began) / 1s, 1));
    s.gets(200, {{"RateLimit-Policy", R"("p";q=10000;w=1000)"}, {"RateLimit", limit}});
  }
  EXPECT_GE(s.now - began, 6s);
}

TEST(ratelimit_pacing, obeys_a_refusal_from_a_cache_and_ignores_only_its_ratelimit_fields) {
  for (auto const status : {429, 503}) {
    script s(burst_options());
    ASSERT_EQ(s.waits(), 0s);
    s.gets(status, {{"Age", "5"}, {"Retry-After", "30"}, {"RateLimit", R"("a";r=0;t=600)"}});
    EXPECT_EQ(s.waits(), 30s);
    EXPECT_EQ(s.paces.current().allowance, std::nullopt);
  }
  script s(burst_options());
  s.randomness = ~std::uint64_t{0};
  ASSERT_EQ(s.waits(), 0s);
  s.gets(429, {{"Age", "5"}});
  EXPECT_GT(s.waits(), 900ms)
      << "without a word on when to come back it waits like after any refusal";
}

TEST(ratelimit_pacing, takes_the_longest_of_several_lines_of_retry_after) {
  for (auto const* const other : {"3", "Mon, 05 Aug 2019 09:27:05 GMT", "soon"}) {
    for (bool const first : {true, false}) {
      script s(burst_options());
      ASSERT_EQ(s.waits(), 0s);
      s.gets(429, {{"Retry-After", first ? "40" : other}, {"Retry-After", first ? other : "40"}});
      EXPECT_EQ(s.waits(), 40s) << other;
    }
  }
}

TEST(ratelimit_pacing, counts_content_bytes_where_they_are_the_unit) {
  pacer paces(burst_options());
  auto now = instant(1000s);
  auto const fields = std::vector<http::field_view>{
      {"RateLimit-Policy", R"("bytes";q=3000;qu="content-bytes";w=10)"},
      {"RateLimit", R"("bytes";r=2500;t=10)"}};
  auto const first = paces.ask(now, 400);
  ASSERT_TRUE(first.go);
  paces.answered(first.ticket, {200, fields, wall_clock, 100}, now, 0);
  // 2400 are left, as the response is counted when it has been sent; each takes 500, as the first
  // did.
  EXPECT_EQ(paces.current().allowance, 4);
  for (int i = 0; i < 4; ++i) {
    now += 1ms;
    EXPECT_TRUE(paces.ask(now, 400).go) << i;
  }
  EXPECT_FALSE(paces.ask(now + 1s, 400).go);
}

TEST(ratelimit_pacing, holds_back_a_request_that_is_larger_than_what_is_left) {
  pacer paces(burst_options());
  auto const now = instant(1000s);
  auto const fields = std::vector<http::field_view>{
      {"RateLimit-Policy", R"("bytes";q=3000;qu="content-bytes";w=10)"},
      {"RateLimit", R"("bytes";r=2000;t=10)"}};
  paces.answered(paces.ask(now, 10).ticket, {200, fields, wall_clock, 0}, now, 0);
  EXPECT_EQ(paces.ask(now + 1s, 2500), (permission{false, 0, now + 10s}));
  EXPECT_TRUE(paces.ask(now + 1s, 1500).go);
  // One that is larger than the quota is not held back for ever: the server decides.
  EXPECT_TRUE(paces.ask(now + 10s, 100'000).go || paces.in_flight() > 0);
}

TEST(ratelimit_pacing, learns_what_a_request_costs_in_a_unit_that_it_cannot_count) {
  script s(burst_options());
  auto const policy = http::field_view{"RateLimit-Policy", R"("llm";q=10000;qu="tokens";w=60)"};
  ASSERT_EQ(s.waits(), 0s);
  s.gets(200, {policy, {"RateLimit", R"("llm";r=9000;t=60)"}});
  ASSERT_EQ(s.waits(), 1ms);
  EXPECT_EQ(s.waits(), nanoseconds::max()) << "one at a time until the cost shows";
  s.gets(200, {policy, {"RateLimit", R"("llm";r=6000;t=60)"}});
  EXPECT_EQ(s.paces.current().allowance, 2);
  EXPECT_EQ(s.waits(), 1ms);
  EXPECT_EQ(s.waits(), 1ms);
  EXPECT_EQ(s.waits(), nanoseconds::max());
}

TEST(ratelimit_pacing, slows_down_when_others_spend_the_same_quota) {
  script s;
  ASSERT_EQ(s.waits(), 0s);
  s.gets(200, {{"RateLimit-Policy", R"("a";q=1000;w=100)"}, {"RateLimit", R"("a";r=999;t=100)"}});
  auto const alone = *s.paces.current().rate;
  EXPECT_NEAR(alone, 9.99, 0.01);
  auto remaining = 999;
  for (int i = 0; i < 5; ++i) {
    ASSERT_NE(s.waits(), nanoseconds::max());
    remaining -= 50;  // one of them was ours
    auto const limit = "\"a\";r=" + std::to_string(remaining) + ";t=99";
    s.gets(200, {{"RateLimit-Policy", R"("a";q=1000;w=100)"}, {"RateLimit", limit}});
  }
  EXPECT_LT(*s.paces.current().rate, alone / 8);
}

TEST(ratelimit_pacing, does_not_speed_up_on_a_rate_that_it_did_not_use) {
  script s;
  ASSERT_EQ(s.waits(), 0s);
  s.gets(200, {{"RateLimit-Policy", R"("a";q=100;w=60)"}, {"RateLimit", R"("a";r=99;t=60)"}});
  auto const rate = *s.paces.current().rate;
  for (int i = 0; i < 10; ++i) {
    s.now += 3s;  // no request is wanted in between
    ASSERT_EQ(s.waits(), 0s);
    auto const limit = "\"a\";r=" + std::to_string(98 - i) + ";t=" + std::to_string(57 - 3 * i);
    s.gets(200, {{"RateLimit-Policy", R"("a";q=100;w=60)"}, {"RateLimit", limit}});
  }
  EXPECT_LE(*s.paces.current().rate, rate);
}

TEST(ratelimit_pacing, takes_an_answer_once_and_only_for_a_request_that_went) {
  script s(burst_options());
  ASSERT_EQ(s.waits(), 0s);
  s.gets(7, 429, {{"Retry-After", "60"}});
  s.gets(200, {});
  s.gets(429, {{"Retry-After", "60"}});
  EXPECT_EQ(s.paces.in_flight(), 0U);
  EXPECT_EQ(s.waits(), 1ms);
}

TEST(ratelimit_pacing, looks_at_a_bounded_number_of_limits) {
  script s(burst_options());
  ASSERT_EQ(s.waits(), 0s);
  std::string many;
  for (int i = 0; i < 5000; ++i) {
    many += (i == 0 ? "\"p" : ", \"p") + std::to_string(i) + "\";r=5;t=9";
  }
  s.gets(200, {{"RateLimit", many}});
  EXPECT_EQ(s.waits(), 1ms);
  EXPECT_EQ(s.paces.current().allowance, 4);
}

TEST(ratelimit_pacers, keep_origins_and_partitions_apart) {
  pacers all;
  auto const now = instant(1000s);
  auto const ticket = all.of("https://a.example", "key").ask(now).ticket;
  auto const fields = std::vector<http::field_view>{{"Retry-After", "5"}};
  all.of("https://a.example", "key").answered(ticket, {429, fields, wall_clock}, now, 0);
  EXPECT_FALSE(all.of("https://a.example", "key").ask(now).go);
  EXPECT_TRUE(all.of("https://a.example", "other").ask(now).go);
  EXPECT_TRUE(all.of("https://b.example", "key").ask(now).go);
  EXPECT_TRUE(all.of("https://a.example").ask(now).go);
  EXPECT_EQ(all.size(), 4U);
}

TEST(ratelimit_pacers, forget_the_one_that_was_idle_for_longest) {
  pacers all({}, 2);
  auto const now = instant(1000s);
  ASSERT_TRUE(all.of("https://busy.example").ask(now).go);
  (void)all.of("https://idle.example");
  (void)all.of("https://new.example");
  EXPECT_EQ(all.size(), 2U);
  EXPECT_EQ(all.of("https://busy.example").in_flight(), 1U);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::ratelimit
