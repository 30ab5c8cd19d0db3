// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/advertise.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
__extension__ using int128 = __int128;

constexpr auto randomness_max = std::numeric_limits<std::uint64_t>::max();
constexpr std::int64_t quota_max = 999'999'999'999'999;

auto make(std::int64_t quota, std::chrono::seconds window, algorithm a) -> policy {
  return policy::make({quota, window, quota_unit::requests, a, {}}).value();
}

auto slots(std::int64_t quota) -> policy {
  return policy::make({quota, 0s, quota_unit::concurrent_requests, algorithm::sliding, {}}).value();
}

auto rate_of(std::int64_t units, nanoseconds duration) -> rate {
  return rate::make(units, duration).value();
}

// ---- rates ----

TEST(ratelimit_rate, refuses_what_is_none) {
  EXPECT_EQ(rate::make(0, 1s).error(), rate_fault::units_out_of_range);
  EXPECT_EQ(rate::make(quota_max + 1, 1s).error(), rate_fault::units_out_of_range);
  EXPECT_EQ(rate::make(1, 0s).error(), rate_fault::duration_out_of_range);
  EXPECT_EQ(rate::make(1, 367 * 24h).error(), rate_fault::duration_out_of_range);
  EXPECT_EQ(message(rate_fault::units_out_of_range), "the units must be 1 to 999999999999999");
  EXPECT_EQ(message(rate_fault::duration_out_of_range),
            "the duration must be above 0 and up to 366 days");
}

TEST(ratelimit_rate, counts_whole_units_in_whole_seconds) {
  EXPECT_EQ(rate_of(10, 1s).units_in(7s), 70);
  EXPECT_EQ(rate_of(1, 10s).units_in(9s), 0);
  EXPECT_EQ(rate_of(1, 10s).units_in(10s), 1);
  EXPECT_EQ(rate_of(1, 300ms).units_in(1s), 3);
  EXPECT_EQ(rate_of(1, 1s).units_in(-5s), 0);
  EXPECT_EQ(rate_of(quota_max, 1ns).units_in(std::chrono::seconds::max()),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(rate_of(3, 10s).time_of_one(), 3'333'333'334ns);
  EXPECT_EQ(rate_of(1, 10s).time_of_one(), 10s);
  EXPECT_EQ(rate_of(quota_max, 1ns).time_of_one(), 1ns);
}

// ---- one policy ----

TEST(ratelimit_advertise, caps_spreads_and_lowers_what_is_told) {
  struct row {
    std::string_view name;
    service left;
    advertisement how;
    std::uint64_t randomness;
    std::int64_t remaining;
    nanoseconds reset;
  };
  for (auto const& row : {
           row{"as it stands", {60, 30s}, {}, randomness_max, 60, 30s},
           {"the example of section 8.5", {10'000, 10s}, {rate_of(10, 1s)}, 0, 100, 10s},
           {"a rate above what is left", {60, 30s}, {rate_of(10, 1s)}, 0, 60, 30s},
           {"the second that is begun counts as it is written",
            {60, 2'000'000'001ns},
            {rate_of(10, 1s)},
            0,
            30,
            2'000'000'001ns},
           {"a reset that is over counts as one second", {60, 0s}, {rate_of(10, 1s)}, 0, 10, 1s},
           {"a rate that gives no unit in t", {60, 3s}, {rate_of(1, 10s)}, 0, 1, 10s},
           {"the same where nothing is left", {0, 3s}, {rate_of(1, 10s)}, 0, 0, 3s},
           {"a slow rate and a long reset", {60, 35s}, {rate_of(1, 10s)}, 0, 3, 35s},
           {"jitter at its least", {60, 30s}, {std::nullopt, 5s}, 0, 60, 30s},
           {"jitter at its most", {60, 30s}, {std::nullopt, 5s}, randomness_max, 60, 35s},
           {"jitter in the middle",
            {60, 30s},
            {std::nullopt, 5s},
            randomness_max / 2,
            60,
            32'500ms},
           {"jitter below 0", {60, 30s}, {std::nullopt, -5s}, randomness_max, 60, 30s},
           {"jitter after the cap", {60, 2s}, {rate_of(10, 1s), 5s}, randomness_max, 20, 7s},
           {"half of it", {61, 30s}, {std::nullopt, 0s, 0.5}, 0, 30, 30s},
           {"nothing of it", {61, 30s}, {std::nullopt, 0s, 0}, 0, 0, 30s},
           {"less than nothing", {61, 30s}, {std::nullopt, 0s, -3}, 0, 0, 30s},
           {"more than all", {61, 30s}, {std::nullopt, 0s, 1.5}, 0, 61, 30s},
           {"no number", {61, 30s}, {std::nullopt, 0s, std::nan("")}, 0, 61, 30s},
           {"so small a share that it is less than one",
            {5, 3s},
            {std::nullopt, 0s, 0.1},
            0,
            1,
            3s},
           {"the same where nothing is left", {0, 3s}, {std::nullopt, 0s, 0.1}, 0, 0, 3s},
           {"a share of less than one, which takes longer than t",
            {5, 3s},
            {rate_of(1, 10s), 0s, 0.1},
            0,
            1,
            10s},
           {"fifteen digits",
            {quota_max, 366 * 24h},
            {rate_of(quota_max, 1s), 366 * 24h},
            randomness_max,
            quota_max,
            2 * 366 * 24h},
           {"fifteen digits at a slow rate",
            {quota_max, 366 * 24h},
            {rate_of(quota_max, 366 * 24h)},
            0,
            quota_max,
            366 * 24h},
           {"a time that cannot become later",
            {1, nanoseconds::max()},
            {std::nullopt, nanoseconds::max()},
            randomness_max,
            1,
            nanoseconds::max()},
       }) {
    auto const p = make(quota_max, 60s, algorithm::fixed);
    auto const view =
        advertise({.policy = &p, .left = row.left, .options = &row.how}, row.randomness);
    EXPECT_EQ(view.remaining, row.remaining) << row.name;
    // The middle is half a nanosecond off.
    EXPECT_NEAR(static_cast<double>((view.reset.value() - row.reset).count()), 0, 1) << row.name;
  }
}

TEST(ratelimit_advertise, tells_a_violated_policy_the_time_at_which_the_request_fits) {
  auto const p = make(10, 60s, algorithm::gcra);
  policy_outcome outcome{.policy = &p, .left = {2, 12s}, .retry = 18s, .violated = true};
  outcome.partition_key = "key";
  auto const view = advertise(outcome, 0);
  EXPECT_EQ(view.remaining, 2);
  EXPECT_EQ(view.reset, 18s);
  EXPECT_EQ(view.partition_key, "key");
}

TEST(ratelimit_advertise, has_no_time_for_concurrent_requests) {
  auto const p = slots(20);
  advertisement const how{rate_of(1, 10s), 5s, 0.5};
  auto const view = advertise({.policy = &p, .left = {19, 0s}, .options = &how}, randomness_max);
  EXPECT_EQ(view.remaining, 9);
  EXPECT_FALSE(view.reset.has_value());
}

TEST(ratelimit_advertise, holds_its_bounds_for_random_numbers) {
  std::mt19937_64 random(7);
  auto up_to = [&](std::int64_t most) {
    // Small numbers as often as large ones.
    auto const bits = random() % 64;
    return static_cast<std::int64_t>((random() >> bits) % (static_cast<std::uint64_t>(most) + 1));
  };
  for (int i = 0; i < 200'000; ++i) {
    auto const p = make(quota_max, 60s, algorithm::sliding);
    auto const units = 1 + up_to(quota_max - 1);
    auto const duration = 1 + up_to(nanoseconds(366 * 24h).count() - 1);
    advertisement const how{rate_of(units, nanoseconds(duration)),
                            nanoseconds(up_to(nanoseconds(24h).count())),
                            i % 2 == 0 ? 1.0 : static_cast<double>(random() % 1001) / 1000};
    service const left{up_to(quota_max), nanoseconds(up_to(nanoseconds(366 * 24h).count()))};
    auto const view = advertise({.policy = &p, .left = left, .options = &how}, random());
    auto const t = seconds_until(view.reset.value());
    auto const before_jitter = std::max(
        {left.reset, nanoseconds(1s), view.remaining == 1 ? how.max_rate->time_of_one() : 0ns});

    ASSERT_GE(view.remaining, 0);
    ASSERT_LE(view.remaining, left.remaining);
    ASSERT_LE(int128(view.remaining) * duration, int128(units) * t * 1'000'000'000);
    ASSERT_GE(*view.reset, left.reset);
    ASSERT_LE(*view.reset, before_jitter + how.jitter);
    if (how.share == 1 && left.remaining > 0) {
      ASSERT_GE(view.remaining, 1);
    }
  }
}

TEST(ratelimit_advertise, spreads_clients_evenly_over_the_jitter) {
  std::mt19937_64 random(3);
  auto const p = make(10, 60s, algorithm::fixed);
  advertisement const how{.jitter = 9ns};
  std::array<int, 10> seen{};
  for (int i = 0; i < 100'000; ++i) {
    auto const view = advertise({.policy = &p, .left = {1, 5ns}, .options = &how}, random());
    ++seen.at(static_cast<std::size_t>((view.reset.value() - 5ns).count()));
  }
  for (int count : seen) {
    EXPECT_NEAR(count, 10'000, 500);
  }
}

// ---- whole responses ----

TEST(ratelimit_advertise, takes_the_latest_of_the_violated_policies_for_retry_after) {
  auto const burst = make(100, 60s, algorithm::sliding);
  auto const daily = make(1000, 24h, algorithm::fixed);
  auto const held = slots(5);
  advertisement const spread{.jitter = 4s};
  std::vector<policy_outcome> outcomes = {
      {.policy = &burst, .left = {0, 7s}, .retry = 7500ms, .violated = true, .options = &spread},
      {.policy = &daily, .left = {3, 36'000s}},
      {.policy = &held, .left = {0, {}}, .retry = 1s, .violated = true}};
  std::vector<service_limit_view> views(3);
  EXPECT_EQ(advertise(outcomes, randomness_max, views), 11'500ms);
  EXPECT_EQ(views[0].reset, 11'500ms);
  EXPECT_EQ(views[1].reset, 36'000s);
  EXPECT_FALSE(views[2].reset.has_value());

  outcomes[0].violated = false;
  EXPECT_EQ(advertise(outcomes, randomness_max, views), 1s);
  EXPECT_EQ(views[0].reset, 11s);

  outcomes[2].options = &spread;
  EXPECT_EQ(advertise(outcomes, randomness_max, views), 5s);

  outcomes[2].violated = false;
  EXPECT_EQ(advertise(outcomes, randomness_max, views), std::nullopt);
}

TEST(ratelimit_advertise, never_asks_to_retry_at_once) {
  auto const p = make(1, 1s, algorithm::fixed);
  std::vector<policy_outcome> const outcomes = {{.policy = &p, .left = {}, .violated = true}};
  std::vector<service_limit_view> views(1);
  auto const wait = advertise(outcomes, 0, views);
  EXPECT_EQ(seconds_until(wait.value()), 1);
  EXPECT_EQ(seconds_until(views[0].reset.value()), 1);
}

/// A client that does what it is told is served: after `t` there is more (draft-10's reading) and
/// after Retry-After the refused request fits (draft-09, section 6), to the second as both are
/// written.
TEST(ratelimit_advertise, tells_times_that_hold_in_both_readings) {
  std::mt19937_64 random(11);
  for (auto kind : {algorithm::fixed, algorithm::sliding, algorithm::gcra}) {
    int refusals = 0;
    for (int run = 0; run < 200; ++run) {
      auto const quota = static_cast<std::int64_t>(1 + random() % 20);
      auto const p = make(quota, std::chrono::seconds(1 + random() % 30), kind);
      advertisement how{.jitter = nanoseconds(random() % 3'000'000'000)};
      if (random() % 2 == 0) {
        how.max_rate = rate_of(static_cast<std::int64_t>(1 + random() % 5), 2s);
      }
      bucket state;
      instant now(1000s);
      for (int step = 0; step < 100; ++step) {
        auto const cost = static_cast<std::int64_t>(1 + random() % 3);
        if (cost > quota) {
          continue;
        }
        auto const d = decide(p, state, now, cost);
        std::vector<policy_outcome> const outcomes = {{.policy = &p,
                                                       .left = d.left,
                                                       .retry = d.retry,
                                                       .violated = !d.admitted,
                                                       .options = &how}};
        std::vector<service_limit_view> views(1);
        auto const wait = advertise(outcomes, random(), views);
        auto const t = std::chrono::seconds(seconds_until(views[0].reset.value()));
        ASSERT_EQ(wait.has_value(), !d.admitted);
        if (wait) {
          ++refusals;
          auto const retry_after = std::chrono::seconds(seconds_until(*wait));
          ASSERT_GE(retry_after, t);
          ASSERT_TRUE(decide(p, state, now + retry_after, cost).admitted);
        } else {
          state = d.next;
        }
        if (views[0].remaining == 0) {
          ASSERT_GE(look(p, state, now + t).remaining, 1);
        }
        now += nanoseconds(random() % 2'000'000'000);
      }
    }
    EXPECT_GT(refusals, 1000);
  }
}

TEST(ratelimit_advertise, is_written_with_the_same_moment_in_both_fields) {
  auto const p = make(10, 60s, algorithm::fixed);
  std::vector<policy_outcome> const outcomes = {
      {.policy = &p, .left = {0, 4'200ms}, .retry = 4'200ms, .violated = true}};
  std::vector<service_limit_view> views(1);
  auto const wait = advertise(outcomes, 0, views);
  std::vector<quota_policy_view> const policies = {{.name = "burst", .quota = 10, .window = 60s}};
  std::string limit;
  std::string retry_after;
  append_limits(limit, policies, views, draft::draft_09);
  append_retry_after(retry_after, wait.value());
  EXPECT_EQ(limit, R"("burst";r=0;t=5)");
  EXPECT_EQ(retry_after, "5");
}

TEST(ratelimit_advertise, says_in_draft_10_when_more_is_there_and_apart_when_the_request_fits) {
  auto const sliding = policy::make({10, 60s}).value();
  auto const tell = [](policy const& p, service left, std::chrono::nanoseconds retry,
                       bool violated) {
    return advertise(policy_outcome{.policy = &p,
                                    .left = left,
                                    .retry = retry,
                                    .violated = violated,
                                    .version = draft::draft_10},
                     0);
  };
  auto const refused = tell(sliding, {3, 20s}, 50s, true);
  EXPECT_EQ(refused.reset, 20s);
  EXPECT_EQ(refused.retry, 50s);
  EXPECT_EQ(tell(sliding, {3, 20s}, 5s, true).reset, 5s) << "never later than Retry-After";
  EXPECT_EQ(tell(sliding, {3, 20s}, 0s, false).reset, 20s);
  EXPECT_EQ(tell(sliding, {3, 20s}, 0s, false).retry, std::nullopt);
  EXPECT_EQ(tell(sliding, {10, 60s}, 0s, false).reset, std::nullopt) << "nothing more can come";
  auto const gcra = policy::make({60, 60s, quota_unit::requests, algorithm::gcra, 5}).value();
  EXPECT_EQ(tell(gcra, {3, 2s}, 0s, false).reset, 1s) << "a unit comes back in a second";
  EXPECT_EQ(tell(gcra, {5, 0s}, 0s, false).reset, std::nullopt);
  std::array<policy_outcome, 1> const outcomes{policy_outcome{.policy = &sliding,
                                                              .left = {3, 20s},
                                                              .retry = 50s,
                                                              .violated = true,
                                                              .version = draft::draft_10}};
  std::array<service_limit_view, 1> views;
  EXPECT_EQ(advertise(outcomes, 0, views), 50s);
}

TEST(ratelimit_advertise, never_says_in_draft_10_a_reset_later_than_retry_after) {
  auto const most = rate::make(1, 40s).value();
  advertisement const how{.max_rate = most, .jitter = 7s};
  auto const p = policy::make({10, 60s}).value();
  for (auto const random : {std::uint64_t{0}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    auto const told = advertise(policy_outcome{.policy = &p,
                                               .left = {3, 20s},
                                               .retry = 30s,
                                               .violated = true,
                                               .options = &how,
                                               .version = draft::draft_10},
                                random);
    EXPECT_GE(*told.retry, *told.reset);
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::ratelimit
