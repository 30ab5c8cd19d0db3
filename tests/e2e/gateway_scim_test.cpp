// SPDX-License-Identifier: Apache-2.0
//
// The SCIM service over HTTP: single resources, what the service says of itself, errors.
#include "process.hpp"
#include "scim.hpp"

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

namespace tidegate::e2e {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

class gateway_scim : public scim_test {};

// ---- resources ----

TEST_F(gateway_scim, makes_a_user_with_an_id_a_location_and_a_version) {
  auto const made = client_.post("/Users", user("bjensen", R"("name":{"givenName":"Barbara"})"));
  EXPECT_EQ(made.status(), 201);
  EXPECT_EQ(made.field("Content-Type"), "application/scim+json");
  EXPECT_EQ(made.at("userName"), "bjensen");
  EXPECT_EQ(made.at("name.givenName"), "Barbara");
  EXPECT_EQ(made.at("meta.resourceType"), "User");
  EXPECT_EQ(made.at("meta.created"), made.at("meta.lastModified"));
  EXPECT_THAT(made.at("meta.created"), MatchesRegex("20..-..-..T..:..:..\\....Z"));
  EXPECT_EQ(made.at("meta.version"), "W/\"1\"");
  EXPECT_EQ(made.field("ETag"), "W/\"1\"");
  auto const location = "http://a.example/scim/v2/Users/" + made.id();
  EXPECT_EQ(made.at("meta.location"), location);
  EXPECT_EQ(made.field("Location"), location);

  auto const read = client_.get("/Users/" + made.id());
  EXPECT_EQ(read.status(), 200);
  EXPECT_EQ(read.raw.body, made.raw.body);
  EXPECT_EQ(read.field("ETag"), "W/\"1\"");
  EXPECT_EQ(read.field("Content-Location"), location);
}

TEST_F(gateway_scim, ignores_what_only_the_service_may_say) {
  auto const made = client_.post(
      "/Users", user("x", R"("id":"mine","meta":{"version":"9"},"groups":[{"value":"g"}])"));
  EXPECT_EQ(made.status(), 201);
  EXPECT_NE(made.id(), "mine");
  EXPECT_EQ(made.at("meta.version"), "W/\"1\"");
  EXPECT_EQ(made.at("groups"), "(none)");
}

TEST_F(gateway_scim, neither_keeps_nor_shows_a_password) {
  auto const made = client_.post("/Users", user("x", R"("password":"t1meMa$heen")"));
  EXPECT_EQ(made.status(), 201);
  EXPECT_THAT(made.raw.body, Not(HasSubstr("password")));
  EXPECT_EQ(client_.get("/Users/" + made.id() + "?attributes=password").at("password"), "(none)");
  auto const patched =
      client_.patch("/Users/" + made.id(), R"({"op":"replace","path":"password","value":"other"})");
  EXPECT_EQ(patched.status(), 200);
  EXPECT_EQ(patched.at("meta.version"), "W/\"1\"");
  for (auto const& file : std::filesystem::directory_iterator(data_.path())) {
    std::ifstream from(file.path(), std::ios::binary);
    std::string const text((std::istreambuf_iterator<char>(from)),
                           std::istreambuf_iterator<char>());
    EXPECT_THAT(text, Not(HasSubstr("t1meMa$heen"))) << file.path();
  }
}

TEST_F(gateway_scim, keeps_an_extension_under_its_urn) {
  auto const made = client_.post(
      "/Users",
      R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],)"
      R"("userName":"e","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"department":"Tours"}})");
  EXPECT_EQ(made.status(), 201);
  EXPECT_THAT(
      made.raw.body,
      HasSubstr(
          R"("urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"department":"Tours"})"));
  EXPECT_EQ(made.at("schemas.1"), "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User");
}

TEST_F(gateway_scim, replaces_a_resource_and_keeps_when_it_was_made) {
  auto const made = client_.post("/Users", user("x", R"("title":"old","nickName":"n")"));
  auto const path = "/Users/" + made.id();
  auto const replaced = client_.put(path, user("x", R"("title":"new")"));
  EXPECT_EQ(replaced.status(), 200);
  EXPECT_EQ(replaced.at("title"), "new");
  EXPECT_EQ(replaced.at("nickName"), "(none)");
  EXPECT_EQ(replaced.id(), made.id());
  EXPECT_EQ(replaced.at("meta.created"), made.at("meta.created"));
  EXPECT_EQ(replaced.at("meta.version"), "W/\"2\"");
  EXPECT_EQ(client_.get(path).raw.body, replaced.raw.body);
  expect_error(client_.put("/Users/none", user("y")), 404);
  expect_error(client_.put(path, R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"]})"),
               400, "invalidValue");
}

TEST_F(gateway_scim, patches_a_resource_and_leaves_it_alone_when_nothing_changes) {
  auto const made =
      client_.post("/Users", user("x", R"("emails":[{"type":"work","value":"a@x"}])"));
  auto const path = "/Users/" + made.id();
  auto const patched = client_.patch(
      path,
      R"({"op":"Replace","path":"emails[type eq \"work\"].value","value":"b@x"},{"op":"add","value":{"active":"False"}})");
  EXPECT_EQ(patched.status(), 200) << patched.raw.body;
  EXPECT_EQ(patched.at("emails.0.value"), "b@x");
  EXPECT_EQ(patched.at("active"), "false");
  EXPECT_EQ(patched.field("ETag"), "W/\"2\"");
  auto const again = client_.patch(path, R"({"op":"add","path":"active","value":false})");
  EXPECT_EQ(again.status(), 200);
  EXPECT_EQ(again.raw.body, patched.raw.body);
  expect_error(client_.patch(
                   path, R"({"op":"replace","path":"emails[type eq \"home\"].value","value":"c"})"),
               400, "noTarget");
  expect_error(client_.patch(path, R"({"op":"replace","path":"id","value":"c"})"), 400,
               "mutability");
  expect_error(client_.patch("/Users/none", R"({"op":"add","path":"title","value":"c"})"), 404);
}

TEST_F(gateway_scim, undoes_a_patch_that_fails_in_the_middle) {
  auto const made = client_.post("/Users", user("x"));
  auto const path = "/Users/" + made.id();
  expect_error(
      client_.patch(path,
                    R"({"op":"add","path":"title","value":"t"},{"op":"remove","path":"userName"})"),
      400, "mutability");
  EXPECT_EQ(client_.get(path).raw.body, made.raw.body);
}

TEST_F(gateway_scim, deletes_a_resource_for_good) {
  auto const made = client_.post("/Users", user("x"));
  auto const path = "/Users/" + made.id();
  auto const deleted = client_.remove(path);
  EXPECT_EQ(deleted.status(), 204);
  EXPECT_EQ(deleted.raw.body, "");
  EXPECT_EQ(deleted.raw.count("Content-Length"), 0U);
  expect_error(client_.get(path), 404);
  expect_error(client_.remove(path), 404);
  expect_error(client_.put(path, user("x")), 404);
  EXPECT_EQ(client_.get("/Users").at("totalResults"), "0");
  EXPECT_EQ(client_.post("/Users", user("x")).status(), 201);
}

TEST_F(gateway_scim, answers_409_to_a_user_name_that_is_taken_in_any_case) {
  auto const first = client_.post("/Users", user("Bjensen"));
  expect_error(client_.post("/Users", user("bJENSEN")), 409, "uniqueness");
  auto const second = client_.post("/Users", user("other"));
  expect_error(client_.put("/Users/" + second.id(), user("bjensen")), 409, "uniqueness");
  expect_error(client_.patch("/Users/" + second.id(),
                             R"({"op":"replace","path":"userName","value":"bjensen"})"),
               409, "uniqueness");
  EXPECT_EQ(client_.put("/Users/" + first.id(), user("BJENSEN")).status(), 200);
}

TEST_F(gateway_scim, lets_groups_have_the_same_name) {
  EXPECT_EQ(client_.post("/Groups", group("g")).status(), 201);
  EXPECT_EQ(client_.post("/Groups", group("g")).status(), 201);
}

TEST(gateway_scim_options, keeps_group_names_apart_where_that_is_asked_for) {
  data_folder const data;
  gateway const with(scim_config(data, "    scim: {unique-group-names: true}\n"));
  scim_client const client(with);
  EXPECT_EQ(client.post("/Groups", group("Tours")).status(), 201);
  expect_error(client.post("/Groups", group("tours")), 409, "uniqueness");
}

// ---- versions ----

TEST_F(gateway_scim, answers_304_when_the_client_has_the_version) {
  auto const made = client_.post("/Users", user("x"));
  auto const path = "/Users/" + made.id();
  for (auto const* const tag : {"W/\"1\"", "\"1\"", "\"7\", W/\"1\"", "*"}) {
    auto const answer = client_.get(path, "If-None-Match: " + std::string(tag) + "\r\n");
    EXPECT_EQ(answer.status(), 304) << tag;
    EXPECT_EQ(answer.raw.body, "");
    EXPECT_EQ(answer.field("ETag"), "W/\"1\"");
  }
  EXPECT_EQ(client_.get(path, "If-None-Match: W/\"2\"\r\n").status(), 200);
}

TEST_F(gateway_scim, changes_only_the_version_that_the_client_names) {
  auto const made = client_.post("/Users", user("x"));
  auto const path = "/Users/" + made.id();
  expect_error(client_.put(path, user("y"), "If-Match: W/\"2\"\r\n"), 412);
  EXPECT_EQ(client_.put(path, user("y"), "If-Match: W/\"1\"\r\n").status(), 200);
  auto const add = R"({"op":"add","path":"title","value":"t"})";
  expect_error(client_.patch(path, add, "If-Match: W/\"1\"\r\n"), 412);
  expect_error(client_.patch(path, add, "If-None-Match: W/\"2\"\r\n"), 412);
  EXPECT_EQ(client_.patch(path, add, "If-Match: *\r\n").status(), 200);
  expect_error(client_.remove(path, "If-Match: W/\"1\"\r\n"), 412);
  expect_error(client_.get(path, "If-Match: W/\"1\"\r\n"), 412);
  EXPECT_EQ(client_.remove(path, "If-Match: W/\"3\"\r\n").status(), 204);
}

// ---- groups ----

TEST_F(gateway_scim, shows_members_in_the_group_and_the_group_in_its_members) {
  auto const u = client_.post("/Users", user("u"));
  auto const inner = client_.post("/Groups", group("inner"));
  auto const made = client_.post(
      "/Groups",
      R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"displayName":"g","members":[{"value":")" +
          u.id() + R"(","display":"You"},{"value":")" + inner.id() + R"("}]})");
  EXPECT_EQ(made.status(), 201) << made.raw.body;
  EXPECT_EQ(made.at("members.0.value"), u.id());
  EXPECT_EQ(made.at("members.0.display"), "You");
  EXPECT_EQ(made.at("members.0.type"), "User");
  EXPECT_EQ(made.at("members.0.$ref"), "http://a.example/scim/v2/Users/" + u.id());
  EXPECT_EQ(made.at("members.1.type"), "Group");
  EXPECT_EQ(made.at("members.1.$ref"), "http://a.example/scim/v2/Groups/" + inner.id());
  EXPECT_EQ(client_.get("/Groups/" + made.id()).raw.body, made.raw.body);

  auto const member = client_.get("/Users/" + u.id());
  EXPECT_EQ(member.at("groups.0.value"), made.id());
  EXPECT_EQ(member.at("groups.0.display"), "g");
  EXPECT_EQ(member.at("groups.0.type"), "direct");
  EXPECT_EQ(member.at("groups.0.$ref"), "http://a.example/scim/v2/Groups/" + made.id());
  EXPECT_EQ(client_.get("/Users").at("Resources.0.groups.0.value"), made.id());
}

TEST_F(gateway_scim, refuses_members_that_do_not_exist) {
  expect_error(client_.post("/Groups", group("g", {"missing"})), 400, "invalidValue");
  auto const made = client_.post("/Groups", group("g"));
  auto const path = "/Groups/" + made.id();
  expect_error(
      client_.patch(path, R"({"op":"add","path":"members","value":[{"value":"missing"}]})"), 400,
      "invalidValue");
  expect_error(client_.patch(path, R"({"op":"add","path":"members","value":[{"value":")" +
                                       made.id() + R"("}]})"),
               400, "invalidValue");
  EXPECT_EQ(client_.get(path).raw.body, made.raw.body);
}

TEST_F(gateway_scim, adds_and_removes_members_in_the_forms_that_clients_send) {
  auto const a = client_.post("/Users", user("a")).id();
  auto const b = client_.post("/Users", user("b")).id();
  auto const made = client_.post("/Groups", group("g"));
  auto const path = "/Groups/" + made.id();
  auto const members = [&](std::string const& operation) {
    auto const answer = client_.patch(path, operation);
    EXPECT_EQ(answer.status(), 200) << answer.raw.body;
    return answer.count("members");
  };
  EXPECT_EQ(members(R"({"op":"Add","path":"members","value":[{"value":")" + a + R"("}]})"), 1U);
  EXPECT_EQ(members(R"({"op":"add","value":{"members":[{"value":")" + b + R"("}]}})"), 2U);
  EXPECT_EQ(members(R"({"op":"add","path":"members","value":{"value":")" + b + R"("}})"), 2U);
  EXPECT_EQ(client_.get(path).at("meta.version"), "W/\"3\"");
  EXPECT_EQ(members(R"({"op":"remove","path":"members[value eq \")" + a + R"(\"]"})"), 1U);
  EXPECT_EQ(client_.get("/Users/" + a).at("groups"), "(none)");
  EXPECT_EQ(members(R"({"op":"Remove","path":"members","value":[{"value":")" + b + R"("}]})"), 0U);
  EXPECT_EQ(members(R"({"op":"replace","path":"members","value":[{"value":")" + a +
                    R"("},{"value":")" + b + R"("}]})"),
            2U);
  EXPECT_EQ(members(R"({"op":"remove","path":"members"})"), 0U);
}

TEST_F(gateway_scim, makes_no_new_version_of_a_group_whose_members_stay_the_same) {
  auto const a = client_.post("/Users", user("a")).id();
  auto const b = client_.post("/Users", user("b")).id();
  auto const made = client_.post("/Groups", group("g"));
  auto const path = "/Groups/" + made.id();
  auto const list = [](std::vector<std::string> const& ids) {
    std::string out;
    for (auto const& id : ids) {
      out += (out.empty() ? "" : ",") + (R"({"value":")" + id) + "\"}";
    }
    return "[" + out + "]";
  };
  auto const version = [&](std::string const& operation) {
    auto const answer = client_.patch(path, operation);
    EXPECT_EQ(answer.status(), 200) << answer.raw.body;
    return answer.field("ETag");
  };
  std::string const replace = R"({"op":"replace","path":"members","value":)";
  EXPECT_EQ(version(R"({"op":"remove","path":"members"})"), "W/\"1\"");
  EXPECT_EQ(version(replace + "[]}"), "W/\"1\"");
  EXPECT_EQ(version(R"({"op":"replace","value":{"members":[]}})"), "W/\"1\"");
  EXPECT_EQ(client_.get(path).at("meta.lastModified"), made.at("meta.lastModified"));
  EXPECT_EQ(version(replace + list({a, b}) + "}"), "W/\"2\"");
  EXPECT_EQ(version(replace + list({b, a, b}) + "}"), "W/\"2\"");
  EXPECT_EQ(version(replace + list({a}) + "}"), "W/\"3\"");
  EXPECT_EQ(version(replace + list({b}) + "}"), "W/\"4\"");
  EXPECT_EQ(version(replace + R"([{"value":")" + b + R"(","display":"B"}]})"), "W/\"5\"");
  EXPECT_EQ(version(R"({"op":"remove","path":"members"})"), "W/\"6\"");
  EXPECT_EQ(client_.get(path).count("members"), 0U);
}

TEST_F(gateway_scim, makes_no_new_version_when_put_brings_what_is_there) {
  constexpr auto more = R"("name":{"givenName":"G","familyName":"F"},"password":"secret",
      "emails":[{"value":"a@example.com","type":"work"}])";
  auto const made = client_.post("/Users", user("a", more));
  auto const path = "/Users/" + made.id();
  auto const same = client_.put(path, user("a", more));
  EXPECT_EQ(same.status(), 200);
  EXPECT_EQ(same.raw.body, made.raw.body);
  EXPECT_EQ(same.field("ETag"), "W/\"1\"");
  EXPECT_EQ(client_.put(path, made.raw.body).field("ETag"), "W/\"1\"");  // with id and meta
  EXPECT_EQ(client_.put(path, user("b", more)).field("ETag"), "W/\"2\"");
  EXPECT_EQ(client_.put(path, user("b")).field("ETag"), "W/\"3\"");

  auto const first = client_.post("/Users", user("first")).id();
  auto const second = client_.post("/Users", user("second")).id();
  auto const team = client_.post("/Groups", group("g", {first, second}));
  auto const version = [&](std::string const& body) {
    auto const answer = client_.put("/Groups/" + team.id(), body);
    EXPECT_EQ(answer.status(), 200) << answer.raw.body;
    return answer.field("ETag");
  };
  EXPECT_EQ(version(group("g", {second, first})), "W/\"1\"");
  EXPECT_EQ(client_.get("/Groups/" + team.id()).raw.body, team.raw.body);
  EXPECT_EQ(version(group("g", {second})), "W/\"2\"");
  EXPECT_EQ(version(group("h", {second})), "W/\"3\"");
  EXPECT_EQ(client_.get("/Groups/" + team.id()).at("members.0.value"), second);
  EXPECT_EQ(version(group("h")), "W/\"4\"");
  EXPECT_EQ(version(group("h")), "W/\"4\"");
}

TEST_F(gateway_scim, takes_a_deleted_member_out_of_its_groups) {
  auto const u = client_.post("/Users", user("u")).id();
  auto const made = client_.post("/Groups", group("g", {u}));
  EXPECT_EQ(client_.remove("/Users/" + u).status(), 204);
  EXPECT_EQ(client_.get("/Groups/" + made.id()).at("members"), "(none)");
}

TEST_F(gateway_scim, replaces_all_members_by_put) {
  auto const a = client_.post("/Users", user("a")).id();
  auto const b = client_.post("/Users", user("b")).id();
  auto const made = client_.post("/Groups", group("g", {a}));
  auto const replaced = client_.put("/Groups/" + made.id(), group("h", {b}));
  EXPECT_EQ(replaced.status(), 200);
  EXPECT_EQ(replaced.count("members"), 1U);
  EXPECT_EQ(replaced.at("members.0.value"), b);
  EXPECT_EQ(client_.get("/Users/" + a).at("groups"), "(none)");
  EXPECT_EQ(client_.get("/Users/" + b).at("groups.0.display"), "h");
}

// ---- what is shown ----

TEST_F(gateway_scim, shows_the_attributes_that_are_asked_for) {
  auto const made =
      client_.post("/Users", user("x", R"("title":"t","name":{"givenName":"g","familyName":"f"})"));
  auto const path = "/Users/" + made.id();
  auto const some = client_.get(path + "?attributes=userName,name.givenName");
  EXPECT_EQ(some.at("userName"), "x");
  EXPECT_EQ(some.at("name.givenName"), "g");
  EXPECT_EQ(some.at("name.familyName"), "(none)");
  EXPECT_EQ(some.at("title"), "(none)");
  EXPECT_EQ(some.at("meta"), "(none)");
  EXPECT_EQ(some.id(), made.id());
  EXPECT_EQ(some.at("schemas.0"), "urn:ietf:params:scim:schemas:core:2.0:User");
  auto const rest = client_.get(path + "?excludedAttributes=title,id");
  EXPECT_EQ(rest.at("title"), "(none)");
  EXPECT_EQ(rest.id(), made.id());
  EXPECT_EQ(rest.at("meta.location"), made.at("meta.location"));
  expect_error(client_.get(path + "?attributes=title&excludedAttributes=name"), 400,
               "invalidValue");
  EXPECT_EQ(client_.post("/Users?attributes=userName", user("y", R"("title":"t")")).at("title"),
            "(none)");
}

TEST_F(gateway_scim, leaves_members_out_where_that_is_asked_for) {
  auto const u = client_.post("/Users", user("u")).id();
  auto const made = client_.post("/Groups", group("g", {u}));
  auto const path = "/Groups/" + made.id();
  EXPECT_EQ(client_.get(path + "?excludedAttributes=members").at("members"), "(none)");
  EXPECT_EQ(client_.get(path + "?attributes=members").at("members.0.value"), u);
  EXPECT_EQ(client_.get("/Groups?excludedAttributes=members").at("Resources.0.members"), "(none)");
  EXPECT_EQ(client_.get("/Groups?filter=members.value%20eq%20%22" + u + "%22").at("totalResults"),
            "1");
}

// ---- what the service says of itself ----

TEST_F(gateway_scim, says_what_it_can_do_without_a_token) {
  auto const said = scim_client(with_, "").get("/ServiceProviderConfig");
  EXPECT_EQ(said.status(), 200);
  EXPECT_EQ(said.at("patch.supported"), "true");
  EXPECT_EQ(said.at("bulk.maxOperations"), "1000");
  EXPECT_EQ(said.at("changePassword.supported"), "false");
  EXPECT_EQ(said.at("pagination.cursor"), "true");
  EXPECT_EQ(said.at("pagination.maxPageSize"), "500");
  EXPECT_EQ(said.at("pagination.maximumPageSize"), "500");
  EXPECT_EQ(said.at("pagination.cursorTimeout"), "600");
  EXPECT_EQ(said.at("authenticationSchemes.0.type"), "oauthbearertoken");
  EXPECT_EQ(said.at("meta.location"), "http://a.example/scim/v2/ServiceProviderConfig");
  EXPECT_EQ(scim_client(with_, "").get("/Schemas").status(), 401);
}

TEST_F(gateway_scim, shows_schemas_and_resource_types) {
  auto const schemas = client_.get("/Schemas");
  EXPECT_EQ(schemas.at("totalResults"), "3");
  EXPECT_EQ(schemas.at("Resources.0.id"), "urn:ietf:params:scim:schemas:core:2.0:User");
  auto const one = client_.get("/Schemas/urn:ietf:params:scim:schemas:core:2.0:Group");
  EXPECT_EQ(one.at("name"), "Group");
  EXPECT_EQ(one.at("meta.location"),
            "http://a.example/scim/v2/Schemas/urn:ietf:params:scim:schemas:core:2.0:Group");
  EXPECT_EQ(
      client_.get("/Schemas/urn%3Aietf%3Aparams%3Ascim%3Aschemas%3Acore%3A2.0%3AGroup").status(),
      200);
  expect_error(client_.get("/Schemas/urn:none"), 404);
  EXPECT_EQ(client_.get("/ResourceTypes").at("totalResults"), "2");
  EXPECT_EQ(client_.get("/ResourceTypes/User").at("endpoint"), "/Users");
  expect_error(client_.get("/ResourceTypes/None"), 404);
  expect_error(client_.get("/Schemas?filter=id%20pr"), 403);
  expect_error(client_.get("/ServiceProviderConfig?filter=id%20pr"), 403);
}

TEST_F(gateway_scim, takes_me_for_the_user_with_the_name_of_the_token) {
  expect_error(client_.get("/Me"), 404);
  auto const made = client_.post("/Users", user("A"));
  auto const me = client_.get("/Me");
  EXPECT_EQ(me.status(), 200);
  EXPECT_EQ(me.id(), made.id());
  EXPECT_EQ(me.field("Location"), "http://a.example/scim/v2/Users/" + made.id());
  EXPECT_EQ(client_.patch("/Me", R"({"op":"add","path":"title","value":"t"})").at("title"), "t");
  expect_error(client_.post("/Me", user("z")), 501);
  EXPECT_EQ(client_.remove("/Me").status(), 204);
  expect_error(client_.get("/Users/" + made.id()), 404);
}

// ---- errors ----

TEST_F(gateway_scim, has_errors_of_its_own_form) {
  expect_error(client_.get("/Nothing"), 404);
  expect_error(client_.get("/Users/a/b"), 404);
  expect_error(client_.post("/Users", "{"), 400, "invalidSyntax");
  expect_error(client_.post("/Users", "[]"), 400, "invalidSyntax");
  expect_error(client_.post("/Users", user("x", R"("active":"maybe")")), 400, "invalidValue");
  expect_error(client_.post("/Users", user("x", R"("title":["a","b"])")), 400, "invalidValue");
  expect_error(client_.post("/Users", user("x"), "Content-Type: text/plain\r\n"), 415);
  auto const wrong = client_.ask("DELETE", "/Users");
  expect_error(wrong, 405);
  EXPECT_EQ(wrong.field("Allow"), "GET, HEAD, POST");
  EXPECT_EQ(client_.post("/Users/x", user("x")).field("Allow"), "GET, HEAD, PUT, PATCH, DELETE");
  expect_error(client_.get("/Bulk"), 405);
}

TEST_F(gateway_scim, ignores_what_no_schema_has_counts_it_and_says_so_once) {
  // As Entra's tutorial prints it.
  auto const entra_group = [](std::string const& name) {
    return R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group",)"
           R"("http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"],)"
           R"("externalId":"8aa1","displayName":")" +
           name + R"(","meta":{"resourceType":"Group"}})";
  };
  auto const made = client_.post("/Groups", entra_group("g"));
  EXPECT_EQ(made.status(), 201) << made.raw.body;
  EXPECT_EQ(made.count("schemas"), 1U);
  auto const admin = client_.post(
      "/Users",
      user("alias@contoso", R"("roles":[{"primary":false,"type":"WindowsAzureActiveDirectoryRole",)"
                            R"("displayName":"Admin","value":"Admin"}],"department":null)"));
  EXPECT_EQ(admin.status(), 201) << admin.raw.body;
  EXPECT_EQ(admin.at("roles.0.displayName"), "(none)");
  EXPECT_EQ(admin.at("roles.0.value"), "Admin");
  auto const patched =
      client_.patch("/Groups/" + made.id(),
                    R"({"op":"add","path":"members","value":[{"displayName":"new User","value":")" +
                        admin.id() + R"("}]})");
  EXPECT_EQ(patched.at("members.0.value"), admin.id()) << patched.raw.body;
  EXPECT_EQ(client_.put("/Users/" + admin.id(), user("b", R"("shoe":4)")).status(), 200);
  EXPECT_EQ(
      client_
          .post("/Bulk", R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:BulkRequest"],)"
                         R"("Operations":[{"method":"POST","path":"/Users","bulkId":"1",)"
                         R"("data":)" +
                             user("c", R"("shoe":4)") + "}]}")
          .at("Operations.0.status"),
      "201");
  EXPECT_EQ(client_.post("/Groups", entra_group("h")).status(), 201);
  std::string const route = R"(tidegate_scim_ignored_total{route="/scim/v2/**",what=)";
  EXPECT_EQ(with_.metric(route + R"("schema"})"), 2);
  EXPECT_EQ(with_.metric(route + R"("attribute"})"), 4);
  auto const said = with_.errors_until(R"(ignored "shoe", which no schema has)");
  for (auto const* const name :
       {"http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group",
        "roles.displayName", "members.displayName"}) {
    auto const line = "info: scim: route \"/scim/v2/**\": ignored \"" + std::string(name) +
                      "\", which no schema has\n";
    EXPECT_THAT(said, HasSubstr(line));
    EXPECT_EQ(said.find(line), said.rfind(line)) << "once";
  }
  // A path is what the client wants changed.
  expect_error(client_.patch("/Users/" + admin.id(), R"({"op":"add","path":"shoe","value":4})"),
               400, "invalidPath");
}

TEST(gateway_scim_options, refuses_what_no_schema_has_where_that_is_asked_for) {
  data_folder const data;
  gateway const with(scim_config(data, "    scim: {unknown-attributes: refuse}\n"));
  scim_client const client(with);
  auto const made = client.post("/Users", user("a", R"("department":null)"));
  EXPECT_EQ(made.status(), 201) << made.raw.body;
  expect_error(client.post("/Users", user("b", R"("shoe":4)")), 400, "invalidSyntax");
  expect_error(client.post("/Users", R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User",)"
                                     R"("urn:x"],"userName":"b"})"),
               400, "invalidValue");
  auto const path = "/Users/" + made.id();
  expect_error(client.put(path, user("a", R"("name":{"shoe":4})")), 400, "invalidSyntax");
  expect_error(client.patch(path, R"({"op":"add","value":{"shoe":4}})"), 400, "invalidPath");
  expect_error(client.patch(path, R"({"op":"add","path":"emails","value":{"shoe":4}})"), 400,
               "invalidSyntax");
  EXPECT_EQ(with.metric(R"(tidegate_scim_ignored_total{route="/scim/v2/**",what="attribute"})"), 0);
}

TEST_F(gateway_scim, takes_the_manager_in_every_form_that_entra_documents) {
  constexpr std::string_view urn = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
  auto const text = [&](std::string const& name, std::string const& manager) {
    return R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User",")" + std::string(urn) +
           R"("],"userName":")" + name + R"(",")" + std::string(urn) + R"(":{"schemas":[")" +
           std::string(urn) + R"("],"manager":)" + manager + "}}";
  };
  auto const manager_of = [&](scim_message const& answer) {
    auto const* const extension = answer.body.find(urn);
    auto const* const manager = extension == nullptr ? nullptr : extension->find("manager");
    return manager == nullptr ? "(none)" : to_string(*manager);
  };
  auto const made = client_.post("/Users", text("a", R"("123456")"));
  EXPECT_EQ(manager_of(made), R"({"value":"123456"})") << made.raw.body;
  auto const path = "/Users/" + made.id();
  EXPECT_EQ(manager_of(client_.put(path, text("a", R"(["7"])"))), R"({"value":"7"})");
  EXPECT_EQ(manager_of(client_.patch(
                path, R"({"op":"Add","path":"manager","value":[{"$ref":"/x","value":"boss"}]})")),
            R"({"value":"boss","$ref":"/x"})");
  auto const found = client_.get("/Users?filter=id%20eq%20%22" + made.id() +
                                 "%22%20and%20manager%20eq%20%22boss%22");
  EXPECT_EQ(found.at("totalResults"), "1") << found.raw.body;
  EXPECT_EQ(manager_of(client_.patch(path, R"({"op":"Replace","path":")" + std::string(urn) +
                                               R"(:manager","value":""})")),
            "(none)");
}

TEST_F(gateway_scim, answers_in_the_media_type_that_is_accepted) {
  struct row {
    std::string accept;
    std::string_view type;
  };
  std::string_view const scim_type = "application/scim+json";
  std::string_view const json_type = "application/json";
  for (auto const& [accept, type] : std::vector<row>{
           {"", scim_type},
           {"*/*", scim_type},
           {"application/*", scim_type},
           {"application/scim+json", scim_type},
           {"application/json", json_type},
           {"Application/JSON;charset=utf-8", json_type},
           {"application/json, text/plain, */*", json_type},
           {"application/json, application/scim+json", scim_type},
           {"application/scim+json;q=0.5, application/json;q=0.9", json_type},
           {"application/json;q=0.5, application/scim+json; q=0.9", scim_type},
           {"application/json;q=0.5, */*", scim_type},
           {"application/json;q=0", scim_type},
           {"application/scim+json;q=0, */*", json_type},
           {"text/html", scim_type},
           {"application/json;q=2", scim_type},
           {",;=,", scim_type},
           {"text/html\r\nAccept: application/json", json_type},
       }) {
    auto const lines = accept.empty() ? std::string() : "Accept: " + accept + "\r\n";
    EXPECT_EQ(client_.get("/Users", lines).field("Content-Type"), type) << accept;
  }
  std::string const lines = "Accept: application/json\r\n";
  auto const made = client_.post("/Users", user("a"), lines);
  EXPECT_EQ(made.field("Content-Type"), json_type);
  EXPECT_EQ(client_.get("/Users/" + made.id(), lines).field("Content-Type"), json_type);
  EXPECT_EQ(client_.get("/ServiceProviderConfig", lines).field("Content-Type"), json_type);
  auto const twice = client_.post("/Users", user("a"), lines);
  EXPECT_EQ(twice.status(), 409);
  EXPECT_EQ(twice.field("Content-Type"), json_type);
  auto const stranger = scim_client(with_, "omega").get("/Users", lines);
  EXPECT_EQ(stranger.status(), 401);
  EXPECT_EQ(stranger.field("Content-Type"), json_type);
}

TEST_F(gateway_scim, takes_content_types_with_parameters) {
  for (auto const* const type : {"application/scim+json; charset=utf-8", "application/json",
                                 "Application/JSON;charset=UTF-8"}) {
    EXPECT_EQ(
        client_.post("/Users", user(type), "Content-Type: " + std::string(type) + "\r\n").status(),
        201)
        << type;
  }
}

TEST_F(gateway_scim, answers_401_in_its_own_form) {
  auto const without = scim_client(with_, "").get("/Users");
  expect_error(without, 401);
  EXPECT_EQ(without.field("WWW-Authenticate"), "Bearer realm=\"tidegate\"");
  auto const wrong = scim_client(with_, "omega").get("/Users");
  expect_error(wrong, 401);
  EXPECT_EQ(wrong.field("WWW-Authenticate"), "Bearer realm=\"tidegate\", error=\"invalid_token\"");
}

TEST_F(gateway_scim, lets_a_token_for_reading_search_and_nothing_else) {
  scim_client const reader(with_, "delta");
  EXPECT_EQ(reader.get("/Users").status(), 200);
  EXPECT_EQ(reader
                .post("/Users/.search",
                      R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:SearchRequest"]})")
                .status(),
            200);
  expect_error(reader.post("/Users", user("x")), 403);
  expect_error(reader.patch("/Users/x", ""), 403);
  expect_error(reader.post("/Bulk", "{}"), 403);
}

TEST(gateway_scim_options, answers_413_to_content_that_is_too_long) {
  data_folder const data;
  gateway const with(scim_config(data, "    scim: {max-body: 1KiB, bulk: {max-payload: 2KiB}}\n"));
  scim_client const client(with);
  auto const long_title = R"("title":")" + std::string(1500, 't') + "\"";
  expect_error(client.post("/Users", user("x", long_title)), 413);
  auto to = with.connect();
  to.send(
      "POST /scim/v2/Users HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer alpha\r\n"
      "Transfer-Encoding: chunked\r\n\r\n400\r\n" +
      std::string(1024, ' ') + "\r\n10\r\n" + std::string(16, ' ') + "\r\n0\r\n\r\n");
  EXPECT_EQ(to.read_response().status(), 413);
  expect_error(client.post("/Bulk", std::string(1500, ' ')), 400, "invalidSyntax");
  expect_error(client.post("/Bulk", std::string(2500, ' ')), 413);
}

TEST_F(gateway_scim, answers_head_like_get_without_content) {
  auto const made = client_.post("/Users", user("x"));
  auto const answer = client_.ask("HEAD", "/Users/" + made.id());
  EXPECT_EQ(answer.status(), 200);
  EXPECT_EQ(answer.field("Content-Length"), std::to_string(made.raw.body.size()));
  EXPECT_EQ(answer.field("ETag"), "W/\"1\"");
}

// ---- tenants ----

TEST_F(gateway_scim, keeps_tenants_apart) {
  scim_client const other(with_, "gamma");
  auto const made = client_.post("/Users", user("x"));
  expect_error(other.get("/Users/" + made.id()), 404);
  expect_error(other.remove("/Users/" + made.id()), 404);
  EXPECT_EQ(other.get("/Users").at("totalResults"), "0");
  EXPECT_EQ(other.post("/Users", user("x")).status(), 201);
  expect_error(other.post("/Groups", group("g", {made.id()})), 400, "invalidValue");
  EXPECT_EQ(scim_client(with_, "beta").get("/Users/" + made.id()).status(), 200);
}

// ---- behind the rest of the gateway ----

TEST(gateway_scim_options, is_limited_as_any_route) {
  data_folder const data;
  gateway const with(
      scim_config(data, "    limits: [p]\n",
                  "policies: {p: {quota: 2, window: 1m, partition: [principal]}}\n"));
  scim_client const client(with);
  auto const first = client.get("/Users");
  EXPECT_EQ(first.status(), 200);
  EXPECT_THAT(first.field("RateLimit"), StartsWith("\"p\";r=1"));
  expect_error(client.get("/Users/none"), 404);
  auto const refused = client.get("/Users");
  EXPECT_EQ(refused.status(), 429);
  EXPECT_EQ(refused.field("Content-Type"), "application/problem+json");
  EXPECT_EQ(scim_client(with, "beta").get("/Users").status(), 200);
}

TEST(gateway_scim_options, replays_a_post_with_the_same_key) {
  data_folder const data;
  auto const config = scim_config(data, "    idempotency: {mode: optional}\n");
  std::string id;
  {
    gateway const with(config);
    scim_client const client(with);
    auto const first = client.post("/Users", user("x"), "Idempotency-Key: \"k\"\r\n");
    EXPECT_EQ(first.status(), 201) << first.raw.body;
    EXPECT_EQ(first.raw.count("Idempotent-Replayed"), 0U);
    id = first.id();
    auto const again = client.post("/Users", user("x"), "Idempotency-Key: \"k\"\r\n");
    EXPECT_EQ(again.status(), 201);
    EXPECT_EQ(again.field("Idempotent-Replayed"), "true");
    EXPECT_EQ(again.raw.body, first.raw.body);
    EXPECT_EQ(again.field("Location"), first.field("Location"));
    EXPECT_EQ(again.field("ETag"), "W/\"1\"");
    EXPECT_EQ(client.post("/Users", user("y"), "Idempotency-Key: \"k\"\r\n").status(), 422);
    expect_error(client.post("/Users", user("x"), "Idempotency-Key: \"other\"\r\n"), 409,
                 "uniqueness");
    expect_error(client.post("/Users", user("x")), 409, "uniqueness");
    EXPECT_EQ(client.get("/Users").at("totalResults"), "1");
  }
  gateway const with(config);
  auto const again = scim_client(with).post("/Users", user("x"), "Idempotency-Key: \"k\"\r\n");
  EXPECT_EQ(again.field("Idempotent-Replayed"), "true");
  EXPECT_EQ(again.id(), id);
}

TEST_F(gateway_scim, keeps_what_it_has_over_a_restart) {
  auto const u = client_.post("/Users", user("u")).id();
  auto const g = client_.post("/Groups", group("g", {u})).id();
  with_.signal(SIGKILL);
  EXPECT_NE(with_.wait(), 0);
  gateway const again(scim_config(data_));
  scim_client const client(again);
  EXPECT_EQ(client.get("/Users/" + u).at("groups.0.value"), g);
  expect_error(client.post("/Users", user("U")), 409, "uniqueness");
}

TEST(gateway_scim_options, takes_the_public_url_for_locations) {
  data_folder const data;
  gateway const with(scim_config(data, "    scim: {public-url: https://id.example.com/}\n"));
  auto const made = scim_client(with).post("/Users", user("x"));
  EXPECT_EQ(made.at("meta.location"), "https://id.example.com/scim/v2/Users/" + made.id());
  gateway const other(scim_config(data, "    scim: {public-url: https://id.example.com/base}\n",
                                  "stores: {directory: 'sqlite:" + data.path() + "/o.db'}\n"));
  EXPECT_THAT(scim_client(other).post("/Users", user("x")).field("Location"),
              StartsWith("https://id.example.com/base/Users/"));
}

TEST(gateway_scim_options, serves_resource_types_of_a_file) {
  data_folder const data;
  std::ofstream(data.path() + "/devices.json")
      << R"([{"id":"urn:example:Device","name":"Device","attributes":[)"
         R"({"name":"serial","type":"string","required":true,"uniqueness":"server","caseExact":true},)"
         R"({"name":"secret","type":"string","mutability":"writeOnly","returned":"never"},)"
         R"({"name":"notes","type":"string","returned":"request"}]},)"
         R"({"id":"Device","name":"Device","endpoint":"/Devices","schema":"urn:example:Device"}])";
  gateway const with(scim_config(data, "    scim: {schemas: " + data.path() + "/devices.json}\n"));
  scim_client const client(with);
  auto const made = client.post(
      "/Devices", R"({"schemas":["urn:example:Device"],"serial":"s1","secret":"x","notes":"n"})");
  EXPECT_EQ(made.status(), 201) << made.raw.body;
  EXPECT_EQ(made.at("secret"), "(none)");
  EXPECT_EQ(made.at("notes"), "(none)");
  EXPECT_EQ(client.get("/Devices/" + made.id() + "?attributes=notes").at("notes"), "n");
  EXPECT_EQ(client.get("/Devices").at("Resources.0.notes"), "(none)");
  expect_error(client.post("/Devices", R"({"schemas":["urn:example:Device"],"serial":"s1"})"), 409,
               "uniqueness");
  EXPECT_EQ(client.post("/Devices", R"({"schemas":["urn:example:Device"],"serial":"S1"})").status(),
            201);
  EXPECT_EQ(client.get("/ResourceTypes").at("totalResults"), "3");
}

// ---- many at once ----

TEST_F(gateway_scim, loses_none_of_many_patches_at_once) {
  auto const path = "/Users/" + client_.post("/Users", user("x")).id();
  std::vector<std::thread> clients;
  for (int i = 0; i < 64; ++i) {
    clients.emplace_back([&, i] {
      auto const value = std::to_string(i) + "@example.com";
      auto const answer = client_.patch(
          path, R"({"op":"add","path":"emails","value":[{"value":")" + value + R"("}]})");
      EXPECT_EQ(answer.status(), 200) << answer.raw.body;
    });
  }
  for (auto& each : clients) {
    each.join();
  }
  auto const after = client_.get(path);
  EXPECT_EQ(after.count("emails"), 64U);
  EXPECT_EQ(after.at("meta.version"), "W/\"65\"");
}

TEST_F(gateway_scim, makes_one_of_many_users_of_the_same_name) {
  std::atomic<int> made = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([&] {
      auto const status = client_.post("/Users", user("same")).status();
      EXPECT_TRUE(status == 201 || status == 409) << status;
      made += status == 201 ? 1 : 0;
    });
  }
  for (auto& each : clients) {
    each.join();
  }
  EXPECT_EQ(made, 1);
}

TEST_F(gateway_scim, serves_on_while_the_configuration_is_read_again) {
  std::atomic<bool> stopping = false;
  std::atomic<int> served = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&, i] {
      for (int n = 0; !stopping; ++n) {
        auto const name = std::to_string(i) + "-" + std::to_string(n);
        EXPECT_EQ(client_.post("/Users", user(name)).status(), 201);
        EXPECT_EQ(client_.get("/Users?count=5").status(), 200);
        ++served;
      }
    });
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(with_.reload(scim_config(
                    data_, "    scim: {max-page-size: " + std::to_string(200 + i) + "}\n")),
                HasSubstr("was applied"));
  }
  expect_eventually([&] { return served > 20; }, "requests are served");
  stopping = true;
  for (auto& each : clients) {
    each.join();
  }
  EXPECT_EQ(client_.get("/ServiceProviderConfig").at("pagination.maxPageSize"), "209");
}

TEST_F(gateway_scim, keeps_the_shape_of_the_directory_until_the_next_start) {
  EXPECT_THAT(with_.reload(scim_config(data_, "    scim: {indexes: title}\n")),
              HasSubstr("needs a restart"));
  EXPECT_EQ(client_.get("/Users").status(), 200);
}

TEST_F(gateway_scim, carries_out_what_a_client_that_leaves_has_asked_for) {
  for (int i = 0; i < 20; ++i) {
    auto to = with_.connect();
    auto const body = user("gone" + std::to_string(i));
    to.send(
        "POST /scim/v2/Users HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "
        "alpha\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body);
    to.abort();
  }
  EXPECT_EQ(client_.post("/Users", user("last")).status(), 201);
  EXPECT_EQ(client_.get("/Users?filter=userName%20eq%20%22last%22").at("totalResults"), "1");
}

// ---- other clients ----

TEST_F(gateway_scim, speaks_http2) {
  auto const ask = [&](std::vector<std::string> const& more) {
    std::vector<std::string> all{"/usr/bin/env", "curl",
                                 "-sSi",         "--max-time",
                                 "20",           "--http2-prior-knowledge",
                                 "-H",           "Authorization: Bearer alpha"};
    all.insert(all.end(), more.begin(), more.end());
    return run(all).out;
  };
  auto const url = "http://" + with_.authority() + "/scim/v2/Users";
  auto const made = ask({url, "-d", user("x"), "-H", "Content-Type: application/scim+json"});
  EXPECT_THAT(made, StartsWith("HTTP/2 201"));
  EXPECT_THAT(made, HasSubstr("etag: W/\"1\""));
  EXPECT_THAT(ask({url}), HasSubstr("\"totalResults\":1"));
  EXPECT_THAT(ask({"-I", url}), StartsWith("HTTP/2 200"));
  EXPECT_THAT(ask({url + "/none", "-X", "DELETE"}), StartsWith("HTTP/2 404"));
  for (int i = 0; i < 400; ++i) {
    ASSERT_EQ(client_
                  .post("/Users", user("u" + std::to_string(i),
                                       R"("title":")" + std::string(2000, 't') + "\""))
                  .status(),
              201);
  }
  auto const large = ask({url + "?count=500"});
  EXPECT_THAT(large, HasSubstr("\"itemsPerPage\":401"));
  EXPECT_THAT(large, EndsWith("]}"));
  EXPECT_GT(large.size(), 800'000U);
}

TEST_F(gateway_scim, sends_100_continue_to_a_client_that_waits_for_it) {
  auto to = with_.connect();
  auto const body = user("x");
  to.send(
      "POST /scim/v2/Users HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer alpha\r\nExpect: "
      "100-continue\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_EQ(to.read_response().status(), 100);
  to.send(body);
  EXPECT_EQ(to.read_response().status(), 201);
  to.send("GET /scim/v2/Users HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer alpha\r\n\r\n");
  EXPECT_EQ(to.read_response().status(), 200);
}

// ---- large answers ----

TEST_F(gateway_scim, sends_a_large_group_as_fast_as_the_client_takes_it) {
  std::vector<std::string> ids;
  constexpr int members = 3000;
  for (int from = 0; from < members; from += 500) {
    std::string operations;
    for (int i = from; i < from + 500; ++i) {
      operations += (i == from ? "" : ",") +
                    std::string(R"({"method":"POST","path":"/Users","bulkId":"b)") +
                    std::to_string(i) + R"(","data":)" + user("u" + std::to_string(i)) + "}";
    }
    auto const made = client_.post(
        "/Bulk",
        R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:BulkRequest"],"Operations":[)" +
            operations + "]}");
    ASSERT_EQ(made.status(), 200) << made.raw.body.substr(0, 500);
    for (auto const& each : *made.body.find("Operations")->if_array()) {
      auto const location = *each.find("location")->if_string();
      ids.push_back(location.substr(location.rfind('/') + 1));
    }
  }
  auto const made = client_.post("/Groups", group("large", ids));
  ASSERT_EQ(made.status(), 201);
  auto const path = "/Groups/" + made.id();
  auto const read = client_.get(path);
  EXPECT_EQ(read.count("members"), ids.size());
  EXPECT_GT(read.raw.body.size(), 400'000U);

  // So large a group is sent back without its members, unless they are asked for.
  EXPECT_EQ(made.raw.body, client_.get(path + "?excludedAttributes=members").raw.body);
  EXPECT_EQ(made.field("ETag"), "W/\"1\"");
  EXPECT_EQ(made.field("Location"), "http://a.example/scim/v2" + path);
  auto const asked = client_.post("/Groups?attributes=members", group("asked", ids));
  EXPECT_EQ(asked.count("members"), ids.size());
  auto const replaced = client_.put("/Groups/" + asked.id(), group("put", ids));
  EXPECT_EQ(replaced.status(), 200);
  EXPECT_EQ(replaced.at("displayName"), "put");
  EXPECT_EQ(replaced.field("ETag"), "W/\"2\"");
  EXPECT_EQ(replaced.at("members"), "(none)");
  EXPECT_EQ(client_.put("/Groups/" + asked.id() + "?attributes=members", group("put", ids))
                .count("members"),
            ids.size());
  EXPECT_EQ(client_.get(path + "?excludedAttributes=meta").count("members"), ids.size());

  // So large a group is not sent back for each change of it, unless that is asked for.
  auto const remove = R"({"op":"remove","path":"members[value eq \")" + ids[7] + R"(\"]"})";
  auto const patched = client_.patch(path, remove);
  EXPECT_EQ(patched.status(), 204);
  EXPECT_EQ(patched.field("ETag"), "W/\"2\"");
  EXPECT_EQ(client_.patch(path + "?excludedAttributes=members", remove).status(), 200);
  EXPECT_EQ(client_.get(path).count("members"), ids.size() - 1);

  // A client that does not read, and then leaves.
  auto slow = with_.connect();
  for (int i = 0; i < 30; ++i) {
    slow.send("GET /scim/v2" + path +
              " HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer alpha\r\n\r\n");
  }
  EXPECT_EQ(slow.read_response().body.size(), client_.get(path).raw.body.size());
  slow.abort();
  EXPECT_EQ(client_.get(path).status(), 200);
}

}  // namespace
}  // namespace tidegate::e2e
