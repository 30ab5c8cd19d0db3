// SPDX-License-Identifier: Apache-2.0
#include "pacing_simulation.hpp"

#include <gtest/gtest.h>

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
    EXPECT_GT(outcome.fewest, 0) << "nobody is left out";
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
                             case algorithm::gcra: break;
                           }
                           return "gcra";
                         });

}  // namespace
}  // namespace tidegate::simulation
