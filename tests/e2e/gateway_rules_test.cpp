// SPDX-License-Identifier: Apache-2.0
//
// What routes say of headers, networks, sizes and times.
#include "keyed.hpp"
#include "raw_http2.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view alpha_only =
    "auth: {bearer-tokens: [{name: a, sha256: "
    "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8}]}";

/// One route for all paths with these options.
[[nodiscard]] auto config_of(std::string const& url, std::string const& options,
                             std::string const& more = "") -> std::string {
  return "upstreams: {api: {servers: [" + url +
         "], timeout: 5s}}\nroutes:\n  - {match: {path: /**}, upstream: api, " + options + "}\n" +
         more;
}

// ---- request ----

/// What an upstream gets of a request.
[[nodiscard]] auto forwarded(std::string const& options, std::string const& lines) -> message {
  message seen;
  serving_origin api([&seen](message const& got) {
    seen = got;
    return response("200 OK", "");
  });
  {
    gateway const under_test(config_of(api.url(), options));
    EXPECT_EQ(under_test.get("/a", lines).status(), 200);
  }
  return seen;
}

TEST(gateway_request_rules, set_add_and_remove_what_the_upstream_sees) {
  auto const seen = forwarded(
      "request: {set: {X-A: new, Authorization: \"Basic eDp5\", User-Agent: tide}, "
      "add: {X-Tag: second}, remove: [X-Internal, Cookie]}",
      "X-A: 1\r\nx-a: 2\r\nX_A: 3\r\nAuthorization: Bearer t\r\nUser-Agent: curl\r\nX-Tag: "
      "first\r\n"
      "X-Internal: yes\r\nX_Internal: yes\r\nx.internal: yes\r\nCookie: a=b\r\nX-Other: stays\r\n");
  EXPECT_EQ(seen.field("X-A"), "new");
  EXPECT_EQ(seen.count("X-A"), 1U);
  // CGI and WSGI read these as the same field.
  EXPECT_EQ(seen.count("X_A"), 0U);
  EXPECT_EQ(seen.count("X_Internal"), 0U);
  EXPECT_EQ(seen.count("x.internal"), 0U);
  EXPECT_EQ(seen.field("Authorization"), "Basic eDp5");
  EXPECT_EQ(seen.field("User-Agent"), "tide");
  EXPECT_EQ(seen.field("X-Tag"), "first, second");
  EXPECT_EQ(seen.count("X-Internal"), 0U);
  EXPECT_EQ(seen.count("Cookie"), 0U);
  EXPECT_EQ(seen.field("X-Other"), "stays");
  EXPECT_EQ(seen.field("Host"), "a.example");
}

TEST(gateway_request_rules, come_after_what_the_gateway_writes_itself) {
  auto const seen = forwarded(
      "request: {set: {Host: \"internal.example:81\", X-Forwarded-Proto: https, "
      "X-Forwarded-For: 10.0.0.1}, remove: [X-Forwarded-Host]}",
      "X-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: gopher\r\n");
  EXPECT_EQ(seen.field("Host"), "internal.example:81");
  EXPECT_EQ(seen.count("Host"), 1U);
  EXPECT_EQ(seen.field("X-Forwarded-Proto"), "https");
  EXPECT_EQ(seen.field("X-Forwarded-For"), "10.0.0.1");
  EXPECT_EQ(seen.count("X-Forwarded-Host"), 0U);
  EXPECT_EQ(seen.field("Via"), "1.1 tidegate");
}

TEST(gateway_request_rules, hold_for_requests_with_a_key) {
  data_folder data;
  origin api;
  gateway const under_test("data: " + data.path() + "\nupstreams: {api: {servers: [" + api.url() +
                           "]}}\nroutes:\n  - match: {path: /**}\n    upstream: api\n"
                           "    idempotency: {mode: required}\n"
                           "    request: {set: {X-A: b, Host: internal.example}, remove: [X-B]}\n"
                           "    response: {set: {X-C: d}, add: {X-E: f}, remove: [Server]}\n");
  auto client = under_test.connect();
  client.send(post("\"k1\"", "{}", "/a", "X-A: 1\r\nX-B: 2\r\n"));
  auto server = api.accept();
  auto const seen = server.read_request();
  EXPECT_EQ(seen.field("X-A"), "b");
  EXPECT_EQ(seen.count("X-B"), 0U);
  EXPECT_EQ(seen.field("Host"), "internal.example");
  EXPECT_EQ(seen.field("Idempotency-Key"), "\"k1\"");
  EXPECT_EQ(seen.field("Idempotency-Attempt"), "1");
  server.send(response("201 Created", "made", "Server: s\r\nX-C: old\r\nX-E: e\r\n"));
  for (auto const* const replayed : {"(none)", "true"}) {
    if (replayed != std::string_view("(none)")) {
      client.send(post("\"k1\"", "{}", "/a"));
    }
    auto const answer = client.read_response();
    EXPECT_EQ(answer.status(), 201);
    EXPECT_EQ(answer.field("Idempotent-Replayed"), replayed);
    EXPECT_EQ(answer.field("X-C"), "d");
    EXPECT_EQ(answer.field("X-E"), "e, f");  // and not once more in the replay
    EXPECT_EQ(answer.count("Server"), 0U);
  }
  // Refusals for the key too.
  EXPECT_EQ(under_test.ask(post("", "{}", "/a")).field("X-C"), "d");
  EXPECT_EQ(under_test.ask(post("\"k1\"", "[]", "/a")).field("X-C"), "d");
}

// ---- response ----

constexpr std::string_view response_rules =
    "response: {set: {X-A: new, Cache-Control: no-store}, add: {Vary: X-Plan}, "
    "remove: [Server, X-Powered-By, Date]}";

void expect_rules(message const& answer, std::string_view what) {
  EXPECT_EQ(answer.field("X-A"), "new") << what;
  EXPECT_EQ(answer.field("Cache-Control"), "no-store") << what;
  EXPECT_THAT(answer.field("Vary"), HasSubstr("X-Plan")) << what;
  for (auto const* const name : {"Server", "X-Powered-By", "Date"}) {
    EXPECT_EQ(answer.count(name), 0U) << name << " of " << what;
  }
}

TEST(gateway_response_rules, hold_for_what_upstreams_say) {
  for (auto const* const status : {"200 OK", "404 Not Found", "500 Internal Server Error"}) {
    serving_origin api(response(status, "text",
                                "X-A: 1\r\nx-a: 2\r\nServer: s\r\nX-Powered-By: p\r\nDate: d\r\n"
                                "Vary: Accept\r\nCache-Control: public\r\nX-Other: o\r\n"));
    gateway const under_test(config_of(api.url(), std::string(response_rules)));
    auto const answer = under_test.get("/a");
    expect_rules(answer, status);
    EXPECT_EQ(answer.count("X-A"), 1U);
    EXPECT_EQ(answer.field("Vary"), "Accept, X-Plan");
    EXPECT_EQ(answer.field("X-Other"), "o");
    EXPECT_EQ(answer.body, "text");
  }
}

TEST(gateway_response_rules, hold_for_refusals_of_the_gateway) {
  auto const refusing = origin::refusing();
  gateway const under_test(
      config_of(refusing.url(),
                std::string(response_rules) + ", max-body: 10, limits: [p], deny: [127.0.0.9], " +
                    std::string(alpha_only),
                "policies: {p: {quota: 3, window: 1h, partition: [header:x-client]}}\n"));
  auto const token = std::string("Authorization: Bearer alpha\r\n");
  expect_rules(under_test.get("/a"), "401");
  expect_rules(under_test.get("/a", token + "X-Client: b\r\n"), "502");
  for (int i = 0; i < 3; ++i) {
    (void)under_test.get("/a", token + "X-Client: c\r\n");
  }
  auto const refused = under_test.get("/a", token + "X-Client: c\r\n");
  EXPECT_EQ(refused.status(), 429);
  EXPECT_NE(refused.field("RateLimit"), "(none)");
  EXPECT_NE(refused.field("Retry-After"), "(none)");
  expect_rules(refused, "429");
  auto denied = under_test.connect("127.0.0.9");
  denied.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
  auto const answer = denied.read_response();
  EXPECT_EQ(answer.status(), 403);
  expect_rules(answer, "403");
  auto const declared = under_test.ask("POST /a HTTP/1.1\r\nHost: a\r\n" + token +
                                       "Content-Length: 11\r\n\r\nhello world");
  EXPECT_EQ(declared.status(), 413);
  expect_rules(declared, "413");
  auto const streamed = under_test.ask("POST /a HTTP/1.1\r\nHost: a\r\nX-Client: d\r\n" + token +
                                       "Transfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n");
  EXPECT_EQ(streamed.status(), 413);
  expect_rules(streamed, "413 of a body in chunks");
}

TEST(gateway_response_rules, hold_for_services_and_by_http2) {
  gateway const under_test("routes:\n  - {match: {path: /**}, service: echo, " +
                           std::string(response_rules) + "}\n");
  expect_rules(under_test.get("/a"), "echo");
  raw_client client(under_test.connect());
  client.get(1);
  auto const answer = client.decode(client.read(headers));
  EXPECT_THAT(answer.fields, HasSubstr("x-a: new\n"));
  EXPECT_THAT(answer.fields, HasSubstr("vary: X-Plan\n"));
  EXPECT_THAT(answer.fields, Not(HasSubstr("date:")));
  EXPECT_THAT(answer.fields, HasSubstr("content-type: application/json\n"));
}

TEST(gateway_response_rules, may_say_the_type_of_every_response) {
  serving_origin api(response("200 OK", "text", "Content-Type: text/html\r\n"));
  for (auto const* const options : {"response: {set: {Content-Type: text/x}}, limits: [p]",
                                    "response: {remove: [Content-Type]}, limits: [p]"}) {
    gateway const under_test(
        config_of(api.url(), options, "policies: {p: {quota: 1, window: 1h}}\n"));
    auto const expected =
        std::string_view(options).find("set") != std::string_view::npos ? "text/x" : "(none)";
    auto const answer = under_test.get("/a");
    EXPECT_EQ(answer.field("Content-Type"), expected);
    EXPECT_EQ(answer.body, "text");
    auto const refused = under_test.get("/a");
    EXPECT_EQ(refused.status(), 429);
    EXPECT_EQ(refused.field("Content-Type"), expected);
    EXPECT_THAT(refused.body, HasSubstr("quota"));
    auto client = under_test.connect();
    client.send("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(client.read_response(true).status(), 429);
    EXPECT_TRUE(client.is_silent());
  }
}

TEST(gateway_response_rules, hold_for_the_answer_that_opens_a_websocket) {
  origin api;
  gateway const under_test(
      config_of(api.url(), "upgrade: [websocket], " + std::string(response_rules)));
  auto client = under_test.connect();
  client.send(
      "GET /a HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  auto server = api.accept();
  (void)server.read_head();
  server.send(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
      "Server: s\r\nX-A: 1\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
  auto const answer = client.read_head();
  EXPECT_EQ(answer.status(), 101);
  expect_rules(answer, "101");
  EXPECT_EQ(answer.field("Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(gateway_response_rules, say_strict_transport_security_to_clients_of_https_only) {
  serving_origin api(response("200 OK", "", "Strict-Transport-Security: max-age=1\r\n"));
  gateway const under_test(
      config_of(api.url(), "response: {hsts: 1h}", "trusted-proxies: [127.0.0.1]\n"));
  EXPECT_EQ(under_test.get("/a").count("Strict-Transport-Security"), 0U);
  EXPECT_EQ(under_test.get("/a", "X-Forwarded-Proto: https\r\n").field("Strict-Transport-Security"),
            "max-age=3600");
}

TEST(gateway_response_rules, say_strict_transport_security_in_the_first_refusals_too) {
  serving_origin api(response("200 OK", ""));
  gateway const under_test(config_of(
      api.url(), "response: {hsts: 1h}, max-body: 10, cors: {origins: \"*\"}, deny: [127.0.0.9]",
      "trusted-proxies: [127.0.0.0/8]\n"));
  struct row {
    std::string_view what, request;
    int status;
  };
  for (auto const& [what, request, status] : {
           row{"a body that is too large", "POST /a HTTP/1.1\r\nContent-Length: 11\r\n", 413},
           row{"a preflight",
               "OPTIONS /a HTTP/1.1\r\nOrigin: https://a.example\r\n"
               "Access-Control-Request-Method: GET\r\n",
               204},
           row{"one that is refused",
               "OPTIONS /a HTTP/1.1\r\nOrigin: https://a.example\r\n"
               "Access-Control-Request-Method: BREW\r\n",
               403},
           row{"an address", "GET /a HTTP/1.1\r\nX-Forwarded-For: 127.0.0.9\r\n", 403},
       }) {
    for (std::string const scheme : {"https", "http"}) {
      auto const answer = under_test.ask(std::string(request) +
                                         "Host: a\r\nX-Forwarded-Proto: " + scheme + "\r\n\r\n");
      EXPECT_EQ(answer.status(), status) << what;
      EXPECT_EQ(answer.field("Strict-Transport-Security"),
                scheme == "https" ? "max-age=3600" : "(none)")
          << what;
    }
  }
}

TEST(gateway_response_rules, take_what_they_change_out_of_interim_responses) {
  data_folder data;
  constexpr std::string_view hints =
      "HTTP/1.1 103 Early Hints\r\nX-A: 1\r\nX-Internal: i\r\nLink: </a>\r\n\r\n";
  for (std::string const more : {"", ", idempotency: {mode: required}"}) {
    serving_origin api([&](message const&) { return std::string(hints) + response("200 OK", ""); });
    gateway const under_test(
        "data: " + data.path() + "\n" +
        config_of(api.url(), "response: {set: {X-A: b}, remove: [X-Internal]}" + more));
    auto client = under_test.connect();
    client.send(post("\"k\""));
    auto const interim = client.read_response();
    EXPECT_EQ(interim.status(), 103) << more;
    EXPECT_EQ(interim.count("X-A"), 0U) << more;
    EXPECT_EQ(interim.count("X-Internal"), 0U) << more;
    EXPECT_EQ(interim.field("Link"), "</a>") << more;
    EXPECT_EQ(client.read_response().field("X-A"), "b") << more;

    raw_client by_http2(under_test.connect());
    by_http2.get(1);
    auto const head = by_http2.decode(by_http2.read(headers)).fields;
    EXPECT_THAT(head, HasSubstr(":status: 103\n")) << more;
    EXPECT_THAT(head, HasSubstr("link: </a>\n")) << more;
    EXPECT_THAT(head, Not(HasSubstr("x-internal"))) << more;
  }
}

// ---- networks ----

TEST(gateway_networks, refuse_before_auth_quotas_and_keys) {
  serving_origin api(response("200 OK", "open"));
  gateway const under_test(config_of(
      api.url(), "allow: [127.0.0.0/8], deny: [127.0.0.2], limits: [p], " + std::string(alpha_only),
      "policies: {p: {quota: 1, window: 1h, partition: [path]}}\n"));
  for (int i = 0; i < 3; ++i) {
    auto client = under_test.connect("127.0.0.2");
    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    auto const answer = client.read_response();
    EXPECT_EQ(answer.status(), 403);
    EXPECT_EQ(answer.field("Content-Type"), "application/problem+json");
    EXPECT_EQ(answer.field("WWW-Authenticate"), "(none)");
  }
  EXPECT_EQ(under_test.get("/a", "Authorization: Bearer alpha\r\n").body, "open");
  EXPECT_EQ(api.requests(), 1U);
}

TEST(gateway_networks, tell_clients_of_ipv6_apart_as_far_as_the_prefix_says) {
  auto const statuses = [](std::string const& more) {
    gateway const under_test(
        "trusted-proxies: [127.0.0.1]\npolicies: {p: {quota: 1, window: 1h}}\n" + more +
        "routes:\n  - {match: {path: /**}, service: echo, limits: [p], deny: [\"2001:db8::9\"]}\n");
    std::vector<int> out;
    for (auto const* const from :
         {"2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "2001:db8:1::1", "2001:db8::9"}) {
      out.push_back(
          under_test.get("/a", "X-Forwarded-For: " + std::string(from) + "\r\n").status());
    }
    return out;
  };
  EXPECT_EQ(statuses(""), (std::vector{200, 429, 200, 200, 403}));
  EXPECT_EQ(statuses("client-ip: {ipv6-prefix: 48}\n"), (std::vector{200, 429, 429, 200, 403}));
  EXPECT_EQ(statuses("client-ip: {ipv6-prefix: 128}\n"), (std::vector{200, 200, 200, 200, 403}));
}

// ---- sizes and times ----

TEST(gateway_route_bounds, take_the_place_of_the_general_size_of_bodies) {
  serving_origin api(response("200 OK", "taken"));
  gateway const under_test("http: {max-body: 4}\nupstreams: {api: " + api.url() +
                           "}\nroutes:\n"
                           "  - {match: {path: /large}, upstream: api, max-body: 100}\n"
                           "  - {match: {path: /small}, upstream: api, max-body: 2}\n"
                           "  - {match: {path: /**}, upstream: api}\n");
  struct row {
    std::string_view target;
    std::size_t size;
    int status;
  };
  for (auto const& each : {row{"/large", 100, 200}, row{"/large", 101, 413}, row{"/small", 2, 200},
                           row{"/small", 3, 413}, row{"/a", 4, 200}, row{"/a", 5, 413}}) {
    auto const body = std::string(each.size, 'x');
    auto const head = "POST " + std::string(each.target) + " HTTP/1.1\r\nHost: a\r\n";
    EXPECT_EQ(
        under_test.ask(head + "Content-Length: " + std::to_string(each.size) + "\r\n\r\n" + body)
            .status(),
        each.status)
        << each.target << each.size;
    std::array<char, 8> size{};
    std::snprintf(size.data(), size.size(), "%zx", each.size);
    EXPECT_EQ(under_test
                  .ask(head + "Transfer-Encoding: chunked\r\n\r\n" + size.data() + "\r\n" + body +
                       "\r\n0\r\n\r\n")
                  .status(),
              each.status)
        << each.target << each.size << " in chunks";
    raw_client client(under_test.connect());
    client.send(
        headers, 4, 1,
        std::string("\x83\x86") + literal(":path", each.target) + literal(":authority", "a"));
    client.send(data, 1, 1, body);
    EXPECT_THAT(client.decode(client.read(headers)).fields,
                HasSubstr(":status: " + std::to_string(each.status) + "\n"))
        << each.target << each.size << " by HTTP/2";
  }
}

TEST(gateway_route_bounds, take_the_place_of_the_timeout_of_the_upstream) {
  for (auto const* const http2 : {"false", "true"}) {
    origin api;
    gateway const under_test("upstreams: {api: {servers: [" + api.url() +
                             "], timeout: 60s, retries: 0, http2: " + http2 +
                             "}}\nroutes:\n"
                             "  - {match: {path: /**}, upstream: api, timeout: 50ms}\n");
    auto client = under_test.connect();
    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    auto const server = api.accept();
    EXPECT_EQ(client.read_response().status(), 504) << http2;
  }
}

TEST(gateway_route_bounds, take_the_place_of_the_timeout_for_requests_with_a_key) {
  data_folder data;
  origin api;
  gateway const under_test("data: " + data.path() + "\nupstreams: {api: {servers: [" + api.url() +
                           "], timeout: 60s}}\nroutes:\n  - {match: {path: /**}, upstream: api, "
                           "timeout: 50ms, idempotency: {mode: required}}\n");
  auto client = under_test.connect();
  client.send(post("\"k1\""));
  auto const server = api.accept();
  EXPECT_EQ(client.read_response().status(), 504);
}

}  // namespace
}  // namespace tidegate::e2e
