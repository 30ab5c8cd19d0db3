// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/projection.hpp>

#include <tidegate/json/parse.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

auto users() -> resource_definition const& {
  return user_definition();
}

/// A resource type with every kind of `returned`, at every level.
auto things() -> resource_definition const& {
  static auto const d = [] {
    std::vector<schema> const schemas{
        *read_schema(*json::parse(R"({"id":"urn:x:Thing","attributes":[
          {"name":"plain"},
          {"name":"tags","multiValued":true},
          {"name":"fixed","returned":"always"},
          {"name":"hidden","returned":"never"},
          {"name":"dear","returned":"request"},
          {"name":"place","type":"complex","subAttributes":[
            {"name":"room"},{"name":"floor","returned":"always"},{"name":"code","returned":"never"},
            {"name":"plan","returned":"request"}]},
          {"name":"parts","type":"complex","multiValued":true,"subAttributes":[
            {"name":"value"},{"name":"type"},{"name":"proof","returned":"request"}]},
          {"name":"mark","type":"complex","returned":"always","subAttributes":[
            {"name":"value"},{"name":"by"},{"name":"why","returned":"request"}]},
          {"name":"log","type":"complex","multiValued":true,"returned":"request","subAttributes":[
            {"name":"value"},{"name":"at"}]},
          {"name":"secret","type":"complex","returned":"never","subAttributes":[
            {"name":"value","returned":"always"}]}]})")),
        *read_schema(*json::parse(R"({"id":"urn:x:Extra","attributes":[
          {"name":"note"},
          {"name":"cost","returned":"request"},
          {"name":"key","returned":"never"},
          {"name":"owner","type":"complex","subAttributes":[
            {"name":"value"},{"name":"since","returned":"request"}]}]})")),
    };
    return *resource_definition::make(
        {"Thing", "Thing", "", "/Things", "urn:x:Thing", {{"urn:x:Extra", false}}}, schemas);
  }();
  return d;
}

auto names_in(std::string_view text) -> std::vector<std::string> {
  std::vector<std::string> names;
  while (!text.empty()) {
    auto const comma = std::min(text.find(','), text.size());
    names.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return names;
}

struct row {
  char const* name;
  char const* attributes;
  char const* excluded;
  char const* expected;
};

TEST(scim_projection, gives_what_is_returned_and_what_is_asked_for) {
  auto const thing = *json::parse(R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1",
    "plain":"p","tags":["a","b"],"fixed":"f","hidden":"h","dear":"d",
    "place":{"room":"r","floor":"1","code":"c","plan":"l"},
    "parts":[{"value":"v","type":"t","proof":"q"},{"value":"w"}],
    "mark":{"value":"m","by":"b","why":"y"},"log":[{"value":"l","at":"a"}],"secret":{"value":"s"},
    "meta":{"version":"7"},
    "urn:x:Extra":{"note":"n","cost":"c","key":"k","owner":{"value":"o","since":"s"}}})");
  std::vector<row> const rows{
      {"nothing is said", "", "",
       R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1","plain":"p","tags":["a","b"],"fixed":"f",)"
       R"("place":{"room":"r","floor":"1"},"parts":[{"value":"v","type":"t"},{"value":"w"}],)"
       R"("mark":{"value":"m","by":"b"},"meta":{"version":"7"},)"
       R"("urn:x:Extra":{"note":"n","owner":{"value":"o"}}})"},
      {"an attribute in any case", "PLAIN", "",
       R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1","plain":"p","fixed":"f",)"
       R"("mark":{"value":"m","by":"b"}})"},
      {"an attribute with the URN of its schema", "urn:x:Thing:tags", "",
       R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1","tags":["a","b"],"fixed":"f",)"
       R"("mark":{"value":"m","by":"b"}})"},
      {"only unknown attributes", "nothing,urn:x:None:a", "",
       R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1","fixed":"f",)"
       R"("mark":{"value":"m","by":"b"}})"},
      {"what is never returned", "hidden,secret,secret.value,place.code", "",
       R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1","fixed":"f","place":{"floor":"1"},)"
       R"("mark":{"value":"m","by":"b"}})"},
      {"what is returned on request", "dear,log,urn:x:extra:COST", "",
       R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1","fixed":"f","dear":"d",)"
       R"("mark":{"value":"m","by":"b"},"log":[{"value":"l","at":"a"}],"urn:x:Extra":{"cost":"c"}})"},
      {"a part of what is returned on request", "log.at", "",
       R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1","fixed":"f",)"
       R"("mark":{"value":"m","by":"b"},"log":[{"at":"a"}]})"},
      {"a complex attribute", "place", "",
       R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1","fixed":"f",)"
       R"("place":{"room":"r","floor":"1"},"mark":{"value":"m","by":"b"}})"},
      {"a sub-attribute, with one that always comes", "place.plan", "",
       R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1","fixed":"f",)"
       R"("place":{"floor":"1","plan":"l"},"mark":{"value":"m","by":"b"}})"},
      {"an attribute and its sub-attribute", "place,place.plan", "",
       R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1","fixed":"f",)"
       R"("place":{"room":"r","floor":"1","plan":"l"},"mark":{"value":"m","by":"b"}})"},
      {"a sub-attribute that not all values have", "parts.type", "",
       R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1","fixed":"f","parts":[{"type":"t"}],)"
       R"("mark":{"value":"m","by":"b"}})"},
      {"a part of what always comes", "mark.why", "",
       R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1","fixed":"f",)"
       R"("mark":{"value":"m","by":"b","why":"y"}})"},
      {"an extension", "urn:x:Extra", "",
       R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1","fixed":"f",)"
       R"("mark":{"value":"m","by":"b"},"urn:x:Extra":{"note":"n","owner":{"value":"o"}}})"},
      {"a sub-attribute of an extension", "urn:x:Extra:owner.since", "",
       R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1","fixed":"f",)"
       R"("mark":{"value":"m","by":"b"},"urn:x:Extra":{"owner":{"since":"s"}}})"},
      {"all but some", "", "plain,tags,parts,place.room,meta,urn:x:Extra:note",
       R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1","fixed":"f","place":{"floor":"1"},)"
       R"("mark":{"value":"m","by":"b"},"urn:x:Extra":{"owner":{"value":"o"}}})"},
      {"not even what always comes", "",
       "schemas,id,fixed,mark,mark.by,place,plain,tags,parts,meta,urn:x:Extra",
       R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1","fixed":"f","mark":{"value":"m"}})"},
      {"to exclude is not to request", "",
       "dear,place.plan,parts.type,parts.value,urn:x:Extra:owner.value,meta.version,tags,plain",
       R"({"schemas":["urn:x:Thing","urn:x:Extra"],"id":"1","fixed":"f",)"
       R"("place":{"room":"r","floor":"1"},"mark":{"value":"m","by":"b"},)"
       R"("urn:x:Extra":{"note":"n"}})"},
  };
  for (auto const& r : rows) {
    auto const p = projection::make(names_in(r.attributes), names_in(r.excluded), things());
    ASSERT_TRUE(p) << r.name;
    EXPECT_EQ(to_string(p->apply(thing)), r.expected) << r.name;
    EXPECT_EQ(p->is_default(), *r.attributes == 0 && *r.excluded == 0) << r.name;
  }
}

TEST(scim_projection, gives_the_example_of_the_rfc) {
  auto const p = projection::make(names_in("userName"), {}, users());
  ASSERT_TRUE(p);
  EXPECT_EQ(to_string(p->apply(*json::parse(
                R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],
                    "id":"2819c223-7f76-453a-919d-413861904646","userName":"bjensen",
                    "password":"x","name":{"formatted":"Ms. Barbara J Jensen III"},
                    "meta":{"resourceType":"User"}})"))),
            R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],)"
            R"("id":"2819c223-7f76-453a-919d-413861904646","userName":"bjensen"})");
}

TEST(scim_projection, refuses_both_lists) {
  auto const p = projection::make(names_in("userName"), names_in("name"), users());
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().status, 400);
  EXPECT_EQ(p.error().type, scim_type::invalid_value);
  // A list without a name is as good as none.
  EXPECT_TRUE(projection::make(names_in("userName"), names_in(","), users()));
  std::vector<std::string> const empty{""};
  EXPECT_TRUE(projection::make(empty, {}, users())->is_default());
}

TEST(scim_projection, says_beforehand_whether_an_attribute_is_wanted) {
  struct wanted {
    char const* attributes;
    char const* excluded;
    bool groups;
  };
  for (auto const& w : std::vector<wanted>{{"", "", true},
                                           {"userName", "", false},
                                           {"GROUPS", "", true},
                                           {"groups.display", "", true},
                                           {"", "groups", false},
                                           {"", "groups.display", true},
                                           {"", "userName", true}}) {
    auto const p = projection::make(names_in(w.attributes), names_in(w.excluded), users());
    EXPECT_EQ(p->wants("groups"), w.groups) << w.attributes << "|" << w.excluded;
    EXPECT_TRUE(p->wants("id"));
    EXPECT_FALSE(p->wants("password"));
    EXPECT_FALSE(p->wants("nothing"));
  }
}

TEST(scim_projection, leaves_out_what_is_not_as_the_schema_says) {
  auto const p = projection::make({}, {}, things());
  EXPECT_EQ(
      to_string(p->apply(*json::parse(
          R"({"unknown":1,"place":"x","parts":[1,{"none":2}],"urn:x:Extra":[],"plain":"p"})"))),
      R"({"plain":"p"})");
  EXPECT_EQ(to_string(p->apply(json::value("x"))), "{}");
}

// ── against a slow, obvious reference: a list of leaves, each judged for itself ──

struct leaf {
  std::string extension;
  std::string parent;
  std::size_t number = 0;  // of several values
  std::string sub;
  std::string value;
  auto operator<=>(leaf const&) const = default;
};

void flatten(std::multiset<leaf>& out, std::string const& extension, json::value const& object) {
  for (auto const& m : object.if_object()->members()) {
    if (m.name.starts_with("urn:")) {
      flatten(out, m.name, m.value);
      continue;
    }
    auto const values = m.value.if_array() != nullptr ? *m.value.if_array() : json::array{m.value};
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (auto const* const inner = values[i].if_object()) {
        // By content: a value of which nothing is left takes no number.
        for (auto const& s : inner->members()) {
          out.insert({extension, m.name, 0, s.name, to_string(s.value)});
        }
      } else {
        out.insert({extension, m.name, i, "", to_string(values[i])});
      }
    }
  }
}

/// How an attribute or sub-attribute of `things()` is returned.
auto returned_of(leaf const& l, bool of_sub) -> attribute_returned {
  auto const text = (l.extension.empty() ? "" : l.extension + ":") + l.parent +
                    (of_sub ? "." + l.sub : std::string());
  return things().resolve(text)->leaf()->returned;
}

auto comes(leaf const& l, std::set<std::string> const& only, std::set<std::string> const& but)
    -> bool {
  using enum attribute_returned;
  auto const prefix = l.extension.empty() ? "" : l.extension + ":";
  auto const parent = prefix + l.parent;
  auto const sub = parent + "." + l.sub;
  auto const mine = returned_of(l, false);
  bool const part_named = std::any_of(
      only.begin(), only.end(), [&](std::string const& n) { return n.starts_with(parent + "."); });
  bool const whole_named = only.contains(parent);
  bool const extension_named = only.contains(l.extension);
  bool const excluded = but.contains(parent) || but.contains(l.extension);
  if (mine == never || (mine == request && !whole_named && !part_named) ||
      (mine == by_default && !only.empty() && !whole_named && !part_named && !extension_named) ||
      (mine == by_default && excluded)) {
    return false;
  }
  if (l.sub.empty()) {
    return true;
  }
  switch (returned_of(l, true)) {
    case always: return true;
    case never: return false;
    case request: return only.contains(sub);
    case by_default: break;
  }
  if (but.contains(sub)) {
    return false;
  }
  return only.empty() || only.contains(sub) || whole_named || extension_named || mine == always;
}

TEST(scim_projection, agrees_with_a_reference_on_random_resources_and_names) {
  std::mt19937 random(7643);
  auto const chance = [&](unsigned of) { return random() % of == 0; };
  std::vector<std::string> names{"schemas", "id", "meta", "meta.version", "unknown"};
  auto const add_names = [&](schema const& s, std::string const& prefix) {
    for (auto const& a : s.attributes) {
      names.push_back(prefix + a.name);
      for (auto const& sub : a.sub_attributes) {
        names.push_back(prefix + a.name + "." + sub.name);
      }
    }
  };
  add_names(things().base(), "");
  add_names(things().extensions()[0], "urn:x:Extra:");
  names.emplace_back("urn:x:Extra");

  int counter = 0;
  auto const draw = [&](schema const& s) {
    json::object out;
    for (auto const& a : s.attributes) {
      json::array values;
      auto const count = a.multi_valued ? random() % 4 : random() % 2;
      for (unsigned i = 0; i < count; ++i) {
        json::object inner;
        for (auto const& sub : a.sub_attributes) {
          if (!chance(3)) {
            inner.append(sub.name, std::to_string(++counter));
          }
        }
        if (a.sub_attributes.empty()) {
          values.emplace_back(std::to_string(++counter));
        } else if (!inner.empty()) {
          values.emplace_back(std::move(inner));
        }
      }
      if (!values.empty()) {
        out.append(a.name, a.multi_valued ? json::value(values) : values.front());
      }
    }
    return out;
  };

  int left = 0;
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    counter = 0;
    auto resource = draw(things().base());
    if (auto extra = draw(things().extensions()[0]); !extra.empty()) {
      resource.append("urn:x:Extra", std::move(extra));
    }
    std::vector<std::string> listed;
    for (auto count = random() % 6; count > 0; --count) {
      listed.push_back(names[random() % names.size()]);
    }
    bool const only = chance(2);
    std::set<std::string> const none;
    std::set<std::string> const set(listed.begin(), listed.end());
    auto const p =
        only ? projection::make(listed, {}, things()) : projection::make({}, listed, things());
    std::multiset<leaf> all;
    std::multiset<leaf> expected;
    std::multiset<leaf> actual;
    flatten(all, "", resource);
    for (auto const& l : all) {
      if (comes(l, only ? set : none, only ? none : set)) {
        expected.insert(l);
      }
    }
    flatten(actual, "", p->apply(resource));
    std::string text;
    for (auto const& name : listed) {
      text += name + ",";
    }
    ASSERT_TRUE(expected == actual)
        << (only ? "attributes=" : "excludedAttributes=") << text << "\n"
        << to_string(resource) << "\n"
        << to_string(p->apply(resource));
    taken += static_cast<int>(expected.size());
    left += static_cast<int>(all.size() - expected.size());
  }
  EXPECT_GT(taken, 50'000);
  EXPECT_GT(left, 50'000);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
