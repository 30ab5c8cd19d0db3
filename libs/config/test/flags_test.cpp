// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/config.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;

auto faults(serve_flags const& flags) -> std::vector<std::string> {
  std::vector<std::string> found;
  if (auto const made = config_from_flags(flags); !made) {
    for (auto const& fault : made.error()) {
      found.push_back(to_string(fault));
    }
  }
  return found;
}

auto limited(std::string limit) -> serve_flags {
  return {.upstream = "http://127.0.0.1:3000",
          .listen = std::nullopt,
          .admin = std::nullopt,
          .limits = {std::move(limit)}};
}

TEST(gateway_config_flags, make_the_configuration_of_a_file_that_says_the_same) {
  auto const made = config_from_flags({.upstream = "http://127.0.0.1:3000",
                                       .listen = ":9000",
                                       .limits = {"100/1m by header:X-Api-Key,path"}});
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->listen.at(0).address, ":9000");
  EXPECT_EQ(to_string(made->upstreams.at(0).servers.at(0)), "http://127.0.0.1:3000");
  EXPECT_EQ(made->upstreams.at(0).timeout, 30s);
  EXPECT_EQ(made->routes.at(0).match, request_match{"/**"});
  EXPECT_THAT(made->routes.at(0).limits, testing::ElementsAre(0));
  auto const& policy = made->policies.at(0);
  EXPECT_EQ(policy.name, "default");
  EXPECT_EQ(policy.policy.quota(), 100);
  EXPECT_EQ(policy.policy.window(), 60s);
  ASSERT_EQ(policy.partition.sources().size(), 2U);
  EXPECT_EQ(to_string(policy.partition.sources()[0]), "header:x-api-key");
  EXPECT_EQ(to_string(policy.partition.sources()[1]), "path");
  EXPECT_EQ(made->data, "data");
}

TEST(gateway_config_flags, have_defaults) {
  auto const made = config_from_flags({.upstream = "https://api.example.com"});
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->listen.at(0).address, "127.0.0.1:8080");
  EXPECT_TRUE(made->policies.empty());
  EXPECT_EQ(to_string(made->upstreams.at(0).servers.at(0)), "https://api.example.com:443");
  auto const one = config_from_flags(limited("5/1s"));
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(to_string(one->policies.at(0).partition.sources()[0]), "client-ip");
}

TEST(gateway_config_flags, have_an_admin_address_that_only_this_machine_reaches) {
  auto const made = config_from_flags({.upstream = "http://x", .admin = "127.0.0.1:9901"});
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->admin, (admin_config{"127.0.0.1:9901"}));
  EXPECT_THAT(faults({.upstream = "http://x", .admin = ":9901"}),
              testing::ElementsAre(testing::StartsWith(
                  "--admin: other machines can reach this address, so it needs tokens")));
  EXPECT_THAT(
      faults({.upstream = "http://x", .admin = "9901"}),
      testing::ElementsAre(testing::StartsWith("--admin: invalid address: the port is missing")));
  EXPECT_THAT(faults({.upstream = "http://x", .admin = "127.0.0.1:8080"}),
              testing::ElementsAre(testing::StartsWith(
                  "--admin: same address as --listen (expected another address")));
}

TEST(gateway_config_flags, name_several_limits_by_their_order) {
  auto const made = config_from_flags(
      {.upstream = "http://x", .listen = std::nullopt, .limits = {"5/1s", "100/1d by host"}});
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->policies.at(0).name, "limit-1");
  EXPECT_EQ(made->policies.at(1).name, "limit-2");
  EXPECT_THAT(made->routes.at(0).limits, testing::ElementsAre(0, 1));
}

TEST(gateway_config_flags, say_which_flag_is_wrong_and_where) {
  using testing::ElementsAre;
  using testing::StartsWith;
  EXPECT_THAT(faults({.upstream = "localhost:3000", .listen = "80"}),
              ElementsAre(StartsWith("--upstream: invalid URL: it does not begin"),
                          StartsWith("--listen: invalid address: the port is missing")));
  EXPECT_THAT(faults(limited("100")), ElementsAre(StartsWith("--limit: expected QUOTA/WINDOW")));
  EXPECT_THAT(faults(limited("x/1m")), ElementsAre(StartsWith("--limit: expected")));
  EXPECT_THAT(faults(limited("0/1m")), ElementsAre(StartsWith("--limit: expected")));
  EXPECT_THAT(faults(limited("100/m")), ElementsAre()) << "the same as 100/1m";
  EXPECT_THAT(faults(limited("100/w")),
              ElementsAre(StartsWith("--limit, character 5: invalid window \"w\"")));
  EXPECT_THAT(faults(limited("100/500ms")),
              ElementsAre(StartsWith("--limit, character 5: invalid window \"500ms\"")));
  EXPECT_THAT(faults(limited("100/1m by")),
              ElementsAre(StartsWith("--limit, character 5: invalid window \"1m by\"")));
  EXPECT_THAT(faults(limited("100/1m by ip")), ElementsAre(StartsWith("--limit, character 11: ")));
  EXPECT_THAT(faults(limited("9/1s by host,header:a b")),
              ElementsAre(StartsWith("--limit, character 22: ")));
  EXPECT_THAT(faults(limited("9/1s by host,host")),
              ElementsAre(StartsWith("--limit, character 14: ")));
  EXPECT_THAT(faults(limited("9/1s by principal")),
              ElementsAre(StartsWith("--limit, character 9: ")));
}

}  // namespace
}  // namespace tidegate::gateway
