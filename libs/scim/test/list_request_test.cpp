// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/list_request.hpp>

#include <gtest/gtest.h>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

auto query(std::string_view text, pagination_options const& options = {})
    -> result<list_request, error> {
  return parse_list_query(text, options);
}

/// A SearchRequest with `members` besides its schemas.
auto body_of(std::string const& members) -> std::string {
  return R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:SearchRequest"])" +
         (members.empty() ? "" : "," + members) + "}";
}

auto search(std::string const& members, pagination_options const& options = {})
    -> result<list_request, error> {
  return parse_search_request(body_of(members), options);
}

auto type_of(result<list_request, error> const& read) -> std::string_view {
  return read ? "accepted" : to_string(read.error().type);
}

constexpr auto by_cursor = pagination_method::cursor;
constexpr auto by_index = pagination_method::index;

pagination_options const only_cursor{.cursor = true, .index = false, .default_method = by_cursor};
pagination_options const only_index{.cursor = false};

// RFC 9865, sections 2 and 3, which are draft-02's; RFC 7644, sections 3.4.2.4 and 3.4.3.
TEST(scim_list_request, reads_and_writes_the_examples) {
  struct example {
    std::string text;
    list_request request;
  };
  example const queries[] = {
      {"filter=userName%20sw%20J&cursor&count=10",
       {.method = by_cursor, .count = 10, .filter = "userName sw J"}},
      {"filter=username%20sw%20J&cursor=VZUTiyhEQJ94IR&count=10",
       {.method = by_cursor, .cursor = "VZUTiyhEQJ94IR", .count = 10, .filter = "username sw J"}},
      {"startIndex=1&count=10", {.method = by_index, .count = 10}},
      {"startIndex=11&count=10", {.method = by_index, .count = 10, .start_index = 11}},
  };
  for (auto const& [text, request] : queries) {
    EXPECT_EQ(query(text), request) << text;
    std::string written;
    append_list_query(written, request);
    EXPECT_EQ(written, text);
  }

  example const bodies[] = {
      {R"({
            "schemas": [
              "urn:ietf:params:scim:api:messages:2.0:SearchRequest"],
            "attributes": ["displayName", "userName"],
            "filter":
               "displayName sw \"smith\"",
            "cursor": "",
            "count": 10
          })",
       {.method = by_cursor,
        .count = 10,
        .filter = "displayName sw \"smith\"",
        .attributes = {"displayName", "userName"}}},
      {R"({
     "schemas": ["urn:ietf:params:scim:api:messages:2.0:SearchRequest"],
     "attributes": ["displayName", "userName"],
     "filter":
       "displayName sw \"smith\"",
     "startIndex": 1,
     "count": 10
   })",
       {.method = by_index,
        .count = 10,
        .filter = "displayName sw \"smith\"",
        .attributes = {"displayName", "userName"}}},
  };
  for (auto const& [text, request] : bodies) {
    EXPECT_EQ(parse_search_request(text, {}), request);
    std::string written;
    append_search_request(written, request);
    EXPECT_EQ(parse_search_request(written, {}), request) << written;
  }
}

TEST(scim_list_request, reads_all_parameters_alike_from_query_and_body) {
  list_request const all{.method = by_cursor,
                         .cursor = "abc",
                         .count = 7,
                         .filter = "a eq \"+&=%\\\"\xc3\xa9\"",
                         .sort_by = "name.familyName",
                         .descending = true,
                         .attributes = {"userName", "urn:a:b:User:x.y"},
                         .excluded_attributes = {"members.$ref"}};
  std::string text;
  append_list_query(text, all);
  EXPECT_EQ(query(text), all) << text;
  std::string body;
  append_search_request(body, all);
  EXPECT_EQ(parse_search_request(body, {}), all) << body;
}

TEST(scim_list_request, takes_the_method_from_what_is_there) {
  struct row {
    std::string query;
    std::string members;
    pagination_options options;
    std::optional<pagination_method> method;
  };
  pagination_options const cursor_first{.default_method = by_cursor};
  row const rows[] = {
      {"", "", {}, by_index},
      {"", "", cursor_first, by_cursor},
      {"cursor", R"("cursor":"")", {}, by_cursor},
      {"cursor=", R"("cursor":"")", {}, by_cursor},
      {"cursor=x", R"("cursor":"x")", {}, by_cursor},
      {"startIndex=1", R"("startIndex":1)", cursor_first, by_index},
      {"cursor&startIndex=1", R"("cursor":"","startIndex":1)", {}, std::nullopt},
      {"cursor=x&startIndex=0", R"("cursor":"x","startIndex":0)", {}, std::nullopt},
      {"", "", only_cursor, by_cursor},
      {"cursor", R"("cursor":"")", only_cursor, by_cursor},
      {"startIndex=1", R"("startIndex":1)", only_cursor, by_cursor},
      {"startIndex=-3", R"("startIndex":-3)", only_cursor, by_cursor},
      {"startIndex=2", R"("startIndex":2)", only_cursor, std::nullopt},
      {"cursor&startIndex=1", R"("cursor":"","startIndex":1)", only_cursor, std::nullopt},
      {"", "", only_index, by_index},
      {"startIndex=5", R"("startIndex":5)", only_index, by_index},
      {"cursor", R"("cursor":"")", only_index, std::nullopt},
      {"cursor=x", R"("cursor":"x")", only_index, std::nullopt},
  };
  for (auto const& row : rows) {
    for (auto const& read : {query(row.query, row.options), search(row.members, row.options)}) {
      ASSERT_EQ(read.has_value(), row.method.has_value()) << row.query;
      if (read) {
        EXPECT_EQ(read->method, *row.method) << row.query;
      } else {
        EXPECT_EQ(read.error().type, scim_type::invalid_value) << row.query;
        EXPECT_EQ(read.error().status, 400) << row.query;
      }
    }
  }
}

TEST(scim_list_request, takes_integers_as_they_are_meant) {
  EXPECT_EQ(query("count=-5")->count, 0U);
  EXPECT_EQ(query("count=0")->count, 0U);
  EXPECT_EQ(query("count=007")->count, 7U);
  EXPECT_EQ(query("count=4294967296")->count, ~0U);
  EXPECT_EQ(query("count=99999999999999999999999")->count, ~0U);
  EXPECT_EQ(query("count=-99999999999999999999999")->count, 0U);
  EXPECT_EQ(query("")->count, std::nullopt);
  EXPECT_EQ(query("startIndex=0")->start_index, 1U);
  EXPECT_EQ(query("startIndex=-7")->start_index, 1U);
  EXPECT_EQ(query("startIndex=99999999999999999999999")->start_index, 9223372036854775807U);
  EXPECT_EQ(search(R"("count":-1)")->count, 0U);
  EXPECT_EQ(search(R"("count":4294967296)")->count, ~0U);
  EXPECT_EQ(search(R"("startIndex":-1)")->start_index, 1U);
}

TEST(scim_list_request, takes_what_clients_send) {
  EXPECT_EQ(query("filter=a+eq+1")->filter, "a eq 1");
  EXPECT_EQ(query("attributes=a,%20b+,c")->attributes, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(query("attributes=a&attributes=b,c")->attributes,
            (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(query("attributes=&excludedAttributes")->attributes.empty());
  EXPECT_EQ(query("sortBy=")->sort_by, "");
  EXPECT_TRUE(query("sortBy=a&sortOrder=Descending")->descending);
  EXPECT_FALSE(query("sortBy=a&sortOrder=ascending")->descending);
  EXPECT_FALSE(query("sortBy=a")->descending);
  EXPECT_FALSE(query("sortOrder=descending")->descending) << "without sortBy it means nothing";
  EXPECT_TRUE(query("&&unknown=1&unknown=2&=&"));
  EXPECT_EQ(search(R"("COUNT":3,"Cursor":"x","sortby":"a")")->count, 3U);
  EXPECT_EQ(
      search(R"("count":null,"cursor":null,"filter":null,"attributes":null,"startIndex":null)"),
      list_request{});
  EXPECT_TRUE(search(R"("unknown":{"count":[]})"));
}

TEST(scim_list_request, refuses_queries_with_the_scim_type) {
  struct row {
    std::string query;
    std::string_view type;
  };
  auto const names = [](std::size_t count) {
    std::string out = "attributes=a";
    for (std::size_t i = 1; i < count; ++i) {
      out += ",a";
    }
    return out;
  };
  EXPECT_TRUE(query(names(attribute_names_max)));
  EXPECT_TRUE(query("sortBy=" + std::string(attribute_name_octets_max, 'a')));
  row const rows[] = {
      {"count=", "invalidCount"},
      {"count", "invalidCount"},
      {"count=ten", "invalidCount"},
      {"count=1.0", "invalidCount"},
      {"count=1e2", "invalidCount"},
      {"count=0x10", "invalidCount"},
      {"count=+5", "invalidCount"},
      {"count=%2B5", "invalidCount"},
      {"count=5%20", "invalidCount"},
      {"count=-", "invalidCount"},
      {"count=--5", "invalidCount"},
      {"count=5%00", "invalidCount"},
      {"cursor&count=x", "invalidCount"},
      {"startIndex=", "invalidValue"},
      {"startIndex=one", "invalidValue"},
      {"startIndex=1.5", "invalidValue"},
      {"count=1&count=1", "invalidValue"},
      {"cursor=a&count=1&cursor=b", "invalidValue"},
      {"cursor&%63ursor", "invalidValue"},
      {"filter=a&filter=b", "invalidValue"},
      {"sortBy=a&sortBy=a", "invalidValue"},
      {"sortOrder=up", "invalidValue"},
      {"sortOrder=", "invalidValue"},
      {"sortBy=a%20b", "invalidValue"},
      {"sortBy=emails[type%20eq%201]", "invalidValue"},
      {"sortBy=1a", "invalidValue"},
      {"sortBy=%C3%A9", "invalidValue"},
      {"sortBy=a%00", "invalidValue"},
      {"sortBy=" + std::string(attribute_name_octets_max + 1, 'a'), "invalidValue"},
      {"attributes=a,,b", "invalidValue"},
      {"attributes=a,", "invalidValue"},
      {"attributes=,", "invalidValue"},
      {"attributes=a%22", "invalidValue"},
      {"excludedAttributes=a;b[]", "invalidValue"},
      {names(attribute_names_max + 1), "invalidValue"},
  };
  for (auto const& [text, type] : rows) {
    EXPECT_EQ(type_of(query(text)), type) << text;
  }
}

TEST(scim_list_request, refuses_bodies_with_the_scim_type) {
  struct row {
    std::string body;
    std::string_view type;
  };
  row const rows[] = {
      {"", "invalidSyntax"},
      {"[]", "invalidSyntax"},
      {"null", "invalidSyntax"},
      {"{}", "invalidSyntax"},
      {R"({"schemas":[]})", "invalidSyntax"},
      {R"({"schemas":"urn:ietf:params:scim:api:messages:2.0:SearchRequest"})", "invalidSyntax"},
      {R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"]})", "invalidSyntax"},
      {R"({"schemas":[1,null]})", "invalidSyntax"},
      {body_of("").substr(1), "invalidSyntax"},
      {body_of("") + "x", "invalidSyntax"},
      {body_of(R"("count":1,"Count":2)"), "invalidSyntax"},
      {body_of(R"("x":)" + std::string(100, '[')), "invalidSyntax"},
      {body_of(R"("count":"10")"), "invalidCount"},
      {body_of(R"("count":10.0)"), "invalidCount"},
      {body_of(R"("count":true)"), "invalidCount"},
      {body_of(R"("count":[1])"), "invalidCount"},
      {body_of(R"("startIndex":"1")"), "invalidValue"},
      {body_of(R"("startIndex":1.5)"), "invalidValue"},
      {body_of(R"("cursor":1)"), "invalidValue"},
      {body_of(R"("cursor":["a"])"), "invalidValue"},
      {body_of(R"("filter":{})"), "invalidValue"},
      {body_of(R"("sortBy":1)"), "invalidValue"},
      {body_of(R"("sortBy":"a b")"), "invalidValue"},
      {body_of(R"("sortOrder":"down")"), "invalidValue"},
      {body_of(R"("attributes":"userName")"), "invalidValue"},
      {body_of(R"("attributes":[1])"), "invalidValue"},
      {body_of(R"("attributes":["a,b"])"), "invalidValue"},
      {body_of(R"("excludedAttributes":[""])"), "invalidValue"},
  };
  for (auto const& [body, type] : rows) {
    EXPECT_EQ(type_of(parse_search_request(body, {})), type) << body;
  }
}

TEST(scim_page_size, follows_count_up_to_the_maximum) {
  pagination_options const options{.default_page_size = 20, .max_page_size = 50};
  auto const size = [&](std::string const& text) {
    return page_size(*query(text), nullptr, options).value();
  };
  EXPECT_EQ(size(""), 20U);
  EXPECT_EQ(size("count=10"), 10U);
  EXPECT_EQ(size("count=0"), 0U);
  EXPECT_EQ(size("count=-1"), 0U);
  EXPECT_EQ(size("count=50"), 50U);
  EXPECT_EQ(size("count=51"), 50U);
  EXPECT_EQ(size("count=99999999999999999999"), 50U);
}

TEST(scim_page_size, refuses_a_count_over_the_maximum_where_that_is_an_error) {
  pagination_options const strict{.max_page_size = 50, .count_over_max_is_error = true};
  EXPECT_EQ(page_size(*query("count=50"), nullptr, strict), 50U);
  EXPECT_EQ(page_size(*query(""), nullptr, strict), 50U);
  EXPECT_EQ(page_size(*query("cursor&count=51"), nullptr, strict).error().type,
            scim_type::invalid_count);
  EXPECT_EQ(page_size(*query("startIndex=1&count=51"), nullptr, strict).error().type,
            scim_type::invalid_count);
}

// RFC 9865, section 2.1: equal to the count value of the initial query.
TEST(scim_page_size, is_that_of_the_first_page_on_every_other) {
  pagination_options const options{.default_page_size = 20, .max_page_size = 50};
  struct row {
    std::string first;
    std::string later;
    std::optional<std::uint32_t> size;
  };
  row const rows[] = {
      {"count=10", "count=10", 10},
      {"count=10", "", 10},
      {"", "", 20},
      {"", "count=20", 20},
      {"count=80", "count=80", 50},
      {"count=80", "", 50},
      {"count=80", "count=50", 50},
      {"count=10", "count=11", std::nullopt},
      {"count=10", "count=0", std::nullopt},
      {"", "count=10", std::nullopt},
      {"count=50", "count=-1", std::nullopt},
  };
  for (auto const& row : rows) {
    cursor from;
    from.count = page_size(*query(row.first), nullptr, options).value();
    auto const size = page_size(*query("cursor=x&" + row.later), &from, options);
    ASSERT_EQ(size.has_value(), row.size.has_value()) << row.first << " then " << row.later;
    if (size) {
      EXPECT_EQ(*size, *row.size);
    } else {
      EXPECT_EQ(size.error().type, scim_type::invalid_count);
    }
  }
}

TEST(scim_page_size, follows_a_maximum_that_was_lowered_between_pages) {
  cursor from;
  from.count = 50;
  pagination_options const lowered{.max_page_size = 30};
  EXPECT_EQ(page_size(*query("cursor=x"), &from, lowered), 30U);
  EXPECT_EQ(page_size(*query("cursor=x&count=50"), &from, lowered), 30U);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
