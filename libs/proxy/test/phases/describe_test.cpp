// SPDX-License-Identifier: Apache-2.0
#include "phases/describe.hpp"

#include "phases/phase_fixture.hpp"

#include <gmock/gmock.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::HasSubstr;

[[nodiscard]] auto limited() -> std::string {
  return "policies: {p: {quota: 9, window: 1h}}\n"
         "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n";
}

TEST(proxy_describe, gives_browsers_a_page_and_programs_json) {
  struct row {
    std::string accept;
    bool html;
  };
  phase_fixture with(limited());
  for (auto const& [accept, html] : std::vector<row>{
           {"", false},
           {"Accept: */*\r\n", false},
           {"Accept: application/json\r\n", false},
           {"Accept: text/html\r\n", true},
           {"Accept: text/*\r\n", true},
           {"Accept: text/html, application/json\r\n", true},
           {"Accept: text/html;q=0.5, application/json\r\n", false},
           {"Accept: text/html;q=0, */*\r\n", false},
           {"Accept: text/html, application/xhtml+xml, */*;q=0.8\r\n", true},
           {"Accept: image/png\r\n", false},
           {"Accept: image/png\r\nAccept: text/html\r\n", true},
       }) {
    auto const reply = describe(with.get(accept), with.config.active, with.texts());
    EXPECT_EQ(reply.status, 200) << accept;
    EXPECT_EQ(reply.content_type, html ? "text/html; charset=utf-8" : "application/json") << accept;
    EXPECT_EQ(reply.content,
              html ? with.settings().description_html : with.settings().description_json)
        << accept;
    EXPECT_THAT(reply.field_lines, HasSubstr("Vary: Accept\r\n")) << accept;
  }
}

TEST(proxy_describe, names_the_policies_of_the_configuration) {
  phase_fixture with(limited());
  auto const reply = describe(with.get(), with.config.active, with.texts());
  EXPECT_THAT(reply.content, HasSubstr("\"p\""));
  EXPECT_THAT(reply.field_lines, HasSubstr("Cache-Control: no-cache\r\n"));
  EXPECT_EQ(reply.reason, "") << "it is not a refusal";
}

TEST(proxy_describe, keeps_the_configuration_whose_text_it_sends) {
  phase_fixture with(limited());
  auto const users = with.config.active.use_count();
  auto const reply = describe(with.get(), with.config.active, with.texts());
  EXPECT_EQ(with.config.active.use_count(), users + 1);
  EXPECT_EQ(reply.owner, with.config.active);
}

TEST(proxy_describe, is_only_read) {
  phase_fixture with(limited());
  for (std::string const method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    auto const context = with.ask(method + " /a HTTP/1.1\r\nHost: h\r\n\r\n");
    auto const reply = describe(context, with.config.active, with.texts());
    EXPECT_EQ(reply.status, 405) << method;
    EXPECT_EQ(reply.reason, "method-not-allowed") << method;
    EXPECT_EQ(reply.field_lines, "Allow: GET, HEAD\r\n") << method;
    EXPECT_EQ(reply.content_type, http::problem_json) << method;
  }
  auto const head = with.ask("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(describe(head, with.config.active, with.texts()).status, 200);
}

}  // namespace
}  // namespace tidegate::gateway
