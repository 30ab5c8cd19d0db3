// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/active_config.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::known_field;

class proxy_active_config : public testing::Test {
 protected:
  [[nodiscard]] auto make(std::string const& text)
      -> result<std::shared_ptr<active_config const>, std::string> {
    auto read = parse_config("listen: 127.0.0.1:0\n" + text, "t.yaml");
    EXPECT_TRUE(read) << (read ? "" : read.error().front().message);
    return active_config::make(*std::move(read), ids_, loads_);
  }
  [[nodiscard]] auto made(std::string const& text) -> std::shared_ptr<active_config const> {
    auto out = make(text);
    EXPECT_TRUE(out) << (out ? "" : out.error());
    return *out;
  }
  /// The route of a configuration with these policies.
  [[nodiscard]] auto route_with(std::string const& policies, std::string const& limits,
                                std::string const& more = "") -> route const& {
    active_ = made("policies: {" + policies + "}\n" + more +
                   "routes: [{name: all, match: {path: /**}, service: echo, limits: [" + limits +
                   "]}]\n");
    return active_->routes.front();
  }

  policy_ids ids_;
  upstream_states loads_;
  std::shared_ptr<active_config const> active_;
};

constexpr auto echo = "routes: [{name: all, match: {path: /**}, service: echo}]\n";

TEST_F(proxy_active_config, has_a_route_for_each_of_the_configuration) {
  auto const active = made(
      "routes:\n- {name: a, match: {path: /a}, service: echo}\n"
      "- {name: b, match: {path: /**}, service: echo}\n");
  ASSERT_EQ(active->routes.size(), 2U);
  EXPECT_EQ(active->routes[0].settings->name, "a");
  EXPECT_EQ(active->routes[1].settings->name, "b");
  EXPECT_EQ(active->routes[0].settings, &active->config.routes[0]) << "of its own configuration";
}

TEST_F(proxy_active_config, makes_the_fields_of_policies_that_are_enforced) {
  auto const& route =
      route_with("p: {quota: 9, window: 1h}, s: {quota: 1, window: 1s, enforce: shadow}", "p, s");
  ASSERT_EQ(route.limits.size(), 2U);
  ASSERT_EQ(route.policies.size(), 1U) << "a shadow is not told";
  EXPECT_EQ(route.policies[0].quota, 9);
}

TEST_F(proxy_active_config, has_the_answer_of_each_policy_ready) {
  auto const& route = route_with("p: {quota: 9, window: 1h}", "p");
  auto const& limit = route.limits.front();
  EXPECT_THAT(limit.problem, HasSubstr("\"p\""));
  EXPECT_THAT(limit.problem_head, HasSubstr("HTTP/1.1 429 "));
  EXPECT_THAT(limit.problem_head,
              HasSubstr("Content-Length: " + std::to_string(limit.problem.size()) + "\r\n"));
}

TEST_F(proxy_active_config, shares_the_partition_of_an_earlier_limit_with_the_same_sources) {
  auto const& route = route_with(
      "a: {quota: 1, window: 1s, partition: client-ip},"
      "b: {quota: 1, window: 1s, partition: header:x-api-key},"
      "c: {quota: 1, window: 1s, partition: client-ip},"
      "d: {quota: 1, window: 1s, partition: header:x-api-key}",
      "a, b, c, d");
  std::vector<std::size_t> positions;
  for (auto const& each : route.limits) {
    positions.push_back(each.partition_of);
  }
  EXPECT_THAT(positions, ElementsAre(0U, 1U, 0U, 1U));
}

TEST_F(proxy_active_config, knows_the_fields_of_sources) {
  auto const& route = route_with(
      "p: {quota: 1, window: 1s, partition: [header:user-agent, header:x-customer, client-ip]}",
      "p");
  EXPECT_THAT(route.limits[0].source_fields,
              ElementsAre(known_field::user_agent, known_field::other, known_field::other));
  EXPECT_THAT(route.other_names, ElementsAre("x-customer"));
}

TEST_F(proxy_active_config, knows_what_a_route_has_to_do) {
  struct row {
    std::string_view name;
    std::string policy;
    bool gives_back;
    bool watches_abuse;
    bool tells_paths_apart;
  };
  for (auto const& each : {
           row{"requests", "quota: 1, window: 1s", false, false, false},
           row{"successful requests", "quota: 1, window: 1s, count: successful", true, false,
               false},
           row{"content", "quota: 1, window: 1s, unit: content-bytes", true, false, false},
           row{"concurrent requests", "quota: 1, unit: concurrent-requests", true, false, false},
           row{"with abuse detection", "quota: 1, window: 1s, abuse: {}", false, true, false},
           row{"by path", "quota: 1, window: 1s, partition: path", false, false, true},
           row{"by path, as a shadow", "quota: 1, window: 1s, partition: path, enforce: shadow",
               false, false, false},
       }) {
    auto const& route = route_with("p: {" + each.policy + "}", "p");
    EXPECT_EQ(route.gives_back, each.gives_back) << each.name;
    EXPECT_EQ(route.watches_abuse, each.watches_abuse) << each.name;
    EXPECT_EQ(route.tells_paths_apart, each.tells_paths_apart) << each.name;
  }
}

TEST_F(proxy_active_config, writes_fields_in_place_of_those_of_an_upstream) {
  struct row {
    std::string_view name;
    std::string more;
    std::string limits;
    bool ratelimit;
    bool legacy;
    bool triple = false;
  };
  for (auto const& each : {
           row{"by default", "", "p", true, false},
           row{"with legacy fields", "fields: {legacy: true}\n", "p", true, true},
           row{"with the triple", "fields: {legacy: triple}\n", "p", true, false, true},
           row{"with all", "fields: {legacy: [x, triple]}\n", "p", true, true, true},
           row{"none", "fields: {ratelimit: none}\n", "p", false, false},
           row{"no policy", "fields: {legacy: true}\n", "", false, false},
       }) {
    auto const& made_here =
        route_with("p: {quota: 1, window: 1s}", each.limits, each.more).fields_made_anew;
    EXPECT_EQ(made_here.contains(known_field::ratelimit), each.ratelimit) << each.name;
    EXPECT_EQ(made_here.contains(known_field::ratelimit_policy), each.ratelimit) << each.name;
    EXPECT_EQ(made_here.contains(known_field::x_ratelimit_limit), each.legacy) << each.name;
    EXPECT_EQ(made_here.contains(known_field::x_ratelimit_remaining), each.legacy) << each.name;
    EXPECT_EQ(made_here.contains(known_field::x_ratelimit_reset), each.legacy) << each.name;
    EXPECT_EQ(made_here.contains(known_field::ratelimit_limit), each.triple) << each.name;
    EXPECT_EQ(made_here.contains(known_field::ratelimit_remaining), each.triple) << each.name;
    EXPECT_EQ(made_here.contains(known_field::ratelimit_reset), each.triple) << each.name;
  }
}

TEST_F(proxy_active_config, knows_the_scope_of_keys) {
  auto const active = made("routes: [{name: all, match: {path: /**}, service: echo}]\n");
  EXPECT_THAT(active->routes[0].scope_fields, IsEmpty());
  auto const keyed = made(
      "upstreams: {api: {servers: ['http://127.0.0.1:1']}}\n"
      "routes: [{name: all, match: {path: /**}, upstream: api,\n"
      "  idempotency: {mode: required, scope: [header:user-agent, header:x-owner, path]}}]\n");
  auto const& route = keyed->routes[0];
  EXPECT_THAT(route.scope_fields,
              ElementsAre(known_field::user_agent, known_field::other, known_field::other));
  EXPECT_THAT(route.other_names, ElementsAre("x-owner"));
  EXPECT_TRUE(route.tells_paths_apart);
}

TEST_F(proxy_active_config, keeps_the_numbers_of_policies_over_reloads) {
  auto const first =
      route_with("a: {quota: 1, window: 1s}, b: {quota: 1, window: 1s}", "a, b").limits[1].id;
  auto const& later = route_with("b: {quota: 5, window: 1s}, c: {quota: 1, window: 1s}", "c, b");
  EXPECT_EQ(later.limits[1].id, first);
  EXPECT_NE(later.limits[0].id, first);
}

TEST_F(proxy_active_config, finds_the_number_of_a_policy_that_a_route_has) {
  auto const& route = route_with("a: {quota: 1, window: 1s}, b: {quota: 1, window: 1s}", "b");
  EXPECT_EQ(policy_id_of(*active_, *route.limits[0].policy), route.limits[0].id);
  for (auto const& policy : active_->config.policies) {
    EXPECT_EQ(policy_id_of(*active_, policy).has_value(), policy.name == "b") << policy.name;
  }
}

TEST_F(proxy_active_config, has_the_servers_of_upstreams) {
  auto const active = made(
      "upstreams: {api: {servers: ['http://127.0.0.1', 'http://127.0.0.1:3000', "
      "'http://[::1]:8080', 'https://127.0.0.1:443', 'https://127.0.0.1:80']}}\n"
      "routes: [{match: {path: /**}, upstream: api}]\n");
  std::vector<std::string> authorities;
  std::vector<bool> secure;
  auto const servers = active->upstreams.front().servers->list();
  for (auto const& [server, weight] : *servers) {
    authorities.push_back(server->identity.authority);
    secure.push_back(server->identity.tls_name.has_value());
  }
  EXPECT_THAT(authorities,
              ElementsAre("127.0.0.1", "127.0.0.1:3000", "[::1]:8080", "127.0.0.1", "127.0.0.1:80"))
      << "without the port that its scheme has";
  EXPECT_THAT(secure, ElementsAre(false, false, false, true, true));
  EXPECT_TRUE(active->upstreams.front().tls.has_value());
}

TEST_F(proxy_active_config, needs_no_tls_for_upstreams_in_clear) {
  auto const active = made(
      "upstreams: {api: {servers: ['http://127.0.0.1']}}\n"
      "routes: [{match: {path: /**}, upstream: api}]\n");
  EXPECT_FALSE(active->upstreams.front().tls.has_value());
  ASSERT_EQ(active->listener_tls.size(), 1U);
  EXPECT_FALSE(active->listener_tls.front().has_value());
}

TEST_F(proxy_active_config, waits_for_no_name) {
  auto const active = made(
      "upstreams: {api: {servers: ['http://name.invalid']}}\n"
      "routes: [{match: {path: /**}, upstream: api}]\n");
  EXPECT_TRUE(active->upstreams.front().servers->list()->empty());
}

TEST_F(proxy_active_config, bounds_heads_as_configured) {
  auto const active =
      made("http: {max-uri: 1KiB, max-header-size: 4KiB, max-headers: 20}\n" + std::string(echo));
  auto const& limits = active->head_limits;
  EXPECT_EQ(limits.request_line_octets_max, 1024U + 32U) << "the line has more in it than the URI";
  EXPECT_EQ(limits.head_octets_max, 4096U);
  EXPECT_EQ(limits.fields_max, 20U);
}

TEST_F(proxy_active_config, trusts_the_proxies_that_it_is_told_of) {
  auto const active = made("trusted-proxies: [192.0.2.0/24]\n" + std::string(echo));
  EXPECT_TRUE(active->trusted_proxies.contains(*http::parse_ip_address("192.0.2.9")));
  EXPECT_FALSE(active->trusted_proxies.contains(*http::parse_ip_address("192.0.3.9")));
}

TEST_F(proxy_active_config, describes_itself) {
  (void)route_with("p: {quota: 9, window: 1h}", "p");
  EXPECT_THAT(active_->description_json, HasSubstr("\"p\""));
  EXPECT_THAT(active_->description_html, HasSubstr("<html"));
}

TEST_F(proxy_active_config, writes_the_beginning_of_a_head) {
  std::string out;
  append_content_head(out, 429, "text/plain", 5);
  EXPECT_EQ(out,
            "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n");
  out.clear();
  append_content_head(out, 404, "text/plain", 0);
  EXPECT_EQ(out, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n") << "without content";
}

TEST_F(proxy_active_config, keeps_the_load_of_an_upstream_while_it_is_in_use) {
  overload_config settings;
  settings.max_in_flight = 4;
  auto const first = loads_.load_of("api", settings);
  EXPECT_EQ(loads_.load_of("api", settings), first);
  EXPECT_NE(loads_.load_of("other", settings), first);
}

}  // namespace
}  // namespace tidegate::gateway
