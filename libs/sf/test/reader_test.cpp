// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf/reader.hpp>

#include "scan.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::sf {
namespace {

using enum event;

/// One line for each event, the way a protocol trace reads.
template <dialect D = dialect::rfc9651>
auto trace(field_type type, std::string_view text) -> std::vector<std::string> {
  std::vector<std::string> lines;
  basic_reader<D> reader(type, text);
  auto value = [&]() -> std::string {
    std::string scratch;
    auto const& v = reader.value();
    switch (v.type()) {
      case bare_item_type::integer: return "integer " + std::to_string(v.as_integer().value());
      case bare_item_type::decimal:
        return "thousandths " + std::to_string(v.as_decimal().thousandths());
      case bare_item_type::floating: return "float " + std::to_string(v.as_floating().value());
      case bare_item_type::string: return "string " + std::string(v.text(scratch));
      case bare_item_type::token: return "token " + std::string(v.as_token());
      case bare_item_type::byte_sequence: return "bytes " + std::string(v.text(scratch));
      case bare_item_type::boolean: return v.as_boolean() ? "true" : "false";
      case bare_item_type::date: return "date " + std::to_string(v.as_date().seconds().value());
      case bare_item_type::display_string: return "display " + std::string(v.text(scratch));
      case bare_item_type::none: break;
    }
    return "none";
  };
  auto key = [&] { return std::string(reader.key()); };
  bool const keyed = type == field_type::dictionary;
  for (;;) {
    switch (reader.next()) {
      case item: lines.push_back((keyed ? key() + " = " : std::string()) + value()); break;
      case inner_list: lines.push_back((keyed ? key() + " = " : std::string()) + "("); break;
      case inner_item: lines.push_back("  " + value()); break;
      case inner_list_end: lines.emplace_back(")"); break;
      case parameter: lines.push_back("; " + key() + " = " + value()); break;
      case end: lines.emplace_back("end"); return lines;
      case failure: lines.push_back(to_string(reader.error())); return lines;
    }
  }
}

using lines = std::vector<std::string>;

TEST(sf_reader, pulls_members_and_their_parameters_out_of_a_list) {
  EXPECT_EQ(trace(field_type::list, R"("burst";q=100;w=60, "daily";q=1000;w=86400)"),
            (lines{"string burst", "; q = integer 100", "; w = integer 60", "string daily",
                   "; q = integer 1000", "; w = integer 86400", "end"}));
}

TEST(sf_reader, pulls_every_type_out_of_a_dictionary) {
  EXPECT_EQ(trace(field_type::dictionary,
                  R"(a=1, b=-2.5, c="x\"y\\", d=tok/en, e=:aGk=:, f=?0, g, h=@-7, i=%"f%c3%bc")"),
            (lines{"a = integer 1", "b = thousandths -2500", "c = string x\"y\\",
                   "d = token tok/en", "e = bytes hi", "f = false", "g = true", "h = date -7",
                   "i = display f\xc3\xbc", "end"}));
}

TEST(sf_reader, tells_the_parameters_of_inner_items_from_those_of_the_inner_list) {
  EXPECT_EQ(trace(field_type::list, "( 1;a  2 );b=?0, ();c"),
            (lines{"(", "  integer 1", "; a = true", "  integer 2", ")", "; b = false", "(", ")",
                   "; c = true", "end"}));
}

TEST(sf_reader, reports_a_repeated_key_each_time_it_comes) {
  EXPECT_EQ(trace(field_type::dictionary, "a=1, a=2"),
            (lines{"a = integer 1", "a = integer 2", "end"}));
}

TEST(sf_reader, refuses_a_repeated_key_in_draft11) {
  EXPECT_EQ(trace<dialect::draft11>(field_type::dictionary, "a=1, b=2, a=3"),
            (lines{"a = integer 1", "b = integer 2", "the key was there before at offset 10"}));
  EXPECT_EQ(trace<dialect::draft11>(field_type::list, "x;a;a").back(),
            "the key was there before at offset 4");
  EXPECT_EQ(trace<dialect::draft11>(field_type::list, "x;a, y;a").back(), "end");
}

TEST(sf_reader, finds_a_repeated_key_of_draft11_among_many) {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text += (i == 0 ? "k" : ", k") + std::to_string(i) + "=1";
  }
  EXPECT_EQ(trace<dialect::draft11>(field_type::dictionary, text).back(), "end");
  for (int i = 0; i < 100; ++i) {
    auto const again = text + ", k" + std::to_string(i) + "=1";
    EXPECT_EQ(trace<dialect::draft11>(field_type::dictionary, again).back(),
              "the key was there before at offset " + std::to_string(text.size() + 2));
  }
}

TEST(sf_reader, has_none_for_a_parameter_without_value_in_draft11) {
  EXPECT_EQ(trace<dialect::draft11>(field_type::list, "x ;\ta; b=?1"),
            (lines{"token x", "; a = none", "; b = true", "end"}));
}

TEST(sf_reader, reads_an_empty_value_as_an_empty_list_or_dictionary_but_no_item) {
  EXPECT_EQ(trace(field_type::list, ""), lines{"end"});
  EXPECT_EQ(trace(field_type::dictionary, "   "), lines{"end"});
  EXPECT_EQ(trace(field_type::item, " "), lines{"the value ends too early at offset 1"});
  EXPECT_EQ(trace(field_type::list, std::string_view()), lines{"end"});
}

TEST(sf_reader, stays_at_the_end_once_it_is_there) {
  reader reader(field_type::item, "1");
  EXPECT_EQ(reader.next(), item);
  EXPECT_EQ(reader.next(), end);
  EXPECT_EQ(reader.next(), end);
  EXPECT_EQ(reader.offset(), 1U);
}

TEST(sf_reader, keeps_nothing_of_what_came_before_a_failure) {
  reader reader(field_type::dictionary, "a=1, b=\x01");
  EXPECT_EQ(reader.next(), item);
  EXPECT_EQ(reader.next(), failure);
  EXPECT_EQ(reader.key(), "");
  EXPECT_TRUE(reader.value().is(bare_item_type::none));
  EXPECT_EQ(reader.next(), failure);
  EXPECT_EQ(reader.error(), (parse_error{parse_fault::unknown_item_type, 7}));
}

TEST(sf_reader, decodes_only_when_asked) {
  reader plain(field_type::item, R"("plain")");
  ASSERT_EQ(plain.next(), item);
  EXPECT_FALSE(plain.value().is_encoded());
  std::string scratch = "untouched";
  EXPECT_EQ(plain.value().text(scratch), "plain");
  EXPECT_EQ(scratch, "untouched");

  reader escaped(field_type::item, R"("a\\b")");
  ASSERT_EQ(escaped.next(), item);
  EXPECT_TRUE(escaped.value().is_encoded());
  EXPECT_EQ(escaped.value().raw(), R"(a\\b)");
  EXPECT_EQ(escaped.value().text(scratch), R"(a\b)");
}

TEST(sf_reader, leaves_nothing_of_an_earlier_text_on_a_number) {
  reader reader(field_type::list, R"("secret\\", 5;k, ?1, 1.5)");
  std::string scratch;
  ASSERT_EQ(reader.next(), item);
  EXPECT_EQ(reader.value().text(scratch), "secret\\");
  EXPECT_FALSE(reader.value().get_integer().has_value());
  for (auto e = reader.next(); !is_final(e); e = reader.next()) {
    EXPECT_EQ(reader.value().text(scratch), "");
    EXPECT_EQ(reader.value().raw(), "");
    EXPECT_FALSE(reader.value().get_token().has_value());
  }
}

TEST(sf_reader, ends_the_program_rather_than_write_behind_a_buffer) {
  std::string const text = '"' + std::string(100, 'x') + '"';
  reader reader(field_type::item, text);
  ASSERT_EQ(reader.next(), item);
  char small[16];
  EXPECT_DEATH(reader.value().decode(small), "");
}

TEST(sf_reader, says_what_is_wrong_and_where) {
  struct row {
    field_type type;
    std::string_view text;
    parse_error error;
  };
  using enum field_type;
  using enum parse_fault;
  for (auto const& [type, text, error] : std::vector<row>{
           {item, "", {unexpected_end, 0}},
           {item, "1 2", {unexpected_character, 2}},
           {list, "1,", {trailing_comma, 2}},
           {list, "1, \t", {trailing_comma, 4}},
           {list, ",", {unknown_item_type, 0}},
           {dictionary, "A=1", {key_expected, 0}},
           {dictionary, "a=", {unexpected_end, 2}},
           {list, "1;", {unexpected_end, 2}},
           {list, "1;=", {key_expected, 2}},
           {item, "-", {unexpected_end, 1}},
           {item, "--1", {digit_expected, 1}},
           {item, "1234567890123456", {too_many_digits, 15}},
           {item, "1234567890123.1", {too_many_digits, 13}},
           {item, "1.2345", {too_many_digits, 5}},
           {item, "1.", {unexpected_end, 2}},
           {item, "1.a", {digit_expected, 2}},
           {item, "@1.5", {date_with_fraction, 2}},
           {item, "@", {unexpected_end, 1}},
           {item, "?", {unexpected_end, 1}},
           {item, "?2", {invalid_boolean, 1}},
           {item, "\"abc", {unexpected_end, 4}},
           {item, "\"a\\", {unexpected_end, 3}},
           {item, "\"a\\n\"", {invalid_escape, 3}},
           {item, "\"a\tb\"", {invalid_character, 2}},
           {item, "\"a\x7f\"", {invalid_character, 2}},
           {item, "\"\xc3\xbc\"", {invalid_character, 1}},
           {item, ":aGk", {unexpected_end, 4}},
           {item, ":a_k:", {invalid_base64, 2}},
           {item, ":a:", {invalid_base64, 2}},
           {item, ":aGk==:", {invalid_base64, 5}},
           {item, ":=:", {invalid_base64, 1}},
           {item, "%a", {unexpected_character, 1}},
           {item, "%\"%C3%BC\"", {invalid_hex, 3}},
           {item, "%\"%c3\"", {invalid_utf8, 5}},
           {item, "%\"%c0%80\"", {invalid_utf8, 2}},
           {item, "%\"%ed%a0%80\"", {invalid_utf8, 5}},
           {item, "%\"%f4%90%80%80\"", {invalid_utf8, 5}},
           {item, "%\"a", {unexpected_end, 3}},
           {list, "(1", {unexpected_end, 2}},
           {list, "(1\t2)", {unexpected_character, 2}},
           {list, "((1))", {unknown_item_type, 1}},
       }) {
    reader reader(type, text);
    auto e = reader.next();
    while (e != end && e != failure) {
      e = reader.next();
    }
    EXPECT_EQ(e, failure) << text;
    EXPECT_EQ(reader.error(), error) << text << ": " << to_string(reader.error());
  }
}

TEST(sf_reader, needs_nothing_behind_the_last_byte) {
  // Every prefix of a value with everything in it, in memory that ends right there.
  std::string const all = R"(a=1.5;x="s\"", b=(tok;p :aGVsbG8=:);q=@5, c=%"%f0%9f%8c%8a", d=-12)";
  for (std::size_t size = 0; size <= all.size(); ++size) {
    std::vector<char> const prefix(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size));
    for (auto type : {field_type::item, field_type::list, field_type::dictionary}) {
      auto const lines = trace(type, {prefix.data(), prefix.size()});
      EXPECT_FALSE(lines.empty());
    }
  }
}

TEST(sf_reader, finds_the_end_of_a_string_like_a_byte_by_byte_search_does) {
  for (std::size_t size = 0; size < 300; ++size) {
    std::string text(size, 'a');
    auto check = [&text](std::size_t from) {
      auto const* const begin = text.data();
      auto const* const end = begin + text.size();
      auto const* slow = begin + from;
      while (slow != end && detail::is_plain(*slow)) {
        ++slow;
      }
      ASSERT_EQ(detail::find_special(begin, begin + from, end) - begin, slow - begin)
          << text.size() << " from " << from;
    };
    check(0);
    check(size / 2);
    check(size);
    for (std::size_t at = 0; at < size; at += 1 + size / 37) {
      for (char c : {'"', '\\', '\x1f', '\x7f', '\x80', '\xff', '|', '}', '~', ' ', '!', '#'}) {
        text[at] = c;
        check(0);
        check(at);
        text[at] = 'a';
      }
    }
  }
  for (int c = 0; c < 256; ++c) {
    std::string const text(64, static_cast<char>(c));
    bool const plain =
        detail::find_special(text.data(), text.data(), text.data() + 64) == text.data() + 64;
    EXPECT_EQ(plain, c >= 0x20 && c < 0x7f && c != '"' && c != '\\') << c;
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::sf
