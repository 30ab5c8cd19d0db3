// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/ascii.hpp>

#include <gtest/gtest.h>

namespace tidegate {
namespace {

TEST(ascii, knows_its_letters_and_digits_and_no_others) {
  for (int octet = 0; octet < 256; ++octet) {
    auto const c = static_cast<char>(octet);
    bool const upper = octet >= 'A' && octet <= 'Z';
    bool const lower = octet >= 'a' && octet <= 'z';
    bool const digit = octet >= '0' && octet <= '9';
    EXPECT_EQ(is_upper(c), upper) << octet;
    EXPECT_EQ(is_letter(c), upper || lower) << octet;
    EXPECT_EQ(is_digit(c), digit) << octet;
    EXPECT_EQ(is_letter_or_digit(c), upper || lower || digit) << octet;
    EXPECT_EQ(is_blank(c), octet == ' ' || octet == '\t') << octet;
    EXPECT_EQ(to_lower(c), upper ? static_cast<char>(octet + 32) : c) << octet;
  }
  EXPECT_EQ(lower_case("Ab-9_\xc4Z"), "ab-9_\xc4z");
}

TEST(ascii, compares_texts_without_the_case_of_letters) {
  EXPECT_TRUE(equal_ignoring_case("", ""));
  EXPECT_TRUE(equal_ignoring_case("Content-TYPE", "cONTENT-type"));
  EXPECT_FALSE(equal_ignoring_case("Content-Type", "Content-Typ"));
  EXPECT_FALSE(equal_ignoring_case("aB", "aC"));
  EXPECT_FALSE(equal_ignoring_case("@", "`"));  // differ in the bit of case, but are not letters
  EXPECT_FALSE(equal_ignoring_case("x[", "x{"));
  EXPECT_FALSE(equal_ignoring_case("\xc4", "\xe4"));
}

TEST(ascii, trims_spaces_and_tabs_around_a_text) {
  EXPECT_EQ(trimmed(" \t a b\t "), "a b");
  EXPECT_EQ(trimmed(" \t "), "");
  EXPECT_EQ(trimmed(""), "");
  EXPECT_EQ(trimmed("\ra\n"), "\ra\n");
}

TEST(ascii, takes_what_stands_before_a_separator) {
  std::string_view text = "a,,b";
  EXPECT_EQ(take_until(text, ','), "a");
  EXPECT_EQ(take_until(text, ','), "");
  EXPECT_EQ(take_until(text, ','), "b");
  EXPECT_EQ(text, "");
  EXPECT_EQ(take_until(text, ','), "");
}

}  // namespace
}  // namespace tidegate
