// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/index_key.hpp>

#include <tidegate/json/parse.hpp>
#include <tidegate/scim/case_fold.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

auto attribute_of(attribute_type type, bool case_exact = false) -> attribute {
  attribute a;
  a.name = "a";
  a.type = type;
  a.case_exact = case_exact;
  return a;
}

auto const text_attribute = attribute_of(attribute_type::string);
auto const exact_attribute = attribute_of(attribute_type::string, true);
auto const number_attribute = attribute_of(attribute_type::decimal);
auto const time_attribute = attribute_of(attribute_type::date_time);
auto const flag_attribute = attribute_of(attribute_type::boolean);

TEST(scim_index_key, folds_and_composes_text_that_is_not_case_exact) {
  auto const key = [](std::string_view text) {
    return index_key(text_attribute, json::value(text));
  };
  EXPECT_EQ(key("BJensen"),
            "\x01"
            "bjensen");
  EXPECT_EQ(key("\u00c9"), key("e\u0301"));
  EXPECT_NE(key("\u00c9"), key("e"));
  EXPECT_EQ(key(""), "\x01");
  auto const schemas = attribute_of(attribute_type::reference);
  EXPECT_EQ(index_key(schemas, json::value("URN:x")), "\x01urn:x");
}

TEST(scim_index_key, takes_the_octets_of_text_that_is_case_exact) {
  EXPECT_EQ(index_key(exact_attribute, json::value("Ae\u0301")),
            "\x01"
            "Ae\u0301");
  EXPECT_EQ(index_key(attribute_of(attribute_type::binary, true), json::value("AAE=")),
            "\x01"
            "AAE=");
  EXPECT_EQ(index_key(attribute_of(attribute_type::reference, true), json::value("/Users/A")),
            "\x01/Users/A");
}

TEST(scim_index_key, stands_for_no_value_where_there_is_none_of_the_type) {
  for (auto const& a : {text_attribute, exact_attribute, number_attribute, time_attribute,
                        flag_attribute, attribute_of(attribute_type::complex)}) {
    EXPECT_EQ(index_key(a, json::value()), missing_key);
    EXPECT_EQ(index_key(a, json::value(json::object())), missing_key);
    EXPECT_EQ(index_key(a, json::value(json::array{"a"})), missing_key);
  }
  EXPECT_EQ(index_key(text_attribute, json::value(1)), missing_key);
  EXPECT_EQ(index_key(number_attribute, json::value("1")), missing_key);
  EXPECT_EQ(index_key(time_attribute, json::value("yesterday")), missing_key);
  EXPECT_EQ(index_key(flag_attribute, json::value("true")), missing_key);
  EXPECT_EQ(index_key(text_attribute, filter_value(nullptr)), missing_key);
}

TEST(scim_index_key, comes_before_the_key_of_no_value) {
  EXPECT_LT(index_key(text_attribute, json::value(std::string(300, '\x7f'))), missing_key);
  EXPECT_LT(index_key(exact_attribute, json::value("\xff\xff")), missing_key);
  EXPECT_LT(index_key(number_attribute, json::value(std::numeric_limits<double>::max())),
            missing_key);
  EXPECT_LT(index_key(time_attribute, json::value("9999-12-31T23:59:59.999999999Z")), missing_key);
  EXPECT_LT(index_key(flag_attribute, json::value(true)), missing_key);
}

TEST(scim_index_key, orders_numbers_of_both_kinds_exactly) {
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  std::vector<std::vector<json::value>> const ascending = {
      {-std::numeric_limits<double>::max()},
      {-1e19},
      {least, -9223372036854775808.0},
      {least + 1},
      {least + 1023},
      {least + 1024, -9223372036854774784.0},
      {std::int64_t{-9007199254740993}},
      {std::int64_t{-9007199254740992}, -9007199254740992.0},
      {-1.5},
      {-1, -1.0},
      {-std::numeric_limits<double>::denorm_min()},
      {0, 0.0, -0.0},
      {std::numeric_limits<double>::denorm_min()},
      {0.5},
      {1, 1.0},
      {std::int64_t{9007199254740992}, 9007199254740992.0},
      {std::int64_t{9007199254740993}},
      {std::int64_t{9007199254740994}, 9007199254740994.0},
      {most - 1024},
      {most - 1023, 9223372036854774784.0},
      {most - 1},
      {most},
      {9223372036854775808.0},
      {1e300},
  };
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    auto const first = index_key(number_attribute, ascending[i].front());
    for (auto const& same : ascending[i]) {
      EXPECT_EQ(index_key(number_attribute, same), first) << to_string(same);
      EXPECT_EQ(index_key(attribute_of(attribute_type::integer), same), first);
    }
    if (i > 0) {
      EXPECT_LT(index_key(number_attribute, ascending[i - 1].back()), first) << i;
    }
  }
}

TEST(scim_index_key, orders_moments) {
  std::vector<std::vector<std::string_view>> const ascending = {
      {"0000-01-01T00:00:00Z"},
      {"1969-12-31T23:59:59.999999999Z"},
      {"1970-01-01T00:00:00Z", "1970-01-01T02:00:00+02:00"},
      {"2011-05-13T04:42:34Z", "2011-05-13T06:42:34.000+02:00"},
      {"2011-05-13T04:42:34.000000001Z"},
      {"2011-05-13T04:42:34.5Z", "2011-05-12T23:42:34.500-05:00"},
      {"9999-12-31T23:59:59Z"},
  };
  std::string last;
  for (auto const& moments : ascending) {
    auto const first = index_key(time_attribute, json::value(moments.front()));
    EXPECT_LT(last, first);
    last = first;
    for (auto const same : moments) {
      EXPECT_EQ(index_key(time_attribute, json::value(same)), first) << same;
    }
  }
}

TEST(scim_index_key, orders_booleans) {
  EXPECT_LT(index_key(flag_attribute, json::value(false)),
            index_key(flag_attribute, json::value(true)));
}

TEST(scim_index_key, is_cut_without_a_change_of_order) {
  std::string const stem(sort_key_octets_max - 2, 'a');
  auto const key = [](std::string const& text) {
    return index_key(text_attribute, json::value(text));
  };
  EXPECT_EQ(key(stem).size(), sort_key_octets_max - 1);
  EXPECT_EQ(key(stem + "b").size(), sort_key_octets_max);
  EXPECT_EQ(key(stem + "b"), key(stem + "bc"));
  EXPECT_LT(key(stem), key(stem + "b"));
  EXPECT_LT(key(stem + "ac"), key(stem + "b"));
  // In the middle of a character too.
  EXPECT_EQ(key(stem + "\u00e9").size(), sort_key_octets_max);
  EXPECT_LE(key(stem + "\u00e8"), key(stem + "\u00e9"));
}

TEST(scim_index_key, is_the_same_of_a_value_and_of_a_filter_that_asks_for_it) {
  auto const m = *model::make({}, {}, std::vector<std::string>{"active", "title", "meta.created"});
  auto const& user = *m.find("User");
  std::string const lengthy(400, 'X');
  struct row {
    std::string filter;
    attribute const* a;
    json::value value;
  };
  auto const leaf = [&](std::string_view path) { return user.definition.resolve(path)->leaf(); };
  for (auto const& [text, a, value] : {
           row{"title eq \"A\u030a\"", leaf("title"), "\u212b"},
           row{"title eq \"" + lengthy + "\"", leaf("title"), lengthy},
           row{"externalId eq \"A\u030a\"", leaf("externalId"), "A\u030a"},
           row{"active eq \"True\"", leaf("active"), true},
           row{"meta.created eq \"2011-05-13T04:42:34Z\"", leaf("meta.created"),
               "2011-05-13T06:42:34+02:00"},
       }) {
    auto const f = parse_filter(text, user.definition);
    ASSERT_TRUE(f) << text;
    EXPECT_EQ(index_key(*a, f->value), index_key(*a, value)) << text;
  }
}

TEST(scim_index_key, orders_random_texts_as_filters_do) {
  std::mt19937 random(20221);
  std::vector<std::string_view> const pieces = {
      "a",      "B",      "\u00e9", "E",      "\u0301",     "\u0323", "\u1112", "\u1161",
      "\u11ab", "\u0345", "\u03b1", "\uffff", "\U00010400", "z",      "\u212b"};
  auto const draw = [&] {
    std::string text;
    for (auto n = random() % 6; n > 0; --n) {
      text += pieces[random() % pieces.size()];
    }
    return text;
  };
  for (int i = 0; i < 20'000; ++i) {
    auto const a = draw();
    auto const b = draw();
    auto const left = index_key(text_attribute, json::value(a));
    auto const right = index_key(text_attribute, json::value(b));
    ASSERT_EQ(left <=> right, case_fold(a) <=> case_fold(b)) << a << " " << b;
    ASSERT_EQ(index_key(text_attribute, json::value(case_fold(a))), left) << a;
  }
}

// ── entries ──

auto entries_of(model_type const& type, std::string_view resource) -> std::vector<std::string> {
  std::vector<std::string> out;
  for (auto const& e : index_entries(type, *json::parse(resource))) {
    out.push_back(type.indexes[e.index].name + "=" +
                  (e.key == missing_key ? "-" : e.key.substr(1)) + (e.sorts ? "*" : ""));
  }
  return out;
}

using texts = std::vector<std::string>;

auto thing_model() -> model {
  auto const base = *read_schema(*json::parse(R"({"id":"urn:x:Thing","attributes":[
      {"name":"tags","multiValued":true},
      {"name":"parts","type":"complex","multiValued":true,"subAttributes":[
        {"name":"value"},{"name":"primary","type":"boolean"},{"name":"codes","multiValued":true}]},
      {"name":"place","type":"complex","subAttributes":[{"name":"room","caseExact":true}]}]})"));
  auto const extra = *read_schema(
      *json::parse(R"({"id":"urn:x:Extra","attributes":[{"name":"note","uniqueness":"server"}]})"));
  resource_type const type{"Thing",   "Thing",       "",
                           "/Things", "urn:x:Thing", {{"urn:x:Extra", false}}};
  std::vector<schema> const schemas{base, extra};
  return *model::make(schemas, std::vector{type},
                      std::vector<std::string>{"tags", "parts", "parts.codes", "place.room"});
}

TEST(scim_index_entries, has_one_of_each_index_where_nothing_has_a_value) {
  auto const m = thing_model();
  texts const nothing{"id=-*",   "externalid=-*",  "meta.lastmodified=-*", "urn:x:extra:note=-*",
                      "tags=-*", "parts.value=-*", "parts.codes=-*",       "place.room=-*"};
  EXPECT_EQ(entries_of(*m.find("Thing"), "{}"), nothing);
  EXPECT_EQ(
      entries_of(*m.find("Thing"), R"({"tags":[],"parts":[{}],"place":null,"urn:x:Extra":{}})"),
      nothing);
  EXPECT_EQ(entries_of(*m.find("Thing"), "1"), nothing);
}

TEST(scim_index_entries, has_all_values_and_sorts_by_the_primary_or_the_first) {
  auto const m = thing_model();
  auto const of_index = [&](std::string_view resource, std::string_view name) {
    auto all = entries_of(*m.find("Thing"), resource);
    std::erase_if(all,
                  [&](std::string const& e) { return !e.starts_with(std::string(name) + "="); });
    return all;
  };
  EXPECT_EQ(of_index(R"({"tags":["b","A","c"]})", "tags"), (texts{"tags=a", "tags=b*", "tags=c"}));
  EXPECT_EQ(of_index(R"({"tags":["b","a","B"]})", "tags"), (texts{"tags=a", "tags=b*"}));
  EXPECT_EQ(of_index(R"({"TAGS":["",null]})", "tags"), (texts{"tags=*"}));
  auto const parts = R"({"parts":[{"value":"b","codes":["2","1"]},{"primary":false},
                         {"value":"a","primary":true,"codes":["3"]},{"value":"c"}]})";
  EXPECT_EQ(of_index(parts, "parts.value"),
            (texts{"parts.value=a*", "parts.value=b", "parts.value=c"}));
  EXPECT_EQ(of_index(parts, "parts.codes"),
            (texts{"parts.codes=1", "parts.codes=2", "parts.codes=3*"}));
  EXPECT_EQ(of_index(R"({"parts":[{"value":"x"},{"value":"X","primary":true},{"value":"a"}]})",
                     "parts.value"),
            (texts{"parts.value=a", "parts.value=x*"}));
  EXPECT_EQ(of_index(R"({"parts":[{"primary":true},{"value":"b"},{"value":"a"}]})", "parts.value"),
            (texts{"parts.value=a", "parts.value=b*"}))
      << "the primary one has no value";
  EXPECT_EQ(of_index(R"({"place":{"ROOM":"B"}})", "place.room"), (texts{"place.room=B*"}));
  EXPECT_EQ(of_index(R"({"URN:x:extra":{"Note":"N"}})", "urn:x:extra:note"),
            (texts{"urn:x:extra:note=n*"}));
}

TEST(scim_index_entries, takes_long_lists_of_values) {
  auto const m = thing_model();
  json::array tags;
  for (int i = 0; i < 100'000; ++i) {
    tags.emplace_back(std::to_string(i % 50'000));
  }
  auto const entries = index_entries(*m.find("Thing"), json::object{{"tags", std::move(tags)}});
  EXPECT_EQ(entries.size(), 50'000U + 7U);
  EXPECT_EQ(std::ranges::count_if(entries, &index_entry::sorts), 8);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
