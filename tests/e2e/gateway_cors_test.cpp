// SPDX-License-Identifier: Apache-2.0
//
// Pages of other origins: what they may send and what they may read, by HTTP/1.1 and HTTP/2.
#include "keyed.hpp"
#include "process.hpp"

#include <tidegate/base/ascii.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

constexpr auto page = "https://app.example";
constexpr auto from_page = "Origin: https://app.example";
constexpr auto allow_origin = "Access-Control-Allow-Origin";
constexpr auto expose = "Access-Control-Expose-Headers";

// SHA-256 of "alpha".
constexpr auto auth =
    "auth: {bearer-tokens: [{name: a, sha256: "
    "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8}]}";

/// One request as a client of either protocol sends it.
struct asked {
  std::string method = "GET";
  std::string path = "/a";
  std::vector<std::string> lines{};
  std::string body{};
};

enum class protocol : std::uint8_t { http1, http2 };

/// What curl prints, as a message; that of HTTP/2 with a start line as HTTP/1.1 has it.
auto parse_printed(std::string const& text) -> message {
  message out;
  auto rest = std::string_view(text);
  auto const head = rest.substr(0, rest.find("\r\n\r\n"));
  out.body = rest.substr(std::min(rest.size(), head.size() + 4));
  std::istringstream lines{std::string(head)};
  std::getline(lines, out.start_line);
  if (out.start_line.starts_with("HTTP/2 ")) {
    out.start_line.replace(0, 6, "HTTP/1.1");
  }
  for (std::string line; std::getline(lines, line);) {
    auto const colon = line.find(": ");
    out.fields.emplace_back(line.substr(0, colon),
                            trimmed(line.substr(colon + 2, line.find('\r') - colon - 2)));
  }
  return out;
}

auto send(gateway const& to, protocol by, asked const& what) -> message {
  std::vector<std::string> arguments{
      "/usr/bin/env",
      "curl",
      "-sSi",
      "--max-time",
      "20",
      "-X",
      what.method,
      "--path-as-is",
      "-H",
      "Expect:",
      by == protocol::http2 ? "--http2-prior-knowledge" : "--http1.1"};
  for (auto const& line : what.lines) {
    arguments.emplace_back("-H");
    arguments.push_back(line);
  }
  if (!what.body.empty()) {
    arguments.emplace_back("--data-binary");
    arguments.emplace_back("@-");
  }
  arguments.push_back("http://" + to.authority() + what.path);
  return parse_printed(run(arguments, what.body).out);
}

auto preflight(std::string const& method, std::vector<std::string> more = {},
               std::string const& path = "/a") -> asked {
  more.emplace_back(from_page);
  more.push_back("Access-Control-Request-Method: " + method);
  return {"OPTIONS", path, std::move(more)};
}

/// The names in a list, in lower case.
auto names_in(std::string const& list) -> std::vector<std::string> {
  std::vector<std::string> out;
  std::istringstream in(list);
  for (std::string name; std::getline(in, name, ',');) {
    out.push_back(lower_case(trimmed(name)));
  }
  return out;
}

/// Every field that pages see only by leave is listed.
void expect_exposed(message const& answer, std::string_view what) {
  // What pages see anyway, never, or what is of the connection.
  constexpr std::array<std::string_view, 11> others{
      "cache-control", "content-language", "content-length",    "content-type", "expires", "pragma",
      "last-modified", "connection",       "transfer-encoding", "vary",         "via"};
  auto const listed = names_in(answer.field(expose));
  for (auto const& [name, value] : answer.fields) {
    auto const lower = lower_case(name);
    if (!lower.starts_with("access-control-") && std::ranges::find(others, lower) == others.end()) {
      EXPECT_NE(std::ranges::find(listed, lower), listed.end()) << what << ": " << name;
    }
  }
}

void expect_readable(message const& answer, int status, std::string_view what) {
  EXPECT_EQ(answer.status(), status) << what << answer.body;
  EXPECT_EQ(answer.field(allow_origin), page) << what;
  EXPECT_EQ(answer.count(expose), 1U) << what;
  EXPECT_THAT(answer.field("Vary"), HasSubstr("Origin")) << what;
  expect_exposed(answer, what);
}

void expect_without_cors(message const& answer, std::string_view what) {
  for (auto const& [name, value] : answer.fields) {
    EXPECT_FALSE(lower_case(name).starts_with("access-control-")) << what << ": " << name;
  }
}

/// For each of the two protocols.
class gateway_cors : public testing::TestWithParam<protocol> {
 protected:
  [[nodiscard]] static auto ask(gateway const& with, asked const& what) -> message {
    return send(with, GetParam(), what);
  }
};

INSTANTIATE_TEST_SUITE_P(by, gateway_cors, testing::Values(protocol::http1, protocol::http2),
                         [](auto const& of) {
                           return of.param == protocol::http1 ? "http1" : "http2";
                         });

TEST_P(gateway_cors, answers_preflights_before_auth_quotas_and_keys) {
  data_folder const data;
  auto const refuses = origin::refusing();
  gateway const with(
      "data: " + data.path() + "\npolicies: {p: {quota: 1, window: 1h}}\nupstreams: {api: \"" +
      refuses.url() + "\"}\nroutes: [{name: r, match: {path: /**}, upstream: api, limits: [p], " +
      auth + ", idempotency: {mode: required}, cors: {origins: [\"" + page +
      "\"], credentials: true}}]\n");
  for (int i = 0; i < 5; ++i) {
    auto const answer =
        ask(with, preflight("POST", {"Access-Control-Request-Headers: "
                                     "authorization,content-type,idempotency-key"}));
    EXPECT_EQ(answer.status(), 204);
    EXPECT_EQ(answer.body, "");
    EXPECT_EQ(answer.field(allow_origin), page);
    EXPECT_EQ(answer.field("Access-Control-Allow-Credentials"), "true");
    EXPECT_EQ(answer.field("Access-Control-Allow-Methods"), "GET, HEAD, POST, PUT, PATCH, DELETE");
    EXPECT_THAT(names_in(answer.field("Access-Control-Allow-Headers")),
                IsSupersetOf({"authorization", "content-type", "idempotency-key", "prefer"}));
    EXPECT_EQ(answer.field("Access-Control-Max-Age"), "600");
    EXPECT_EQ(answer.field("Vary"),
              "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
    for (auto const* const none :
         {expose, "RateLimit", "RateLimit-Policy", "WWW-Authenticate", "Content-Length"}) {
      EXPECT_EQ(answer.field(none), "(none)") << none;
    }
  }
  // Nothing was spent, and each is a request of the route.
  auto const real = ask(with, {.lines = {from_page, "Authorization: Bearer alpha"}});
  expect_readable(real, 502, "the only one");
  EXPECT_THAT(real.field("RateLimit"), HasSubstr("r=0"));
  EXPECT_EQ(with.metric(R"(tidegate_requests_total{route="r",status="204"})"), 5);
}

TEST_P(gateway_cors, answers_403_to_preflights_of_what_is_not_allowed) {
  gateway const with(
      "routes:\n"
      "  - {name: one, match: {path: /a, methods: [GET, PUT]}, service: echo, cors: {origins: "
      "[\"https://app.example\", \"null\"], headers: [X-Id], max-age: 1h}}\n"
      "  - {name: all, match: {path: /b}, service: echo, cors: {origins: \"*\", methods: [POST]}}\n"
      "  - {name: none, match: {path: /c}, service: echo}\n");
  struct row {
    std::string what;
    asked request;
    int status;
    std::string origin;  // that is allowed
  };
  auto const of_origin = [](std::string const& origin, std::string const& path = "/a") -> asked {
    return {"OPTIONS", path, {"Origin: " + origin, "Access-Control-Request-Method: PUT"}};
  };
  auto const of_headers = [](std::string const& list) {
    return preflight("PUT", {"Access-Control-Request-Headers: " + list});
  };
  for (auto const& [what, request, status, origin] : std::vector<row>{
           {"the origin", of_origin(page), 204, page},
           {"null, which is listed", of_origin("null"), 204, "null"},
           {"another origin", of_origin("https://evil.example"), 403, ""},
           {"a longer name", of_origin("https://app.example.evil.example"), 403, ""},
           {"a name in front", of_origin("https://evil.example/https://app.example"), 403, ""},
           {"another port", of_origin("https://app.example:444"), 403, ""},
           {"another scheme", of_origin("http://app.example"), 403, ""},
           {"another case", of_origin("https://App.example"), 403, ""},
           {"two origins", of_origin("https://app.example https://app.example"), 403, ""},
           {"not ASCII", of_origin("https://\xc3\xa4pp.example"), 403, ""},
           {"very long", of_origin("https://" + std::string(20'000, 'a')), 403, ""},
           {"two lines", preflight("PUT", {from_page}), 403, ""},
           {"a method that is not listed", preflight("POST"), 404, ""},
           {"the same method in lower case", preflight("put"), 404, ""},
           {"a header", of_headers("x-id"), 204, page},
           {"its case", of_headers("X-ID,, x-id ,Accept"), 204, page},
           {"one that is not listed", of_headers("x-id,x-other"), 403, ""},
           {"one of the defaults", of_headers("authorization"), 403, ""},
           {"a second line",
            preflight("PUT", {"Access-Control-Request-Headers: x-id",
                              "Access-Control-Request-Headers: x-other"}),
            403, ""},
           {"thousands", of_headers([] {
              std::string list;
              for (int i = 0; i < 5000; ++i) {
                list.append("x-id,");
              }
              return list;
            }()),
            403, ""},
           {"any origin, another method", of_origin("https://evil.example", "/b"), 403, ""},
           {"any origin", preflight("POST", {}, "/b"), 204, "*"},
           {"no cors", of_origin(page, "/c"), 200, ""},
           {"no route", of_origin(page, "/d"), 404, ""},
       }) {
    auto const answer = ask(with, request);
    EXPECT_EQ(answer.status(), status) << what;
    EXPECT_EQ(answer.field(allow_origin), origin.empty() ? "(none)" : origin) << what;
    EXPECT_EQ(answer.field(expose), "(none)") << what;
    if (status == 403) {
      expect_without_cors(answer, what);
      EXPECT_EQ(answer.field("Content-Type"), "application/problem+json") << what;
      EXPECT_THAT(answer.field("Vary"), HasSubstr("Access-Control-Request-Method")) << what;
      EXPECT_EQ(answer.field("Vary").starts_with("Origin"), request.path == "/a") << what;
    }
  }
}

TEST_P(gateway_cors, serves_pages_that_may_not_read_without_the_fields) {
  gateway const with(
      "routes:\n"
      "  - {match: {path: /a}, service: echo, cors: {origins: [\"https://app.example\"], "
      "credentials: true}}\n"
      "  - {match: {path: /b}, service: echo, cors: {origins: \"*\"}}\n"
      "  - {match: {path: /c}, service: echo}\n");
  for (std::string const line :
       {"Origin: https://evil.example", "Origin: null", "Origin;", "X-No: origin",
        "Origin: https://app.example, https://app.example"}) {
    auto const answer = ask(with, {.lines = {line}});
    EXPECT_EQ(answer.status(), 200) << line;
    expect_without_cors(answer, line);
    EXPECT_EQ(answer.field("Vary"), "Origin") << line;
  }
  std::vector<std::string> const many(90, from_page);
  expect_without_cors(ask(with, {.lines = many}), "many lines");
  auto const allowed = ask(with, {.lines = {from_page}});
  expect_readable(allowed, 200, "allowed");
  EXPECT_EQ(allowed.field("Access-Control-Allow-Credentials"), "true");
  for (std::string const line : {from_page, "X-No: origin", "Origin: null"}) {
    auto const any = ask(with, {.path = "/b", .lines = {line}});
    EXPECT_EQ(any.field(allow_origin), "*") << line;
    EXPECT_EQ(any.field("Access-Control-Allow-Credentials"), "(none)") << line;
    EXPECT_EQ(any.field("Vary"), "(none)") << line;
  }
  expect_without_cors(ask(with, {.path = "/c", .lines = {from_page}}), "a route without cors");
  expect_without_cors(ask(with, {.path = "/d", .lines = {from_page}}), "no route");
}

TEST_P(gateway_cors, lets_pages_read_the_refusals_of_the_gateway) {
  data_folder const data;
  auto const refuses = origin::refusing();
  origin const silent;
  gateway const with(
      "data: " + data.path() +
      "\nhttp: {max-body: 1KiB}\n"
      "policies: {p: {quota: 1, window: 1h}}\nupstreams: {gone: \"" +
      refuses.url() + "\", silent: {servers: [\"" + silent.url() +
      "\"], timeout: 300ms}}\nroutes:\n"
      "  - {match: {path: /limited}, service: echo, limits: [p], cors: &cors {origins: [\"" +
      page +
      "\"]}}\n"
      "  - {match: {path: /auth}, service: echo, cors: *cors, " +
      auth +
      "}\n"
      "  - {match: {path: /key}, upstream: gone, cors: *cors, idempotency: {mode: required, "
      "anonymous: allow}}\n"
      "  - {match: {path: /gone}, upstream: gone, cors: *cors}\n"
      "  - {match: {path: /silent}, upstream: silent, cors: *cors}\n"
      "  - {match: {path: /scim/**}, service: scim, cors: *cors, " +
      auth + "}\n");
  struct row {
    std::string what;
    asked request;
    int status;
    std::vector<std::string> exposed;
  };
  std::string const large(2000, 'x');
  EXPECT_EQ(ask(with, {.path = "/limited"}).status(), 200);
  for (auto const& [what, request, status, exposed] : std::vector<row>{
           {"quota", {.path = "/limited"}, 429, {"ratelimit", "ratelimit-policy", "retry-after"}},
           {"no token", {.path = "/auth"}, 401, {"www-authenticate"}},
           {"a wrong token", {.path = "/auth", .lines = {"Authorization: Bearer x"}}, 401, {}},
           {"no key", {"POST", "/key", {}, "{}"}, 400, {"link", "idempotent-replayed"}},
           {"not connected", {.path = "/gone"}, 502, {"retry-after", "location", "etag"}},
           {"not connected, with a key",
            {"POST", "/key", {"Idempotency-Key: \"a\""}, "{}"},
            502,
            {}},
           {"late", {.path = "/silent"}, 504, {}},
           {"too large", {"POST", "/gone", {}, large}, 413, {}},
           {"too large, in chunks",
            {"POST", "/silent", {"Transfer-Encoding: chunked"}, large},
            413,
            {}},
           {"a directory", {.path = "/scim/Users"}, 401, {"www-authenticate", "etag", "location"}},
           {"in a directory",
            {.path = "/scim/Users/none", .lines = {"Authorization: Bearer alpha"}},
            404,
            {"etag"}},
       }) {
    auto with_origin = request;
    with_origin.lines.emplace_back(from_page);
    auto const answer = ask(with, with_origin);
    expect_readable(answer, status, what);
    EXPECT_THAT(names_in(answer.field(expose)), IsSupersetOf(exposed)) << what;
    with_origin.lines.back() = "Origin: https://evil.example";
    auto const foreign = ask(with, with_origin);
    EXPECT_EQ(foreign.status(), status) << what;
    expect_without_cors(foreign, what);
  }
}

TEST_P(gateway_cors, replaces_what_the_upstream_says_of_origins_and_keeps_the_rest) {
  serving_origin const api([](message const& request) {
    return response("200 OK", request.start_line,
                    "access-control-allow-origin: https://evil.example\r\n"
                    "Access-Control-Allow-Credentials: true\r\n"
                    "Access-Control-Expose-Headers: X-Secret\r\nAccess-Control-Max-Age: 9\r\n"
                    "X-Mine: 1\r\nVary: Accept\r\nX-Mine: 2\r\nETag: \"e\"\r\n"
                    "Connection: x-hop\r\nX-Hop: 1\r\n");
  });
  gateway const with("upstreams: {api: \"" + api.url() +
                     "\"}\nroutes:\n"
                     "  - {match: {path: /a}, upstream: api, cors: {origins: [\"" +
                     page +
                     "\"], expose: [X-Mine]}}\n"
                     "  - {match: {path: /b}, upstream: api}\n");
  auto const answer = ask(with, {.lines = {from_page}});
  expect_readable(answer, 200, "allowed");
  EXPECT_EQ(answer.count(allow_origin), 1U);
  EXPECT_EQ(answer.field("Access-Control-Allow-Credentials"), "(none)");
  EXPECT_EQ(answer.field("Access-Control-Max-Age"), "(none)");
  EXPECT_THAT(answer.field(expose), Not(HasSubstr("X-Secret")));
  EXPECT_EQ(answer.field("X-Mine"), "1, 2");
  EXPECT_EQ(answer.field("X-Hop"), "(none)");
  EXPECT_EQ(answer.field("ETag"), "\"e\"");
  EXPECT_EQ(answer.field("Vary"), "Accept, Origin");
  expect_without_cors(ask(with, {.lines = {"Origin: https://evil.example"}}), "foreign");
  // An OPTIONS that is not a preflight goes to the upstream, and so does one of another route.
  auto const plain = ask(with, {.method = "OPTIONS", .lines = {from_page}});
  EXPECT_EQ(plain.body, "OPTIONS /a HTTP/1.1");
  EXPECT_EQ(plain.field(allow_origin), page);
  auto const theirs = ask(with, preflight("GET", {}, "/b"));
  EXPECT_EQ(theirs.body, "OPTIONS /b HTTP/1.1");
  EXPECT_EQ(theirs.field(allow_origin), "https://evil.example");
}

TEST_P(gateway_cors, stands_beside_rules_for_headers_redirects_and_networks) {
  serving_origin const api(response("200 OK", "",
                                    "Access-Control-Allow-Origin: *\r\nX-Mine: 1\r\n"
                                    "X-Internal: 2\r\nX-Other: 3\r\nVary: Accept\r\n"));
  gateway const with(
      "upstreams: {api: \"" + api.url() +
      "\"}\nroutes:\n"
      "  - {match: {path: /a}, upstream: api, cors: &cors {origins: [\"" +
      page +
      "\"], expose: [X-Other]}, response: {set: {X-Mine: set}, add: {Vary: Cookie}, remove: "
      "[X-Internal]}}\n"
      "  - {match: {path: /old}, redirect: {to: \"https://new.example/\"}, cors: *cors}\n"
      "  - {match: {path: /ok}, respond: {status: 200, body: ok}, cors: *cors}\n"
      "  - {match: {path: /deny}, service: echo, deny: [127.0.0.0/8], cors: *cors}\n");
  auto const changed = ask(with, {.lines = {from_page}});
  expect_readable(changed, 200, "rules");
  EXPECT_EQ(changed.count(allow_origin), 1U);
  EXPECT_EQ(changed.field("X-Mine"), "set");
  EXPECT_EQ(changed.field("X-Internal"), "(none)");
  EXPECT_EQ(changed.field("X-Other"), "3");
  EXPECT_EQ(changed.field("Vary"), "Accept, Cookie, Origin");
  auto const moved = ask(with, {.path = "/old", .lines = {from_page}});
  expect_readable(moved, 308, "redirect");
  EXPECT_EQ(moved.field("Location"), "https://new.example/");
  expect_readable(ask(with, {.path = "/ok", .lines = {from_page}}), 200, "respond");
  expect_readable(ask(with, {.path = "/deny", .lines = {from_page}}), 403, "deny");
  for (std::string const path : {"/a", "/old", "/ok"}) {
    EXPECT_EQ(ask(with, preflight("GET", {}, path)).status(), 204) << path;
  }
}

TEST_P(gateway_cors, says_in_a_replay_who_may_read_that) {
  data_folder const data;
  serving_origin const api(response("201 Created", "made",
                                    "Access-Control-Allow-Origin: https://app.example\r\n"
                                    "Access-Control-Expose-Headers: X-Secret\r\nX-Mine: 1\r\n"));
  auto const config = [&](std::string const& cors) {
    return "data: " + data.path() + "\nupstreams: {api: \"" + api.url() +
           "\"}\nroutes: [{match: {path: /**}, upstream: api, idempotency: {mode: required, "
           "anonymous: allow}" +
           cors + "}]\n";
  };
  std::string const rule =
      ", cors: {origins: [\"https://app.example\", \"https://two.example\"], expose: [X-Mine]}";
  gateway with(config(rule));
  auto const post = [&](std::string const& origin, std::string const& key = "a") {
    return ask(with,
               {"POST", "/a", {"Idempotency-Key: \"" + key + "\"", "Origin: " + origin}, "{}"});
  };
  auto const first = post(page);
  expect_readable(first, 201, "first");
  EXPECT_EQ(first.count(allow_origin), 1U);
  for (std::string const origin : {"https://two.example", page}) {
    auto const replay = post(origin);
    EXPECT_EQ(replay.status(), 201) << origin;
    EXPECT_EQ(replay.field("Idempotent-Replayed"), "true") << origin;
    EXPECT_EQ(replay.field(allow_origin), origin);
    EXPECT_THAT(replay.field(expose), Not(HasSubstr("X-Secret"))) << origin;
    EXPECT_THAT(names_in(replay.field(expose)), IsSupersetOf({"idempotent-replayed", "x-mine"}));
    expect_exposed(replay, origin);
  }
  auto const foreign = post("https://evil.example");
  EXPECT_EQ(foreign.field("Idempotent-Replayed"), "true");
  expect_without_cors(foreign, "foreign");
  // Nothing of it is stored; what was stored before there was a rule does not come out.
  EXPECT_THAT(with.reload(config("")), HasSubstr("applied"));
  expect_without_cors(post(page), "without a rule");
  EXPECT_EQ(post(page, "b").field(allow_origin), page);
  EXPECT_THAT(with.reload(config(rule)), HasSubstr("applied"));
  auto const later = post("https://two.example", "b");
  EXPECT_EQ(later.field("Idempotent-Replayed"), "true");
  EXPECT_EQ(later.field(allow_origin), "https://two.example");
  EXPECT_THAT(later.field(expose), Not(HasSubstr("X-Secret")));
}

TEST_P(gateway_cors, lets_pages_read_how_a_call_of_grpc_was_refused) {
  auto const refuses = origin::refusing();
  gateway const with("upstreams: {api: \"" + refuses.url() +
                     "\"}\nroutes: [{match: {path: /**}, upstream: api, cors: {origins: [\"" +
                     page + "\"]}}]\n");
  auto const answer =
      ask(with, {"POST", "/s.S/m", {from_page, "Content-Type: application/grpc-web"}, "x"});
  expect_readable(answer, 200, "grpc-web");
  EXPECT_EQ(answer.field("grpc-status"), "14");
  EXPECT_THAT(names_in(answer.field(expose)), IsSupersetOf({"grpc-status", "grpc-message"}));
  auto const plain = ask(with, {"POST", "/s.S/m", {from_page}, "x"});
  EXPECT_THAT(plain.field(expose), Not(HasSubstr("grpc")));
}

TEST_P(gateway_cors, follows_a_reload) {
  auto const config = [](std::string const& cors) {
    return "routes: [{match: {path: /**}, service: echo" + cors + "}]\n";
  };
  gateway with(config(""));
  EXPECT_EQ(ask(with, preflight("GET")).status(), 200);
  EXPECT_THAT(with.reload(config(", cors: {origins: [\"https://app.example\"]}")),
              HasSubstr("applied"));
  EXPECT_EQ(ask(with, preflight("GET")).status(), 204);
  EXPECT_THAT(with.reload(config(", cors: {origins: [\"https://two.example\"]}")),
              HasSubstr("applied"));
  EXPECT_EQ(ask(with, preflight("GET")).status(), 403);
}

TEST(gateway_cors_log, has_preflights_with_the_reason) {
  data_folder const data;
  auto const file = data.path() + "/access.log";
  gateway const with("access-log: " + file +
                     "\nroutes: [{name: r, match: {path: /**}, service: echo, cors: {origins: "
                     "[\"https://app.example\"], methods: [GET]}}]\n");
  (void)send(with, protocol::http1, preflight("GET"));
  (void)send(with, protocol::http1, preflight("PUT"));
  (void)send(with, protocol::http2, preflight("GET", {"Origin: https://evil.example"}));
  (void)send(with, protocol::http2, preflight("GET", {"Access-Control-Request-Headers: x-other"}));
  auto const text = [&] {
    std::ostringstream out;
    out << std::ifstream(file).rdbuf();
    return out.str();
  };
  expect_eventually([&] { return std::ranges::count(text(), '\n') >= 4; }, "the log has all lines");
  for (auto const* const part :
       {R"("route":"r","upstream":null,"server":null,"status":204,"reason":"cors-preflight")",
        R"("status":403,"reason":"cors-method")", R"("status":403,"reason":"cors-origin")",
        R"("status":403,"reason":"cors-header")"}) {
    EXPECT_THAT(text(), HasSubstr(part));
  }
}

TEST(gateway_cors_body, is_refused_readably_while_it_comes) {
  origin const silent;
  gateway const with("http: {max-body: 100, body-timeout: 300ms}\nupstreams: {api: \"" +
                     silent.url() +
                     "\"}\nroutes: [{match: {path: /**}, upstream: api, cors: "
                     "{origins: [\"" +
                     page + "\"]}}]\n");
  auto const head = "POST / HTTP/1.1\r\nHost: a\r\n" + std::string(from_page) +
                    "\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (auto const& [body, status] : std::vector<std::pair<std::string, int>>{
           {"ff\r\n" + std::string(255, 'x'), 413}, {"5\r\nab", 408}, {"zz\r\n", 400}}) {
    auto client = with.connect();
    client.send(head + body);
    expect_readable(client.read_response(), status, body);
  }
}

TEST(gateway_cors_upgrade, has_no_fields_of_cors) {
  origin upstream;
  gateway const with(
      "upstreams: {api: \"" + upstream.url() +
      "\"}\nroutes: [{match: {path: /**}, upstream: api, upgrade: [websocket], cors: "
      "{origins: [\"" +
      page + "\"]}}]\n");
  auto const head = "GET /chat HTTP/1.1\r\nHost: a\r\n" + std::string(from_page) +
                    "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                    "\r\n";
  auto client = with.connect();
  client.send(head);
  auto to_gateway = upstream.accept();
  EXPECT_EQ(to_gateway.read_head().field("Origin"), page);
  to_gateway.send(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
  auto const opened = client.read_head();
  EXPECT_EQ(opened.status(), 101);
  expect_without_cors(opened, "opened");
  // A refusal is a plain response.
  auto again = with.connect();
  again.send(head);
  auto other = upstream.accept();
  (void)other.read_head();
  other.send(response("403 Forbidden", "no"));
  expect_readable(again.read_response(), 403, "refused");
}

}  // namespace
}  // namespace tidegate::e2e
