// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/abuse.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

auto at(nanoseconds t) -> instant {
  return instant(t);
}

// ---- refusals ----

/// A partition under watch, as the code that refuses its requests keeps it.
struct refused_partition {
  abuse_settings settings;
  refusal_state state{};

  /// What becomes of a request at `t` that its quota does not admit: 'q' refused by quota, 'B' the
  /// same and blocked from now on, 'a' refused as abnormal usage.
  auto request(nanoseconds t) -> char {
    if (blocked_for(state, at(t)) > 0ns) {
      auto const verdict = count_refusal(settings, state, at(t));
      EXPECT_EQ(verdict.next, state) << "a block is neither counted in nor prolonged";
      EXPECT_FALSE(verdict.blocks);
      return 'a';
    }
    auto const verdict = count_refusal(settings, state, at(t));
    state = verdict.next;
    return verdict.blocks ? 'B' : 'q';
  }
};

TEST(ratelimit_refusals, are_fifty_within_a_minute_unless_told_otherwise) {
  refused_partition p{};
  for (int i = 0; i < 49; ++i) {
    EXPECT_EQ(p.request(1s * i), 'q') << i;
  }
  EXPECT_EQ(p.request(50s), 'B');
  EXPECT_EQ(blocked_for(p.state, at(50s)), 10min);
  EXPECT_EQ(blocked_for(p.state, at(649s)), 1s);
  EXPECT_EQ(blocked_for(p.state, at(650s)), 0s);
}

TEST(ratelimit_refusals, follow_their_script) {
  struct row {
    std::string_view name;
    abuse_settings settings;
    std::vector<nanoseconds> times;
    std::string_view answers;
  };
  abuse_settings const three{3, 10s, 60s};
  for (auto const& row : {
           row{"enough within the window", three, {100s, 105s, 109s, 110s, 168s, 169s}, "qqBaaq"},
           {"the window ends just before", three, {100s, 105s, 110s, 111s, 112s}, "qqqqB"},
           {"the last moment of the window", three, {100s, 105s, 110s - 1ns}, "qqB"},
           {"a window begins with its first", three, {100s, 109s, 110s, 119s, 119s}, "qqqqB"},
           {"too slow for ever", three, {0s, 5s, 10s, 15s, 20s, 25s, 30s}, "qqqqqqq"},
           {"the first is enough", {1, 10s, 5s}, {7s, 8s, 12s - 1ns, 12s}, "BaaB"},
           {"none is enough counts as one", {0, 10s, 5s}, {7s, 8s}, "Ba"},
           {"counting starts over after the block", {2, 10s, 3s}, {0s, 1s, 2s, 4s, 5s}, "qBaqB"},
           {"a block shorter than the window", {2, 10s, 1s}, {0s, 0s, 1s, 1s, 2s}, "qBqBq"},
           {"a block of no time", {1, 10s, 0s}, {0s, 0s, 1s}, "BBB"},
           {"a window of no time", {2, 0s, 9s}, {5s, 6s, 6s, 7s}, "qqBa"},
           {"before the epoch", three, {-20s, -15s, -11s, -10s, 48s, 49s}, "qqBaaq"},
           {"the clock steps back in a window", three, {100s, 50s, 60s, 70s}, "qqBa"},
           {"the clock steps back in a block", {1, 10s, 5s}, {100s, 50s, 104s, 105s}, "BaaB"},
       }) {
    refused_partition p{row.settings};
    std::string answers;
    for (auto t : row.times) {
      answers += p.request(t);
    }
    EXPECT_EQ(answers, row.answers) << row.name;
  }
}

/// Every refusal by quota that counted, and the blocks; looked through again for each request.
struct slow_refusals {
  abuse_settings settings;
  std::vector<nanoseconds> window{};
  std::optional<nanoseconds> blocked_at{};

  auto request(nanoseconds t) -> char {
    if (blocked_at && t < *blocked_at + settings.block) {
      return 'a';
    }
    blocked_at.reset();
    if (!window.empty() && t >= window.front() + settings.within) {
      window.clear();
    }
    window.push_back(t);
    if (window.size() < settings.refusals) {
      return 'q';
    }
    window.clear();
    blocked_at = t;
    return 'B';
  }
};

TEST(ratelimit_refusals, agree_with_a_list_of_all_of_them) {
  std::mt19937_64 random(5);
  for (int run = 0; run < 500; ++run) {
    abuse_settings const settings{static_cast<std::uint32_t>(1 + random() % 6),
                                  nanoseconds(1 + random() % 50), nanoseconds(random() % 50)};
    refused_partition p{settings};
    slow_refusals model{settings};
    auto t = nanoseconds(random() % 100) - 50ns;
    for (int i = 0; i < 400; ++i) {
      // Now and then the clock steps back.
      t += random() % 20 == 0 ? -nanoseconds(random() % 30) : nanoseconds(random() % 20);
      ASSERT_EQ(p.request(t), model.request(t)) << "run " << run << ", request " << i;
    }
  }
}

TEST(ratelimit_refusals, are_forgotten_when_they_say_nothing_any_more) {
  abuse_settings const settings{3, 10s, 60s};
  EXPECT_EQ(expires(refusal_state{}), at(0s));
  refused_partition p{settings};
  for (auto t : {100s, 104s, 105s}) {
    p.request(t);
    auto const end = expires(p.state);
    auto const fresh = count_refusal(settings, {}, end);
    EXPECT_EQ(blocked_for(p.state, end), 0s);
    EXPECT_EQ(count_refusal(settings, p.state, end).next, fresh.next);
    EXPECT_NE(count_refusal(settings, p.state, end - 1ns).next,
              count_refusal(settings, {}, end - 1ns).next);
  }
  EXPECT_EQ(expires(p.state), at(165s));
}

TEST(ratelimit_refusals, stay_sane_at_the_ends_of_time) {
  auto const first = instant::min();
  auto const last = instant::max();
  abuse_settings const settings{1, nanoseconds::max(), nanoseconds::max()};
  auto const late = count_refusal(settings, {}, last);
  EXPECT_TRUE(late.blocks);
  EXPECT_EQ(expires(late.next), last);
  EXPECT_EQ(blocked_for(late.next, last), 0ns);
  EXPECT_EQ(blocked_for(late.next, first), nanoseconds::max());
  auto const early = count_refusal(settings, {}, first);
  EXPECT_TRUE(early.blocks);
  EXPECT_EQ(blocked_for(early.next, last), 0ns);

  abuse_settings const all{std::numeric_limits<std::uint32_t>::max(), 1min, 1min};
  refusal_state const full{60'000'000'000, all.refusals - 1, 0};
  EXPECT_TRUE(count_refusal(all, full, at(0s)).blocks);
}

// ---- patterns ----

struct watched_partition {
  pattern_settings settings;
  pattern_state state{};

  auto request(nanoseconds t) -> pattern_verdict {
    auto const verdict = watch(settings, state, at(t));
    if (blocked_for(state, at(t)) > 0ns) {
      EXPECT_TRUE(verdict.blocked);
      EXPECT_EQ(verdict.next, state) << "a block is neither counted in nor prolonged";
    }
    EXPECT_TRUE(verdict.blocked || !verdict.breaks);
    state = verdict.next;
    return verdict;
  }

  /// So many requests at `t`; returns how many were let through.
  auto requests(nanoseconds t, int count) -> int {
    int admitted = 0;
    for (int i = 0; i < count; ++i) {
      admitted += request(t).blocked ? 0 : 1;
    }
    return admitted;
  }
};

TEST(ratelimit_pattern, lets_a_steady_client_through) {
  watched_partition p{};
  for (int minute = 0; minute < 1000; ++minute) {
    ASSERT_EQ(p.requests(1min * minute, 500), 500) << minute;
  }
  EXPECT_NEAR(p.state.mean, 500, 1);
  EXPECT_NEAR(p.state.deviation, 0, 1);
}

TEST(ratelimit_pattern, blocks_a_client_that_is_unlike_itself) {
  watched_partition p{};
  for (int minute = 0; minute < 20; ++minute) {
    ASSERT_EQ(p.requests(1min * minute, 90 + minute % 2 * 20), 90 + minute % 2 * 20);
  }
  // 4 times a mean of 100 is above 6 times a deviation of 10, and the 401st request is abnormal.
  EXPECT_NEAR(p.requests(20min, 10'000), 400, 12);
  EXPECT_EQ(blocked_for(p.state, at(20min)), 10min);
  EXPECT_TRUE(p.request(30min - 1ns).blocked);
  EXPECT_FALSE(p.request(30min).blocked);
}

TEST(ratelimit_pattern, does_not_judge_before_enough_intervals_were_seen) {
  watched_partition p{};
  for (int minute = 0; minute < 9; ++minute) {
    EXPECT_EQ(p.requests(1min * minute, 1), 1);
  }
  EXPECT_EQ(p.requests(9min, 5000), 5000);
  watched_partition q{};
  for (int minute = 0; minute < 10; ++minute) {
    EXPECT_EQ(q.requests(1min * minute, 1), 1);
  }
  EXPECT_EQ(q.requests(10min, 5000), 100) << "then the minimum is let through";
}

TEST(ratelimit_pattern, needs_all_three_bounds_to_be_exceeded) {
  struct row {
    std::string_view name;
    std::uint32_t minimum;
    float factor;
    float deviations;
    int admitted;
  };
  // Ten intervals of 100 leave a deviation of 50 * (1 - 1/8)^9 = 15.03.
  for (auto const& row : {
           row{"the minimum", 1000, 2, 2, 1000},
           {"the factor", 10, 5, 2, 500},
           {"the deviations", 10, 1, 20, 400},
       }) {
    watched_partition p{
        {.minimum = row.minimum, .factor = row.factor, .deviations = row.deviations}};
    for (int minute = 0; minute < 10; ++minute) {
      ASSERT_EQ(p.requests(1min * minute, 100), 100);
    }
    EXPECT_EQ(p.requests(10min, 5000), row.admitted) << row.name;
  }
}

TEST(ratelimit_pattern, lets_a_client_that_has_grown_through_more_each_time) {
  watched_partition p{};
  auto t = 0min;
  for (; t < 30min; t += 1min) {
    p.requests(t, 100);
  }
  int last = 0;
  int blocks = 0;
  for (; t < 10h; t += 1min) {
    auto const admitted = p.requests(t, 2000);
    if (admitted > 0 && admitted < 2000) {
      EXPECT_GT(admitted, last);
      last = admitted;
      ++blocks;
    }
  }
  EXPECT_EQ(p.requests(t, 2000), 2000);
  EXPECT_LE(blocks, 6);
}

TEST(ratelimit_pattern, forgets_a_client_that_was_quiet_for_long) {
  watched_partition p{};
  for (int minute = 0; minute < 60; ++minute) {
    p.requests(1min * minute, 1000);
  }
  auto const evening = p;
  EXPECT_EQ(p.requests(59min + 8h, 1000), 1000) << "the next morning";
  EXPECT_EQ(p.state.seen, 0);

  // The last request was in the minute that begins at 59: quiet are those from 60 on.
  auto kept = evening;
  kept.request(75min);
  EXPECT_EQ(kept.state.seen, 75);
  auto forgotten = evening;
  forgotten.request(76min);
  EXPECT_EQ(forgotten.state.seen, 0);
  EXPECT_EQ(expires(evening.settings, evening.state), at(76min));
}

TEST(ratelimit_pattern, lets_a_client_come_back_from_every_pause_that_is_not_forgotten) {
  for (int quiet = 0; quiet <= 60; ++quiet) {
    watched_partition p{};
    for (int minute = 0; minute < 60; ++minute) {
      p.requests(1min * minute, 1000);
    }
    EXPECT_EQ(p.requests(1min * (60 + quiet), 1000), 1000) << quiet;
  }
}

TEST(ratelimit_pattern, says_when_a_state_is_like_a_new_one) {
  EXPECT_EQ(expires(pattern_settings{}, pattern_state{}), at(0s));
  std::mt19937_64 random(2);
  for (int run = 0; run < 300; ++run) {
    watched_partition p{{.interval = nanoseconds(1 + random() % 20),
                         .minimum = 2,
                         .factor = 1.5F,
                         .deviations = 1,
                         .intervals_min = 2,
                         .quiet_intervals_max = static_cast<std::uint8_t>(random() % 5),
                         .block = nanoseconds(random() % 50)}};
    nanoseconds t{1000};
    for (auto i = random() % 100; i > 0; --i) {
      t += nanoseconds(random() % 8);
      p.request(t);
    }
    p.request(t);
    auto const end = expires(p.settings, p.state);
    EXPECT_EQ(blocked_for(p.state, end), 0ns);
    EXPECT_EQ(watch(p.settings, p.state, end).next, watch(p.settings, {}, end).next);
    EXPECT_NE(watch(p.settings, p.state, end - 1ns).next, watch(p.settings, {}, end - 1ns).next);
  }
}

/// The counts of all intervals since the past was forgotten; mean and deviation are made again from
/// the first one for each request.
struct slow_pattern {
  pattern_settings settings;
  std::vector<double> past{};
  bool known = false;
  nanoseconds begin{0};  // of the running interval
  double count = 0;
  bool blocked = false;
  nanoseconds block_end{0};

  struct statistics {
    double mean = 0;
    double deviation = 0;
  };
  [[nodiscard]] auto learned() const -> statistics {
    statistics s;
    for (std::size_t i = 0; i < past.size(); ++i) {
      double const w = i == 0 ? 1 : static_cast<double>(settings.weight);
      double const distance = i == 0 ? past[i] / 2 : std::abs(past[i] - s.mean);
      s.deviation = (1 - w) * s.deviation + w * distance;
      s.mean = (1 - w) * s.mean + w * past[i];
    }
    return s;
  }

  /// Counts a request that is not blocked, one interval after the other.
  void count_request(nanoseconds t) {
    if (blocked) {
      begin = block_end;
      count = 0;
      blocked = false;
    }
    int quiet = 0;
    while (known && t >= begin + settings.interval) {
      quiet += count == 0 ? 1 : 0;
      past.push_back(count);
      count = 0;
      begin += settings.interval;
      known = quiet <= settings.quiet_intervals_max;
    }
    if (!known) {
      past.clear();
      begin = t;
      known = true;
    }
    ++count;
  }

  /// By how much the running interval exceeds the highest bound, as a part of it; nothing before it
  /// may be judged.
  [[nodiscard]] auto excess() const -> std::optional<double> {
    if (past.size() < settings.intervals_min) {
      return std::nullopt;
    }
    auto const s = learned();
    auto const bound = std::max({static_cast<double>(settings.minimum),
                                 static_cast<double>(settings.factor) * s.mean,
                                 s.mean + static_cast<double>(settings.deviations) * s.deviation});
    return (count - bound) / bound;
  }
};

TEST(ratelimit_pattern, agrees_with_a_list_of_all_intervals) {
  std::mt19937_64 random(9);
  int breaks = 0;
  for (int run = 0; run < 200; ++run) {
    pattern_settings const settings{.interval = nanoseconds(10 + random() % 20),
                                    .minimum = static_cast<std::uint32_t>(1 + random() % 10),
                                    .factor = 1 + static_cast<float>(random() % 30) / 10,
                                    .deviations = static_cast<float>(random() % 40) / 10,
                                    .weight = static_cast<float>(1 + random() % 64) / 64,
                                    .intervals_min = static_cast<std::uint16_t>(random() % 10),
                                    .quiet_intervals_max = static_cast<std::uint8_t>(random() % 20),
                                    .block = nanoseconds(random() % 100)};
    watched_partition p{settings};
    slow_pattern model{settings};
    nanoseconds t{0};
    for (int i = 0; i < 500; ++i) {
      auto const kind = random() % 60;
      t += nanoseconds(kind == 0 ? random() % 1000 : kind < 10 ? random() % 40 : random() % 4);
      t -= nanoseconds(kind == 59 ? random() % 30 : 0);
      auto const verdict = p.request(t);
      if (model.blocked && t < model.block_end) {
        ASSERT_TRUE(verdict.blocked && !verdict.breaks);
        continue;
      }
      model.count_request(t);
      auto const excess = model.excess();
      if (!excess) {
        ASSERT_FALSE(verdict.blocked);
      } else if (std::abs(*excess) > 1e-4) {  // else rounding decides
        ASSERT_EQ(verdict.breaks, *excess > 0) << "run " << run << ", request " << i;
      }
      if (verdict.breaks) {
        ++breaks;
        model.past.push_back(model.count);
        model.blocked = true;
        model.block_end = t + settings.block;
      } else {
        ASSERT_EQ(p.state.count, model.count);
      }
      ASSERT_EQ(p.state.seen, model.past.size());
      auto const learned = model.learned();
      ASSERT_NEAR(static_cast<double>(p.state.mean), learned.mean, 1e-4 * (1 + learned.mean));
      ASSERT_NEAR(static_cast<double>(p.state.deviation), learned.deviation,
                  1e-4 * (1 + learned.mean));
    }
  }
  EXPECT_GT(breaks, 500);
}

TEST(ratelimit_pattern, stays_sane_with_a_hostile_clock) {
  std::mt19937_64 random(4);
  std::vector<instant> const moments = {instant::min(), instant::min() + 1ns, at(-1min),     at(0s),
                                        at(1min),       instant::max() - 1ns, instant::max()};
  for (auto interval : {nanoseconds::min(), 0ns, 1ns, nanoseconds(1min), nanoseconds::max()}) {
    for (auto block : {nanoseconds::min(), 0ns, nanoseconds(1min), nanoseconds::max()}) {
      pattern_settings const settings{
          .interval = interval, .minimum = 1, .intervals_min = 0, .block = block};
      pattern_state state;
      for (int i = 0; i < 1000; ++i) {
        auto const now = moments[random() % moments.size()];
        state = watch(settings, state, now).next;
        ASSERT_GE(blocked_for(state, now), 0ns);
        ASSERT_TRUE(std::isfinite(state.mean) && std::isfinite(state.deviation));
        static_cast<void>(expires(settings, state));
      }
    }
  }
}

TEST(ratelimit_pattern, counts_within_its_interval_when_the_clock_steps_back) {
  watched_partition p{};
  p.request(100min);
  p.request(10min);
  p.request(100min + 59s);
  EXPECT_EQ(p.state.count, 3U);
  EXPECT_EQ(p.state.seen, 0);
}

TEST(ratelimit_pattern, keeps_counters_that_are_full) {
  constexpr auto full = std::numeric_limits<std::uint32_t>::max();
  pattern_settings const settings{.minimum = full};
  pattern_state state{.count = full, .seen = std::numeric_limits<std::uint16_t>::max()};
  state = watch(settings, state, at(1s)).next;
  EXPECT_EQ(state.count, full);
  state = watch(settings, state, at(1min)).next;
  EXPECT_EQ(state.count, 1U);
  EXPECT_EQ(state.seen, std::numeric_limits<std::uint16_t>::max());
  EXPECT_GT(state.mean, 1e8F);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::ratelimit
