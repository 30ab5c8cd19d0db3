// SPDX-License-Identifier: Apache-2.0
//
// Routes that change paths, that redirect, and that answer themselves.
#include "keyed.hpp"
#include "raw_http2.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// Answers with the request line that it got.
[[nodiscard]] auto says_target() {
  return [](message const& seen) { return response("200 OK", seen.start_line); };
}

[[nodiscard]] auto config_of(std::string const& url, std::string const& routes) -> std::string {
  return "upstreams: {api: {servers: [" + url + "], timeout: 5s}}\nroutes:\n" + routes;
}

/// Sends a target as it is, on a connection of its own.
[[nodiscard]] auto get(gateway const& through, std::string_view target) -> message {
  return through.get(target);
}

// ---- rewrite ----

TEST(gateway_rewrite, changes_what_the_upstream_sees) {
  serving_origin api(says_target());
  gateway const under_test(config_of(
      api.url(),
      "  - {match: {path: /v1/**}, upstream: api, rewrite: {strip-prefix: /v1}}\n"
      "  - {match: {path: /v2/**}, upstream: api, rewrite: {strip-prefix: /v2, add-prefix: /api}}\n"
      "  - {match: {path: /users/*/posts/*}, upstream: api, rewrite: {path: \"/p/{2}/of/{1}\"}}\n"
      "  - {match: {path: /files/**}, upstream: api, rewrite: {path: \"/store/{**}\"}}\n"
      "  - {match: {path: /fixed/**}, upstream: api, rewrite: {path: /index.html}}\n"
      "  - {match: {path: /**}, upstream: api}\n"));
  struct row {
    std::string_view target, seen;
  };
  for (auto const& [target, seen] : {
           row{"/v1/a?b=c", "/a?b=c"},
           row{"/v1", "/"},
           row{"/v1?a", "/?a"},
           row{"/v1/", "/"},
           row{"/v1/a%2Fb", "/a%2Fb"},
           row{"/v2/a/b", "/api/a/b"},
           row{"/v2", "/api"},
           row{"/v2/", "/api/"},
           row{"/users/anna/posts/7?q=%20", "/p/7/of/anna?q=%20"},
           row{"/files/a/b/", "/store/a/b/"},
           row{"/files", "/store/"},
           row{"/x/../files/a", "/store/a"},
           row{"/fixed/a/b?c", "/index.html?c"},
           row{"/other", "/other"},
           row{"http://a.example/v1/a", "/a"},
       }) {
    auto const answer = get(under_test, target);
    EXPECT_EQ(answer.status(), 200) << target;
    EXPECT_EQ(answer.body, "GET " + std::string(seen) + " HTTP/1.1") << target;
  }
}

TEST(gateway_rewrite, lets_no_path_out_of_what_it_makes) {
  serving_origin api(says_target());
  gateway const under_test(config_of(
      api.url(),
      "  - {match: {path: /v1/**}, upstream: api, rewrite: {strip-prefix: /v1, add-prefix: /api}}\n"
      "  - {match: {path: /users/*}, upstream: api, rewrite: {path: \"/u/{1}/x\"}}\n"
      "  - {match: {path: /bare/**}, upstream: api, rewrite: {strip-prefix: /bare}}\n"));
  for (auto const* const target :
       {"/v1/..%2Fadmin", "/v1/a/..%2f..%2Fadmin", "/v1/..%5Cadmin", "/v1/..;/admin",
        "/v1/..;x=y/a", "/v1/%2e%2e%2Fadmin", "/v1/a%2F..", "/users/..%2F..%2Fadmin", "/users/..;",
        "/users/..%5C", "/bare//evil.example/x", "/bare///evil.example"}) {
    EXPECT_EQ(get(under_test, target).status(), 400) << target;
  }
  EXPECT_EQ(api.requests(), 0U);
  // What is removed before routes are looked for is of no route.
  EXPECT_EQ(get(under_test, "/v1/../admin").status(), 404);
  EXPECT_EQ(get(under_test, "/v1/%2e%2E/admin").status(), 404);
  EXPECT_EQ(get(under_test, "/v1/...").body, "GET /api/... HTTP/1.1");
}

TEST(gateway_rewrite, leaves_logs_limits_and_the_base_path_of_servers) {
  serving_origin api(says_target());
  gateway under_test(
      "access-log: stdout\n"
      "policies: {p: {quota: 2, window: 1h, partition: [path]}}\n"
      "upstreams: {api: {servers: [" +
      api.url() +
      "/base]}}\nroutes:\n"
      "  - {name: files, match: {path: /f/**}, upstream: api, limits: [p], "
      "rewrite: {path: /all}}\n");
  for (auto const* const target : {"/f/a", "/f/a", "/f/b"}) {
    EXPECT_EQ(get(under_test, target).body, "GET /base/all HTTP/1.1");
  }
  EXPECT_EQ(get(under_test, "/f/a").status(), 429);
  EXPECT_THAT(under_test.output(), HasSubstr("\"/f/a\""));
}

TEST(gateway_rewrite, lets_no_path_out_of_the_path_of_a_server) {
  data_folder data;
  serving_origin api(says_target());
  for (std::string const more : {"", ", idempotency: {mode: required}"}) {
    gateway const under_test(
        "data: " + data.path() + "\n" +
        config_of(api.url() + "/base", "  - {match: {path: /**}, upstream: api" + more + "}\n"));
    auto const seen = api.requests();
    for (auto const* const target :
         {"/..%2Fadmin", "/a/..%2f..%2Fadmin", "/..%5Cadmin", "/..;/admin", "/%2e%2e%2Fadmin"}) {
      EXPECT_EQ(get(under_test, target).status(), 400) << target;
      EXPECT_EQ(under_test.ask(post("\"k\"", "{}", target)).status(), 400) << target;
    }
    EXPECT_EQ(api.requests(), seen);
    EXPECT_EQ(get(under_test, "/../a").body, "GET /base/a HTTP/1.1");
    EXPECT_EQ(get(under_test, "/a%2Fb").body, "GET /base/a%2Fb HTTP/1.1");
  }
}

TEST(gateway_rewrite, holds_for_keys_and_their_fingerprint_is_of_the_path_of_the_client) {
  data_folder data;
  serving_origin api(says_target());
  gateway const under_test("data: " + data.path() + "\nupstreams: {api: {servers: [" + api.url() +
                           "]}}\nroutes:\n"
                           "  - match: {path: /v1/**}\n    upstream: api\n"
                           "    rewrite: {path: /one}\n    idempotency: {mode: required}\n");
  auto const first = under_test.ask(post("\"k1\"", "{}", "/v1/a"));
  EXPECT_EQ(first.body, "POST /one HTTP/1.1");
  auto const replay = under_test.ask(post("\"k1\"", "{}", "/v1/a"));
  EXPECT_EQ(replay.body, "POST /one HTTP/1.1");
  EXPECT_EQ(replay.field("Idempotent-Replayed"), "true");
  EXPECT_EQ(under_test.ask(post("\"k1\"", "{}", "/v1/b")).status(), 422);
  EXPECT_EQ(under_test.ask(post("\"k2\"", "{}", "/v1/..%2Fb")).status(), 400);
  EXPECT_EQ(api.requests(), 1U);
}

TEST(gateway_rewrite, holds_by_http2_on_both_sides) {
  origin api;
  gateway const under_test(
      "upstreams: {api: {servers: [" + api.url() +
      "], http2: true}}\nroutes:\n"
      "  - {match: {path: /v1/**}, upstream: api, rewrite: {strip-prefix: /v1, add-prefix: /api}, "
      "request: {set: {Host: internal.example, X-A: b}, remove: [X-B]}, "
      "response: {set: {X-C: d}, remove: [Server]}}\n");
  raw_client client(under_test.connect());
  client.send(headers, 5, 1,
              std::string("\x82\x86") + literal(":path", "/v1/x?y") + literal(":authority", "a") +
                  literal("x-b", "1") + literal("x-a", "2"));
  raw_server server(api.accept());
  auto const seen = server.read_request();
  EXPECT_THAT(seen.fields, HasSubstr(":path: /api/x?y\n"));
  EXPECT_THAT(seen.fields, HasSubstr(":authority: internal.example\n"));
  EXPECT_THAT(seen.fields, HasSubstr("x-a: b\n"));
  EXPECT_THAT(seen.fields, Not(HasSubstr("x-a: 2\n")));
  EXPECT_THAT(seen.fields, Not(HasSubstr("x-b:")));
  server.answer(seen.stream, true, literal("server", "s") + literal("x-c", "e"));
  auto const answer = client.decode(client.read(headers));
  EXPECT_THAT(answer.fields, HasSubstr("x-c: d\n"));
  EXPECT_THAT(answer.fields, Not(HasSubstr("x-c: e\n")));
  EXPECT_THAT(answer.fields, Not(HasSubstr("server:")));
}

TEST(gateway_rewrite, goes_on_with_a_retry) {
  origin api;
  gateway const under_test(
      "upstreams: {api: {servers: [" + api.url() +
      "], retry: {attempts: 1, on: [502], backoff: 1ms}}}\nroutes:\n"
      "  - {match: {path: /v1/**}, upstream: api, rewrite: {strip-prefix: /v1}}\n");
  auto client = under_test.connect();
  client.send("GET /v1/a HTTP/1.1\r\nHost: a\r\n\r\n");
  auto server = api.accept();
  EXPECT_EQ(server.read_request().start_line, "GET /a HTTP/1.1");
  server.send(response("502 Bad Gateway", ""));
  auto again = api.accept();  // that of a response that is not wanted is of no more use
  EXPECT_EQ(again.read_request().start_line, "GET /a HTTP/1.1");
  again.send(response("200 OK", "done"));
  EXPECT_EQ(client.read_response().body, "done");
}

// ---- redirect ----

constexpr std::string_view redirects =
    "policies: {p: {quota: 100, window: 1h}}\nroutes:\n"
    "  - {match: {path: /old/**}, redirect: {to: \"https://example.com/new/{**}\"}, limits: [p]}\n"
    "  - {match: {path: /moved/*}, redirect: {to: \"/m/{1}\", status: 301}}\n"
    "  - {match: {path: /root/**}, redirect: {to: \"/{**}\", status: 302}}\n";

TEST(gateway_redirect, says_where_to_go_with_the_query) {
  gateway const under_test{std::string(redirects)};
  auto const answer = get(under_test, "/old/a/b?c=d");
  EXPECT_EQ(answer.status(), 308);
  EXPECT_EQ(answer.field("Location"), "https://example.com/new/a/b?c=d");
  EXPECT_EQ(answer.body, "Permanent Redirect\n");
  EXPECT_EQ(answer.field("Content-Type"), "text/plain");
  EXPECT_NE(answer.field("RateLimit"), "(none)");
  EXPECT_EQ(get(under_test, "/moved/x?y").field("Location"), "/m/x?y");
  EXPECT_EQ(get(under_test, "/root/a").status(), 302);

  auto client = under_test.connect();
  client.send("HEAD /old/a HTTP/1.1\r\nHost: a\r\n\r\n");
  auto const head = client.read_response(true);
  EXPECT_EQ(head.status(), 308);
  EXPECT_EQ(head.field("Content-Length"), "19");
  client.send("POST /old/a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_EQ(client.read_response().status(), 308);
}

TEST(gateway_redirect, is_open_to_no_other_host_and_no_other_field) {
  gateway const under_test{std::string(redirects)};
  struct row {
    std::string_view target, location;  // empty: refused
  };
  for (auto const& [target, location] : {
           row{"/root//evil.example", ""},
           row{"/root///evil.example/x", ""},
           row{"/root/%2F/evil.example", "/%2F/evil.example"},
           row{"/root/\\evil.example", "/%5Cevil.example"},
           row{"/root/%5cevil.example", "/%5Cevil.example"},
           row{"/root/@evil.example", "/@evil.example"},
           row{"/root/%09/evil.example", "/%09/evil.example"},
           row{"/root/https://evil.example", "/https://evil.example"},
           row{"/root/javascript:alert(1)", "/javascript:alert(1)"},
           row{"/root/a%0d%0aSet-Cookie:%20a=b", "/a%0D%0ASet-Cookie:%20a=b"},
           row{"/root/a?x=%0d%0aSet-Cookie:%20a=b", "/a?x=%0d%0aSet-Cookie:%20a=b"},
           row{"/root/..%2Fa", ""},
           row{"/old//evil.example", "https://example.com/new//evil.example"},
           row{"/old/@evil.example", "https://example.com/new/@evil.example"},
           row{"/old/..%5C..%5Ca", ""},
           row{"/moved/..;", ""},
       }) {
    auto const answer = get(under_test, target);
    EXPECT_EQ(answer.count("Set-Cookie"), 0U) << target;
    if (location.empty()) {
      EXPECT_EQ(answer.status(), 400) << target;
      EXPECT_EQ(answer.count("Location"), 0U) << target;
    } else {
      EXPECT_EQ(answer.field("Location"), location) << target;
    }
  }
}

TEST(gateway_redirect, comes_after_auth) {
  gateway const under_test(
      "routes:\n  - {match: {path: /**}, redirect: {to: \"https://example.com/{**}\"}, auth: "
      "{bearer-tokens: [{name: a, sha256: "
      "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8}]}}\n");
  EXPECT_EQ(get(under_test, "/a").status(), 401);
  EXPECT_EQ(under_test.get("/a", "Authorization: Bearer alpha\r\n").status(), 308);
}

// ---- respond ----

TEST(gateway_respond, answers_without_an_upstream) {
  gateway const under_test(
      "policies: {p: {quota: 2, window: 1h}}\nroutes:\n"
      "  - {match: {path: /health}, respond: {status: 200, content-type: text/plain, body: ok}}\n"
      "  - {match: {path: /gone/**}, respond: {status: 410, content-type: text/html, "
      "body: \"<p>gone</p>\"}, limits: [p], response: {set: {Cache-Control: no-store}}}\n"
      "  - {match: {path: /nothing}, respond: {status: 204}}\n");
  auto client = under_test.connect();
  auto const ask = [&client](std::string const& method, std::string const& target) {
    client.send(method + " " + target + " HTTP/1.1\r\nHost: a\r\n\r\n");
    return client.read_response(method == "HEAD");
  };
  auto const answer = ask("GET", "/health?a");
  EXPECT_EQ(answer.status(), 200);
  EXPECT_EQ(answer.body, "ok");
  EXPECT_EQ(answer.field("Content-Type"), "text/plain");
  EXPECT_EQ(answer.field("RateLimit"), "(none)");
  EXPECT_EQ(ask("HEAD", "/health").field("Content-Length"), "2");
  auto const gone = ask("GET", "/gone/a");
  EXPECT_EQ(gone.status(), 410);
  EXPECT_EQ(gone.body, "<p>gone</p>");
  EXPECT_EQ(gone.field("Cache-Control"), "no-store");
  EXPECT_NE(gone.field("RateLimit"), "(none)");
  EXPECT_EQ(ask("GET", "/gone/b").status(), 410);
  auto const refused = ask("GET", "/gone/c");
  EXPECT_EQ(refused.status(), 429);
  EXPECT_EQ(refused.field("Cache-Control"), "no-store");
  auto const nothing = ask("GET", "/nothing");
  EXPECT_EQ(nothing.status(), 204);
  EXPECT_EQ(nothing.count("Content-Length"), 0U);
  EXPECT_EQ(nothing.count("Content-Type"), 0U);
}

TEST(gateway_respond, sends_a_long_text_whole_by_either_protocol) {
  auto const text = std::string(60'000, 'x');
  gateway const under_test(
      "routes:\n  - {match: {path: /**}, respond: {status: 200, content-type: text/plain, body: " +
      text + "}}\n");
  EXPECT_EQ(get(under_test, "/").body, text);
  raw_client client(under_test.connect());
  client.get(1);
  EXPECT_THAT(client.decode(client.read(headers)).fields, HasSubstr("content-length: 60000\n"));
}

// ---- redirect-to-https ----

TEST(gateway_https_redirect, answers_everything_before_anything_else) {
  serving_origin api(says_target());
  gateway const under_test(proxy_config(api.url()),
                           {.listen = "{address: \"127.0.0.1:0\", redirect-to-https: true}"});
  struct row {
    std::string_view request, location;
  };
  for (auto const& [request, location] : {
           row{"GET /a/../b?c=d HTTP/1.1\r\nHost: a.example\r\n\r\n",
               "https://a.example/a/../b?c=d"},
           row{"GET / HTTP/1.1\r\nHost: a.example:8080\r\n\r\n", "https://a.example/"},
           row{"GET /.well-known/tidegate HTTP/1.1\r\nHost: a.example\r\n\r\n",
               "https://a.example/.well-known/tidegate"},
           row{"GET //evil.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
               "https://a.example//evil.example/"},
           row{"GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n", "https://a.example/x"},
           row{"TRACE / HTTP/1.1\r\nHost: a.example\r\n\r\n", "https://a.example/"},
           row{"POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nab",
               "https://a.example/a"},
       }) {
    auto const answer = under_test.ask(request);
    EXPECT_EQ(answer.status(), 308) << request;
    EXPECT_EQ(answer.field("Location"), location) << request;
  }
  EXPECT_EQ(under_test.ask("GET / HTTP/1.0\r\n\r\n").status(), 400);
  for (auto const* const host :
       {"a.example@evil.example", "a.example/x", "a b", "evil\\.example"}) {
    auto const answer = under_test.ask("GET / HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n");
    EXPECT_EQ(answer.status(), 400) << host;
    EXPECT_EQ(answer.count("Location"), 0U) << host;
  }
  raw_client client(under_test.connect());
  client.get(1);
  auto const answer = client.decode(client.read(headers));
  EXPECT_THAT(answer.fields, StartsWith(":status: 308\n"));
  EXPECT_THAT(answer.fields, HasSubstr("location: https://a/\n"));
  EXPECT_EQ(api.requests(), 0U);
}

TEST(gateway_https_redirect, believes_a_trusted_proxy_that_the_client_uses_https) {
  serving_origin api(says_target());
  gateway const under_test(proxy_config(api.url(), "trusted-proxies: [127.0.0.1]\n"),
                           {.listen = "{address: \"127.0.0.1:0\", redirect-to-https: true}"});
  EXPECT_EQ(under_test.get("/a", "X-Forwarded-Proto: https\r\n").status(), 200);
  EXPECT_EQ(under_test.get("/a", "X-Forwarded-Proto: http\r\n").status(), 308);
  EXPECT_EQ(under_test.get("/a").status(), 308);
}

}  // namespace
}  // namespace tidegate::e2e
