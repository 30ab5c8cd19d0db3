// SPDX-License-Identifier: Apache-2.0
//
// Requests that the admin address sends through the gateway's own listener.
#include "gateway.hpp"
#include "keyed.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view echo =
    "policies: {p: {quota: 3, window: 1h, algorithm: fixed, partition: [header:x-api-key]}}\n"
    "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n";

auto send(gateway const& with, std::string_view content,
          std::string_view lines = "Content-Type: application/json\r\n") -> message {
  auto client = with.connect_admin();
  client.send("POST /api/v1/try HTTP/1.1\r\nHost: localhost\r\n" + std::string(lines) +
              "Content-Length: " + std::to_string(content.size()) + "\r\n\r\n" +
              std::string(content));
  return client.read_response();
}

void expect_problem(message const& answer, int status, std::string_view part) {
  EXPECT_EQ(answer.status(), status) << answer.body;
  EXPECT_EQ(answer.field("Content-Type"), "application/problem+json");
  EXPECT_THAT(answer.body, HasSubstr(part));
}

TEST(gateway_try, sends_a_request_and_tells_what_came_back) {
  gateway const with{std::string(echo)};
  for (int left = 2; left >= 0; --left) {
    auto const answer =
        send(with, R"({"path":"/a?b=c","fields":[["X-Api-Key","k"]],"host":"a.example"})");
    EXPECT_EQ(answer.status(), 200) << answer.body;
    EXPECT_THAT(answer.body, StartsWith(R"({"status":200,"reason":"OK","fields":[[)"));
    EXPECT_THAT(answer.body, HasSubstr(R"(["RateLimit","\"p\";r=)" + std::to_string(left) + ";t="));
    EXPECT_THAT(answer.body, HasSubstr(R"("body":"{\"method\":\"GET\",\"path\":\"/a\",)"));
    EXPECT_THAT(answer.body, HasSubstr(R"([\"Host\",\"a.example\"],[\"X-Api-Key\",\"k\"])"));
    EXPECT_THAT(answer.body, ContainsRegex(R"("body-octets":[0-9]+,"whole":true,)"
                                           R"("milliseconds":[0-9]+\.[0-9]+,"findings":\[\{)"));
    EXPECT_THAT(answer.body, HasSubstr(left == 0 ? R"(nothing of 3 requests left)"
                                                 : std::to_string(left) + " of 3"));
  }
  auto const refused = send(with, R"({"path":"/a","fields":[["X-Api-Key","k"]]})");
  EXPECT_EQ(refused.status(), 200);
  EXPECT_THAT(refused.body, StartsWith(R"({"status":429,"reason":"Too Many Requests",)"));
  EXPECT_THAT(refused.body, HasSubstr("Retry-After"));
}

TEST(gateway_try, sends_content_and_notes_what_may_change_something) {
  serving_origin const api([](message const& request) {
    return response("201 Created", request.start_line + "|" + request.body);
  });
  gateway with(proxy_config(api.url()));
  auto const made = send(
      with,
      R"({"method":"POST","path":"/a?token=secret","fields":[["Content-Type","text/plain"]],"body":"pay"})");
  EXPECT_THAT(made.body, StartsWith(R"({"status":201,)"));
  EXPECT_THAT(made.body, HasSubstr(R"("body":"POST /a?token=secret HTTP/1.1|pay")"));
  (void)send(with, R"({"path":"/only-looks"})");
  auto said = with.errors_until("to send POST /a: answered 201");
  said += with.errors();
  EXPECT_THAT(said, ContainsRegex("asked by 127.0.0.1:[0-9]+ to send POST /a: answered 201"));
  EXPECT_THAT(said, Not(HasSubstr("only-looks")));
  EXPECT_THAT(said, Not(HasSubstr("secret")));
}

TEST(gateway_try, shows_the_beginning_of_a_long_answer_and_reads_no_more_than_it_may) {
  std::string const long_content(100'000, 'x');
  serving_origin const api(response("200 OK", long_content));
  gateway const with(proxy_config(api.url()));
  auto const answer = send(with, R"({"path":"/"})");
  EXPECT_THAT(answer.body, HasSubstr(R"("body-octets":100000,"whole":true)"));
  EXPECT_THAT(answer.body, HasSubstr("\"body\":\"" + std::string(16'384, 'x') + "\""));

  serving_origin const endless(response("200 OK", std::string(3'000'000, 'y')));
  gateway const before_more(proxy_config(endless.url()));
  auto const cut = send(before_more, R"({"path":"/"})");
  EXPECT_EQ(cut.status(), 200);
  EXPECT_THAT(cut.body, ContainsRegex(R"("body-octets":1[0-9]{6},"whole":false)"));
}

TEST(gateway_try, takes_answers_without_content_and_those_that_are_not_text) {
  serving_origin const api([](message const& request) {
    return request.start_line.starts_with("HEAD")
               ? "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"
               : response("200 OK", std::string_view("\xff\x00\"", 3));
  });
  gateway const with(proxy_config(api.url()));
  EXPECT_THAT(send(with, R"({"method":"HEAD","path":"/"})").body,
              HasSubstr(R"("body":"","body-octets":0,"whole":true)"));
  EXPECT_THAT(send(with, R"({"path":"/"})").body,
              HasSubstr("\"body\":\"\xef\xbf\xbd\\u0000\\\"\",\"body-octets\":3"));
}

TEST(gateway_try, passes_over_listeners_for_proxies_and_goes_through_one_at_a_path) {
  data_folder const data;
  std::string const for_proxies = "{address: \"127.0.0.1:0\", proxy-protocol: true}";
  std::string const trusted = "trusted-proxies: [10.0.0.0/8]\n";
  gateway const only_those(trusted + std::string(echo), gateway_options{.listen = for_proxies});
  expect_problem(send(only_those, R"({"path":"/"})"), 409, "PROXY protocol");
  gateway const with(
      trusted + std::string(echo),
      gateway_options{.listen = "[" + for_proxies + ", \"unix:" + data.path() + "/socket\"]"});
  auto const answer = send(with, R"({"path":"/a"})");
  EXPECT_THAT(answer.body, StartsWith(R"({"status":200,)"));
  EXPECT_THAT(answer.body, HasSubstr(R"([\"Host\",\"localhost\"])"));
}

TEST(gateway_try, goes_through_a_listener_with_tls) {
  data_folder const data;
  auto const made =
      run({"/usr/bin/env", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
           "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=a.example",
           "-keyout", data.path() + "/key.pem", "-out", data.path() + "/cert.pem"});
  ASSERT_EQ(made.status, 0) << made.err;
  gateway const with(
      std::string(echo),
      gateway_options{.listen = "{address: \"127.0.0.1:0\", tls: {certificate: " + data.path() +
                                "/cert.pem, key: " + data.path() + "/key.pem}}"});
  for (std::string const host : {"", R"(,"host":"a.example")", R"(,"host":"[::1]:8443")"}) {
    auto const answer = send(with, R"({"path":"/a")" + host + "}");
    EXPECT_THAT(answer.body, StartsWith(R"({"status":200,)")) << host;
  }
}

TEST(gateway_try, says_when_there_is_no_answer) {
  origin api;
  gateway const with("upstreams: {api: {servers: [" + api.url() +
                     "], timeout: 60s}}\nroutes: [{match: {path: /**}, upstream: api}]\n");
  expect_problem(send(with, R"({"path":"/"})"), 504, "no response within 8 seconds");
}

TEST(gateway_try, refuses_what_is_not_one_valid_request) {
  gateway const with{std::string(echo)};
  for (auto const& [content, part] : std::vector<std::pair<std::string, std::string>>{
           {"{", "not JSON"},
           {"[]", "JSON object"},
           {"{}", "path must begin"},
           {R"({"path":"a"})", "path must begin"},
           {R"({"path":"http://evil.example/"})", "path must begin"},
           {R"({"path":"/a b"})", "path must begin"},
           {R"({"path":"/a\r\nX: y"})", "path must begin"},
           {R"({"path":"/a#b"})", "path must begin"},
           {R"({"path":"/a","method":"GET /x"})", "method must be"},
           {R"({"path":"/a","method":"CONNECT"})", "method must be"},
           {R"({"path":"/a","method":7})", "method must be a string"},
           {R"({"path":"/a","host":"a\r\nb"})", "host must be"},
           {R"({"path":"/a","host":""})", "host must be"},
           {R"({"path":"/a","fields":{}})", "array of at most 100"},
           {R"({"path":"/a","fields":[["a"]]})", "array of at most 100"},
           {R"({"path":"/a","fields":[["a",1]]})", "array of at most 100"},
           {R"({"path":"/a","fields":[["a b","1"]]})", "name of a header"},
           {R"({"path":"/a","fields":[["a","1\r\nb: 2"]]})", "value of a"},
           {R"({"path":"/a","fields":[["Host","b"]]})", "use host"},
           {R"({"path":"/a","fields":[["content-length","1"]]})", "set by the gateway"},
           {R"({"path":"/a","fields":[["Transfer-Encoding","chunked"]]})", "set by the gateway"},
           {R"({"path":"/a","address":"10.0.0.1:80"})", "nknown member"},
       }) {
    SCOPED_TRACE(content);
    expect_problem(send(with, content), 400, part);
  }
  expect_problem(send(with, "{}", "Content-Type: text/plain\r\n"), 415, "application/json");
  expect_problem(send(with, "{}", "Origin: http://evil.example\r\n"), 403, "other origins");
  EXPECT_EQ(with.admin("/api/v1/try").status(), 405);
}

}  // namespace
}  // namespace tidegate::e2e
