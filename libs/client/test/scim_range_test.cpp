// SPDX-License-Identifier: Apache-2.0
#include <tidegate/client/scim_range.hpp>

#include "faulty_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate::TIDEGATE_ABI::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

auto page(std::string const& members) -> reaction {
  return {response_bytes(
      "200 OK",
      R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"])" + members + "}")};
}

auto id_of(json::value const& resource) -> std::string {
  return *resource.find("id")->if_string();
}

TEST(client_scim_range, reads_page_after_page_with_the_fields_of_the_query) {
  faulty_server server([](std::string const& request) {
    EXPECT_THAT(request, HasSubstr("\r\nAuthorization: Bearer x\r\n"));
    EXPECT_THAT(request, HasSubstr("\r\nAccept: application/scim+json\r\n"));
    if (request.starts_with("GET /v2/ServiceProviderConfig ")) {
      return reaction{response_bytes("404 Not Found")};
    }
    return request.starts_with("GET /v2/Users?cursor&count=100 ")
               ? page(R"(,"nextCursor":"n","Resources":[{"id":"a"},{"id":"b"}])")
               : page(R"(,"Resources":[{"id":"c"}])");
  });
  auto const client = *session::open();
  std::vector<std::string> ids;
  for (auto const& user : scim_range(
           *client, {.url = server.url("/v2/Users"), .fields = {{"Authorization", "Bearer x"}}})) {
    ASSERT_TRUE(user) << to_string(user.error());
    ids.push_back(id_of(*user));
  }
  EXPECT_THAT(ids, ElementsAre("a", "b", "c"));
  EXPECT_EQ(server.requests().size(), 3U);
}

TEST(client_scim_range, ends_behind_an_error) {
  faulty_server server([](std::string const& request) {
    return request.starts_with("GET /Users?cursor ")
               ? page(R"(,"nextCursor":"n","Resources":[{"id":"a"}])")
               : reaction{response_bytes("401 Unauthorized")};
  });
  auto const client = *session::open();
  scim_range range(*client, {.url = server.url("/Users"), .page_size = 0}, {.discover = false});
  std::vector<std::string> got;
  for (auto const& each : range) {
    got.push_back(each ? id_of(*each) : to_string(each.error()));
  }
  EXPECT_THAT(got, ElementsAre("a", "the server answered 401"));
  EXPECT_FALSE(range.next());
}

TEST(client_scim_range, says_why_no_answer_came) {
  auto const client = *session::open({.retries = {.retries_max = 0}});
  scim_range range(*client, {.url = "http://127.0.0.1:1/Users"}, {.discover = false});
  auto const got = range.next();
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().fault, scim_fault::no_answer);
}

TEST(client_scim_range, turns_back) {
  faulty_server server([](std::string const& request) {
    return request.starts_with("GET /Users?cursor=n")
               ? page(R"(,"previousCursor":"p","Resources":[{"id":"c"}])")
               : page(R"(,"nextCursor":"n","Resources":[{"id":"a"},{"id":"b"}])");
  });
  auto const client = *session::open();
  scim_range range(*client, {.url = server.url("/Users")}, {.discover = false});
  std::string got;
  for (auto each = range.next(); each && *each; each = range.next()) {
    got += id_of(**each);
  }
  range.turn();
  for (auto each = range.next(); each && *each; each = range.next()) {
    got += id_of(**each);
  }
  EXPECT_EQ(got, "abccba");
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::client
