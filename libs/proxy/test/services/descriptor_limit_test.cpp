// SPDX-License-Identifier: Apache-2.0
#include "services/descriptor_limit.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tidegate::gateway {
namespace {

TEST(proxy_descriptor_limit, keeps_half_for_upstreams_but_not_more_than_they_need) {
  struct row {
    std::int64_t descriptors;
    std::int64_t clients;
  };
  for (auto const& each : {row{2, 1}, row{3, 2}, row{100, 50}, row{8192, 4096}, row{8193, 4097},
                           row{100'000, 95'904}}) {
    EXPECT_EQ(clients_possible(each.descriptors), each.clients) << each.descriptors;
  }
}

TEST(proxy_descriptor_limit, leaves_some_of_what_the_system_allows) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  auto const possible = descriptors_possible();
  EXPECT_GE(possible, 2);
  if (limit.rlim_cur != RLIM_INFINITY) {
    EXPECT_LT(possible, static_cast<std::int64_t>(limit.rlim_cur));
  }
}

TEST(proxy_descriptor_limit, follows_the_limit_of_the_process) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_cur < 256) {
    GTEST_SKIP() << "too few descriptors to take some away";
  }
  rlimit less = before;
  less.rlim_cur = 200;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &less), 0);
  auto const possible = descriptors_possible();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_GE(possible, 2);
  EXPECT_LT(possible, 200);
}

TEST(proxy_descriptor_limit, warns_where_the_configuration_asks_for_more) {
  struct row {
    std::string_view name;
    std::string_view config;
    std::int64_t possible;
    bool expected;
  };
  auto const read = [](std::string_view more) {
    return *parse_config("listen: 127.0.0.1:0\n" + std::string(more) +
                             "routes: [{match: {path: /}, service: echo}]\n",
                         "t.yaml");
  };
  auto const usual = read("").http.max_connections;
  for (auto const& each : {
           row{"as many as are asked for", "http: {max-connections: 1000}\n", 1000, false},
           row{"one less", "http: {max-connections: 1000}\n", 999, true},
           row{"half of the default", "", usual / 2, false},
           row{"less than half of it", "", usual / 2 - 1, true},
       }) {
    EXPECT_EQ(is_below_wanted(read(each.config), each.possible), each.expected) << each.name;
  }
}

}  // namespace
}  // namespace tidegate::gateway
