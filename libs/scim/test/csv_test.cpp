// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/csv.hpp>

#include <tidegate/json/parse.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

using testing::ElementsAre;

auto read(std::string_view text) -> json::value {
  auto value = json::parse(text);
  EXPECT_TRUE(value) << text;
  return *std::move(value);
}

auto table_of(std::vector<json::value> const& resources, csv_limits limits = {}) -> std::string {
  csv_columns columns(limits);
  for (auto const& each : resources) {
    EXPECT_TRUE(columns.add(each));
  }
  std::string out;
  columns.append_header(out);
  for (auto const& each : resources) {
    columns.append_row(out, each);
  }
  return out;
}

/// The resources of a table, or its fault.
auto resources_of(std::string_view text) -> result<std::vector<json::value>, csv_fault> {
  std::optional<csv_header> header;
  std::vector<json::value> out;
  while (!text.empty()) {
    TIDEGATE_TRY(auto const record, parse_csv_record(text, true));
    if (!record) {
      break;
    }
    text.remove_prefix(record->octets);
    if (!header) {
      TIDEGATE_TRY(header, csv_header::of(record->cells));
      continue;
    }
    TIDEGATE_TRY(auto resource, header->resource_of(record->cells));
    out.push_back(std::move(resource));
  }
  return out;
}

TEST(scim_csv, has_a_column_for_each_attribute_and_value) {
  EXPECT_EQ(
      table_of({read(R"({"id":"1","name":{"givenName":"Ada"},"active":true,)"
                     R"("emails":[{"value":"a@x","primary":true}]})"),
                read(R"({"id":"2","userName":"b","emails":[{"value":"b@x"},{"value":"c@x"}],)"
                     R"("name":{"familyName":"B"}})")}),
      "id,name.givenName,name.familyName,active,emails.0.value,emails.0.primary,emails.1.value,"
      "userName\r\n"
      "1,Ada,,true,a@x,true,,\r\n"
      "2,,B,,b@x,,c@x,b\r\n");
}

TEST(scim_csv, names_extensions_as_filters_do) {
  EXPECT_EQ(table_of({read(R"({"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":)"
                           R"({"department":"x","manager":{"value":"1"}}})")}),
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department,"
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager.value\r\nx,1\r\n");
}

TEST(scim_csv, quotes_what_has_to_be_quoted) {
  EXPECT_EQ(table_of({read(R"({"a":"x,y","b":"say \"no\"","c":"1\r\n2","d":" x "})")}),
            "a,b,c,d\r\n\"x,y\",\"say \"\"no\"\"\",\"1\r\n2\", x \r\n");
}

TEST(scim_csv, writes_json_where_a_plain_cell_would_mean_something_else) {
  EXPECT_EQ(table_of({read(R"({"a":1,"b":"","c":"true","d":"x"})"),
                      read(R"({"a":"1","b":"x","c":true,"d":"y"})")}),
            "a (json),b (json),c (json),d\r\n"
            "1,\"\"\"\"\"\",\"\"\"true\"\"\",x\r\n"
            "\"\"\"1\"\"\",\"\"\"x\"\"\",true,y\r\n");
}

TEST(scim_csv, writes_many_values_as_one_cell) {
  EXPECT_EQ(
      table_of({read(R"({"members":[{"value":"1"}],"id":"g"})"),
                read(R"({"members":[{"value":"1"},{"value":"2"},{"value":"3"}]})")},
               {.values_max = 2}),
      "members (json),id\r\n"
      "\"[{\"\"value\"\":\"\"1\"\"}]\",g\r\n"
      "\"[{\"\"value\"\":\"\"1\"\"},{\"\"value\"\":\"\"2\"\"},{\"\"value\"\":\"\"3\"\"}]\",\r\n");
}

TEST(scim_csv, has_so_many_columns_at_most) {
  csv_columns columns({.columns_max = 2});
  EXPECT_TRUE(columns.add(read(R"({"a":"1","b":"2"})")));
  EXPECT_FALSE(columns.add(read(R"({"c":"1"})")));
}

TEST(scim_csv, reads_what_it_writes) {
  std::vector<json::value> const resources = {
      read(
          R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"a,\"b\"\n",)"
          R"("active":false,"x":{"y":{"z":"1"}},"n":1.5,"empty":"","emails":[{"value":"1"},)"
          R"({"value":"2","primary":true}],)"
          R"("urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"manager":{"value":"m"}}})"),
      read(R"({"schemas":["a","b"],"many":["1","2","3","4","5","6","7","8","9","10","11"]})"),
      read("{}")};
  auto const got = resources_of(table_of(resources));
  ASSERT_TRUE(got) << message(got.error());
  EXPECT_EQ(*got, resources);
}

TEST(scim_csv, takes_names_of_one_column_in_any_case) {
  EXPECT_EQ(table_of({read(R"({"userName":"a"})"), read(R"({"username":"b"})")}),
            "userName\r\na\r\nb\r\n");
}

TEST(scim_csv, reads_records_of_other_programs) {
  struct row {
    std::string text;
    std::vector<std::string> cells;
    std::size_t octets;
    std::size_t lines;
  };
  for (auto const& each : std::vector<row>{{"a,b\nc", {"a", "b"}, 4, 1},
                                           {"a,b\r\nc", {"a", "b"}, 5, 1},
                                           {"a", {"a"}, 1, 0},
                                           {"a\r", {"a"}, 2, 0},
                                           {",\n", {"", ""}, 2, 1},
                                           {"\n", {""}, 1, 1},
                                           {"\"\",x\n", {"", "x"}, 5, 1},
                                           {"\"a\"\"b\r\nc\"\r\n", {"a\"b\r\nc"}, 11, 2},
                                           {"\"a\"", {"a"}, 3, 0}}) {
    auto const got = parse_csv_record(each.text, true);
    ASSERT_TRUE(got && *got) << each.text;
    EXPECT_EQ((*got)->cells, each.cells) << each.text;
    EXPECT_EQ((*got)->octets, each.octets) << each.text;
    EXPECT_EQ((*got)->lines, each.lines) << each.text;
  }
}

TEST(scim_csv, waits_for_the_rest_of_a_record) {
  std::string const text = "a,\"b\"\"\r\n\",\"c\"\r\n";
  for (std::size_t size = 0; size < text.size(); ++size) {
    auto const got = parse_csv_record(std::string_view(text).substr(0, size), false);
    ASSERT_TRUE(got);
    EXPECT_FALSE(*got) << size;
  }
  EXPECT_THAT((**parse_csv_record(text, false)).cells, ElementsAre("a", "b\"\r\n", "c"));
}

TEST(scim_csv, says_what_is_wrong) {
  for (auto const& [text, fault] : std::vector<std::pair<std::string, csv_fault>>{
           {"a\nx\"y\n", csv_fault::quote_in_plain_cell},
           {"a\n\"x\"y\n", csv_fault::text_behind_quote},
           {"a\n\"x", csv_fault::unterminated_quote},
           {"a,b\nx\n", csv_fault::too_few_cells},
           {"a\nx,y\n", csv_fault::too_many_cells},
           {"a,,b\n", csv_fault::invalid_name},
           {"a..b\n", csv_fault::invalid_name},
           {"a,A\n", csv_fault::name_twice},
           {"a,a (json)\n", csv_fault::name_twice},
           {"a,a.b\nx,y\n", csv_fault::attribute_twice},
           {"a.b,a.0\nx,y\n", csv_fault::attribute_twice},
           {"a (json)\n{\n", csv_fault::invalid_json}}) {
    auto const got = resources_of(text);
    ASSERT_FALSE(got) << text;
    EXPECT_EQ(got.error(), fault) << text;
    EXPECT_FALSE(message(fault).empty());
  }
  EXPECT_FALSE(resources_of(std::string(200, 'a') +
                            ".b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x."
                            "y.z.a.b.c.d.e.f.g.h\n"));
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
