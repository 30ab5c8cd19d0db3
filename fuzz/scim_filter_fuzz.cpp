// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a filter of users, and as a path of PATCH:
//
// - never a crash; the place of an error is in the text or behind it;
// - the canonical text is a filter with the same tree, and its own canonical text;
// - the case of names makes no difference: in lower case, a filter without text in it is the same;
// - a bare word that is taken is the text with quotes around it;
// - a filter and its canonical text answer alike, and `not` of it answers the other way;
// - a filter has one condition in SQL, with as many placeholders as values and none of its text in
//   it; the two dialects differ in the placeholders only;
// - a path with a value filter has the tree of the filter with the same brackets.
#include "check.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/scim/filter.hpp>
#include <tidegate/scim/filter_sql.hpp>
#include <tidegate/scim/model.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace json = tidegate::json;
using namespace tidegate::scim;
using tidegate::fuzz::check;

/// Users with an extension that has numbers, and some more indexes.
auto user_type() -> model_type const& {
  static auto const directory = [] {
    std::array const schemas{*read_schema(*json::parse(
        R"({"id":"urn:x:N","attributes":[{"name":"i","type":"integer"},{"name":"d","type":"decimal",
            "multiValued":true}]})"))};
    auto type = builtin_resource_types()[0];
    type.schema_extensions.push_back({"urn:x:N", false});
    std::array const types{type};
    std::array<std::string, 6> const indexes{"title",     "active",    "name.givenName",
                                             "urn:x:N:i", "urn:x:N:d", "meta.created"};
    return *model::make(schemas, types, indexes);
  }();
  return *directory.find("User");
}

auto users() -> resource_definition const& {
  return user_type().definition;
}

auto compile(filter const& f, sql_dialect dialect) -> filter_sql {
  static std::vector<std::int64_t> const index_ids(user_type().indexes.size(), 1);
  return compile_filter(f, user_type(), index_ids, dialect, 1, {1, 2});
}

void check_sql(filter const& f, filter const& again) {
  auto const sqlite = compile(f, sql_dialect::sqlite);
  auto const postgresql = compile(f, sql_dialect::postgresql);
  check(sqlite.values == postgresql.values && sqlite.exact == postgresql.exact);
  check(std::ranges::count(sqlite.condition, '?') ==
        static_cast<std::ptrdiff_t>(sqlite.values.size()));
  auto translated = sqlite.condition;
  std::ranges::replace(translated, '?', '$');
  check(translated == postgresql.condition);
  constexpr std::string_view allowed =
      "abcdefghijklmnopqrstuvwxyzACDEFHILMNORSTUWX_.0123456789=<>?,() ";
  check(sqlite.condition.find_first_not_of(allowed) == std::string::npos);
  check(!sqlite.exact || !sqlite.condition.empty());
  auto const of_again = compile(again, sql_dialect::sqlite);
  check(of_again.condition == sqlite.condition && of_again.values == sqlite.values);
}

/// Whether something in it is compared with a text or a moment.
auto has_text(filter const& f) -> bool {
  return std::holds_alternative<std::string>(f.value) ||
         std::holds_alternative<date_time>(f.value) || std::ranges::any_of(f.operands, has_text);
}

void check_bare_word(std::string_view word) {
  bool const is_word = word.find_first_of(" \"()[]") == std::string_view::npos;
  if (!is_word || word == "null") {
    return;
  }
  filter_limits wider;
  wider.octets_max = 16 * (word.size() + 16);
  if (auto const bare = parse_filter("title eq " + std::string(word), users(), wider)) {
    std::string quoted = "title eq ";
    json::append(quoted, json::value(word));
    check(parse_filter(quoted, users(), wider) == bare);
  }
}

auto resources() -> std::array<json::value, 3> const& {
  static std::array<json::value, 3> const all{
      json::object(),
      *json::parse(R"({"id":"1","userName":"a","active":true,"title":"","name":{"givenName":"A"},
        "emails":[{"value":"a@b","type":"work","primary":true},{"type":"home"}],
        "meta":{"created":"2011-05-13T04:42:34Z"},"urn:x:N":{"i":1,"d":[0.5,2]},
        "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"manager":{"value":"m"}}})"),
      *json::parse(R"({"userName":1,"active":"x","emails":{"value":["a"]},"meta":[{"created":[]}],
        "name":[[{"givenName":{}}]],"urn:x:N":[1],"ims":[null,1,{}]})"),
  };
  return all;
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  auto const text = std::string_view(reinterpret_cast<char const*>(data), size);
  // A canonical text may be longer, and deeper by the brackets of `a[x or y].b pr`.
  filter_limits wider;
  wider.octets_max = 16 * (size + 16);
  wider.depth_max += 1;

  auto const f = parse_filter(text, users());
  if (!f) {
    check(f.error().offset <= size);
    check(!to_string(f.error()).empty());
  } else {
    auto const canonical = canonical_text(*f);
    auto const again = parse_filter(canonical, users(), wider);
    check(again.has_value() && *again == *f);
    check(canonical_text(*again) == canonical);
    if (!has_text(*f)) {
      check(parse_filter(tidegate::lower_case(text), users()) == f);
    }
    check_sql(*f, *again);
    auto const inverse = parse_filter("not (" + canonical + ")", users(), wider);
    for (auto const& resource : resources()) {
      check(matches(*again, resource) == matches(*f, resource));
      check(!inverse || matches(*inverse, resource) != matches(*f, resource));
    }
  }

  check_bare_word(text);

  auto const path = parse_patch_path(text, users());
  if (!path) {
    check(path.error().offset <= size);
  } else if (path->value_filter) {
    check(path->path.parent != nullptr);
    filter whole;
    whole.kind = filter_kind::value_path;
    whole.path = {path->path.extension, path->path.parent, nullptr};
    whole.operands.push_back(*path->value_filter);
    check(parse_filter(canonical_text(whole), users(), wider) == whole);
    for (auto const& resource : resources()) {
      (void)matches_value(*path->value_filter, resource);
    }
  }
  return 0;
}
