// SPDX-License-Identifier: Apache-2.0
#include "gateway.hpp"
#include "raw_http2.hpp"

#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <cstddef>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

/// Thousands of connections that say nothing, or hardly anything.
namespace tidegate::e2e {

namespace {

// Most of it would be the sanitizer's.
constexpr bool memory_is_measured = !test_support::sanitized;
constexpr std::size_t idle_count = test_support::sanitized ? 500 : 10'000;
constexpr std::size_t slow_count = 300;
constexpr std::size_t warm_count = 100;  // what is made once is not counted as theirs

constexpr std::string_view config =
    "policies: {p: {quota: 1000000, window: 1m}}\n"
    "http: {header-timeout: 10m, idle-timeout: 10m}\n"
    "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n";

/// For the gateway too, which inherits it.
auto may_open(std::size_t count) -> bool {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < count && limit.rlim_max >= count) {
    limit.rlim_cur = count;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  return limit.rlim_cur >= count;
}

/// One address has not enough ports when many tests run after each other.
auto source(std::size_t number) -> std::string {
  return "127.0.0." + std::to_string(1 + number % 8);
}

/// Waits until connections that say nothing take no more than `bar` octets each, and prints what
/// they take.
void expect_memory(gateway const& of, std::size_t before, std::size_t bar, std::string_view what) {
  if (!memory_is_measured) {
    return;
  }
  auto const each = [&] {
    auto const now = of.own_memory();
    return now < before ? 0 : (now - before) / idle_count;
  };
  expect_eventually([&] { return each() <= bar; }, "idle connections take little memory");
  std::cout << idle_count << " idle connections of " << what << ": " << each()
            << " octets each, at most " << bar << "\n";
}

/// A request of HTTP/1.1 that is answered.
void ask(connection& by) {
  by.send("GET / HTTP/1.1\r\nHost: a.example\r\nX-API-Key: idle\r\n\r\n");
  ASSERT_EQ(by.read_response().status(), 200);
}

void ask(raw_client& by, std::uint32_t stream) {
  by.get(stream);
  ASSERT_EQ(by.read(headers).stream, stream);
  ASSERT_EQ(by.read(data).stream, stream);
}

TEST(gateway_idle, keeps_ten_thousand_connections_in_512_octets_each_while_others_trickle) {
  if (!may_open(idle_count + 1'000)) {
    GTEST_SKIP() << "the system allows too few open files";
  }
  gateway const under_test{std::string(config)};
  std::vector<connection> idle;
  auto const open = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      ask(idle.emplace_back(under_test.connect(source(i))));
    }
  };
  open(warm_count);
  auto const before = under_test.own_memory();
  open(idle_count);
  expect_memory(under_test, before, 512, "HTTP/1.1");

  std::vector<connection> slow;
  for (std::size_t i = 0; i < slow_count; ++i) {
    slow.push_back(under_test.connect(source(i)));
  }
  auto const all_idle = under_test.own_memory();
  for (char const each : std::string_view("GET / HTTP/1.1\r\nHost: a.example\r\nX-A: 1\r\n")) {
    for (auto& client : slow) {
      client.send({&each, 1});
    }
  }
  ask(idle.front());  // so that all of it has come
  if (memory_is_measured) {
    auto const now = under_test.own_memory();
    std::cout << slow_count << " slow ones take "
              << (now < all_idle ? 0 : (now - all_idle) / slow_count) << " octets each\n";
    EXPECT_LT(now, all_idle + slow_count * 4096);
  }
  for (auto& client : slow) {
    client.send("\r\n");
    EXPECT_EQ(client.read_response().status(), 200);
  }
  for (auto& client : idle) {
    ask(client);
  }
}

TEST(gateway_idle, keeps_ten_thousand_http2_connections_in_8_kilobytes_each_while_others_trickle) {
  if (!may_open(idle_count + 1'000)) {
    GTEST_SKIP() << "the system allows too few open files";
  }
  gateway const under_test{std::string(config)};
  std::vector<raw_client> idle;
  auto const open = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      ask(idle.emplace_back(under_test.connect(source(i))), 1);
    }
  };
  open(warm_count);
  auto const before = under_test.own_memory();
  open(idle_count);
  expect_memory(under_test, before, 8 * 1024, "HTTP/2");

  std::vector<raw_client> slow;
  for (std::size_t i = 0; i < slow_count; ++i) {
    slow.emplace_back(under_test.connect(source(i)));
  }
  // The frame of `get`, an octet at a time.
  for (char const each : std::string_view("\0\0\6\1\5\0\0\0\1\x82\x86\x84\x41\1a", 15)) {
    for (auto& client : slow) {
      client.socket().send({&each, 1});
    }
  }
  for (auto& client : slow) {
    EXPECT_EQ(client.read(headers).stream, 1U);
  }
  for (auto& client : idle) {
    ask(client, 3);
  }
}

}  // namespace
}  // namespace tidegate::e2e
