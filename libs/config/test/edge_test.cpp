// SPDX-License-Identifier: Apache-2.0
//
// The options of a route for browsers, headers, paths and networks: what is read, and what is not.
#include <tidegate/config/config.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

auto faults_of(std::string_view text) -> std::vector<std::string> {
  std::vector<std::string> found;
  if (auto const made = parse_config(text, "t"); !made) {
    for (auto const& fault : made.error()) {
      found.push_back(to_string(fault).substr(2));
    }
  }
  return found;
}

/// A file with one route for `pattern` that has an upstream and `options`, from column 10 of line 4
/// on.
auto file_with(std::string_view options, std::string_view pattern = "/v1/*/**") -> std::string {
  return "upstreams: {a: 'http://127.0.0.1:1'}\n"
         "routes:\n"
         "- {match: {path: \"" +
         std::string(pattern) + "\"}, upstream: a,\n         " + std::string(options) + "}\n";
}

/// The same with a match, from column 11 of line 3 on.
auto file_with_match(std::string_view match) -> std::string {
  return "upstreams: {a: 'http://127.0.0.1:1'}\nroutes:\n- {match: {" + std::string(match) +
         "}, upstream: a}\n";
}

/// The same where the gateway answers, from column 32 of line 1 on.
auto file_without_upstream(std::string_view options, std::string_view pattern = "/v1/*/**")
    -> std::string {
  return "routes: [{match: {path: '" + std::string(pattern) + "'},\n" + std::string(options) +
         "}]\n";
}

auto route_of(std::string const& text) -> route_config {
  auto made = parse_config(text, "t");
  if (!made) {
    ADD_FAILURE() << text << testing::PrintToString(faults_of(text));
    return {};
  }
  return made->routes.front();
}

TEST(config_edge, reads_what_pages_of_other_origins_may_do) {
  auto const route = route_of(
      file_with("cors: {origins: ['https://app.example.com', 'http://localhost:5173', "
                "'http://[2001:db8::1]:8080', 'capacitor://localhost', 'null'], "
                "methods: [GET, PUT], headers: [X-One], expose: [X-Two], credentials: true, "
                "max-age: 1h}"));
  cors_config const wanted{
      .any_origin = false,
      .origins = {"https://app.example.com", "http://localhost:5173", "http://[2001:db8::1]:8080",
                  "capacitor://localhost", "null"},
      .methods = {"GET", "PUT"},
      .headers = {"X-One"},
      .expose = {"X-Two"},
      .credentials = true,
      .max_age = 1h};
  EXPECT_EQ(route.cors, wanted);
  auto const any = route_of(file_with("cors: {origins: '*'}"));
  EXPECT_EQ(any.cors, (cors_config{.any_origin = true,
                                   .origins = {},
                                   .methods = {},
                                   .headers = {},
                                   .expose = {},
                                   .credentials = false,
                                   .max_age = 10min}));
  auto const one = route_of(file_with("cors: {origins: 'https://a.example', max-age: 0s}"));
  ASSERT_TRUE(one.cors);
  EXPECT_THAT(one.cors->origins, ElementsAre("https://a.example"));
  EXPECT_EQ(one.cors->max_age, 0s);
  EXPECT_FALSE(route_of(file_with("name: plain")).cors);
}

TEST(config_edge, reads_rules_for_headers) {
  auto const route = route_of(
      file_with("request: {set: {Host: 'a.example:81', X-Forwarded-Proto: https, X-Number: 1, "
                "X-Flag: true}, add: {X-A: 'b, c'}, remove: [X-Internal, X-Forwarded-For]}, "
                "response: {set: {Server: api}, add: {Vary: Accept}, remove: X-Powered-By}"));
  EXPECT_EQ(route.request, (field_rules{{{"Host", "a.example:81"},
                                         {"X-Forwarded-Proto", "https"},
                                         {"X-Number", "1"},
                                         {"X-Flag", "true"}},
                                        {{"X-A", "b, c"}},
                                        {"X-Internal", "X-Forwarded-For"}}));
  EXPECT_EQ(route.response,
            (field_rules{{{"Server", "api"}}, {{"Vary", "Accept"}}, {"X-Powered-By"}}));
  EXPECT_EQ(route.hsts, std::nullopt);
  auto const plain = route_of(file_with("name: plain"));
  EXPECT_TRUE(plain.request.empty());
  EXPECT_TRUE(plain.response.empty());
}

TEST(config_edge, expands_the_preset_for_apis_behind_rules_of_the_operator) {
  auto const whole = route_of(file_with("response: {preset: api, hsts: 365d}"));
  EXPECT_EQ(whole.response.set,
            (std::vector<field_rule>{
                {"Cache-Control", "no-store"},
                {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
                {"Referrer-Policy", "no-referrer"},
                {"X-Content-Type-Options", "nosniff"},
                {"X-Frame-Options", "DENY"}}));
  EXPECT_EQ(whole.hsts, 365 * 24h);
  auto const changed =
      route_of(file_with("response: {preset: api, set: {cache-control: max-age=5, X-A: b}, "
                         "add: {Referrer-Policy: origin}, remove: [X-Frame-Options]}"));
  EXPECT_EQ(changed.response.set,
            (std::vector<field_rule>{
                {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
                {"X-Content-Type-Options", "nosniff"},
                {"cache-control", "max-age=5"},
                {"X-A", "b"}}));
  EXPECT_EQ(route_of(file_with("response: {hsts: 0s}")).hsts, 0s);
}

TEST(config_edge, reads_rewrites_and_answers) {
  EXPECT_EQ(route_of(file_with("rewrite: {strip-prefix: /v1, add-prefix: /api/x}")).rewrite,
            (rewrite_config{"/v1", "/api/x", ""}));
  EXPECT_EQ(route_of(file_with("rewrite: {add-prefix: /api}", "/**")).rewrite,
            (rewrite_config{"", "/api", ""}));
  EXPECT_EQ(route_of(file_with("rewrite: {strip-prefix: /a/b}", "/a/b")).rewrite,
            (rewrite_config{"/a/b", "", ""}));
  EXPECT_EQ(route_of(file_with("rewrite: {path: '/u-{1}/{**}'}")).rewrite,
            (rewrite_config{"", "", "/u-{1}/{**}"}));
  auto const sent =
      route_of(file_without_upstream("redirect: {to: 'https://b.example:8443/x/{1}/{**}'}"));
  EXPECT_EQ(sent.service, route_service::redirect);
  EXPECT_EQ(sent.redirect, (redirect_config{"https://b.example:8443/x/{1}/{**}", 308}));
  for (auto const status : {301, 302, 303, 307, 308}) {
    auto const text = "redirect: {to: /new, status: " + std::to_string(status) + "}";
    EXPECT_EQ(route_of(file_without_upstream(text)).redirect, (redirect_config{"/new", status}));
  }
  EXPECT_EQ(route_of(file_without_upstream("redirect: {to: 'http://b.example'}")).redirect,
            (redirect_config{"http://b.example", 308}));
  auto const said = route_of(file_without_upstream("respond: {body: \"a\\nb\"}"));
  EXPECT_EQ(said.service, route_service::respond);
  EXPECT_EQ(said.respond, (respond_config{200, "text/plain; charset=utf-8", "a\nb"}));
  EXPECT_EQ(route_of(file_without_upstream("respond: {}")).respond, (respond_config{200, "", ""}));
  EXPECT_EQ(route_of(file_without_upstream(
                         "respond: {status: 503, content-type: application/json, body: '{}'}"))
                .respond,
            (respond_config{503, "application/json", "{}"}));
}

TEST(config_edge, reads_networks_and_bounds) {
  auto const route =
      route_of(file_with("allow: [10.0.0.0/8, '2001:db8::/32'], deny: 10.1.2.3, max-body: 1MiB, "
                         "timeout: 5s"));
  ASSERT_EQ(route.allow.size(), 2U);
  EXPECT_EQ(to_string(route.allow[1]), "2001:db8::/32");
  ASSERT_EQ(route.deny.size(), 1U);
  EXPECT_EQ(route.max_body, 1024 * 1024);
  EXPECT_EQ(route.timeout, 5s);
}

TEST(config_edge, takes_the_bound_of_a_body_for_a_directory_at_both_places) {
  std::string const start = "routes: [{match: {path: /scim/**}, service: scim, ";
  auto const outside = route_of(start + "max-body: 2MiB}]\n");
  EXPECT_EQ(outside.max_body, 2 * 1024 * 1024);
  ASSERT_TRUE(outside.scim);
  EXPECT_EQ(outside.scim->max_body, 2 * 1024 * 1024);
  auto const inside = route_of(start + "scim: {max-body: 2MiB}}]\n");
  EXPECT_EQ(inside.max_body, std::nullopt);
  EXPECT_EQ(inside.scim->max_body, 2 * 1024 * 1024);
  EXPECT_THAT(faults_of(start + "max-body: 2MiB, scim: {max-body: 1MiB}}]\n"),
              ElementsAre("1:51: duplicate key \"max-body\"; it is already in \"scim\" in line 1"));
  EXPECT_THAT(faults_of(start + "max-body: 65MiB}]\n"),
              ElementsAre(HasSubstr("1:61: max-body: out of range for \"service: scim\" (expected "
                                    "a size")));
  EXPECT_THAT(parse_config(start + "max-body: 2MiB}]\n", "t")->warnings, IsEmpty());
}

TEST(config_edge, reads_what_a_request_must_have) {
  auto const route = route_of(
      file_with_match("path: /a, headers: {X-Version: 2, x-beta: '*'}, query: {q: 'a b', 'f[x]': "
                      "true, e: ''}, host: '*.Example.com'"));
  EXPECT_EQ(route.match.headers, (std::vector<value_match>{{"x-version", "2"}, {"x-beta"}}));
  EXPECT_EQ(route.match.query,
            (std::vector<value_match>{{"q", "a b"}, {"f[x]", "true"}, {"e", ""}}));
  EXPECT_EQ(route.match.host, "*.example.com");
  EXPECT_EQ(route.name, "*.example.com/a?q=a b&f[x]=true&e=* x-version:2 x-beta:*");
}

TEST(config_edge, gives_routes_names_without_what_may_be_a_secret) {
  auto const route =
      route_of(file_with_match("headers: {X-Api-Key: hush}, query: {access_token: hush}"));
  EXPECT_EQ(route.name, "/**?access_token=* x-api-key:*");
}

TEST(config_edge, tells_routes_apart_by_headers_and_query) {
  auto const text = [](std::string_view first, std::string_view second) {
    return "routes:\n- {match: {" + std::string(first) + "}, service: echo}\n- {match: {" +
           std::string(second) + "}, service: echo}\n";
  };
  auto const warnings = [&](std::string_view first, std::string_view second) {
    auto const made = parse_config(text(first, second), "t");
    return made ? made->warnings.size() : 99;
  };
  EXPECT_EQ(warnings("headers: {x: 1}", "headers: {x: 2}"), 0U);
  EXPECT_EQ(warnings("headers: {x: 1}", "path: /**"), 0U);
  EXPECT_EQ(warnings("headers: {x: '*'}", "headers: {x: 1}"), 1U);
  EXPECT_EQ(warnings("query: {x: 1}", "query: {x: 1, y: 2}"), 1U);
  EXPECT_EQ(warnings("host: '*.b.example'", "host: a.b.example"), 1U);
  EXPECT_EQ(warnings("host: '*.b.example'", "host: b.example"), 0U);
  EXPECT_THAT(faults_of(text("headers: {x: 1}", "headers: {X: 1}")),
              ElementsAre("3:3: never reached: the route in line 2 has the same match"));
  EXPECT_THAT(faults_of(text("headers: {x-key: 1}", "headers: {x-key: 2}")),
              ElementsAre("3:3: \"name\" is missing: the route in line 2 is called \"/** "
                          "x-key:*\" too"));
}

TEST(config_edge, knows_where_clients_find_https) {
  auto const port = [](std::string_view listen) {
    auto const made = parse_config(
        "listen: " + std::string(listen) + "\nroutes: [{match: {}, service: echo}]\n", "t");
    return made ? static_cast<int>(made->https_port) : -1;
  };
  std::string const plain = "{address: ':80', redirect-to-https: true}";
  std::string const tls = "tls: {certificate: c, key: k}}";
  EXPECT_EQ(port("[" + plain + "]"), 443);
  EXPECT_EQ(port("[" + plain + ", {address: ':8443', " + tls + ", {address: ':9443', " + tls + "]"),
            8443);
  EXPECT_EQ(port("[{address: 'unix:/run/a:1', " + tls + ", {address: '[::1]:444', " + tls + "]"),
            444);
  EXPECT_EQ(port("[{address: '127.0.0.1:0', " + tls + "]"), 0);
  auto const made =
      parse_config("listen: [" + plain + "]\nroutes: [{match: {}, service: echo}]\n", "t");
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->listen.front().redirect_to_https);
}

TEST(config_edge, reads_how_many_bits_of_an_address_tell_clients_apart) {
  auto const bits = [](std::string_view text) {
    auto const made =
        parse_config(std::string(text) + "\nroutes: [{match: {}, service: echo}]\n", "t");
    return made ? made->client_ip.ipv6_prefix : -1;
  };
  EXPECT_EQ(bits(""), 64);
  EXPECT_EQ(bits("client-ip: {ipv6-prefix: 128}"), 128);
  EXPECT_EQ(bits("client-ip: {ipv6-prefix: 0}"), -1);
  EXPECT_EQ(bits("client-ip: {ipv6-prefix: 129}"), -1);
}

struct refused {
  char const* name;
  std::string text;
  std::vector<std::string> faults;
};

void expect_refused(std::vector<refused> const& rows) {
  for (auto const& [name, text, wanted] : rows) {
    auto const found = faults_of(text);
    ASSERT_EQ(found.size(), wanted.size()) << name << testing::PrintToString(found);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_THAT(found[i], testing::StartsWith(wanted[i])) << name;
    }
  }
}

TEST(config_edge, refuses_origins_that_no_browser_sends) {
  auto const with_origins = [](std::string const& origins) {
    return file_with("cors: {origins: " + origins + "}");
  };
  expect_refused({
      {"none", file_with("cors: {}"), {"4:16: \"origins\" is missing (expected * or an origin"}},
      {"an_empty_list",
       with_origins("[]"),
       {"4:26: origins: empty list (expected at least one origin, or \"*\")"}},
      {"no_text", with_origins("[null]"), {"4:27: origins: empty (expected an origin; the origin"}},
      {"a_star_in_a_list",
       with_origins("['*', 'https://a.example']"),
       {"4:27: origins: \"*\" is not allowed in a list (expected origins: \"*\" for every"}},
      {"a_wildcard",
       with_origins("'https://*.example.com'"),
       {"4:26: origins: invalid origin \"https://*.example.com\": \"*\" is not a part of one"}},
      {"no_scheme",
       with_origins("app.example.com"),
       {"4:26: origins: invalid origin \"app.example.com\": it begins with a scheme"}},
      {"a_scheme_in_capitals",
       with_origins("'HTTPS://a.example'"),
       {"4:26: origins: invalid origin \"HTTPS://a.example\": it begins with a scheme in lower"}},
      {"a_host_in_capitals",
       with_origins("'https://App.example.com'"),
       {"4:26: origins: invalid origin \"https://App.example.com\": browsers send a host in lower "
        "case and no default port; did you mean \"https://app.example.com\"?"}},
      {"a_default_port",
       with_origins("'https://a.example:443'"),
       {"4:26: origins: invalid origin \"https://a.example:443\": browsers send a host in lower "
        "case and no default port; did you mean \"https://a.example\"?"}},
      {"a_slash_at_its_end",
       with_origins("'https://a.example/'"),
       {"4:26: origins: invalid origin \"https://a.example/\": it has no path, and no slash"}},
      {"a_path",
       with_origins("'https://a.example/x'"),
       {"4:26: origins: invalid origin \"https://a.example/x\": it has no path"}},
      {"a_user",
       with_origins("'https://u@a.example'"),
       {"4:26: origins: invalid origin \"https://u@a.example\" (expected"}},
      {"no_host", with_origins("'https://'"), {"4:26: origins: invalid origin \"https://\" ("}},
      {"a_port_of_zeros",
       with_origins("'https://a.example:0080'"),
       {"4:26: origins: invalid origin \"https://a.example:0080\""}},
      {"one_twice",
       with_origins("['https://a.example', 'https://a.example']"),
       {"4:48: origins: duplicate \"https://a.example\""}},
      {"every_origin_with_credentials",
       file_with("cors: {origins: '*', credentials: true}"),
       {"4:44: credentials: not with origins: \"*\", which would let every page use them"}},
      {"methods_in_lower_case",
       file_with("cors: {origins: '*', methods: [get]}"),
       {"4:41: methods: invalid method \"get\""}},
      {"every_method",
       file_with("cors: {origins: '*', methods: '*'}"),
       {"4:40: methods: \"*\" is not allowed here; name each method"}},
      {"no_method",
       file_with("cors: {origins: '*', methods: []}"),
       {"4:40: methods: empty list (expected at least one method, or no \"methods\""}},
      {"every_header",
       file_with("cors: {origins: '*', headers: '*'}"),
       {"4:40: headers: \"*\" is not allowed here; name each header (expected the name of"}},
      {"no_header", file_with("cors: {origins: '*', headers: []}"), {"4:40: headers: empty list"}},
      {"a_header_with_a_space",
       file_with("cors: {origins: '*', headers: ['X A']}"),
       {"4:41: headers: invalid header name \"X A\" (expected the name of a header"}},
      {"a_header_twice",
       file_with("cors: {origins: '*', expose: [X-A, x-a]}"),
       {"4:39: expose: duplicate \"x-a\""}},
      {"a_part_of_a_second",
       file_with("cors: {origins: '*', max-age: 1500ms}"),
       {"4:40: max-age: must be whole seconds (expected e.g. 10m)"}},
      {"longer_than_a_day",
       file_with("cors: {origins: '*', max-age: 25h}"),
       {"4:40: max-age: \"25h\" is out of range"}},
  });
}

TEST(config_edge, refuses_rules_for_headers_that_are_not_the_operators) {
  std::vector<refused> rows;
  for (std::string const name : {"Content-Length",
                                 "transfer-encoding",
                                 "Connection",
                                 "Keep-Alive",
                                 "Proxy-Connection",
                                 "Upgrade",
                                 "TE",
                                 "Trailer",
                                 "Via",
                                 "Retry-After",
                                 "RateLimit",
                                 "RateLimit-Policy",
                                 "RateLimit-Limit",
                                 "X-RateLimit-Remaining",
                                 "Idempotency-Key",
                                 "Idempotency-Attempt",
                                 "Idempotency-Status",
                                 "Idempotent-Replayed",
                                 "HTTP2-Settings",
                                 "Sec-WebSocket-Key",
                                 "Content_Length",
                                 "X_RateLimit_Limit",
                                 "Transfer.Encoding",
                                 "_Connection_"}) {
    for (std::string const side : {"request", "response"}) {
      auto const column = std::to_string(10 + side.size() + 3 + 6);
      auto const reason = ": set: \"" + name + "\" cannot be changed: ";
      rows.push_back(
          {"set", file_with(side + ": {set: {" + name + ": a}}"), {"4:" + column + reason}});
    }
    rows.push_back({"add", file_with("response: {add: {" + name + ": a}}"), {"4:27: add: \""}});
    rows.push_back(
        {"remove", file_with("response: {remove: [" + name + "]}"), {"4:30: remove: \""}});
  }
  expect_refused(rows);
  expect_refused({
      {"a_second_host",
       file_with("request: {add: {Host: a}}"),
       {"4:26: add: \"Host\" cannot be changed: a request has one Host; only \"set\""}},
      {"no_host", file_with("request: {remove: [host]}"), {"4:29: remove: \"host\" cannot be"}},
      {"an_invalid_host",
       file_with("request: {set: {Host: 'a b'}}"),
       {"4:32: set: invalid host \"a b\" (expected a host, perhaps with a port)"}},
      {"one_more_proxy",
       file_with("request: {add: {X-Forwarded-For: a}}"),
       {"4:26: add: \"X-Forwarded-For\" cannot be changed: a second one would name"}},
      {"another_spelling",
       file_with("request: {set: {X_Forwarded_For: a}}"),
       {"4:26: set: \"X_Forwarded_For\" cannot be changed: servers read it as "
        "\"x-forwarded-for\"; write that name"}},
      {"what_cors_writes",
       file_with("cors: {origins: '*'}, response: {set: {Access-Control-Allow-Origin: a}}"),
       {"4:49: set: \"Access-Control-Allow-Origin\" cannot be changed: \"cors\" of the route"}},
      {"what_cors_needs",
       file_with("cors: {origins: '*'}, response: {remove: [Vary]}"),
       {"4:52: remove: \"Vary\" cannot be changed: \"cors\" of the route needs it; only \"add\""}},
      {"one_twice",
       file_with("request: {set: {X-A: a},\nadd: {x-a: b}, remove: [X-a]}"),
       {"5:7: add: duplicate header \"x-a\"; it is already in line 4",
        "5:25: remove: duplicate header \"X-a\"; it is already in line 4"}},
      {"hsts_twice",
       file_with("response: {hsts: 1d, set: {strict-transport-security: a}}"),
       {"4:27: hsts: a rule of this route writes Strict-Transport-Security too"}},
      {"a_part_of_a_second",
       file_with("response: {hsts: 1500ms}"),
       {"4:27: hsts: must be whole seconds"}},
      {"an_unknown_preset",
       file_with("response: {preset: web}"),
       {"4:29: preset: unknown value \"web\" (expected api)"}},
      {"a_preset_of_requests",
       file_with("request: {preset: api}"),
       {"4:20: unknown key \"preset\"; did you mean \"set\"? (expected set, add, remove)"}},
  });
  EXPECT_THAT(faults_of(file_with("response: {set: {Access-Control-Allow-Origin: '*', Vary: a}}")),
              IsEmpty());
}

TEST(config_edge, refuses_text_that_ends_a_header_and_does_not_show_it) {
  auto const with_value = [](std::string const& value) {
    return file_with("request: {set: {X-A: " + value + "}}");
  };
  expect_refused({
      {"a_line_break",
       with_value("\"hush\\r\\nX-B: c\""),
       {"4:31: set: invalid header value: it has a line break or another control character "
        "(expected the text of a header)"}},
      {"a_new_line", with_value("\"hush\\nX-B: c\""), {"4:31: set: invalid header value: it has"}},
      {"a_zero", with_value("\"hush\\0\""), {"4:31: set: invalid header value: it has a line"}},
      {"a_space_at_its_end",
       with_value("'hush '"),
       {"4:31: set: invalid header value: it begins or ends with a space"}},
      {"a_tab_before_it",
       with_value("\"\\thush\""),
       {"4:31: set: invalid header value: it begins or ends with a space"}},
      {"nothing", with_value("''"), {"4:31: set: invalid header value: it is empty"}},
      {"no_value", with_value(""), {"4:26: \"X-A\" has no value"}},
      {"a_list", with_value("[a, b]"), {"4:31: set: must be a single value"}},
      {"too_long",
       with_value(std::string(4097, 'a')),
       {"4:31: set: invalid header value: it is longer than 4096 bytes"}},
      {"a_name_with_a_space",
       file_with("request: {set: {'X A': a}}"),
       {"4:26: set: invalid header name \"X A\" (expected the name of a header"}},
      {"a_name_with_a_colon",
       file_with("request: {set: {':path': a}}"),
       {"4:26: set: invalid header name \":path\""}},
      {"a_name_with_a_line_break",
       file_with("request: {remove: [\"a\\r\\nb\"]}"),
       {"4:29: remove: invalid header name \""}},
      {"not_a_mapping",
       file_with("request: {set: [X-A]}"),
       {"4:25: set: expected a mapping from names"}},
  });
  for (auto const* const value : {"\"hush\\n\"", "'hush '"}) {
    EXPECT_THAT(faults_of(with_value(value)), Not(Contains(HasSubstr("hush"))));
  }
  std::string many;
  for (int i = 0; i < 65; ++i) {
    many += "X-" + std::to_string(i) + ": a, ";
  }
  EXPECT_THAT(faults_of(file_with("request: {set: {" + many + "}}")),
              ElementsAre("4:19: too many headers (expected at most 64)"));
}

TEST(config_edge, refuses_paths_that_a_match_cannot_fill) {
  auto const with_path = [](std::string const& path, std::string_view pattern = "/v1/*/**") {
    return file_with("rewrite: {path: '" + path + "'}", pattern);
  };
  expect_refused({
      {"nothing",
       file_with("rewrite: {}"),
       {"4:19: rewrite: empty (expected strip-prefix, add-prefix or path)"}},
      {"both",
       file_with("rewrite: {path: /a, add-prefix: /b}"),
       {"4:20: path: cannot be combined with \"strip-prefix\" and \"add-prefix\""}},
      {"a_prefix_of_another_path",
       file_with("rewrite: {strip-prefix: /v2}"),
       {"4:34: strip-prefix: the path of the match, \"/v1/*/**\", does not begin with \"/v2\""}},
      {"half_a_segment",
       file_with("rewrite: {strip-prefix: /v}"),
       {"4:34: strip-prefix: the path of the match, \"/v1/*/**\", does not begin with \"/v\""}},
      {"more_than_is_known",
       file_with("rewrite: {strip-prefix: /v1/a}"),
       {"4:34: strip-prefix: the path of the match, \"/v1/*/**\", does not begin with"}},
      {"a_prefix_of_all_paths",
       file_with("rewrite: {strip-prefix: /v1}", "/**"),
       {"4:34: strip-prefix: the path of the match, \"/**\", does not begin with \"/v1\""}},
      {"just_a_slash",
       file_with("rewrite: {strip-prefix: /}"),
       {"4:34: strip-prefix: invalid prefix \"/\": every path begins with it"}},
      {"a_slash_at_its_end",
       file_with("rewrite: {strip-prefix: /v1/}"),
       {"4:34: strip-prefix: invalid prefix \"/v1/\": a slash at its end"}},
      {"two_slashes",
       file_with("rewrite: {add-prefix: //a}"),
       {"4:32: add-prefix: invalid prefix \"//a\": a slash at its end, or two in a row"}},
      {"no_slash",
       file_with("rewrite: {add-prefix: api}"),
       {"4:32: add-prefix: invalid prefix \"api\": a path begins with /"}},
      {"a_wildcard",
       file_with("rewrite: {strip-prefix: '/v1/*'}"),
       {"4:34: strip-prefix: invalid prefix \"/v1/*\": wildcards and captures are not allowed"}},
      {"dots",
       file_with("rewrite: {add-prefix: /a/..}"),
       {"4:32: add-prefix: invalid prefix \"/a/..\": segments . and .. are removed"}},
      {"a_query",
       file_with("rewrite: {add-prefix: '/a?b'}"),
       {"4:32: add-prefix: invalid prefix \"/a?b\": not allowed in a path"}},
      {"no_slash_of_a_template",
       with_path("a"),
       {"4:26: path: \"a\": a path begins with / (expected a path, e.g. /users/{1}"}},
      {"a_star_too_many",
       with_path("/{2}"),
       {"4:26: path: \"/{2}\": {2} needs a match with 2 *; it has 1"}},
      {"no_rest",
       with_path("/{**}", "/a/*"),
       {"4:26: path: \"/{**}\": {**} needs a match that ends with /**"}},
      {"number_zero", with_path("/{0}"), {"4:26: path: \"/{0}\": unknown capture \"{0}\"; there"}},
      {"a_name", with_path("/{id}"), {"4:26: path: \"/{id}\": unknown capture \"{id}\""}},
      {"a_leading_zero", with_path("/{01}"), {"4:26: path: \"/{01}\": unknown capture"}},
      {"an_endless_number",
       with_path("/{99999999999999999999}"),
       {"4:26: path: \"/{99999999999999999999}\": unknown capture"}},
      {"not_closed", with_path("/{1"), {"4:26: path: \"/{1\": \"{\" without \"}\""}},
      {"not_opened", with_path("/1}"), {"4:26: path: \"/1}\": \"}\" without \"{\""}},
      {"one_in_another", with_path("/{{1}}"), {"4:26: path: \"/{{1}}\": unknown capture \"{{1}\""}},
      {"stars", with_path("/a/**"), {"4:26: path: \"/a/**\": * is written as {1}"}},
      {"a_query_of_a_template",
       with_path("/a?x={1}"),
       {"4:26: path: \"/a?x={1}\": a path has no query"}},
      {"a_space", with_path("/a b"), {"4:26: path: \"/a b\": not allowed in a path"}},
      {"dots_of_a_template", with_path("/a/../{1}"), {"4:26: path: \"/a/../{1}\": segments . and"}},
      {"dots_beside_a_capture",
       with_path("/.{1}/a"),
       {"4:26: path: \"/.{1}/a\": a segment of dots and a capture could become \"..\""}},
      {"dots_behind_a_capture", with_path("/{1}.."), {"4:26: path: \"/{1}..\": a segment of dots"}},
      {"an_escape_without_digits", with_path("/%{1}"), {"4:26: path: \"/%{1}\": % is followed by"}},
      {"half_an_escape", with_path("/%2{1}"), {"4:26: path: \"/%2{1}\": % is followed by two"}},
  });
}

TEST(config_edge, refuses_redirects_to_what_an_operator_did_not_write) {
  auto const with_target = [](std::string const& to, std::string_view pattern = "/v1/*/**") {
    return file_without_upstream("redirect: {to: '" + to + "'}", pattern);
  };
  expect_refused({
      {"no_target",
       file_without_upstream("redirect: {}"),
       {"2:11: \"to\" is missing (expected a URL or a path"}},
      {"an_empty_target", with_target(""), {"2:16: to: empty (expected a URL or a path"}},
      {"another_scheme",
       with_target("javascript:alert(1)"),
       {"2:16: to: \"javascript:alert(1)\": it begins with http://, https:// or one slash"}},
      {"a_scheme_in_capitals",
       with_target("HTTPS://a.example"),
       {"2:16: to: \"HTTPS://a.example\": it begins with"}},
      {"the_scheme_of_the_request",
       with_target("//a.example/{**}"),
       {"2:16: to: \"//a.example/{**}\": it begins with http://, https:// or one slash"}},
      {"a_backslash",
       with_target("/\\a.example"),
       {"2:16: to: \"/\\a.example\": not allowed in a"}},
      {"a_capture_for_a_host",
       with_target("https://{1}/a"),
       {"2:16: to: \"https://{1}/a\": captures are allowed only in the path"}},
      {"a_capture_behind_a_host",
       with_target("https://a.example{1}"),
       {"2:16: to: \"https://a.example{1}\": captures are allowed only in the path"}},
      {"a_capture_for_a_port",
       with_target("https://a.example:{1}/"),
       {"2:16: to: \"https://a.example:{1}/\": captures are allowed only in the path"}},
      {"a_user",
       with_target("https://u@a.example/"),
       {"2:16: to: \"https://u@a.example/\": invalid"}},
      {"no_host", with_target("https:///a"), {"2:16: to: \"https:///a\": invalid host \"\""}},
      {"a_wildcard",
       with_target("https://*.example/"),
       {"2:16: to: \"https://*.example/\": invalid"}},
      {"no_port",
       with_target("https://a.example:/"),
       {"2:16: to: \"https://a.example:/\": invalid"}},
      {"a_query",
       with_target("/login?next={**}"),
       {"2:16: to: \"/login?next={**}\": it has no query; that of the request is kept"}},
      {"a_fragment", with_target("/a#b"), {"2:16: to: \"/a#b\": it has no fragment"}},
      {"no_such_capture",
       with_target("/a/{1}", "/v1/**"),
       {"2:16: to: \"/a/{1}\": {1} needs a match with 1 *; it has 0"}},
      {"a_status_of_another_kind",
       file_without_upstream("redirect: {to: /a, status: 304}"),
       {"2:28: status: unknown value \"304\""}},
      {"a_status_out_of_range",
       file_without_upstream("respond: {status: 199}"),
       {"2:19: status: \"199\" is out of range (expected a number from 200 to 599)"}},
      {"a_body_without_room",
       file_without_upstream("respond: {status: 204, body: a}"),
       {"2:24: body: a response with status 204 has no body"}},
      {"a_type_of_nothing",
       file_without_upstream("respond: {status: 304, content-type: a/b}"),
       {"2:24: content-type: a response with status 304 has no body"}},
      {"a_type_with_a_line_break",
       file_without_upstream("respond: {content-type: \"a/b\\nX: y\", body: a}"),
       {"2:25: content-type: invalid header value"}},
      {"a_body_of_a_mapping",
       file_without_upstream("respond: {body: {a: b}}"),
       {"2:17: body: must be a single value"}},
      {"a_body_too_large",
       file_without_upstream("respond: {body: " + std::string(64 * 1024 + 1, 'a') + "}"),
       {"2:17: body: too large (expected at most 64KiB)"}},
  });
}

TEST(config_edge, refuses_options_that_mean_nothing_beside_others) {
  expect_refused({
      {"none_who_answers",
       "routes: [{match: {path: /}}]\n",
       {"1:10: \"upstream\" is missing (expected \"upstream\", \"service\", \"redirect\" or "
        "\"respond\")"}},
      {"two_who_answer",
       file_with("redirect: {to: /a}"),
       {"4:10: \"redirect\" and \"upstream\" cannot be combined (expected one of them)"}},
      {"two_answers",
       file_without_upstream("redirect: {to: /a}, respond: {}"),
       {"2:21: \"respond\" and \"redirect\" cannot be combined (expected one of them)"}},
      {"a_service_too",
       file_without_upstream("service: echo, respond: {}"),
       {"2:16: \"respond\" and \"service\" cannot be combined (expected one of them)"}},
      {"what_needs_an_upstream",
       file_without_upstream("respond: {}, rewrite: {add-prefix: /a}, request: {}, timeout: 1s"),
       {"2:14: rewrite: only for a route with \"upstream\"",
        "2:41: request: only for a route with \"upstream\"",
        "2:54: timeout: only for a route with \"upstream\""}},
      {"what_a_service_has_not",
       file_without_upstream("service: echo, rewrite: {add-prefix: /a}"),
       {"2:16: rewrite: only for a route with \"upstream\""}},
      {"an_upgrade",
       file_without_upstream("redirect: {to: /a}, upgrade: websocket"),
       {"2:21: upgrade: only for a route with \"upstream\""}},
      {"a_bridge",
       file_without_upstream("redirect: {to: /a}, bridge: scim-cursor"),
       {"2:21: bridge: only for a route with \"upstream\""}},
      {"a_directory",
       file_without_upstream("redirect: {to: /a}, scim: {max-page-size: 3}"),
       {"2:28: max-page-size: only for \"service: scim\" or \"bridge: scim-cursor\""}},
      {"keys",
       file_without_upstream("respond: {}, idempotency: {mode: required}"),
       {"2:14: idempotency: not beside \"redirect\" and \"respond\""}},
      {"no_network_that_is_allowed",
       file_with("allow: []"),
       {"4:17: allow: empty list (expected at least one network, or no \"allow\""}},
      {"no_network_that_is_not", file_with("deny: []"), {"4:16: deny: empty list"}},
      {"bits_behind_a_prefix",
       file_with("deny: [10.0.0.1/8]"),
       {"4:17: deny: \"10.0.0.1/8\" has bits after its prefix; did you mean \"10.0.0.0/8\"?"}},
      {"a_body_of_no_size", file_with("max-body: none"), {"4:20: max-body: invalid size \"none\""}},
      {"no_time", file_with("timeout: 0s"), {"4:19: timeout: \"0s\" is out of range"}},
      {"a_redirect_to_itself",
       "listen: {address: ':80', redirect-to-https: true, tls: {certificate: c, key: k}}\n"
       "routes: [{match: {}, service: echo}]\n",
       {"1:26: redirect-to-https: only for a listener without \"tls\""}},
      {"cors_for_all_routes",
       "cors: {}\nroutes: [{match: {}, service: echo}]\n",
       {"1:1: unknown key \"cors\"; did you mean \"cors of a route\"? (expected listen"}},
      {"a_prefix_of_the_route",
       file_with("strip-prefix: /v1"),
       {"4:10: unknown key \"strip-prefix\"; did you mean \"rewrite: {strip-prefix: ...}\"? ("}},
  });
}

TEST(config_edge, warns_of_what_is_allowed_and_means_nothing) {
  auto const warnings = [](std::string const& text) {
    std::vector<std::string> found;
    if (auto const made = parse_config(text, "t")) {
      for (auto const& each : made->warnings) {
        found.push_back(to_string(each).substr(2));
      }
    }
    return found;
  };
  EXPECT_THAT(
      warnings(file_with("allow: [10.1.0.0/16, 192.0.2.1], deny: [10.0.0.0/8, 10.1.1.0/24]")),
      ElementsAre("4:17: allow: \"10.1.0.0/16\" lets nothing in: \"deny\" has "
                  "\"10.0.0.0/8\""));
  EXPECT_THAT(warnings(file_with("allow: 10.0.0.0/8, deny: 10.1.0.0/16")), IsEmpty());
  EXPECT_THAT(warnings("routes:\n- {match: {methods: [GET]}, service: echo, cors: {origins: '*', "
                       "methods: [GET, PUT]}}\n"),
              ElementsAre("2:74: methods: the match of the route does not have \"PUT\", so no page "
                          "can use it here"));
}

TEST(config_edge, refuses_matches_that_no_request_meets) {
  std::vector<refused> rows;
  for (std::string const name : {"Connection", "TE", "keep-alive", "Upgrade", "Transfer-Encoding",
                                 "Trailer", "Proxy-Connection", "HTTP2-Settings", "Host"}) {
    rows.push_back({"of_one_connection",
                    file_with_match("headers: {" + name + ": a}"),
                    {"3:22: headers: \""}});
  }
  expect_refused(rows);
  expect_refused({
      {"no_name", file_with_match("headers: {'x y': a}"), {"3:22: headers: invalid header name"}},
      {"one_twice",
       file_with_match("headers: {x: a, X: b}"),
       {"3:28: headers: duplicate header \"X\""}},
      {"one_twice_alike",
       file_with_match("headers: {x: a, x: b}"),
       {"3:28: duplicate name \"x\"; it is already in line 3"}},
      {"a_line_break",
       file_with_match("headers: {x: \"a\\nb\"}"),
       {"3:25: headers: invalid header value"}},
      {"a_list", file_with_match("headers: {x: [a]}"), {"3:25: headers: must be a single value"}},
      {"no_value", file_with_match("query: {x: }"), {"3:20: \"x\" has no value"}},
      {"not_a_mapping",
       file_with_match("query: x"),
       {"3:19: query: expected a mapping from names"}},
      {"a_star_in_the_middle",
       file_with_match("host: 'a.*.example'"),
       {"3:18: host: invalid host \"a.*.example\": \"*\" is allowed only as the first label"}},
      {"a_star_beside_text",
       file_with_match("host: 'a*.example'"),
       {"3:18: host: invalid host \"a*.example\""}},
      {"two_stars",
       file_with_match("host: '*.*.example'"),
       {"3:18: host: invalid host \"*.*.example\""}},
      {"a_star_alone", file_with_match("host: '*'"), {"3:18: host: invalid host \"*\""}},
      {"a_star_and_a_dot", file_with_match("host: '*.'"), {"3:18: host: invalid host \"\""}},
      {"a_star_before_an_address",
       file_with_match("host: '*.[::1]'"),
       {"3:18: host: invalid host \"*.[::1]\""}},
      {"a_star_and_a_port",
       file_with_match("host: '*.example:80'"),
       {"3:18: host: \"example:80\" has a port"}},
  });
  std::string many;
  for (int i = 0; i < 17; ++i) {
    many += "a" + std::to_string(i) + ": b, ";
  }
  EXPECT_THAT(faults_of(file_with_match("query: {" + many + "}")),
              ElementsAre("3:19: query: too many (expected at most 16)"));
}

TEST(config_edge, shows_effective_values_without_credentials) {
  auto const made = parse_config(
      file_with("request: {set: {Authorization: Basic aHVzaA==, X-A: b}}, max-body: 2MiB"), "t");
  ASSERT_TRUE(made);
  std::vector<std::string> lines;
  for (auto const& each : made->effective) {
    lines.push_back(each.path + " = " + each.value);
  }
  EXPECT_THAT(
      lines, AllOf(Contains("routes[/v1/*/**].request.set.Authorization = (hidden)"),
                   Contains("routes[/v1/*/**].request.set.X-A = b"),
                   Contains("routes[/v1/*/**].max-body = 2MiB"), Not(Contains(HasSubstr("aHVzaA"))),
                   Not(Contains(HasSubstr("respond"))), Not(Contains(HasSubstr("redirect.status"))),
                   Contains("client-ip.ipv6-prefix = 64")));
}

TEST(config_edge, has_a_schema_that_takes_numbers_for_text) {
  auto const schema = config_json_schema();
  EXPECT_THAT(schema, HasSubstr(R"("enum":["301",301,"302",302,)"));
  EXPECT_THAT(schema,
              HasSubstr(R"("additionalProperties":{"type":["string","number","boolean"]})"));
}

}  // namespace
}  // namespace tidegate::gateway
