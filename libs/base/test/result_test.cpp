// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/result.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace tidegate {
namespace {

struct odd {
  int value;
  auto operator==(odd const&) const -> bool = default;
};

auto half(int n) -> result<int, odd> {
  if (n % 2 != 0) {
    return failure(odd{n});
  }
  return n / 2;
}

auto quarter(int n) -> result<std::string, odd> {
  TIDEGATE_TRY(auto h, half(n));
  TIDEGATE_TRY(int const q, half(h));
  return std::to_string(q);
}

auto checked(int n) -> result<void, odd> {
  TIDEGATE_TRY_VOID(half(n));
  return {};
}

auto owned(bool good) -> result<std::unique_ptr<int>, odd> {
  if (!good) {
    return failure(odd{1});
  }
  return std::make_unique<int>(7);
}

auto moved(bool good) -> result<int, odd> {
  TIDEGATE_TRY(auto p, owned(good));
  return *p;
}

TEST(result, try_binds_the_value_when_there_is_one) {
  EXPECT_EQ(quarter(12), "3");
}

TEST(result, try_returns_the_first_error) {
  EXPECT_EQ(quarter(7).error(), odd{7});
  EXPECT_EQ(quarter(6).error(), odd{3});
}

TEST(result, try_void_passes_an_error_on) {
  EXPECT_TRUE(checked(2).has_value());
  EXPECT_EQ(checked(3).error(), odd{3});
}

TEST(result, try_moves_what_cannot_be_copied) {
  EXPECT_EQ(moved(true), 7);
  EXPECT_EQ(moved(false).error(), odd{1});
}

}  // namespace
}  // namespace tidegate
