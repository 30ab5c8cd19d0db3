// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/case_fold.hpp>

#include <gtest/gtest.h>

namespace tidegate::scim {
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
       }) {
    EXPECT_EQ(case_fold(text), folded);
    EXPECT_EQ(case_fold(folded), folded);
  }
}

TEST(scim_case_fold, compares_names_by_ascii) {
  EXPECT_TRUE(equal_names("userName", "USERNAME"));
  EXPECT_FALSE(equal_names("userName", "userNam"));
  EXPECT_FALSE(equal_names("\u00dc", "\u00fc"));
  EXPECT_EQ(fold_name("urn:X:User"), "urn:x:user");
}

}  // namespace
}  // namespace tidegate::scim
