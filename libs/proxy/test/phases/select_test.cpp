// SPDX-License-Identifier: Apache-2.0
#include "phases/select.hpp"

#include "phases/phase_fixture.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::HasSubstr;

constexpr std::string_view several_routes =
    "upstreams: {api: \"http://127.0.0.1:1\"}\n"
    "routes:\n"
    "  - {name: host, match: {path: /**, host: shop.example}, service: echo}\n"
    "  - {name: posts, match: {path: /orders/**, methods: [POST]}, service: echo}\n"
    "  - {name: orders, match: {path: /orders/**}, upstream: api}\n"
    "  - {name: exact, match: {path: /status}, service: echo}\n";

/// What the phase made of one request.
class proxy_select : public testing::Test {
 protected:
  [[nodiscard]] auto select(phase_fixture& with, std::string_view head) -> step {
    context_ = with.ask(head);
    context_.route = nullptr;
    context_.path = {};
    return select_route(context_, with.config, path_, with.texts());
  }
  [[nodiscard]] auto get(phase_fixture& with, std::string const& target,
                         std::string const& lines = "") -> step {
    return select(with, "GET " + target + " HTTP/1.1\r\nHost: h\r\n" + lines + "\r\n");
  }

  request_context context_;
  std::string path_;
};

TEST_F(proxy_select, takes_the_first_route_that_matches) {
  struct row {
    std::string_view head;
    std::string_view route;
    handler by;
  };
  phase_fixture with{std::string(several_routes)};
  for (auto const& [head, route, by] : std::vector<row>{
           {"GET /orders/1 HTTP/1.1\r\nHost: h\r\n\r\n", "orders", handler::forward},
           {"GET /orders HTTP/1.1\r\nHost: h\r\n\r\n", "orders", handler::forward},
           {"POST /orders/1 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "posts",
            handler::echo},
           {"GET /orders/1 HTTP/1.1\r\nHost: SHOP.example:80\r\n\r\n", "host", handler::echo},
           {"GET /status HTTP/1.1\r\nHost: h\r\n\r\n", "exact", handler::echo},
           {"GET /status?a=/b HTTP/1.1\r\nHost: h\r\n\r\n", "exact", handler::echo},
       }) {
    ASSERT_EQ(select(with, head), step::next) << head;
    ASSERT_NE(context_.route, nullptr) << head;
    EXPECT_EQ(context_.route_settings().settings->name, route) << head;
    EXPECT_EQ(context_.handler, by) << head;
    EXPECT_FALSE(context_.reply) << head;
    EXPECT_EQ(context_.token, nullptr) << head;
  }
}

TEST_F(proxy_select, answers_404_where_no_route_matches) {
  phase_fixture with{std::string(several_routes)};
  for (auto const* const target : {"/", "/status/", "/statu", "/ordersx", "/Orders/1"}) {
    ASSERT_EQ(get(with, target), step::answered) << target;
    EXPECT_EQ(context_.reply->status, 404) << target;
    EXPECT_EQ(context_.reply->reason, "no-route") << target;
    EXPECT_EQ(context_.reply->content_type, http::problem_json) << target;
    EXPECT_THAT(context_.reply->content, HasSubstr("\"status\":404")) << target;
    EXPECT_EQ(context_.route, nullptr) << target;
  }
}

TEST_F(proxy_select, answers_501_to_an_extended_connect_but_for_a_websocket_where_there_is_one) {
  constexpr std::string_view one_upgrades =
      "upstreams: {api: \"http://127.0.0.1:1\"}\n"
      "routes:\n"
      "  - {name: chat, match: {path: /chat}, upstream: api, upgrade: [websocket]}\n"
      "  - {name: plain, match: {path: /plain}, upstream: api}\n"
      "  - {name: echo, match: {path: /echo}, service: echo}\n";
  struct row {
    std::string_view config;
    std::string target;
    std::string protocol;
    int status;  // 0: the next phase goes on
  };
  for (auto const& [config, target, protocol, status] :
       std::vector<row>{{one_upgrades, "/chat", "websocket", 0},
                        {one_upgrades, "/chat", "WebSocket", 0},
                        {one_upgrades, "/chat", "connect-udp", 501},
                        {one_upgrades, "/plain", "websocket", 501},
                        {one_upgrades, "/echo", "websocket", 501},
                        {one_upgrades, "/none", "websocket", 404},
                        {one_upgrades, "/.well-known/tidegate", "websocket", 404},
                        {several_routes, "/orders/1", "websocket", 501},
                        {several_routes, "/none", "websocket", 501},
                        {several_routes, "/.well-known/tidegate", "websocket", 501}}) {
    phase_fixture with{std::string(config)};
    auto const lines = "host: h\r\nconnection: upgrade\r\nupgrade: " + protocol + "\r\n";
    std::vector<wire::field_parts::line> const sizes{
        {4, 1}, {10, 7}, {7, static_cast<std::uint32_t>(protocol.size())}};
    wire::request_head head;
    ASSERT_EQ(wire::take_request_head({"GET", target, {lines, sizes}, true}, {}, head),
              wire::head_fault::none);
    context_ = with.get();
    context_.head = &head;
    context_.route = nullptr;
    auto const said = select_route(context_, with.config, path_, with.texts());
    EXPECT_EQ(said, status == 0 ? step::next : step::answered) << target << " " << protocol;
    EXPECT_EQ(context_.reply ? context_.reply->status : 0, status) << target << " " << protocol;
  }
}

TEST_F(proxy_select, finds_routes_by_the_normal_path) {
  struct row {
    std::string target;
    std::string_view path;
  };
  phase_fixture with{std::string(several_routes)};
  for (auto const& [target, path] : std::vector<row>{
           {"/orders/./1", "/orders/1"},
           {"/x/../orders/1", "/orders/1"},
           {"/%6Frders/1", "/orders/1"},
           {"/orders/%7ea", "/orders/~a"},
       }) {
    ASSERT_EQ(get(with, target), step::next) << target;
    EXPECT_EQ(context_.path, path) << target;
    EXPECT_EQ(context_.route_settings().settings->name, "orders") << target;
  }
}

TEST_F(proxy_select, refuses_a_path_that_is_not_one) {
  phase_fixture with{std::string(several_routes)};
  for (auto const* const target : {"/orders/%zz", "/orders/%", "/orders/%00"}) {
    ASSERT_EQ(get(with, target), step::answered) << target;
    EXPECT_EQ(context_.reply->status, 400) << target;
    EXPECT_EQ(context_.reply->reason, "path-invalid") << target;
  }
}

TEST_F(proxy_select, refuses_a_path_that_a_server_may_read_as_one_of_another_route) {
  std::string const routes =
      "routes:\n"
      "  - {name: admin, match: {path: /admin/**}, service: echo}\n"
      "  - {name: all, match: {path: /**}, service: echo}\n";
  phase_fixture with(routes);
  for (auto const* const target : {"//admin/x", "/a%2F..%2Fadmin/x", "/admin;v=1/x"}) {
    ASSERT_EQ(get(with, target), step::answered) << target;
    EXPECT_EQ(context_.reply->status, 400) << target;
    EXPECT_EQ(context_.reply->reason, "path-ambiguous") << target;
  }
  for (auto const* const target : {"/a//b", "/a;v=1/b", "/a%2Fb", "/admin/a;b"}) {
    EXPECT_EQ(get(with, target), step::next) << target << " is of one route in every reading";
  }
  phase_fixture allowing("http: {ambiguous-paths: allow}\n" + routes);
  EXPECT_EQ(get(allowing, "//admin/x"), step::next);
  EXPECT_EQ(context_.route_settings().settings->name, "all");
}

TEST_F(proxy_select, refuses_a_path_that_a_server_may_read_as_one_with_another_cost) {
  phase_fixture with(
      "policies: {p: {quota: 9, window: 1h}}\n"
      "routes: [{match: {path: /**}, service: echo, limits: [p], cost: {\"GET /dear/**\": 5}}]\n");
  ASSERT_EQ(get(with, "//dear/x"), step::answered);
  EXPECT_EQ(context_.reply->reason, "path-ambiguous");
  EXPECT_EQ(get(with, "//cheap/x"), step::next);
}

TEST_F(proxy_select, refuses_a_path_with_several_spellings_where_the_path_is_a_partition) {
  std::string const routes = "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n";
  phase_fixture by_path("policies: {p: {quota: 9, window: 1h, partition: [path]}}\n" + routes);
  ASSERT_EQ(get(by_path, "/a//b"), step::answered);
  EXPECT_EQ(context_.reply->reason, "path-ambiguous");
  EXPECT_EQ(get(by_path, "/a%3Ab"), step::next) << "the partition is made of the plain path";
  phase_fixture by_address("policies: {p: {quota: 9, window: 1h}}\n" + routes);
  EXPECT_EQ(get(by_address, "/a//b"), step::next);
}

TEST_F(proxy_select, tells_options_of_the_whole_server_the_usual_methods) {
  phase_fixture with{std::string(several_routes)};
  ASSERT_EQ(select(with, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"), step::answered);
  EXPECT_EQ(context_.reply->status, 200);
  EXPECT_EQ(context_.reply->field_lines, "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n");
  EXPECT_EQ(context_.reply->content, "");
  EXPECT_EQ(context_.path, "*");
}

TEST_F(proxy_select, takes_no_trace_which_would_show_credentials) {
  phase_fixture with{std::string(several_routes)};
  ASSERT_EQ(select(with, "TRACE /status HTTP/1.1\r\nHost: h\r\n\r\n"), step::answered);
  EXPECT_EQ(context_.reply->status, 405);
  EXPECT_EQ(context_.reply->reason, "method-not-allowed");
  EXPECT_THAT(context_.reply->field_lines, HasSubstr("Allow: GET, HEAD,"));
  EXPECT_EQ(context_.route, nullptr);
}

TEST_F(proxy_select, describes_itself_unless_a_route_is_for_well_known_paths) {
  struct row {
    std::string_view path;
    step said;
  };
  for (auto const& [path, said] : std::vector<row>{
           {"/**", step::answered},
           {"/api/**", step::answered},
           {"/.well-known/**", step::next},
           {"/.well-known/tidegate", step::next},
       }) {
    phase_fixture with("routes: [{match: {path: " + std::string(path) + "}, service: echo}]\n");
    ASSERT_EQ(get(with, "/.well-known/tidegate"), said) << path;
    if (said == step::answered) {
      EXPECT_EQ(context_.reply->status, 200) << path;
      EXPECT_EQ(context_.reply->content, with.settings().description_json) << path;
      EXPECT_EQ(context_.route, nullptr) << path;
    }
  }
  phase_fixture with("routes: [{match: {path: /**}, service: echo}]\n");
  EXPECT_EQ(get(with, "/.well-known/tidegate/x"), step::next);
}

TEST_F(proxy_select, refuses_content_that_is_declared_too_long) {
  struct row {
    std::string_view lines;
    step said;
  };
  phase_fixture with("http: {max-body: 10}\nroutes: [{match: {path: /**}, service: echo}]\n");
  for (auto const& [lines, said] : std::vector<row>{
           {"Content-Length: 11\r\n", step::answered},
           {"Content-Length: 10\r\n", step::next},
           {"Content-Length: 0\r\n", step::next},
           {"Transfer-Encoding: chunked\r\n", step::next},  // it is counted as it comes
       }) {
    auto const head = "POST /a HTTP/1.1\r\nHost: h\r\n" + std::string(lines) + "\r\n";
    ASSERT_EQ(select(with, head), said) << lines;
    if (said == step::answered) {
      EXPECT_EQ(context_.reply->status, 413);
      EXPECT_EQ(context_.reply->reason, "body-too-large");
      EXPECT_NE(context_.route, nullptr) << "it is counted for its route";
    }
  }
  phase_fixture unbounded("routes: [{match: {path: /**}, service: echo}]\n");
  EXPECT_EQ(select(unbounded, "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999\r\n\r\n"),
            step::next);
}

TEST_F(proxy_select, knows_who_asks_by_the_token) {
  struct row {
    std::string lines;
    std::string_view name;  // of the token
    handler by;
  };
  phase_fixture with("routes: [{match: {path: /**}, service: echo, " +
                     std::string(auth_of_alpha_and_beta) + "}]\n");
  for (auto const& [lines, name, by] : std::vector<row>{
           {"Authorization: Bearer alpha\r\n", "a", handler::echo},
           {"Authorization: bearer  beta\r\n", "b", handler::echo},
           {"Authorization: Bearer gamma\r\n", "", handler::unauthorized},
           {"Authorization: Basic alpha\r\n", "", handler::unauthorized},
           {"", "", handler::unauthorized},
       }) {
    // What is refused later is charged as everything else is.
    ASSERT_EQ(get(with, "/a", lines), step::next) << lines;
    EXPECT_EQ(context_.token == nullptr ? "" : context_.token->name, name) << lines;
    EXPECT_EQ(context_.handler, by) << lines;
  }
}

TEST_F(proxy_select, looks_at_no_token_where_the_route_asks_for_none) {
  phase_fixture with(
      "routes: [{match: {path: /open}, service: echo}, {match: {path: /**}, "
      "service: echo, " +
      std::string(auth_of_alpha_and_beta) + "}]\n");
  ASSERT_EQ(get(with, "/open", "Authorization: Bearer alpha\r\n"), step::next);
  EXPECT_EQ(context_.token, nullptr);
  EXPECT_EQ(context_.handler, handler::echo);
}

TEST_F(proxy_select, chooses_what_answers) {
  struct row {
    std::string_view target;
    handler by;
  };
  phase_fixture with(
      "data: /nowhere\nupstreams: {api: \"http://127.0.0.1:1\"}\n"
      "routes:\n"
      "  - {match: {path: /scim/**}, service: scim}\n"
      "  - {match: {path: /pages/**}, upstream: api, bridge: scim-cursor}\n"
      "  - {match: {path: /echo}, service: echo}\n"
      "  - {match: {path: /**}, upstream: api}\n");
  for (auto const& [target, by] : std::vector<row>{
           {"/scim/Users", handler::scim},
           {"/pages/Users?cursor", handler::bridge},
           {"/pages/Users?startIndex=1", handler::forward},
           {"/echo", handler::echo},
           {"/other", handler::forward},
       }) {
    ASSERT_EQ(get(with, std::string(target)), step::next) << target;
    EXPECT_EQ(context_.handler, by) << target;
  }
}

}  // namespace
}  // namespace tidegate::gateway
