// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/service_provider_config.hpp>

#include <tidegate/json/parse.hpp>

#include <gtest/gtest.h>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

using namespace std::chrono_literals;

auto written(service_provider_config const& config) -> json::value {
  std::string out;
  append_service_provider_config(out, config);
  return json::parse(out).value();
}

auto support_of(std::string const& pagination) -> pagination_support {
  return parse_pagination_support(
             R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"])" +
             (pagination.empty() ? "" : R"(,"pagination":)" + pagination) + "}")
      .value();
}

TEST(scim_service_provider_config, reads_the_examples_of_both_dialects) {
  EXPECT_EQ(support_of(R"({
               "cursor": true,
               "index": true
            })"),
            (pagination_support{.cursor = true, .index = true}))
      << "draft-02, section 4";
  EXPECT_EQ(support_of(R"({
         "cursor": true,
         "index": true,
         "defaultPaginationMethod": "cursor",
         "defaultPageSize": 100,
         "maxPageSize": 250,
         "cursorTimeout": 3600
      })"),
            (pagination_support{.cursor = true,
                                .index = true,
                                .default_method = pagination_method::cursor,
                                .default_page_size = 100,
                                .max_page_size = 250,
                                .cursor_timeout = 3600s}))
      << "RFC 9865, section 4";
  EXPECT_EQ(support_of(R"({"cursor":true,"index":false,"maximumPageSize":500})").max_page_size,
            500U)
      << "as draft-02 names it";
}

TEST(scim_service_provider_config, has_the_members_of_both_dialects) {
  service_provider_config config;
  config.pagination = {.default_method = pagination_method::cursor,
                       .default_page_size = 100,
                       .max_page_size = 250,
                       .cursor_timeout = 3600s};
  auto const made = written(config);
  EXPECT_EQ(*made.find("pagination"),
            json::parse(R"({"cursor":true,"index":true,"defaultPaginationMethod":"cursor",
                           "defaultPageSize":100,"maxPageSize":250,"maximumPageSize":250,
                           "cursorTimeout":3600})"));
}

TEST(scim_service_provider_config, is_read_back) {
  for (auto const& [cursor, index, method] : std::vector<std::tuple<bool, bool, pagination_method>>{
           {true, true, pagination_method::index},
           {true, false, pagination_method::cursor},
           {false, true, pagination_method::index}}) {
    service_provider_config config;
    config.pagination = {.cursor = cursor, .index = index, .default_method = method};
    std::string out;
    append_service_provider_config(out, config);
    auto const read = parse_pagination_support(out);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->cursor, cursor);
    EXPECT_EQ(read->index, index);
    EXPECT_EQ(read->default_method, method);
    EXPECT_EQ(read->default_page_size, 100U);
    EXPECT_EQ(read->max_page_size, 500U);
    EXPECT_EQ(read->cursor_timeout, cursor ? std::optional(600s) : std::nullopt);
  }
}

// RFC 7643, section 5.
TEST(scim_service_provider_config, has_every_required_attribute) {
  service_provider_config config;
  config.location = "https://example.com/v2/ServiceProviderConfig";
  auto made = written(config);
  EXPECT_EQ(*made.find("schemas"), json::value(json::array{service_provider_config_schema}));
  for (auto const* feature : {"patch", "bulk", "filter", "sort", "etag"}) {
    ASSERT_NE(made.find(feature), nullptr) << feature;
    EXPECT_EQ(*made.find(feature)->find("supported"), json::value(true)) << feature;
  }
  EXPECT_EQ(*made.find("bulk")->find("maxOperations"), json::value(1000));
  EXPECT_EQ(*made.find("bulk")->find("maxPayloadSize"), json::value(1048576));
  EXPECT_EQ(*made.find("filter")->find("maxResults"), json::value(500));
  auto const& scheme = made.find("authenticationSchemes")->if_array()->at(0);
  for (auto const* member : {"type", "name", "description"}) {
    EXPECT_NE(scheme.find(member), nullptr) << member;
  }
  EXPECT_EQ(*made.find("meta")->find("location"), json::value(config.location));
  EXPECT_EQ(*made.find("meta")->find("resourceType"), json::value("ServiceProviderConfig"));
  EXPECT_EQ(made.find("documentationUri"), nullptr);
  config.documentation_uri = "https://example.com/help";
  EXPECT_EQ(*written(config).find("documentationUri"), json::value("https://example.com/help"));
}

TEST(scim_service_provider_config, of_a_server_without_cursors_means_pages_by_index) {
  EXPECT_EQ(support_of(""), pagination_support{});
  EXPECT_EQ(support_of("null"), pagination_support{});
  EXPECT_EQ(support_of("[]"), pagination_support{});
  EXPECT_EQ(support_of(R"({"cursor":"yes","index":1,"defaultPaginationMethod":"page",
                           "defaultPageSize":0,"maxPageSize":-1,"cursorTimeout":"1h"})"),
            pagination_support{});
  EXPECT_FALSE(parse_pagination_support("{}"));
  EXPECT_FALSE(parse_pagination_support("<html>"));
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
