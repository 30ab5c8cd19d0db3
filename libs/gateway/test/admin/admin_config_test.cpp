// SPDX-License-Identifier: Apache-2.0
#include "admin/admin_config.hpp"

#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using errand = config_desk::errand;

TEST(gateway_config_desk, does_one_errand_after_the_other_and_takes_so_many) {
  auto made = engine::loop::make();
  auto const loop = *std::move(made);
  std::latch begun(1);
  std::latch may_end(1);
  bool is_first = true;
  std::vector<errand> answered;
  {
    config_desk desk([&](errand /*what*/) -> reload_outcome {
      if (std::exchange(is_first, false)) {
        begun.count_down();
        may_end.wait();
      }
      return std::vector<config_change>{};
    });
    auto const ask = [&](errand what) {
      return desk.ask(*loop, what, [&](errand done, reload_outcome const& outcome) {
        EXPECT_TRUE(outcome);
        answered.push_back(done);
      });
    };
    EXPECT_TRUE(ask(errand::reload));
    begun.wait();
    for (int i = 0; i < 8; ++i) {
      EXPECT_TRUE(ask(errand::look));
    }
    EXPECT_FALSE(ask(errand::look));
    may_end.count_down();
    for (int i = 0; answered.size() < 9 && i < 1000; ++i) {
      loop->turn(100ms);
    }
    EXPECT_EQ(answered.size(), 9U);
    EXPECT_EQ(answered.front(), errand::reload);
  }
}

TEST(gateway_config_desk, forgets_who_waits_when_it_ends) {
  auto made = engine::loop::make();
  auto const loop = *std::move(made);
  auto const kept = std::make_shared<int>();
  std::latch begun(1);
  {
    config_desk desk([&](errand /*what*/) -> reload_outcome {
      begun.count_down();
      return failure(reload_refusal{{}, "as the test says"});
    });
    EXPECT_TRUE(desk.ask(*loop, errand::look, [kept](errand, reload_outcome const&) {}));
    begun.wait();
  }
  loop->turn(0ms);  // what was answered is in the loop
  EXPECT_EQ(kept.use_count(), 1);
}

}  // namespace
}  // namespace tidegate::gateway
