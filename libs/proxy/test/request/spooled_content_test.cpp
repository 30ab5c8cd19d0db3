// SPDX-License-Identifier: Apache-2.0
#include "request/spooled_content.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace tidegate::gateway {
namespace {

constexpr auto memory_max = spooled_content::memory_octets_max;

/// Octets of which each tells where it is.
[[nodiscard]] auto pattern(std::size_t octets) -> std::string {
  std::string out(octets, '\0');
  for (std::size_t i = 0; i < octets; ++i) {
    out[i] = static_cast<char>('a' + (i / 7 + i / 1021) % 26);
  }
  return out;
}

class proxy_spooled_content : public testing::Test {
 protected:
  [[nodiscard]] auto part(std::uint64_t at, std::size_t octets) const -> std::string {
    std::string out;
    EXPECT_TRUE(content_.read(at, octets, out));
    return out;
  }

  std::string folder_ = testing::TempDir();
  spooled_content content_;
};

TEST_F(proxy_spooled_content, is_empty_at_first) {
  EXPECT_EQ(content_.size(), 0U);
  EXPECT_EQ(content_.in_memory(), "");
  EXPECT_EQ(part(0, 10), "");
}

TEST_F(proxy_spooled_content, stays_in_memory_while_it_is_short) {
  ASSERT_TRUE(content_.append("abc", "/a folder that is not there"));
  ASSERT_TRUE(content_.append("def", "/a folder that is not there"));
  EXPECT_EQ(content_.in_memory(), "abcdef");
  EXPECT_EQ(content_.memory_octets(), 6U);
  EXPECT_EQ(part(2, 3), "cde");
  EXPECT_EQ(part(4, 100), "ef") << "there is no more";
  EXPECT_EQ(part(100, 100), "") << "nor behind the end";
}

TEST_F(proxy_spooled_content, goes_on_in_a_file) {
  auto const all = pattern(3 * memory_max + 17);
  struct row {
    std::string_view name;
    std::size_t piece;
  };
  for (auto const& each : {row{"at once", all.size()}, row{"in large pieces", memory_max - 1},
                           row{"in small ones", 4099}}) {
    spooled_content content;
    for (std::size_t at = 0; at < all.size(); at += each.piece) {
      ASSERT_TRUE(content.append(std::string_view(all).substr(at, each.piece), folder_))
          << each.name;
    }
    EXPECT_EQ(content.size(), all.size()) << each.name;
    EXPECT_EQ(content.memory_octets(), memory_max) << each.name;
    EXPECT_EQ(content.in_memory(), std::nullopt) << each.name;
    std::string read;
    ASSERT_TRUE(content.read(0, all.size(), read)) << each.name;
    EXPECT_TRUE(read == all) << each.name;
  }
}

TEST_F(proxy_spooled_content, is_read_from_any_place) {
  auto const all = pattern(2 * memory_max);
  ASSERT_TRUE(content_.append(all, folder_));
  for (std::size_t const at : {std::size_t{0}, memory_max - 5, memory_max - 1, memory_max,
                               memory_max + 1, 2 * memory_max - 1, 2 * memory_max}) {
    EXPECT_EQ(part(at, 10), all.substr(at, 10)) << at;
  }
}

TEST_F(proxy_spooled_content, appends_what_is_read) {
  ASSERT_TRUE(content_.append("abc", folder_));
  std::string out = "x";
  ASSERT_TRUE(content_.read(1, 2, out));
  EXPECT_EQ(out, "xbc");
}

TEST_F(proxy_spooled_content, just_fits_into_memory) {
  auto const all = pattern(memory_max);
  ASSERT_TRUE(content_.append(all, "/a folder that is not there"));
  EXPECT_EQ(content_.in_memory(), all);
  EXPECT_FALSE(content_.append("x", "/a folder that is not there")) << "the disk does not take it";
}

}  // namespace
}  // namespace tidegate::gateway
