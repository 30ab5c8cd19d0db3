// SPDX-License-Identifier: Apache-2.0
//
// `bridge: scim-cursor` in front of a SCIM server that has pages by index only: another gateway.
#include "scim.hpp"

namespace tidegate::e2e {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class gateway_scim_bridge : public testing::Test {
 protected:
  [[nodiscard]] auto bridge_config(std::string const& options = "") const -> std::string {
    return "data: " + front_data_.path() + "\nupstreams: {directory: \"http://" +
           behind_.authority() +
           "\"}\npolicies: {all: {quota: 1000, window: 1m, partition: [client-ip]}}\n"
           "routes:\n  - match: {path: /scim/v2/**}\n    upstream: directory\n    limits: [all]\n"
           "    bridge: scim-cursor\n" +
           options;
  }
  void make_users(int count) {
    scim_client const direct(behind_);
    for (int i = 1; i <= count; ++i) {
      ASSERT_EQ(direct.post("/Users", user("u" + std::to_string(i))).status(), 201);
    }
  }
  [[nodiscard]] static auto names_of(scim_message const& list) -> std::vector<std::string> {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < list.count("Resources"); ++i) {
      names.push_back(list.at("Resources." + std::to_string(i) + ".userName"));
    }
    return names;
  }

  data_folder behind_data_;
  gateway behind_{scim_config(behind_data_, "    scim: {pagination: index}\n")};
  data_folder front_data_;
};

TEST_F(gateway_scim_bridge, makes_pages_by_cursor_of_pages_by_index) {
  make_users(5);
  gateway const front(bridge_config());
  scim_client const client(front);
  auto const first = client.get("/Users?cursor&count=2");
  ASSERT_EQ(first.status(), 200) << first.raw.body;
  EXPECT_THAT(names_of(first), ElementsAre("u1", "u2"));
  EXPECT_EQ(first.at("totalResults"), "5");
  EXPECT_EQ(first.at("startIndex"), "(none)");
  EXPECT_EQ(first.at("previousCursor"), "(none)");
  EXPECT_EQ(first.field("Content-Type"), "application/scim+json");
  EXPECT_THAT(first.field("RateLimit"), HasSubstr("\"all\""));
  auto const second = client.get("/Users?count=2&cursor=" + first.at("nextCursor"));
  EXPECT_THAT(names_of(second), ElementsAre("u3", "u4"));
  auto const third = client.get("/Users?count=2&cursor=" + second.at("nextCursor"));
  EXPECT_THAT(names_of(third), ElementsAre("u5"));
  EXPECT_EQ(third.at("nextCursor"), "(none)");
  auto const back = client.get("/Users?count=2&cursor=" + third.at("previousCursor"));
  EXPECT_THAT(names_of(back), ElementsAre("u3", "u4"));
  auto const start = client.get("/Users?count=2&cursor=" + back.at("previousCursor"));
  EXPECT_THAT(names_of(start), ElementsAre("u1", "u2"));
  EXPECT_EQ(start.at("previousCursor"), "(none)");
}

TEST_F(gateway_scim_bridge, does_the_same_for_searches_and_keeps_filter_and_order) {
  make_users(4);
  gateway const front(bridge_config());
  scim_client const client(front);
  auto const search = [&](std::string const& more) {
    return client.post(
        "/Users/.search",
        R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:SearchRequest"],"filter":"userName ne \"u2\"",)"
        R"("sortBy":"userName","sortOrder":"descending","count":2)" +
            more + "}");
  };
  auto const first = search(R"(,"cursor":"")");
  ASSERT_EQ(first.status(), 200) << first.raw.body;
  EXPECT_THAT(names_of(first), ElementsAre("u4", "u3"));
  auto const cursor = first.at("nextCursor");
  EXPECT_THAT(names_of(search(R"(,"cursor":")" + cursor + '"')), ElementsAre("u1"));
  // A GET of the same is the same query, whatever the case of its names.
  auto const got = client.get(
      "/Users?filter=username%20NE%20%22u2%22&sortBy=username&sortOrder=descending&count=2&"
      "cursor=" +
      cursor);
  EXPECT_THAT(names_of(got), ElementsAre("u1")) << got.raw.body;
  // By index it goes through as it is.
  auto const by_index = search(R"(,"startIndex":2)");
  EXPECT_THAT(names_of(by_index), ElementsAre("u3", "u1"));
  EXPECT_EQ(by_index.at("startIndex"), "2");
}

TEST_F(gateway_scim_bridge, refuses_cursors_that_are_not_of_the_query_and_the_caller) {
  make_users(3);
  gateway const front(bridge_config("    scim: {max-page-size: 2, default-page-size: 1}\n"));
  scim_client const client(front);
  auto const next = client.get("/Users?cursor").at("nextCursor");
  expect_error(client.get("/Users?cursor=nonsense"), 400, "invalidCursor");
  expect_error(client.get("/Groups?cursor=" + next), 400, "invalidCursor");
  expect_error(client.get("/Users?filter=userName%20pr&cursor=" + next), 400, "invalidCursor");
  expect_error(scim_client(front, "beta").get("/Users?cursor=" + next), 400, "invalidCursor");
  expect_error(client.get("/Users?count=2&cursor=" + next), 400, "invalidCount");
  expect_error(client.get("/Users?startIndex=1&cursor=" + next), 400, "invalidValue");
  EXPECT_THAT(names_of(client.get("/Users?cursor=" + next)), ElementsAre("u2"));
}

TEST_F(gateway_scim_bridge, tells_in_the_configuration_of_the_server_what_it_can_do) {
  gateway const front(bridge_config("    scim: {max-page-size: 200}\n"));
  auto const direct = scim_client(behind_).get("/ServiceProviderConfig");
  EXPECT_EQ(direct.at("pagination.cursor"), "false");
  auto const told = scim_client(front).get("/ServiceProviderConfig");
  EXPECT_EQ(told.at("pagination.cursor"), "true");
  EXPECT_EQ(told.at("pagination.index"), "true");
  EXPECT_EQ(told.at("pagination.maxPageSize"), "200");
  EXPECT_EQ(told.at("patch.supported"), direct.at("patch.supported"));
}

TEST_F(gateway_scim_bridge, lets_everything_else_through_as_it_is) {
  gateway const front(bridge_config("    scim: {default-method: cursor}\n"));
  scim_client const client(front);
  auto const made = client.post("/Users", user("a"));
  ASSERT_EQ(made.status(), 201);
  auto const got = client.get("/Users/" + made.id());
  EXPECT_EQ(got.status(), 200);
  EXPECT_EQ(got.at("userName"), "a");
  EXPECT_EQ(
      client.patch("/Users/" + made.id(), R"({"op":"replace","path":"displayName","value":"A"})")
          .at("displayName"),
      "A");
  auto const list = client.get("/Users");  // by cursor, unless the client says otherwise
  EXPECT_EQ(list.at("startIndex"), "(none)");
  EXPECT_THAT(names_of(list), ElementsAre("a"));
  EXPECT_EQ(client.get("/Users?startIndex=1").at("startIndex"), "1");
  expect_error(client.get("/Users/none"), 404);
  expect_error(scim_client(front, "wrong").get("/Users?cursor"), 401);
  EXPECT_EQ(client.remove("/Users/" + made.id()).status(), 204);
}

TEST_F(gateway_scim_bridge, says_502_when_the_server_gives_no_list) {
  origin api;
  gateway const front("data: " + front_data_.path() + "\nupstreams: {directory: \"" + api.url() +
                      "\"}\nroutes:\n  - match: {path: /scim/v2/**}\n    upstream: directory\n"
                      "    bridge: scim-cursor\n");
  auto client = front.connect();
  client.send("GET /scim/v2/Users?cursor HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
  auto server = api.accept();
  auto const asked = server.read_request();
  EXPECT_THAT(asked.start_line, HasSubstr("/scim/v2/Users?startIndex=1&count=100 "));
  EXPECT_EQ(asked.field("Accept-Encoding"), "(none)");
  server.send(
      "HTTP/1.1 200 OK\r\nContent-Type: application/scim+json; charset=utf-8\r\n"
      "Content-Length: 2\r\n\r\n{}");
  auto const answer = client.read_response();
  EXPECT_EQ(answer.status(), 502);
  EXPECT_THAT(answer.body, HasSubstr("not a list"));
  client.send("GET /scim/v2/Users?cursor HTTP/1.1\r\nHost: a\r\n\r\n");
  (void)server.read_request();
  server.send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<p/>");
  EXPECT_EQ(client.read_response().body, "<p/>");
}

}  // namespace
}  // namespace tidegate::e2e
