// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/filter_sql.hpp>

#include "filter/filter_plan.hpp"

#include <tidegate/json/parse.hpp>
#include <tidegate/scim/index_key.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

using ids = std::vector<std::int64_t>;

/// Users and Groups as they are, with two more indexes.
auto directory() -> model const& {
  static auto const m = *model::make({}, {}, std::vector<std::string>{"title", "active", "roles"});
  return m;
}

/// The index number `i` has the id 10 + i; 1 and 2 are the indexes of ids of all types.
auto compile(model_type const& type, std::string_view text,
             sql_dialect dialect = sql_dialect::sqlite, std::size_t first = 1) -> filter_sql {
  ids index_ids;
  for (std::size_t i = 0; i < type.indexes.size(); ++i) {
    index_ids.push_back(static_cast<std::int64_t>(10 + i));
  }
  auto const f = parse_filter(text, type.definition);
  EXPECT_TRUE(f) << text;
  return compile_filter(*f, type, index_ids, dialect, first, {1, 2});
}

/// The condition with its values: an index by its name, a key as text, with `<` for 0x01, `>` for
/// 0x02 and `0` for 0x00.
auto readable(model_type const& type, filter_sql const& sql) -> std::string {
  auto out = sql.condition;
  for (auto i = sql.values.size(); i > 0; --i) {
    std::string shown;
    auto const& value = sql.values[i - 1];
    if (auto const* const number = std::get_if<std::int64_t>(&value)) {
      shown = *number < 10 ? std::to_string(*number)
                           : type.indexes[static_cast<std::size_t>(*number - 10)].name;
    } else {
      shown = "'" + std::get<std::string>(value) + "'";
      std::ranges::replace(shown, '\x01', '<');
      std::ranges::replace(shown, '\x02', '>');
      std::ranges::replace(shown, '\0', '0');
    }
    auto const mark = "?" + std::to_string(i);
    out.replace(out.find(mark), mark.size(), shown);
  }
  // Subqueries of entries in short.
  for (auto const& [lengthy, brief] : {std::pair{"SELECT rid FROM entry WHERE index_id", "ENTRY"},
                                       std::pair{"resource.rid", "rid"}}) {
    for (auto at = out.find(lengthy); at != std::string::npos; at = out.find(lengthy)) {
      out.replace(at, std::string_view(lengthy).size(), brief);
    }
  }
  return out;
}

TEST(scim_filter_sql, looks_for_values_in_both_halves_of_an_index) {
  auto const& type = *directory().find("User");
  ids halves(type.indexes.size(), 10);
  ids more = halves;
  auto const path = type.definition.resolve("emails.value");
  more[*type.find_index(*path)] = 20;
  auto const compiled = [&](std::string_view text) {
    auto const f = parse_filter(text, type.definition);
    return compile_filter(*f, type, halves, sql_dialect::sqlite, 3, {}, more);
  };
  auto const equal = compiled("emails eq \"a@b\"");
  EXPECT_EQ(equal.rids, "SELECT rid FROM entry WHERE index_id IN (?3, ?4) AND key = ?5");
  EXPECT_EQ(equal.values, (std::vector<sql_value>{std::int64_t{10}, std::int64_t{20},
                                                  "\x01"
                                                  "a@b"}));
  EXPECT_EQ(compiled("emails.value sw \"a\"").rids,
            "SELECT rid FROM entry WHERE index_id IN (?3, ?4) AND key >= ?5 AND key < ?6");
  EXPECT_EQ(compiled("userName eq \"a\"").rids,
            "SELECT rid FROM entry WHERE index_id = ?3 AND key = ?4");
}

TEST(scim_filter_sql, asks_for_the_rids_alone_where_one_query_does) {
  auto const& user = *directory().find("User");
  for (auto const* filter : {R"(userName eq "a")", R"(userName sw "a")", R"(groups.value eq "g")",
                             R"(userName eq "a" or emails.value eq "a")"}) {
    auto const sql = compile(user, filter, sql_dialect::sqlite, 3);
    EXPECT_EQ(sql.condition, "resource.rid IN (" + sql.rids + ")") << filter;
  }
  for (auto const* filter : {R"(not (userName eq "a"))", R"(nickName eq "a")",
                             R"(userName sw "a" and groups.value eq "g")"}) {
    EXPECT_EQ(compile(user, filter, sql_dialect::sqlite, 3).rids, "") << filter;
  }
}

TEST(scim_filter_sql, numbers_its_placeholders_for_both_dialects) {
  auto const& user = *directory().find("User");
  auto const filter = R"(userName eq "BJensen" and groups.value eq "g")";
  auto const sqlite = compile(user, filter, sql_dialect::sqlite, 3);
  EXPECT_EQ(sqlite.condition,
            "(resource.rid IN (SELECT rid FROM entry WHERE index_id = ?3 AND key = ?4)"
            " AND EXISTS (SELECT 1 FROM member WHERE member_rid = resource.rid AND group_rid IN"
            " (SELECT rid FROM entry WHERE index_id IN (?5, ?6) AND key = ?7)))");
  EXPECT_EQ(sqlite.values, (std::vector<sql_value>{std::int64_t{12},
                                                   "\x01"
                                                   "bjensen",
                                                   std::int64_t{1}, std::int64_t{2}, "\x01g"}));
  EXPECT_TRUE(sqlite.exact);
  auto const postgresql = compile(user, filter, sql_dialect::postgresql, 1);
  EXPECT_EQ(postgresql.condition,
            "(resource.rid IN (SELECT rid FROM entry WHERE index_id = $1 AND key = $2)"
            " AND EXISTS (SELECT 1 FROM member WHERE member_rid = resource.rid AND group_rid IN"
            " (SELECT rid FROM entry WHERE index_id IN ($3, $4) AND key = $5)))");
  EXPECT_EQ(postgresql.values, sqlite.values);
}

TEST(scim_filter_sql, asks_indexes_for_what_they_can_say) {
  struct row {
    std::string_view filter;
    std::string_view condition;
    bool exact;
  };
  std::string const present = "rid IN (ENTRY = title AND key >= '<0' AND key < '>')";
  auto const& user = *directory().find("User");
  for (auto const& [filter, condition, exact] : {
           row{R"(userName eq "A")", "rid IN (ENTRY = username AND key = '<a')", true},
           row{R"(id eq "A")", "rid IN (ENTRY = id AND key = '<A')", true},
           row{R"(emails eq "a")", "rid IN (ENTRY = emails.value AND key = '<a')", true},
           row{R"(title ne "a")", "rid NOT IN (ENTRY = title AND key = '<a')", true},
           row{R"(emails ne "a")", "", false},
           row{R"(title sw "a")", "rid IN (ENTRY = title AND key >= '<a' AND key < '<b')", true},
           row{R"(title sw "")", "rid IN (ENTRY = title AND key >= '<' AND key < '>')", true},
           row{R"(title gt "a")", "rid IN (ENTRY = title AND key >= '<a0' AND key < '>')", true},
           row{R"(title ge "a")", "rid IN (ENTRY = title AND key >= '<a' AND key < '>')", true},
           row{R"(title lt "a")", "rid IN (ENTRY = title AND key >= '<' AND key < '<a')", true},
           row{R"(title le "a")", "rid IN (ENTRY = title AND key >= '<' AND key < '<a0')", true},
           row{R"(title co "a")", "", false},
           row{R"(title ew "a")", "", false},
           row{"title pr", present, true},
           row{"title ne null", present, true},
           row{"title eq null", "rid IN (ENTRY = title AND key IN ('>', '<'))", true},
           row{"active eq null", "rid IN (ENTRY = active AND key = '>')", true},
           row{"active pr", "rid IN (ENTRY = active AND key >= '<' AND key < '>')", true},
           row{"active eq true", "rid IN (ENTRY = active AND key = '<<')", true},
           row{"roles.value eq null",
               "(rid IN (ENTRY = roles.value AND key = '>') OR (rid IN (ENTRY = roles.value AND "
               "key = '<')"
               " AND rid NOT IN (ENTRY = roles.value AND key >= '<0' AND key < '>')))",
               true},
           // a complex attribute may have a value that is not its `value`
           row{"emails pr", "", false},
           row{"emails eq null", "", false},
           row{"nickName eq \"a\"", "", false},
           row{"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User pr", "", false},
           row{"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department eq \"a\"", "",
               false},
       }) {
    auto const sql = compile(user, filter);
    EXPECT_EQ(readable(user, sql), condition) << filter;
    EXPECT_EQ(sql.exact, exact) << filter;
  }
}

TEST(scim_filter_sql, joins_what_indexes_say) {
  struct row {
    std::string_view filter;
    std::string_view condition;
    bool exact;
  };
  auto const& user = *directory().find("User");
  for (auto const& [filter, condition, exact] : {
           row{R"(title eq "a" and nickName eq "b")", "rid IN (ENTRY = title AND key = '<a')",
               false},
           row{R"(nickName eq "a" and nickName eq "b")", "", false},
           row{R"(title eq "a" or nickName eq "b")", "", false},
           row{R"(title eq "a" or (userName sw "b" and nickName pr))",
               "rid IN (ENTRY = title AND key = '<a' UNION ALL"
               " ENTRY = username AND key >= '<b' AND key < '<c')",
               false},
           row{R"(title eq "a" or title eq "b" or title eq "c")",
               "rid IN (ENTRY = title AND key IN ('<a', '<b', '<c'))", true},
           row{R"(title eq "a" or not (active eq true))",
               "(rid IN (ENTRY = title AND key = '<a') OR rid NOT IN (ENTRY = active AND key = "
               "'<<'))",
               true},
           // what narrows most comes first
           row{R"(active eq true and title eq "a")",
               "(rid IN (ENTRY = title AND key = '<a') AND rid IN (ENTRY = active AND key = '<<'))",
               true},
           // one resource is looked at, and not all that are active
           row{R"(active eq true and userName eq "a")", "rid IN (ENTRY = username AND key = '<a')",
               false},
           row{R"((userName eq "a" or userName eq "b") and not (title sw "x"))",
               "rid IN (ENTRY = username AND key IN ('<a', '<b'))", false},
           // ... but for a negation, all is needed
           row{R"(not (active eq true and userName eq "a"))",
               "NOT (rid IN (ENTRY = username AND key = '<a') AND rid IN (ENTRY = active AND key = "
               "'<<'))",
               true},
           row{R"(not (title eq "a" and nickName eq "b"))", "", false},
           row{R"(not (not (title eq "a")))", "rid IN (ENTRY = title AND key = '<a')", true},
           row{R"(not (title eq "a" or userName eq "b"))",
               "rid NOT IN (ENTRY = title AND key = '<a' UNION ALL ENTRY = username AND key = "
               "'<b')",
               true},
           // one range of one value
           row{R"(title ge "a" and title lt "c")",
               "rid IN (ENTRY = title AND key >= '<a' AND key < '<c')", true},
           row{R"(emails.value ge "a" and emails.value lt "c")",
               "(rid IN (ENTRY = emails.value AND key >= '<a' AND key < '>')"
               " AND rid IN (ENTRY = emails.value AND key >= '<' AND key < '<c'))",
               true},
       }) {
    auto const sql = compile(user, filter);
    EXPECT_EQ(readable(user, sql), condition) << filter;
    EXPECT_EQ(sql.exact, exact) << filter;
  }
}

TEST(scim_filter_sql, asks_for_values_in_brackets) {
  struct row {
    std::string_view filter;
    std::string_view condition;
    bool exact;
  };
  std::string const one = "rid IN (ENTRY = emails.value AND key = '<a')";
  auto const& user = *directory().find("User");
  for (auto const& [filter, condition, exact] : {
           row{R"(emails[value eq "a"])", one, true},
           row{R"(emails[type eq "work" and value eq "a"])", one, false},
           row{R"(emails[type eq "work"].value eq "a")", one, false},
           row{R"(emails[type eq "work" or value eq "a"])", "", false},
           row{R"(emails[value eq "a" or value eq "b"])",
               "rid IN (ENTRY = emails.value AND key IN ('<a', '<b'))", true},
           row{R"(emails[(value eq "a" or value eq "b") and (value sw "c" or primary eq true)])",
               "rid IN (ENTRY = emails.value AND key IN ('<a', '<b'))", false},
           row{R"(emails[value ge "a" and value lt "c"])",
               "rid IN (ENTRY = emails.value AND key >= '<a' AND key < '<c')", true},
           row{"emails[value pr]", "rid IN (ENTRY = emails.value AND key >= '<0' AND key < '>')",
               true},
           row{"emails[value ne null]",
               "rid IN (ENTRY = emails.value AND key >= '<0' AND key < '>')", true},
           row{"emails[value eq null]", "", false},
           row{R"(emails[value ne "a"])", "", false},
           row{R"(emails[not (value eq "a")])", "", false},
           row{R"(not (emails[value eq "a"]))", "rid NOT IN (ENTRY = emails.value AND key = '<a')",
               true},
           row{R"(not (emails[type eq "work" and value eq "a"]))", "", false},
       }) {
    auto const sql = compile(user, filter);
    EXPECT_EQ(readable(user, sql), condition) << filter;
    EXPECT_EQ(sql.exact, exact) << filter;
  }
}

TEST(scim_filter_sql, asks_who_is_a_member) {
  struct row {
    std::string_view type;
    std::string_view filter;
    std::string_view condition;
    bool exact;
  };
  std::string const group =
      "rid IN (SELECT group_rid FROM member WHERE member_rid IN (ENTRY IN (1, 2) AND key = '<u'))";
  std::string const user =
      "rid IN (SELECT member_rid FROM member WHERE group_rid IN (ENTRY IN (1, 2) AND key = '<g'))";
  for (auto const& [type, filter, condition, exact] : {
           row{"Group", R"(members eq "U")", group, true},
           row{"Group", R"(members.value eq "u")", group, true},
           row{"Group", R"(members[value eq "u"])", group, true},
           row{"Group", R"(members[value eq "u" and type eq "User"])", group, false},
           row{"Group", R"(members.value ne "u")", "", false},
           row{"Group", R"(members.value sw "u")", "", false},
           row{"Group", R"(members.display eq "u")", "", false},
           // what a well known client asks before each change
           row{"Group", R"(id eq "g" and members eq "u")",
               "(rid IN (ENTRY = id AND key = '<g') AND EXISTS (SELECT 1 FROM member WHERE"
               " group_rid = rid AND member_rid IN (ENTRY IN (1, 2) AND key = '<u')))",
               true},
           row{"Group", R"(id eq "g" and not (members eq "u"))",
               "(rid IN (ENTRY = id AND key = '<g') AND NOT EXISTS (SELECT 1 FROM member WHERE"
               " group_rid = rid AND member_rid IN (ENTRY IN (1, 2) AND key = '<u')))",
               true},
           row{"Group", "members pr", "EXISTS (SELECT 1 FROM member WHERE group_rid = rid)", true},
           row{"Group", "members eq null",
               "NOT EXISTS (SELECT 1 FROM member WHERE group_rid = rid)", true},
           row{"Group", "members[value pr]", "EXISTS (SELECT 1 FROM member WHERE group_rid = rid)",
               true},
           row{"Group", "members.type pr", "", false},
           row{"User", R"(groups eq "g")", user, true},
           row{"User", R"(groups.value eq "G")", user, true},
           row{"User", "not (groups pr)",
               "NOT EXISTS (SELECT 1 FROM member WHERE member_rid = rid)", true},
           row{"User", R"(groups.display eq "g")", "", false},
       }) {
    auto const& of = *directory().find(type);
    auto const sql = compile(of, filter);
    EXPECT_EQ(readable(of, sql), condition) << filter;
    EXPECT_EQ(sql.exact, exact) << filter;
  }
}

TEST(scim_filter_sql, leaves_members_to_the_caller_who_cannot_find_ids) {
  auto const& group = *directory().find("Group");
  ids const index_ids(group.indexes.size(), 1);
  for (auto const* const text : {R"(members eq "u")", "members pr", "members eq null"}) {
    auto const f = *parse_filter(text, group.definition);
    auto const sql = compile_filter(f, group, index_ids, sql_dialect::sqlite);
    EXPECT_TRUE(sql.condition.empty() && sql.values.empty() && !sql.exact) << text;
  }
}

TEST(scim_filter_sql, is_not_exact_where_keys_are_cut) {
  auto const& user = *directory().find("User");
  auto const text = [](std::string_view op, std::size_t octets) {
    return "title " + std::string(op) + " \"" + std::string(octets, 'a') + "\"";
  };
  for (auto const* const op : {"eq", "sw", "gt", "ge", "lt", "le"}) {
    EXPECT_TRUE(compile(user, text(op, sort_key_octets_max - 2)).exact) << op;
    auto const sql = compile(user, text(op, sort_key_octets_max + 100));
    EXPECT_FALSE(sql.exact) << op;
    EXPECT_FALSE(sql.condition.empty()) << op;
  }
  EXPECT_TRUE(compile(user, text("ne", 300)).condition.empty());
}

TEST(scim_filter_sql, is_bounded_by_the_terms_of_the_filter) {
  auto const& user = *directory().find("User");
  std::string text = R"(title sw "a")";
  for (int i = 0; i < 255; ++i) {
    text += i % 2 == 0 ? R"( or title gt "b")" : R"( or userName eq "c")";
  }
  auto const sql = compile(user, text);
  EXPECT_TRUE(sql.exact);
  EXPECT_LE(sql.values.size(), 3 * 256U);
  EXPECT_LT(sql.condition.size(), 64 * 1024U);
}

// ── the plan against `matches` ──

/// A resource as a directory keeps it: its entries, and the ids that it is a member of or has as
/// members.
struct kept {
  json::value whole;
  std::vector<index_entry> entries;
  std::set<std::string> linked;
};

auto is_in(filter_plan const& plan, kept const& resource) -> bool {
  auto const operand_holds = [&](filter_plan const& operand) { return is_in(operand, resource); };
  auto const any_key = [&](auto test) {
    return std::ranges::any_of(resource.entries, [&](index_entry const& e) {
      return e.index == plan.index && test(e.key);
    });
  };
  switch (plan.kind) {
    case plan_kind::all_of: return std::ranges::all_of(plan.operands, operand_holds);
    case plan_kind::any_of: return std::ranges::any_of(plan.operands, operand_holds);
    case plan_kind::negation: return !operand_holds(plan.operands.front());
    case plan_kind::keys:
      return any_key([&](auto const& key) { return std::ranges::count(plan.keys, key) != 0; });
    case plan_kind::range:
      return any_key([&](auto const& key) { return plan.from <= key && key < plan.to; });
    case plan_kind::has_member:
    case plan_kind::in_group: return resource.linked.contains(plan.keys.front());
    case plan_kind::any_member:
    case plan_kind::in_any_group: break;
  }
  return !resource.linked.empty();
}

class drawing {
 public:
  explicit drawing(unsigned seed) : random_(seed) {}

  auto below(std::size_t bound) -> std::size_t { return random_() % bound; }
  template <class Values>
  auto one_of(Values const& values) -> auto const& {
    return values[below(values.size())];
  }

  auto value_of(attribute const& a) -> json::value {
    static std::vector<json::value> const texts = {"",
                                                   "a",
                                                   "A",
                                                   "ab",
                                                   "B",
                                                   "\u00c9",
                                                   "ba",
                                                   "e",
                                                   "e\u0301",
                                                   "e\u0301a",
                                                   "\u00e9b",
                                                   lengthy('x'),
                                                   lengthy('y'),
                                                   std::string(254, 'l'),
                                                   std::string(253, 'l')};
    static std::vector<json::value> const numbers = {
        -1, 0, 1, 1.0, 0.5, 2.5, -1.5, std::int64_t{9007199254740993}, 9007199254740992.0, 1e19};
    static std::vector<json::value> const integers = {-1, 0, 1, 2, std::int64_t{9007199254740993}};
    static std::vector<json::value> const times = {
        "2011-05-13T04:42:34Z", "2011-05-13T06:42:34+02:00", "2011-05-13T04:42:34.5Z",
        "1969-01-01T00:00:00Z"};
    switch (a.type) {
      case attribute_type::boolean: return below(2) == 0;
      case attribute_type::integer: return one_of(integers);
      case attribute_type::decimal: return one_of(numbers);
      case attribute_type::date_time: return one_of(times);
      default: return one_of(texts);
    }
  }

  /// Nothing at times, and several where the attribute takes them.
  auto values_of(attribute const& a) -> json::value {
    auto const one = [&]() -> json::value {
      if (a.type != attribute_type::complex) {
        return value_of(a);
      }
      json::object object;
      for (auto const& sub : a.sub_attributes) {
        if (auto value = below(3) == 0 ? json::value() : values_of(sub); !value.is_null()) {
          object.append(sub.name, std::move(value));
        }
      }
      return object.empty() ? json::value() : json::value(std::move(object));
    };
    if (!a.multi_valued) {
      return below(4) == 0 ? json::value() : one();
    }
    json::array array;
    for (auto n = below(4); n > 0; --n) {
      if (auto value = one(); !value.is_null()) {
        array.push_back(std::move(value));
      }
    }
    return array.empty() ? json::value() : json::value(std::move(array));
  }

  auto resource_of(model_type const& type) -> kept {
    json::object object;
    for (auto const& a : type.definition.base().attributes) {
      if (auto value = values_of(a); !value.is_null()) {
        object.append(a.name, std::move(value));
      }
    }
    for (auto const& extension : type.definition.extensions()) {
      json::object inner;
      for (auto const& a : extension.attributes) {
        if (auto value = values_of(a); !value.is_null()) {
          inner.append(a.name, std::move(value));
        }
      }
      if (!inner.empty()) {
        object.append(extension.id, std::move(inner));
      }
    }
    kept out;
    // What a directory keeps beside the resource.
    json::array linked;
    for (auto const* const id : {"a", "ab", "e"}) {
      if (below(3) == 0) {
        linked.emplace_back(json::object{{"value", id}, {"display", id}});
        out.linked.insert("\x01" + std::string(id));
      }
    }
    auto const* const name = type.has_members ? "members" : type.has_groups ? "groups" : nullptr;
    if (name != nullptr) {
      object.erase(name);
    }
    out.entries = index_entries(type, json::value(object));
    if (name != nullptr && !linked.empty()) {
      object.append(name, std::move(linked));
    }
    out.whole = std::move(object);
    return out;
  }

  auto filter_of(model_type const& type, int depth, attribute const* within = nullptr)
      -> std::string {
    switch (depth == 0 ? 9 : below(10)) {
      case 0:
      case 1:
        return "(" + filter_of(type, depth - 1, within) + " and " +
               filter_of(type, depth - 1, within) + ")";
      case 2:
      case 3:
        return "(" + filter_of(type, depth - 1, within) + " or " +
               filter_of(type, depth - 1, within) + ")";
      case 4: return "not (" + filter_of(type, depth - 1, within) + ")";
      case 5:
      case 6:
        if (within == nullptr) {
          auto const& index = one_of(type.indexes);
          auto const* const parent =
              below(4) == 0 && linked_of(type) != nullptr ? linked_of(type) : index.path.parent;
          if (parent->type == attribute_type::complex &&
              (index.path.extension == nullptr || parent == linked_of(type))) {
            return parent->name + "[" + filter_of(type, depth - 1, parent) + "]";
          }
        }
        [[fallthrough]];
      default: return term_of(type, within);
    }
  }

 private:
  static auto lengthy(char last) -> std::string { return std::string(300, 'l') + last; }

  static auto linked_of(model_type const& type) -> attribute const* {
    return type.has_members  ? type.definition.base().find("members")
           : type.has_groups ? type.definition.base().find("groups")
                             : nullptr;
  }

  auto term_of(model_type const& type, attribute const* within) -> std::string {
    std::string name;
    attribute const* leaf = nullptr;
    if (within != nullptr) {
      leaf = &one_of(within->sub_attributes);
      leaf = below(2) == 0 && within->find("value") != nullptr ? within->find("value") : leaf;
      name = leaf->name;
    } else if (linked_of(type) != nullptr && below(6) == 0) {
      leaf = linked_of(type)->find(below(4) == 0 ? "display" : "value");
      name = linked_of(type)->name + (below(2) == 0 ? "" : "." + leaf->name);
    } else {
      auto const& index = one_of(type.indexes);
      leaf = index.path.leaf();
      name = index.name;
      if (index.path.sub != nullptr && below(8) == 0) {
        name = canonical_name({index.path.extension, index.path.parent, nullptr});
        return name + (below(2) == 0 ? " pr" : " eq null");
      }
    }
    switch (below(8)) {
      case 0: return name + " pr";
      case 1: return name + (below(2) == 0 ? " eq null" : " ne null");
      default: break;
    }
    static std::vector<std::string> const equal{"eq", "ne"};
    static std::vector<std::string> const ordered{"eq", "ne", "gt", "ge", "lt", "le"};
    static std::vector<std::string> const textual{"eq", "ne", "gt", "ge", "lt",
                                                  "le", "co", "sw", "ew"};
    using enum attribute_type;
    auto const& op = leaf->type == boolean || leaf->type == binary     ? one_of(equal)
                     : leaf->type == string || leaf->type == reference ? one_of(textual)
                                                                       : one_of(ordered);
    return name + " " + op + " " + to_string(value_of(*leaf));
  }

  std::mt19937 random_;
};

auto thing_model() -> model {
  auto const base = *read_schema(*json::parse(R"({"id":"urn:x:Thing","attributes":[
      {"name":"label"},{"name":"code","caseExact":true,"uniqueness":"server"},
      {"name":"on","type":"boolean"},{"name":"count","type":"integer"},
      {"name":"size","type":"decimal"},{"name":"since","type":"dateTime"},
      {"name":"tags","multiValued":true},{"name":"sizes","type":"decimal","multiValued":true},
      {"name":"place","type":"complex","subAttributes":[{"name":"room"},{"name":"size","type":"decimal"}]},
      {"name":"parts","type":"complex","multiValued":true,"subAttributes":[
        {"name":"value"},{"name":"primary","type":"boolean"},{"name":"made","type":"dateTime"},
        {"name":"codes","multiValued":true}]}]})"));
  auto const extra = *read_schema(*json::parse(
      R"({"id":"urn:x:Extra","attributes":[{"name":"note"},{"name":"rank","type":"integer"}]})"));
  resource_type const type{"Thing",   "Thing",       "",
                           "/Things", "urn:x:Thing", {{"urn:x:Extra", false}}};
  std::vector<schema> const schemas{base, extra};
  std::vector<std::string> const indexes{"label",
                                         "on",
                                         "count",
                                         "size",
                                         "since",
                                         "tags",
                                         "sizes",
                                         "place.room",
                                         "parts",
                                         "parts.made",
                                         "parts.codes",
                                         "parts.primary",
                                         "title",
                                         "active",
                                         "roles",
                                         "Thing:place.size",
                                         "urn:x:Extra:note",
                                         "urn:x:Extra:rank"};
  return *model::make(schemas, std::vector{type}, indexes);
}

TEST(scim_filter_plan, lets_through_all_that_matches_and_nothing_else_where_it_is_exact) {
  auto const m = thing_model();
  drawing draw(20240229);
  int pairs = 0;
  int planned = 0;
  int exact = 0;
  int through = 0;
  for (auto const& type : m.types()) {
    std::vector<kept> resources;
    for (int i = 0; i < 2000; ++i) {
      if (i % 50 == 0) {
        resources.clear();
        for (int j = 0; j < 50; ++j) {
          resources.push_back(draw.resource_of(type));
        }
      }
      auto const text = draw.filter_of(type, 3);
      auto const f = parse_filter(text, type.definition);
      ASSERT_TRUE(f) << text << ": " << to_string(f.error());
      auto const plan = plan_filter(*f, type, true);
      if (!plan) {
        continue;
      }
      ++planned;
      exact += plan->exact ? 1 : 0;
      for (auto const& resource : resources) {
        bool const expected = matches(*f, resource.whole);
        bool const found = is_in(*plan, resource);
        ASSERT_TRUE(found || !expected) << text << "\n" << to_string(resource.whole);
        ASSERT_TRUE(!found || expected || !plan->exact) << text << "\n"
                                                        << to_string(resource.whole);
        ++pairs;
        through += found ? 1 : 0;
      }
    }
  }
  EXPECT_GT(pairs, 100'000);
  EXPECT_GT(exact, planned / 4);
  EXPECT_LT(exact, planned);
  EXPECT_GT(through, pairs / 5);
  EXPECT_LT(through, pairs * 4 / 5);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
