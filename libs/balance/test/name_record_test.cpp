// SPDX-License-Identifier: Apache-2.0
#include <tidegate/balance/name_record.hpp>

#include <gtest/gtest.h>

#include <initializer_list>
#include <string_view>

namespace tidegate::balance {
namespace {

using namespace std::chrono_literals;

constexpr resolve_bounds bounds{.min = 1s, .max = 60s};

auto addresses(std::initializer_list<std::string_view> texts) -> std::vector<http::ip_address> {
  std::vector<http::ip_address> out;
  for (auto const text : texts) {
    out.push_back(*http::parse_ip_address(text));
  }
  return out;
}

TEST(balance_name_record, is_due_at_first) {
  name_record record;
  EXPECT_EQ(record.due(), instant::min());
  EXPECT_FALSE(record.is_known());
}

TEST(balance_name_record, keeps_an_answer_for_its_time_within_bounds) {
  for (auto const& [good_for, kept_for] :
       {std::pair(std::optional<std::chrono::nanoseconds>(30s), 30s),
        {std::optional<std::chrono::nanoseconds>(0s), 1s},
        {std::optional<std::chrono::nanoseconds>(1h), 60s},
        {std::nullopt, 60s}}) {
    name_record record;
    EXPECT_TRUE(record.answered({addresses({"10.0.0.1"}), good_for}, bounds, instant(5s)));
    EXPECT_EQ(record.due(), instant(5s) + kept_for);
  }
}

TEST(balance_name_record, says_whether_the_addresses_have_changed_whatever_their_order) {
  name_record record;
  EXPECT_TRUE(record.answered({addresses({"10.0.0.2", "10.0.0.1"}), 1s}, bounds, instant(0s)));
  EXPECT_FALSE(
      record.answered({addresses({"10.0.0.1", "10.0.0.2", "10.0.0.1"}), 1s}, bounds, instant(1s)));
  EXPECT_TRUE(record.answered({addresses({"10.0.0.1", "::1"}), 1s}, bounds, instant(2s)));
  EXPECT_EQ(record.addresses(), addresses({"10.0.0.1", "::1"}));
}

TEST(balance_name_record, keeps_the_last_answer_when_a_look_up_fails) {
  name_record record;
  (void)record.answered({addresses({"10.0.0.1"}), 5s}, bounds, instant(0s));
  record.failed(bounds, instant(5s));
  EXPECT_FALSE(record.answered({{}, 5s}, bounds, instant(6s))) << "no address is a failure";
  EXPECT_EQ(record.failures(), 2U);
  EXPECT_EQ(record.addresses(), addresses({"10.0.0.1"}));
  EXPECT_FALSE(record.answered({addresses({"10.0.0.1"}), 5s}, bounds, instant(7s)));
  EXPECT_EQ(record.failures(), 0U);
}

TEST(balance_name_record, asks_less_often_while_a_name_fails) {
  name_record record;
  auto now = instant(0s);
  std::vector<std::chrono::nanoseconds> pauses;
  for (int i = 0; i < 6; ++i) {
    record.failed(bounds, now);
    pauses.push_back(record.due() - now);
    now = record.due();
  }
  EXPECT_EQ(pauses, (std::vector<std::chrono::nanoseconds>{1s, 2s, 4s, 8s, 10s, 10s}));
}

TEST(balance_name_record, keeps_what_was_known_of_a_family_that_could_not_be_looked_up) {
  name_record record;
  (void)record.answered({addresses({"10.0.0.1", "::1"}), 5s}, bounds, instant(0s));
  EXPECT_TRUE(record.answered({addresses({"10.0.0.2"}), 5s, false, true}, bounds, instant(5s)));
  EXPECT_EQ(record.addresses(), addresses({"10.0.0.2", "::1"}));
  EXPECT_TRUE(record.answered({addresses({"10.0.0.2"}), 5s}, bounds, instant(9s)));
  EXPECT_EQ(record.addresses(), addresses({"10.0.0.2"}));
}

TEST(balance_name_record, has_a_bound) {
  name_record record;
  std::vector<http::ip_address> many;
  for (std::uint8_t i = 0; i < 200; ++i) {
    many.push_back(http::ip_address::from_v4(std::array<std::uint8_t, 4>{10, 0, 0, i}));
  }
  (void)record.answered({many, 5s}, bounds, instant(0s));
  EXPECT_EQ(record.addresses().size(), name_record::addresses_max);
}

}  // namespace
}  // namespace tidegate::balance
