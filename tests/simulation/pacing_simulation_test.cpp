// SPDX-License-Identifier: Apache-2.0
#include "pacing_simulation.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace tidegate::simulation {
namespace {

using ratelimit::algorithm;
using namespace std::chrono_literals;

class pacing_simulation : public testing::TestWithParam<algorithm> {};

TEST_P(pacing_simulation, uses_98_percent_of_a_quota_that_a_thousand_clients_share) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    auto const outcome = run({.algorithm = GetParam(), .seed = seed});
    EXPECT_GE(outcome.used, 0.98);
    EXPECT_LE(outcome.used, 1.0);
    EXPECT_LT(outcome.refused_share, 0.01);
    EXPECT_GT(outcome.fewest, 0) << "no client is left out";
  }
}

TEST_P(pacing_simulation, does_so_when_the_policy_is_not_told) {
  auto const outcome = run({.algorithm = GetParam(), .with_policy_field = false});
  EXPECT_GE(outcome.used, 0.98);
  EXPECT_LT(outcome.refused_share, 0.01);
}

TEST_P(pacing_simulation, saves_what_clients_that_only_back_off_are_refused) {
  auto const paced = run({.algorithm = GetParam()});
  auto const other = run({.algorithm = GetParam(), .clients_are = behaviour::backs_off});
  EXPECT_GT(other.refused_share, 0.2);
  EXPECT_LT(paced.refused * 50, other.refused);
}

TEST_P(pacing_simulation, uses_the_quota_of_a_single_client_and_is_never_refused) {
  for (auto const quota : {20, 100, 400}) {
    auto const outcome = run({.algorithm = GetParam(), .clients = 1, .quota = quota});
    EXPECT_GE(outcome.used, 0.9) << quota;
    EXPECT_EQ(outcome.refused, 0) << quota;
  }
}

TEST_P(pacing_simulation, uses_it_with_many_workers_that_share_a_pacer) {
  for (auto const strategy :
       {ratelimit::pacing_strategy::spread, ratelimit::pacing_strategy::burst}) {
    auto const outcome = run({.algorithm = GetParam(),
                              .clients = 1,
                              .workers = 50,
                              .quota = 6000,
                              .strategy = strategy});
    EXPECT_GE(outcome.used, 0.99);
    EXPECT_LT(outcome.refused_share, 0.001);
  }
}

/// Of quotas that one client can use up over a way of 20 ms, and with windows in which whole
/// seconds say enough.
struct spent_case {
  std::int64_t quota;
  std::chrono::seconds window;
};

auto spent_cases() -> std::vector<spent_case> {
  std::vector<spent_case> out;
  for (auto const window : {5s, 10s, 20s, 60s, 600s, 3600s}) {
    for (std::int64_t const quota : {1, 2, 3, 5, 8, 20, 100, 400, 1000}) {
      if (quota / window.count() <= 20) {
        out.push_back({quota, window});
      }
    }
  }
  return out;
}

TEST_P(pacing_simulation, uses_90_percent_from_the_first_reset_on_when_it_starts_on_a_spent_quota) {
  for (auto const& [quota, window] : spent_cases()) {
    for (int quarter = 0; quarter < 4; ++quarter) {
      auto const outcome = run({.algorithm = GetParam(),
                                .clients = 1,
                                .quota = quota,
                                .window = window,
                                .length = 20 * window,
                                .latency_max = 20ms,
                                .start_within = 0ms,
                                .spent_at = -quarter * std::chrono::milliseconds(window) / 4,
                                .seed = static_cast<std::uint64_t>(quarter)});
      EXPECT_GE(outcome.used_after_reset, 0.9)
          << quota << " in " << window.count() << " s, spent " << quarter << " quarters before";
    }
  }
}

TEST_P(pacing_simulation, uses_90_percent_from_the_next_reset_on_when_it_is_spent_by_others_once) {
  for (auto const& [quota, window] : spent_cases()) {
    for (int quarter = 0; quarter < 4; ++quarter) {
      auto const outcome = run({.algorithm = GetParam(),
                                .clients = 1,
                                .quota = quota,
                                .window = window,
                                .length = 20 * window,
                                .latency_max = 20ms,
                                .start_within = 0ms,
                                .spent_at = (4 + quarter) * std::chrono::milliseconds(window) / 4,
                                .seed = static_cast<std::uint64_t>(quarter)});
      EXPECT_GE(outcome.used_after_reset, 0.9)
          << quota << " in " << window.count() << " s, spent " << quarter << " quarters after";
    }
  }
}

TEST_P(pacing_simulation,
       uses_half_of_it_where_a_window_is_hardly_longer_than_the_second_that_t_counts) {
  for (auto const window : {1s, 2s}) {
    for (std::int64_t const quota : {1, 2, 3, 5, 8, 20}) {
      auto const outcome = run({.algorithm = GetParam(),
                                .clients = 1,
                                .quota = quota,
                                .window = window,
                                .length = 20 * window,
                                .latency_max = 20ms,
                                .start_within = 0ms,
                                .spent_at = 0ms});
      EXPECT_GE(outcome.used_after_reset, 0.5) << quota << " in " << window.count() << " s";
    }
  }
}

TEST_P(pacing_simulation, uses_a_spent_quota_with_several_clients) {
  for (auto const clients : {2U, 10U, 100U, 1000U}) {
    auto const outcome = run({.algorithm = GetParam(),
                              .clients = clients,
                              .quota = 10 * static_cast<std::int64_t>(clients),
                              .spent_at = -20s});
    EXPECT_GE(outcome.used_after_reset, 0.9) << clients;
    EXPECT_LT(outcome.refused_share, 0.1) << clients;
    EXPECT_GT(outcome.fewest, 0) << clients;
  }
}

TEST_P(pacing_simulation, uses_a_spent_quota_with_many_workers_that_share_a_pacer) {
  for (auto const workers : {20U, 50U}) {
    auto const outcome = run({.algorithm = GetParam(),
                              .clients = 1,
                              .workers = workers,
                              .quota = 6000,
                              .length = 300s,
                              .start_within = 0ms,
                              .spent_at = -20s});
    EXPECT_GE(outcome.used_after_reset, 0.9) << workers;
    EXPECT_LT(outcome.refused_share, 0.01) << workers;
  }
}

TEST(pacing_simulation_of_small_bursts,
     uses_90_percent_where_a_server_holds_far_less_than_its_quota_at_a_time) {
  struct small_burst {
    std::int64_t quota;
    std::chrono::seconds window;
    std::int64_t burst;
  };
  for (auto const& [quota, window, burst] : {
           small_burst{40, 10s, 2},
           small_burst{8, 20s, 1},
           small_burst{8, 20s, 2},
           small_burst{3, 10s, 1},
           small_burst{100, 20s, 1},
           small_burst{100, 20s, 5},
           small_burst{60, 60s, 5},
           small_burst{1000, 60s, 3},
       }) {
    for (auto const spent_at : {std::optional<std::chrono::milliseconds>(),
                                std::optional(-std::chrono::milliseconds(window) / 4),
                                std::optional(std::chrono::milliseconds(window) * 5 / 4)}) {
      auto const outcome = run({.algorithm = algorithm::gcra,
                                .clients = 1,
                                .quota = quota,
                                .burst = burst,
                                .window = window,
                                .length = 20 * window,
                                .latency_max = 20ms,
                                .start_within = 0ms,
                                .spent_at = spent_at});
      auto const what = std::to_string(quota) + " in " + std::to_string(window.count()) +
                        " s, at most " + std::to_string(burst) + " at once";
      auto const all = static_cast<double>(20 * quota);
      EXPECT_GE(static_cast<double>(outcome.admitted), 0.9 * all) << what;
      EXPECT_LE(outcome.refused, spent_at ? 1 : 0) << what;
      if (spent_at) {
        EXPECT_GE(outcome.used_after_reset, 0.9) << what;
      }
    }
  }
}

TEST(pacing_simulation_of_small_bursts, is_refused_no_more_for_that_where_many_share_it) {
  auto const outcome = run({.algorithm = algorithm::gcra,
                            .clients = 200,
                            .quota = 10'000,
                            .burst = 100,
                            .window = 60s,
                            .length = 1200s});
  EXPECT_GE(outcome.used, 0.9);
  EXPECT_LT(outcome.refused_share, 0.01);
  EXPECT_GT(outcome.fewest, 0);
}

TEST_P(pacing_simulation, is_the_same_every_time) {
  auto const settings = pacing_run{.algorithm = GetParam(), .clients = 50, .quota = 500};
  auto const once = run(settings);
  auto const again = run(settings);
  EXPECT_EQ(once.admitted, again.admitted);
  EXPECT_EQ(once.refused, again.refused);
}

INSTANTIATE_TEST_SUITE_P(algorithms, pacing_simulation,
                         testing::Values(algorithm::fixed, algorithm::sliding, algorithm::gcra),
                         [](auto const& each) -> std::string {
                           switch (each.param) {
                             case algorithm::fixed: return "fixed";
                             case algorithm::sliding: return "sliding";
                             case algorithm::gcra: return "gcra";
                             case algorithm::log: break;
                           }
                           return "log";
                         });

}  // namespace
}  // namespace tidegate::simulation
