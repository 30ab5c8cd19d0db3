// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/number.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace tidegate {
namespace {

TEST(parse_number, takes_a_text_that_is_a_number_as_a_whole) {
  EXPECT_EQ(parse_number<std::uint16_t>("65535"), 65'535);
  EXPECT_EQ(parse_number<std::int64_t>("-7"), -7);
  EXPECT_EQ(parse_number<double>("1.5"), 1.5);
}

TEST(parse_number, refuses_anything_else) {
  for (auto const* const text : {"", " 1", "1 ", "+1", "1x", "x", "65536", "-1"}) {
    EXPECT_EQ(parse_number<std::uint16_t>(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tidegate
