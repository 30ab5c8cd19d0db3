// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/base64.hpp>

#include <gtest/gtest.h>

#include <utility>

namespace tidegate {
namespace {

// RFC 4648, section 10, without the padding.
TEST(base64, has_the_published_vectors) {
  for (auto const& [octets, text] : {std::pair<std::string_view, std::string_view>{"", ""},
                                     {"f", "Zg"},
                                     {"fo", "Zm8"},
                                     {"foo", "Zm9v"},
                                     {"foob", "Zm9vYg"},
                                     {"fooba", "Zm9vYmE"},
                                     {"foobar", "Zm9vYmFy"}}) {
    EXPECT_EQ(base64::encoded_size(octets.size()), text.size());
    std::string out(text.size(), '\0');
    EXPECT_EQ(base64::encode<base64::standard>(octets, out.data()), out.data() + out.size());
    EXPECT_EQ(out, text);
    std::string back(octets.size(), '\0');
    EXPECT_EQ(base64::decode<base64::standard>(text, back.data()), octets.size());
    EXPECT_EQ(back, octets);
    EXPECT_EQ(to_base64url(octets), text);
    EXPECT_EQ(from_base64url(text), octets);
  }
}

TEST(base64, has_two_digits_of_its_own_for_urls) {
  EXPECT_EQ(to_base64url("\xfb\xff"), "-_8");
  EXPECT_EQ(from_base64url("-_8"), "\xfb\xff");
  EXPECT_EQ(from_base64url("+/8"), std::nullopt);
}

TEST(base64, refuses_every_other_spelling_of_base64url) {
  for (auto const* const text : {"A", "AAAAA", "Zh", "Zm9", "Zg==", "Zg=", "Z g", "Zm9v\n"}) {
    EXPECT_EQ(from_base64url(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tidegate
