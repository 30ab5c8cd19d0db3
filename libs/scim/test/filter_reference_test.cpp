// SPDX-License-Identifier: Apache-2.0
//
// Filters against a slow, obvious reference on random resources and expressions. The reference
// shares no code with the library: it has its own resources, its own trees, and its own idea of
// case, time and numbers, good for the few values that are drawn here.
#include <tidegate/scim/filter.hpp>

#include <tidegate/json/parse.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

using random_source = std::mt19937;

auto below(random_source& random, std::size_t bound) -> std::size_t {
  return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
}

template <class Values>
auto one_of(random_source& random, Values const& values) -> auto const& {
  return values[below(random, values.size())];
}

// ── values ──

enum class kind { text, exact_text, flag, number, time };

/// A value as JSON has it and by what the reference compares it.
struct sample {
  std::string json;
  std::string text;        // of texts
  long double number = 0;  // of numbers, of flags, and the order of times
};

auto samples(kind of) -> std::vector<sample> const& {
  static std::map<kind, std::vector<sample>> const all = [] {
    std::map<kind, std::vector<sample>> out;
    for (std::string const text :
         {"", "a", "A", "ab", "AB", "b", "Ba", "\u00c4b", "\u00e4B", "aab"}) {
      out[kind::text].push_back({'"' + text + '"', text});
    }
    out[kind::exact_text] = out[kind::text];
    out[kind::flag] = {{"true", "", 1}, {"false", "", 0}};
    for (std::string const number :
         {"-1", "0", "1", "1.0", "0.5", "-1.5", "2e0", "9007199254740993", "9007199254740992.0",
          "9007199254740992", "9223372036854775807", "1e19"}) {
      out[kind::number].push_back({number, "", std::strtold(number.c_str(), nullptr)});
    }
    out[kind::time] = {
        {R"("1999-12-31T23:59:59Z")", "", 1},           {R"("2011-05-13T04:42:34Z")", "", 2},
        {R"("2011-05-13T06:42:34+02:00")", "", 2},      {R"("2011-05-13T04:42:34.000")", "", 2},
        {R"("2011-05-13T04:42:34.000001Z")", "", 3},    {R"("2011-05-12T23:42:34.5-05:00")", "", 4},
        {R"("2011-05-13T04:42:34.500000000Z")", "", 4},
    };
    return out;
  }();
  return all.at(of);
}

/// In lower case, for the letters that are drawn.
auto lower(std::string text) -> std::string {
  for (auto& c : text) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  for (auto at = text.find("\u00c4"); at != std::string::npos; at = text.find("\u00c4")) {
    text.replace(at, 2, "\u00e4");
  }
  return text;
}

// ── the schema ──

struct field {
  std::string name;
  kind type{};
  std::map<std::string, kind> subs;  // makes it complex
  bool many = false;
  bool extended = false;
};

auto fields() -> std::vector<field> const& {
  static std::vector<field> const all{
      {"label", kind::text, {}, false, false},
      {"code", kind::exact_text, {}, false, false},
      {"on", kind::flag, {}, false, false},
      {"count", kind::number, {}, false, false},
      {"since", kind::time, {}, false, false},
      {"tags", kind::text, {}, true, false},
      {"place", kind::text, {{"room", kind::text}, {"size", kind::number}}, false, false},
      {"parts",
       kind::text,
       {{"value", kind::text},
        {"type", kind::exact_text},
        {"made", kind::time},
        {"ok", kind::flag}},
       true,
       false},
      {"note", kind::text, {}, false, true},
      {"owners", kind::text, {{"value", kind::exact_text}, {"rank", kind::number}}, true, true},
  };
  return all;
}

constexpr std::string_view base_urn = "urn:x:Thing";
constexpr std::string_view extension_urn = "urn:x:2.0:Extra";

auto type_of(kind of) -> std::string {
  switch (of) {
    case kind::text: return R"("type":"string")";
    case kind::exact_text: return R"("type":"string","caseExact":true)";
    case kind::flag: return R"("type":"boolean")";
    case kind::number: return R"("type":"decimal")";
    case kind::time: break;
  }
  return R"("type":"dateTime")";
}

auto things() -> resource_definition const& {
  static auto const definition = [] {
    std::map<bool, std::string> attributes;
    for (auto const& f : fields()) {
      std::string subs;
      for (auto const& [name, of] : f.subs) {
        subs += (subs.empty() ? "" : ",") + ("{\"name\":\"" + name + "\"," + type_of(of) + "}");
      }
      auto& list = attributes[f.extended];
      list +=
          (list.empty() ? "" : ",") + ("{\"name\":\"" + f.name + "\",") +
          (f.many ? "\"multiValued\":true," : "") +
          (subs.empty() ? type_of(f.type) : R"("type":"complex","subAttributes":[)" + subs + "]") +
          "}";
    }
    auto const make = [&](std::string_view urn, bool extended) {
      return *read_schema(*json::parse("{\"id\":\"" + std::string(urn) + "\",\"attributes\":[" +
                                       attributes[extended] + "]}"));
    };
    std::vector<schema> const schemas{make(base_urn, false), make(extension_urn, true)};
    return *resource_definition::make({"Thing",
                                       "Thing",
                                       "",
                                       "/Things",
                                       std::string(base_urn),
                                       {{std::string(extension_urn), false}}},
                                      schemas);
  }();
  return definition;
}

// ── resources ──

/// One value of a field: by sub-attribute, or under "" for a simple one. What is not there is null.
using element = std::map<std::string, sample>;
/// All values of each field, by its name.
using thing = std::map<std::string, std::vector<element>>;

auto draw_element(random_source& random, field const& f) -> element {
  element out;
  if (f.subs.empty()) {
    out[""] = one_of(random, samples(f.type));
  }
  for (auto const& [name, of] : f.subs) {
    if (below(random, 3) != 0) {
      out[name] = one_of(random, samples(of));
    }
  }
  return out;
}

auto draw_thing(random_source& random) -> thing {
  thing out;
  for (auto const& f : fields()) {
    auto const count = below(random, f.many ? 4 : 2);
    for (std::size_t i = 0; i < count; ++i) {
      out[f.name].push_back(draw_element(random, f));
    }
  }
  return out;
}

auto random_case(random_source& random, std::string_view name) -> std::string {
  std::string out(name);
  for (auto& c : out) {
    bool const letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    c = letter && below(random, 4) == 0 ? static_cast<char>(c ^ 32) : c;
  }
  return out;
}

auto text_of(random_source& random, field const& f, element const& e) -> std::string {
  if (f.subs.empty()) {
    return e.at("").json;
  }
  std::string out = "{";
  for (auto const& [name, of] : f.subs) {
    if (auto const found = e.find(name); found != e.end() || below(random, 4) == 0) {
      out += (out.size() == 1 ? "\"" : ",\"") + random_case(random, name) +
             "\":" + (found != e.end() ? found->second.json : "null");
    }
  }
  return out + "}";
}

auto text_of(random_source& random, thing const& t) -> std::string {
  std::map<bool, std::string> members;
  for (auto const& f : fields()) {
    std::string value;
    auto const found = t.find(f.name);
    if (found != t.end()) {
      for (auto const& e : found->second) {
        value += (value.empty() ? "" : ",") + text_of(random, f, e);
      }
      value = f.many ? "[" + value + "]" : value;
    } else if (auto const how = below(random, 3); how != 0) {
      value = how == 1 || !f.many ? "null" : "[]";
    } else {
      continue;
    }
    auto& list = members[f.extended];
    list += (list.empty() ? "\"" : ",\"") + random_case(random, f.name) + "\":" + value;
  }
  if (!members[true].empty()) {
    members[false] += (members[false].empty() ? "\"" : ",\"") + random_case(random, extension_urn) +
                      "\":{" + members[true] + "}";
  }
  return "{" + members[false] + "}";
}

// ── expressions ──

struct expression {
  enum class form_kind { all, any, no, compare, present, bracket } form{};
  std::vector<expression> operands;
  field const* subject = nullptr;
  std::string sub;
  std::string op;
  std::string literal;
  sample value;       // unless null
  bool null = false;  // compared with null
  kind type{};
};

auto draw_leaf(random_source& random, field const* within) -> expression {
  expression e;
  e.subject = within != nullptr ? within : &one_of(random, fields());
  auto const& f = *e.subject;
  if (!f.subs.empty() && (within != nullptr || below(random, 3) != 0)) {
    e.sub =
        std::next(f.subs.begin(), static_cast<std::ptrdiff_t>(below(random, f.subs.size())))->first;
  }
  if (below(random, 6) == 0) {
    e.form = expression::form_kind::present;
    return e;
  }
  e.form = expression::form_kind::compare;
  if (below(random, 8) == 0) {
    e.null = true;
    e.literal = "null";
    e.op = below(random, 2) == 0 ? "eq" : "ne";
    return e;
  }
  if (!f.subs.empty() && e.sub.empty() && !f.subs.contains("value")) {
    e.form = expression::form_kind::present;
    return e;
  }
  e.type = f.subs.empty() ? f.type : f.subs.at(e.sub.empty() ? "value" : e.sub);
  e.value = one_of(random, samples(e.type));
  e.literal = e.value.json;
  if (e.literal.starts_with('"') && e.literal.size() > 2 && below(random, 4) == 0) {
    e.literal = e.literal.substr(1, e.literal.size() - 2);  // a bare word
  }
  static std::vector<std::string> const equal{"eq", "ne"};
  static std::vector<std::string> const ordered{"eq", "ne", "gt", "ge", "lt", "le"};
  static std::vector<std::string> const textual{"eq", "ne", "gt", "ge", "lt",
                                                "le", "co", "sw", "ew"};
  e.op = one_of(random, e.type == kind::flag                                 ? equal
                        : e.type == kind::text || e.type == kind::exact_text ? textual
                                                                             : ordered);
  return e;
}

auto draw_expression(random_source& random, int depth, field const* within) -> expression {
  using enum expression::form_kind;
  expression e;
  auto const choice = depth == 0 ? 9 : below(random, 10);
  if (choice < 4) {
    e.form = choice < 2 ? all : any;
    auto const count = 2 + below(random, 2);
    for (std::size_t i = 0; i < count; ++i) {
      e.operands.push_back(draw_expression(random, depth - 1, within));
    }
  } else if (choice == 4) {
    e.form = no;
    e.operands.push_back(draw_expression(random, depth - 1, within));
  } else if (choice < 7 && within == nullptr) {
    do {
      e.subject = &one_of(random, fields());
    } while (e.subject->subs.empty());
    e.form = bracket;
    e.operands.push_back(draw_expression(random, depth - 1, e.subject));
  } else {
    return draw_leaf(random, within);
  }
  return e;
}

auto spaces(random_source& random, std::size_t least) -> std::string {
  return std::string(least + (below(random, 4) == 0 ? below(random, 3) : 0), ' ');
}

auto name_of(random_source& random, expression const& e, bool within) -> std::string {
  if (within) {
    return random_case(random, e.sub);
  }
  std::string out;
  if (below(random, 4) != 0 ? e.subject->extended : !e.subject->extended) {
    out = std::string(e.subject->extended ? extension_urn : base_urn) + ":";
  }
  return random_case(random, out + e.subject->name + (e.sub.empty() ? "" : "." + e.sub));
}

/// In one of the many ways to write it.
auto text_of(random_source& random, expression const& e, bool within) -> std::string {
  using enum expression::form_kind;
  auto const grouped = [&](expression const& operand) {
    return "(" + spaces(random, 0) + text_of(random, operand, within) + spaces(random, 0) + ")";
  };
  switch (e.form) {
    case all:
    case any: {
      std::string out;
      for (auto const& operand : e.operands) {
        out += out.empty() ? ""
                           : spaces(random, 1) + random_case(random, e.form == all ? "and" : "or") +
                                 spaces(random, 1);
        bool const needed = operand.form == any && e.form == all;
        out +=
            needed || below(random, 5) == 0 ? grouped(operand) : text_of(random, operand, within);
      }
      return out;
    }
    case no: return random_case(random, "not") + spaces(random, 0) + grouped(e.operands.front());
    case bracket: {
      auto const& inner = e.operands.front();
      // a[f and b op v] may be written as a[f].b op v
      if (inner.form == all && inner.operands.size() == 2 && below(random, 2) == 0 &&
          (inner.operands[1].form == compare || inner.operands[1].form == present)) {
        return name_of(random, e, false) + "[" + text_of(random, inner.operands[0], true) + "]." +
               text_of(random, inner.operands[1], true);
      }
      return name_of(random, e, false) + "[" + spaces(random, 0) + text_of(random, inner, true) +
             spaces(random, 0) + "]";
    }
    case present: return name_of(random, e, within) + spaces(random, 1) + random_case(random, "pr");
    case compare: break;
  }
  return name_of(random, e, within) + spaces(random, 1) + random_case(random, e.op) +
         spaces(random, 1) + e.literal;
}

// ── the reference ──

auto holds(expression const& e, sample const& value) -> bool {
  if (e.type != kind::text && e.type != kind::exact_text) {
    auto const a = value.number;
    auto const b = e.value.number;
    return (e.op == "eq" && a == b) || (e.op == "ne" && a != b) || (e.op == "gt" && a > b) ||
           (e.op == "ge" && a >= b) || (e.op == "lt" && a < b) || (e.op == "le" && a <= b);
  }
  auto const a = e.type == kind::text ? lower(value.text) : value.text;
  auto const b = e.type == kind::text ? lower(e.value.text) : e.value.text;
  return (e.op == "eq" && a == b) || (e.op == "ne" && a != b) || (e.op == "gt" && a > b) ||
         (e.op == "ge" && a >= b) || (e.op == "lt" && a < b) || (e.op == "le" && a <= b) ||
         (e.op == "co" && a.find(b) != std::string::npos) ||
         (e.op == "sw" && a.substr(0, b.size()) == b) ||
         (e.op == "ew" && a.size() >= b.size() && a.substr(a.size() - b.size()) == b);
}

auto is_empty(sample const& value) -> bool {
  return value.json == "\"\"";
}

/// Asks the values of the field that `e` is about.
auto ask(expression const& e, std::vector<element> const& values) -> bool {
  bool present = false;
  for (auto const& v : values) {
    for (auto const& [name, value] : v) {
      present = present || ((e.sub.empty() || name == e.sub) && !is_empty(value));
    }
  }
  if (e.form == expression::form_kind::present || e.null) {
    return e.op == "eq" ? !present : present;
  }
  auto const sub = e.sub.empty() && !e.subject->subs.empty() ? "value" : e.sub;
  for (auto const& v : values) {
    auto const found = v.find(sub);
    if (found == v.end() ? e.op == "ne" : holds(e, found->second)) {
      return true;
    }
  }
  return values.empty() && e.op == "ne";
}

/// Asks a resource, or the one value `within` of the field in brackets.
auto ask(expression const& e, thing const& t, element const* within) -> bool {
  using enum expression::form_kind;
  switch (e.form) {
    case all: {
      bool result = true;
      for (auto const& operand : e.operands) {
        result = result && ask(operand, t, within);
      }
      return result;
    }
    case any: {
      bool result = false;
      for (auto const& operand : e.operands) {
        result = result || ask(operand, t, within);
      }
      return result;
    }
    case no: return !ask(e.operands.front(), t, within);
    default: break;
  }
  std::vector<element> values;
  if (within != nullptr) {
    values = {*within};
  } else if (auto const found = t.find(e.subject->name); found != t.end()) {
    values = found->second;
  }
  if (e.form != bracket) {
    return ask(e, values);
  }
  bool result = false;
  for (auto const& v : values) {
    result = result || ask(e.operands.front(), t, &v);
  }
  return result;
}

TEST(scim_filter_reference, agrees_on_random_resources_and_expressions) {
  constexpr int expressions = 4000;
  constexpr int resources = 50;
  random_source random(20150901);  // fixed, so that a failure comes again
  std::vector<thing> things_drawn;
  std::vector<json::value> parsed;
  int pairs = 0;
  int found = 0;
  for (int i = 0; i < expressions; ++i) {
    if (i % 40 == 0) {
      things_drawn.clear();
      parsed.clear();
      for (int j = 0; j < resources; ++j) {
        things_drawn.push_back(draw_thing(random));
        auto const text = text_of(random, things_drawn.back());
        auto const value = json::parse(text);
        ASSERT_TRUE(value) << text;
        parsed.push_back(*value);
      }
    }
    auto const e = draw_expression(random, 3, nullptr);
    auto const text = text_of(random, e, false);
    auto const f = parse_filter(text, things());
    ASSERT_TRUE(f) << text << ": " << to_string(f.error());
    auto const canonical = canonical_text(*f);
    auto const again = parse_filter(text_of(random, e, false), things());
    ASSERT_TRUE(again && canonical_text(*again) == canonical) << text;
    auto const of_canonical = parse_filter(canonical, things());
    ASSERT_TRUE(of_canonical && *of_canonical == *f) << text << "\n" << canonical;
    for (std::size_t j = 0; j < parsed.size(); ++j) {
      auto const expected = ask(e, things_drawn[j], nullptr);
      ASSERT_EQ(matches(*f, parsed[j]), expected) << text << "\n" << to_string(parsed[j]);
      ++pairs;
      found += expected ? 1 : 0;
    }
  }
  EXPECT_GE(pairs, 100'000);
  // Both answers come often, or the comparison would say little.
  EXPECT_GT(found, pairs / 4);
  EXPECT_LT(found, pairs * 3 / 4);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
