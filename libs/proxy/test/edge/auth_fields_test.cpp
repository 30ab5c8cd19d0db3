// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/auth_fields.hpp>

#include "phases/auth/authenticate.hpp"
#include "phases/phase_fixture.hpp"
#include "request/forwarded_head.hpp"

#include <gmock/gmock.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(proxy_auth_fields, take_parameters_out_of_a_query_and_leave_the_rest) {
  std::vector<std::string> const names{"api_key", "k"};
  struct row {
    std::string target, wanted;
  };
  for (auto const& [target, wanted] : std::vector<row>{
           {"/a", "/a"},
           {"/a?", "/a?"},
           {"/a?api_key=x", "/a"},
           {"/a?api_key", "/a"},
           {"/a?b=1&api_key=x&c=%2f", "/a?b=1&c=%2f"},
           {"/a?api_key=x&b=1", "/a?b=1"},
           {"/a?b=1&api_key=x", "/a?b=1"},
           {"/a?k=1&b&k=2&c&%6b=3", "/a?b&c"},
           {"/a?b=api_key=x", "/a?b=api_key=x"},
           {"/a?api_keys=x&API_KEY=x", "/a?api_keys=x&API_KEY=x"},
           {"/a?&&api_key=x&", "/a?&&"},
           {"/a?b=+%20&api%5fkey=x", "/a?b=+%20"},
           {"?api_key=x&b", "?b"},
       }) {
    auto made = target;
    remove_parameters(made, names);
    EXPECT_EQ(made, wanted) << target;
  }
  EXPECT_TRUE(has_parameter_of("a=b&%6b", names));
  EXPECT_FALSE(has_parameter_of("a=k", names));
}

// SHA-256 of "alpha" and of "beta".
constexpr std::string_view consumers =
    "consumers: {acme: {plan: pro, keys: [{name: a, sha256: "
    "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8}], attributes: {r: eu}}}\n"
    "upstreams: {api: 'http://127.0.0.1:1'}\n";

/// The head that an upstream gets.
auto forwarded(std::string const& auth, std::string const& target, std::string const& lines,
               std::string const& more = "") -> std::string {
  phase_fixture with(std::string(consumers) +
                     "routes: [{match: {path: /**}, upstream: api, auth: {" + auth + "}" + more +
                     "}]\n");
  auto context = with.ask("GET " + target + " HTTP/1.1\r\nHost: h\r\n" + lines + "\r\n");
  context.path = context.head->path();
  std::string room;
  EXPECT_EQ(authenticate(context, with.config.active->consumers, with.texts(), room), step::next);
  std::string field_lines;
  std::string value;
  std::string out;
  append_forwarded_head(out, context, "HTTP/1.1", {}, {field_lines, value, with.lines});
  return out;
}

TEST(proxy_auth_fields, take_api_keys_out_and_let_the_rest_pass) {
  auto const in = std::string("api-keys: {in: [header:x-api-key, query:api_key, bearer]}");
  auto const by_header = forwarded(in, "/a?b=%2F", "X-Api-Key: alpha\r\nA: b\r\n");
  EXPECT_THAT(by_header, testing::StartsWith("GET /a?b=%2F HTTP/1.1\r\nHost: h\r\nA: b\r\n"));
  EXPECT_THAT(by_header, Not(HasSubstr("alpha")));
  EXPECT_THAT(forwarded(in, "/a?b=1&api_key=alpha&c", ""),
              testing::StartsWith("GET /a?b=1&c HTTP"));
  EXPECT_THAT(forwarded(in, "/a", "Authorization: Bearer alpha\r\n"), Not(HasSubstr("alpha")));
  // Those that did not decide, too.
  auto const several = forwarded(in, "/a?api_key=other",
                                 "X-Api-Key: alpha\r\nX_API_KEY: third\r\n"
                                 "Authorization: Bearer fourth\r\n");
  for (auto const* const secret : {"alpha", "other", "third", "fourth"}) {
    EXPECT_THAT(several, Not(HasSubstr(secret)));
  }
  EXPECT_THAT(forwarded(in + ", optional: true", "/", "Authorization: Basic x\r\n"),
              HasSubstr("Authorization: Basic x\r\n"));
}

TEST(proxy_auth_fields, send_credentials_where_they_are_wanted_and_only_there) {
  auto const keys = std::string("api-keys: {in: [header:x-api-key, query:api_key]}");
  auto const kept =
      forwarded(keys + ", forward-credentials: true", "/?api_key=", "X-Api-Key: alpha\r\n");
  EXPECT_THAT(kept, HasSubstr("GET /?api_key= HTTP"));
  EXPECT_THAT(kept, HasSubstr("X-Api-Key: alpha\r\n"));
  auto const token = std::string(
      "bearer-tokens: [{name: t, sha256: "
      "f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753}]");
  auto const line = std::string("Authorization: Bearer beta\r\n");
  EXPECT_THAT(forwarded(token, "/", line), HasSubstr(line));
  EXPECT_THAT(forwarded(token + ", api-keys: {in: bearer}", "/", line), HasSubstr(line));
  EXPECT_THAT(forwarded(token + ", forward-credentials: false", "/", line), Not(HasSubstr("beta")));
}

TEST(proxy_auth_fields, tell_who_asks_and_drop_what_clients_say_of_that) {
  auto const auth = std::string(
      "api-keys: {in: header:x-api-key}, optional: true, pass: {principal: X-Consumer, plan: "
      "X-Plan, attribute:r: X-Region}");
  auto const forged = std::string(
      "X-Consumer: root\r\nx_consumer: root\r\nX-CONSUMER: root\r\nX-Plan: root\r\nX.Plan: root\r\n"
      "x-region: root\r\nConnection: x-consumer\r\n");
  auto const known = forwarded(auth, "/", "X-Api-Key: alpha\r\n" + forged);
  EXPECT_THAT(known, HasSubstr("X-Consumer: acme\r\nX-Plan: pro\r\nX-Region: eu\r\n"));
  EXPECT_THAT(known, Not(HasSubstr("root")));
  auto const anonymous = forwarded(auth, "/", forged);
  EXPECT_THAT(anonymous, HasSubstr("X-Plan: anonymous\r\n"));
  EXPECT_THAT(anonymous, Not(HasSubstr("X-Consumer")));
  EXPECT_THAT(anonymous, Not(HasSubstr("root")));
}

TEST(proxy_auth_fields, drop_what_servers_read_as_a_name_with_an_underscore) {
  auto const auth = std::string(
      "api-keys: {in: header:x-api-key}, optional: true, pass: {principal: X_User, plan: "
      "x_real_ip}");
  auto const forged = std::string(
      "X-User: root\r\nx_user: root\r\nX.User: root\r\nX-Real-Ip: root\r\nX-Users: other\r\n");
  auto const known = forwarded(auth, "/", "X-Api-Key: alpha\r\n" + forged);
  EXPECT_THAT(known, HasSubstr("X_User: acme\r\nx_real_ip: pro\r\n"));
  EXPECT_THAT(known, Not(HasSubstr("root")));
  EXPECT_THAT(known, HasSubstr("X-Users: other\r\n"));
}

TEST(proxy_auth_fields, go_with_rules_and_rewritten_paths) {
  auto const made = forwarded("api-keys: {in: query:api_key}, pass: {principal: X-Consumer}",
                              "/a/b?api_key=alpha&c", "X-Old: 1\r\n",
                              ", rewrite: {add-prefix: /v2}, request: {remove: [X-Old], set: "
                              "{X-New: n}}");
  EXPECT_THAT(made, testing::StartsWith("GET /v2/a/b?c HTTP/1.1\r\n"));
  EXPECT_THAT(made, HasSubstr("X-Consumer: acme\r\n"));
  EXPECT_THAT(made, HasSubstr("X-New: n\r\n"));
  EXPECT_THAT(made, Not(HasSubstr("X-Old")));
}

}  // namespace
}  // namespace tidegate::gateway
