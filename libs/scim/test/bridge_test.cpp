// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/bridge.hpp>
#include <tidegate/scim/list_response.hpp>
#include <tidegate/scim/service_provider_config.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

constexpr wall_time now{std::chrono::milliseconds(1'800'000'000'000)};
pagination_options const options{
    .default_method = pagination_method::cursor, .default_page_size = 3, .max_page_size = 10};

auto sealer() -> cursor_sealer const& {
  static std::vector<cursor_key> const keys{{.id = 1, .secret = {std::byte{7}}}};
  static cursor_sealer const made(keys);
  return made;
}

auto binding(std::string_view filter = {}) -> cursor_binding {
  cursor_binding made;
  made.tenant = "t";
  made.endpoint = "/Users";
  made.filter = filter;
  return made;
}

auto nonces() -> bridge_nonces {
  static unsigned char octet = 0;
  bridge_nonces made{};
  made.next[0] = static_cast<std::byte>(++octet);
  made.previous[0] = static_cast<std::byte>(++octet);
  return made;
}

/// A server with pages by index.
struct index_server {
  std::vector<int> users;
  std::uint32_t page_max = 100;

  [[nodiscard]] auto answer(bridged_page const& page) const -> std::string {
    std::vector<std::string> texts;
    for (auto i = page.start_index - 1;
         i < users.size() && texts.size() < std::min(page.count, page_max); ++i) {
      texts.push_back(R"({"id":")" + std::to_string(users[i]) + "\"}");
    }
    std::vector<std::string_view> const views(texts.begin(), texts.end());
    std::string out;
    append_list_response(out, {.total_results = users.size(), .start_index = page.start_index},
                         views);
    return out;
  }
};

struct seen_page {
  std::vector<int> users;
  list_head head;
};

auto ask(index_server const& server, std::string const& cursor,
         std::optional<std::uint32_t> count = {}) -> result<seen_page, error> {
  list_request const request{.method = pagination_method::cursor, .cursor = cursor, .count = count};
  TIDEGATE_TRY(auto const page, bridge_request(request, sealer(), binding(), options, now));
  TIDEGATE_TRY(auto const body, bridge_response(server.answer(page), page, sealer(), binding(),
                                                options, now, nonces(), {}));
  TIDEGATE_TRY(auto const read, parse_list_response(body));
  EXPECT_EQ(read.head.start_index, std::nullopt);
  seen_page seen{{}, read.head};
  for (auto const& each : read.resources) {
    seen.users.push_back(std::stoi(*each.find("id")->if_string()));
  }
  return seen;
}

auto numbers(int from, int to) -> std::vector<int> {
  std::vector<int> made;
  for (int i = from; i <= to; ++i) {
    made.push_back(i);
  }
  return made;
}

TEST(scim_bridge, walks_forwards_and_backwards_over_pages_by_index) {
  index_server const server{numbers(1, 8)};
  auto const first = ask(server, "").value();
  EXPECT_EQ(first.users, numbers(1, 3));
  EXPECT_EQ(first.head.total_results, 8U);
  EXPECT_TRUE(first.head.previous_cursor.empty());
  auto const second = ask(server, first.head.next_cursor).value();
  EXPECT_EQ(second.users, numbers(4, 6));
  auto const third = ask(server, second.head.next_cursor, 3).value();
  EXPECT_EQ(third.users, numbers(7, 8));
  EXPECT_TRUE(third.head.next_cursor.empty());
  auto const back = ask(server, third.head.previous_cursor).value();
  EXPECT_EQ(back.users, numbers(4, 6));
  auto const start = ask(server, back.head.previous_cursor).value();
  EXPECT_EQ(start.users, numbers(1, 3));
  EXPECT_TRUE(start.head.previous_cursor.empty());
}

TEST(scim_bridge, follows_a_server_that_gives_less_than_it_is_asked_for) {
  index_server const server{numbers(1, 12), 2};
  std::vector<int> seen;
  std::string cursor;
  std::string last;
  do {
    auto const page = ask(server, cursor, 5).value();
    seen.insert(seen.end(), page.users.begin(), page.users.end());
    cursor = page.head.next_cursor;
    last = page.head.previous_cursor;
  } while (!cursor.empty());
  EXPECT_EQ(seen, numbers(1, 12));
  std::vector<int> back;
  while (!last.empty()) {
    auto const page = ask(server, last).value();
    back.insert(back.begin(), page.users.begin(), page.users.end());
    last = page.head.previous_cursor;
  }
  EXPECT_EQ(back, numbers(1, 10));
}

TEST(scim_bridge, ends_when_the_server_has_no_more_though_it_said_so) {
  index_server server{numbers(1, 9)};
  auto const first = ask(server, "").value();
  server.users.resize(3);
  auto const second = ask(server, first.head.next_cursor).value();
  EXPECT_TRUE(second.users.empty());
  EXPECT_TRUE(second.head.next_cursor.empty());
  EXPECT_EQ(second.head.total_results, 9U) << "the same through a walk";
}

TEST(scim_bridge, gives_the_total_alone_when_nothing_else_is_asked_for) {
  auto const page = ask({numbers(1, 9)}, "", 0).value();
  EXPECT_TRUE(page.users.empty());
  EXPECT_EQ(page.head.total_results, 9U);
  EXPECT_TRUE(page.head.next_cursor.empty());
}

TEST(scim_bridge, refuses_cursors_and_counts_as_the_service_does) {
  index_server const server{numbers(1, 9)};
  auto const next = ask(server, "").value().head.next_cursor;
  EXPECT_EQ(ask(server, "made-up").error().type, scim_type::invalid_cursor);
  EXPECT_EQ(ask(server, next, 4).error().type, scim_type::invalid_count);
  list_request const request{.method = pagination_method::cursor, .cursor = next};
  EXPECT_EQ(bridge_request(request, sealer(), binding("other"), options, now).error().type,
            scim_type::invalid_cursor);
  EXPECT_EQ(bridge_request(request, sealer(), binding(), options, now + std::chrono::hours(1))
                .error()
                .type,
            scim_type::expired_cursor);
}

TEST(scim_bridge, refuses_what_is_not_a_list_or_more_than_was_asked_for) {
  bridged_page const page{.count = 1};
  for (auto const* const body :
       {"", "[]", "{}",
        R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],)"
        R"("totalResults":2,"Resources":[{},{}]})"}) {
    EXPECT_FALSE(
        bridge_response(body, page, sealer(), binding(), options, now, nonces(), {}).has_value())
        << body;
  }
}

TEST(scim_bridge, changes_of_a_query_only_the_page) {
  bridged_page const page{.start_index = 4, .count = 3};
  struct row {
    std::string_view query, becomes;
  };
  for (auto const& [query, becomes] : {
           row{"", "startIndex=4&count=3"},
           {"cursor", "startIndex=4&count=3"},
           {"cursor=&count=3", "startIndex=4&count=3"},
           {"filter=a%20eq%20%22x%26y%22&Cursor=abc&x=1&&COUNT=9&sortBy=b",
            "filter=a%20eq%20%22x%26y%22&x=1&sortBy=b&startIndex=4&count=3"},
           {"startindex=1", "startIndex=4&count=3"},
       }) {
    EXPECT_EQ(bridged_query(query, page), becomes) << query;
  }
  EXPECT_EQ(
      bridged_search(R"({"schemas":["s"],"cursor":"c","Count":1,"filter":"x pr","more":{}})", page),
      R"({"schemas":["s"],"filter":"x pr","more":{},"startIndex":4,"count":3})");
  EXPECT_FALSE(bridged_search("[]", page).has_value());
}

TEST(scim_bridge, takes_filters_for_the_same_whatever_their_case_and_spaces) {
  EXPECT_EQ(bridged_filter("userName  SW \"J  J\" "), bridged_filter("username sw \"J  J\""));
  EXPECT_NE(bridged_filter(R"(a eq "x")"), bridged_filter(R"(a eq "X")"));
  EXPECT_NE(bridged_filter(R"(a eq "x\" Y")"), bridged_filter(R"(a eq "x\" y")"));
  EXPECT_EQ(bridged_filter(R"(a eq "x\\" AND B pr)"), bridged_filter(R"(A eq "x\\" and b PR)"));
}

TEST(scim_bridge, says_what_it_can_do_with_pages) {
  auto const told = bridge_service_provider_config(
      R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"],"patch":{"supported":true},)"
      R"("pagination":{"cursor":false,"index":true}})",
      options, {});
  auto const read = parse_pagination_support(told.value());
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(read->cursor);
  EXPECT_EQ(read->max_page_size, 10U);
  EXPECT_NE(told->find(R"("patch":{"supported":true})"), std::string::npos);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
