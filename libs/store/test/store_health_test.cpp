// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store/store_health.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::store {
namespace {

TEST(gateway_store_health, says_once_that_a_store_fails_and_not_again_with_each_request) {
  store_health health({"it fails ({})", "it works"});
  std::vector<std::string> said;
  health.use([&](bool, std::string_view line) { said.emplace_back(line); });
  EXPECT_FALSE(health.is_failing());
  EXPECT_FALSE(health.failing_since());
  health.note(nullptr);
  store_error const error{store::store_fault::full, "the disk is full"};
  for (int i = 0; i < 3; ++i) {
    health.note(&error);
  }
  EXPECT_TRUE(health.is_failing());
  EXPECT_TRUE(health.failing_since());
  // A moment later one of several servers answers.
  health.note(nullptr);
  EXPECT_TRUE(health.is_failing());
  EXPECT_EQ(said, std::vector<std::string>{"it fails (the disk is full)"});
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::store
