// SPDX-License-Identifier: Apache-2.0
#include <tidegate/engine/timer.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace tidegate::engine {
namespace {

using namespace std::chrono_literals;

struct called : timer {
  explicit called(std::function<void()> does) : does(std::move(does)) {}
  void expired() override { does(); }
  std::function<void()> does;
};

constexpr auto begin = instant(1000s);

TEST(engine_timer, is_called_once_and_not_before_its_time) {
  timer_wheel wheel(begin);
  int calls = 0;
  called t([&] { ++calls; });
  t.set(wheel, begin + 100ms);
  EXPECT_TRUE(t.is_set());
  wheel.advance(begin + 99ms);
  EXPECT_EQ(calls, 0);
  wheel.advance(begin + 100ms + 2 * timer_wheel::tick);
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(t.is_set());
  wheel.advance(begin + 1h);
  EXPECT_EQ(calls, 1);
}

TEST(engine_timer, can_be_moved_and_cancelled) {
  timer_wheel wheel(begin);
  int calls = 0;
  called t([&] { ++calls; });
  t.set(wheel, begin + 1s);
  t.set(wheel, begin + 5s);
  wheel.advance(begin + 3s);
  EXPECT_EQ(calls, 0);
  t.set(wheel, begin + 4s);
  wheel.advance(begin + 4s + 2 * timer_wheel::tick);
  EXPECT_EQ(calls, 1);
  t.set(wheel, begin + 6s);
  t.cancel();
  wheel.advance(begin + 10s);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(wheel.next_in(begin + 10s), timer_wheel::none);
}

TEST(engine_timer, goes_round_the_wheel_when_it_is_far_away) {
  timer_wheel wheel(begin);
  int calls = 0;
  called t([&] { ++calls; });
  t.set(wheel, begin + 90s);
  auto now = begin;
  while (calls == 0 && now < begin + 2min) {
    auto const wait = wheel.next_in(now);
    ASSERT_NE(wait, timer_wheel::none);
    now += std::max<std::chrono::nanoseconds>(wait, 1ms);
    wheel.advance(now);
  }
  EXPECT_GE(now, begin + 90s);
  EXPECT_LE(now, begin + 90s + 2 * timer_wheel::tick);
}

TEST(engine_timer, may_destroy_and_set_others_when_it_is_called) {
  timer_wheel wheel(begin);
  std::vector<std::unique_ptr<called>> others;
  int calls = 0;
  for (int i = 0; i < 10; ++i) {
    others.push_back(std::make_unique<called>([&] {
      ++calls;
      others.clear();
    }));
  }
  called again([&] {
    if (++calls < 5) {
      again.set(wheel, begin);
    }
  });
  for (auto& t : others) {
    t->set(wheel, begin + 10ms);
  }
  wheel.advance(begin + 1s);
  EXPECT_EQ(calls, 1) << "the first of them destroyed the rest";
  calls = 0;
  again.set(wheel, begin);
  for (int i = 1; i <= 10; ++i) {
    wheel.advance(begin + 1s + i * timer_wheel::tick);
  }
  EXPECT_EQ(calls, 5);
}

TEST(engine_timer, keeps_its_word_over_random_times) {
  std::mt19937_64 random(7);
  timer_wheel wheel(begin);
  auto now = begin;
  struct entry {
    std::unique_ptr<called> t;
    instant due;
    bool is_set = false;
  };
  std::vector<entry> entries(200);
  for (auto& e : entries) {
    e.t = std::make_unique<called>([&] {
      EXPECT_TRUE(e.is_set);
      EXPECT_LE(e.due, now);
      e.is_set = false;
    });
  }
  for (int step = 0; step < 20000; ++step) {
    auto& e = entries[random() % entries.size()];
    if (random() % 4 == 0) {
      e.t->cancel();
      e.is_set = false;
    } else {
      e.due = now + std::chrono::milliseconds(random() % 40000);
      e.is_set = true;
      e.t->set(wheel, e.due);
    }
    now += std::chrono::microseconds(random() % (step % 100 == 0 ? 30'000'000 : 20'000));
    wheel.advance(now);
    for (auto const& other : entries) {
      ASSERT_TRUE(!other.is_set || other.due + 2 * timer_wheel::tick > now);
    }
  }
}

}  // namespace
}  // namespace tidegate::engine
