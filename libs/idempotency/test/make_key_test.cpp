// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency/key.hpp>
#include <tidegate/idempotency/make_key.hpp>

#include <gtest/gtest.h>

#include <array>

namespace tidegate::TIDEGATE_ABI::idempotency {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::uint8_t, 10> randomness = {0xff, 0xc3, 0xd8, 0xc4, 0xdc,
                                                     0x0c, 0x0c, 0x07, 0x39, 0x8f};

TEST(idempotency_make_key, makes_the_uuid_of_appendix_a_6_of_rfc_9562) {
  EXPECT_EQ(make_key(wall_time(1'645'557'742'000ms),
                     std::array<std::uint8_t, 10>{0x0c, 0xc3, 0x18, 0xc4, 0xdc, 0x0c, 0x0c, 0x07,
                                                  0x39, 0x8f}),
            "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
}

TEST(idempotency_make_key, uses_every_random_bit_that_is_not_version_or_variant) {
  auto const key = make_key(wall_time(0ms), randomness);
  EXPECT_EQ(key, "00000000-0000-7fc3-98c4-dc0c0c07398f");
  for (std::size_t i = 0; i < 80; ++i) {
    auto other = randomness;
    other[i / 8] = static_cast<std::uint8_t>(other[i / 8] ^ (0x80U >> (i % 8)));
    bool const has_another_meaning = i < 4 || i == 16 || i == 17;
    EXPECT_EQ(make_key(wall_time(0ms), other) == key, has_another_meaning) << i;
  }
}

TEST(idempotency_make_key, is_taken_where_keys_must_be_new_uuids_of_version_7) {
  constexpr wall_time now(1'700'000'000'000ms);
  std::string field;
  ASSERT_TRUE(append_key_field(field, make_key(now, randomness)));
  std::string scratch;
  std::array const lines = {std::string_view(field)};
  auto const read =
      read_key(lines, {.format = key_format::uuidv7, .age_max = 1000ms}, now + 1000ms, scratch);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, make_key(now, randomness));
}

TEST(idempotency_make_key, writes_any_key_as_a_string_that_reads_the_same) {
  for (std::string_view const key : {"a", "with \"quotes\" and \\", "~ !"}) {
    std::string field = "x";
    ASSERT_TRUE(append_key_field(field, key));
    std::string scratch;
    std::array const lines = {std::string_view(field).substr(1)};
    EXPECT_EQ(read_key(lines, {}, wall_time(0ms), scratch), key);
  }
}

TEST(idempotency_make_key, refuses_what_no_string_can_hold) {
  for (std::string_view const key : {"", "a\r\nb", "\x7f", "\xc3\xa4"}) {
    std::string field = "x";
    EXPECT_FALSE(append_key_field(field, key));
    EXPECT_EQ(field, "x");
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::idempotency
