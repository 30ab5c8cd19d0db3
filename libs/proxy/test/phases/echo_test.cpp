// SPDX-License-Identifier: Apache-2.0
#include "phases/echo.hpp"

#include "phases/phase_fixture.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

TEST(proxy_echo, says_what_came) {
  struct row {
    std::string_view name;
    std::string_view head;
    std::string_view content;
  };
  phase_fixture with("routes: [{match: {path: /**}, service: echo}]\n");
  for (auto const& [name, head, content] : std::vector<row>{
           {"a request", "GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
            R"({"method":"GET","path":"/a","query":"","fields":[["Host","h"]]})"
            "\n"},
           {"a query", "GET /a?b=c&d HTTP/1.1\r\nHost: h\r\n\r\n",
            R"({"method":"GET","path":"/a","query":"?b=c&d","fields":[["Host","h"]]})"
            "\n"},
           {"an unknown method", "PURGE /a HTTP/1.1\r\nHost: h\r\n\r\n",
            R"({"method":"PURGE","path":"/a","query":"","fields":[["Host","h"]]})"
            "\n"},
           {"fields in their order, with their case, repeated",
            "GET /a HTTP/1.1\r\nHost: h\r\nX-b: 2\r\nx-A: 1\r\nX-b: 3\r\n\r\n",
            R"({"method":"GET","path":"/a","query":"","fields":[["Host","h"],["X-b","2"],)"
            R"(["x-A","1"],["X-b","3"]]})"
            "\n"},
           {"what JSON escapes", "GET /a HTTP/1.1\r\nHost: h\r\nX: a\"b\\c\td\r\n\r\n",
            R"({"method":"GET","path":"/a","query":"","fields":[["Host","h"],["X","a\"b\\c\td"]]})"
            "\n"},
       }) {
    auto const reply = echo(with.ask(head), with.texts());
    EXPECT_EQ(reply.status, 200) << name;
    EXPECT_EQ(reply.content_type, "application/json") << name;
    EXPECT_EQ(reply.content, content) << name;
  }
}

TEST(proxy_echo, counts_as_a_service_and_not_as_a_refusal) {
  phase_fixture with("routes: [{match: {path: /**}, service: echo}]\n");
  auto const reply = echo(with.get(), with.texts());
  EXPECT_TRUE(reply.is_service);
  EXPECT_EQ(reply.reason, "");
  EXPECT_EQ(reply.field_lines, "");
}

TEST(proxy_echo, shows_the_normal_path) {
  phase_fixture with("routes: [{match: {path: /**}, service: echo}]\n");
  auto context = with.ask("GET /x/../a HTTP/1.1\r\nHost: h\r\n\r\n");
  context.path = "/a";
  EXPECT_EQ(echo(context, with.texts()).content,
            R"({"method":"GET","path":"/a","query":"","fields":[["Host","h"]]})"
            "\n");
}

TEST(proxy_echo, does_not_repeat_the_request_before) {
  phase_fixture with("routes: [{match: {path: /**}, service: echo}]\n");
  auto const first = std::string(echo(with.get("X-Long: abcdef\r\n"), with.texts()).content);
  auto const second = std::string(echo(with.get(), with.texts()).content);
  EXPECT_NE(first, second);
  EXPECT_EQ(second, R"({"method":"GET","path":"/a","query":"","fields":[["Host","h"]]})"
                    "\n");
}

}  // namespace
}  // namespace tidegate::gateway
