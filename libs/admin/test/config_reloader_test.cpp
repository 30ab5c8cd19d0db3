// SPDX-License-Identifier: Apache-2.0
#include "api/api_config.hpp"

#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;

TEST(admin_config_reloader, runs_one_reload_after_the_other_and_bounds_how_many_wait) {
  auto made = engine::loop::make();
  auto const loop = *std::move(made);
  std::latch begun(1);
  std::latch may_end(1);
  bool is_first = true;
  std::vector<reload_mode> answered;
  {
    config_reloader reloader([&](reload_mode /*what*/) -> reload_outcome {
      if (std::exchange(is_first, false)) {
        begun.count_down();
        may_end.wait();
      }
      return std::vector<config_change>{};
    });
    auto const ask = [&](reload_mode what) {
      return reloader.ask(*loop, what, [&](reload_mode done, reload_outcome const& outcome) {
        EXPECT_TRUE(outcome);
        answered.push_back(done);
      });
    };
    EXPECT_TRUE(ask(reload_mode::apply));
    begun.wait();
    for (int i = 0; i < 8; ++i) {
      EXPECT_TRUE(ask(reload_mode::preview));
    }
    EXPECT_FALSE(ask(reload_mode::preview));
    may_end.count_down();
    for (int i = 0; answered.size() < 9 && i < 1000; ++i) {
      loop->turn(100ms);
    }
    EXPECT_EQ(answered.size(), 9U);
    EXPECT_EQ(answered.front(), reload_mode::apply);
  }
}

TEST(admin_config_reloader, forgets_who_waits_when_it_ends) {
  auto made = engine::loop::make();
  auto const loop = *std::move(made);
  auto const kept = std::make_shared<int>();
  std::latch begun(1);
  {
    config_reloader reloader([&](reload_mode /*what*/) -> reload_outcome {
      begun.count_down();
      return failure(reload_refusal{{}, "as the test says"});
    });
    EXPECT_TRUE(
        reloader.ask(*loop, reload_mode::preview, [kept](reload_mode, reload_outcome const&) {}));
    begun.wait();
  }
  loop->turn(0ms);  // what was answered is in the loop
  EXPECT_EQ(kept.use_count(), 1);
}

}  // namespace
}  // namespace tidegate::gateway
