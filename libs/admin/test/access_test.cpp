// SPDX-License-Identifier: Apache-2.0
#include "access.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view cookie = "tidegate_session_9901";
constexpr instant start{1h};

auto token(std::string name, std::string_view secret, bool read_only = false) -> bearer_token {
  return {std::move(name), sha256::of(secret), "", read_only};
}

auto address(std::string_view text) -> http::ip_address {
  return *http::parse_ip_address(text);
}

/// What a request with these field lines gets: `ops`, `ops (session)`, or the status of its
/// refusal.
class access_of : public testing::Test {
 protected:
  access_of() {
    std::vector<bearer_token> const tokens{token("ops", "secret"), token("look", "reader", true)};
    access.use(tokens);
  }

  auto ask(std::string_view request_line, std::string_view lines = "",
           std::string_view from = "192.0.2.1", instant now = start) -> std::string {
    text_ = std::string(request_line) + " HTTP/1.1\r\nHost: gw.example:9901\r\n" +
            std::string(lines) + "\r\n";
    auto const head = std::make_unique<wire::request_head>();
    EXPECT_EQ(wire::parse_request_head(text_, 0, {}, *head).state, wire::head_state::complete);
    auto caller = access.authorize(*head, cookie, address(from), now);
    if (!caller) {
      refusal = std::move(caller.error());
      return std::to_string(refusal.status);
    }
    last = *std::move(caller);
    return last.token + (last.session ? " (session)" : "") + (last.read_only ? " (read-only)" : "");
  }
  auto get(std::string_view lines = "", std::string_view from = "192.0.2.1", instant now = start)
      -> std::string {
    return ask("GET /metrics", lines, from, now);
  }

  admin_access access{true};
  admin_caller last;
  admin_answer refusal;

 private:
  std::string text_;
};

using admin_access_control = access_of;

TEST_F(admin_access_control,
       refuses_changes_by_pages_of_other_sites_also_where_no_token_is_needed) {
  admin_access open{false};
  auto const ask_open = [&](std::string_view request_line, std::string_view lines) {
    auto const text = std::string(request_line) + " HTTP/1.1\r\nHost: gw.example:9901\r\n" +
                      std::string(lines) + "\r\n";
    auto const head = std::make_unique<wire::request_head>();
    EXPECT_EQ(wire::parse_request_head(text, 0, {}, *head).state, wire::head_state::complete);
    auto const caller = open.authorize(*head, cookie, address("127.0.0.1"), start);
    return caller ? 200 : caller.error().status;
  };
  EXPECT_EQ(ask_open("POST /api/v1/config", "Sec-Fetch-Site: cross-site\r\n"), 403);
  EXPECT_EQ(ask_open("POST /api/v1/config", "Sec-Fetch-Site: same-site\r\n"), 403);
  EXPECT_EQ(ask_open("POST /api/v1/config", "Sec-Fetch-Site: same-origin\r\n"), 200);
  EXPECT_EQ(ask_open("POST /api/v1/config", "Sec-Fetch-Site: none\r\n"), 200);
  EXPECT_EQ(ask_open("POST /api/v1/config", "Sec-Fetch-Site: Same-Origin\r\n"), 200);
  for (auto const* const lines : {"Sec-Fetch-Site: Cross-Site\r\n", "SEC-FETCH-SITE: SAME-SITE\r\n",
                                  "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n",
                                  "Sec-Fetch-Site: none\r\nsec-fetch-site: none\r\n",
                                  "Sec-Fetch-Site: none, cross-site\r\n", "Sec-Fetch-Site:\r\n"}) {
    EXPECT_EQ(ask_open("POST /api/v1/config", lines), 403) << lines;
  }
  EXPECT_EQ(ask_open("POST /api/v1/config", ""), 200) << "programs do not say";
  EXPECT_EQ(ask_open("GET /metrics", "Sec-Fetch-Site: cross-site\r\n"), 200) << "it only reads";
}

TEST_F(admin_access_control, lets_in_who_has_a_token) {
  EXPECT_EQ(get("Authorization: Bearer secret\r\n"), "ops");
  EXPECT_EQ(get("Authorization: bearer reader\r\n"), "look (read-only)");
  for (auto const* const wrong :
       {"", "Authorization: Bearer wrong\r\n", "Authorization: Basic secret\r\n",
        "Authorization: Bearer\r\n", "Authorization: secret\r\n", "X-Token: secret\r\n",
        "Authorization: Bearer secret\r\nAuthorization: Bearer secret\r\n"}) {
    EXPECT_EQ(get(wrong), "401") << wrong;
    ASSERT_EQ(refusal.fields.size(), 1U);
    EXPECT_EQ(refusal.fields[0].first, "WWW-Authenticate");
  }
}

TEST_F(admin_access_control, lets_all_in_where_no_token_is_needed_and_none_where_there_is_none) {
  admin_access open(false);
  EXPECT_FALSE(open.needs_token());
  access.use({});
  EXPECT_TRUE(access.needs_token());
  EXPECT_EQ(get("Authorization: Bearer secret\r\n"), "401");
}

TEST_F(admin_access_control, makes_a_session_of_a_token) {
  ASSERT_EQ(get("Authorization: Bearer secret\r\n"), "ops");
  access.open_session(last, "abc", start);
  std::string const with = "Cookie: a=b; tidegate_session_9901=abc; c=d\r\n";
  EXPECT_EQ(get(with), "ops (session)");
  EXPECT_TRUE(access.holds(last, start));
  for (auto const* const other :
       {"Cookie: tidegate_session_9901=abd\r\n", "Cookie: tidegate_session_9901=\r\n",
        "Cookie: tidegate_session_99=abc\r\n", "Cookie: xtidegate_session_9901=abc\r\n",
        "Cookie: tidegate_session_9901\r\n"}) {
    EXPECT_EQ(get(other), "401") << other;
  }
  auto const end = start + admin_access::session_lifetime;
  EXPECT_EQ(get(with, "192.0.2.1", end - 1ns), "ops (session)");
  EXPECT_EQ(get(with, "192.0.2.1", end), "401");
  EXPECT_FALSE(access.holds(last, end));
  access.close_session(last);
  EXPECT_EQ(get(with), "401");
}

TEST_F(admin_access_control, ends_what_was_opened_with_a_token_that_is_gone) {
  ASSERT_EQ(get("Authorization: Bearer secret\r\n"), "ops");
  auto const by_token = last;
  access.open_session(last, "abc", start);
  ASSERT_EQ(get("Cookie: tidegate_session_9901=abc\r\n"), "ops (session)");
  std::vector<bearer_token> const renamed{token("op", "secret", true)};
  access.use(renamed);
  EXPECT_EQ(get("Cookie: tidegate_session_9901=abc\r\n"), "op (session) (read-only)");
  std::vector<bearer_token> const others{token("ops", "another")};
  access.use(others);
  EXPECT_EQ(get("Cookie: tidegate_session_9901=abc\r\n"), "401");
  EXPECT_FALSE(access.holds(by_token, start));
}

TEST_F(admin_access_control, has_so_many_sessions_and_ends_the_oldest) {
  ASSERT_EQ(get("Authorization: Bearer secret\r\n"), "ops");
  auto const caller = last;
  for (std::size_t i = 0; i <= admin_access::sessions_max; ++i) {
    access.open_session(caller, std::to_string(i), start);
  }
  EXPECT_EQ(get("Cookie: tidegate_session_9901=0\r\n"), "401");
  EXPECT_EQ(get("Cookie: tidegate_session_9901=1\r\n"), "ops (session)");
  // Another token ends one of those, and then its own.
  ASSERT_EQ(get("Authorization: Bearer reader\r\n"), "look (read-only)");
  for (std::size_t i = 0; i < admin_access::sessions_max; ++i) {
    access.open_session(last, "look" + std::to_string(i), start);
  }
  EXPECT_EQ(get("Cookie: tidegate_session_9901=1\r\n"), "401");
  EXPECT_EQ(get("Cookie: tidegate_session_9901=2\r\n"), "ops (session)");
}

TEST_F(admin_access_control, leaves_other_schemes_to_a_proxy_in_front) {
  ASSERT_EQ(get("Authorization: Bearer secret\r\n"), "ops");
  access.open_session(last, "abc", start);
  std::string const basic = "Authorization: Basic c2VjcmV0\r\n";
  for (int i = 0; i <= admin_access::tries_max; ++i) {
    EXPECT_EQ(get(basic), "401");
  }
  EXPECT_EQ(get(basic + "Cookie: tidegate_session_9901=abc\r\n"), "ops (session)");
}

TEST_F(admin_access_control, takes_a_cookie_for_changes_from_its_own_pages_only) {
  ASSERT_EQ(get("Authorization: Bearer secret\r\n"), "ops");
  access.open_session(last, "abc", start);
  auto const post = [&](std::string const& lines) {
    return ask("POST /api/v1/config/reload", "Cookie: tidegate_session_9901=abc\r\n" + lines);
  };
  EXPECT_EQ(post("Origin: http://gw.example:9901\r\n"), "ops (session)");
  EXPECT_EQ(post("Origin: https://GW.example:9901\r\n"), "ops (session)");
  EXPECT_EQ(post("Sec-Fetch-Site: same-origin\r\n"), "ops (session)");
  for (auto const* const elsewhere :
       {"", "Origin: null\r\n", "Origin: http://gw.example\r\n", "Origin: http://evil.example\r\n",
        "Sec-Fetch-Site: same-site\r\n", "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: none\r\n",
        "Origin: http://gw.example:9901\r\nSec-Fetch-Site: cross-site\r\n",
        "Origin: http://evil.example\r\nSec-Fetch-Site: same-origin\r\n"}) {
    EXPECT_EQ(post(elsewhere), "403") << elsewhere;
  }
  // A token is nothing that browsers send by themselves.
  EXPECT_EQ(ask("DELETE /x", "Authorization: Bearer secret\r\n"), "ops");
  EXPECT_EQ(ask("DELETE /x", "Authorization: Bearer secret\r\nOrigin: http://evil.example\r\n"),
            "403");
}

TEST_F(admin_access_control, lets_pages_of_other_ports_read_nothing_with_a_cookie) {
  ASSERT_EQ(get("Authorization: Bearer secret\r\n"), "ops");
  access.open_session(last, "abc", start);
  std::string const with = "Cookie: tidegate_session_9901=abc\r\nSec-Fetch-Site: ";
  EXPECT_EQ(get(with + "same-origin\r\n"), "ops (session)");
  EXPECT_EQ(get(with + "none\r\n"), "ops (session)");
  EXPECT_EQ(get(with + "same-site\r\n"), "403");
  EXPECT_EQ(ask("GET /", with + "cross-site\r\n"), "ops (session)");  // a link to the page
}

TEST_F(admin_access_control, looks_at_so_many_wrong_tokens_of_an_address) {
  for (int i = 0; i < admin_access::tries_max; ++i) {
    EXPECT_EQ(get("Authorization: Bearer wrong\r\n"), "401");
    EXPECT_EQ(get("Authorization: Bearer secret\r\n"),
              i + 1 < admin_access::tries_max ? "ops" : "429");
  }
  EXPECT_EQ(refusal.fields.at(0), (std::pair<std::string_view, std::string>("Retry-After", "60")));
  EXPECT_EQ(get("Authorization: Bearer secret\r\n", "192.0.2.2"), "ops");
  // A request without a token, or with an old cookie, does not count as a try.
  EXPECT_EQ(get(), "401");
  EXPECT_EQ(get("Cookie: tidegate_session_9901=abc\r\n"), "401");
  EXPECT_EQ(get("Authorization: Bearer secret\r\n", "192.0.2.1", start + 60s), "ops");
}

TEST_F(admin_access_control, counts_a_network_of_ipv6_as_one_address) {
  for (int i = 0; i < admin_access::tries_max; ++i) {
    EXPECT_EQ(get("Authorization: Bearer wrong\r\n", "2001:db8::" + std::to_string(i)), "401");
  }
  EXPECT_EQ(get("Authorization: Bearer secret\r\n", "2001:db8::ffff"), "429");
  EXPECT_EQ(get("Authorization: Bearer secret\r\n", "2001:db8:0:1::"), "ops");
}

TEST_F(admin_access_control, remembers_so_many_addresses) {
  EXPECT_EQ(get("Authorization: Bearer secret\r\n", "10.3.0.1"), "ops");
  for (std::size_t i = 0; i < admin_access::addresses_max; ++i) {
    auto const from = "10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256);
    EXPECT_EQ(get("Authorization: Bearer wrong\r\n", from), "401");
  }
  for (int i = 0; i < admin_access::shared_tries_max; ++i) {
    EXPECT_EQ(get("Authorization: Bearer wrong\r\n", "10.1.0." + std::to_string(i)), "401");
  }
  EXPECT_EQ(get("Authorization: Bearer secret\r\n", "10.2.0.1"), "429");
  EXPECT_EQ(get("Authorization: Bearer secret\r\n", "10.3.0.1"), "ops")
      << "came before all of them";
  for (int i = 0; i < admin_access::tries_max; ++i) {
    EXPECT_EQ(get("Authorization: Bearer wrong\r\n", "10.3.0.1"), "401");
  }
  EXPECT_EQ(get("Authorization: Bearer secret\r\n", "10.3.0.1"), "429");
  EXPECT_EQ(get("Authorization: Bearer secret\r\n", "10.0.0.1"), "ops");
  EXPECT_EQ(get("Authorization: Bearer secret\r\n", "10.2.0.1", start + 61s), "ops");
}

TEST_F(admin_access_control, tells_of_wrong_tokens_once_in_a_while) {
  EXPECT_FALSE(access.take_failures(start));
  (void)get("Authorization: Bearer wrong\r\n");
  EXPECT_EQ(access.take_failures(start)->count, 1U);
  (void)get("Authorization: Bearer wrong\r\n");
  (void)get("Authorization: Bearer wrong\r\n", "10.0.0.9");
  (void)get("Authorization: Bearer secret\r\n", "10.0.0.8");
  (void)get("Authorization: Basic wrong\r\n", "10.0.0.7");
  EXPECT_FALSE(access.take_failures(start + 9s));
  auto const later = access.take_failures(start + 10s);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->count, 2U);
  EXPECT_EQ(to_string(later->last_from), "10.0.0.9");
  EXPECT_FALSE(access.take_failures(start + 30s));
}

}  // namespace
}  // namespace tidegate::gateway
