// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/case_fold.hpp>

#include <tidegate/base/ascii.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

TEST(scim_case_fold, makes_texts_that_differ_in_case_only_the_same) {
  struct row {
    std::string_view text;
    std::string_view folded;
  };
  for (auto const& [text, folded] : {
           row{"", ""},
           row{"BJensen@Example.COM", "bjensen@example.com"},
           row{"M\u00dcLLER", "m\u00fcller"},
           row{"\u00d7\u00df", "\u00d7\u00df"},  // a sign, and a letter that would become two
           row{"\u1e9e", "\u00df"},
           row{"\u0100\u0101", "\u0101\u0101"},
           row{"\u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03c2",
               "\u03bf\u03b4\u03c5\u03c3\u03c3\u03b5\u03c5\u03c3"},
           row{"\u0416\u042f", "\u0436\u044f"},
           row{"\U00010400", "\U00010428"},
           row{"\u6771\u4eac", "\u6771\u4eac"},
           row{"A\xff\xc3", "a\xff\xc3"},
           row{"AE\u0301\xccZ", "a\u00e9\xccz"},
       }) {
    EXPECT_EQ(case_fold(text), folded);
    EXPECT_EQ(case_fold(folded), folded);
  }
}

TEST(scim_case_fold, makes_texts_that_differ_in_composition_only_the_same) {
  struct row {
    std::vector<std::string_view> texts;
    std::string_view folded;
  };
  for (auto const& [texts, folded] : {
           row{{"\u00c9t\u00e9", "E\u0301te\u0301"}, "\u00e9t\u00e9"},
           // signs that are letters
           row{{"\u212b", "A\u030a", "\u00c5", "\u00e5"}, "\u00e5"},
           row{{"\u2126", "\u03a9"}, "\u03c9"},
           row{{"\u212a"}, "k"},
           // marks in any order, but for marks of one class
           row{{"q\u0307\u0323", "Q\u0323\u0307"}, "q\u0323\u0307"},
           row{{"\u1e0b\u0323", "\u1e0d\u0307", "D\u0307\u0323"}, "\u1e0d\u0307"},
           row{{"o\u0302\u0301", "\u00f4\u0301", "\u1ed0"}, "\u1ed1"},
           row{{"o\u0301\u0302"}, "\u00f3\u0302"},
           row{{"\u01d5", "U\u0308\u0304"}, "\u01d6"},
           // a mark that becomes a letter
           row{{"\u1fb3", "\u0391\u0345", "\u1fbc"}, "\u03b1\u03b9"},
           row{{"\u03b1\u0345\u0301", "\u1fb4", "\u0386\u0345"}, "\u03ac\u03b9"},
           // a dotted capital I is an i with a dot
           row{{"\u0130", "I\u0307"}, "i\u0307"},
           // Hangul by its rule
           row{{"\ud55c", "\u1112\u1161\u11ab", "\ud558\u11ab"}, "\ud55c"},
           row{{"\ud55c\u11ab"}, "\ud55c\u11ab"},
           row{{"\u1112\u1161\u11a7"}, "\ud558\u11a7"},
           // characters that NFC takes apart for good
           row{{"\u0958", "\u0915\u093c"}, "\u0915\u093c"},
           row{{"\U0002f800"}, "\u4e3d"},
           row{{"\u0344"}, "\u0308\u0301"},
           // letters that compose with letters
           row{{"\u09c7\u09be", "\u09cb"}, "\u09cb"},
           row{{"\u0301e"}, "\u0301e"},
       }) {
    for (auto const text : texts) {
      EXPECT_EQ(case_fold(text), folded) << text;
    }
    EXPECT_EQ(case_fold(folded), folded);
  }
}

TEST(scim_case_fold, folds_each_part_of_a_text_as_it_folds_the_whole) {
  std::string marks;
  for (int i = 0; i < 1000; ++i) {
    marks += i % 2 == 0 ? "\u0301" : "\u0323";
  }
  std::string out = "E";
  append_case_fold(out, "A" + marks + "B\u00c9C");
  auto const folded = case_fold("A" + marks);
  EXPECT_EQ(out, "E" + folded + "b\u00e9c");
  EXPECT_TRUE(folded.starts_with("\u1ea1\u0323\u0323"));
  EXPECT_EQ(case_fold(folded), folded);
}

TEST(scim_case_fold, compares_names_by_ascii) {
  EXPECT_TRUE(equal_ignoring_case("userName", "USERNAME"));
  EXPECT_FALSE(equal_ignoring_case("userName", "userNam"));
  EXPECT_FALSE(equal_ignoring_case("\u00dc", "\u00fc"));
  EXPECT_EQ(lower_case("urn:X:User"), "urn:x:user");
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
