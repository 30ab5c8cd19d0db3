// SPDX-License-Identifier: Apache-2.0
#include "history_sampler.hpp"

#include "control_fixture.hpp"

#include <chrono>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;

TEST(admin_history_sampler, adds_what_the_data_plane_counts) {
  control_fixture with(
      "policies: {p: {quota: 1, window: 1h}}\n"
      "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n");
  history_sampler sampler(with.seen());
  auto const begun = with.loop->now();
  sampler.sample(begun);
  EXPECT_EQ(sampler.history().size(), 0U);
  (void)with.get("/");
  (void)with.get("/");
  sampler.sample(begun + 5s);
  ASSERT_EQ(sampler.history().size(), 1U);
  EXPECT_EQ(sampler.history().at(0).at, begun + 5s);
  EXPECT_EQ(sampler.history().policy_name(0), "p");
  EXPECT_EQ(sampler.history().at(0).policies[0].admitted, 1U);
  EXPECT_EQ(sampler.history().at(0).policies[0].refused, 1U);
}

TEST(admin_history_sampler, begins_by_itself) {
  control_fixture with("routes: [{match: {path: /**}, service: echo}]\n");
  history_sampler sampler(with.seen());
  turn_until(*with.loop, [&] { return sampler.has_begun(); });
  EXPECT_EQ(sampler.history().size(), 0U);
}

}  // namespace
}  // namespace tidegate::gateway
