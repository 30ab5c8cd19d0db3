// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/cors_rules.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view one_upstream = "upstreams: {api: \"http://127.0.0.1:1\"}\n";

/// `cors` with these origins.
[[nodiscard]] auto cors_of(std::vector<std::string> origins, std::vector<std::string> methods = {},
                           std::vector<std::string> headers = {}) -> cors_config {
  cors_config made;
  made.origins = std::move(origins);
  made.methods = std::move(methods);
  made.headers = std::move(headers);
  return made;
}

[[nodiscard]] auto lasting(cors_config made, std::chrono::nanoseconds max_age) -> cors_config {
  made.max_age = max_age;
  return made;
}

[[nodiscard]] auto with_credentials(cors_config made) -> cors_config {
  made.credentials = true;
  return made;
}

/// A configuration whose first route has `cors`.
[[nodiscard]] auto config_with(std::string const& text, cors_config const& cors) -> config {
  auto read = parse_config("listen: 127.0.0.1:0\n" + text, "t.yaml");
  EXPECT_TRUE(read) << (read ? "" : read.error().front().message);
  read->routes.front().cors = cors;
  return *std::move(read);
}

[[nodiscard]] auto rules_of(config const& all) -> cors_rules {
  return {all.routes.front(), all};
}

[[nodiscard]] auto echo_with(cors_config const& cors) -> cors_rules {
  return rules_of(config_with("routes: [{match: {path: /**}, service: echo}]\n", cors));
}

TEST(proxy_cors_rules, allow_origins_that_are_listed_octet_by_octet) {
  auto const rules = echo_with(
      cors_of({"https://b.example", "https://a.example:8443", "null", "http://[::1]:80"}));
  for (auto const* const origin :
       {"https://b.example", "https://a.example:8443", "null", "http://[::1]:80"}) {
    EXPECT_EQ(rules.line_for(origin),
              "Access-Control-Allow-Origin: " + std::string(origin) + "\r\n");
  }
  for (std::string const origin :
       {"", "*", "https://a.example", "https://b.example/", "https://B.example",
        "HTTPS://b.example", "http://b.example", "https://b.example:443",
        "https://b.example.evil.example", "https://evil.example/https://b.example",
        "https://b.example https://b.example", "https://b.example, https://b.example", "Null",
        "b.example", "https://sub.b.example", "https://b.exampl", "https://b.examplf",
        "https://\xc3\xa4.example"}) {
    EXPECT_EQ(rules.line_for(origin), "") << origin;
  }
  EXPECT_EQ(rules.line_for(std::string(100'000, 'a')), "");
  EXPECT_EQ(rules.line_for_none(), "");
  EXPECT_EQ(rules.foreign_lines(), "Vary: Origin\r\n");
}

TEST(proxy_cors_rules, allow_any_origin_by_an_asterisk_that_does_not_vary) {
  cors_config any;
  any.any_origin = true;
  auto const rules = echo_with(any);
  for (auto const* const origin : {"https://a.example", "null", "", "nonsense"}) {
    EXPECT_EQ(rules.line_for(origin), "Access-Control-Allow-Origin: *\r\n") << origin;
  }
  EXPECT_EQ(rules.line_for_none(), "Access-Control-Allow-Origin: *\r\n");
  EXPECT_EQ(rules.foreign_lines(), "");
  EXPECT_THAT(std::string(rules.allowed_lines()), Not(HasSubstr("Vary")));
  EXPECT_EQ(rules.refusal_lines(),
            "Vary: Access-Control-Request-Method, Access-Control-Request-Headers\r\n");
}

TEST(proxy_cors_rules, say_what_a_preflight_learns) {
  struct row {
    std::string_view what;
    std::string match;
    cors_config cors;
    std::string lines;
    std::string headers;
  };
  std::string const vary =
      "Vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers\r\n";
  std::string const usual = "Authorization, Content-Type, Idempotency-Key, Prefer";
  for (auto const& [what, match, cors, lines, headers] : std::vector<row>{
           {"defaults", "path: /**", lasting(cors_of({"https://a"}), 10min),
            "Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE\r\n"
            "Access-Control-Max-Age: 600\r\n",
            usual},
           {"methods of the match", "path: /**, methods: [GET, QUERY]",
            lasting(cors_of({"https://a"}), 90s),
            "Access-Control-Allow-Methods: GET, QUERY\r\nAccess-Control-Max-Age: 90\r\n", usual},
           {"headers of the match", "path: /**, headers: {X-Version: 2, prefer: \"*\"}",
            cors_of({"https://a"}, {"GET"}),
            "Access-Control-Allow-Methods: GET\r\nAccess-Control-Max-Age: 0\r\n",
            usual + ", x-version"},
           {"methods that are listed", "path: /**, methods: [GET, POST]",
            lasting(cors_of({"https://a"}, {"GET"}), 1999ms),
            "Access-Control-Allow-Methods: GET\r\nAccess-Control-Max-Age: 1\r\n", usual},
           {"credentials", "path: /**",
            with_credentials(cors_of({"https://a"}, {"GET"}, {"X-A", "x-b"})),
            "Access-Control-Allow-Credentials: true\r\nAccess-Control-Allow-Methods: GET\r\n"
            "Access-Control-Max-Age: 0\r\n",
            "X-A, x-b"},
       }) {
    auto const rules =
        rules_of(config_with("routes: [{match: {" + match + "}, service: echo}]\n", cors));
    EXPECT_EQ(rules.preflight_lines(), lines + vary) << what;
    std::string line;
    rules.append_headers_line(line, {});
    EXPECT_EQ(line, "Access-Control-Allow-Headers: " + headers + "\r\n") << what;
  }
}

TEST(proxy_cors_rules, allow_the_headers_by_which_a_route_tells_clients_apart) {
  auto const all = config_with(
      std::string(one_upstream) +
          "policies:\n"
          "  a: {quota: 1, window: 1m, partition: [header:x-api-key, client-ip]}\n"
          "  b: {quota: 1, window: 1m, partition: [header:authorization, header:x-tenant]}\n"
          "routes: [{match: {path: /**}, upstream: api, limits: [a, b], idempotency: "
          "{mode: optional, scope: [header:x-api-key, header:x-user]}}]\n",
      cors_of({"https://a"}));
  std::string line;
  rules_of(all).append_headers_line(line, {});
  EXPECT_EQ(line,
            "Access-Control-Allow-Headers: Authorization, Content-Type, Idempotency-Key, Prefer, "
            "x-api-key, x-tenant, x-user\r\n");
}

TEST(proxy_cors_rules, take_methods_only_as_they_are_listed) {
  auto const rules = echo_with(cors_of({"https://a"}, {"GET", "PATCH", "x-mine"}));
  for (auto const* const method : {"GET", "PATCH", "x-mine"}) {
    EXPECT_TRUE(rules.allows_method(method)) << method;
  }
  for (auto const* const method :
       {"", "get", "Patch", "patch", "POST", "HEAD", "*", "GET, PATCH", "GET ", "X-MINE", "GE"}) {
    EXPECT_FALSE(rules.allows_method(method)) << method;
  }
}

TEST(proxy_cors_rules, take_the_headers_that_a_page_asks_to_send) {
  auto const rules = echo_with(cors_of({"https://a"}, {}, {"Content-Type", "X-Id", "zz"}));
  struct row {
    std::string line;
    bool is_taken;
    std::string more;  // that was asked for besides
  };
  std::string many;
  for (std::size_t i = 0; i < requested_headers_max; ++i) {
    many.append("zz,");
  }
  for (auto const& [line, is_taken, more] : std::vector<row>{
           {"", true, ""},
           {"content-type", true, ""},
           {"Content-Type,x-id", true, ""},
           {"X-ID , \tCONTENT-TYPE", true, ""},
           {",, ,x-id,,", true, ""},
           {"x-id,x-id", true, ""},
           {"accept", true, ", accept"},
           {"Accept,range,Accept-Language,content-language,accept", true,
            ", accept, accept-language, content-language, range"},
           {many, true, ""},
           {many + "zz", false, ""},
           {many + "," + std::string(5000, ',') + " ", true, ""},
           {"x-other", false, ""},
           {"content-type,x-other", false, ""},
           {"x-id x-id", false, ""},
           {"x-i", false, ""},
           {"x-id2", false, ""},
           {"*", false, ""},
           {"\"x-id\"", false, ""},
           {"x-id;q=1", false, ""},
           {"authorization", false, ""},
           {"cookie", false, ""},
           {"x\xc3\xa4", false, ""},
           {std::string("x-id\0", 5), false, ""},
           {std::string(30'000, 'a'), false, ""},
       }) {
    requested_headers asked;
    EXPECT_EQ(rules.takes_headers(line, asked), is_taken) << line;
    if (is_taken) {
      std::string out;
      rules.append_headers_line(out, asked);
      EXPECT_EQ(out, "Access-Control-Allow-Headers: Content-Type, X-Id, zz" + more + "\r\n")
          << line;
    }
  }
}

TEST(proxy_cors_rules, count_the_headers_of_all_lines_together) {
  auto const rules = echo_with(cors_of({"https://a"}, {}, {"a"}));
  requested_headers asked;
  for (std::size_t i = 0; i < requested_headers_max; ++i) {
    ASSERT_TRUE(rules.takes_headers("a", asked)) << i;
  }
  EXPECT_FALSE(rules.takes_headers("a", asked));
}

TEST(proxy_cors_rules, expose_what_the_route_can_send) {
  struct row {
    std::string what;
    std::string text;
    std::vector<std::string> names;
  };
  constexpr auto policy = "policies: {p: {quota: 1, window: 1m}}\n";
  constexpr auto shadow = "policies: {p: {quota: 1, window: 1m, enforce: shadow}}\n";
  auto const echo = [](std::string const& more) {
    return "routes: [{match: {path: /**}, service: echo" + more + "}]\n";
  };
  auto const api = [](std::string const& more) {
    return std::string(one_upstream) + "routes: [{match: {path: /**}, upstream: api" + more +
           "}]\n";
  };
  std::string const auth =
      ", auth: {bearer-tokens: [{name: a, sha256: "
      "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8}]}";
  for (auto const& [what, text, names] : std::vector<row>{
           {"echo", echo(""), {"Date"}},
           {"limits",
            policy + echo(", limits: [p]"),
            {"RateLimit", "RateLimit-Policy", "Retry-After", "Date"}},
           {"draft-07",
            "fields: {ratelimit: draft-07}\n" + std::string(policy) + echo(", limits: [p]"),
            {"RateLimit", "RateLimit-Policy", "Retry-After", "Date"}},
           {"legacy alone",
            "fields: {ratelimit: none, legacy: true}\n" + std::string(policy) +
                echo(", limits: [p]"),
            {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After",
             "Date"}},
           {"a shadow", shadow + echo(", limits: [p]"), {"Retry-After", "Date"}},
           {"auth", echo(auth), {"WWW-Authenticate", "Date"}},
           {"an upstream",
            api(""),
            {"Retry-After", "Link", "Location", "ETag", "Allow", "WWW-Authenticate", "Date"}},
           {"keys",
            api(", idempotency: {mode: required}"),
            {"Retry-After", "Idempotent-Replayed", "Idempotency-Status", "Link", "Location", "ETag",
             "Allow", "WWW-Authenticate", "Date"}},
           {"a directory",
            "stores: {directory: \"sqlite:d.db\"}\n"
            "routes: [{match: {path: /scim/**}, service: scim" +
                auth + "}]\n",
            {"Retry-After", "Location", "ETag", "Allow", "Content-Location", "WWW-Authenticate",
             "Date"}},
       }) {
    auto const all = config_with(text, cors_of({"https://a"}));
    EXPECT_EQ(exposed_names(all.routes.front(), all), names) << what;
  }
}

TEST(proxy_cors_rules, expose_what_the_operator_names_each_once) {
  auto cors = cors_of({"https://a"});
  cors.expose = {"X-Total", "date", "x-total"};
  auto all = config_with("routes: [{match: {path: /**}, service: echo}]\n", cors);
  auto& rules = all.routes.front().response;
  rules.set = {{"X-Set", "1"}, {"cache-control", "no-store"}};
  rules.add = {{"X-Added", "1"}, {"X-SET", "2"}, {"Set-Cookie", "a=b"}};
  rules.remove = {"X-Removed"};
  EXPECT_THAT(exposed_names(all.routes.front(), all),
              ElementsAre("Date", "X-Total", "X-Set", "X-Added"));
}

TEST(proxy_cors_rules, expose_more_to_calls_of_grpc_and_the_credentials_rule_to_all) {
  auto const rules = echo_with(with_credentials(cors_of({"https://a"})));
  EXPECT_EQ(rules.allowed_lines(),
            "Access-Control-Allow-Credentials: true\r\n"
            "Access-Control-Expose-Headers: Date\r\nVary: Origin\r\n");
  EXPECT_EQ(rules.grpc_lines(),
            "Access-Control-Allow-Credentials: true\r\n"
            "Access-Control-Expose-Headers: Date, grpc-status, grpc-message, "
            "grpc-retry-pushback-ms\r\nVary: Origin\r\n");
}

TEST(proxy_cors_rules, know_the_fields_of_the_protocol) {
  for (auto const* const name :
       {"Access-Control-Allow-Origin", "access-control-max-age", "ACCESS-CONTROL-X"}) {
    EXPECT_TRUE(is_access_control(name)) << name;
  }
  for (auto const* const name : {"", "Access-Control", "Access-Control-", "X-Access-Control-Allow",
                                 "Access_Control_Allow_Origin", "Accept"}) {
    EXPECT_FALSE(is_access_control(name)) << name;
  }
}

}  // namespace
}  // namespace tidegate::gateway
