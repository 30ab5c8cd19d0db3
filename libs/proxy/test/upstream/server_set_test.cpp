// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/server_set.hpp>

#include <tidegate/config/values.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

auto settings_of(std::initializer_list<std::string_view> urls) -> upstream_config {
  upstream_config settings;
  settings.name = "api";
  for (auto const url : urls) {
    settings.servers.push_back(*parse_server_url(url));
  }
  settings.outlier.emplace();
  return settings;
}

auto addresses(std::initializer_list<std::string_view> texts) -> std::vector<http::ip_address> {
  std::vector<http::ip_address> out;
  for (auto const text : texts) {
    out.push_back(*http::parse_ip_address(text));
  }
  return out;
}

auto labels(server_set const& of) -> std::vector<std::string> {
  std::vector<std::string> out;
  auto const list = of.list();
  for (auto const& [server, weight] : *list) {
    out.push_back(server->identity.label);
  }
  return out;
}

auto at(server_set const& of, std::size_t position) -> shared_server& {
  return *(*of.list())[position].server;
}

TEST(proxy_server_set, has_addresses_and_sockets_at_once_and_names_when_they_are_known) {
  server_set servers;
  servers.use(settings_of({"http://10.0.0.1:8080/v1/", "unix:/run/a", "https://api.example"}));
  EXPECT_THAT(labels(servers), ElementsAre("http://10.0.0.1:8080/v1/", "unix:/run/a"));
  EXPECT_EQ(at(servers, 0).identity.base_path, "/v1");
  EXPECT_EQ(at(servers, 0).identity.address.to_string(), "10.0.0.1:8080");
  EXPECT_EQ(at(servers, 1).identity.authority, "localhost");
  auto const before = servers.version();
  EXPECT_TRUE(servers.resolved("api.example", addresses({"10.0.0.2", "2001:db8::1"})));
  EXPECT_NE(servers.version(), before);
  EXPECT_THAT(labels(servers),
              ElementsAre("http://10.0.0.1:8080/v1/", "unix:/run/a", "https://api.example#10.0.0.2",
                          "https://api.example#2001:db8::1"));
  EXPECT_EQ(at(servers, 3).identity.address.to_string(), "[2001:db8::1]:443");
  EXPECT_EQ(at(servers, 3).identity.tls_name, "api.example");
  EXPECT_EQ(at(servers, 3).identity.authority, "api.example");
  EXPECT_FALSE(servers.resolved("api.example", addresses({"10.0.0.2", "2001:db8::1"})));
}

TEST(proxy_server_set, shares_the_weight_of_a_name_between_its_addresses) {
  server_set servers;
  auto settings = settings_of({"http://a", "http://10.0.0.1", "http://c"});
  settings.servers[0].weight = 4;
  settings.servers[2].weight = 0;
  servers.use(settings);
  (void)servers.resolved("a", addresses({"10.1.0.1", "10.1.0.2"}));
  (void)servers.resolved("c", addresses({"10.3.0.1"}));
  std::vector<std::int64_t> weights;
  auto const list = servers.list();
  for (auto const& [server, weight] : *list) {
    weights.push_back(weight);
  }
  EXPECT_THAT(weights, ElementsAre(2000, 2000, 1000, 0));
}

TEST(proxy_server_set, keeps_what_is_known_of_servers_that_stay) {
  server_set servers;
  servers.use(settings_of({"http://a"}));
  (void)servers.resolved("a", addresses({"10.0.0.1", "10.0.0.2"}));
  auto const list = servers.list();
  auto const& stays = (*list)[1].server;
  for (int i = 0; i < 5; ++i) {
    (void)servers.failed(*stays, instant(1s));
  }
  EXPECT_FALSE(stays->is_up(instant(2s)));
  (void)servers.resolved("a", addresses({"10.0.0.2", "10.0.0.3"}));
  EXPECT_EQ(&at(servers, 0), stays.get());
  auto changed = settings_of({"http://a", "http://10.0.0.9"});
  changed.servers[0].weight = 7;
  servers.use(changed);
  EXPECT_EQ(&at(servers, 0), stays.get()) << "over a reload too";
  EXPECT_FALSE(stays->is_up(instant(2s)));
}

TEST(proxy_server_set, ejects_after_failures_in_a_row_and_lets_it_come_back_by_itself) {
  server_set servers;
  servers.use(settings_of({"http://10.0.0.1", "http://10.0.0.2"}));
  auto& server = at(servers, 0);
  for (std::uint64_t i = 1; i < 5; ++i) {
    auto const verdict = servers.failed(server, instant(1s));
    EXPECT_EQ(verdict.in_a_row, i);
    EXPECT_FALSE(verdict.is_down);
  }
  auto const before = servers.version();
  auto const verdict = servers.failed(server, instant(1s));
  EXPECT_TRUE(verdict.is_down);
  EXPECT_EQ(verdict.out_for, 10s);
  EXPECT_NE(servers.version(), before) << "threads have to know";
  EXPECT_EQ(server.usable_from(), instant(11s));
  EXPECT_TRUE(server.is_up(instant(11s)));
  servers.answered(server);
  EXPECT_EQ(server.failures_in_a_row(), 0U);
}

TEST(proxy_server_set, ejects_neither_the_last_server_nor_the_last_that_is_well) {
  server_set one;
  one.use(settings_of({"http://10.0.0.1"}));
  server_set two;
  auto settings = settings_of({"http://10.0.0.1", "http://10.0.0.2", "http://10.0.0.3"});
  settings.servers[2].weight = 0;
  two.use(settings);
  for (int i = 0; i < 5; ++i) {
    (void)two.failed(at(two, 0), instant(1s));
  }
  for (auto* const servers : {&one, &two}) {
    auto& last = at(*servers, servers == &one ? 0 : 1);
    failure_verdict verdict;
    for (int i = 0; i < 5; ++i) {
      verdict = servers->failed(last, instant(2s));
    }
    EXPECT_TRUE(verdict.is_down);
    EXPECT_EQ(verdict.out_for, std::nullopt);
    EXPECT_GE(instant(2s), last.usable_from()) << "it is used";
    EXPECT_FALSE(last.is_up(instant(2s))) << "and said to be down";
    servers->answered(last);
    EXPECT_TRUE(last.is_up(instant(2s)));
  }
}

TEST(proxy_server_set, ejects_nothing_when_that_is_off) {
  server_set servers;
  auto settings = settings_of({"http://10.0.0.1", "http://10.0.0.2"});
  settings.outlier.reset();
  servers.use(settings);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(servers.failed(at(servers, 0), instant(1s)).is_down);
  }
}

TEST(proxy_server_set, takes_out_what_health_checks_find_and_brings_it_back_slowly) {
  server_set servers;
  auto settings = settings_of({"http://10.0.0.1", "http://10.0.0.2"});
  settings.health.emplace();
  servers.use(settings);
  auto& server = at(servers, 0);
  EXPECT_FALSE(servers.checked(server, false, instant(1s)));
  EXPECT_FALSE(servers.checked(server, false, instant(2s)));
  EXPECT_TRUE(server.is_up(instant(2s)));
  EXPECT_TRUE(servers.checked(server, false, instant(3s)));
  EXPECT_FALSE(server.is_up(instant(1h)));
  EXPECT_FALSE(servers.checked(server, true, instant(4s)));
  EXPECT_TRUE(servers.checked(server, true, instant(5s)));
  EXPECT_EQ(server.usable_from(), instant(5s)) << "its slow start begins";
  settings.health.reset();
  (void)servers.checked(server, false, instant(6s));
  servers.use(settings);
  EXPECT_TRUE(server.is_up(instant(7s))) << "without checks nothing would bring it back";
}

TEST(proxy_server_set, gives_three_retries_a_second_beyond_budgets) {
  server_set servers;
  int taken = 0;
  while (servers.take_retry(instant(1h))) {
    ++taken;
  }
  EXPECT_EQ(taken, 30);
}

}  // namespace
}  // namespace tidegate::gateway
