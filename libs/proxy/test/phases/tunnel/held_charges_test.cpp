// SPDX-License-Identifier: Apache-2.0
#include "phases/tunnel/held_charges.hpp"

#include "phases/exchange_fixture.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tidegate::gateway {
namespace {

/// A route with one policy, and a charge of it for the partition "p".
class one_charge {
 public:
  explicit one_charge(std::string const& policy)
      : in_("policies: {p: {" + policy +
            "}}\nroutes: [{match: {path: /**}, service: echo, limits: [p]}]\n"),
        limit_(in_.on->current->active->routes.front().limits.front()) {
    held_.partitions = "p";
  }
  /// False when the quota is gone.
  [[nodiscard]] auto spend(std::int64_t cost) -> bool {
    made_charge made{.limit = &limit_,
                     .charge = {&limit_.policy->policy, limit_.id, held_.partitions, cost},
                     .admitted_at = in_.loop->now()};
    bool const admitted = in_.table.spend({&made.charge, 1}, in_.loop->now(), {&made.result, 1});
    held_.charges = {made};
    return admitted;
  }
  void settle(std::uint64_t octets) { held_.settle({in_.table, nullptr}, octets, in_.loop->now()); }

 private:
  exchange_fixture in_;
  gateway::limit const& limit_;
  held_charges held_;
};

TEST(proxy_held_charges, keep_a_place_until_the_tunnel_ends) {
  one_charge charge("quota: 1, unit: concurrent-requests");
  ASSERT_TRUE(charge.spend(1));
  charge.settle(123);
  EXPECT_TRUE(charge.spend(1));
  EXPECT_FALSE(charge.spend(1));
}

TEST(proxy_held_charges, take_the_octets_that_passed) {
  one_charge charge("quota: 1KiB, window: 1h, unit: content-bytes");
  ASSERT_TRUE(charge.spend(0));
  charge.settle(1000);
  EXPECT_TRUE(charge.spend(24));
  EXPECT_FALSE(charge.spend(1));
}

}  // namespace
}  // namespace tidegate::gateway
