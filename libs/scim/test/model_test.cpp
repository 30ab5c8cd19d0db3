// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/model.hpp>

#include <tidegate/json/parse.hpp>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace {

namespace json = tidegate::json;
using namespace tidegate::scim;

auto schema_of(std::string_view text) -> schema {
  return *read_schema(*json::parse(text));
}
auto type_of(std::string_view text) -> resource_type {
  return *read_resource_type(*json::parse(text));
}

auto device_schema() -> schema {
  return schema_of(R"({"id":"urn:x:Device","name":"Device","attributes":[
      {"name":"serial","uniqueness":"global","caseExact":true},
      {"name":"displayName"},
      {"name":"weight","type":"decimal","returned":"request"},
      {"name":"secret","returned":"never"},
      {"name":"place","type":"complex","subAttributes":[{"name":"room"},{"name":"floor","type":"integer"}]},
      {"name":"owners","type":"complex","multiValued":true,
       "subAttributes":[{"name":"value"},{"name":"pin","uniqueness":"server"}]}]})");
}

auto device_type() -> resource_type {
  return type_of(R"({"name":"Device","endpoint":"/Devices","schema":"urn:x:Device"})");
}

auto make(std::vector<schema> const& schemas, std::vector<resource_type> const& types,
          std::vector<std::string> const& indexes = {}) {
  return model::make(schemas, types, indexes);
}

auto names(model_type const& type) -> std::vector<std::string> {
  std::vector<std::string> out;
  for (auto const& index : type.indexes) {
    out.push_back(index.name + (index.unique ? " unique" : ""));
  }
  return out;
}

using texts = std::vector<std::string>;

TEST(scim_model, has_users_and_groups_with_their_indexes) {
  auto const m = make({}, {});
  ASSERT_TRUE(m);
  ASSERT_EQ(m->types().size(), 2U);
  EXPECT_EQ(m->schemas().size(), 3U);
  auto const& user = *m->find("user");
  EXPECT_EQ(&user, m->at("/Users"));
  EXPECT_EQ(m->at("/users"), nullptr);
  EXPECT_EQ(m->find("Device"), nullptr);
  EXPECT_EQ(names(user), (texts{"id unique", "externalid", "username unique", "displayname",
                                "emails.value", "meta.lastmodified"}));
  EXPECT_TRUE(user.has_groups);
  EXPECT_FALSE(user.has_members);
  EXPECT_FALSE(user.has_request_only);
  auto const& group = *m->at("/Groups");
  EXPECT_EQ(names(group), (texts{"id unique", "externalid", "displayname", "meta.lastmodified"}));
  EXPECT_TRUE(group.has_members);
  EXPECT_FALSE(group.has_groups);
}

TEST(scim_model, takes_custom_types_and_indexes_what_is_unique) {
  auto const m = make({device_schema()}, {device_type()});
  ASSERT_TRUE(m);
  auto const& device = *m->find("Device");
  EXPECT_EQ(names(device), (texts{"id unique", "externalid", "displayname", "meta.lastmodified",
                                  "serial unique", "owners.pin unique"}));
  EXPECT_TRUE(device.has_request_only);
  EXPECT_FALSE(device.has_members);
}

TEST(scim_model, puts_a_schema_or_type_in_the_place_of_the_built_in_one_with_its_id) {
  auto const group = schema_of(
      R"({"id":"URN:ietf:params:scim:schemas:core:2.0:group","attributes":[{"name":"displayName",
          "uniqueness":"server"}]})");
  auto const teams = type_of(
      R"({"id":"Group","name":"Team","endpoint":"/Teams",
          "schema":"urn:ietf:params:scim:schemas:core:2.0:Group"})");
  auto const m = make({group}, {teams});
  ASSERT_TRUE(m);
  EXPECT_EQ(m->schemas().size(), 3U);
  EXPECT_EQ(m->types().size(), 2U);
  EXPECT_EQ(m->find("Group"), nullptr);
  auto const& team = *m->at("/Teams");
  EXPECT_EQ(names(team),
            (texts{"id unique", "externalid", "displayname unique", "meta.lastmodified"}));
  EXPECT_FALSE(team.has_members) << "its schema has no members";
}

TEST(scim_model, adds_indexes_to_every_type_that_has_the_attribute_or_to_the_one_that_is_named) {
  auto const m =
      make({device_schema()}, {device_type()},
           {"title", "device:place.FLOOR", "Device:owners", "User:phoneNumbers", "meta.created",
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department", "userName",
            "User:urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager"});
  ASSERT_TRUE(m) << m.error().subject << ": " << m.error().text;
  EXPECT_EQ(names(*m->find("User")),
            (texts{"id unique", "externalid", "username unique", "displayname", "emails.value",
                   "meta.lastmodified", "title", "phonenumbers.value", "meta.created",
                   "urn:ietf:params:scim:schemas:extension:enterprise:2.0:user:department",
                   "urn:ietf:params:scim:schemas:extension:enterprise:2.0:user:manager.value"}));
  EXPECT_EQ(names(*m->find("Device")),
            (texts{"id unique", "externalid", "displayname", "meta.lastmodified", "serial unique",
                   "owners.pin unique", "place.floor", "owners.value", "meta.created"}));
}

TEST(scim_model, finds_members_without_an_index_of_their_own) {
  auto const m = make({}, {}, {"members", "Group:members.value", "groups", "groups.value"});
  ASSERT_TRUE(m);
  EXPECT_EQ(m->find("User")->indexes.size(), 6U);
  EXPECT_EQ(m->find("Group")->indexes.size(), 4U);
}

TEST(scim_model, refuses_what_is_wrong_and_says_which) {
  struct row {
    char const* name;
    std::vector<schema> schemas;
    std::vector<resource_type> types;
    texts indexes;
    model_error error;
  };
  auto const device_at = [](std::string endpoint) {
    auto t = device_type();
    t.endpoint = std::move(endpoint);
    return t;
  };
  auto second = device_type();
  second.id = "Other";
  auto named_user = second;
  named_user.name = "USER";
  named_user.endpoint = "/Others";
  auto other = second;
  other.name = "Other";
  auto unknown_extension = device_type();
  unknown_extension.schema_extensions.push_back({"urn:x:none", false});
  auto crowded = device_schema();
  for (int i = 0; i < 64; ++i) {
    attribute a;
    a.name = "u" + std::to_string(i);
    a.uniqueness = attribute_uniqueness::server;
    crowded.attributes.push_back(a);
  }
  auto vague = device_schema();
  vague.attributes[4].uniqueness = attribute_uniqueness::server;
  auto const d = device_schema();
  auto const t = device_type();
  std::vector<row> const rows = {
      {"schema twice", {d, d}, {}, {}, {"urn:x:Device", "comes twice"}},
      {"type twice", {d}, {t, t}, {}, {"Device", "comes twice"}},
      {"unknown schema", {}, {t}, {}, {"Device", "schema: no schema has this URN"}},
      {"unknown extension",
       {d},
       {unknown_extension},
       {},
       {"Device", "schemaExtensions[0].schema: no schema has this URN"}},
      {"name of another", {d}, {named_user}, {}, {"User", "two resource types have this name"}},
      {"endpoint of another",
       {d},
       {t, other},
       {},
       {"Device", "another resource type is at /Devices"}},
      {"endpoint of Users",
       {d},
       {device_at("/users")},
       {},
       {"User", "another resource type is at /Users"}},
      {"no slash", {d}, {device_at("Devices")}, {}, {"Device", "\"Devices\" is not an endpoint"}},
      {"search", {d}, {device_at("/.search")}, {}, {"Device", "\"/.search\" is not an endpoint"}},
      {"bulk",
       {d},
       {device_at("/bulk")},
       {},
       {"Device", "the service itself needs the endpoint /bulk"}},
      {"schemas",
       {d},
       {device_at("/Schemas")},
       {},
       {"Device", "the service itself needs the endpoint /Schemas"}},
      {"me", {d}, {device_at("/Me")}, {}, {"Device", "the service itself needs the endpoint /Me"}},
      {"unknown attribute",
       {},
       {},
       {"serial"},
       {"serial", "no resource type has such an attribute"}},
      {"unknown attribute of a type",
       {d},
       {t},
       {"User:serial"},
       {"User:serial", "the resource type has no such attribute"}},
      {"unknown type",
       {},
       {},
       {"Thing:userName"},
       {"Thing:userName", "no resource type has such an attribute"}},
      {"not a path", {}, {}, {"a b"}, {"a b", "no resource type has such an attribute"}},
      {"empty", {}, {}, {""}, {"", "no resource type has such an attribute"}},
      {"complex without value",
       {d},
       {t},
       {"place"},
       {"place", "the attribute is complex and has no \"value\""}},
      {"extension",
       {},
       {},
       {std::string(enterprise_user_schema)},
       {std::string(enterprise_user_schema), "an extension as a whole cannot be indexed"}},
      {"never returned",
       {},
       {},
       {"password"},
       {"password", "the attribute is never returned, so it can be neither asked nor sorted"}},
      {"display of members",
       {},
       {},
       {"members.display"},
       {"members.display", "of members, only \"value\" is indexed"}},
      {"location",
       {},
       {},
       {"meta.location"},
       {"meta.location", "the location depends on the request"}},
      {"too many",
       {crowded},
       {t},
       {},
       {"u58", "the resource type Device has more than 64 indexes"}},
      {"unique and complex",
       {vague},
       {t},
       {},
       {"place", "the attribute is complex and has no \"value\""}},
  };
  for (auto const& r : rows) {
    auto const m = make(r.schemas, r.types, r.indexes);
    ASSERT_FALSE(m) << r.name;
    EXPECT_EQ(m.error().subject, r.error.subject) << r.name;
    EXPECT_EQ(m.error().text, r.error.text) << r.name;
  }
}

TEST(scim_model, finds_the_index_of_what_a_path_means) {
  auto const m = *make({}, {});
  auto const& user = *m.find("User");
  auto const find = [&](std::string_view path) {
    return user.find_index(*user.definition.resolve(path));
  };
  EXPECT_EQ(find("ID"), 0U);
  EXPECT_EQ(find("emails"), 4U);
  EXPECT_EQ(find("emails.value"), 4U);
  EXPECT_EQ(find("emails.type"), std::nullopt);
  EXPECT_EQ(find("name"), std::nullopt);
  EXPECT_EQ(find("groups"), std::nullopt);
  EXPECT_EQ(find(enterprise_user_schema), std::nullopt);
}

TEST(scim_model, does_not_find_the_index_of_what_is_never_returned) {
  auto s = device_schema();
  s.attributes[3].uniqueness = attribute_uniqueness::server;
  auto const m = make({s}, {device_type()});
  ASSERT_TRUE(m);
  auto const& device = *m->find("Device");
  EXPECT_EQ(device.indexes[5].name, "secret");
  EXPECT_EQ(device.find_index(device.indexes[5].path), std::nullopt);
}

TEST(scim_model, keeps_its_paths_when_it_is_moved) {
  auto made = *make({device_schema()}, {device_type()},
                    {"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department"});
  auto const before = made.find("User");
  auto const f = *parse_filter(R"(userName eq "a")", before->definition);
  auto const m = std::move(made);
  auto const& user = *m.find("User");
  EXPECT_EQ(&user, before);
  EXPECT_EQ(user.find_index(f.path), 2U);
  for (std::size_t i = 0; i < user.indexes.size(); ++i) {
    EXPECT_EQ(user.find_index(*user.definition.resolve(user.indexes[i].name)), i);
  }
}

}  // namespace
