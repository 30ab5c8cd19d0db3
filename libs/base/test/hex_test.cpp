// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/hex.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace tidegate {
namespace {

TEST(hex, knows_the_values_of_digits_in_either_case) {
  constexpr std::string_view lower = "0123456789abcdef";
  constexpr std::string_view upper = "0123456789ABCDEF";
  for (int octet = 0; octet < 256; ++octet) {
    auto const c = static_cast<char>(octet);
    auto const at = std::min(lower.find(c), upper.find(c));
    EXPECT_EQ(hex_value(c), at == std::string_view::npos ? -1 : static_cast<int>(at)) << octet;
  }
}

TEST(hex, writes_two_lower_case_digits_for_an_octet) {
  constexpr std::string_view octets("\x00\x09\xaf\xff", 4);
  EXPECT_EQ(to_hex(std::as_bytes(std::span(octets))), "0009afff");
  std::string out = "%";
  append_hex(out, '\xe4');
  EXPECT_EQ(out, "%e4");
}

}  // namespace
}  // namespace tidegate
