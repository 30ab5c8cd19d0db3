// SPDX-License-Identifier: Apache-2.0
#include "crc32c.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace tidegate::store_sqlite {

TEST(store_sqlite_crc32c, is_that_of_the_examples) {
  // RFC 3720, appendix B.4.
  std::string rising;
  std::string falling;
  for (int i = 0; i < 32; ++i) {
    rising.push_back(static_cast<char>(i));
    falling.push_back(static_cast<char>(31 - i));
  }
  for (auto* const crc : {crc32c, crc32c_portable}) {
    EXPECT_EQ(crc(std::string(32, '\0')), 0x8a91'36aaU);
    EXPECT_EQ(crc(std::string(32, '\xff')), 0x62a8'ab43U);
    EXPECT_EQ(crc(rising), 0x46dd'794eU);
    EXPECT_EQ(crc(falling), 0x113f'db5cU);
    EXPECT_EQ(crc("123456789"), 0xe306'9283U);
    EXPECT_EQ(crc(""), 0U);
  }
}

TEST(store_sqlite_crc32c, is_the_same_on_every_processor) {
  std::mt19937 random(1);  // NOLINT: the same each time
  for (int i = 0; i < 2000; ++i) {
    std::string octets(random() % 100, '\0');
    for (auto& octet : octets) {
      octet = static_cast<char>(random());
    }
    EXPECT_EQ(crc32c(octets), crc32c_portable(octets)) << octets.size();
  }
}

}  // namespace tidegate::store_sqlite
