// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace tidegate::TIDEGATE_ABI::sf {
namespace {

// ---- numbers ----

TEST(sf_integer, holds_fifteen_digits_and_no_more) {
  EXPECT_EQ(integer::make(999'999'999'999'999)->value(), 999'999'999'999'999);
  EXPECT_EQ(integer::make(-999'999'999'999'999)->value(), -999'999'999'999'999);
  EXPECT_EQ(integer::make(1'000'000'000'000'000).error().fault, make_fault::out_of_range);
  EXPECT_EQ(integer::make(std::numeric_limits<std::int64_t>::min()).error().fault,
            make_fault::out_of_range);
  EXPECT_EQ(integer::clamp(std::numeric_limits<std::int64_t>::max()).value(), integer::max);
  EXPECT_EQ(integer::clamp(std::numeric_limits<std::int64_t>::min()).value(), -integer::max);
  EXPECT_EQ(integer(4'000'000'000U).value(), 4'000'000'000);
}

TEST(sf_decimal, rounds_text_to_three_places_and_halves_to_even) {
  struct row {
    std::string_view text;
    std::int64_t thousandths;
  };
  for (auto const& [text, thousandths] : {
           row{"0", 0},
           {"-0.0", 0},
           {"1.0", 1000},
           {"1.001", 1001},
           {"0.1", 100},
           {"-1.5", -1500},
           {"0.0005", 0},
           {"0.0015", 2},
           {"0.0025", 2},
           {"0.00250001", 3},
           {"-0.0025", -2},
           {"-0.0035", -4},
           {"0.0004999", 0},
           {"0.00051", 1},
           {"1.0005", 1000},
           {"1.0015", 1002},
           {"999999999999.999", 999'999'999'999'999},
           {"999999999999.9994", 999'999'999'999'999},
           {"1e3", 1'000'000},
           {"15e-1", 1500},
           {"1E+2", 100'000},
           {"5e-4", 0},
           {"1e-999999999", 0},
           {"000012.5", 12'500},
           {"0.00000000000000000000000000001", 0},
       }) {
    auto const value = decimal::from_text(text);
    ASSERT_TRUE(value.has_value()) << text;
    EXPECT_EQ(value->thousandths(), thousandths) << text;
  }
}

TEST(sf_decimal, refuses_what_has_more_than_twelve_digits_after_rounding) {
  for (auto text :
       {"1000000000000.0", "999999999999.9995", "-999999999999.9996", "1e12", "1e999999999999"}) {
    EXPECT_EQ(decimal::from_text(text).error().fault, make_fault::out_of_range) << text;
  }
  EXPECT_TRUE(decimal::from_thousandths(-999'999'999'999'999).has_value());
  EXPECT_FALSE(decimal::from_thousandths(1'000'000'000'000'000).has_value());
}

TEST(sf_decimal, refuses_text_that_is_not_a_number_and_says_where) {
  struct row {
    std::string_view text;
    std::size_t offset;
  };
  for (auto const& [text, offset] : {row{"", 0},
                                     {"-", 1},
                                     {".5", 0},
                                     {"1.", 2},
                                     {"1.5x", 3},
                                     {"1e", 2},
                                     {"+1", 0},
                                     {" 1", 0},
                                     {"nan", 0},
                                     {"1..2", 2}}) {
    EXPECT_EQ(decimal::from_text(text).error(), (make_error{make_fault::not_a_number, offset}))
        << text;
  }
}

TEST(sf_floating, holds_what_fifteen_digits_can_tell_apart) {
  for (double good : {0.0, 0.1, 1.5, -4.5, 99999999999999.0, 99999999999999.5, 0.00000000000001,
                      123456789.123456, 1.0 / 4}) {
    EXPECT_EQ(floating::make(good)->value(), good);
  }
  EXPECT_EQ(floating::make(0.1 + 0.2).error().fault, make_fault::too_precise);
  EXPECT_EQ(floating::make(1.0 / 3).error().fault, make_fault::too_precise);
  EXPECT_EQ(floating::make(1e-15).error().fault, make_fault::too_precise);
  EXPECT_EQ(floating::make(5e-324).error().fault, make_fault::too_precise);
  EXPECT_EQ(floating::make(1e14).error().fault, make_fault::out_of_range);
  EXPECT_EQ(floating::make(std::numeric_limits<double>::infinity()).error().fault,
            make_fault::not_a_number);
  EXPECT_EQ(floating::make(std::numeric_limits<double>::quiet_NaN()).error().fault,
            make_fault::not_a_number);
}

TEST(sf_floating, reads_text_and_refuses_more_than_fifteen_digits) {
  EXPECT_EQ(floating::from_text("12345678901234.5")->value(), 12345678901234.5);
  EXPECT_EQ(floating::from_text("1.50000000000000000000")->value(), 1.5);
  EXPECT_EQ(floating::from_text("1.123456789012345").error().fault, make_fault::too_precise);
  EXPECT_EQ(floating::from_text("0.000000000000001").error().fault, make_fault::too_precise);
  EXPECT_EQ(floating::from_text("100000000000000.5").error().fault, make_fault::out_of_range);
  EXPECT_EQ(floating::from_text("x").error().fault, make_fault::not_a_number);
}

TEST(sf_date, converts_to_and_from_the_system_clock_in_seconds) {
  auto const time = std::chrono::sys_days(std::chrono::year(9999) / 12 / 31);
  auto const value = date::make(time);
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ(value->seconds().value(), 253'402'214'400);
  EXPECT_EQ(value->time(), time);
  EXPECT_FALSE(date::make(std::chrono::sys_seconds::max()).has_value());
}

// ---- texts ----

TEST(sf_text, is_checked_when_it_is_made) {
  struct row {
    std::string_view text;
    std::optional<make_error> key;
    std::optional<make_error> token;
    std::optional<make_error> string;
  };
  constexpr auto bad = [](std::size_t at) { return make_error{make_fault::invalid_character, at}; };
  constexpr auto empty = make_error{make_fault::empty, 0};
  constexpr auto ok = std::nullopt;
  for (auto const& [text, key_fault, token_fault, string_fault] : std::vector<row>{
           {"", empty, empty, ok},
           {"a", ok, ok, ok},
           {"*a", ok, ok, ok},
           {"a.b_c-d*1", ok, ok, ok},
           {"A", bad(0), ok, ok},
           {"aB", bad(1), ok, ok},
           {"1", bad(0), bad(0), ok},
           {"a b", bad(1), bad(1), ok},
           {"a/b:c", bad(1), ok, ok},
           {"a!#$%&'*+-.^_`|~", bad(1), ok, ok},
           {"a\"", bad(1), bad(1), ok},
           {"a\n", bad(1), bad(1), bad(1)},
           {"a\x7f", bad(1), bad(1), bad(1)},
           {"a\x80", bad(1), bad(1), bad(1)},
       }) {
    auto fault = [](auto const& made) {
      return made.has_value() ? std::optional<make_error>() : made.error();
    };
    EXPECT_EQ(fault(key_view::make(text)), key_fault) << text;
    EXPECT_EQ(fault(token_view::make(text)), token_fault) << text;
    EXPECT_EQ(fault(string_view::make(text)), string_fault) << text;
    EXPECT_EQ(fault(key::make(std::string(text))), key_fault) << text;
  }
}

TEST(sf_text, of_draft11_is_narrower) {
  using draft_key = basic_key_view<dialect::draft11>;
  using draft_token = basic_token_view<dialect::draft11>;
  EXPECT_TRUE(draft_key::make("a_b-1").has_value());
  EXPECT_FALSE(draft_key::make("*a").has_value());
  EXPECT_FALSE(draft_key::make("a.b").has_value());
  EXPECT_TRUE(draft_token::make("A_b-1.c:d%e*f/g").has_value());
  EXPECT_FALSE(draft_token::make("*a").has_value());
  EXPECT_FALSE(draft_token::make("a!b").has_value());
}

TEST(sf_text, of_a_display_string_must_be_utf8) {
  for (std::string_view good :
       {"", "plain", "f\xc3\xbc\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x8c\x8a", "\xf4\x8f\xbf\xbf",
        "\xed\x9f\xbf", "\xee\x80\x80"}) {
    EXPECT_TRUE(display_string_view::make(good).has_value()) << good;
  }
  struct row {
    std::string_view text;
    std::size_t offset;
  };
  for (auto const& [text, offset] : {row{"\x80", 0},
                                     {"\xc0\x80", 0},
                                     {"\xc1\xbf", 0},
                                     {"a\xc3", 2},
                                     {"\xe0\x9f\xbf", 1},
                                     {"\xed\xa0\x80", 1},
                                     {"\xf0\x8f\xbf\xbf", 1},
                                     {"\xf4\x90\x80\x80", 1},
                                     {"\xf5", 0},
                                     {"\xff", 0},
                                     {"\xe2\x82", 2},
                                     {"\xe2\x82z", 2}}) {
    EXPECT_EQ(display_string_view::make(text).error(),
              (make_error{make_fault::invalid_utf8, offset}))
        << text;
  }
}

TEST(sf_text, lends_itself_to_a_view_and_is_copied_back_on_demand) {
  key const owner = *key::make("name");
  key_view const view = owner;
  EXPECT_EQ(view, "name");
  EXPECT_EQ(key(view), owner);
  constexpr key_view literal = "name";
  EXPECT_EQ(literal.text(), "name");
}

// ---- bare items ----

TEST(sf_bare_item, keeps_short_and_long_texts_through_copies_and_moves) {
  for (std::size_t size : {0U, 1U, 15U, 16U, 17U, 1000U}) {
    std::string const text(size, 'x');
    bare_item const made = *string::make(text);
    bare_item copy = made;
    EXPECT_EQ(copy, made);
    EXPECT_EQ(copy.as_string(), text);
    bare_item moved = std::move(copy);
    EXPECT_EQ(moved, made);
    bare_item assigned = 5;
    assigned = moved;
    EXPECT_EQ(assigned, made);
    assigned = bare_item(integer(7));
    EXPECT_EQ(assigned.as_integer().value(), 7);
    assigned = std::move(moved);
    EXPECT_EQ(assigned.as_string(), text);
    auto& self = assigned;
    assigned = self;
    EXPECT_EQ(assigned.as_string(), text);
  }
}

TEST(sf_bare_item, is_equal_only_to_the_same_value_of_the_same_type) {
  EXPECT_EQ(bare_item(1), bare_item(1));
  EXPECT_NE(bare_item(1), bare_item(2));
  EXPECT_NE(bare_item(1), bare_item(true));
  EXPECT_NE(bare_item(1), bare_item(date(1)));
  EXPECT_NE(bare_item(string_view("a")), bare_item(token_view("a")));
  EXPECT_NE(bare_item(*decimal::from_text("1.0")), bare_item(1000));
  EXPECT_NE(bare_item(byte_sequence_view{"a"}), bare_item(string_view("a")));
}

TEST(sf_bare_item, is_visited_as_its_own_type) {
  struct name_of_type {
    auto operator()(integer) { return "integer"; }
    auto operator()(decimal) { return "decimal"; }
    auto operator()(string_view) { return "string"; }
    auto operator()(token_view) { return "token"; }
    auto operator()(byte_sequence_view) { return "bytes"; }
    auto operator()(bool) { return "boolean"; }
    auto operator()(date) { return "date"; }
    auto operator()(display_string_view) { return "display"; }
  };
  EXPECT_STREQ(bare_item(1).visit(name_of_type{}), "integer");
  EXPECT_STREQ(bare_item(decimal()).visit(name_of_type{}), "decimal");
  EXPECT_STREQ(bare_item(string_view("")).visit(name_of_type{}), "string");
  EXPECT_STREQ(bare_item(token_view("t")).visit(name_of_type{}), "token");
  EXPECT_STREQ(bare_item(byte_sequence_view{}).visit(name_of_type{}), "bytes");
  EXPECT_STREQ(bare_item(false).visit(name_of_type{}), "boolean");
  EXPECT_STREQ(bare_item(date()).visit(name_of_type{}), "date");
  EXPECT_STREQ(bare_item(display_string_view("d")).visit(name_of_type{}), "display");
}

TEST(sf_bare_item, gives_nothing_when_it_is_of_another_type) {
  bare_item const number = 5;
  EXPECT_EQ(number.get_integer(), integer(5));
  EXPECT_FALSE(number.get_string().has_value());
  EXPECT_FALSE(number.get_token().has_value());
  EXPECT_FALSE(number.get_boolean().has_value());
  EXPECT_FALSE(number.get_decimal().has_value());
  EXPECT_FALSE(number.get_date().has_value());
  EXPECT_FALSE(number.get_byte_sequence().has_value());
  EXPECT_FALSE(number.get_display_string().has_value());
  bare_item const text = string_view("longer than sixteen octets");
  EXPECT_FALSE(text.get_integer().has_value());
  EXPECT_EQ(text.get_string()->text(), "longer than sixteen octets");
}

// ---- ordered maps ----

auto key_of(int i) -> key {
  return *key::make("k" + std::to_string(i));
}

TEST(sf_ordered_map, is_reachable_by_index_and_by_key) {
  parameters map;
  map.set(*key::make("b"), 1);
  map.set(*key::make("a"), 2);
  ASSERT_EQ(map.size(), 2U);
  EXPECT_EQ(map[0].key, "b");
  EXPECT_EQ(map[1].key, "a");
  EXPECT_EQ(*map.find("a"), bare_item(2));
  EXPECT_EQ(map.find("c"), nullptr);
  EXPECT_TRUE(map.contains("b"));
}

TEST(sf_ordered_map, takes_a_literal_as_a_key) {
  dictionary map;
  map.set("u", 1);
  map.set("i", true);
  map.set("u", item{2, {}});
  map.set("l", inner_list{{item{1}, token_view("a")}, {}});
  EXPECT_EQ(serialized(map), "u=2, i, l=(1 a)");
}

TEST(sf_integer, takes_a_constant_of_64_bits) {
  EXPECT_EQ(integer(999'999'999'999'999).value(), integer::max);
  EXPECT_EQ(integer(5'000'000'000U).value(), 5'000'000'000);
}

TEST(sf_ordered_map, gives_a_key_that_is_set_again_the_new_value_in_the_old_place) {
  for (int size : {3, 16, 17, 200}) {
    parameters map;
    for (int i = 0; i < size; ++i) {
      map.set(key_of(i), i);
    }
    map.set(key_of(1), true);
    EXPECT_EQ(map.size(), static_cast<std::size_t>(size));
    EXPECT_EQ(map[1].value, bare_item(true));
    for (int i = 2; i < size; ++i) {
      EXPECT_EQ(*map.find(key_of(i).text()), bare_item(i)) << size;
    }
    EXPECT_EQ(map.find("k"), nullptr);
    EXPECT_EQ(map.find("zzz"), nullptr);
  }
}

TEST(sf_ordered_map, takes_entries_out) {
  for (int size : {3, 17, 18, 40}) {
    parameters map;
    for (int i = 0; i < size; ++i) {
      map.set(key_of(i), i);
    }
    EXPECT_TRUE(map.erase("k1"));
    EXPECT_FALSE(map.erase("k1"));
    EXPECT_EQ(map.size(), static_cast<std::size_t>(size - 1));
    EXPECT_EQ(map[1].key, "k2");
    EXPECT_EQ(*map.find("k2"), bare_item(2));
    EXPECT_EQ(map.find("k1"), nullptr);
  }
}

TEST(sf_ordered_map, merges_repeated_keys_like_setting_one_after_the_other) {
  unsigned state = 1;
  auto random = [&state](unsigned below) {
    state = state * 1664525U + 1013904223U;
    return (state >> 8) % below;
  };
  for (int round = 0; round < 300; ++round) {
    auto const size = random(60);
    auto const distinct = 1 + random(40);
    std::vector<parameters::entry> entries;
    parameters slow;
    for (unsigned i = 0; i < size; ++i) {
      auto const key = key_of(static_cast<int>(random(distinct)));
      entries.push_back({key, bare_item(i)});
      slow.set(key, bare_item(i));
    }
    auto const fast = parameters::from_entries(entries);
    EXPECT_EQ(fast, slow);
    for (auto const& [key, value] : slow) {
      ASSERT_NE(fast.find(key.text()), nullptr);
      EXPECT_EQ(*fast.find(key.text()), value);
    }
  }
}

TEST(sf_ordered_map, stays_whole_when_copied_and_moved) {
  parameters map;
  for (int i = 0; i < 30; ++i) {
    map.set(key_of(i), i);
  }
  parameters copy = map;
  map.set(key_of(3), false);
  EXPECT_EQ(*copy.find("k3"), bare_item(3));
  parameters const moved = std::move(copy);
  EXPECT_EQ(*moved.find("k29"), bare_item(29));
  parameters assigned;
  assigned = moved;
  EXPECT_EQ(assigned, moved);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::sf
