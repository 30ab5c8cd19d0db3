// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/plain_resource.hpp>

#include <tidegate/json/parse.hpp>
#include <tidegate/scim/resource.hpp>

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

auto const own =
    *json::parse(R"({"id":"7","meta":{"resourceType":"User","created":"2026-01-02T03:04:05Z",)"
                 R"("lastModified":"2026-01-02T03:04:05Z","version":"W/\"1\""}})");

auto the_model() -> model const& {
  static auto const made =
      *model::make({}, {},
                   std::array<std::string, 5>{"active", "name.familyName", "meta.version",
                                              "urn:ietf:params:scim:schemas:extension:"
                                              "enterprise:2.0:User:department",
                                              "phoneNumbers"});
  return made;
}

auto users() -> model_type const& {
  return *the_model().find("User");
}

auto read(std::string_view text) -> std::optional<kept_form> {
  return read_plain_resource(text, users(), own);
}

/// What is made of a text the long way; nothing when it is refused.
auto read_long(std::string_view text, unknown_attributes unknown = unknown_attributes::refuse)
    -> std::optional<kept_form> {
  auto value = json::parse(text);
  auto const resource = value ? read_resource(*std::move(value), users().definition, unknown)
                              : result<json::value, resource_error>(failure(resource_error{}));
  if (!resource) {
    return std::nullopt;
  }
  json::object whole;
  for (auto const& m : resource->if_object()->members()) {
    whole.append(m.name, m.value);
    if (m.name == "schemas") {
      whole.append("id", *own.find("id"));
    }
  }
  whole.append("meta", *own.find("meta"));
  json::value const made(std::move(whole));
  return kept_form{to_string(made), index_entries(users(), made)};
}

constexpr std::string_view base = R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"])";
constexpr std::string_view whole =
    R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User",)"
    R"("urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],"externalId":"E-1",)"
    R"("userName":"Ada@example.com","name":{"formatted":"Ada L","familyName":"Lovelace"},)"
    R"("displayName":"Ad)"
    "\u00e1"
    R"(","active":true,"emails":[{"value":"Ada@example.com","type":"work","primary":true}],)"
    R"("phoneNumbers":[{"value":"+44"}],)"
    R"("urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"department":"R"}})";

TEST(scim_plain_resource, is_kept_as_it_stands_between_what_the_service_adds) {
  auto const made = read(std::string(base) + R"(,"userName":"a"})");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->text,
            R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"id":"7","userName":"a",)"
            R"("meta":{"resourceType":"User","created":"2026-01-02T03:04:05Z",)"
            R"("lastModified":"2026-01-02T03:04:05Z","version":"W/\"1\""}})");
}

TEST(scim_plain_resource, is_what_it_is_the_long_way) {
  auto const with = [](std::string_view more) { return std::string(base) + std::string(more); };
  for (auto const& text : {
           std::string(whole),
           with(R"(,"userName":"a"})"),
           with(R"(,"userName":"a","active":false})"),
           with(R"(,"userName":"a","nickName":""})"),
           with(R"(,"title":"b","userName":"a"})"),
           with(R"(,"userName":"\u007f"})"),
           with(" , \"userName\" :\t\"a\" , \"emails\" : [ { \"value\" : \"B\" } ]\r\n} \n"),
       }) {
    SCOPED_TRACE(text);
    auto const made = read(text);
    ASSERT_EQ(made.has_value(), !text.contains('\\'));
    if (made) {
      EXPECT_EQ(made, read_long(text));
      EXPECT_EQ(made, read_long(text, unknown_attributes::ignore));
    }
  }
}

TEST(scim_plain_resource, is_not_what_is_wrong_or_would_not_be_kept_as_it_stands) {
  for (auto const* const more : {
           "",
           ",",
           "}",
           R"(,"userName":"a")",
           R"(,"userName":"a"}})",
           R"(,"userName":"a",})",
           R"(,"userName":""})",
           R"(,"userName":"a\n"})",
           R"(,"userName":1})",
           R"(,"userName":["a"]})",
           R"(,"username":"a"})",
           R"(,"userName":"a","userName":"a"})",
           R"(,"userName":"a","schemas":[]})",
           R"(,"userName":"a","title":null})",
           R"(,"userName":"a","name":{}})",
           R"(,"userName":"a","name":"b"})",
           R"(,"userName":"a","name":{"formatted":"b","formatted":"b"}})",
           R"(,"userName":"a","emails":[]})",
           R"(,"userName":"a","emails":{"value":"b"}})",
           R"(,"userName":"a","emails":[{"value":"b"},{"value":"c"}]})",
           R"(,"userName":"a","active":"true"})",
           R"(,"userName":"a","id":"1"})",
           R"(,"userName":"a","meta":{"version":"1"}})",
           R"(,"userName":"a","groups":[{"value":"1"}]})",
           R"(,"userName":"a","password":"b"})",
           R"(,"userName":"a","colour":"b"})",
           R"(,"userName":"a","name":{"formatted":"b","colour":"c"}})",
           R"(,"userName":"a","title":["b"]})",
           R"(,"userName":"a","emails":["b"]})",
           R"(,"userName":"a","department":null})",
           R"(,"userName":"a","x509Certificates":[{"value":"!"}]})",
           R"(,"userName":"a","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{}})",
           ",\"userName\":\"\xff\"}",
           ",\"userName\":\"\xed\xa0\x80\"}",
           ",\"userName\":\"\x01\"}",
       }) {
    EXPECT_FALSE(read(std::string(base) + more)) << more;
  }
  auto const group = R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],)"
                     R"("displayName":"a"})";
  EXPECT_FALSE(read_plain_resource(group, *the_model().find("Group"), own));
}

TEST(scim_plain_resource, lists_the_schemas_of_what_it_has_and_no_other) {
  constexpr std::string_view extension =
      "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
  auto const text = [&](std::string_view schemas, std::string_view more) {
    return R"({"schemas":[)" + std::string(schemas) + R"(],"userName":"a")" + std::string(more) +
           "}";
  };
  auto const quoted = [](std::string_view urn) { return '"' + std::string(urn) + '"'; };
  auto const user = quoted(user_schema);
  auto const both = user + "," + quoted(extension);
  auto const data = "," + quoted(extension) + R"(:{"department":"R"})";
  EXPECT_TRUE(read(text(both, data)));
  EXPECT_FALSE(read(text(both, "")));
  EXPECT_FALSE(read(text(user, data)));
  EXPECT_FALSE(read(text("", "")));
  EXPECT_FALSE(read(text(quoted(extension), data)));
  EXPECT_FALSE(read(text(quoted(extension) + "," + user, data)));
  EXPECT_FALSE(read(text(both + "," + quoted(extension), data + data)));
  EXPECT_FALSE(read(text(both, data + R"(,"title":"t")")));
  EXPECT_FALSE(read(text(user + R"(,"urn:x")", "")));
  auto const other = [&](std::string const& members) {
    return "," + quoted(extension) + ":{" + members + "}";
  };
  EXPECT_FALSE(read(text(both, other(R"("manager":"m")"))));
  EXPECT_FALSE(read(text(both, other(R"("manager":{"value":""})"))));
  EXPECT_FALSE(
      read(text(both, other(R"("schemas":[)" + quoted(extension) + R"(],"department":"R")"))));
}

TEST(scim_plain_resource, never_differs_from_the_long_way_whatever_is_changed_in_it) {
  constexpr auto pieces = std::to_array<std::string_view>({"\"",
                                                           ",",
                                                           "{",
                                                           "}",
                                                           "[",
                                                           "]",
                                                           ":",
                                                           " ",
                                                           "\\",
                                                           "null",
                                                           "true",
                                                           "\"type\":\"home\",",
                                                           "a",
                                                           "\"value\":\"b\"",
                                                           ",\"title\":\"T\"",
                                                           "\"\"",
                                                           "\xc3",
                                                           "\u00e9",
                                                           "\x01",
                                                           ",{\"value\":\"c\"}",
                                                           "1",
                                                           "\"active\":false,",
                                                           "\"colour\":\"x\",",
                                                           "[\"b\"]",
                                                           ",\"urn:x\"",
                                                           "A"});
  std::mt19937 random(7);
  auto const below = [&](std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
  };
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text(whole);
    for (auto changes = 1 + below(3); changes > 0; --changes) {
      auto const at = below(text.size());
      auto const size = below(3) == 0 ? below(40) : below(3);
      if (below(4) == 0) {  // from somewhere else in it
        text.insert(at, std::string(text, below(text.size()), size));
      } else {
        text.replace(at, below(2) == 0 ? 0 : size, pieces[below(pieces.size())]);
      }
    }
    auto const made = read(text);
    if (made) {
      ++accepted;
      ASSERT_EQ(made, read_long(text)) << text;
      ASSERT_EQ(made, read_long(text, unknown_attributes::ignore)) << text;
    }
  }
  EXPECT_GT(accepted, 500);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
