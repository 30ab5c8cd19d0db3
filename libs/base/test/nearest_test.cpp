// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/nearest.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace tidegate {
namespace {

TEST(nearest, finds_the_word_that_was_meant) {
  constexpr std::array<std::string_view, 4> words = {"serve", "check", "schema", "--upstream"};
  struct row {
    std::string_view text;
    std::string_view meant;
  };
  for (auto const& [text, meant] : {
           row{"serv", "serve"},             // one is missing
           row{"sserve", "serve"},           // one is too many
           row{"chekc", "check"},            // two stand in the wrong order
           row{"--upstrem", "--upstream"},   //
           row{"--up-stram", "--upstream"},  //
           row{"check", "check"},            //
           row{"frobnicate", ""},            // nothing is near
           row{"x", ""},                     // half of a letter cannot be wrong
           row{"", ""},
       }) {
    EXPECT_EQ(nearest(text, words), meant) << text;
  }
  EXPECT_EQ(nearest("serve", {}), "");
}

TEST(nearest, takes_the_first_of_two_that_are_equally_near) {
  constexpr std::array<std::string_view, 2> words = {"cost", "cast"};
  EXPECT_EQ(nearest("cst", words), "cost");
}

TEST(nearest, looks_at_no_long_words) {
  auto const longest = std::string(64, 'a');
  auto const longer = std::string(65, 'a');
  std::array<std::string_view, 2> const words = {longer, longest};
  EXPECT_EQ(nearest(longest, words), longest);
  EXPECT_EQ(nearest(longer, words), "");
}

}  // namespace
}  // namespace tidegate
