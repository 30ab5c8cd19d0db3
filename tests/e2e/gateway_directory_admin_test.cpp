// SPDX-License-Identifier: Apache-2.0
//
// The directory at the admin address, in every store that there is.
#include "scim.hpp"

#include "support/postgres_server.hpp"

#include <tidegate/json/parse.hpp>

#include <filesystem>
#include <fstream>
#include <optional>

namespace tidegate::e2e {
namespace {

using test_support::postgres_server;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// The route has no name of its own, so it is called by its match.
constexpr std::string_view route = "/api/v1/directory/%2Fscim%2Fv2%2F%2A%2A";

class gateway_directory_admin : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "postgres" && !postgres_server::is_installed()) {
      GTEST_SKIP() << postgres_server::missing;
    }
  }

  void start(std::string const& console = "", std::string const& options = "") {
    auto more = console.empty() ? "" : "console: {directory: " + console + "}\n";
    if (GetParam() == "postgres") {
      auto const secret = data_.path() + "/secrets.key";
      std::ofstream(secret) << std::string(32, 's');
      std::filesystem::permissions(secret, std::filesystem::perms::owner_read);
      more += "stores: {directory: \"" + postgres_server::shared().fresh_database() + "\"}\n";
    }
    with_.emplace(scim_config(data_, options, more));
    client_.emplace(*with_);
  }

  /// Asks the admin address.
  auto ask(std::string_view method, std::string_view path, std::string_view body = "",
           std::string_view lines = "") const -> scim_message {
    auto to = with_->connect_admin();
    to.send(std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" +
            std::string(lines) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
            std::string(body));
    auto raw = to.read_response(method == "HEAD");
    auto read = json::parse(raw.body, {.octets_max = std::size_t{1} << 28});
    return {std::move(raw), read ? *std::move(read) : json::value()};
  }
  /// Of the tenant acme.
  auto get(std::string_view path) const -> scim_message {
    return ask("GET", std::string(route) + "/acme" + std::string(path));
  }
  auto make_users(std::vector<std::string> const& names) const -> std::vector<std::string> {
    std::vector<std::string> ids;
    for (auto const& name : names) {
      ids.push_back(client_->post("/Users", user(name)).id());
    }
    return ids;
  }
  static auto names_of(scim_message const& list) -> std::vector<std::string> {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < list.count("Resources"); ++i) {
      names.push_back(list.at("Resources." + std::to_string(i) + ".userName"));
    }
    return names;
  }
  /// What the gateway says until a line of it has this.
  auto said_until(std::string_view end) -> std::string { return with_->errors_until(end); }

  data_folder data_;
  std::optional<gateway> with_;
  std::optional<scim_client> client_;
};

constexpr std::string_view deactivate =
    R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],)"
    R"("Operations":[{"op":"replace","path":"active","value":false}]})";

TEST_P(gateway_directory_admin, names_routes_tenants_and_types) {
  start();
  auto const all = ask("GET", "/api/v1/directory");
  EXPECT_EQ(all.status(), 200);
  EXPECT_EQ(all.field("Content-Type"), "application/json");
  EXPECT_EQ(all.at("access"), "read");
  EXPECT_EQ(all.at("routes.0.route"), "/scim/v2/**");
  EXPECT_EQ(all.at("routes.0.base"), "/scim/v2");
  EXPECT_EQ(all.at("routes.0.tenants"), R"(["acme","other"])");
  EXPECT_EQ(all.at("routes.0.types.0.name"), "User");
  EXPECT_EQ(all.at("routes.0.types.0.endpoint"), "/Users");
  EXPECT_THAT(all.at("routes.0.types.0.indexes"), HasSubstr("\"username\""));
  EXPECT_THAT(all.at("routes.0.types.1.attributes"), HasSubstr("\"displayName\""));
  EXPECT_THAT(all.raw.body, Not(HasSubstr("8ed3f6ad"))) << "digests are not shown";
  EXPECT_EQ(ask("POST", "/api/v1/directory").field("Allow"), "GET, HEAD");
}

TEST_P(gateway_directory_admin, lists_one_tenant_as_the_service_does) {
  start();
  make_users({"cid", "ada", "bob"});
  EXPECT_THAT(names_of(get("/Users?sortBy=userName")), ElementsAre("ada", "bob", "cid"));
  auto const found =
      get("/Users?filter=userName%20ne%20%22bob%22&sortBy=userName&sortOrder=descending");
  EXPECT_THAT(names_of(found), ElementsAre("cid", "ada"));
  EXPECT_EQ(found.at("totalResults"), "2");
  EXPECT_EQ(found.field("Content-Type"), "application/scim+json");
  EXPECT_THAT(found.at("Resources.0.meta.location"), testing::StartsWith("/scim/v2/Users/"));
  EXPECT_THAT(names_of(ask("GET", std::string(route) + "/other/Users")), IsEmpty());
  EXPECT_EQ(get("/Groups").at("totalResults"), "0");
  EXPECT_EQ(ask("HEAD", std::string(route) + "/acme/Users").status(), 200);
}

TEST_P(gateway_directory_admin, pages_forwards_and_back_also_where_clients_page_by_index_only) {
  start("", "    scim: {pagination: index}\n");
  make_users({"a", "b", "c", "d", "e"});
  auto const page = [&](std::string const& cursor) {
    return get("/Users?sortBy=userName&count=2&cursor=" + cursor);
  };
  auto const first = page("");
  EXPECT_THAT(names_of(first), ElementsAre("a", "b"));
  EXPECT_EQ(first.at("totalResults"), "5");
  EXPECT_EQ(first.at("previousCursor"), "(none)");
  auto const second = page(first.at("nextCursor"));
  EXPECT_THAT(names_of(second), ElementsAre("c", "d"));
  auto const last = page(second.at("nextCursor"));
  EXPECT_THAT(names_of(last), ElementsAre("e"));
  EXPECT_EQ(last.at("nextCursor"), "(none)");
  EXPECT_THAT(names_of(page(last.at("previousCursor"))), ElementsAre("c", "d"));
}

TEST_P(gateway_directory_admin, has_cursors_of_its_own_and_refuses_those_of_clients) {
  start();
  make_users({"a", "b", "c"});
  std::string const query = "/Users?count=1&cursor=";
  auto const theirs = client_->get(query).at("nextCursor");
  auto const ours = get(query).at("nextCursor");
  EXPECT_EQ(client_->get(query + theirs).status(), 200);
  EXPECT_EQ(get(query + ours).status(), 200);
  expect_error(get(query + theirs), 400, "invalidCursor");
  expect_error(client_->get(query + ours), 400, "invalidCursor");
  expect_error(ask("GET", std::string(route) + "/other" + query + ours), 400, "invalidCursor");
}

TEST_P(gateway_directory_admin, shows_one_resource_with_what_belongs_to_it) {
  start();
  auto const ids = make_users({"<img src=x onerror=alert(1)>"});
  auto const team = client_->post("/Groups", group("team", ids)).id();
  auto const shown = get("/Users/" + ids.front());
  EXPECT_EQ(shown.at("userName"), "<img src=x onerror=alert(1)>");
  EXPECT_EQ(shown.at("groups.0.value"), team);
  EXPECT_EQ(get("/Groups/" + team).at("members.0.value"), ids.front());
  EXPECT_EQ(get("/Groups?excludedAttributes=members").at("Resources.0.members"), "(none)");
  expect_error(get("/Users/missing"), 404);
}

TEST_P(gateway_directory_admin, says_what_is_wrong) {
  start();
  expect_error(get("/Users?filter=userName%20xx%20%22a%22"), 400, "invalidFilter");
  expect_error(get("/Users?cursor=nonsense"), 400, "invalidCursor");
  expect_error(get("/Users?sortBy=nothing"), 400, "invalidValue");
  for (auto const* const path :
       {"/api/v1/directory/nothing/acme/Users", "/api/v1/directory/%2Fscim%2Fv2%2F%2A%2A",
        "/api/v1/directory/%2Fscim%2Fv2%2F%2A%2A/missing/Users",
        "/api/v1/directory/%2Fscim%2Fv2%2F%2A%2A/acme",
        "/api/v1/directory/%2Fscim%2Fv2%2F%2A%2A/acme/Me",
        "/api/v1/directory/%2Fscim%2Fv2%2F%2A%2A/acme/Bulk",
        "/api/v1/directory/%2Fscim%2Fv2%2F%2A%2A/acme/.search", "/api/v1/directory//",
        "/api/v1/directory/%00/%00/%00", "/api/v1/directoryx"}) {
    auto const answer = ask("GET", path);
    EXPECT_EQ(answer.status(), 404) << path;
    EXPECT_EQ(answer.field("Content-Type"), "application/problem+json") << path;
  }
  EXPECT_EQ(ask("POST", std::string(route) + "/acme/Users", user("a")).field("Allow"), "GET, HEAD");
  EXPECT_EQ(ask("PUT", std::string(route) + "/acme/Users/x", user("a")).field("Allow"),
            "GET, HEAD, PATCH, DELETE");
}

TEST_P(gateway_directory_admin, is_for_reading_unless_the_configuration_says_otherwise) {
  start();
  auto const path = std::string(route) + "/acme/Users/" + make_users({"ada"}).front();
  for (auto const* const method : {"DELETE", "PATCH"}) {
    auto const refused = ask(method, path, deactivate);
    EXPECT_EQ(refused.status(), 403);
    EXPECT_THAT(refused.at("detail"), HasSubstr("console.directory: write"));
  }
  EXPECT_EQ(ask("GET", path).at("userName"), "ada");
}

TEST_P(gateway_directory_admin, changes_and_deletes_where_it_may_and_says_so_in_the_log) {
  start("write");
  auto const path = std::string(route) + "/acme/Users/" + make_users({"ada"}).front();
  EXPECT_EQ(ask("GET", "/api/v1/directory").at("access"), "write");
  EXPECT_EQ(ask("PATCH", path, deactivate, "Origin: http://evil.example\r\n").status(), 403);
  EXPECT_EQ(ask("PATCH", path, deactivate).at("active"), "false");
  EXPECT_EQ(ask("GET", path).at("active"), "false");
  auto said = said_until(": answered 200");
  EXPECT_THAT(said, HasSubstr("the admin address was asked by 127.0.0.1:"));
  EXPECT_THAT(said, HasSubstr("PATCH " + path + " (replace active false): answered 200"));
  auto const secret = std::string(
      R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[)"
      R"({"op":"replace","path":"emails[value eq \"hush@example.com\"].type","value":"hush"},)"
      R"({"op":"add","path":"nickName\nx","value":"hush"}]})");
  expect_error(ask("PATCH", path, secret), 400, "invalidPath");
  expect_error(ask("PATCH", path, "{"), 400, "invalidSyntax");
  EXPECT_EQ(ask("DELETE", path).status(), 204);
  expect_error(ask("GET", path), 404);
  said = said_until("DELETE " + path + ": answered 204");
  EXPECT_THAT(said, HasSubstr("PATCH " + path + " (replace emails, add nickName x): answered 400"));
  EXPECT_THAT(said, Not(HasSubstr("hush")));
  expect_error(client_->get(path.substr(path.rfind("/Users"))), 404);
}

TEST_P(gateway_directory_admin, is_closed_where_the_configuration_says_off) {
  start("off");
  make_users({"ada"});
  EXPECT_EQ(ask("GET", "/api/v1/directory").raw.body, "{\"access\":\"off\",\"routes\":[]}\n");
  EXPECT_EQ(get("/Users").status(), 403);
}

TEST_P(gateway_directory_admin, makes_no_answer_that_is_too_long_for_a_page) {
  start();
  std::string const more = R"("displayName":")" + std::string(900'000, 'x') + "\"";
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(client_->post("/Users", user("u" + std::to_string(i), more)).status(), 201);
  }
  auto const first = get("/Users");
  EXPECT_EQ(first.count("Resources"), 4U);
  auto const second = get("/Users?cursor=" + first.at("nextCursor"));
  EXPECT_EQ(second.count("Resources"), 1U);
  EXPECT_EQ(second.at("nextCursor"), "(none)");
  EXPECT_EQ(get("/Users?count=4").count("Resources"), 4U);
  EXPECT_EQ(get("/Users?count=100000&attributes=userName").at("itemsPerPage"), "5");
}

INSTANTIATE_TEST_SUITE_P(stores, gateway_directory_admin, testing::Values("sqlite", "postgres"),
                         [](auto const& row) { return row.param; });

TEST(gateway_directory_admin_route, has_the_tenant_default_without_tokens_and_comes_with_a_reload) {
  data_folder const data;
  std::string const begin = "data: " + data.path() + "\nroutes:\n";
  std::string const echo = "  - {name: echo, match: {path: /**}, service: echo}\n";
  gateway with(begin + echo);
  EXPECT_EQ(with.admin("/api/v1/directory").body, "{\"access\":\"read\",\"routes\":[]}\n");
  EXPECT_EQ(with.admin("/api/v1/directory/echo/default/Users").status(), 404);
  EXPECT_THAT(with.reload(begin +
                          "  - {name: people+1, match: {path: /a/scim/**}, service: scim, "
                          "scim: {public-url: \"https://id.example\"}}\n" +
                          echo),
              HasSubstr("was applied"));
  EXPECT_THAT(with.admin("/api/v1/directory").body,
              HasSubstr(R"("route":"people+1","base":"/a/scim","tenants":["default"])"));
  auto const made = user("ada");
  EXPECT_EQ(with.ask("POST /a/scim/Users HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                     std::to_string(made.size()) + "\r\n\r\n" + made)
                .status(),
            201);
  auto const list = with.admin("/api/v1/directory/people+1/default/Users");
  EXPECT_THAT(list.body, HasSubstr("\"location\":\"https://id.example/a/scim/Users/"));
}

}  // namespace
}  // namespace tidegate::e2e
