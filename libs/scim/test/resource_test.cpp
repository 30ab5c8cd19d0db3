// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/resource.hpp>

#include <tidegate/json/parse.hpp>
#include <tidegate/scim/date_time.hpp>

#include <gtest/gtest.h>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

using enum resource_fault;

auto users() -> resource_definition const& {
  return user_definition();
}

/// A resource type with an attribute of every kind, and a required extension.
auto things() -> resource_definition const& {
  static auto const d = [] {
    std::vector<schema> const schemas{
        *read_schema(*json::parse(R"({"id":"urn:x:Thing","attributes":[
          {"name":"serial","mutability":"immutable"},
          {"name":"count","type":"integer"},
          {"name":"size","type":"decimal"},
          {"name":"bought","type":"dateTime"},
          {"name":"key","type":"binary"},
          {"name":"page","type":"reference"},
          {"name":"tags","multiValued":true},
          {"name":"place","type":"complex","subAttributes":[
            {"name":"room","required":true},{"name":"floor","mutability":"immutable"}]}]})")),
        *read_schema(*json::parse(
            R"({"id":"urn:x:Extra","attributes":[{"name":"note","mutability":"immutable"}]})")),
    };
    return *resource_definition::make(
        {"Thing", "Thing", "", "/Things", "urn:x:Thing", {{"urn:x:Extra", true}}}, schemas);
  }();
  return d;
}

auto read(std::string const& text, resource_definition const& d,
          unknown_attributes unknown = unknown_attributes::refuse) -> std::string {
  auto const resource = read_resource(*json::parse(text), d, unknown);
  return resource ? to_string(*resource) : to_string(resource.error());
}

auto user(std::string const& members) -> std::string {
  return R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],)" + members + "}";
}

auto thing(std::string const& members) -> std::string {
  return R"({"schemas":["urn:x:Thing"],"urn:x:Extra":{"note":"n"},)" + members + "}";
}

TEST(scim_resource, is_kept_as_the_schema_spells_it_and_without_what_has_no_value) {
  EXPECT_EQ(read(R"({"SCHEMAS":["URN:ietf:params:scim:schemas:core:2.0:User"],"USERNAME":"bjensen",
               "Name":{"GIVENNAME":"Barbara","familyName":null},"title":null,"emails":[],
               "phoneNumbers":[null,{}],"active":"True","id":"mine","meta":{"created":5},
               "groups":[{"value":"g"}],
               "urn:ietf:params:scim:schemas:extension:enterprise:2.0:user":{"Department":"D",
                 "manager":{"value":"m","displayName":"ignored"}}})",
                 users()),
            R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User",)"
            R"("urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],"userName":"bjensen",)"
            R"("name":{"givenName":"Barbara"},"active":true,)"
            R"("urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"department":"D",)"
            R"("manager":{"value":"m"}}})");
}

TEST(scim_resource, has_no_type_and_value_twice) {
  EXPECT_EQ(
      read(
          user(
              R"("userName":"b","emails":[{"value":"a","type":"work"},{"value":"a","type":"home"},)"
              R"({"value":"a"},{"value":"a","type":"work","primary":true},{"display":"d"},)"
              R"({"display":"d"},{"value":"a","type":null}])"),
          users()),
      user(R"("userName":"b","emails":[{"value":"a","type":"work","primary":true},)"
           R"({"value":"a","type":"home"},{"value":"a"},{"display":"d"},{"display":"d"}])"));
}

TEST(scim_resource, takes_values_of_every_type) {
  auto const text = thing(
      R"("serial":"s","count":-3,"size":2,"bought":"2011-05-13T04:42:34.5+02:00","key":"AQI=",)"
      R"("page":"https://example.com/","tags":["a","b"],"place":{"room":"1"})");
  EXPECT_EQ(read(text, things()),
            R"({"schemas":["urn:x:Thing","urn:x:Extra"],"serial":"s","count":-3,"size":2,)"
            R"("bought":"2011-05-13T04:42:34.5+02:00","key":"AQI=","page":"https://example.com/",)"
            R"("tags":["a","b"],"place":{"room":"1"},"urn:x:Extra":{"note":"n"}})");
}

TEST(scim_resource, is_refused_with_the_attribute_and_the_scim_type) {
  struct row {
    std::string text;
    resource_definition const& definition;
    resource_error error;
    std::string_view scim_type;
  };
  for (auto const& [text, definition, error, scim_type] : std::vector<row>{
           {"[]", users(), {object_expected, ""}, "invalidSyntax"},
           {R"({"userName":"a"})", users(), {schemas_missing, "schemas"}, "invalidSyntax"},
           {R"({"schemas":[]})", users(), {schemas_missing, "schemas"}, "invalidSyntax"},
           {R"({"schemas":"urn:x:Thing"})",
            things(),
            {schemas_missing, "schemas"},
            "invalidSyntax"},
           {R"({"schemas":[1]})", users(), {wrong_type, "schemas[0]"}, "invalidValue"},
           {R"({"schemas":["urn:x:Thing"]})",
            users(),
            {unknown_schema, "schemas[0]"},
            "invalidValue"},
           {R"({"schemas":["urn:x:Extra"]})",
            things(),
            {base_schema_missing, "schemas"},
            "invalidValue"},
           {R"({"schemas":["urn:x:Thing"]})",
            things(),
            {extension_missing, "urn:x:Extra"},
            "invalidValue"},
           {R"({"schemas":["urn:x:Thing"],"urn:x:Extra":"n"})",
            things(),
            {object_expected, "urn:x:Extra"},
            "invalidSyntax"},
           {R"({"schemas":["urn:x:Thing"],"urn:x:Extra":{"none":1}})",
            things(),
            {unknown_attribute, "urn:x:Extra:none"},
            "invalidSyntax"},
           {user(R"("title":"t")"), users(), {required_missing, "userName"}, "invalidValue"},
           {user(R"("userName":"")"), users(), {required_missing, "userName"}, "invalidValue"},
           {user(R"("userName":null)"), users(), {required_missing, "userName"}, "invalidValue"},
           {user(R"("userName":"a","shoeSize":4)"),
            users(),
            {unknown_attribute, "shoeSize"},
            "invalidSyntax"},
           {user(R"("userName":"a","name":{"nick":"x"})"),
            users(),
            {unknown_attribute, "name.nick"},
            "invalidSyntax"},
           {user(R"("userName":1)"), users(), {wrong_type, "userName"}, "invalidValue"},
           {user(R"("userName":["a","b"])"),
            users(),
            {single_value_expected, "userName"},
            "invalidValue"},
           {user(R"("userName":[["a"]])"), users(), {wrong_type, "userName"}, "invalidValue"},
           {user(R"("userName":[])"), users(), {required_missing, "userName"}, "invalidValue"},
           {user(R"("userName":"a","active":"yes")"),
            users(),
            {wrong_type, "active"},
            "invalidValue"},
           {user(R"("userName":"a","name":"x")"), users(), {wrong_type, "name"}, "invalidValue"},
           {user(R"("userName":"a","emails":{"value":"x"})"),
            users(),
            {array_expected, "emails"},
            "invalidValue"},
           {user(R"("userName":"a","emails":["x"])"),
            users(),
            {wrong_type, "emails[0]"},
            "invalidValue"},
           {user(R"("userName":"a","emails":[{"value":"x"},{"value":2}])"),
            users(),
            {wrong_type, "emails[1].value"},
            "invalidValue"},
           {user(R"("userName":"a","emails":[{"primary":true},{"primary":"TRUE"}])"),
            users(),
            {primary_twice, "emails[1]"},
            "invalidValue"},
           {thing(R"("count":1.0)"), things(), {wrong_type, "count"}, "invalidValue"},
           {thing(R"("count":"1")"), things(), {wrong_type, "count"}, "invalidValue"},
           {thing(R"("size":"1.5")"), things(), {wrong_type, "size"}, "invalidValue"},
           {thing(R"("bought":"yesterday")"), things(), {wrong_type, "bought"}, "invalidValue"},
           {thing(R"("key":"A")"), things(), {wrong_type, "key"}, "invalidValue"},
           {thing(R"("key":"AQI*")"), things(), {wrong_type, "key"}, "invalidValue"},
           {thing(R"("tags":["a",1])"), things(), {wrong_type, "tags[1]"}, "invalidValue"},
           {thing(R"("place":{"floor":"2"})"),
            things(),
            {required_missing, "place.room"},
            "invalidValue"},
       }) {
    auto const resource = read_resource(*json::parse(text), definition);
    ASSERT_FALSE(resource) << text;
    EXPECT_EQ(resource.error(), error) << text << ": " << to_string(resource.error());
    EXPECT_EQ(to_string(scim_type_of(resource.error().fault)), scim_type) << text;
  }
}

TEST(scim_resource, may_have_unknown_attributes_where_they_are_ignored) {
  EXPECT_EQ(read(user(R"("userName":"a","shoeSize":4,"name":{"nick":"x"})"), users(),
                 unknown_attributes::ignore),
            user(R"("userName":"a")"));
}

TEST(scim_resource, tells_what_was_ignored) {
  auto const ignored = [](std::string const& text) {
    ignored_names out;
    EXPECT_TRUE(read_resource(*json::parse(text), users(), unknown_attributes::ignore, &out))
        << text;
    return out;
  };
  std::string const enterprise = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
  auto const made = ignored(
      R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User","urn:x:Other"],"userName":"a",)"
      R"("roles":[{"value":"r","displayName":"R"},{"value":"s","displayName":"S"}],"urn:x:O":{"a":1},)"
      R"("manager":"m","mangler":"n",")" +
      enterprise + R"(":{"team":"t"}})");
  EXPECT_EQ(made.schemas, 1U);
  EXPECT_EQ(made.attributes, 5U);
  EXPECT_EQ(made.names, (std::vector<std::string>{"urn:x:Other", enterprise + ".team",
                                                  "roles.displayName", "urn:x:O", "mangler"}));
  EXPECT_EQ(ignored(user(R"("userName":"a","department":null)")), ignored_names());

  // Names of clients are cut off, printable, and not many.
  std::string many = R"("userName":"a",")" + std::string(1000, 'x') + R"(":1,"a\nb\"\u00e9":1)";
  for (int i = 0; i < 100; ++i) {
    many += R"(,"z)" + std::to_string(i) + R"(":1)";
  }
  auto const bounded = ignored(user(many));
  EXPECT_EQ(bounded.attributes, 102U);
  ASSERT_EQ(bounded.names.size(), ignored_names::names_max);
  EXPECT_EQ(bounded.names[0], std::string(ignored_names::name_octets_max, 'x'));
  EXPECT_EQ(bounded.names[1], "a?b???");
}

TEST(scim_resource, may_have_schemas_that_its_type_lacks_where_they_are_ignored) {
  constexpr std::string_view adscim =
      "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group";
  auto const& groups = group_definition();
  auto const text = R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group",")" +
                    std::string(adscim) + R"("],"displayName":"G"})";
  EXPECT_EQ(read(text, groups, unknown_attributes::ignore),
            R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"displayName":"G"})");
  EXPECT_EQ(read(text, groups), "schemas[1]: not a schema of this resource type");
  EXPECT_EQ(read(R"({"schemas":["urn:x"],"displayName":"G"})", groups, unknown_attributes::ignore),
            "schemas: lacks the schema of this resource type");
}

TEST(scim_resource, takes_an_attribute_of_the_one_extension_that_has_it_by_its_name_alone) {
  std::string const urn = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
  auto const extended = [&](std::string const& top, std::string const& members) {
    return R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User",")" + urn +
           R"("],"userName":"a",)" + top + "\"" + urn + R"(":{)" + members + "}}";
  };
  auto const both = R"("department":"D","manager":{"value":"m"})";
  for (auto const unknown : {unknown_attributes::ignore, unknown_attributes::refuse}) {
    EXPECT_EQ(read(user(R"("userName":"a","Department":"D","manager":"m")"), users(), unknown),
              extended("", both));
    EXPECT_EQ(read(extended(R"("manager":"m",)", R"("department":"D")"), users(), unknown),
              extended("", both));
    // What the extension itself has wins, and null says nothing, here and there.
    EXPECT_EQ(read(extended(R"("department":"E",)", both), users(), unknown), extended("", both));
    EXPECT_EQ(read(extended(R"("department":null,)", both), users(), unknown), extended("", both));
    EXPECT_EQ(read(extended(R"("department":"D",)", R"("Department":null,"manager":"m")"), users(),
                   unknown),
              extended("", both));
    EXPECT_EQ(read(user(R"("userName":"a","department":null)"), users(), unknown),
              user(R"("userName":"a")"));
    EXPECT_EQ(read(user(R"("userName":"a","department":7)"), users(), unknown),
              urn + ":department: not a value of the type of the attribute");
  }

  // A name of the base schema is that of the base schema, and one of two extensions is that of
  // none.
  std::vector<schema> const schemas{
      *read_schema(*json::parse(R"({"id":"urn:b","attributes":[{"name":"name"}]})")),
      *read_schema(*json::parse(
          R"({"id":"urn:x","attributes":[{"name":"name"},{"name":"one"},{"name":"twice"}]})")),
      *read_schema(*json::parse(R"({"id":"urn:y","attributes":[{"name":"twice"}]})")),
  };
  auto const definition = *resource_definition::make(
      {"T", "T", "", "/T", "urn:b", {{"urn:x", false}, {"urn:y", false}}}, schemas);
  ignored_names ignored;
  auto const made =
      read_resource(*json::parse(R"({"schemas":["urn:b"],"name":"a","one":"b","twice":"c"})"),
                    definition, unknown_attributes::ignore, &ignored);
  ASSERT_TRUE(made);
  EXPECT_EQ(to_string(*made), R"({"schemas":["urn:b","urn:x"],"name":"a","urn:x":{"one":"b"}})");
  EXPECT_EQ(ignored.names, std::vector<std::string>{"twice"});
}

TEST(scim_resource, takes_what_clients_write_in_place_of_a_value) {
  std::string const urn = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
  auto const extended = [&](std::string const& members) {
    return R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User",")" + urn +
           R"("],"userName":"a",")" + urn + R"(":{)" + members + "}}";
  };
  auto const manager = extended(R"("manager":{"value":"m"})");
  auto const plain = user(R"("userName":"a")");
  EXPECT_EQ(read(extended(R"("manager":"m")"), users()), manager);
  EXPECT_EQ(read(extended(R"("manager":["m"])"), users()), manager);
  EXPECT_EQ(read(extended(R"("manager":[{"value":"m"}])"), users()), manager);
  EXPECT_EQ(read(extended(R"("manager":{"value":["m"]})"), users()), manager);
  EXPECT_EQ(read(extended(R"("manager":"")"), users()), plain);
  EXPECT_EQ(read(extended(R"("manager":[""])"), users()), plain);
  EXPECT_EQ(read(extended(R"("manager":[])"), users()), plain);
  EXPECT_EQ(read(extended(R"("manager":{"value":""})"), users()), plain);
  EXPECT_EQ(read(extended(R"("manager":[{"value":"","$ref":""}])"), users()), plain);
  EXPECT_EQ(read(extended(R"("manager":{"value":"","displayName":"M"})"), users()), plain);
  EXPECT_EQ(read(extended(R"("schemas":[")" + urn + R"("],"manager":"m")"), users()), manager);
  EXPECT_EQ(read(user(R"("userName":["a"],"department":null)"), users()), plain);
  EXPECT_EQ(read(extended(R"("manager":["m","n"])"), users()),
            urn + ":manager: a single value is expected");
}

TEST(scim_resource, keeps_the_immutable_values_that_it_has) {
  struct row {
    std::string_view before;
    std::string_view after;
    std::string_view path;  // of the fault
  };
  for (auto const& [before, after, path] : {
           row{R"({"serial":"a"})", R"({"serial":"a"})", ""},
           row{R"({})", R"({"serial":"a"})", ""},
           row{R"({"serial":"a"})", R"({"serial":"b"})", "serial"},
           row{R"({"serial":"a"})", R"({})", "serial"},
           row{R"({"place":{"floor":"1"}})", R"({"place":{"floor":"2"}})", "place.floor"},
           row{R"({"place":{"room":"1"}})", R"({"place":{"room":"2","floor":"2"}})", ""},
           row{R"({"urn:x:Extra":{"note":"n"}})", R"({"urn:x:Extra":{"note":"m"}})",
               "urn:x:Extra:note"},
           row{R"({"urn:x:Extra":{"note":"n"}})", R"({})", "urn:x:Extra:note"},
       }) {
    auto const checked = check_immutable(*json::parse(before), *json::parse(after), things());
    EXPECT_EQ(checked ? "" : checked.error().path, path) << before << after;
    if (!checked) {
      EXPECT_EQ(scim_type_of(checked.error().fault), scim_type::mutability);
    }
  }
}

TEST(scim_date_time, is_a_moment) {
  auto const at = [](std::string_view text) { return parse_date_time(text); };
  EXPECT_EQ(at("2008-01-23T04:56:22Z"), at("2008-01-23T05:56:22.000+01:00"));
  EXPECT_EQ(at("2008-01-23T04:56:22"), at("2008-01-23T04:56:22Z"));
  EXPECT_EQ(at("2008-01-23T04:56:22.5"), at("2008-01-23T04:56:22.500000000Z"));
  EXPECT_LT(at("2008-01-23T04:56:22.499999999Z"), at("2008-01-23T04:56:22.5Z"));
  EXPECT_LT(at("0001-01-01T00:00:00Z"), at("9999-12-31T23:59:59Z"));
  for (auto const* const text :
       {"", "2008-01-23", "2008-01-23 04:56:22Z", "2008-02-30T04:56:22Z", "2008-01-23T04:56:22.Z",
        "2008-01-23T04:56:22.1234567890Z", "2008-01-23T04:56:22+1", "2008-01-23T24:56:22Z",
        "2008-01-23T04:56:22ZZ"}) {
    EXPECT_EQ(at(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
