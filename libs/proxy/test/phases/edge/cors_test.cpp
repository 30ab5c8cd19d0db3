// SPDX-License-Identifier: Apache-2.0
#include "phases/edge/cors.hpp"

#include "phases/phase_fixture.hpp"
#include "phases/select.hpp"

#include <gmock/gmock.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view several_routes =
    "upstreams: {api: \"http://127.0.0.1:1\"}\n"
    "routes:\n"
    "  - {name: reads, match: {path: /orders/**, methods: [GET]}, upstream: api, cors: {origins: "
    "'https://app.example', credentials: true}}\n"
    "  - {name: writes, match: {path: /orders/**, methods: [POST, DELETE, OPTIONS]}, service: "
    "echo, "
    "cors: {origins: 'https://app.example', headers: X-Id}}\n"
    "  - {name: plain, match: {path: /plain/**}, service: echo}\n"
    "  - {name: own, match: {path: /own, methods: [OPTIONS]}, upstream: api}\n"
    "  - {name: any, match: {path: /any/**}, service: echo, cors: {origins: "
    "'https://app.example'}}\n"
    "  - {name: second, match: {path: /v, headers: {X-Version: 2}}, service: echo, cors: {origins: "
    "'*'}}\n"
    "  - {name: hidden, match: {path: /v, headers: {X-Secret: s}}, service: echo}\n"
    "  - {name: first, match: {path: /v}, service: echo, cors: {origins: '*'}}\n"
    "  - {name: open, match: {path: /open}, service: echo, cors: {origins: '*'}}\n";

constexpr std::string_view vary =
    "Vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers\r\n";

/// The routes, two with a list of origins and one for all of them.
class proxy_cors : public testing::Test {
 protected:
  [[nodiscard]] auto select(std::string_view head) -> step {
    context_ = with_.ask(head);
    context_.route = nullptr;
    context_.path = {};
    return select_route(context_, with_.config, path_, with_.texts());
  }
  [[nodiscard]] auto preflight(std::string const& target, std::string const& method,
                               std::string const& lines = "",
                               std::string const& origin = "https://app.example") -> step {
    return select("OPTIONS " + target + " HTTP/1.1\r\nHost: h\r\nOrigin: " + origin +
                  "\r\nAccess-Control-Request-Method: " + method + "\r\n" + lines + "\r\n");
  }
  [[nodiscard]] auto route() const -> std::string {
    return context_.route == nullptr ? "" : context_.route_settings().settings->name;
  }
  [[nodiscard]] auto reason() const -> std::string {
    return context_.reply ? std::string(context_.reply->reason) : "";
  }

  phase_fixture with_{std::string(several_routes)};
  request_context context_;
  std::string path_;
};

TEST_F(proxy_cors, answers_a_preflight_by_the_route_of_the_method_that_it_asks_about) {
  struct row {
    std::string target;
    std::string method;
    std::string lines;
    std::string route;
    std::string reason;
  };
  for (auto const& [target, method, lines, at, why] : std::vector<row>{
           {"/orders/1", "GET", "", "reads", "cors-preflight"},
           {"/orders/1", "POST", "", "writes", "cors-preflight"},
           {"/orders/1", "DELETE", "Access-Control-Request-Headers: x-id,accept\r\n", "writes",
            "cors-preflight"},
           {"/orders/1", "DELETE", "Access-Control-Request-Headers: authorization\r\n", "writes",
            "cors-header"},
           {"/orders/1", "DELETE",
            "Access-Control-Request-Headers: x-id\r\naccess-control-request-headers: x-b\r\n",
            "writes", "cors-header"},
           {"/orders/1", "GET", "Access-Control-Request-Headers: authorization\r\n", "reads",
            "cors-preflight"},
           {"/orders/1", "PUT", "", "", "no-route"},
           {"/orders/1", "get", "", "", "no-route"},
           {"/any/1", "PUT", "", "any", "cors-preflight"},
           {"/any/1", "put", "", "any", "cors-method"},
           {"/any/1", "PURGE", "", "any", "cors-method"},
           {"/any/1", "", "", "any", "cors-method"},
           {"/any/1", "GET", "Access-Control-Request-Method: GET\r\n", "any", "cors-method"},
           {"/any/1", "GET", "Origin: https://app.example\r\n", "any", "cors-origin"},
           {"/open", "GET", "", "open", "cors-preflight"},
           {"/none", "GET", "", "", "no-route"},
       }) {
    ASSERT_EQ(preflight(target, method, lines), step::answered) << target << " " << method;
    EXPECT_EQ(route(), at) << target << " " << method << " " << lines;
    EXPECT_EQ(reason(), why) << target << " " << method << " " << lines;
    EXPECT_EQ(context_.reply->status, why == "cors-preflight" ? 204
                                      : why == "no-route"     ? 404
                                                              : 403);
    EXPECT_TRUE(context_.terms.cors.empty());
  }
}

TEST_F(proxy_cors, says_in_a_204_what_pages_may_do_and_in_a_403_only_by_what_it_varies) {
  ASSERT_EQ(preflight("/orders/1", "GET", "Access-Control-Request-Headers: range\r\n"),
            step::answered);
  EXPECT_EQ(context_.reply->field_lines,
            "Access-Control-Allow-Origin: https://app.example\r\n"
            "Access-Control-Allow-Headers: Authorization, Content-Type, Idempotency-Key, Prefer, "
            "range\r\n"
            "Access-Control-Allow-Credentials: true\r\nAccess-Control-Allow-Methods: GET\r\n"
            "Access-Control-Max-Age: 600\r\n" +
                std::string(vary));
  EXPECT_EQ(context_.reply->content_type, "");
  EXPECT_EQ(context_.reply->content, "");
  for (auto const* const origin :
       {"https://evil.example", "null", "", "https://app.example.evil.example",
        "https://APP.example", "https://app.example https://app.example"}) {
    ASSERT_EQ(preflight("/orders/1", "GET", "", origin), step::answered) << origin;
    EXPECT_EQ(reason(), "cors-origin") << origin;
    EXPECT_EQ(context_.reply->field_lines, vary) << origin;
    EXPECT_EQ(context_.reply->content_type, http::problem_json) << origin;
    EXPECT_THAT(std::string(context_.reply->content), HasSubstr("\"status\":403")) << origin;
  }
  ASSERT_EQ(preflight("/open", "GET", "", "null"), step::answered);
  EXPECT_THAT(std::string(context_.reply->field_lines),
              HasSubstr("Access-Control-Allow-Origin: *\r\n"));
}

TEST_F(proxy_cors, takes_a_preflight_of_a_call_of_grpc_for_no_call) {
  context_ = with_.ask(
      "OPTIONS /any/1 HTTP/1.1\r\nHost: h\r\nOrigin: https://app.example\r\n"
      "Content-Type: application/grpc-web\r\nAccess-Control-Request-Method: POST\r\n\r\n");
  context_.grpc = grpc_kind::web;
  ASSERT_EQ(select_route(context_, with_.config, path_, with_.texts()), step::answered);
  EXPECT_EQ(reason(), "cors-preflight");
  EXPECT_EQ(context_.grpc, grpc_kind::none);
}

// A preflight has the names of the headers that the page will send, and not their values.
TEST_F(proxy_cors, answers_a_preflight_by_the_route_of_the_headers_that_it_announces) {
  constexpr std::string_view asks = "Access-Control-Request-Headers: ";
  struct row {
    std::string lines;
    std::string_view route;
  };
  std::string far(asks);
  for (int i = 0; i < 128; ++i) {
    far += "a,";
  }
  for (auto const& [lines, expected] : std::vector<row>{
           {"", "first"},
           {std::string(asks) + "x-version\r\n", "second"},
           {std::string(asks) + "a, b\r\n" + std::string(asks) + "c,X-Version\r\n", "second"},
           {std::string(asks) + "x-versions\r\n", "first"},
           {"X-Version: 2\r\n", "second"},
           {"X-Version: 3\r\n", "first"},
           {far + "x-version\r\n", "first"},  // behind the 128th name
       }) {
    ASSERT_EQ(preflight("/v", "GET", lines), step::answered) << lines;
    EXPECT_EQ(route(), expected) << lines;
  }
}

TEST_F(proxy_cors, takes_what_is_announced_for_there_only_where_it_answers) {
  constexpr std::string_view secret = "Access-Control-Request-Headers: x-secret\r\n";
  ASSERT_EQ(preflight("/v", "GET", std::string(secret)), step::next);
  EXPECT_EQ(route(), "first");
  ASSERT_EQ(preflight("/v", "GET", std::string(secret) + "X-Secret: s\r\n"), step::next);
  EXPECT_EQ(route(), "hidden");
  // Without Origin it is not a preflight.
  ASSERT_EQ(select("OPTIONS /v HTTP/1.1\r\nHost: h\r\nAccess-Control-Request-Method: GET\r\n"
                   "Access-Control-Request-Headers: x-version\r\n\r\n"),
            step::next);
  EXPECT_EQ(route(), "first");
}

TEST_F(proxy_cors, lets_an_options_go_on_that_is_not_a_preflight_of_a_route_with_cors) {
  struct row {
    std::string head;
    std::string route;
    bool has_lines;
  };
  constexpr auto origin = "Origin: https://app.example\r\n";
  constexpr auto wanted = "Access-Control-Request-Method: GET\r\n";
  for (auto const& [head, at, has_lines] : std::vector<row>{
           {"OPTIONS /plain/1 HTTP/1.1\r\nHost: h\r\n" + std::string(origin) + wanted, "plain",
            false},
           {"OPTIONS /own HTTP/1.1\r\nHost: h\r\n" + std::string(origin) + wanted, "own", false},
           {"OPTIONS /any/1 HTTP/1.1\r\nHost: h\r\n" + std::string(wanted), "any", true},
           {"OPTIONS /any/1 HTTP/1.1\r\nHost: h\r\n" + std::string(origin), "any", true},
           {"OPTIONS /orders/1 HTTP/1.1\r\nHost: h\r\n", "writes", true},
           {"GET /any/1 HTTP/1.1\r\nHost: h\r\n" + std::string(origin) + wanted, "any", true},
       }) {
    EXPECT_EQ(select(head + "\r\n"), step::next) << head;
    EXPECT_EQ(route(), at) << head;
    EXPECT_EQ(!context_.terms.cors.empty(), has_lines) << head;
  }
}

TEST_F(proxy_cors, says_in_other_answers_who_may_read_them) {
  struct row {
    std::string target;
    std::string lines;
    std::string_view origin;
    std::string_view rest;
  };
  constexpr std::string_view allowed = "Access-Control-Allow-Origin: https://app.example\r\n";
  constexpr std::string_view exposed = "Access-Control-Expose-Headers: Date\r\nVary: Origin\r\n";
  constexpr std::string_view only_varies = "Vary: Origin\r\n";
  constexpr std::string_view all = "Access-Control-Allow-Origin: *\r\n";
  constexpr std::string_view all_exposed = "Access-Control-Expose-Headers: Date\r\n";
  for (auto const& [target, lines, origin, rest] : std::vector<row>{
           {"/any/1", "Origin: https://app.example\r\n", allowed, exposed},
           {"/any/1", "oRiGiN:   https://app.example \r\n", allowed, exposed},
           {"/any/1", "", "", only_varies},
           {"/any/1", "Origin:\r\n", "", only_varies},
           {"/any/1", "Origin: null\r\n", "", only_varies},
           {"/any/1", "Origin: https://evil.example\r\n", "", only_varies},
           {"/any/1", "Origin: https://app.example\r\nOrigin: https://app.example\r\n", "",
            only_varies},
           {"/any/1", "Origin: https://app.example\r\nOrigin: https://evil.example\r\n", "",
            only_varies},
           {"/any/1", "Origin: " + std::string(7000, 'x') + "\r\n", "", only_varies},
           {"/any/1", "Origin: https://\xc3\xa4pp.example\r\n", "", only_varies},
           {"/open", "", all, all_exposed},
           {"/open", "Origin: https://evil.example\r\n", all, all_exposed},
           {"/open", "Origin: null\r\nOrigin: null\r\n", all, all_exposed},
           {"/plain/1", "Origin: https://app.example\r\n", "", ""},
       }) {
    ASSERT_EQ(select("GET " + target + " HTTP/1.1\r\nHost: h\r\n" + lines + "\r\n"), step::next)
        << lines;
    EXPECT_EQ(context_.terms.cors.origin, origin) << target << " " << lines;
    EXPECT_EQ(context_.terms.cors.rest, rest) << target << " " << lines;
  }
}

TEST_F(proxy_cors, tells_pages_of_calls_of_grpc_how_they_ended) {
  context_ = with_.ask("POST /any/1 HTTP/1.1\r\nHost: h\r\nOrigin: https://app.example\r\n\r\n");
  context_.grpc = grpc_kind::web;
  ASSERT_EQ(select_route(context_, with_.config, path_, with_.texts()), step::next);
  EXPECT_THAT(to_string(context_.terms.cors), HasSubstr("grpc-status"));
}

TEST(proxy_cors_fields, of_an_upstream_are_left_out_of_its_head) {
  constexpr std::string_view text =
      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-A: 1\r\nAccess-Control-Allow-Origin: *\r\n"
      "Connection: x-hop\r\nX-Hop: 2\r\nETag: \"e\"\r\naccess-control-expose-headers: X-A\r\n"
      "X-A: 3\r\nVary: Accept\r\n\r\n";
  wire::response_head head;
  ASSERT_EQ(wire::parse_response_head(text, 0, {}, wire::method::get, head).state,
            wire::head_state::complete);
  EXPECT_TRUE(has_access_control(head));
  std::string lines;
  append_others_without_cors(lines, head);
  EXPECT_EQ(lines, "X-A: 1\r\nX-A: 3\r\n");
  ASSERT_EQ(wire::parse_response_head("HTTP/1.1 200 OK\r\nAccept-Ranges: bytes\r\nX-A: 1\r\n\r\n",
                                      0, {}, wire::method::get, head)
                .state,
            wire::head_state::complete);
  EXPECT_FALSE(has_access_control(head));
}

}  // namespace
}  // namespace tidegate::gateway
