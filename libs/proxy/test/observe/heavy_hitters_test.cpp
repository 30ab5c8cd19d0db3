// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/heavy_hitters.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;

constexpr instant start{1000s};

auto decided(bool admitted = true, std::int64_t remaining = 5) -> ratelimit::verdict {
  return {.admitted = admitted, .left = {.remaining = remaining, .reset = 30s}};
}

auto find(heavy_hitters const& in, std::string_view text, instant now) -> heavy_hitters::partition {
  for (auto& each : in.look(now)) {
    if (each.text == text) {
      return each;
    }
  }
  return {};
}

TEST(proxy_heavy_hitters, count_each_and_know_what_was_left) {
  heavy_hitters hot;
  hot.count("a", decided(), start);
  hot.count("a", decided(false, 0), start + 1s);
  hot.count("b", decided(true, 7), start + 1s);
  auto const a = find(hot, "a", start + 2s);
  EXPECT_EQ(a.requests, 2);
  EXPECT_EQ(a.refused, 1);
  EXPECT_EQ(a.remaining, 0);
  EXPECT_EQ(a.reset, 29s);
  EXPECT_EQ(find(hot, "b", start + 2s).remaining, 7);
  EXPECT_EQ(find(hot, "b", start + 60s).requests, 0);
}

TEST(proxy_heavy_hitters, show_what_an_operator_has_changed) {
  heavy_hitters hot;
  hot.count("a", decided(false, 0), start);
  hot.correct("a", {.remaining = 9, .reset = 60s}, start + 1s);
  hot.correct("b", {.remaining = 9, .reset = 60s}, start + 1s);
  EXPECT_EQ(find(hot, "a", start + 2s).remaining, 9);
  EXPECT_EQ(find(hot, "a", start + 2s).reset, 59s);
  EXPECT_EQ(find(hot, "a", start + 2s).refused, 1);
  EXPECT_EQ(hot.look(start + 2s).size(), 1);
}

TEST(proxy_heavy_hitters, forget_what_is_longer_ago_than_a_window) {
  heavy_hitters hot;
  for (int i = 0; i < 10; ++i) {
    hot.count("a", decided(), start);
  }
  EXPECT_EQ(find(hot, "a", start + 9s).requests, 10);
  EXPECT_EQ(find(hot, "a", start + 15s).requests, 5);
  EXPECT_TRUE(hot.look(start + 20s).empty());
  hot.count("b", decided(), start + 10s);
  EXPECT_EQ(find(hot, "a", start + 15s).requests, 5);
  hot.count("b", decided(), start + 20s);
  EXPECT_EQ(hot.look(start + 20s).size(), 1);
  EXPECT_EQ(find(hot, "b", start + 20s).requests, 2);
}

TEST(proxy_heavy_hitters, keep_who_comes_most_among_many_others) {
  heavy_hitters hot;
  auto now = start;
  for (int i = 0; i < 5000; ++i) {
    now += 1ms;
    hot.count("other " + std::to_string(i), decided(), now);
    if (i % 10 == 0) {
      hot.count("hot", decided(), now);
    }
  }
  auto const seen = hot.look(now);
  EXPECT_EQ(seen.size(), heavy_hitters::partitions_max);
  auto const most = std::ranges::max_element(seen, {}, &heavy_hitters::partition::requests);
  EXPECT_EQ(most->text, "hot");
  EXPECT_GT(most->requests, 300);
  for (auto const& each : seen) {
    EXPECT_TRUE(each.text == "hot" || each.requests < 20) << each.text << " " << each.requests;
  }
}

TEST(proxy_heavy_hitters, count_about_right_when_they_look_only_now_and_then) {
  heavy_hitters hot;
  auto now = start;
  for (int i = 0; i < 400'000; ++i) {
    now += 10us;
    hot.count(i % 4 == 0 ? "a" : "b", decided(), now);
  }
  EXPECT_NEAR(find(hot, "b", now).requests + find(hot, "a", now).requests, 400'000, 40'000);
}

TEST(proxy_heavy_hitters, notice_at_once_that_few_come_after_many) {
  heavy_hitters hot;
  auto now = start;
  for (int i = 0; i < 600'000; ++i) {
    now += 33us;
    hot.count("many", decided(), now);
  }
  for (int i = 0; i < 60; ++i) {
    now += 500ms;
    hot.count(i % 2 == 0 ? "a" : "b", decided(), now);
    if (i >= 6) {
      auto const expected = std::min(10, i / 2 + 1);
      EXPECT_NEAR(find(hot, "a", now).requests, expected, 3) << i;
      EXPECT_NEAR(find(hot, "b", now).requests, expected, 3) << i;
    }
  }
}

TEST(proxy_heavy_hitters, let_no_client_hide_behind_a_long_text) {
  heavy_hitters hot;
  std::string const token(32 * 1024, 'x');
  hot.count(token, decided(), start);
  hot.count(token, decided(false, 0), start);
  EXPECT_EQ(find(hot, token, start).requests, 2);
  EXPECT_EQ(find(hot, token, start).refused, 1);
}

TEST(proxy_heavy_hitters, bound_what_texts_take) {
  heavy_hitters hot;
  for (int i = 0; i < 100; ++i) {
    hot.count("a", decided(), start);
    hot.count(std::string(10'000, 'x') + std::to_string(i), decided(), start);
  }
  std::size_t octets = 0;
  for (auto const& each : hot.look(start)) {
    octets += each.text.size();
  }
  EXPECT_LE(octets, heavy_hitters::text_octets_max);
  EXPECT_GT(octets, heavy_hitters::text_octets_max - 20'000);
  EXPECT_EQ(find(hot, "a", start).requests, 100);
  // The bound is of what is kept now, not of all that ever was.
  hot.count(std::string(heavy_hitters::text_octets_max, 'y'), decided(), start + 60s);
  EXPECT_EQ(hot.look(start + 60s).size(), 1);
  hot.count(std::string(heavy_hitters::text_octets_max + 1, 'z'), decided(), start + 60s);
  EXPECT_EQ(hot.look(start + 60s).size(), 1);
}

}  // namespace
}  // namespace tidegate::gateway
