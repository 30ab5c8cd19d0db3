// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/filter.hpp>

#include <tidegate/json/parse.hpp>

#include <gtest/gtest.h>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

using enum filter_fault;

auto users() -> resource_definition const& {
  return user_definition();
}

/// Attributes of the types that a User lacks.
auto rooms() -> resource_definition const& {
  static auto const d = [] {
    auto const s = *read_schema(*json::parse(R"({"id":"urn:x:Room","attributes":[
        {"name":"number","type":"integer"},{"name":"size","type":"decimal"},
        {"name":"key","type":"binary"},{"name":"not"},
        {"name":"doors","type":"complex","multiValued":true,"subAttributes":[
          {"name":"code","returned":"never"},{"name":"side"}]}]})"));
    return *resource_definition::make({"Room", "Room", "", "/Rooms", "urn:x:Room", {}},
                                      std::span(&s, 1));
  }();
  return d;
}

auto canonical(std::string_view text, resource_definition const& d = users()) -> std::string {
  auto const f = parse_filter(text, d);
  return f ? canonical_text(*f) : to_string(f.error());
}

TEST(scim_filter, has_one_canonical_text_however_it_is_written) {
  struct row {
    std::string_view text;
    std::string_view canonical;
  };
  for (
      auto const& [text, expected] : {
          row{R"(userName eq "bjensen")", R"(username eq "bjensen")"},
          row{R"(  USERNAME   Eq   "BJensen"  )", R"(username eq "bjensen")"},
          row{R"(urn:ietf:params:scim:schemas:core:2.0:User:userName sw "J")",
              R"(username sw "j")"},
          row{R"(externalId eq "BJ")", R"(externalid eq "BJ")"},
          row{R"(userName eq "\u0041\/")", R"(username eq "a/")"},
          row{"title pr", "title pr"},
          row{"title PR AND (nickName pr OR locale pr)", "title pr and (nickname pr or locale pr)"},
          row{"title pr or nickName pr and locale pr", "title pr or nickname pr and locale pr"},
          row{"(title pr and (nickName pr)) and ((locale pr))",
              "title pr and nickname pr and locale pr"},
          row{"(title pr and nickName pr) or locale pr", "title pr and nickname pr or locale pr"},
          row{"not(title pr) and not   ( not (locale pr))",
              "not (title pr) and not (not (locale pr))"},
          row{R"(emails co "Example.com")", R"(emails.value co "example.com")"},
          row{R"(emails[type eq "work" and value co "@"])",
              R"(emails[type eq "work" and value co "@"])"},
          row{R"(emails[type eq "Work"].value eq "x")",
              R"(emails[type eq "work" and value eq "x"])"},
          row{R"(emails[type eq "a" or type eq "b"].value pr)",
              R"(emails[(type eq "a" or type eq "b") and value pr])"},
          row{R"(active eq true)", "active eq true"},
          row{R"(active eq "True")", "active eq true"},
          row{R"(title eq null)", "title eq null"},
          row{R"(emails ne null)", "emails ne null"},
          row{R"(meta.lastModified ge "2011-05-13T06:42:34+02:00")",
              R"(meta.lastmodified ge "2011-05-13T04:42:34.000000000Z")"},
          row{R"(urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager.VALUE eq "A")",
              R"(urn:ietf:params:scim:schemas:extension:enterprise:2.0:user:manager.value eq "a")"},
          row{"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User pr",
              "urn:ietf:params:scim:schemas:extension:enterprise:2.0:user pr"},
          row{R"(schemas eq "urn:X")", R"(schemas eq "urn:x")"},
      }) {
    EXPECT_EQ(canonical(text), expected);
    EXPECT_EQ(canonical(expected), expected);
    EXPECT_EQ(parse_filter(text, users()), parse_filter(expected, users()));
  }
  EXPECT_EQ(canonical("number gt 1.0e2", rooms()), "number gt 100");
  EXPECT_EQ(canonical("size lt -1.50", rooms()), "size lt -1.5");
  EXPECT_EQ(canonical("size lt 1e30", rooms()), "size lt 1e+30");
  EXPECT_EQ(canonical("not pr and not (NOT pr)", rooms()), "not pr and not (not pr)");
}

TEST(scim_filter, takes_a_bare_word_for_a_text) {
  struct row {
    std::string_view text;
    std::string_view meant;
  };
  for (auto const& [text, meant] : {
           row{"userName sw J", R"(userName sw "J")"},
           row{"externalId eq jyoung", R"(externalId eq "jyoung")"},
           row{"meta.Created gt 2015-10-10T14:38:21.8617979-07:00",
               R"(meta.created gt "2015-10-10T14:38:21.8617979-07:00")"},
           row{"name.FamilyName eq Employee and (emails.Value co example.com or title pr)",
               R"(name.familyName eq "Employee" and (emails.value co "example.com" or title pr))"},
           row{"userName eq b.jensen+x@example.com", R"(userName eq "b.jensen+x@example.com")"},
           row{"id eq 2819c223-7f76-453a-919d-413861904646",
               R"(id eq "2819c223-7f76-453a-919d-413861904646")"},
           row{"id eq 1e5-3", R"(id eq "1e5-3")"},
           row{"title eq 1x", R"(title eq "1x")"},
           row{"title eq 555-1234", R"(title eq "555-1234")"},
           row{"externalId eq 0012", R"(externalId eq "0012")"},
           row{"(externalId eq -01)", R"(externalId eq "-01")"},
           row{"title eq +49", R"(title eq "+49")"},
           row{"title eq - or title eq 1. or title eq .5 or title eq -.5",
               R"(title eq "-" or title eq "1." or title eq ".5" or title eq "-.5")"},
           row{"title eq 1e or title eq 1e+ or title eq 1.e2 or title eq 0x1",
               R"(title eq "1e" or title eq "1e+" or title eq "1.e2" or title eq "0x1")"},
           row{"title eq 1.5.2 or title eq 00 or title eq 2015-01-01",
               R"(title eq "1.5.2" or title eq "00" or title eq "2015-01-01")"},
           row{"id eq 00000000-7f76-453a-919d-413861904646",
               R"(id eq "00000000-7f76-453a-919d-413861904646")"},
           row{"title eq /a/b", R"(title eq "/a/b")"},
           row{"title eq O'Malley", R"(title eq "O'Malley")"},
           row{"title eq \u00e9t\u00e9", "title eq \"\u00e9t\u00e9\""},
           row{"title eq truely or title eq nullx or title eq falsey",
               R"(title eq "truely" or title eq "nullx" or title eq "falsey")"},
           row{"title eq andy or title eq orb", R"(title eq "andy" or title eq "orb")"},
           row{"title eq Null", R"(title eq "Null")"},
           row{"active eq True", "active eq true"},
           row{"emails[type eq work].value sw b", R"(emails[type eq "work"].value sw "b")"},
           row{"not (title eq x)", R"(not (title eq "x"))"},
           row{"id eq X and manager eq Y",
               R"(id eq "X" and )"
               R"(urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager eq "Y")"},
       }) {
    auto const bare = parse_filter(text, users());
    ASSERT_TRUE(bare) << text << ": " << to_string(bare.error());
    EXPECT_EQ(*bare, *parse_filter(meant, users())) << text;
  }
  // What is a value of JSON stays one.
  EXPECT_EQ(canonical("active eq true"), "active eq true");
  EXPECT_EQ(canonical("title eq null"), "title eq null");
  EXPECT_EQ(canonical("number eq -1e2", rooms()), "number eq -100");
  EXPECT_EQ(canonical("number eq 0", rooms()), "number eq 0");
  EXPECT_EQ(canonical("size eq -0.5E+1", rooms()), "size eq -5");
  EXPECT_EQ(parse_patch_path("emails[value eq x]", users())->literals,
            std::vector<json::value>{json::value("x")});
}

TEST(scim_filter, has_no_value_among_types_where_this_one_lacks_the_attribute) {
  struct row {
    std::string_view text;
    std::string_view canonical;  // "nothing" when nothing can match
  };
  auto const asked = [](std::string_view text) -> std::string {
    auto const f = parse_filter_among_types(text, rooms());
    return !f ? to_string(f.error()) : never_matches(*f) ? "nothing" : canonical_text(*f);
  };
  for (auto const& [text, expected] : {
           row{"number eq 1", "number eq 1"},
           row{R"(userName eq "x")", "nothing"},
           row{"userName pr", "nothing"},
           row{"userName gt 5", "nothing"},
           row{"userName ne 1", "id pr"},
           row{"userName eq null", "id pr"},
           row{"userName ne null", "nothing"},
           row{R"(name.givenName eq "x" and number eq 1)", "nothing"},
           row{R"(number eq 1 or urn:y:Other:userName eq "x")", "number eq 1"},
           row{"not (userName pr)", "id pr"},
           row{"number eq 1 and not (userName pr)", "number eq 1"},
           row{"number eq 1 or not (userName pr)", "id pr"},
           row{R"(emails[type eq "work" and value pr] or number eq 1)", "number eq 1"},
           row{R"(not (emails[type eq "work"].value eq "x") and number eq 1)", "number eq 1"},
           row{R"(number.none eq "x" or not pr)", "not pr"},
           row{R"(doors[none eq "x"])", "no such sub-attribute at offset 6"},
           row{R"(emails[type is "x"])", "the operator is not supported at offset 12"},
           row{R"(emails[emails[type pr]])",
               "square brackets inside of square brackets at offset 13"},
           row{"9 eq 1", "not the name of an attribute at offset 0"},
           row{"userName eq", "a value is expected at offset 11"},
       }) {
    EXPECT_EQ(asked(text), expected) << text;
  }
}

TEST(scim_filter, is_refused_with_the_place) {
  struct row {
    std::string_view text;
    filter_error error;
  };
  for (auto const& [text, error] : {
           row{"", {expression_expected, 0}},
           row{"   ", {expression_expected, 3}},
           row{"title", {operator_expected, 5}},
           row{"title ", {operator_expected, 6}},
           row{"title[", {not_complex, 5}},
           row{"title pr and", {expression_expected, 12}},
           row{"title pr or ", {expression_expected, 12}},
           row{"and title pr", {unknown_attribute, 0}},
           row{"title pr title pr", {end_expected, 9}},
           row{"title pr)", {end_expected, 8}},
           row{"(title pr", {round_bracket_expected, 9}},
           row{"(title pr]", {round_bracket_expected, 9}},
           row{"()", {expression_expected, 1}},
           row{"not title pr", {unknown_attribute, 0}},
           row{"not (title pr", {round_bracket_expected, 13}},
           row{"emails[type pr", {square_bracket_expected, 14}},
           row{"emails[type pr)", {square_bracket_expected, 14}},
           row{"emails[]", {expression_expected, 7}},
           row{"emails [type pr]", {operator_expected, 7}},
           row{"emails[shoe pr]", {unknown_sub_attribute, 7}},
           row{"emails[emails.type pr]", {malformed_path, 7}},
           row{"emails[type[value pr]]", {nested_value_path, 11}},
           row{"emails.type[value pr]", {not_complex, 11}},
           row{"emails[type pr].", {malformed_path, 16}},
           row{"emails[type pr].shoe pr", {unknown_sub_attribute, 16}},
           row{"emails[type pr].value", {operator_expected, 21}},
           row{"emails[type pr] pr", {end_expected, 16}},
           row{"1title pr", {malformed_path, 0}},
           row{"ti*tle pr", {malformed_path, 0}},
           row{"shoeSize pr", {unknown_attribute, 0}},
           row{"title pr and shoeSize pr", {unknown_attribute, 13}},
           row{"name.shoe pr", {unknown_sub_attribute, 5}},
           row{"title.shoe pr", {unknown_sub_attribute, 6}},
           row{"urn:x:User:title pr", {unknown_schema, 0}},
           row{"urn:ietf:params:scim:schemas:core:2.0:User:shoe pr", {unknown_attribute, 43}},
           row{R"(name eq "x")", {sub_attribute_needed, 0}},
           row{R"(urn:ietf:params:scim:schemas:extension:enterprise:2.0:User eq "x")",
               {sub_attribute_needed, 0}},
           row{R"(password eq "x")", {not_filterable, 0}},
           row{R"(password pr)", {not_filterable, 0}},
           row{R"(title regex "x")", {unknown_operator, 6}},
           row{R"(title = "x")", {unknown_operator, 6}},
           row{"title eq", {value_expected, 8}},
           row{"title eq ", {value_expected, 9}},
           row{"title eq and", {value_expected, 9}},
           row{"title eq Not", {value_expected, 9}},
           row{"title eq AND title pr", {value_expected, 9}},
           row{"title eq {x}", {value_expected, 9}},
           row{R"(title eq a\b)", {invalid_value, 10}},
           row{"title eq a\tb", {invalid_value, 10}},
           row{"title eq a\xff", {invalid_value, 10}},
           row{R"(title eq a"b")", {invalid_value, 10}},
           row{"title eq a(b)", {invalid_value, 10}},
           row{"title eq a b", {end_expected, 11}},
           row{"title gt nullx)", {end_expected, 14}},
           row{"active eq yes", {wrong_type, 10}},
           row{"meta.created gt 2011-05-13", {wrong_type, 16}},
           row{"title eq 'x'", {value_expected, 9}},
           row{"title eq [1]", {value_expected, 9}},
           row{R"(title eq "x)", {invalid_value, 11}},
           row{R"(title eq "\q")", {invalid_value, 10}},
           row{"title eq \"\xff\"", {invalid_value, 10}},
           row{R"(title eq "x"y)", {invalid_value, 12}},
           row{"title eq true", {wrong_type, 9}},
           row{"title eq 1", {wrong_type, 9}},
           row{R"(active eq "yes")", {wrong_type, 10}},
           row{"active eq 1", {wrong_type, 10}},
           row{"active gt true", {operator_not_allowed, 7}},
           row{"active co true", {operator_not_allowed, 7}},
           row{R"(x509Certificates.value gt "AQ==")", {operator_not_allowed, 23}},
           row{R"(meta.created co "2011")", {operator_not_allowed, 13}},
           row{R"(meta.created gt "2011")", {wrong_type, 16}},
           row{"title gt null", {operator_not_allowed, 6}},
           row{"title\tpr", {malformed_path, 0}},
       }) {
    auto const f = parse_filter(text, users());
    ASSERT_FALSE(f) << text;
    EXPECT_EQ(f.error(), error) << text << ": " << to_string(f.error());
  }
  for (auto const& [text, error] : {
           row{R"(number eq "1")", {wrong_type, 10}},
           row{"number eq 1x", {wrong_type, 10}},
           row{"number eq one", {wrong_type, 10}},
           row{"number eq 01", {wrong_type, 10}},
           row{"number eq true", {wrong_type, 10}},
           row{"number sw 1", {operator_not_allowed, 7}},
           row{R"(size eq true)", {wrong_type, 8}},
           row{R"(doors[code sw "1"])", {not_filterable, 6}},
           row{R"(doors.code pr)", {not_filterable, 0}},
           row{R"(doors[side pr].code eq "1")", {not_filterable, 15}},
       }) {
    EXPECT_EQ(parse_filter(text, rooms()).error(), error) << text;
  }
}

TEST(scim_filter, is_bounded_in_length_depth_and_terms) {
  filter_limits const limits{.octets_max = 40, .depth_max = 2, .terms_max = 3};
  EXPECT_TRUE(parse_filter("((title pr))", users(), limits));
  EXPECT_EQ(parse_filter("(((title pr)))", users(), limits).error(), (filter_error{too_deep, 2}));
  EXPECT_EQ(parse_filter("((emails[type pr]))", users(), limits).error(),
            (filter_error{too_deep, 8}));
  EXPECT_TRUE(parse_filter("id pr or id pr or id pr", users(), limits));
  EXPECT_EQ(parse_filter("id pr or id pr or id pr or id pr", users(), limits).error(),
            (filter_error{too_many_terms, 27}));
  EXPECT_EQ(parse_filter(std::string(41, ' '), users(), limits).error(),
            (filter_error{too_long, 40}));
  EXPECT_EQ(parse_filter(std::string(8000, '('), users()).error(), (filter_error{too_deep, 32}));
}

TEST(scim_filter, finds_the_resources_that_it_asks_for) {
  auto const user = *json::parse(R"({
    "schemas":["urn:ietf:params:scim:schemas:core:2.0:User",
               "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
    "id":"2819c223","externalId":"BJ","userName":"BJensen@example.com",
    "name":{"familyName":"O'Malley","givenName":"J\u00dcrgen"},
    "userType":"Employee","title":"","active":true,
    "emails":[{"value":"bj@example.com","type":"work","primary":true},{"value":"b@home.org"}],
    "meta":{"lastModified":"2011-05-13T04:42:34Z"},
    "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"manager":{"value":"M1"}}})");
  struct row {
    std::string_view text;
    bool found;
  };
  for (auto const& [text, found] : {
           row{R"(userName eq "bjensen@EXAMPLE.com")", true},
           row{R"(userName ne "bjensen@EXAMPLE.com")", false},
           row{R"(externalId eq "bj")", false},
           row{R"(externalId eq "BJ")", true},
           row{R"(name.familyName co "o'm")", true},
           row{R"(name.givenName eq "j)"
               "\u00fc"
               R"(rgen")",
               true},
           row{R"(userName sw "bj")", true},
           row{R"(userName ew "COM")", true},
           row{R"(userName sw "x")", false},
           row{R"(userName gt "bj")", true},
           row{R"(userName lt "bj")", false},
           row{R"(userName ge "BJENSEN@example.com")", true},
           row{R"(userName gt "BJENSEN@example.com")", false},
           row{"title pr", false},
           row{R"(title eq "")", true},
           row{R"(title eq null)", true},
           row{R"(nickName ne "x")", true},
           row{R"(nickName eq "x")", false},
           row{R"(not (nickName eq "x"))", true},
           row{R"(nickName lt "x")", false},
           row{"nickName eq null", true},
           row{"userName ne null", true},
           row{"name pr", true},
           row{"addresses pr", false},
           row{"active eq true", true},
           row{"active ne true", false},
           row{R"(emails co "home.org")", true},
           row{R"(emails.type eq "work")", true},
           row{R"(emails.type ne "work")", true},  // the second has no type
           row{R"(emails[type eq "work" and value ew "org"])", false},
           row{R"(emails.type eq "work" and emails.value ew "org")", true},
           row{R"(emails[type ne "work"].value ew "org")", true},
           row{R"(emails[not (type pr)])", true},
           row{R"(ims[not (type pr)])", false},
           row{R"(emails[primary eq true and value sw "BJ"])", true},
           row{R"(meta.lastModified eq "2011-05-13T06:42:34.0+02:00")", true},
           row{R"(meta.lastModified gt "2011-05-13T04:42:33.999Z")", true},
           row{R"(meta.lastModified le "2011-05-13T04:42:33.999Z")", false},
           row{R"(meta.created gt "2011-05-13T04:42:34Z")", false},
           row{R"(urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager eq "m1")",
               true},
           row{"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User pr", true},
           row{"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:division pr", false},
           row{R"(schemas eq "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User")", true},
           row{R"(schemas co "group")", false},
           row{R"(title pr or userType eq "Intern" or active eq true)", true},
           row{R"(active eq true or title pr and title pr)", true},
           row{R"((active eq true or title pr) and title pr)", false},
           row{R"(not (title pr) and active eq true)", true},
       }) {
    auto const f = parse_filter(text, users());
    ASSERT_TRUE(f) << text << ": " << to_string(f.error());
    EXPECT_EQ(matches(*f, user), found) << text;
  }
}

TEST(scim_filter, compares_numbers_exactly) {
  struct row {
    std::string_view resource;
    std::string_view text;
    bool found;
  };
  for (auto const& [resource, text, found] : {
           row{R"({"number":9007199254740993})", "number gt 9007199254740992.0", true},
           row{R"({"number":9007199254740993})", "number eq 9007199254740993", true},
           row{R"({"number":9223372036854775807})", "number lt 9223372036854775808.0", true},
           row{R"({"number":-5})", "number gt -1e300", true},
           row{R"({"number":-5})", "number lt -4.5", true},
           row{R"({"size":1.5})", "size gt 1", true},
           row{R"({"size":1})", "size lt 1.5", true},
           row{R"({"size":1})", "size eq 1.0", true},
           row{R"({"size":"1"})", "size eq 1", false},
           row{R"({"size":"1"})", "size ne 1", true},
       }) {
    EXPECT_EQ(matches(*parse_filter(text, rooms()), *json::parse(resource)), found)
        << resource << text;
  }
}

TEST(scim_patch_path, names_what_an_operation_is_about) {
  struct row {
    std::string_view text;
    std::string_view name;
    std::string_view value_filter;
  };
  for (auto const& [text, name, value_filter] : {
           row{"userName", "username", ""},
           row{" NAME.familyname ", "name.familyname", ""},
           row{"password", "password", ""},
           row{"emails", "emails", ""},
           row{R"(emails[type eq "work"])", "emails", R"(emails[type eq "work"])"},
           row{R"(emails[type eq "work"].value)", "emails.value", R"(emails[type eq "work"])"},
           row{"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User",
               "urn:ietf:params:scim:schemas:extension:enterprise:2.0:user", ""},
           row{"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager",
               "urn:ietf:params:scim:schemas:extension:enterprise:2.0:user:manager", ""},
       }) {
    auto const path = parse_patch_path(text, users());
    ASSERT_TRUE(path) << text << to_string(path.error());
    EXPECT_EQ(canonical_name(path->path), name);
    EXPECT_EQ(path->value_filter.has_value(), !value_filter.empty());
    if (path->value_filter) {
      EXPECT_EQ(parse_filter(value_filter, users())->operands.front(), *path->value_filter);
    }
  }
  auto const path = *parse_patch_path(R"(emails[type eq "work"].value)", users());
  EXPECT_TRUE(matches_value(*path.value_filter, *json::parse(R"({"type":"WORK"})")));
  EXPECT_FALSE(matches_value(*path.value_filter, *json::parse(R"({"type":"home"})")));
}

TEST(scim_patch_path, is_refused_with_the_place) {
  struct row {
    std::string_view text;
    filter_error error;
  };
  for (auto const& [text, error] : {
           row{"", {expression_expected, 0}},
           row{"shoeSize", {unknown_attribute, 0}},
           row{"name.shoe", {unknown_sub_attribute, 5}},
           row{"userName pr", {end_expected, 9}},
           row{"userName[value pr]", {not_complex, 8}},
           row{"emails[", {expression_expected, 7}},
           row{"emails[type pr", {square_bracket_expected, 14}},
           row{"emails[type pr]x", {end_expected, 15}},
           row{"emails[type pr].x", {unknown_sub_attribute, 16}},
           row{"emails[type pr].value.x", {malformed_path, 16}},
           row{"urn:x:User:userName", {unknown_schema, 0}},
       }) {
    auto const path = parse_patch_path(text, users());
    ASSERT_FALSE(path) << text;
    EXPECT_EQ(path.error(), error) << text << ": " << to_string(path.error());
  }
  EXPECT_EQ(parse_patch_path(std::string(9000, 'a'), users()).error(),
            (filter_error{too_long, 8192}));
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
