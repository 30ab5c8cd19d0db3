// SPDX-License-Identifier: Apache-2.0
#include "api/partition_key_cache.hpp"
#include "api/api_quotas.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tidegate::gateway {
namespace {

TEST(admin_partition_key_cache, are_found_by_the_digest_that_clients_can_make) {
  partition_key_cache shown;
  std::string const partition = "header:x-api-key=swordfish\nmethod=GET\n";
  // printf 'header:x-api-key=swordfish\nmethod=GET\n' | sha256sum | head -c 32
  EXPECT_EQ(partition_key_of(partition), "150e641dbfa4728362cba4baad1a7196");
  EXPECT_EQ(shown.find("150e641dbfa4728362cba4baad1a7196"), nullptr);
  shown.add(partition);
  ASSERT_NE(shown.find("150e641dbfa4728362cba4baad1a7196"), nullptr);
  EXPECT_EQ(*shown.find("150e641dbfa4728362cba4baad1a7196"), partition);
  EXPECT_EQ(shown.find(""), nullptr);
  EXPECT_EQ(shown.find("150E641DBFA4728362CBA4BAAD1A7196"), nullptr);
}

TEST(admin_partition_key_cache, are_bounded_and_those_that_were_shown_last_stay) {
  partition_key_cache shown;
  for (std::size_t i = 0; i < partition_key_cache::entries_max; ++i) {
    shown.add(std::to_string(i));
  }
  shown.add("0");
  shown.add("one more");
  EXPECT_NE(shown.find(partition_key_of("0")), nullptr);
  EXPECT_EQ(shown.find(partition_key_of("1")), nullptr);
  EXPECT_NE(shown.find(partition_key_of("2")), nullptr);
  // A long one takes the place of many, and one that is too long that of none.
  std::string const longest(partition_key_cache::octets_max, 'x');
  shown.add(longest + "y");
  EXPECT_EQ(shown.find(partition_key_of(longest + "y")), nullptr);
  EXPECT_NE(shown.find(partition_key_of("one more")), nullptr);
  shown.add(longest);
  EXPECT_NE(shown.find(partition_key_of(longest)), nullptr);
  EXPECT_EQ(shown.find(partition_key_of("one more")), nullptr);
}

}  // namespace
}  // namespace tidegate::gateway
