// SPDX-License-Identifier: Apache-2.0
#include "phases/authorize.hpp"

#include "phases/phase_fixture.hpp"

#include <gmock/gmock.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::HasSubstr;

enum class who : std::uint8_t { stranger, reader, writer };

[[nodiscard]] auto route_with(std::string const& service) -> std::string {
  return "data: /nowhere\nroutes: [{match: {path: /scim/v2/**}, service: " + service + ", " +
         std::string(auth_of_alpha_and_beta) + "}]\n";
}

/// The context of a request by one of them.
[[nodiscard]] auto ask_as(phase_fixture& with, who asks, std::string const& method,
                          std::string const& path, std::string const& lines = "")
    -> request_context {
  auto context = with.ask(method + " " + path + " HTTP/1.1\r\nHost: h\r\n" + lines + "\r\n");
  auto const& tokens = with.settings().config.routes[0].auth->tokens;
  context.token = asks == who::stranger ? nullptr : &tokens[asks == who::writer ? 0 : 1];
  context.credential = asks != who::stranger       ? shown_credential::right
                       : lines.contains("Bearer ") ? shown_credential::wrong
                                                   : shown_credential::none;
  return context;
}

TEST(proxy_authorize, lets_readers_read_and_writers_do_everything) {
  struct row {
    who asks;
    std::string_view method;
    bool echo;
    bool scim;  // which knows itself what only reads
  };
  phase_fixture echo(route_with("echo"));
  phase_fixture scim(route_with("scim"));
  for (auto const& [asks, method, by_echo, by_scim] : std::vector<row>{
           {who::writer, "GET", true, true},
           {who::writer, "POST", true, true},
           {who::writer, "DELETE", true, true},
           {who::reader, "GET", true, true},
           {who::reader, "HEAD", true, true},
           {who::reader, "OPTIONS", true, true},
           {who::reader, "POST", false, true},
           {who::reader, "PUT", false, true},
           {who::reader, "PATCH", false, true},
           {who::reader, "DELETE", false, true},
           {who::reader, "PURGE", false, true},
           {who::stranger, "GET", false, false},
           {who::stranger, "POST", false, false},
       }) {
    std::string const text(method);
    EXPECT_EQ(is_authorized(ask_as(echo, asks, text, "/scim/v2/Users")), by_echo)
        << method << " by " << static_cast<int>(asks);
    EXPECT_EQ(is_authorized(ask_as(scim, asks, text, "/scim/v2/Users")), by_scim)
        << method << " by " << static_cast<int>(asks);
  }
}

TEST(proxy_authorize, tells_strangers_how_to_authenticate_with_scim) {
  struct row {
    std::string_view method;
    std::string_view path;
    bool allowed;
  };
  phase_fixture scim(route_with("scim"));
  phase_fixture echo(route_with("echo"));
  for (auto const& [method, path, allowed] : std::vector<row>{
           {"GET", "/scim/v2/ServiceProviderConfig", true},
           {"HEAD", "/scim/v2/ServiceProviderConfig", true},
           {"POST", "/scim/v2/ServiceProviderConfig", false},
           {"GET", "/scim/v2/ServiceProviderConfig/x", false},
           {"GET", "/scim/v2/serviceproviderconfig", false},
           {"GET", "/scim/v2/Users", false},
           {"GET", "/scim/v2/Users/ServiceProviderConfig", false},
       }) {
    auto const context = ask_as(scim, who::stranger, std::string(method), std::string(path));
    EXPECT_EQ(is_authorized(context), allowed) << method << " " << path;
  }
  EXPECT_FALSE(is_authorized(ask_as(echo, who::stranger, "GET", "/scim/v2/ServiceProviderConfig")));
}

TEST(proxy_authorize, says_why_it_refuses) {
  struct row {
    who asks;
    std::string lines;
    int status;
    std::string_view reason;
    std::string_view challenge;
  };
  phase_fixture with(route_with("echo"));
  for (auto const& [asks, lines, status, reason, challenge] : std::vector<row>{
           {who::stranger, "", 401, "token-missing", R"(Bearer realm="tidegate")"},
           {who::stranger, "Authorization: Bearer x\r\n", 401, "token-unknown",
            R"(Bearer realm="tidegate", error="invalid_token")"},
           {who::stranger, "Authorization: Basic x\r\n", 401, "token-missing",
            R"(Bearer realm="tidegate")"},
           {who::reader, "Authorization: Bearer beta\r\n", 403, "token-read-only", ""},
       }) {
    auto const context = ask_as(with, asks, "POST", "/scim/v2/Users", lines);
    auto const why = auth_refusal_of(context);
    EXPECT_EQ(why.status, status) << reason;
    EXPECT_EQ(why.reason, reason);
    EXPECT_EQ(why.challenge, challenge) << reason;

    auto const reply = refuse_unauthorized(context, with.texts());
    EXPECT_EQ(reply.status, status) << reason;
    EXPECT_EQ(reply.reason, reason);
    EXPECT_EQ(reply.content_type, http::problem_json) << reason;
    EXPECT_THAT(reply.content, HasSubstr("\"status\":" + std::to_string(status))) << reason;
    EXPECT_THAT(reply.content, HasSubstr(std::string(why.detail))) << reason;
    EXPECT_EQ(reply.field_lines, challenge.empty()
                                     ? std::string()
                                     : "WWW-Authenticate: " + std::string(challenge) + "\r\n")
        << reason;
  }
}

}  // namespace
}  // namespace tidegate::gateway
