// SPDX-License-Identifier: Apache-2.0
#include "api/api_directory.hpp"

#include "endpoint_fixture.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using enum wire::method;

constexpr std::string_view user_ada =
    R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"id":"1","userName":"ada",)"
    R"("active":true,"meta":{"resourceType":"User","created":"2026-01-02T03:04:05Z",)"
    R"("lastModified":"2026-01-02T03:04:05Z","version":"W/\"1\""}})";

/// Users in the order of their creation; without groups and without indexes.
class user_list final : public store::directory_writer {
 public:
  template <class T>
  using outcome = store::directory_outcome<T>;

  auto find(scim::model_type const& type, std::string_view id)
      -> outcome<std::optional<store::directory_resource>> override {
    auto const found = std::ranges::find(users, id, &store::directory_resource::id);
    return type.definition.type().name != "User" || found == users.end() ? std::nullopt
                                                                         : std::optional(*found);
  }
  auto find_any(std::string_view id) -> outcome<std::optional<any_resource>> override {
    auto const found = std::ranges::find(users, id, &store::directory_resource::id);
    return found == users.end() ? std::nullopt : std::optional(any_resource{"User", *found});
  }
  auto find_unique(scim::model_type const& /*type*/, std::size_t /*index*/,
                   std::string_view /*key*/, std::string_view /*except_id*/)
      -> outcome<std::optional<std::string>> override {
    return std::nullopt;
  }
  auto scan(store::directory_query const& query)
      -> outcome<scim::scan_answer<store::directory_row>> override {
    scim::scan_answer<store::directory_row> answer;
    auto const& from = query.scan.place.from;
    std::uint32_t count = 0;
    for (auto const& each : users) {
      bool const is_behind = !from || each.rid > from->at.rid;
      if (query.type->definition.type().name != "User" || !is_behind) {
        continue;
      }
      if (count++ == query.scan.rows_max) {
        break;
      }
      if (query.each) {
        if (!query.each({.rid = each.rid, .sort_key = "", .id = each.id, .text = each.text})) {
          break;
        }
      } else {
        answer.rows.push_back({{"", each.rid}, each.id, each.text, false, nullptr});
      }
    }
    return answer;
  }
  auto count(store::directory_query const& query) -> outcome<store::directory_count> override {
    return store::directory_count{query.type->definition.type().name == "User" ? users.size() : 0};
  }
  auto newest(scim::model_type const& /*type*/) -> outcome<std::uint64_t> override {
    return users.empty() ? 0 : users.back().rid;
  }
  auto members(std::uint64_t /*group_rid*/,
               std::function<bool(store::directory_member const&)> const& /*each*/)
      -> outcome<void> override {
    return {};
  }
  auto groups_of(std::uint64_t /*rid*/) -> outcome<std::vector<store::directory_member>> override {
    return std::vector<store::directory_member>{};
  }
  auto insert(scim::model_type const& /*type*/, std::string_view id, std::string_view text,
              std::span<scim::index_entry const> /*entries*/) -> outcome<std::uint64_t> override {
    auto const rid = users.empty() ? 1 : users.back().rid + 1;
    users.push_back({rid, std::string(id), 1, std::string(text)});
    return rid;
  }
  auto update(scim::model_type const& /*type*/, std::uint64_t rid, std::string_view text,
              std::span<scim::index_entry const> /*entries*/) -> outcome<void> override {
    auto const found = std::ranges::find(users, rid, &store::directory_resource::rid);
    found->text = text;
    ++found->version;
    return {};
  }
  auto remove(scim::model_type const& /*type*/, std::uint64_t rid) -> outcome<void> override {
    std::erase_if(users, [&](store::directory_resource const& each) { return each.rid == rid; });
    return {};
  }
  auto add_member(std::uint64_t /*group*/, std::uint64_t /*member*/, std::string_view /*display*/)
      -> outcome<bool> override {
    return false;
  }
  auto remove_member(std::uint64_t /*group*/, std::uint64_t /*member*/) -> outcome<bool> override {
    return false;
  }
  auto remove_members(std::uint64_t /*group*/) -> outcome<void> override { return {}; }

  std::vector<store::directory_resource> users;
};

/// Has the users of the tenant acme, and runs transactions on the thread of the caller.
class small_directory final : public store::directory {
 public:
  explicit small_directory(user_list& acme) : acme_(acme) {}
  void read(std::string_view tenant, read_transaction transaction) override {
    transaction(tenant == "acme" ? &acme_ : &none_);
  }
  void write(std::string_view tenant, write_transaction transaction, write_answer answer) override {
    (void)transaction(tenant == "acme" ? acme_ : none_);
    answer({});
  }

 private:
  user_list& acme_;
  user_list none_;
};

constexpr std::string_view routes = R"(routes:
  - match: {path: /scim/v2/**}
    service: scim
    auth:
      bearer-tokens:
        - {name: a, tenant: acme, sha256: 8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8}
        - {name: b, tenant: other, sha256: f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753}
  - {name: people+1, match: {path: /p/**}, service: scim, scim: {public-url: "https://id.example"}}
  - {name: echo, match: {path: /**}, service: echo}
)";

/// The first route has no name of its own, so it is called by its match.
constexpr std::string_view first_route = "/api/v1/directory/%2Fscim%2Fv2%2F%2A%2A";

constexpr std::string_view deactivate =
    R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],)"
    R"("Operations":[{"op":"replace","path":"active","value":false}]})";

class admin_api_directory : public testing::Test {
 protected:
  admin_api_directory() {
    auto model = make_scim_model({});
    EXPECT_TRUE(model) << (model ? "" : model.error());
    scim = std::make_unique<scim_service>(
        *std::move(model), std::make_unique<small_directory>(acme), std::array<std::byte, 32>{});
    acme.users.push_back({1, "1", 1, std::string(user_ada)});
    use("read");
  }

  /// `access` is the value of `console.directory`.
  void use(std::string_view access) {
    auto read = parse_config("listen: 127.0.0.1:0\nconsole: {directory: " + std::string(access) +
                                 "}\n" + std::string(routes),
                             "t.yaml");
    ASSERT_TRUE(read) << to_string(read.error().front());
    policy_ids ids;
    upstream_states loads;
    auto made = active_config::make(*std::move(read), ids, loads);
    ASSERT_TRUE(made) << made.error();
    active = *std::move(made);
  }

  auto ask(wire::method method, std::string_view target, std::string_view content = "")
      -> admin_answer {
    return answer_of(*loop, [&](auto reply) {
      answer_directory(*loop, *active, scim.get(), make_request(method, target, content),
                       std::move(reply));
    });
  }
  /// Below the first route.
  auto ask_first(wire::method method, std::string_view rest, std::string_view content = "")
      -> admin_answer {
    return ask(method, std::string(first_route) + std::string(rest), content);
  }

  std::unique_ptr<engine::loop> loop = make_loop();
  user_list acme;
  std::unique_ptr<scim_service> scim;
  std::shared_ptr<active_config const> active;
};

TEST_F(admin_api_directory, names_routes_tenants_and_types_and_no_digest) {
  auto const answer = ask(get, "/api/v1/directory");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.content_type, json_content);
  EXPECT_THAT(
      answer.content,
      AllOf(StartsWith(R"({"access":"read","routes":[{"route":"/scim/v2/**","base":"/scim/v2",)"
                       R"("tenants":["acme","other"],"types":[{"name":"User",)"
                       R"("endpoint":"/Users","attributes":[)"),
            HasSubstr(R"({"route":"people+1","base":"/p","tenants":["default"],)"),
            Not(HasSubstr("\"route\":\"echo\"")), Not(HasSubstr("8ed3f6ad")), EndsWith("]}\n")));
  EXPECT_EQ(ask(head, "/api/v1/directory").content, answer.content);
  expect_not_allowed(ask(post, "/api/v1/directory"), "GET, HEAD");
}

TEST_F(admin_api_directory, names_the_methods_of_each_path) {
  use("write");
  struct row {
    wire::method method;
    std::string_view rest;
    std::string_view allow;
  };
  for (auto const& [method, rest, allow] : {
           row{post, "/acme/Users", "GET, HEAD"},
           row{patch, "/acme/Users", "GET, HEAD"},
           row{delete_, "/acme/Groups", "GET, HEAD"},
           row{put, "/acme/Users/1", "GET, HEAD, PATCH, DELETE"},
           row{post, "/acme/Users/1", "GET, HEAD, PATCH, DELETE"},
       }) {
    SCOPED_TRACE(rest);
    expect_not_allowed(ask_first(method, rest, deactivate), allow);
  }
}

TEST_F(admin_api_directory, refuses_paths_that_lead_nowhere) {
  struct row {
    std::string_view path;
    std::string_view part;
  };
  for (auto const& [path, part] : {
           row{"/api/v1/directory/", "no such route"},
           row{"/api/v1/directory//", "no such route"},
           row{"/api/v1/directory/nothing/acme/Users", "no such route"},
           row{"/api/v1/directory/echo/default/Users", "no such route"},
           row{"/api/v1/directory/%00/%00/%00", "no such route"},
           row{"/api/v1/directory/%2Fscim%2Fv2%2F%2A%2A", "such a tenant"},
           row{"/api/v1/directory/%2Fscim%2Fv2%2F%2A%2A/default/Users", "such a tenant"},
           row{"/api/v1/directory/people+1/acme/Users", "such a tenant"},
           row{"/api/v1/directory/people%201/default/Users", "no such route"},
           row{"/api/v1/directory/people+1/default", "no such resource type"},
           row{"/api/v1/directory/people+1/default/Me", "no such resource type"},
           row{"/api/v1/directory/people+1/default/Bulk", "no such resource type"},
           row{"/api/v1/directory/people+1/default/.search", "no such resource type"},
           row{"/api/v1/directory/people+1/default/Schemas", "no such resource type"},
       }) {
    SCOPED_TRACE(path);
    expect_problem(ask(get, path), 404, part);
  }
  scim.reset();
  expect_problem(ask_first(get, "/acme/Users"), 404, "no such route");
  EXPECT_EQ(ask(get, "/api/v1/directory").content, "{\"access\":\"read\",\"routes\":[]}\n");
}

TEST_F(admin_api_directory, lets_no_one_do_more_than_the_configuration_says) {
  struct row {
    std::string_view access;
    wire::method method;
    std::string_view path;
    int status;
  };
  for (auto const& [access, method, path, status] : {
           row{"off", get, "/acme/Users", 403},
           row{"off", get, "/nowhere", 403},
           row{"off", delete_, "/acme/Users/1", 403},
           row{"read", get, "/acme/Users", 200},
           row{"read", patch, "/acme/Users/1", 403},
           row{"read", delete_, "/acme/Users/1", 403},
           row{"write", get, "/acme/Users/1", 200},
           row{"write", patch, "/acme/Users/1", 200},
           row{"write", delete_, "/acme/Users/1", 204},
           row{"write", delete_, "/acme/Users/1", 404},
       }) {
    SCOPED_TRACE(std::string(access) + " " + std::string(path));
    use(access);
    EXPECT_EQ(ask_first(method, path, deactivate).status, status);
  }
  use("off");
  EXPECT_EQ(ask(get, "/api/v1/directory").content, "{\"access\":\"off\",\"routes\":[]}\n");
  expect_problem(ask_first(get, "/acme/Users"), 403, "console.directory is off");
  use("read");
  expect_problem(ask_first(patch, "/acme/Users/1"), 403, "console.directory: write");
}

TEST_F(admin_api_directory, answers_as_the_service_does) {
  use("write");
  auto const list = ask_first(get, "/acme/Users");
  EXPECT_EQ(list.status, 200);
  EXPECT_EQ(list.content_type, "application/scim+json");
  EXPECT_THAT(list.content, AllOf(HasSubstr(R"("totalResults":1)"), HasSubstr(R"("ada")"),
                                  HasSubstr(R"("location":"/scim/v2/Users/1")")));
  EXPECT_THAT(ask_first(get, "/other/Users").content, HasSubstr(R"("totalResults":0)"));
  EXPECT_THAT(ask_first(get, "/acme/Users/1").content, HasSubstr(R"("active":true)"));
  EXPECT_THAT(ask_first(patch, "/acme/Users/1", deactivate).content,
              HasSubstr(R"("active":false)"));
  EXPECT_THAT(acme.users.front().text, HasSubstr(R"("active":false)"));
  auto const broken = ask_first(patch, "/acme/Users/1", "{");
  EXPECT_EQ(broken.status, 400);
  EXPECT_EQ(broken.content_type, "application/scim+json");
  EXPECT_THAT(broken.content, HasSubstr("invalidSyntax"));
  EXPECT_EQ(ask_first(get, "/acme/Users/2").status, 404);
  EXPECT_THAT(ask_first(get, "/acme/Users?cursor=nonsense").content, HasSubstr("invalidCursor"));
  auto const gone = ask_first(delete_, "/acme/Users/1");
  EXPECT_EQ(gone.status, 204);
  EXPECT_EQ(gone.content, "");
  EXPECT_TRUE(acme.users.empty());
}

TEST_F(admin_api_directory, pages_by_cursor_and_takes_so_many_at_a_time) {
  acme.users.clear();
  for (std::uint64_t rid = 1; rid <= 230; ++rid) {
    auto text = std::string(user_ada);
    text.replace(text.find("\"id\":\"1\""), 8, "\"id\":\"" + std::to_string(rid) + "\"");
    acme.users.push_back({rid, std::to_string(rid), 1, std::move(text)});
  }
  struct row {
    std::string_view query;
    std::string_view items;
  };
  for (auto const& [query, items] : {
           row{"", R"("itemsPerPage":25)"},
           row{"?count=3", R"("itemsPerPage":3)"},
           row{"?count=100000", R"("itemsPerPage":200)"},
       }) {
    EXPECT_THAT(ask_first(get, "/acme/Users" + std::string(query)).content,
                AllOf(HasSubstr(items), HasSubstr("\"nextCursor\":")))
        << query;
  }
}

TEST(admin_patch_in_words, names_operations_and_no_values) {
  struct row {
    std::string_view name;
    std::string content;
    std::string_view words;
  };
  auto const operations = [](std::string_view list) {
    return R"({"Operations":[)" + std::string(list) + "]}";
  };
  for (auto const& [name, content, words] : std::vector<row>{
           {"a flag", operations(R"({"op":"replace","path":"active","value":false})"),
            " (replace active false)"},
           {"a text", operations(R"({"op":"add","path":"nickName","value":"hush"})"),
            " (add nickName)"},
           {"a filter", operations(R"({"op":"remove","path":"emails[value eq \"hush\"].type"})"),
            " (remove emails)"},
           {"no path", operations(R"({"op":"add","value":{"title":"hush","active":true}})"),
            " (add title active)"},
           {"two", operations(R"({"op":"add","path":"a"},{"op":"remove","path":"b"})"),
            " (add a, remove b)"},
           {"nine",
            operations("{\"op\":\"x\"},{\"op\":\"x\"},{\"op\":\"x\"},{\"op\":\"x\"},{\"op\":\"x\"},"
                       "{\"op\":\"x\"},{\"op\":\"x\"},{\"op\":\"x\"},{\"op\":\"x\"}"),
            " (x, x, x, x, x, x, x, x, ...)"},
           {"none", operations(""), ""},
           {"an object", R"({"Operations":{}})", ""},
           {"not JSON", "hush", ""},
           {"nothing", "", ""},
       }) {
    EXPECT_EQ(patch_in_words(content), words) << name;
  }
}

}  // namespace
}  // namespace tidegate::gateway
