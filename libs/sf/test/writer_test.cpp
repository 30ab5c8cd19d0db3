// SPDX-License-Identifier: Apache-2.0
#include "support/allocations.hpp"

#include <tidegate/sf.hpp>

#include <gtest/gtest.h>

#include <string>

namespace tidegate::TIDEGATE_ABI::sf {
namespace {

TEST(sf_writer, builds_a_list_without_a_tree) {
  std::string out = "RateLimit: ";
  list_writer writer(out);
  writer.item(string_view("default"));
  writer.parameter("r", 50);
  writer.parameter("t", 30);
  writer.begin_inner_list();
  writer.inner_item(token_view("a"));
  writer.parameter("x");
  writer.inner_item(*decimal::from_text("1.5"));
  writer.end_inner_list();
  writer.parameter("y", false);
  EXPECT_EQ(out, R"(RateLimit: "default";r=50;t=30, (a;x 1.5);y=?0)");
}

TEST(sf_writer, builds_a_dictionary_without_a_tree) {
  std::string out;
  dictionary_writer writer(out);
  writer.member("a", true);
  writer.parameter("p", true);
  writer.member("b", false);
  writer.member("c", byte_sequence_view{"hello"});
  writer.begin_inner_list("d");
  writer.end_inner_list();
  writer.member("e", date(-1));
  writer.member("f", display_string_view("f\xc3\xbc\"%"));
  writer.member("g", bare_item(true));
  EXPECT_EQ(out, R"(a;p, b=?0, c=:aGVsbG8=:, d=(), e=@-1, f=%"f%c3%bc%22%25", g)");
}

TEST(sf_writer, writes_draft11_its_own_way) {
  std::string out;
  basic_list_writer<dialect::draft11> list(out);
  list.item(*floating::make(1.5));
  list.parameter("a");
  list.parameter("b", true);
  list.begin_inner_list();
  list.inner_item(1);
  list.inner_item(2);
  list.end_inner_list();
  list.begin_inner_list();
  list.end_inner_list();
  EXPECT_EQ(out, "1.5;a;b=?1, (1 2 ), ()");
  out.clear();
  basic_dictionary_writer<dialect::draft11> dictionary(out);
  dictionary.member("a", true);
  dictionary.member("b", byte_sequence_view{"hi"});
  EXPECT_EQ(out, "a=?1, b=*aGk=*");
}

TEST(sf_writer, writes_numbers_in_their_canonical_form) {
  auto written = [](auto value) {
    std::string out;
    write_bare_item(out, value);
    return out;
  };
  EXPECT_EQ(written(0), "0");
  EXPECT_EQ(written(-7), "-7");
  EXPECT_EQ(written(*integer::make(integer::max)), "999999999999999");
  EXPECT_EQ(written(*integer::make(-integer::max)), "-999999999999999");
  struct row {
    std::int64_t thousandths;
    std::string_view text;
  };
  for (auto const& [thousandths, text] : {row{0, "0.0"},
                                          {1, "0.001"},
                                          {10, "0.01"},
                                          {100, "0.1"},
                                          {-1, "-0.001"},
                                          {1000, "1.0"},
                                          {1010, "1.01"},
                                          {-2500, "-2.5"},
                                          {999'999'999'999'999, "999999999999.999"}}) {
    EXPECT_EQ(written(*decimal::from_thousandths(thousandths)), text);
  }
  std::string out;
  for (double value : {0.0, -0.0, 100.0, 0.1, -4.5, 0.00000000000001, 99999999999999.0}) {
    write_bare_item<dialect::draft11>(out, *floating::make(value));
    out.push_back(' ');
  }
  EXPECT_EQ(out, "0.0 0.0 100.0 0.1 -4.5 0.00000000000001 99999999999999.0 ");
}

TEST(sf_writer, reads_back_every_number_of_digits) {
  for (std::int64_t power = 1; power <= integer::max; power *= 10) {
    for (auto value : {power - 1, power, -power}) {
      std::string out;
      write_bare_item(out, *integer::make(value));
      EXPECT_EQ(out, std::to_string(value));
    }
  }
}

TEST(sf_writer, escapes_quotes_and_backslashes_in_strings_of_any_length) {
  for (std::size_t size = 0; size < 200; size += 7) {
    for (std::size_t at = 0; at < size; at += 5) {
      std::string text(size, 'a');
      text[at] = at % 2 == 0 ? '"' : '\\';
      item const value{*string::make(text)};
      auto const written = serialized(value);
      EXPECT_EQ(written.size(), size + 3);
      EXPECT_EQ(parse_item(written).value(), value);
    }
  }
}

TEST(sf_serialize, leaves_an_empty_list_or_dictionary_out) {
  EXPECT_EQ(serialized(list()), "");
  EXPECT_EQ(serialized(dictionary()), "");
  std::string out = "kept";
  serialize(list(), out);
  EXPECT_EQ(out, "kept");
}

TEST(sf_serialize, appends_to_what_is_there) {
  std::string out = "Priority: ";
  serialize(parse_dictionary("u=1,i").value(), out);
  EXPECT_EQ(out, "Priority: u=1, i");
}

TEST(sf_serialize, allocates_nothing_when_the_buffer_is_large_enough) {
  auto const value =
      parse_dictionary(
          R"(a=1, b=2;x=?1, c=(1 2 "three"), d=:cHJldGVuZA==:, e=4.5, f=tok/en, g="a \"string\" value that is long", h=@1, i=%"%c3%bc")")
          .value();
  std::string out;
  out.reserve(1024);
  auto const before = tidegate::test::allocations();
  serialize(value, out);
  EXPECT_EQ(tidegate::test::allocations(), before);
  EXPECT_EQ(parse_dictionary(out).value(), value);
}

TEST(sf_reader, allocates_nothing) {
  std::string const text =
      R"(a=1, b=2;x=?1, c=(1 2 "three"), d=:cHJldGVuZA==:, e=4.5, f=tok/en, g="a \"string\" value", h=@1, i=%"%c3%bc")";
  char out[64];
  auto const before = tidegate::test::allocations();
  reader reader(field_type::dictionary, text);
  std::size_t decoded = 0;
  for (auto e = reader.next(); e != event::end; e = reader.next()) {
    ASSERT_NE(e, event::failure);
    if (!reader.value().raw().empty()) {
      decoded += reader.value().decode(out);
    }
  }
  EXPECT_EQ(tidegate::test::allocations(), before);
  EXPECT_GT(decoded, 0U);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::sf
