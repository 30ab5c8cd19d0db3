// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/utf8.hpp>

#include <gtest/gtest.h>

namespace tidegate::TIDEGATE_ABI::utf8 {
namespace {

using namespace std::string_view_literals;

TEST(base_utf8, reads_every_character_that_it_writes) {
  for (std::uint32_t c = 0; c < 0x110000; ++c) {
    std::string out;
    append(out, c);
    bool const is_surrogate = c >= 0xd800 && c < 0xe000;
    ASSERT_EQ(character_octets(out), is_surrogate ? 0 : out.size()) << c;
    ASSERT_EQ(character_octets(out + "x"), is_surrogate ? 0 : out.size()) << c;
    ASSERT_EQ(character_octets(out.substr(0, out.size() - 1)), 0U) << c;
  }
}

TEST(base_utf8, says_how_many_octets_one_replacement_character_stands_for) {
  struct row {
    std::string_view text;
    std::size_t octets;
  };
  for (auto const& [text, octets] : {
           row{"\x80"sv, 1},
           {"\xc0\xaf"sv, 1},
           {"\xc3"sv, 1},
           {"\xe2\x82"sv, 2},
           {"\xe2\x82x"sv, 2},
           {"\xed\xa0\x80"sv, 1},
           {"\xf0\x9f\x8c"sv, 3},
           {"\xf4\x90\x80\x80"sv, 1},
           {"\xff"sv, 1},
       }) {
    auto const first = first_sequence(text);
    EXPECT_FALSE(first.well_formed) << text;
    EXPECT_EQ(first.octets, octets) << text;
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::utf8
