// SPDX-License-Identifier: Apache-2.0
//
// PATCH against a slow, obvious reference on random resources and operations. The reference knows
// no JSON and no trees: a resource is a flat list of facts, "the sub-attribute s of the value in
// slot n of the attribute a is v". A value without facts does not exist, and the order of values is
// the order of their slots.
#include <tidegate/scim/patch.hpp>

#include "support/sanitized.hpp"

#include <tidegate/json/parse.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

constexpr int rounds = test_support::sanitized ? 10'000 : 100'000;

using random_source = std::mt19937;

auto below(random_source& random, std::size_t bound) -> std::size_t {
  return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
}

auto chance(random_source& random, std::size_t of) -> bool {
  return below(random, of) == 0;
}

// ── the schema ──

enum trait : unsigned {
  plain = 0,
  exact = 1,
  flag = 2,
  read_only = 4,
  immutable = 8,
  required = 16
};

struct sub_spec {
  std::string name;  // empty for the value of a simple attribute
  unsigned traits = plain;
};

struct field {
  std::string name;
  bool extended = false;
  bool many = false;
  unsigned traits = plain;
  std::vector<sub_spec> subs;

  [[nodiscard]] auto is_complex() const -> bool { return !subs.front().name.empty(); }
  [[nodiscard]] auto sub(std::string const& wanted) const -> sub_spec const& {
    return *std::find_if(subs.begin(), subs.end(), [&](auto const& s) { return s.name == wanted; });
  }
};

auto fields() -> std::vector<field> const& {
  static std::vector<field> const all{
      {"label", false, false, required, {{"", plain}}},
      {"title", false, false, plain, {{"", plain}}},
      {"active", false, false, plain, {{"", flag}}},
      {"serial", false, false, immutable, {{"", exact}}},
      {"fixed", false, false, read_only, {{"", plain}}},
      {"tags", false, true, plain, {{"", plain}}},
      {"codes", false, true, immutable, {{"", exact}}},
      {"place", false, false, plain, {{"area", read_only}, {"floor", immutable}, {"room", plain}}},
      {"mails", false, true, plain, {{"primary", flag}, {"type", plain}, {"value", plain}}},
      {"note", true, false, plain, {{"", plain}}},
      {"boss", true, false, plain, {{"seen", read_only}, {"site", plain}, {"value", exact}}},
      {"owners", true, true, plain, {{"kind", immutable}, {"primary", flag}, {"value", exact}}},
  };
  return all;
}

constexpr std::string_view base_urn = "urn:x:Thing";
constexpr std::string_view extension_urn = "urn:x:2.0:Extra";

auto traits_text(unsigned traits) -> std::string {
  return std::string(traits & flag ? R"("type":"boolean",)" : "") +
         (traits & exact ? R"("caseExact":true,)" : "") +
         (traits & read_only ? R"("mutability":"readOnly",)" : "") +
         (traits & immutable ? R"("mutability":"immutable",)" : "") +
         (traits & required ? R"("required":true,)" : "");
}

auto things() -> resource_definition const& {
  static auto const definition = [] {
    std::map<bool, std::string> lists;
    for (auto const& f : fields()) {
      std::string subs;
      for (auto const& s : f.subs) {
        subs +=
            (subs.empty() ? "{" : ",{") + traits_text(s.traits) + "\"name\":\"" + s.name + "\"}";
      }
      auto& list = lists[f.extended];
      list += (list.empty() ? "{" : ",{") +
              traits_text(f.traits | (f.is_complex() ? 0 : f.subs[0].traits)) +
              (f.many ? "\"multiValued\":true," : "") +
              (f.is_complex() ? R"("type":"complex","subAttributes":[)" + subs + "]," : "") +
              "\"name\":\"" + f.name + "\"}";
    }
    auto const make = [&](std::string_view urn, bool extended) {
      return *read_schema(*json::parse("{\"id\":\"" + std::string(urn) + "\",\"attributes\":[" +
                                       lists[extended] + "]}"));
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

// ── values and operations ──

/// By sub-attribute; nothing is null. The text "!" is none for a flag.
using element = std::map<std::string, std::optional<std::string>>;

struct term {
  std::string sub;
  std::string op;
  std::string value;
};

struct operation {
  patch_kind kind{};
  field const* target = nullptr;
  std::string sub;
  std::vector<term> terms;
  bool any = false;        // `or` between the terms
  bool null = true;        // no value
  bool array = false;      // the value is written as an array
  bool as_text = false;    // a complex value is written as the text of its `value`
  bool path_less = false;  // the path is written as a key
  std::vector<element> elements;
};

auto draw_text(random_source& random, unsigned traits) -> std::string {
  static std::vector<std::string> const texts{"a", "A", "b", "B", "ab"};
  if ((traits & flag) != 0) {
    return chance(random, 20) ? "!" : chance(random, 2) ? "true" : "false";
  }
  return texts[below(random, texts.size())];
}

auto draw_element(random_source& random, field const& f) -> element {
  element out;
  for (auto const& s : f.subs) {
    if (s.name.empty() || chance(random, 2)) {
      out[s.name] = draw_text(random, s.traits);
    } else if (chance(random, 6)) {
      out[s.name] = std::nullopt;
    }
  }
  return out;
}

auto draw_operation(random_source& random) -> operation {
  operation op;
  op.kind = static_cast<patch_kind>(below(random, 3));
  op.target = &fields()[below(random, fields().size())];
  auto const& f = *op.target;
  if (f.is_complex() && chance(random, 2)) {
    op.sub = f.subs[below(random, f.subs.size())].name;
  }
  if (f.is_complex() && f.many && chance(random, 2)) {
    op.any = chance(random, 4);
    for (auto count = 1 + below(random, 2); count > 0; --count) {
      auto const& s = f.subs[below(random, f.subs.size())];
      auto value = draw_text(random, s.traits);
      op.terms.push_back({s.name,
                          chance(random, 2)   ? "eq"
                          : chance(random, 2) ? "ne"
                                              : "pr",
                          value == "!" ? "true" : value});
    }
  }
  bool const is_remove = op.kind == patch_kind::remove;
  op.path_less = !is_remove && chance(random, 2);
  op.null = !chance(random, is_remove ? 3 : 10) ? is_remove : !is_remove;
  if (op.null) {
    return op;
  }
  bool const list = f.many && op.sub.empty() && op.terms.empty();
  // Where one value is expected, a list of one is its element.
  op.array = !list && op.sub.empty() && op.terms.empty() && chance(random, 10);
  auto const count = list ? below(random, 4) : op.array ? 1 + below(random, 2) : 1;
  op.array = list ? count != 1 || chance(random, 2) : op.array;
  for (std::size_t i = 0; i < count; ++i) {
    op.elements.push_back(op.sub.empty() ? draw_element(random, f)
                                         : element{{"", draw_text(random, f.sub(op.sub).traits)}});
  }
  op.as_text = f.is_complex() && op.sub.empty() && count == 1 && op.elements[0]["value"] &&
               f.subs.back().name == "value" && chance(random, 3);
  if (op.as_text) {
    op.elements[0] = {{"value", op.elements[0]["value"]}};
  } else if (f.is_complex() && op.sub.empty() && f.subs.back().name != "value") {
    for (auto& e : op.elements) {
      e.erase("value");
    }
  }
  return op;
}

// ── as JSON ──

auto random_case(random_source& random, std::string_view name) -> std::string {
  std::string out(name);
  for (auto& c : out) {
    bool const letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    c = letter && chance(random, 5) ? static_cast<char>(c ^ 32) : c;
  }
  return out;
}

auto text_of(random_source& random, std::string const& value, unsigned traits) -> std::string {
  if ((traits & flag) == 0 || value == "!") {
    return '"' + value + '"';
  }
  return chance(random, 3) ? '"' + random_case(random, value) + '"' : value;
}

auto text_of(random_source& random, operation const& op) -> std::string {
  auto const& f = *op.target;
  if (op.null) {
    return "null";
  }
  std::string out;
  for (auto const& e : op.elements) {
    std::string one;
    if (!op.sub.empty()) {
      one = text_of(random, *e.at(""), f.sub(op.sub).traits);
    } else if (!f.is_complex()) {
      one = text_of(random, *e.at(""), f.subs[0].traits);
    } else if (op.as_text) {
      one = text_of(random, *e.at("value"), f.sub("value").traits);
    } else {
      for (auto const& [name, value] : e) {
        one += (one.empty() ? "\"" : ",\"") + random_case(random, name) +
               "\":" + (value ? text_of(random, *value, f.sub(name).traits) : "null");
      }
      one = "{" + one + "}";
    }
    out += (out.empty() ? "" : ",") + one;
  }
  return op.array ? "[" + out + "]" : out;
}

auto path_of(random_source& random, operation const& op) -> std::string {
  auto out = random_case(random, op.target->name);
  std::string terms;
  for (auto const& t : op.terms) {
    terms += (terms.empty() ? ""
              : op.any      ? " or "
                            : " and ") +
             random_case(random, t.sub) + " " + random_case(random, t.op);
    if (t.op != "pr") {
      terms += " " + text_of(random, t.value, op.target->sub(t.sub).traits);
    }
  }
  out += terms.empty() ? "" : "[" + terms + "]";
  return out + (op.sub.empty() ? "" : "." + random_case(random, op.sub));
}

auto json_text(std::string const& text) -> std::string {
  return to_string(json::value(text));
}

auto operation_text(random_source& random, operation const& op) -> std::string {
  auto const value = text_of(random, op);
  auto const path = path_of(random, op);
  bool const qualified = op.target->extended != chance(random, 4);  // the names are all different
  auto const urn = random_case(random, op.target->extended ? extension_urn : base_urn);
  auto const whole = (qualified ? urn + ":" : "") + path;
  static std::vector<std::string> const words{"add", "remove", "replace"};
  auto const op_text =
      "{\"op\":" + json_text(random_case(random, words[static_cast<std::size_t>(op.kind)]));
  if (!op.path_less) {
    bool const silent = op.null && op.kind == patch_kind::remove;
    return op_text + ",\"path\":" + json_text(whole) + (silent ? "" : ",\"value\":" + value) + "}";
  }
  if (op.target->extended && chance(random, 2)) {
    return op_text + ",\"value\":{" + json_text(urn) + ":{" + json_text(path) + ":" + value + "}}}";
  }
  return op_text + ",\"value\":{" + json_text(whole) + ":" + value + "}}";
}

// ── the reference ──

struct fact {
  field const* target;
  int slot;
  std::string sub;
  std::string value;
};

auto same_text(std::string a, std::string b, unsigned traits) -> bool {
  if ((traits & exact) == 0) {
    for (auto* const text : {&a, &b}) {
      for (auto& c : *text) {
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      }
    }
  }
  return a == b;
}

class reference {
 public:
  std::vector<fact> facts;
  std::string error;

  auto new_slot() -> int { return next_slot_++; }

  void apply(operation const& op) {
    auto const& f = *op.target;
    if (((f.traits | (op.sub.empty() ? 0U : f.sub(op.sub).traits)) & read_only) != 0) {
      error = op.path_less ? "" : "mutability";
      return;
    }
    auto const before = contents(f);
    touched_.clear();
    change(op);
    settle_primary(f);
    if (!error.empty() || before.empty()) {
      return;
    }
    auto const after = contents(f);
    if (((f.traits & immutable) != 0 && before != after) ||
        ((f.traits & required) != 0 && op.kind == patch_kind::remove && after.empty())) {
      error = "mutability";
    }
  }

  /// All operations are done: what does it say of the resource that it was?
  void finish(reference const& before) {
    if (error.empty() && contents(fields()[0]).empty()) {
      error = "invalidValue";
    }
    auto const& place = fields()[7];
    auto const old = before.contents(place);
    auto const now = contents(place);
    if (error.empty() && !old.empty() && !now.empty() && old[0].contains("floor") &&
        (!now[0].contains("floor") || now[0].at("floor") != old[0].at("floor"))) {
      error = "mutability";
    }
    drop_repeated();
  }

  [[nodiscard]] auto text() const -> std::string {
    std::map<bool, std::string> members;
    for (auto const& f : fields()) {
      std::string values;
      for (auto const& value : contents(f)) {
        std::string one;
        for (auto const& [sub, v] : value) {
          bool const bare = (f.sub(sub).traits & flag) != 0;
          one += (one.empty() ? "" : ",") + (sub.empty() ? "" : json_text(sub) + ":") +
                 (bare ? v : json_text(v));
        }
        values += (values.empty() ? "" : ",") + (f.is_complex() ? "{" + one + "}" : one);
      }
      if (!values.empty()) {
        members[f.extended] +=
            "," + json_text(f.name) + ":" + (f.many ? "[" + values + "]" : values);
      }
    }
    auto const urn = json_text(std::string(extension_urn));
    auto const extra = members[true];
    return R"({"id":"1","schemas":["urn:x:Thing")" + (extra.empty() ? "" : "," + urn) + "]" +
           members[false] + (extra.empty() ? "" : "," + urn + ":{" + extra.substr(1) + "}") + "}";
  }

 private:
  using value = std::map<std::string, std::string>;

  [[nodiscard]] auto slots(field const& f) const -> std::set<int> {
    std::set<int> out;
    for (auto const& x : facts) {
      if (x.target == &f) {
        out.insert(x.slot);
      }
    }
    return out;
  }

  [[nodiscard]] auto at(int slot) const -> value {
    value out;
    for (auto const& x : facts) {
      if (x.slot == slot) {
        out[x.sub] = x.value;
      }
    }
    return out;
  }

  [[nodiscard]] auto contents(field const& f) const -> std::vector<value> {
    std::vector<value> out;
    for (auto const slot : slots(f)) {
      out.push_back(at(slot));
    }
    return out;
  }

  void erase(int slot) {
    std::erase_if(facts, [&](fact const& x) { return x.slot == slot; });
  }

  /// Sets one fact, or takes it away.
  void set(field const& f, int slot, std::string const& sub, std::optional<std::string> const& v) {
    auto const now = at(slot);
    auto const old = now.find(sub);
    if (v == "!" && (f.sub(sub).traits & flag) != 0) {
      error = error.empty() ? "invalidValue" : error;
    } else if (f.is_complex() && (f.sub(sub).traits & immutable) != 0 && old != now.end() &&
               old->second != v) {
      error = error.empty() ? "mutability" : error;
    }
    std::erase_if(facts, [&](fact const& x) { return x.slot == slot && x.sub == sub; });
    if (v) {
      facts.push_back({&f, slot, sub, *v});
    }
  }

  /// What of a given value is kept.
  auto kept(field const& f, element const& e) -> value {
    value out;
    for (auto const& [sub, v] : e) {
      if (v && (f.sub(sub).traits & read_only) == 0) {
        out[sub] = *v;
        if (*v == "!" && (f.sub(sub).traits & flag) != 0) {
          error = error.empty() ? "invalidValue" : error;
        }
      }
    }
    return out;
  }

  auto selects(operation const& op, int slot) const -> bool {
    auto const v = at(slot);
    std::size_t holding = 0;
    for (auto const& t : op.terms) {
      auto const found = v.find(t.sub);
      bool const there = found != v.end();
      bool const same = there && same_text(found->second, t.value, op.target->sub(t.sub).traits);
      holding += t.op == "pr" ? there : t.op == "eq" ? same : !same;
    }
    return op.any ? holding > 0 : holding == op.terms.size();
  }

  void change(operation const& op) {
    auto const& f = *op.target;
    bool const whole = op.sub.empty() && op.terms.empty();
    std::vector<int> selected;
    for (auto const slot : slots(f)) {
      if (selects(op, slot) || op.terms.empty()) {
        selected.push_back(slot);
      }
    }
    if (!op.terms.empty() && selected.empty() && op.kind == patch_kind::replace) {
      error = "noTarget";
      return;
    }
    if (op.kind == patch_kind::remove && whole && f.many && !op.null) {
      remove_given(op);
      return;
    }
    if (op.kind == patch_kind::remove || op.null) {
      for (auto const slot : op.kind == patch_kind::add ? std::vector<int>() : selected) {
        if (op.sub.empty()) {
          erase(slot);
        } else {
          set(f, slot, op.sub, std::nullopt);
        }
      }
      return;
    }
    if (!f.many && op.elements.size() > 1) {
      error = "invalidValue";
    } else if (whole && (f.many || !f.is_complex() || op.as_text)) {
      set_whole(op);
    } else {
      set_selected(op, selected);
    }
  }

  void remove_given(operation const& op) {
    auto const& f = *op.target;
    for (auto const& e : op.elements) {
      auto const given = kept(f, e);
      for (auto const slot : slots(f)) {
        auto const v = at(slot);
        bool all = !given.empty();
        for (auto const& [sub, wanted] : given) {
          all = all && v.contains(sub) && same_text(v.at(sub), wanted, f.sub(sub).traits);
        }
        if (all) {
          erase(slot);
        }
      }
    }
  }

  void set_whole(operation const& op) {
    auto const& f = *op.target;
    if (op.kind == patch_kind::replace || !f.many) {
      for (auto const slot : slots(f)) {
        erase(slot);
      }
    }
    for (auto const& e : op.elements) {
      auto const v = kept(f, e);
      auto const there = contents(f);
      if (v.empty() ||
          (op.kind == patch_kind::add && std::find(there.begin(), there.end(), v) != there.end())) {
        continue;
      }
      auto const slot = new_slot();
      touched_.insert(slot);
      for (auto const& [sub, text] : v) {
        facts.push_back({&f, slot, sub, text});
      }
    }
  }

  void set_selected(operation const& op, std::vector<int> selected) {
    auto const& f = *op.target;
    bool doubtful = false;
    if (selected.empty()) {
      selected.push_back(new_slot());
      for (auto const& t : op.terms) {
        if (t.op == "eq" && (!op.any || op.terms.size() == 1)) {
          std::erase_if(facts,
                        [&](fact const& x) { return x.slot == selected[0] && x.sub == t.sub; });
          facts.push_back({&f, selected[0], t.sub, t.value});
        }
      }
      doubtful = !op.terms.empty() && !selects(op, selected[0]);
    }
    auto const& e = op.elements[0];
    for (auto const slot : selected) {
      touched_.insert(slot);
      if (!op.sub.empty()) {
        set(f, slot, op.sub, e.at(""));
      } else if (op.kind == patch_kind::replace && !op.terms.empty()) {
        auto const v = kept(f, e);
        for (auto const& s : f.subs) {
          auto const found = v.find(s.name);
          set(f, slot, s.name, found == v.end() ? std::nullopt : std::optional(found->second));
        }
      } else {
        for (auto const& [sub, v] : e) {
          bool const nothing = !v && op.kind == patch_kind::add;
          if (!nothing && (f.sub(sub).traits & read_only) == 0) {
            set(f, slot, sub, v);
          }
        }
      }
    }
    if (error.empty() && doubtful && !selects(op, selected[0])) {
      error = "noTarget";
    }
  }

  void settle_primary(field const& f) {
    std::vector<int> primary;
    for (auto const& x : facts) {
      if (f.many && x.target == &f && x.sub == "primary" && x.value == "true" &&
          touched_.contains(x.slot)) {
        primary.push_back(x.slot);
      }
    }
    if (primary.size() > 1 && error.empty()) {
      error = "invalidValue";
    }
    for (auto& x : facts) {
      if (primary.size() == 1 && x.target == &f && x.sub == "primary" && x.value == "true" &&
          x.slot != primary[0]) {
        x.value = "false";
      }
    }
  }

  /// Of values with the same type and value the last stays, in the place of the first.
  void drop_repeated() {
    for (auto const& f : fields()) {
      std::map<std::pair<std::string, std::string>, int> places;
      for (auto const slot : f.many ? slots(f) : std::set<int>()) {
        auto const v = at(slot);
        if (!v.contains("value")) {
          continue;
        }
        auto const type = v.contains("type") ? "=" + v.at("type") : "";
        auto const [there, is_new] = places.try_emplace({type, v.at("value")}, slot);
        if (!is_new) {
          erase(there->second);
          for (auto& x : facts) {
            x.slot = x.slot == slot ? there->second : x.slot;
          }
        }
      }
    }
  }

  int next_slot_ = 0;
  std::set<int> touched_;
};

auto draw_resource(random_source& random) -> reference {
  reference out;
  for (auto const& f : fields()) {
    auto count = below(random, f.many ? 4 : 2);
    count = (f.traits & required) != 0 ? 1 : count;
    bool primary = false;
    for (std::size_t i = 0; i < count; ++i) {
      auto const slot = out.new_slot();
      for (auto const& [sub, v] : draw_element(random, f)) {
        bool const flagged = (f.sub(sub).traits & flag) != 0;
        if (v && (f.sub(sub).traits & read_only) == 0) {
          bool const is_true = *v == "true" && !(primary && sub == "primary");
          primary = primary || (is_true && sub == "primary");
          out.facts.push_back({&f, slot, sub, flagged ? is_true ? "true" : "false" : *v});
        }
      }
    }
  }
  return out;
}

TEST(scim_patch_reference, agrees_on_random_resources_and_operations) {
  random_source random(7644);  // fixed, so that a failure comes again
  std::map<std::string, int> outcomes;
  reference before;
  std::string text;
  json::value resource;
  for (int i = 0; i < rounds; ++i) {
    if (i % 20 == 0) {
      before = draw_resource(random);
      text = before.text();
      resource = *json::parse(text);
    }
    auto expected = before;
    std::string operations;
    for (auto count = 1 + below(random, 3); count > 0; --count) {
      auto const op = draw_operation(random);
      operations += (operations.empty() ? "" : ",") + operation_text(random, op);
      if (expected.error.empty()) {
        expected.apply(op);
      }
    }
    if (expected.error.empty()) {
      expected.finish(before);
    }
    auto const body = json::parse(
        R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[)" +
        operations + "]}");
    ASSERT_TRUE(body) << operations;
    auto const parsed = parse_patch(*body, things());
    ASSERT_TRUE(parsed) << operations << "\n" << parsed.error().detail;
    auto const after = apply_patch(resource, *parsed, things());
    auto const what = after ? std::string() : std::string(to_string(after.error().type));
    ASSERT_EQ(what, expected.error) << text << "\n"
                                    << operations << "\n"
                                    << (after ? to_string(*after) : after.error().detail);
    if (after) {
      ASSERT_TRUE(*after == *json::parse(expected.text())) << text << "\n"
                                                           << operations << "\n"
                                                           << expected.text() << "\n"
                                                           << to_string(*after);
      ++outcomes[*after == resource ? "unchanged" : "changed"];
    } else {
      ++outcomes[what];
    }
  }
  // Every outcome comes often, or the comparison would say little.
  EXPECT_GT(outcomes["changed"], rounds / 3);
  for (std::string const outcome : {"unchanged", "mutability", "invalidValue", "noTarget"}) {
    EXPECT_GT(outcomes[outcome], rounds / 50) << outcome;
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
