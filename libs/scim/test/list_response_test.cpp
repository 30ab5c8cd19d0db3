// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/list_response.hpp>

#include <tidegate/json/parse.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

auto written(list_head const& head, std::vector<std::string_view> const& resources) -> std::string {
  std::string out;
  append_list_response(out, head, resources);
  return out;
}

struct example {
  char const* name;
  std::string text;
  list_head head;
  std::size_t resources;  // how many itemsPerPage says
};

// With one resource where the texts have dots, and the quote that the second one lacks in both
// texts.
example const examples[] = {
    {"first page (draft-02 and RFC 9865, section 2)",
     R"({
            "totalResults":100,
            "itemsPerPage":10,
            "nextCursor":"VZUTiyhEQJ94IR",
            "schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
            "Resources":[{}]
          })",
     {.total_results = 100, .next_cursor = "VZUTiyhEQJ94IR"},
     10},
    {"second page (draft-02 and RFC 9865, section 2)",
     R"({
      "totalResults": 100,
      "itemsPerPage": 10,
      "previousCursor": "ze7L30kMiiLX6x",
      "nextCursor": "YkU3OF86Pz0rGv",
      "schemas": ["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
      "Resources":[{}]
   })",
     {.total_results = 100, .next_cursor = "YkU3OF86Pz0rGv", .previous_cursor = "ze7L30kMiiLX6x"},
     10},
    {"cursors only (draft-02 and RFC 9865, section 2.3)",
     R"({
      "totalResults": 5000,
      "itemsPerPage": 100,
      "nextCursor": "HPq72Pax3JUaNa",
      "schemas": ["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
      "Resources": [{}]
   })",
     {.total_results = 5000, .next_cursor = "HPq72Pax3JUaNa"},
     100},
    {"by index (RFC 7644, section 3.4.2.4)",
     R"({
     "totalResults":100,
     "itemsPerPage":10,
     "startIndex":1,
     "schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
     "Resources":[{}]
   })",
     {.total_results = 100, .start_index = 1},
     10},
};

TEST(scim_list_response, reads_the_examples) {
  for (auto const& [name, text, head, resources] : examples) {
    auto const read = parse_list_response(text);
    ASSERT_TRUE(read) << name;
    EXPECT_EQ(read->head, head) << name;
    EXPECT_EQ(read->items_per_page, resources) << name;
    EXPECT_EQ(read->resources, json::array{json::object()}) << name;
  }
}

TEST(scim_list_response, writes_the_examples) {
  for (auto const& [name, text, head, resources] : examples) {
    std::vector<std::string_view> const all(resources, "{}");
    auto made = json::parse(written(head, all));
    ASSERT_TRUE(made) << name;
    ASSERT_EQ(made->find("Resources")->if_array()->size(), resources) << name;
    made->if_object()->set("Resources", json::array{json::object()});
    EXPECT_EQ(*made, json::parse(text)) << name;
  }
}

// Both texts have `"previousCursor: "ze7L30kMiiLX6x"`.
TEST(scim_list_response, refuses_the_example_that_is_not_json) {
  EXPECT_FALSE(parse_list_response(R"({
            "totalResults":100,
            "itemsPerPage":10,
            "previousCursor: "ze7L30kMiiLX6x"
            "nextCursor":"YkU3OF86Pz0rGv",
            "schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
            "Resources":[{}]
          })"));
}

TEST(scim_list_response, leaves_out_what_there_is_not) {
  EXPECT_EQ(written({}, {}),
            R"({"itemsPerPage":0,"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],)"
            R"("Resources":[]})");
  EXPECT_EQ(written({.total_results = 0}, {R"({"id":"1"})", R"({"id":"2"})"}),
            R"({"totalResults":0,"itemsPerPage":2,)"
            R"("schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],)"
            R"("Resources":[{"id":"1"},{"id":"2"}]})");
}

TEST(scim_list_response, is_read_as_other_servers_write_it) {
  auto const body = [](std::string const& members) {
    return R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],)" + members + "}";
  };
  auto const read = parse_list_response(
      body(R"("totalresults":3,"nextCursor":null,"previousCursor":"","resources":null)"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->head, list_head{.total_results = 3});
  EXPECT_TRUE(read->resources.empty());
  for (auto const* wrong :
       {R"("totalResults":-1)", R"("totalResults":"1")", R"("totalResults":1.5)",
        R"("itemsPerPage":[])", R"("startIndex":-1)", R"("nextCursor":5)", R"("previousCursor":{})",
        R"("Resources":{})", R"("Resources":"x")"}) {
    auto const refused = parse_list_response(body(wrong));
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().type, scim_type::invalid_syntax) << wrong;
  }
  EXPECT_FALSE(parse_list_response(R"({"totalResults":0})"));
  EXPECT_FALSE(parse_list_response(body(R"("Resources":[])"), {.octets_max = 10}));
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
