// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_directory/statement_table.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace tidegate::store_directory {
namespace {

TEST(store_directory_statement_table, has_texts_by_the_numbers_of_their_names) {
  enum class name : std::uint8_t { begin, end };
  constexpr auto texts = statement_table<name>({{name::begin, "BEGIN"}, {name::end, "COMMIT"}});
  EXPECT_EQ(texts[0], "BEGIN");
  EXPECT_EQ(texts[1], "COMMIT");
}

}  // namespace
}  // namespace tidegate::store_directory
