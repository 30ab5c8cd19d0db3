// SPDX-License-Identifier: Apache-2.0
#include <tidegate/balance/health.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::balance {
namespace {

/// What the checks "+" and "-" make of a server: "u" for up and "d" for down after each.
auto after(std::string_view checks) -> std::string {
  health server;
  std::string out;
  for (auto const check : checks) {
    bool const before = server.is_up();
    bool const changed = server.checked({.rise = 2, .fall = 3}, check == '+');
    EXPECT_EQ(changed, before != server.is_up());
    out += server.is_up() ? 'u' : 'd';
  }
  return out;
}

TEST(balance_health, is_up_before_the_first_check) {
  EXPECT_TRUE(health().is_up());
}

TEST(balance_health, changes_after_so_many_checks_in_a_row) {
  EXPECT_EQ(after("---"), "uud");
  EXPECT_EQ(after("---++"), "uuddu");
  EXPECT_EQ(after("--+--+--+"), "uuuuuuuuu") << "never three in a row";
  EXPECT_EQ(after("---+-+-+-"), "uuddddddd") << "never two in a row";
}

TEST(balance_health, knows_the_statuses_of_its_ranges) {
  std::vector<status_range> const ranges = {{200, 299}, {304, 304}};
  EXPECT_TRUE(includes(ranges, 200));
  EXPECT_TRUE(includes(ranges, 299));
  EXPECT_TRUE(includes(ranges, 304));
  EXPECT_FALSE(includes(ranges, 199));
  EXPECT_FALSE(includes(ranges, 303));
  EXPECT_FALSE(includes({}, 200));
}

}  // namespace
}  // namespace tidegate::balance
