// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/known_field.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

namespace tidegate::TIDEGATE_ABI::wire {
namespace {

TEST(wire_known_field, finds_every_name_in_any_case) {
  for (std::size_t i = 1; i < known_fields_count; ++i) {
    auto const field = static_cast<known_field>(i);
    std::string name(name_of(field));
    ASSERT_GE(name.size(), 2U);
    EXPECT_EQ(find_known_field(name), field) << name;
    // Longer than it is, so that both ways to compare are taken.
    auto const in_a_buffer = name + ": and more behind it";
    EXPECT_EQ(find_known_field(std::string_view(in_a_buffer).substr(0, name.size())), field)
        << name;
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
    EXPECT_EQ(find_known_field(name), field) << name;
  }
}

TEST(wire_known_field, finds_nothing_when_one_octet_differs) {
  for (std::size_t i = 1; i < known_fields_count; ++i) {
    std::string const name(name_of(static_cast<known_field>(i)));
    for (std::size_t at = 0; at < name.size(); ++at) {
      for (int octet = 0; octet < 256; ++octet) {
        auto other = name;
        other[at] = static_cast<char>(octet);
        if (octet < 128 && std::tolower(octet) == name[at]) {
          continue;
        }
        auto const found = find_known_field(other);
        EXPECT_TRUE(found == known_field::other || name_of(found) == other) << other;
      }
    }
    EXPECT_EQ(find_known_field(name + "x"), known_field::other);
  }
}

TEST(wire_known_field, finds_every_name_as_cgi_reads_it) {
  for (std::size_t i = 1; i < known_fields_count; ++i) {
    auto const field = static_cast<known_field>(i);
    for (auto const* const between : {"-", "_", ".", "__", "-_~"}) {
      std::string name(between);
      for (char const c : name_of(field)) {
        name += c == '-' ? std::string(between) : std::string(1, c);
      }
      EXPECT_EQ(find_known_field_by_any_spelling(name), field) << name;
      EXPECT_EQ(find_known_field_by_any_spelling(name + "_"), field) << name;
      EXPECT_EQ(find_known_field_by_any_spelling(name + "x_x"), known_field::other) << name;
    }
  }
  EXPECT_EQ(find_known_field_by_any_spelling("_"), known_field::other);
  EXPECT_EQ(find_known_field_by_any_spelling("x_" + std::string(300, 'x')), known_field::other);
}

TEST(wire_known_field, knows_no_short_names) {
  EXPECT_EQ(find_known_field(""), known_field::other);
  EXPECT_EQ(find_known_field("x"), known_field::other);
  EXPECT_EQ(find_known_field(std::string(300, 'x')), known_field::other);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::wire
