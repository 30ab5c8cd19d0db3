// SPDX-License-Identifier: Apache-2.0
#include <tidegate/balance/retry.hpp>

#include <gtest/gtest.h>

namespace tidegate::balance {
namespace {

using namespace std::chrono_literals;

TEST(balance_retry, tries_again_by_default_only_what_cannot_have_arrived) {
  retry_settings const settings;
  for (auto const what :
       {retry_cause::connect, retry_cause::refused_stream, retry_cause::reset, retry_cause::timeout,
        retry_cause::status_502, retry_cause::status_503, retry_cause::status_504}) {
    EXPECT_EQ(settings.has(what), cannot_have_arrived(what));
  }
  EXPECT_FALSE(settings.has_status());
}

TEST(balance_retry, knows_the_statuses_that_are_named) {
  retry_settings const settings{.on = static_cast<std::uint8_t>(retry_cause::status_503)};
  EXPECT_TRUE(settings.has_status());
  EXPECT_TRUE(settings.has(503));
  EXPECT_FALSE(settings.has(502));
  EXPECT_FALSE(settings.has(500));
}

TEST(balance_retry, waits_up_to_twice_as_long_each_time_and_half_of_it_at_least) {
  constexpr auto most = ~std::uint64_t{0};
  for (auto const& [retry, whole] : {std::pair(1, 25ms), {2, 50ms}, {3, 100ms}, {9, 1025ms}}) {
    EXPECT_EQ(backoff_before(retry, 25ms, 0), whole / 2.0);
    for (auto const randomness : {most, most / 3, most / 7, std::uint64_t{12345}}) {
      auto const wait = backoff_before(retry, 25ms, randomness);
      EXPECT_GE(wait, whole / 2) << retry;
      EXPECT_LE(wait, whole) << retry;
    }
  }
  EXPECT_EQ(backoff_before(3, 0ns, most), 0ns);
}

TEST(balance_retry_budget, allows_a_share_of_the_requests_of_ten_seconds) {
  retry_budget budget;
  auto const now = instant(100s);
  EXPECT_FALSE(budget.allows(20, now));
  for (int i = 0; i < 100; ++i) {
    budget.request(now + i * 50ms);
  }
  int allowed = 0;
  while (budget.allows(20, now + 5s)) {
    budget.retried(now + 5s);
    ++allowed;
  }
  EXPECT_EQ(allowed, 20);
}

TEST(balance_retry_budget, forgets_what_was_longer_ago) {
  retry_budget budget;
  for (int i = 0; i < 100; ++i) {
    budget.request(instant(100s));
  }
  EXPECT_TRUE(budget.allows(20, instant(109s)));
  EXPECT_FALSE(budget.allows(20, instant(110s)));
  budget.request(instant(500s));
  EXPECT_FALSE(budget.allows(20, instant(500s)));
  EXPECT_TRUE(budget.allows(100, instant(500s)));
}

TEST(balance_retry_budget, allows_nothing_with_0_percent) {
  retry_budget budget;
  for (int i = 0; i < 1000; ++i) {
    budget.request(instant(1s));
  }
  EXPECT_FALSE(budget.allows(0, instant(1s)));
}

TEST(balance_retry_floor, gives_three_a_second) {
  retry_floor floor;
  int taken = 0;
  while (floor.take(instant(50s))) {
    ++taken;
  }
  EXPECT_EQ(taken, 30) << "of ten seconds";
  EXPECT_FALSE(floor.take(instant(50s + 300ms)));
  EXPECT_TRUE(floor.take(instant(50s + 340ms)));
  EXPECT_FALSE(floor.take(instant(50s + 340ms)));
}

}  // namespace
}  // namespace tidegate::balance
