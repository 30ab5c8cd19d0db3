// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/patch.hpp>

#include <tidegate/json/parse.hpp>
#include <tidegate/scim/resource.hpp>

#include <gtest/gtest.h>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

constexpr std::string_view enterprise =
    "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

auto users() -> resource_definition const& {
  return user_definition();
}

auto groups() -> resource_definition const& {
  return group_definition();
}

/// What the built-in schemas lack: immutable and required things, several plain values, a required
/// extension.
auto things() -> resource_definition const& {
  static auto const d = [] {
    std::vector<schema> const schemas{
        *read_schema(*json::parse(R"({"id":"urn:x:Thing","attributes":[
          {"name":"serial","mutability":"immutable"},
          {"name":"stamps","multiValued":true,"mutability":"immutable"},
          {"name":"count","type":"integer"},
          {"name":"tags","multiValued":true},
          {"name":"codes","multiValued":true,"caseExact":true},
          {"name":"keys","multiValued":true,"required":true},
          {"name":"place","type":"complex","subAttributes":[
            {"name":"room","required":true},{"name":"floor","mutability":"immutable"},
            {"name":"doors","multiValued":true},{"name":"area","mutability":"readOnly"}]},
          {"name":"badge","type":"complex","subAttributes":[{"name":"value"},{"name":"color"}]},
          {"name":"parts","type":"complex","multiValued":true,"subAttributes":[
            {"name":"value","mutability":"immutable"},{"name":"label","required":true},
            {"name":"size","type":"integer"},{"name":"made","mutability":"readOnly"}]}]})")),
        *read_schema(*json::parse(
            R"({"id":"urn:x:Extra","attributes":[{"name":"note"},{"name":"by","mutability":"readOnly"}]})")),
    };
    return *resource_definition::make(
        {"Thing", "Thing", "", "/Things", "urn:x:Thing", {{"urn:x:Extra", true}}}, schemas);
  }();
  return d;
}

/// A string in JSON may hold quotes in ' here, so that paths can be read.
auto quoted(std::string text) -> std::string {
  for (auto at = text.find('\''); at != std::string::npos; at = text.find('\'', at)) {
    text.replace(at, 1, "\\\"");
  }
  return text;
}

/// Of operations without the square brackets around them.
auto body(std::string const& operations) -> json::value {
  auto const text =
      R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[)" +
      quoted(operations) + "]}";
  auto const value = json::parse(text);
  EXPECT_TRUE(value) << text;
  return value ? *value : json::value();
}

/// The result, or the scimType and a bar.
auto patched(json::value const& resource, std::string const& operations,
             resource_definition const& d) -> std::string {
  auto const parsed = parse_patch(body(operations), d);
  if (!parsed) {
    EXPECT_FALSE(parsed.error().detail.empty());
    return "|" + std::string(to_string(parsed.error().type));
  }
  auto const before = to_string(resource);
  auto const after = apply_patch(resource, *parsed, d);
  EXPECT_EQ(to_string(resource), before);
  if (!after) {
    EXPECT_EQ(after.error().status, 400);
    EXPECT_FALSE(after.error().detail.empty());
    return "|" + std::string(to_string(after.error().type));
  }
  return to_string(*after);
}

struct row {
  char const* name;
  std::string before;  // the members behind `schemas`, `id` and `meta`
  std::string operations;
  std::string after;  // the same, or the scimType behind a bar
};

void check(std::vector<row> const& rows, resource_definition const& d) {
  auto const whole = [&](std::string const& members) {
    bool const extended =
        !d.extensions().empty() && members.find(d.extensions()[0].id + "\":") != std::string::npos;
    return R"({"schemas":[")" + d.base().id + "\"" +
           (extended ? ",\"" + d.extensions()[0].id + "\"" : "") +
           R"(],"id":"1","meta":{"version":"7"})" + (members.empty() ? "" : ",") + members + "}";
  };
  for (auto const& r : rows) {
    auto const before = json::parse(whole(r.before));
    ASSERT_TRUE(before) << r.name;
    auto const after = r.after.starts_with("|") ? r.after : whole(r.after);
    EXPECT_EQ(patched(*before, r.operations, d), after) << r.name;
  }
}

std::string const b = R"("userName":"b")";
std::string const work = R"({"value":"w@x","type":"work","primary":true})";
std::string const home = R"({"value":"h@x","type":"home"})";
std::string const both = b + R"(,"emails":[)" + work + "," + home + "]";

auto extension(std::string const& members) -> std::string {
  return b + ",\"" + std::string(enterprise) + "\":{" + members + "}";
}

TEST(scim_patch, does_the_examples_of_the_rfc_for_users) {
  std::string const address =
      R"({"type":"work","streetAddress":"911 Universal City Plaza","locality":"Hollywood",)"
      R"("region":"CA","postalCode":"91608","country":"US","primary":true})";
  check(
      {
          {"add without a path", both,
           R"({"op":"add","value":{"emails":[{"value":"babs@jensen.org","type":"home"}],"nickname":"Babs"}})",
           b + R"(,"emails":[)" + work + "," + home +
               R"(,{"value":"babs@jensen.org","type":"home"}],"nickName":"Babs")"},
          {"remove values by a filter",
           b + R"(,"emails":[{"value":"a@example.com","type":"work"},{"value":"a@x","type":"work"}])",
           R"({"op":"remove","path":"emails[type eq 'work' and value ew 'example.com']"})",
           b + R"(,"emails":[{"value":"a@x","type":"work"}])"},
          {"replace an entire value",
           b + R"(,"addresses":[{"type":"home","primary":true},{"type":"work","formatted":"old"}])",
           R"({"op":"replace","path":"addresses[type eq 'work']","value":)" + address + "}",
           b + R"(,"addresses":[{"type":"home","primary":false},)" + address + "]"},
          {"replace a sub-attribute of a value",
           b + R"(,"addresses":[{"type":"home"},{"type":"work","streetAddress":"old","region":"CA"}])",
           R"({"op":"replace","path":"addresses[type eq 'work'].streetAddress","value":"1010 Broadway Ave"})",
           b + R"(,"addresses":[{"type":"home"},)"
               R"({"type":"work","streetAddress":"1010 Broadway Ave","region":"CA"}])"},
          {"replace without a path",
           b + R"(,"emails":[{"value":"old"}],"nickName":"Old","title":"Kept")",
           R"({"op":"replace","value":{"emails":[{"value":"bjensen@example.com","type":"work","primary":true},
              {"value":"babs@jensen.org","type":"home"}],"nickname":"Babs"}})",
           b + R"(,"emails":[{"value":"bjensen@example.com","type":"work","primary":true},)"
               R"({"value":"babs@jensen.org","type":"home"}],"nickName":"Babs","title":"Kept")"},
      },
      users());
}

TEST(scim_patch, does_the_examples_of_the_rfc_for_groups) {
  std::string const g = R"("displayName":"G")";
  std::string const babs =
      R"({"display":"Babs Jensen","$ref":"https://example.com/v2/Users/2819c223",)"
      R"("value":"2819c223"})";
  std::string const james =
      R"({"display":"James Smith","$ref":"https://example.com/v2/Users/08e1d05d",)"
      R"("value":"08e1d05d"})";
  std::string const add_babs = R"({"op":"add","path":"members","value":[)" + babs + "]}";
  check(
      {
          {"add a member", g, add_babs, g + R"(,"members":[)" + babs + "]"},
          {"add a member that is there", g + R"(,"members":[)" + babs + "]", add_babs,
           g + R"(,"members":[)" + babs + "]"},
          {"remove one member", g + R"(,"members":[)" + babs + "," + james + "]",
           R"({"op":"remove","path":"members[value eq '2819c223']"})",
           g + R"(,"members":[)" + james + "]"},
          {"remove a member that is not there", g + R"(,"members":[)" + james + "]",
           R"({"op":"remove","path":"members[value eq '2819c223']"})",
           g + R"(,"members":[)" + james + "]"},
          {"remove all members", g + R"(,"members":[)" + babs + "," + james + "]",
           R"({"op":"remove","path":"members"})", g},
          {"remove and add", g + R"(,"members":[)" + babs + "]",
           R"({"op":"remove","path":"members[value eq'2819c223']"},)"
           R"({"op":"add","path":"members","value":[)" +
               james + "]}",
           g + R"(,"members":[)" + james + "]"},
          {"remove all and add others", g + R"(,"members":[{"value":"x"}])",
           R"({"op":"remove","path":"members"},{"op":"add","path":"members","value":[)" + babs +
               "," + james + "]}",
           g + R"(,"members":[)" + babs + "," + james + "]"},
          {"replace all", g + R"(,"members":[{"value":"x"}])",
           R"({"op":"replace","path":"members","value":[)" + babs + "," + james + "]}",
           g + R"(,"members":[)" + babs + "," + james + "]"},
      },
      groups());
}

TEST(scim_patch, adds) {
  check(
      {
          {"a single value", b, R"({"op":"add","path":"title","value":"T"})",
           b + R"(,"title":"T")"},
          {"in place of another", b + R"(,"title":"S","locale":"de")",
           R"({"op":"add","path":"title","value":"T"})", b + R"(,"title":"T","locale":"de")"},
          {"a value that is there", both, R"({"op":"add","path":"emails","value":[)" + home + "]}",
           both},
          {"the same value twice", b,
           R"({"op":"add","path":"emails","value":[)" + home + "," + home + "]}",
           b + R"(,"emails":[)" + home + "]"},
          {"one that is there in other words", both,
           R"({"op":"add","path":"emails","value":{"TYPE":"work","Primary":"True","value":"w@x"}})",
           both},
          {"a single object to several", b + R"(,"emails":[)" + home + "]",
           R"({"op":"add","path":"emails","value":)" + work + "}",
           b + R"(,"emails":[)" + home + "," + work + "]"},
          {"a new primary value", both,
           R"({"op":"add","path":"emails","value":[{"value":"n","primary":true}]})",
           b + R"(,"emails":[{"value":"w@x","type":"work","primary":false},)" + home +
               R"(,{"value":"n","primary":true}])"},
          {"two new primary values", both,
           R"({"op":"add","path":"emails","value":[{"value":"n","primary":true},{"value":"m","primary":true}]})",
           "|invalidValue"},
          {"sub-attributes to what is there", b + R"(,"name":{"givenName":"G","familyName":"F"})",
           R"({"op":"add","path":"name","value":{"givenName":"H","middleName":"M"}})",
           b + R"(,"name":{"givenName":"H","familyName":"F","middleName":"M"})"},
          {"a sub-attribute", b, R"({"op":"add","path":"name.givenName","value":"G"})",
           b + R"(,"name":{"givenName":"G"})"},
          {"nothing", both,
           R"({"op":"add","path":"title","value":null},{"op":"add","path":"emails","value":[]},
              {"op":"add","path":"name","value":{}},{"op":"add","path":"emails[type eq 'x'].value","value":null},
              {"op":"add","path":"name.givenName","value":null},{"op":"add","path":"emails","value":[null,{}]},
              {"op":"add","value":{}},{"op":"add","value":{"title":null}})" +
               std::string(),
           both},
          {"to values that a filter selects", both,
           R"({"op":"add","path":"emails[type eq 'home']","value":{"display":"D","value":"i@x"}})",
           b + R"(,"emails":[)" + work + R"(,{"value":"i@x","type":"home","display":"D"}])"},
          {"a sub-attribute to values that a filter selects", both,
           R"({"op":"add","path":"emails[value ew '@x'].display","value":"D"})",
           b + R"(,"emails":[{"value":"w@x","type":"work","primary":true,"display":"D"},)"
               R"({"value":"h@x","type":"home","display":"D"}])"},
          {"a sub-attribute to all values", both,
           R"({"op":"add","path":"emails.display","value":"D"})",
           b + R"(,"emails":[{"value":"w@x","type":"work","primary":true,"display":"D"},)"
               R"({"value":"h@x","type":"home","display":"D"}])"},
          {"the value that a filter describes", both,
           R"({"op":"add","path":"emails[type eq 'Other' and primary eq 'True'].value","value":"o@x"})",
           b + R"(,"emails":[{"value":"w@x","type":"work","primary":false},)" + home +
               R"(,{"type":"Other","primary":true,"value":"o@x"}])"},
          {"the first value, that a filter describes", b,
           R"({"op":"add","path":"emails[type eq 'work']","value":{"value":"o@x"}})",
           b + R"(,"emails":[{"type":"work","value":"o@x"}])"},
          {"a value that a filter only excludes", b,
           R"({"op":"add","path":"emails[not (type eq 'work')].value","value":"o@x"})",
           b + R"(,"emails":[{"value":"o@x"}])"},
          {"a value that the new one shows to be meant", b,
           R"({"op":"add","path":"emails[value sw 'o'].value","value":"o@x"})",
           b + R"(,"emails":[{"value":"o@x"}])"},
          {"a value by another one", b,
           R"({"op":"add","path":"emails[value eq 'old'].value","value":"new"})",
           b + R"(,"emails":[{"value":"new"}])"},
          {"a value that no filter describes", b,
           R"({"op":"add","path":"emails[type eq 'work' or type eq 'home'].value","value":"o@x"})",
           "|noTarget"},
          {"a value that cannot be", b,
           R"({"op":"add","path":"emails[type eq 'a' and type eq 'b'].value","value":"o@x"})",
           "|noTarget"},
          {"of another type", b, R"({"op":"add","path":"active","value":"maybe"})",
           "|invalidValue"},
          {"several for one", b, R"({"op":"add","path":"title","value":["T","U"]})",
           "|invalidValue"},
          {"a list of one for one", b, R"({"op":"add","path":"title","value":["T"]})",
           b + R"(,"title":"T")"},
          {"a list in a list for one", b, R"({"op":"add","path":"title","value":[["T"]]})",
           "|invalidValue"},
          {"a list of one to what a filter selects", both,
           R"({"op":"add","path":"emails[type eq 'home']","value":[{"display":["D"]}]})",
           b + R"(,"emails":[)" + work + R"(,{"value":"h@x","type":"home","display":"D"}])"},
          {"plain for complex", b, R"({"op":"add","path":"name","value":"N"})", "|invalidValue"},
          {"a sub-attribute that is not there", b,
           R"({"op":"add","path":"name","value":{"none":"N"}})", "|invalidSyntax"},
          {"a value with a sub-attribute that is not there", b,
           R"({"op":"add","path":"emails","value":{"none":"N"}})", "|invalidSyntax"},
      },
      users());
}

TEST(scim_patch, replaces) {
  check(
      {
          {"a single value", b + R"(,"title":"S")",
           R"({"op":"replace","path":"title","value":"T"})", b + R"(,"title":"T")"},
          {"what is not there", b, R"({"op":"replace","path":"title","value":"T"})",
           b + R"(,"title":"T")"},
          {"with the same", both,
           R"({"op":"replace","path":"emails","value":[)" + work + "," + home + "]}", both},
          {"all values", both, R"({"op":"replace","path":"emails","value":[)" + home + "]}",
           b + R"(,"emails":[)" + home + "]"},
          {"all values by a single object", both,
           R"({"op":"replace","path":"emails","value":)" + home + "}",
           b + R"(,"emails":[)" + home + "]"},
          {"all values by none", both, R"({"op":"replace","path":"emails","value":[]})", b},
          {"by null", b + R"(,"title":"S")", R"({"op":"replace","path":"title","value":null})", b},
          {"the sub-attributes that are given", b + R"(,"name":{"givenName":"G","familyName":"F"})",
           R"({"op":"replace","path":"name","value":{"givenName":"H","familyName":null}})",
           b + R"(,"name":{"givenName":"H"})"},
          {"the last sub-attribute by null", b + R"(,"name":{"givenName":"G"})",
           R"({"op":"replace","value":{"name":{"givenName":null}}})", b},
          {"a sub-attribute that is not there", b,
           R"({"op":"replace","path":"name.givenName","value":"G"})",
           b + R"(,"name":{"givenName":"G"})"},
          {"the values that a filter selects", both,
           R"({"op":"replace","path":"emails[type eq 'HOME']","value":{"value":"n","primary":true}})",
           b + R"(,"emails":[{"value":"w@x","type":"work","primary":false},{"value":"n","primary":true}])"},
          {"the values that a filter selects by none", both,
           R"({"op":"replace","path":"emails[type eq 'work']","value":null})",
           b + R"(,"emails":[)" + home + "]"},
          {"several values by a primary one", both,
           R"({"op":"replace","path":"emails[type pr]","value":{"value":"n","primary":true}})",
           "|invalidValue"},
          {"the primary value", both,
           R"({"op":"replace","path":"emails[type eq 'home'].primary","value":"True"})",
           b + R"(,"emails":[{"value":"w@x","type":"work","primary":false},)"
               R"({"value":"h@x","type":"home","primary":true}])"},
          {"the primary value by all", both,
           R"({"op":"replace","path":"emails.primary","value":true})", "|invalidValue"},
          {"a sub-attribute of all values", both,
           R"({"op":"replace","path":"emails.type","value":"t"})",
           b + R"(,"emails":[{"value":"w@x","type":"t","primary":true},{"value":"h@x","type":"t"}])"},
          {"a sub-attribute of no value", b, R"({"op":"replace","path":"emails.type","value":"t"})",
           b + R"(,"emails":[{"type":"t"}])"},
          {"what no filter selects", both,
           R"({"op":"replace","path":"emails[type eq 'x']","value":{"value":"n"}})", "|noTarget"},
          {"a sub-attribute of what no filter selects", both,
           R"({"op":"replace","path":"emails[type eq 'x'].value","value":"n"})", "|noTarget"},
          {"null of what no filter selects", both,
           R"({"op":"replace","path":"emails[type eq 'x'].value","value":null})", "|noTarget"},
          {"a value where there is none", b,
           R"({"op":"replace","path":"emails[type eq 'x'].value","value":"n"})", "|noTarget"},
          {"what is required by nothing", b, R"({"op":"replace","path":"userName","value":null})",
           "|invalidValue"},
          {"what is required by an empty text", b,
           R"({"op":"replace","path":"userName","value":""})", "|invalidValue"},
          {"what is never returned", b + R"(,"password":"p")",
           R"({"op":"replace","path":"password","value":"q"})", b + R"(,"password":"q")"},
      },
      users());
}

TEST(scim_patch, removes) {
  check(
      {
          {"a single value", b + R"(,"title":"S")", R"({"op":"remove","path":"title"})", b},
          {"what is not there", b,
           R"({"op":"remove","path":"title"},{"op":"remove","path":"emails"},
              {"op":"remove","path":"name.givenName"},{"op":"remove","path":"emails.type"},
              {"op":"remove","path":"emails[type eq 'x']"},{"op":"remove","path":"emails[type eq 'x'].value"})" +
               std::string(),
           b},
          {"a complex value", b + R"(,"name":{"givenName":"G"})",
           R"({"op":"remove","path":"name"})", b},
          {"a sub-attribute", b + R"(,"name":{"givenName":"G","familyName":"F"})",
           R"({"op":"remove","path":"name.givenName"})", b + R"(,"name":{"familyName":"F"})"},
          {"the last sub-attribute", b + R"(,"name":{"givenName":"G"})",
           R"({"op":"remove","path":"name.givenName"})", b},
          {"all values", both, R"({"op":"remove","path":"emails"})", b},
          {"the values that a filter selects", both,
           R"({"op":"remove","path":"emails[type eq 'work']"})", b + R"(,"emails":[)" + home + "]"},
          {"all values by a filter", both, R"({"op":"remove","path":"emails[value pr]"})", b},
          {"a sub-attribute of values", both,
           R"({"op":"remove","path":"emails[type eq 'work'].primary"})",
           b + R"(,"emails":[{"value":"w@x","type":"work"},)" + home + "]"},
          {"the only sub-attribute of a value", b + R"(,"emails":[{"type":"t"},{"value":"v"}])",
           R"({"op":"remove","path":"emails.type"})", b + R"(,"emails":[{"value":"v"}])"},
          {"the values that are given", both,
           R"({"op":"remove","path":"emails","value":[{"value":"W@X"},{"value":"other"}]})",
           b + R"(,"emails":[)" + home + "]"},
          {"a value that is given plainly", both,
           R"({"op":"remove","path":"emails","value":"h@x"})", b + R"(,"emails":[)" + work + "]"},
          {"only what has all that is given", both,
           R"({"op":"remove","path":"emails","value":{"value":"w@x","type":"home"}})", both},
          {"none, when none are given", both,
           R"({"op":"remove","path":"emails","value":[]},{"op":"remove","path":"emails","value":[{}]})",
           both},
          {"the value of one attribute, whatever is said of it", b + R"(,"title":"S")",
           R"({"op":"remove","path":"title","value":"other"})", b},
          {"without a path", b, R"({"op":"remove"})", "|noTarget"},
          {"without a path but with a value", b, R"({"op":"remove","value":{"title":"x"}})",
           "|noTarget"},
          {"what is required", b, R"({"op":"remove","path":"userName"})", "|mutability"},
          {"what is required and comes again", b,
           R"({"op":"remove","path":"userName"},{"op":"add","path":"userName","value":"c"})",
           "|mutability"},
          {"the schemas", b, R"({"op":"remove","path":"schemas"})", "|mutability"},
          {"what is readOnly", b, R"({"op":"remove","path":"id"})", "|mutability"},
      },
      users());
}

TEST(scim_patch, keeps_schemas_in_step_with_extensions) {
  auto const urn = std::string(enterprise);
  check(
      {
          {"an attribute with its URN", b,
           R"({"op":"add","path":")" + urn + R"(:employeeNumber","value":"7"})",
           extension(R"("employeeNumber":"7")")},
          {"an extension as a path", b,
           R"({"op":"add","path":")" + urn +
               R"(","value":{"department":"D","manager":{"value":"m"}}})",
           extension(R"("department":"D","manager":{"value":"m"})")},
          {"an extension replaces what it names", extension(R"("department":"D","division":"V")"),
           R"({"op":"replace","path":")" + urn + R"(","value":{"department":"E"}})",
           extension(R"("department":"E","division":"V")")},
          {"the last attribute goes", extension(R"("department":"D")"),
           R"({"op":"remove","path":")" + urn + R"(:department"})", b},
          {"the extension goes", extension(R"("department":"D","division":"V")"),
           R"({"op":"remove","path":")" + urn + R"("})", b},
          {"the extension becomes null", extension(R"("department":"D")"),
           R"({"op":"replace","value":{")" + urn + R"(":null}})", b},
          {"nothing is added to it", extension(R"("department":"D")"),
           R"({"op":"add","value":{")" + urn + R"(":null}},{"op":"add","path":")" + urn +
               R"(","value":{}})",
           extension(R"("department":"D")")},
          {"an extension that is not there goes", b, R"({"op":"remove","path":")" + urn + R"("})",
           b},
          {"the URN of an extension without data", b,
           R"({"op":"add","path":"schemas","value":[")" + urn + R"("]})", b},
          {"schemas without the extension that has data", extension(R"("department":"D")"),
           R"({"op":"replace","path":"schemas","value":["urn:ietf:params:scim:schemas:core:2.0:User"]})",
           extension(R"("department":"D")")},
          {"schemas of other types", b, R"({"op":"add","path":"schemas","value":["urn:x"]})",
           "|invalidValue"},
          {"an extension that is not an object", b,
           R"({"op":"add","path":")" + urn + R"(","value":"D"})", "|invalidValue"},
      },
      users());
}

TEST(scim_patch, takes_what_entra_and_okta_send) {
  auto const urn = std::string(enterprise);
  check(
      {
          {"op in any case", b,
           R"({"OP":"Add","Path":"Title","VALUE":"T"},{"op":"REPLACE","path":"locale","value":"de"},
              {"op":"rEmOvE","path":"title"})",
           b + R"(,"locale":"de")"},
          {"booleans as texts", b + R"(,"active":true)",
           R"({"op":"Replace","path":"active","value":"False"})", b + R"(,"active":false)"},
          {"booleans as texts without a path", b, R"({"op":"Replace","value":{"active":"True"}})",
           b + R"(,"active":true)"},
          {"a role with primary as a text", b,
           R"({"op":"Add","path":"roles","value":[{"primary":"True","value":"r","type":"t"}]})",
           b + R"(,"roles":[{"primary":true,"value":"r","type":"t"}])"},
          {"a role found by primary as a text", b + R"(,"roles":[{"value":"r","primary":true}])",
           R"({"op":"Replace","path":"roles[primary eq 'True'].value","value":"s"})",
           b + R"(,"roles":[{"value":"s","primary":true}])"},
          {"the manager as a plain text", b,
           R"({"op":"Add","path":")" + urn + R"(:manager","value":"m"})",
           extension(R"("manager":{"value":"m"})")},
          {"another manager as a plain text", extension(R"("manager":{"value":"m","$ref":"/m"})"),
           R"({"op":"Replace","path":")" + urn + R"(:manager","value":"n"})",
           extension(R"("manager":{"value":"n"})")},
          {"the manager as a plain text in the extension", b,
           R"({"op":"add","value":{")" + urn + R"(":{"manager":"m"}}})",
           extension(R"("manager":{"value":"m"})")},
          {"the manager as a key", b, R"({"op":"add","value":{")" + urn + R"(:manager":"m"}})",
           extension(R"("manager":{"value":"m"})")},
          {"the manager with its name", b,
           R"({"op":"add","path":")" + urn +
               R"(:manager","value":{"value":"m","displayName":"M"}})",
           extension(R"("manager":{"value":"m"})")},
          {"the manager goes", extension(R"("manager":{"value":"m"})"),
           R"({"op":"Remove","path":")" + urn + R"(:manager"})", b},
          {"dotted keys", b,
           R"({"op":"add","value":{"name.givenName":"G","name.familyName":"F","title":"T"}})",
           b + R"(,"name":{"givenName":"G","familyName":"F"},"title":"T")"},
          {"keys with URNs", b, R"({"op":"Replace","value":{")" + urn + R"(:department":"D",
              "URN:ietf:params:scim:schemas:core:2.0:User:title":"T"}})",
           b + ",\"" + urn + R"(":{"department":"D"},"title":"T")"},
          {"dotted keys in an extension", b,
           R"({"op":"add","value":{")" + urn + R"(":{"manager.value":"m"}}})",
           extension(R"("manager":{"value":"m"})")},
          {"a key with a filter", b, R"({"op":"Add","value":{"emails[type eq 'work'].value":"w@x",
              "emails[type eq 'work'].primary":"True"}})",
           b + R"(,"emails":[{"type":"work","value":"w@x","primary":true}])"},
          {"id and more in the value", b,
           R"({"op":"replace","value":{"id":"2","meta":{"version":"8"},"groups":[],"groups[value eq 'g']":1,
              "meta.version":"9","title":"T","schemas":["urn:ietf:params:scim:schemas:core:2.0:User"]}})",
           b + R"(,"title":"T")"},
          {"a path that is null", b, R"({"op":"replace","path":null,"value":{"title":"T"}})",
           b + R"(,"title":"T")"},
      },
      users());
  check({{"okta renames a group", R"("displayName":"G")",
          R"({"op":"replace","value":{"id":"1","displayName":"H"}})", R"("displayName":"H")"},
         {"entra removes members by value",
          R"("displayName":"G","members":[{"value":"x"},{"value":"y"}])",
          R"({"op":"Remove","path":"members","value":[{"$ref":null,"value":"x"}]})",
          R"("displayName":"G","members":[{"value":"y"}])"}},
        groups());
}

TEST(scim_patch, takes_the_manager_in_all_forms_that_entra_documents) {
  auto const urn = std::string(enterprise);
  auto const had = extension(R"("manager":{"value":"m","$ref":"/m"})");
  check(
      {
          {"in a list, by its name alone", b,
           R"({"op":"Add","path":"manager","value":[{"$ref":"/n","value":"n"}]})",
           extension(R"("manager":{"$ref":"/n","value":"n"})")},
          {"in a list, by its URN", b,
           R"({"op":"Add","path":")" + urn + R"(:manager","value":[{"value":"n"}]})",
           extension(R"("manager":{"value":"n"})")},
          {"as a text in a list", had, R"({"op":"Replace","path":"manager","value":["n"]})",
           extension(R"("manager":{"value":"n"})")},
          {"by its name alone, as a key", b, R"({"op":"Add","value":{"manager":"n"}})",
           extension(R"("manager":{"value":"n"})")},
          {"by its name and sub-attribute", b, R"({"op":"Add","path":"manager.value","value":"n"})",
           extension(R"("manager":{"value":"n"})")},
          {"removed by its name alone", had, R"({"op":"Remove","path":"manager"})", b},
          {"replaced by an empty text", had,
           R"({"op":"Replace","path":")" + urn + R"(:manager","value":""})", b},
          {"replaced by an empty text in the extension", had,
           R"({"op":"Replace","value":{")" + urn + R"(":{"manager":""}}})", b},
          {"replaced by an empty text in a list", had,
           R"({"op":"Replace","path":"manager","value":[""]})", b},
          {"replaced by an empty value", had,
           R"({"op":"Replace","path":"manager","value":{"value":""}})", b},
          {"replaced by an empty value in a list", had,
           R"({"op":"Replace","path":"manager","value":[{"Value":"","$ref":""}]})", b},
          {"replaced by an empty value in the extension", had,
           R"({"op":"Replace","value":{")" + urn + R"(":{"manager":{"value":""}}}})", b},
          {"its value replaced by an empty text", extension(R"("manager":{"value":"m"})"),
           R"({"op":"Replace","path":"manager.value","value":""})", b},
          {"an empty value where there is none", b,
           R"({"op":"Add","path":"manager","value":{"value":""}})", b},
          {"replaced by an empty list", had, R"({"op":"Replace","path":"manager","value":[]})", b},
          {"an empty list that is added", had, R"({"op":"Add","path":"manager","value":[]})", had},
          {"an empty list for a plain attribute", extension(R"("department":"D")"),
           R"({"op":"Replace","value":{"department":[]}})", b},
          {"an empty text that is added", had, R"({"op":"Add","path":"manager","value":""})", had},
          {"an empty text where there is none", b, R"({"op":"Add","path":"manager","value":""})",
           b},
          {"schemas in the extension", b,
           R"({"op":"add","path":")" + urn + R"(","value":{"schemas":[")" + urn +
               R"("],"department":"D"}})",
           extension(R"("department":"D")")},
      },
      users());
  check(
      {{"an empty text to remove is none of the values", both,
        R"({"op":"remove","path":"emails","value":""},{"op":"remove","path":"emails","value":[""]})",
        both},
       {"an empty text in place of what a filter selects", both,
        R"({"op":"replace","path":"emails[type eq 'work']","value":""})",
        b + R"(,"emails":[)" + home + "]"}},
      users());
}

/// The result where what is unknown is ignored, or the scimType and a bar, and then what was
/// ignored.
auto patched_liberally(json::value const& resource, std::string const& operations,
                       resource_definition const& d) -> std::string {
  ignored_names ignored;
  auto const parsed = parse_patch(body(operations), d, unknown_attributes::ignore, &ignored);
  if (!parsed) {
    return "|" + std::string(to_string(parsed.error().type));
  }
  auto const after = apply_patch(resource, *parsed, d);
  auto out = after ? to_string(*after) : "|" + std::string(to_string(after.error().type));
  for (auto const& name : ignored.names) {
    out += " " + name;
  }
  EXPECT_EQ(ignored.attributes + ignored.schemas == 0, ignored.names.empty());
  return out;
}

TEST(scim_patch, ignores_what_is_unknown_in_values_but_not_in_paths) {
  auto const urn = std::string(enterprise);
  struct case_row {
    char const* name;
    std::string operations;
    std::string after;    // behind userName; or the scimType behind a bar
    std::string ignored;  // names, each behind a space
  };
  std::string const home_only = R"(,"emails":[)" + home + "]";
  for (
      auto const& r : std::vector<case_row>{
          {"a key", R"({"op":"add","value":{"title":"T","shoe":4}})", R"(,"title":"T")", " shoe"},
          {"a key that is null", R"({"op":"replace","value":{"shoe":null}})", "", ""},
          {"a key of an unknown schema", R"({"op":"add","value":{"urn:x:Y:shoe":4,"urn:x:Z":{}}})",
           "", " urn:x:Y:shoe urn:x:Z"},
          {"a key with an unknown sub-attribute", R"({"op":"add","value":{"name.shoe":4}})", "",
           " name.shoe"},
          {"a key in an extension",
           R"({"op":"add","value":{")" + urn + R"(":{"shoe":4,"schemas":[]}}})", "",
           " " + urn + ".shoe"},
          {"a sub-attribute of a single value",
           R"({"op":"add","path":"name","value":{"shoe":4,"givenName":"G"}})",
           R"(,"name":{"givenName":"G"})", " name.shoe"},
          {"a sub-attribute of several values",
           R"({"op":"add","path":"emails","value":[{"shoe":4,"value":"h@x","type":"home"},{"shoe":5}]})",
           home_only, " emails.shoe"},
          {"a sub-attribute that is null",
           R"({"op":"add","path":"emails","value":[{"shoe":null,"value":"h@x","type":"home"}]})",
           home_only, ""},
          {"a sub-attribute of what a filter selects",
           R"({"op":"add","path":"emails[type eq 'home']","value":{"shoe":4,"value":"h@x"}})",
           R"(,"emails":[{"type":"home","value":"h@x"}])", " emails.shoe"},
          {"URNs of schemas",
           R"({"op":"add","path":"schemas","value":["urn:x"]},{"op":"replace","path":"schemas","value":"urn:y"})",
           "", " urn:x urn:y"},
          {"URNs of schemas among others", R"({"op":"replace","value":{"schemas":[
              "urn:ietf:params:scim:schemas:core:2.0:User","urn:x"],"title":"T"}})",
           R"(,"title":"T")", " urn:x"},
          {"nothing when it is removed", R"({"op":"remove","path":"emails","value":{"shoe":4}})",
           "", " emails.shoe"},
          {"but not a path", R"({"op":"add","path":"shoe","value":4})", "|invalidPath", ""},
          {"but not a path with a sub-attribute", R"({"op":"add","path":"name.shoe","value":4})",
           "|invalidPath", ""},
          {"but not a path to remove", R"({"op":"remove","path":"urn:x:Y:shoe"})", "|invalidPath",
           ""},
          {"but not a filter in a key", R"({"op":"add","value":{"emails[shoe eq 'x'].value":"v"}})",
           "|invalidFilter", ""},
          {"but not behind a filter in a key",
           R"({"op":"add","value":{"emails[type eq 'x'].shoe":"v"}})", "|invalidPath", ""},
          {"but not a wrong value beside it",
           R"({"op":"add","path":"emails","value":{"shoe":4,"value":1}})", "|invalidValue",
           " emails.shoe"},
      }) {
    auto const whole = [&](std::string const& members) {
      return R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"id":"1",)" + b +
             members + "}";
    };
    EXPECT_EQ(patched_liberally(*json::parse(whole("")), r.operations, users()),
              (r.after.starts_with("|") ? r.after : whole(r.after)) + r.ignored)
        << r.name;
  }
  // Not even a schema that is gone from the resource type stands in the way.
  auto const old = *json::parse(
      R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User","urn:x"],"id":"1","userName":"b"})");
  EXPECT_EQ(patched(old, R"({"op":"add","path":"title","value":"T"})", users()),
            R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"id":"1","userName":"b",)"
            R"("title":"T"})");
}

TEST(scim_patch, names_attributes_as_the_schemas_spell_them) {
  auto const detail = [](std::string const& operation) {
    auto const before = *json::parse(
        R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"id":"1","userName":"b"})");
    return apply_patch(before, *parse_patch(body(operation), users()), users()).error().detail;
  };
  EXPECT_EQ(detail(R"({"op":"replace","path":"PHONEnumbers[type eq 'x'].VALUE","value":"1"})"),
            "phoneNumbers.value: no value matches the filter of the path");
  EXPECT_EQ(detail(R"({"op":"replace","path":"META.lastmodified","value":"1"})"),
            "meta.lastModified: the attribute is readOnly");
}

TEST(scim_patch, respects_what_is_read_only_immutable_and_required) {
  std::string const x = R"("urn:x:Extra":{"note":"n"})";
  std::string const t = R"("keys":["k"],)" + x;
  check(
      {
          {"add to id", t, R"({"op":"add","path":"id","value":"2"})", "|mutability"},
          {"replace in meta", t, R"({"op":"replace","path":"meta.version","value":"8"})",
           "|mutability"},
          {"a readOnly sub-attribute", t, R"({"op":"add","path":"place.area","value":"8"})",
           "|mutability"},
          {"a readOnly sub-attribute in a value", t,
           R"({"op":"add","path":"place","value":{"room":"r","area":"8"}})",
           t + R"(,"place":{"room":"r"})"},
          {"a readOnly sub-attribute of values", t,
           R"({"op":"remove","path":"parts[size eq 1].made"})", "|mutability"},
          {"a readOnly attribute of an extension", t,
           R"({"op":"add","path":"urn:x:Extra:by","value":"8"})", "|mutability"},
          {"a readOnly attribute in the value of an extension", t,
           R"({"op":"add","path":"urn:x:Extra","value":{"by":"8"}})", t},
          {"a first immutable value", t, R"({"op":"add","path":"serial","value":"s"})",
           t + R"(,"serial":"s")"},
          {"the same immutable value", t + R"(,"serial":"s")",
           R"({"op":"replace","path":"serial","value":"s"})", t + R"(,"serial":"s")"},
          {"another immutable value", t + R"(,"serial":"s")",
           R"({"op":"add","path":"serial","value":"z"})", "|mutability"},
          {"no immutable value", t + R"(,"serial":"s")", R"({"op":"remove","path":"serial"})",
           "|mutability"},
          {"no immutable value and then the same", t + R"(,"serial":"s")",
           R"({"op":"remove","path":"serial"},{"op":"add","path":"serial","value":"s"})",
           "|mutability"},
          {"one more immutable value", t + R"(,"stamps":["s"])",
           R"({"op":"add","path":"stamps","value":"z"})", "|mutability"},
          {"the same immutable value once more", t + R"(,"stamps":["s"])",
           R"({"op":"add","path":"stamps","value":"s"})", t + R"(,"stamps":["s"])"},
          {"an immutable sub-attribute", t + R"(,"place":{"room":"r","floor":"1"})",
           R"({"op":"add","path":"place.floor","value":"2"})", "|mutability"},
          {"an immutable sub-attribute in a value", t + R"(,"place":{"room":"r","floor":"1"})",
           R"({"op":"replace","path":"place","value":{"room":"q","floor":"2"}})", "|mutability"},
          {"an immutable sub-attribute by way of its parent",
           t + R"(,"place":{"room":"r","floor":"1"})",
           R"({"op":"remove","path":"place"},{"op":"add","path":"place","value":{"room":"r","floor":"2"}})",
           "|mutability"},
          {"an immutable sub-attribute of a value", t + R"(,"parts":[{"value":"v","label":"l"}])",
           R"({"op":"replace","path":"parts[value eq 'v'].value","value":"w"})", "|mutability"},
          {"a value with an immutable sub-attribute", t + R"(,"parts":[{"value":"v","label":"l"}])",
           R"({"op":"replace","path":"parts[value eq 'v']","value":{"value":"w","label":"l"}})",
           "|mutability"},
          {"a value with the same immutable sub-attribute",
           t + R"(,"parts":[{"value":"v","label":"l"}])",
           R"({"op":"replace","path":"parts[value eq 'v']","value":{"value":"v","label":"m"}})",
           t + R"(,"parts":[{"value":"v","label":"m"}])"},
          {"all values with immutable sub-attributes",
           t + R"(,"parts":[{"value":"v","label":"l"}])",
           R"({"op":"replace","path":"parts","value":{"value":"w","label":"l"}})",
           t + R"(,"parts":[{"value":"w","label":"l"}])"},
          {"a required sub-attribute goes", t + R"(,"place":{"room":"r","floor":"1"})",
           R"({"op":"remove","path":"place.room"})", "|mutability"},
          {"a required sub-attribute of values goes", t + R"(,"parts":[{"value":"v","label":"l"}])",
           R"({"op":"remove","path":"parts[value eq 'v'].label"})", "|mutability"},
          {"a required sub-attribute is missing", t,
           R"({"op":"add","path":"parts","value":{"value":"v"}})", "|invalidValue"},
          {"a required sub-attribute comes later", t,
           R"({"op":"add","path":"parts","value":{"value":"v"}},{"op":"add","path":"parts.label","value":"l"})",
           t + R"(,"parts":[{"value":"v","label":"l"}])"},
          {"the last required value goes", t, R"({"op":"remove","path":"keys","value":"K"})",
           "|mutability"},
          {"a required extension goes", t, R"({"op":"remove","path":"urn:x:Extra"})",
           "|mutability"},
          {"a required extension becomes null", t,
           R"({"op":"replace","path":"urn:x:Extra","value":null})", "|invalidValue"},
          {"plain values", t + R"(,"tags":["a"])",
           R"({"op":"add","path":"tags","value":["A","a","b"]},{"op":"remove","path":"tags","value":["B"]})",
           t + R"(,"tags":["a","A"])"},
          {"plain values with case", t + R"(,"codes":["a","A"])",
           R"({"op":"remove","path":"codes","value":"A"})", t + R"(,"codes":["a"])"},
          {"several values in a sub-attribute", t + R"(,"place":{"room":"r","doors":["1"]})",
           R"({"op":"add","path":"place.doors","value":["1","2"]},{"op":"remove","path":"place.doors","value":"1"})",
           t + R"(,"place":{"room":"r","doors":["2"]})"},
          {"an empty value beside others", t + R"(,"badge":{"value":"17","color":"red"})",
           R"({"op":"replace","path":"badge","value":{"value":""}})",
           t + R"(,"badge":{"value":"","color":"red"})"},
          {"a number", t, R"({"op":"add","path":"count","value":1})", t + R"(,"count":1)"},
          {"a text for a number", t, R"({"op":"add","path":"count","value":"1"})", "|invalidValue"},
          {"a number of a filter that is none", t,
           R"({"op":"add","path":"parts[size eq 1.5].label","value":"l"})", "|invalidValue"},
      },
      things());
}

TEST(scim_patch, refuses_paths_and_filters_with_the_scim_type) {
  check(
      {
          {"an unknown attribute", b, R"({"op":"add","path":"none","value":1})", "|invalidPath"},
          {"an unknown sub-attribute", b, R"({"op":"add","path":"name.none","value":1})",
           "|invalidPath"},
          {"an unknown schema", b, R"({"op":"add","path":"urn:x:none","value":1})", "|invalidPath"},
          {"an empty path", b, R"({"op":"add","path":"","value":1})", "|invalidPath"},
          {"an unknown attribute as a key", b, R"({"op":"add","value":{"none":1}})",
           "|invalidPath"},
          {"a filter of a plain attribute", b,
           R"({"op":"add","path":"title[value eq 'x']","value":1})", "|invalidPath"},
          {"a filter of a single value", b,
           R"({"op":"add","path":"name[givenName eq 'x'].familyName","value":1})", "|invalidPath"},
          {"a sub-attribute behind a filter", b,
           R"({"op":"remove","path":"emails[type eq ']'].none"})", "|invalidPath"},
          {"more behind a filter", b, R"({"op":"remove","path":"emails[type eq 'a\\']'] x"})",
           "|invalidPath"},
          {"an unknown attribute in a filter", b, R"({"op":"remove","path":"emails[none eq 'x']"})",
           "|invalidFilter"},
          {"an operator that does not exist", b, R"({"op":"remove","path":"emails[type is 'x']"})",
           "|invalidFilter"},
          {"a filter that does not end", b, R"({"op":"remove","path":"emails[type eq 'x'"})",
           "|invalidFilter"},
          {"a filter in a key", b, R"({"op":"add","value":{"emails[type].value":1}})",
           "|invalidFilter"},
      },
      users());
}

TEST(scim_patch, refuses_bodies_that_are_not_a_patch) {
  auto const type_of = [](std::string const& text) {
    auto const parsed = parse_patch(*json::parse(text), users());
    return parsed ? "taken" : std::string(to_string(parsed.error().type));
  };
  std::string const urn = R"("urn:ietf:params:scim:api:messages:2.0:PatchOp")";
  std::string const ops = R"("Operations":[{"op":"add","path":"title","value":"T"}])";
  EXPECT_EQ(type_of(R"({"schemas":[)" + urn + "]," + ops + "}"), "taken");
  EXPECT_EQ(type_of(R"({"SCHEMAS":["x","URN:IETF:params:scim:api:messages:2.0:patchop"],)"
                    R"("operations":[{"op":"remove","path":"title"}]})"),
            "taken");
  for (std::string const text :
       {"[]", "1", "{}", R"({"schemas":[]})", "{OPS}", R"({"schemas":["urn:x"],OPS})",
        R"({"schemas":URN,OPS})", R"({"schemas":[URN]})", R"({"schemas":[URN],"Operations":[]})",
        R"({"schemas":[URN],"Operations":{}})", R"({"schemas":[URN],"Operations":[1]})",
        R"({"schemas":[URN],"Operations":[{}]})",
        R"({"schemas":[URN],"Operations":[{"path":"title","value":1}]})",
        R"({"schemas":[URN],"Operations":[{"op":1,"path":"title","value":1}]})",
        R"({"schemas":[URN],"Operations":[{"op":"move","path":"title","value":1}]})",
        R"({"schemas":[URN],"Operations":[{"op":"add","path":1,"value":1}]})",
        R"({"schemas":[URN],"Operations":[{"op":"add","path":"title"}]})",
        R"({"schemas":[URN],"Operations":[{"op":"replace"}]})"}) {
    auto filled = text;
    if (auto const at = filled.find("OPS"); at != std::string::npos) {
      filled.replace(at, 3, ops);
    }
    if (auto const at = filled.find("URN"); at != std::string::npos) {
      filled.replace(at, 3, urn);
    }
    EXPECT_EQ(type_of(filled), "invalidSyntax") << filled;
  }
  EXPECT_EQ(type_of(R"({"schemas":[)" + urn + R"(],"Operations":[{"op":"add","value":"x"}]})"),
            "invalidValue");
}

TEST(scim_patch, is_all_or_nothing_and_in_order) {
  check(
      {
          {"the second sees what the first did", b,
           R"({"op":"add","path":"emails","value":{"value":"v","type":"t"}},
              {"op":"replace","path":"emails[type eq 't'].value","value":"w"})",
           b + R"(,"emails":[{"value":"w","type":"t"}])"},
          {"the last of several wins", b,
           R"({"op":"add","path":"title","value":"S"},{"op":"replace","path":"title","value":"T"})",
           b + R"(,"title":"T")"},
          {"an error at the end undoes all", b,
           R"({"op":"add","path":"title","value":"S"},{"op":"replace","path":"emails[type eq 't'].value","value":"w"})",
           "|noTarget"},
      },
      users());
}

TEST(scim_patch, is_bounded) {
  std::string many = R"({"op":"remove","path":"title"})";
  auto const one = many;
  for (std::size_t i = 1; i < patch_operations_max; ++i) {
    many += "," + one;
  }
  EXPECT_TRUE(parse_patch(body(many), users()));
  auto const more = parse_patch(body(many + "," + one), users());
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().status, 413);

  // A key is an operation too.
  std::string keys;
  for (std::size_t i = 0; i <= patch_operations_max; ++i) {
    keys += (i == 0 ? "\"" : ",\"") + ("emails[value eq '" + std::to_string(i) + "'].type\":\"t\"");
  }
  auto const divided = parse_patch(body(R"({"op":"add","value":{)" + keys + "}}"), users());
  ASSERT_FALSE(divided);
  EXPECT_EQ(divided.error().status, 413);

  // Long values, asked over and over.
  auto const resource = [](std::string_view character) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) {
      text += character;
    }
    return *json::parse(R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],)" + b +
                        R"(,"emails":[{"value":")" + text + "\"}]}");
  };
  std::string filter = "value eq 'a'";
  for (int i = 0; i < 255; ++i) {
    filter += " or value eq 'a'";
  }
  auto const asked = R"({"op":"remove","path":"emails[)" + filter + "]\"}";
  std::string often = asked;
  for (int i = 0; i < 5; ++i) {
    often += "," + asked;
  }
  EXPECT_EQ(patched(resource("x"), often, users()), "|tooMany");
  EXPECT_EQ(patched(resource("\u00e9"), asked, users()), "|tooMany");
}

// ── members of groups ──

auto split(std::string const& operations) -> result<group_patch, error> {
  auto parsed = parse_patch(body(operations), groups());
  if (!parsed) {
    return failure(parsed.error());
  }
  return split_members(*std::move(parsed), groups());
}

/// One line for each change: its kind and members.
auto text_of(std::vector<member_change> const& changes) -> std::string {
  std::string out;
  for (auto const& c : changes) {
    switch (c.action) {
      case member_action::add: out += "add "; break;
      case member_action::remove: out += "remove "; break;
      case member_action::remove_all: out += "remove_all "; break;
      case member_action::replace_all: out += "replace_all "; break;
      case member_action::remove_matching: out += "remove_matching "; break;
    }
    out += to_string(json::value(c.members)) +
           (c.value_filter ? canonical_text(*c.value_filter) : "") + ";";
  }
  return out;
}

TEST(scim_patch, divides_what_is_done_to_members) {
  struct split_row {
    char const* operations;
    char const* members;
    std::size_t rest;
  };
  for (
      auto const& r : std::vector<split_row>{
          {R"({"op":"replace","path":"displayName","value":"H"})", "", 1},
          {R"({"op":"Add","path":"members","value":[{"value":"X","display":"D","type":"User"},{"value":"y"}]})",
           R"(add [{"value":"X","display":"D","type":"User"},{"value":"y"}];)", 0},
          {R"({"op":"add","path":"members","value":{"Value":"x"}})", R"(add [{"value":"x"}];)", 0},
          {R"({"op":"add","path":"members","value":["x"]})", R"(add [{"value":"x"}];)", 0},
          {R"({"op":"add","path":"members","value":null})", "add [];", 0},
          {R"({"op":"replace","value":{"displayName":"H","members":[{"value":"x"}],"externalId":"e"}})",
           R"(replace_all [{"value":"x"}];)", 2},
          {R"({"op":"replace","path":"members","value":[]})", "replace_all [];", 0},
          {R"({"op":"replace","path":"members","value":null})", "remove_all [];", 0},
          {R"({"op":"remove","path":"members"})", "remove_all [];", 0},
          {R"({"op":"Remove","path":"members","value":[{"$ref":null,"value":"x"}]})",
           R"(remove [{"value":"x"}];)", 0},
          {R"({"op":"remove","path":"members[value eq 'Xy']"},{"op":"add","path":"members","value":{"value":"z"}})",
           R"(remove [{"value":"Xy"}];add [{"value":"z"}];)", 0},
          {R"({"op":"remove","path":"urn:ietf:params:scim:schemas:core:2.0:Group:MEMBERS[VALUE eq 'x']"})",
           R"(remove [{"value":"x"}];)", 0},
          {R"({"op":"remove","path":"members[value eq 'x' or type eq 'Group']"})",
           R"(remove_matching []members.value eq "x" or members.type eq "group";)", 0},
          {R"({"op":"remove","path":"members[value eq null]"})",
           "remove_matching []members.value eq null;", 0},
      }) {
    auto const s = split(r.operations);
    ASSERT_TRUE(s) << r.operations << s.error().detail;
    EXPECT_EQ(text_of(s->members), r.members) << r.operations;
    EXPECT_EQ(s->rest.size(), r.rest) << r.operations;
  }
}

TEST(scim_patch, refuses_what_members_cannot_become) {
  for (auto const& [operations, type] : std::vector<std::pair<char const*, scim_type>>{
           {R"({"op":"replace","path":"members[value eq 'x'].display","value":"D"})",
            scim_type::mutability},
           {R"({"op":"replace","path":"members[value eq 'x']","value":{"value":"y"}})",
            scim_type::mutability},
           {R"({"op":"add","path":"members[value eq 'x'].display","value":"D"})",
            scim_type::mutability},
           {R"({"op":"remove","path":"members.display"})", scim_type::mutability},
           {R"({"op":"remove","path":"members[value eq 'x'].display"})", scim_type::mutability},
           {R"({"op":"add","path":"members","value":[{"display":"D"}]})", scim_type::invalid_value},
           {R"({"op":"add","path":"members","value":[{"value":""}]})", scim_type::invalid_value},
           {R"({"op":"add","path":"members","value":[{"value":1}]})", scim_type::invalid_value},
           {R"({"op":"add","path":"members","value":[{"value":"x","none":1}]})",
            scim_type::invalid_syntax},
       }) {
    auto const s = split(operations);
    ASSERT_FALSE(s) << operations;
    EXPECT_EQ(s.error().type, type) << operations;
  }
}

TEST(scim_patch, leaves_members_of_other_types_alone) {
  auto parsed = parse_patch(body(R"({"op":"add","path":"title","value":"T"})"), users());
  auto const s = split_members(*std::move(parsed), users());
  ASSERT_TRUE(s);
  EXPECT_EQ(s->rest.size(), 1U);
  EXPECT_TRUE(s->members.empty());
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
