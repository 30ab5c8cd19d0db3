// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_redis/resp.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace tidegate::store_redis {
namespace {

using namespace std::string_literals;
using kind = resp_kind;

auto blob(std::string text) -> resp_value {
  return {.kind = kind::blob, .text = std::move(text)};
}
auto integer(std::int64_t number) -> resp_value {
  return {.kind = kind::integer, .integer = number};
}

/// All answers of `octets`, fed in pieces of `size`.
struct answers {
  std::vector<resp_value> values;
  std::optional<resp_error> error;
  auto operator==(answers const&) const -> bool = default;
};
auto read(std::string_view octets, std::size_t size, resp_limits limits = {}) -> answers {
  resp_reader reader(limits);
  answers out;
  for (std::size_t at = 0; at < octets.size() && !out.error; at += size) {
    reader.feed(octets.substr(at, size));
    for (;;) {
      auto value = reader.next();
      if (!value) {
        out.error = value.error();
      }
      if (!value || !*value) {
        break;
      }
      out.values.push_back(**std::move(value));
    }
  }
  return out;
}

TEST(store_redis_resp, reads_every_type_however_it_is_split) {
  struct row {
    std::string octets;
    resp_value value;
  };
  row const rows[] = {
      {"+OK\r\n", {.kind = kind::simple_string, .text = "OK"}},
      {"+\r\n", {.kind = kind::simple_string}},
      {"-ERR no\r\n", {.kind = kind::error, .text = "ERR no"}},
      {"!5\r\nERR\r\n\r\n", {.kind = kind::error, .text = "ERR\r\n"}},
      {":0\r\n", integer(0)},
      {":+7\r\n", integer(7)},
      {":-9223372036854775808\r\n", integer(std::numeric_limits<std::int64_t>::min())},
      {"$0\r\n\r\n", blob("")},
      {"$4\r\n\r\n\0x\r\n"s, blob("\r\n\0x"s)},
      {"=7\r\ntxt:a\r\n\r\n", blob("a\r\n")},
      {"_\r\n", {}},
      {"$-1\r\n", {}},
      {"*-1\r\n", {}},
      {"#t\r\n", {.kind = kind::boolean, .integer = 1}},
      {"#f\r\n", {.kind = kind::boolean}},
      {",1.5\r\n", {.kind = kind::number, .number = 1.5}},
      {",-inf\r\n", {.kind = kind::number, .number = -std::numeric_limits<double>::infinity()}},
      {"(-3492890328409238509324850943850943825024385\r\n",
       {.kind = kind::big_number, .text = "-3492890328409238509324850943850943825024385"}},
      {"*0\r\n", {.kind = kind::array}},
      {"*2\r\n:1\r\n*1\r\n$1\r\na\r\n",
       {.kind = kind::array, .items = {integer(1), {.kind = kind::array, .items = {blob("a")}}}}},
      {"%1\r\n+k\r\n:1\r\n",
       {.kind = kind::map, .items = {{.kind = kind::simple_string, .text = "k"}, integer(1)}}},
      {"~1\r\n:1\r\n", {.kind = kind::set, .items = {integer(1)}}},
      {">1\r\n:1\r\n", {.kind = kind::push, .items = {integer(1)}}},
      {"|1\r\n+ttl\r\n:5\r\n:1\r\n", integer(1)},
      {"*2\r\n|1\r\n+ttl\r\n*1\r\n:5\r\n:1\r\n|0\r\n:2\r\n",
       {.kind = kind::array, .items = {integer(1), integer(2)}}},
  };
  for (auto const& [octets, value] : rows) {
    auto const twice = octets + octets;
    for (std::size_t size = 1; size <= twice.size(); ++size) {
      auto const got = read(twice, size);
      EXPECT_FALSE(got.error.has_value()) << octets;
      EXPECT_EQ(got.values, (std::vector{value, value})) << octets << " in pieces of " << size;
    }
  }
  EXPECT_TRUE(std::isnan(read(",nan\r\n", 9).values.at(0).number));
}

TEST(store_redis_resp, refuses_what_the_protocol_does_not_have_and_says_where) {
  using enum resp_fault;
  struct row {
    std::string octets;
    resp_error error;
  };
  row const rows[] = {
      {"?\r\n", {unknown_type, 0}},
      {"\r\n", {unknown_type, 0}},
      {"HTTP/1.1 400 Bad Request\r\n", {unknown_type, 0}},
      {":1\r\nx\r\n", {unknown_type, 4}},
      {"+a\n", {invalid_line, 2}},
      {"+a\rb\r\n", {invalid_line, 2}},
      {"$1\r\nab\r\n", {invalid_line, 5}},
      {"$1\r\na\rb", {invalid_line, 5}},
      {":\r\n", {invalid_number, 1}},
      {":1x\r\n", {invalid_number, 1}},
      {":+-1\r\n", {invalid_number, 1}},
      {":9223372036854775808\r\n", {invalid_number, 1}},
      {"$-2\r\n", {invalid_number, 1}},
      {"$?\r\n", {invalid_number, 1}},
      {"*-2\r\n", {invalid_number, 1}},
      {"%x\r\n", {invalid_number, 1}},
      {",1,5\r\n", {invalid_number, 1}},
      {"(1a\r\n", {invalid_number, 1}},
      {"(\r\n", {invalid_number, 1}},
      {"#x\r\n", {invalid_value, 1}},
      {"_x\r\n", {invalid_value, 1}},
      {"=3\r\ntxt\r\n", {invalid_value, 4}},
      {"*1\r\n>1\r\n:1\r\n", {misplaced, 8}},
      {"*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", {too_deep, 16}},
      {"*11\r\n", {too_many_values, 5}},
      {"%6\r\n", {too_many_values, 4}},
      {"*18446744073709551615\r\n", {invalid_number, 1}},
      {"%9223372036854775807\r\n", {too_many_values, 22}},
      {"*9\r\n:1\r\n*5\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n", {too_many_values, 40}},
      {"$101\r\n", {too_long, 1}},
      {"*2\r\n$60\r\n" + std::string(60, 'x') + "\r\n$40\r\n" + std::string(40, 'x') + "\r\n",
       {too_long, 118}},
      {"+" + std::string(60, 'x') + "\r\n", {too_long, 50}},
      {"+" + std::string(60, 'x'), {too_long, 50}},
  };
  resp_limits const limits{
      .depth_max = 3, .values_max = 10, .octets_max = 100, .line_octets_max = 50};
  for (auto const& [octets, error] : rows) {
    for (std::size_t size = 1; size <= octets.size(); ++size) {
      auto const got = read(octets, size, limits);
      ASSERT_TRUE(got.error.has_value()) << octets << " in pieces of " << size;
      EXPECT_EQ(got.error->fault, error.fault)
          << octets << " in pieces of " << size << ": " << message(got.error->fault);
      EXPECT_EQ(got.error->offset, error.offset) << octets << " in pieces of " << size;
    }
  }
}

TEST(store_redis_resp, stays_with_its_error) {
  resp_reader reader;
  reader.feed("?\r\n:1\r\n");
  auto const first = reader.next();
  ASSERT_FALSE(first.has_value());
  reader.feed(":1\r\n");
  auto const second = reader.next();
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(first.error(), second.error());
}

TEST(store_redis_resp, takes_a_hundred_thousand_values_octet_by_octet_in_its_stride) {
  std::string octets = "*100000\r\n";
  for (int i = 0; i < 100'000; ++i) {
    octets += ":1\r\n";
  }
  auto const got = read(octets, 1);
  ASSERT_EQ(got.values.size(), 1U);
  EXPECT_EQ(got.values[0].items.size(), 100'000U);
}

TEST(store_redis_resp, knows_an_error_by_its_first_word) {
  resp_value const value{.kind = kind::error, .text = "NOSCRIPT No matching script."};
  EXPECT_TRUE(value.is_error("NOSCRIPT"));
  EXPECT_FALSE(value.is_error("NO"));
  EXPECT_FALSE(blob("NOSCRIPT").is_error("NOSCRIPT"));
}

TEST(store_redis_resp, writes_commands) {
  std::string out;
  command({"SET", "a\r\n", ""}).append_to(out);
  EXPECT_EQ(out, "*3\r\n$3\r\nSET\r\n$3\r\na\r\n\r\n$0\r\n\r\n");
  out.clear();
  command one{"A"};
  one.add(-12).then(command{"B", "b"}).then(command{"C"});
  EXPECT_EQ(one.count(), 3U);
  one.append_to(out);
  EXPECT_EQ(out, "*2\r\n$1\r\nA\r\n$3\r\n-12\r\n*2\r\n$1\r\nB\r\n$1\r\nb\r\n*1\r\n$1\r\nC\r\n");
  EXPECT_EQ(command().count(), 0U);
}

}  // namespace
}  // namespace tidegate::store_redis
