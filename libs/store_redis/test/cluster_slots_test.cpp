// SPDX-License-Identifier: Apache-2.0
#include "protocol/cluster_slots.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tidegate::store_redis {
namespace {

TEST(store_redis_cluster_slots, puts_keys_where_the_specification_does) {
  // The first is the check value of the CRC; the others are what CLUSTER KEYSLOT says.
  EXPECT_EQ(slot_of("123456789"), 0x31c3);
  EXPECT_EQ(slot_of(""), 0);
  EXPECT_EQ(slot_of("foo"), 12182);
  EXPECT_EQ(slot_of("{user1000}.following"), slot_of("user1000"));
  EXPECT_EQ(slot_of("foo{}{bar}"), 8363);
  EXPECT_EQ(slot_of("foo{{bar}}zap"), slot_of("{bar"));
  EXPECT_EQ(slot_of("foo{bar}{zap}"), slot_of("bar"));
  EXPECT_EQ(slot_of("foo{bar"), 15278);
}

auto text(std::string value) -> resp_value {
  return {.kind = resp_kind::blob, .text = std::move(value)};
}
auto integer(std::int64_t value) -> resp_value {
  return {.kind = resp_kind::integer, .integer = value};
}
auto array(std::vector<resp_value> items) -> resp_value {
  return {.kind = resp_kind::array, .items = std::move(items)};
}

TEST(store_redis_cluster_slots, reads_a_map_and_takes_the_first_of_each_range) {
  auto const map = read_cluster_slots(
      array({array({integer(0), integer(8191), array({text("a"), integer(1), text("id")}),
                    array({text("replica"), integer(2), text("id")})}),
             array({integer(8192), integer(16383), array({{}, integer(3)})})}),
      {"asked", 9});
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(*map, (std::vector<slot_range>{{0, 8191, {"a", 1}}, {8192, 16383, {"asked", 3}}}));
}

TEST(store_redis_cluster_slots, refuses_maps_without_sense) {
  auto const node = array({text("a"), integer(1)});
  resp_value const rows[] = {
      text("a"),
      array({text("a")}),
      array({array({integer(0), integer(1)})}),
      array({array({integer(0), integer(1), text("a")})}),
      array({array({integer(-1), integer(1), node})}),
      array({array({integer(2), integer(1), node})}),
      array({array({integer(0), integer(16384), node})}),
      array({array({text("0"), integer(1), node})}),
      array({array({integer(0), integer(1), array({text("a"), integer(0)})})}),
      array({array({integer(0), integer(1), array({text("a"), integer(65536)})})}),
      array({array({integer(0), integer(1), array({text("a"), text("1")})})}),
      array({array({integer(0), integer(1), array({text(std::string(254, 'a')), integer(1)})})}),
  };
  for (auto const& row : rows) {
    EXPECT_FALSE(read_cluster_slots(row, {}).has_value());
  }
  resp_value const error{.kind = resp_kind::error, .text = "ERR no cluster"};
  EXPECT_EQ(read_cluster_slots(error, {}).error(), "ERR no cluster");
}

TEST(store_redis_cluster_slots, reads_where_to_go_instead) {
  struct row {
    char const* error;
    std::optional<redirection> to;
  };
  row const rows[] = {
      {"MOVED 3999 127.0.0.1:6381", redirection{true, 3999, {"127.0.0.1", 6381}}},
      {"ASK 16383 a.example:1", redirection{false, 16383, {"a.example", 1}}},
      {"MOVED 0 ::1:6381", redirection{true, 0, {"::1", 6381}}},
      {"MOVED 0 :6381", redirection{true, 0, {"asked", 6381}}},
      {"MOVED", std::nullopt},
      {"MOVED 1", std::nullopt},
      {"MOVED 1 a", std::nullopt},
      {"MOVED x a:1", std::nullopt},
      {"MOVED 16384 a:1", std::nullopt},
      {"MOVED 1 a:0", std::nullopt},
      {"MOVED 1 a:65536", std::nullopt},
      {"MOVED a:1 2", std::nullopt},
      {"ASKING 1 a:1", std::nullopt},
      {"ERR 1 a:1", std::nullopt},
  };
  for (auto const& [error, to] : rows) {
    EXPECT_EQ(read_redirection({.kind = resp_kind::error, .text = error}, {"asked", 9}), to)
        << error;
  }
}

}  // namespace
}  // namespace tidegate::store_redis
