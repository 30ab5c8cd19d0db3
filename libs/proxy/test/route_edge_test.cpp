// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/route_edge.hpp>

#include <gtest/gtest.h>

#include <string>

namespace tidegate::gateway {
namespace {

TEST(proxy_route_edge, is_there_only_where_a_route_asks_for_it) {
  config const all;
  route_config plain;
  plain.match.path = "/**";
  EXPECT_EQ(make_route_edge(plain, all), nullptr);
  auto const is_made = [&](auto change) {
    auto settings = plain;
    change(settings);
    return make_route_edge(settings, all) != nullptr;
  };
  // What is looked at elsewhere needs none.
  EXPECT_FALSE(is_made([](auto& of) { of.max_body = 1; }));
  EXPECT_FALSE(is_made([](auto& of) { of.timeout = std::chrono::seconds(1); }));
  EXPECT_FALSE(is_made([](auto& of) { of.respond.emplace(); }));
  EXPECT_TRUE(is_made([](auto& of) { of.allow = {*http::parse_cidr("10.0.0.0/8")}; }));
  EXPECT_TRUE(is_made([](auto& of) { of.deny = {*http::parse_cidr("10.0.0.0/8")}; }));
  EXPECT_TRUE(is_made([](auto& of) { of.request.remove = {"A"}; }));
  EXPECT_TRUE(is_made([](auto& of) { of.response.add = {{"A", "b"}}; }));
  EXPECT_TRUE(is_made([](auto& of) { of.hsts = std::chrono::seconds(1); }));
  EXPECT_TRUE(is_made([](auto& of) { of.rewrite.emplace().add_prefix = "/a"; }));
  EXPECT_TRUE(is_made([](auto& of) { of.redirect.emplace().to = "/a"; }));
}

TEST(proxy_route_edge, is_there_where_a_server_has_a_path) {
  config all;
  all.upstreams.resize(3);
  for (auto& upstream : all.upstreams) {
    upstream.servers.resize(2);
  }
  all.upstreams[1].servers[1].path = "/base";
  route_config settings;
  settings.match.path = "/**";
  EXPECT_EQ(make_route_edge(settings, all), nullptr);
  settings.upstream = 1;
  auto const edge = make_route_edge(settings, all);
  ASSERT_NE(edge, nullptr);
  EXPECT_TRUE(edge->has_base_path);
  settings.service = route_service::echo;
  EXPECT_EQ(make_route_edge(settings, all), nullptr);
  settings.service = route_service::upstream;
  settings.upstream = 0;
  settings.split = {{0, 1}, {2, 1}};
  EXPECT_EQ(make_route_edge(settings, all), nullptr);
  settings.split = {{0, 1}, {1, 1}};
  EXPECT_NE(make_route_edge(settings, all), nullptr);
}

TEST(proxy_route_edge, says_strict_transport_security_by_https_only) {
  config const all;
  route_config settings;
  settings.match.path = "/**";
  settings.response.set = {{"A", "b"}};
  settings.hsts = std::chrono::hours(1);
  auto const edge = make_route_edge(settings, all);
  ASSERT_NE(edge, nullptr);
  std::string lines;
  edge->response_to(false).apply(lines);
  EXPECT_EQ(lines, "A: b\r\n");
  lines = "strict-transport-security: max-age=1\r\n";  // of the upstream, by http
  edge->response_to(false).apply(lines);
  EXPECT_EQ(lines, "A: b\r\n");
  lines = "Strict-Transport-Security: max-age=1\r\n";
  edge->response_to(true).apply(lines);
  EXPECT_EQ(lines, "A: b\r\nStrict-Transport-Security: max-age=3600\r\n");
}

}  // namespace
}  // namespace tidegate::gateway
