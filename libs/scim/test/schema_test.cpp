// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/schema.hpp>

#include <tidegate/json/parse.hpp>

#include <gtest/gtest.h>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

auto users() -> resource_definition {
  return *resource_definition::make(builtin_resource_types()[0], builtin_schemas());
}

TEST(scim_schema, has_the_attributes_of_rfc7643) {
  auto const d = users();
  auto const name = d.resolve("userName")->leaf();
  EXPECT_TRUE(name->required);
  EXPECT_FALSE(name->case_exact);
  EXPECT_EQ(name->uniqueness, attribute_uniqueness::server);
  EXPECT_EQ(d.resolve("password")->leaf()->returned, attribute_returned::never);
  EXPECT_EQ(d.resolve("password")->leaf()->mutability, attribute_mutability::write_only);
  EXPECT_EQ(d.resolve("groups.value")->leaf()->mutability, attribute_mutability::read_only);
  EXPECT_EQ(d.resolve("x509Certificates.value")->leaf()->type, attribute_type::binary);
  EXPECT_EQ(d.resolve("emails.type")->leaf()->canonical_values.size(), 3U);
  EXPECT_TRUE(d.resolve("id")->leaf()->case_exact);
  EXPECT_EQ(d.resolve("id")->leaf()->returned, attribute_returned::always);
  EXPECT_TRUE(d.resolve("externalId")->leaf()->case_exact);
  EXPECT_EQ(d.resolve("meta.created")->leaf()->type, attribute_type::date_time);
  EXPECT_EQ(d.base().attributes.size(), 4U + 21U);
  EXPECT_EQ(builtin_schemas()[1].find("members")->find("VALUE")->mutability,
            attribute_mutability::immutable);
}

TEST(scim_schema, has_users_and_groups_ready_for_use) {
  EXPECT_EQ(user_definition().type(), builtin_resource_types()[0]);
  EXPECT_EQ(user_definition().extensions().size(), 1U);
  EXPECT_EQ(user_definition().resolve("manager.displayName")->leaf()->name, "displayName");
  EXPECT_EQ(group_definition().type().endpoint, "/Groups");
  EXPECT_EQ(&group_definition(), &group_definition());
}

TEST(scim_schema, writes_what_it_reads) {
  for (auto const& s : builtin_schemas()) {
    EXPECT_EQ(*read_schema(*json::parse(to_string(to_json(s)))), s);
  }
  for (auto const& t : builtin_resource_types()) {
    EXPECT_EQ(*read_resource_type(*json::parse(to_string(to_json(t)))), t);
  }
}

TEST(scim_schema, gives_a_custom_attribute_the_defaults_of_section_2_2) {
  auto const s = read_schema(*json::parse(
      R"({"id":"urn:example:Room","attributes":[{"name":"number"},{"name":"key","type":"binary"}]})"));
  ASSERT_TRUE(s);
  attribute expected;
  expected.name = "number";
  EXPECT_EQ(s->attributes[0], expected);
  EXPECT_TRUE(s->attributes[1].case_exact);
}

TEST(scim_schema, refuses_a_wrong_schema_with_the_member) {
  using enum schema_fault;
  struct row {
    std::string text;
    schema_error error;
  };
  auto const with_attribute = [](std::string const& a) {
    return R"({"id":"urn:a:B","attributes":[{"name":"x"},)" + a + "]}";
  };
  for (auto const& [text, error] : std::vector<row>{
           {"[]", {object_expected, ""}},
           {"{}", {missing, "id"}},
           {R"({"id":""})", {missing, "id"}},
           {R"({"id":1})", {string_expected, "id"}},
           {R"({"id":"User"})", {invalid_uri, "id"}},
           {R"({"id":"urn:a b"})", {invalid_uri, "id"}},
           {R"({"id":"urn:a"})", {missing, "attributes"}},
           {R"({"id":"urn:a","attributes":{}})", {array_expected, "attributes"}},
           {R"({"id":"urn:a","attributes":[1]})", {object_expected, "attributes[0]"}},
           {with_attribute("{}"), {missing, "attributes[1].name"}},
           {with_attribute(R"({"name":"X"})"), {name_twice, "attributes[1].name"}},
           {with_attribute(R"({"name":"a b"})"), {invalid_name, "attributes[1].name"}},
           {with_attribute(R"({"name":"1a"})"), {invalid_name, "attributes[1].name"}},
           {with_attribute(R"({"name":"y","type":"text"})"), {unknown_value, "attributes[1].type"}},
           {with_attribute(R"({"name":"y","required":"true"})"),
            {boolean_expected, "attributes[1].required"}},
           {with_attribute(R"({"name":"y","mutability":"write"})"),
            {unknown_value, "attributes[1].mutability"}},
           {with_attribute(R"({"name":"y","returned":"yes"})"),
            {unknown_value, "attributes[1].returned"}},
           {with_attribute(R"({"name":"y","uniqueness":"some"})"),
            {unknown_value, "attributes[1].uniqueness"}},
           {with_attribute(R"({"name":"y","canonicalValues":["a",1]})"),
            {string_expected, "attributes[1].canonicalValues[1]"}},
           {with_attribute(R"({"name":"y","type":"complex"})"),
            {missing, "attributes[1].subAttributes"}},
           {with_attribute(R"({"name":"y","subAttributes":[{"name":"z"}]})"),
            {not_complex, "attributes[1].subAttributes"}},
           {with_attribute(
                R"({"name":"y","type":"complex","subAttributes":[{"name":"z","type":"complex"}]})"),
            {nested_complex, "attributes[1].subAttributes[0].type"}},
           {with_attribute(
                R"({"name":"y","type":"complex","subAttributes":[{"name":"z"},{"name":"Z"}]})"),
            {name_twice, "attributes[1].subAttributes[1].name"}},
       }) {
    auto const read = read_schema(*json::parse(text));
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error(), error) << text << " " << to_string(read.error());
  }
  json::array many;
  for (std::size_t i = 0; i <= schema_attributes_max; ++i) {
    many.emplace_back(json::object{{"name", "a" + std::to_string(i)}});
  }
  auto const read = read_schema(json::object{{"id", "urn:a"}, {"attributes", std::move(many)}});
  EXPECT_EQ(read.error(), (schema_error{too_many, "attributes"}));
}

TEST(scim_schema, refuses_a_wrong_resource_type_with_the_member) {
  using enum schema_fault;
  struct row {
    std::string_view text;
    schema_error error;
  };
  for (
      auto const& [text, error] : std::vector<row>{
          {"1", {object_expected, ""}},
          {"{}", {missing, "name"}},
          {R"({"name":"Room"})", {missing, "endpoint"}},
          {R"({"name":"Room","endpoint":"Rooms"})", {invalid_uri, "endpoint"}},
          {R"({"name":"Room","endpoint":"/a/b"})", {invalid_uri, "endpoint"}},
          {R"({"name":"Room","endpoint":"/Rooms"})", {missing, "schema"}},
          {R"({"name":"Room","endpoint":"/Rooms","schema":"urn:a","schemaExtensions":[1]})",
           {object_expected, "schemaExtensions[0]"}},
          {R"({"name":"R","endpoint":"/R","schema":"urn:a","schemaExtensions":[{"schema":"URN:A"}]})",
           {name_twice, "schemaExtensions[0].schema"}},
      }) {
    auto const read = read_resource_type(*json::parse(text));
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error(), error) << text << " " << to_string(read.error());
  }
  resource_type type{"R", "R", "", "/R", "urn:none", {}};
  EXPECT_EQ(resource_definition::make(type, builtin_schemas()).error(),
            (schema_error{unknown_schema, "schema"}));
  type.schema = user_schema;
  type.schema_extensions = {{"urn:none", false}};
  EXPECT_EQ(resource_definition::make(type, builtin_schemas()).error(),
            (schema_error{unknown_schema, "schemaExtensions[0].schema"}));
}

TEST(scim_schema, resolves_names_without_regard_to_case_and_with_urns) {
  auto const d = users();
  struct row {
    std::string_view path;
    std::string_view canonical;
  };
  for (auto const& [path, canonical] : {
           row{"USERNAME", "username"},
           row{"urn:ietf:params:scim:schemas:core:2.0:User:userName", "username"},
           row{"URN:ietf:params:scim:schemas:core:2.0:user:NAME.familyname", "name.familyname"},
           row{"emails.$ref", ""},
           row{"groups.$REF", "groups.$ref"},
           row{"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager.value",
               "urn:ietf:params:scim:schemas:extension:enterprise:2.0:user:manager.value"},
           row{"urn:ietf:params:scim:schemas:extension:enterprise:2.0:USER",
               "urn:ietf:params:scim:schemas:extension:enterprise:2.0:user"},
           row{"urn:ietf:params:scim:schemas:core:2.0:User:id", "id"},
           row{"manager", "urn:ietf:params:scim:schemas:extension:enterprise:2.0:user:manager"},
           row{"Manager.Value",
               "urn:ietf:params:scim:schemas:extension:enterprise:2.0:user:manager.value"},
       }) {
    auto const found = d.resolve(path);
    EXPECT_EQ(found ? canonical_name(*found) : "", canonical) << path;
  }
}

TEST(scim_schema, says_where_a_name_cannot_be_resolved) {
  using enum path_fault;
  auto const d = users();
  struct row {
    std::string_view path;
    path_error error;
  };
  for (auto const& [path, error] : {
           row{"", {malformed, 0}},
           row{"user name", {malformed, 0}},
           row{"name.", {malformed, 5}},
           row{"name.familyName.x", {malformed, 5}},
           row{".name", {malformed, 0}},
           row{"shoeSize", {unknown_attribute, 0}},
           row{"name.shoeSize", {unknown_sub_attribute, 5}},
           row{"userName.x", {unknown_sub_attribute, 9}},
           row{"urn:example:User:userName", {unknown_schema, 0}},
           row{"urn:ietf:params:scim:schemas:core:2.0:User:manager", {unknown_attribute, 43}},
           row{"urn:ietf:params:scim:schemas:core:2.0:User:", {malformed, 43}},
       }) {
    auto const found = d.resolve(path);
    ASSERT_FALSE(found) << path;
    EXPECT_EQ(found.error(), error) << path;
  }
}

TEST(scim_schema, takes_a_name_for_that_of_an_extension_when_only_one_has_it) {
  auto const schema_of = [](std::string const& urn, std::string const& names) {
    std::string attributes;
    for (auto const name : names) {
      attributes +=
          (attributes.empty() ? "" : ",") + (R"({"name":")" + std::string(1, name)) + "\"}";
    }
    return *read_schema(
        *json::parse(R"({"id":")" + urn + R"(","attributes":[)" + attributes + "]}"));
  };
  std::vector<schema> const schemas{schema_of("urn:x:Base", "ab"), schema_of("urn:x:One", "bcd"),
                                    schema_of("urn:x:Two", "ade")};
  auto const d = *resource_definition::make(
      {"Thing", "Thing", "", "/Things", "urn:x:Base", {{"urn:x:One", false}, {"urn:x:Two", false}}},
      schemas);
  auto const meant = [&](std::string_view name) {
    auto const path = d.resolve(name);
    return path ? spelled_name(*path) : "";
  };
  EXPECT_EQ(meant("a"), "a");
  EXPECT_EQ(meant("b"), "b");
  EXPECT_EQ(meant("c"), "urn:x:One:c");
  EXPECT_EQ(meant("e"), "urn:x:Two:e");
  EXPECT_EQ(d.resolve("d").error(), (path_error{path_fault::unknown_attribute, 0}));  // of two
  EXPECT_EQ(meant("urn:x:Two:d"), "urn:x:Two:d");
  EXPECT_EQ(d.resolve("urn:x:Base:c").error(), (path_error{path_fault::unknown_attribute, 11}));
}

TEST(scim_schema, keeps_the_common_attributes_whatever_a_schema_lists) {
  auto const s = read_schema(*json::parse(
      R"({"id":"urn:a:Room","attributes":[{"name":"id","caseExact":false},{"name":"number"}]})"));
  auto const d = resource_definition::make({"Room", "Room", "", "/Rooms", "urn:a:Room", {}},
                                           std::span(&*s, 1));
  ASSERT_TRUE(d);
  EXPECT_TRUE(d->resolve("id")->leaf()->case_exact);
  EXPECT_TRUE(d->resolve("urn:a:Room:number"));
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
