// SPDX-License-Identifier: Apache-2.0
#include "api/api_session.hpp"

#include "endpoint_fixture.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::MatchesRegex;
using enum wire::method;

constexpr instant start{1h};

class admin_api_session : public testing::Test {
 protected:
  admin_api_session() {
    std::vector<bearer_token> const tokens{{"ops", sha256::of("secret"), "", false}};
    access.use(tokens);
    caller = {.token = "ops", .digest = sha256::of("secret")};
  }

  auto ask(wire::method method) -> admin_answer {
    return answer_session(access, caller, cookie, method, start);
  }
  /// The value of Set-Cookie; empty where there is none.
  static auto cookie_in(admin_answer const& answer) -> std::string {
    EXPECT_LE(answer.fields.size(), 1U);
    return answer.fields.empty() ? "" : answer.fields.front().second;
  }

  admin_access access{true};
  admin_caller caller;
  session_cookie cookie{"tidegate_session_9901"};
};

TEST_F(admin_api_session, says_who_asks) {
  struct row {
    admin_caller caller;
    std::string_view json;
  };
  for (auto const& [who, json] : {
           row{{}, R"({"token":null,"read-only":false,"session":false})"},
           row{{.token = "ops"}, R"({"token":"ops","read-only":false,"session":false})"},
           row{{.token = "a\"b", .read_only = true},
               R"({"token":"a\"b","read-only":true,"session":false})"},
           row{{.token = "ops", .session = sha256::of("x")},
               R"({"token":"ops","read-only":false,"session":true})"},
       }) {
    EXPECT_EQ(caller_json(who), json);
    caller = who;
    for (auto const method : {get, head}) {
      auto const answer = ask(method);
      EXPECT_EQ(answer.status, 200);
      EXPECT_EQ(answer.content_type, json_content);
      EXPECT_EQ(answer.content, std::string(json) + "\n");
      EXPECT_EQ(cookie_in(answer), "");
    }
  }
}

TEST_F(admin_api_session, makes_a_cookie_of_a_token_and_shows_neither) {
  auto const answer = ask(post);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.content, "{\"token\":\"ops\",\"read-only\":false,\"session\":true}\n");
  EXPECT_THAT(cookie_in(answer),
              MatchesRegex("tidegate_session_9901=[0-9a-f]+; Path=/; HttpOnly; SameSite=Strict; "
                           "Max-Age=43200"));
  ASSERT_TRUE(caller.session);
  EXPECT_TRUE(access.holds(caller, start));
  EXPECT_FALSE(access.holds(caller, start + admin_access::session_lifetime));
}

TEST_F(admin_api_session, makes_a_secure_cookie_for_a_browser_with_tls) {
  cookie.secure = true;
  EXPECT_THAT(cookie_in(ask(post)), MatchesRegex(".*; Max-Age=43200; Secure"));
  EXPECT_THAT(cookie_in(ask(delete_)), MatchesRegex(".*; Max-Age=0; Secure"));
}

TEST_F(admin_api_session, makes_another_cookie_each_time) {
  auto const first = cookie_in(ask(post));
  caller.session.reset();
  EXPECT_NE(cookie_in(ask(post)), first);
}

TEST_F(admin_api_session, ends_with_the_log_out) {
  (void)ask(post);
  auto const logged_in = caller;
  auto const answer = ask(delete_);
  EXPECT_EQ(answer.status, 204);
  EXPECT_EQ(answer.content, "");
  EXPECT_EQ(cookie_in(answer),
            "tidegate_session_9901=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
  EXPECT_FALSE(access.holds(logged_in, start));
}

TEST_F(admin_api_session, refuses_a_log_in_without_a_token_or_with_a_session) {
  (void)ask(post);
  expect_problem(ask(post), 409, "There is a session already.");
  caller = {};
  expect_problem(ask(post), 409, "This address does not require a token.");
}

}  // namespace
}  // namespace tidegate::gateway
