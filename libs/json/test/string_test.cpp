// SPDX-License-Identifier: Apache-2.0
#include "support/allocations.hpp"

#include <tidegate/json/string.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::json {
namespace {

using namespace std::string_view_literals;

auto written(std::string_view text) -> std::string {
  std::string out;
  append_string(out, text);
  return out;
}

auto in_quotes(std::string_view text) -> std::string {
  return std::string(1, '"').append(text).append(1, '"');
}

/// `text` in quotes with U+FFFD for every "*" in it.
auto replaced(std::string_view text) -> std::string {
  std::string out;
  for (char c : text) {
    out.append(c == '*' ? "\xef\xbf\xbd" : std::string_view(&c, 1));
  }
  return in_quotes(out);
}

TEST(json_string, stands_at_the_end_with_its_quotes) {
  std::string out = "[";
  append_string(out, "a");
  append_string(out, "");
  EXPECT_EQ(out, R"(["a""")");
}

TEST(json_string, escapes_what_must_be_escaped_and_nothing_else) {
  struct row {
    std::string_view text;
    std::string_view json;
  };
  for (auto const& [text, json] : {
           row{"", R"("")"},
           {"plain text, 'quoted' & <tagged>/", R"("plain text, 'quoted' & <tagged>/")"},
           {"\"", R"("\"")"},
           {"\\", R"("\\")"},
           {"\\\"\\", R"("\\\"\\")"},
           {"a\"b\\c", R"("a\"b\\c")"},
           {"\b\f\n\r\t", R"("\b\f\n\r\t")"},
           {"\0"sv, R"("\u0000")"},
           {"a\0b"sv, R"("a\u0000b")"},
           {"\x01\x07\x0b\x0e\x1f", R"("\u0001\u0007\u000b\u000e\u001f")"},
           {"\x1b[31m", R"("\u001b[31m")"},
           {"\x7f", "\"\x7f\""},
       }) {
    EXPECT_EQ(written(text), json);
  }
  for (char c = 0x20; c < 0x7f; ++c) {
    std::string const text(1, c);
    std::string const escape = c == '"' || c == '\\' ? "\\" : "";
    EXPECT_EQ(written(text), in_quotes(escape + text));
  }
  for (char c = 0; c < 0x20; ++c) {
    auto const json = written({&c, 1});
    EXPECT_EQ(json[1], '\\') << json;
    EXPECT_TRUE(json.size() == 4 || (json.size() == 8 && json.starts_with("\"\\u00"))) << json;
  }
}

TEST(json_string, keeps_utf8_as_it_is) {
  for (std::string_view text : {
           "f\xc3\xbcr",
           "\xc2\x80",          // U+0080
           "\xdf\xbf",          // U+07FF
           "\xe0\xa0\x80",      // U+0800
           "\xed\x9f\xbf",      // U+D7FF
           "\xee\x80\x80",      // U+E000
           "\xe2\x80\xa8",      // U+2028
           "\xef\xbf\xbd",      // U+FFFD
           "\xef\xbf\xbf",      // U+FFFF
           "\xf0\x90\x80\x80",  // U+10000
           "\xf0\x9f\x8c\x8a",  // U+1F30A
           "\xf4\x8f\xbf\xbf",  // U+10FFFF
       }) {
    EXPECT_EQ(written(text), in_quotes(text));
  }
}

TEST(json_string, puts_the_replacement_character_where_text_is_not_utf8) {
  struct row {
    std::string_view name;
    std::string_view text;
    std::string_view json;
  };
  for (auto const& [name, text, json] : {
           row{"a byte that is never there", "a\xff"sv, "a*"},
           {"continuation alone", "\x80\xbf"sv, "**"},
           {"Latin-1", "f\xfcr"sv, "f*r"},
           {"cut after one", "\xc3"sv, "*"},
           {"cut after two of three", "\xe2\x82"sv, "*"},
           {"cut after three of four", "\xf0\x9f\x8c"sv, "*"},
           {"cut by a quote", "\xe2\x82\""sv, "*\\\""},
           {"cut by a newline", "\xf0\x9f\n"sv, "*\\n"},
           {"cut by a character", "\xe2\x82\xc3\xbc"sv, "*\xc3\xbc"},
           {"overlong slash", "\xc0\xaf"sv, "**"},
           {"overlong NUL of Java", "\xc0\x80"sv, "**"},
           {"surrogate", "\xed\xa0\x80"sv, "***"},
           {"above U+10FFFF", "\xf4\x90\x80\x80"sv, "****"},
           {"five bytes of old", "\xf8\x88\x80\x80\x80"sv, "*****"},
           // The tables 3-8 to 3-11 of the Unicode standard.
           {"table 3-8", "\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41"sv, "********A"},
           {"table 3-9", "\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41"sv, "********A"},
           {"table 3-10", "\xf4\x91\x92\x93\xff\x41\x80\xbf\x42"sv, "*****A**B"},
           {"table 3-11", "\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"sv, "****A"},
       }) {
    EXPECT_EQ(written(text), replaced(json)) << name;
  }
}

TEST(json_string, never_looks_behind_the_text) {
  // The missing byte lies right behind the end of each view.
  EXPECT_EQ(written(std::string_view("\xc3\xbc", 1)), replaced("*"));
  EXPECT_EQ(written(std::string_view("\xe2\x82\xac", 2)), replaced("*"));
  EXPECT_EQ(written(std::string_view("\xf0\x9f\x8c\x8a", 3)), replaced("*"));
}

TEST(json_string, needs_at_most_six_characters_a_byte_and_two) {
  std::string text;
  for (int c = 0; c < 256; ++c) {
    text.push_back(static_cast<char>(c));
  }
  text.append(64, '\x01');
  std::string out;
  out.reserve(6 * text.size() + 2);
  auto const before = test::allocations();
  append_string(out, text);
  EXPECT_EQ(test::allocations(), before);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::json
