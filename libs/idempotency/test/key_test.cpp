// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency/key.hpp>

#include "support/allocations.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tidegate::TIDEGATE_ABI::idempotency {
namespace {

using namespace std::chrono_literals;
using enum key_fault;

constexpr wall_time now{1'700'000'000'000ms};

/// The key, or what is wrong.
struct read_result {
  std::string key;
  std::optional<key_error> error;
};

auto read(std::vector<std::string_view> const& lines, key_options const& options = {})
    -> read_result {
  std::string scratch;
  auto const key = read_key(lines, options, now, scratch);
  return key ? read_result{std::string(*key), {}} : read_result{"", key.error()};
}

/// A UUID of version 7 made at `time`.
auto uuidv7(wall_time time) -> std::string {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string stamp;
  for (int shift = 44; shift >= 0; shift -= 4) {
    stamp += digits[static_cast<std::size_t>(time.time_since_epoch().count() >> shift & 15)];
  }
  return '"' + stamp.substr(0, 8) + "-" + stamp.substr(8) + "-7cc3-98c4-dc0c0c07398f\"";
}

TEST(idempotency_key, reads_a_string) {
  struct row {
    std::string_view line;
    std::string_view key;
  };
  for (auto const& [line, key] : {
           row{R"("8e03978e-40d5-43e8-bc93-6894a57f9324")", "8e03978e-40d5-43e8-bc93-6894a57f9324"},
           {R"("clkyoesmbgybucifusbbtdsbohtyuuwz")", "clkyoesmbgybucifusbbtdsbohtyuuwz"},
           {R"("a")", "a"},
           {R"(" ")", " "},
           {R"("a b, c; d")", "a b, c; d"},
           {R"("a\"b\\c")", R"(a"b\c)"},
           {R"(  "a"  )", "a"},
           {"\t\"a\"\t", "a"},
           {R"("~!@#$%^&*()_+")", "~!@#$%^&*()_+"},
       }) {
    auto const [read_key, error] = read({line});
    EXPECT_FALSE(error.has_value()) << line;
    EXPECT_EQ(read_key, key) << line;
  }
}

TEST(idempotency_key, ignores_parameters_that_are_valid) {
  for (auto const* line : {R"("a";x)", R"("a"; x=1;y="b";  z=?0)", R"("a";x=:YQ==:)"}) {
    EXPECT_EQ(read({line}).key, "a") << line;
  }
}

TEST(idempotency_key, says_what_is_wrong_and_where) {
  struct row {
    std::string_view line;
    key_error error;
  };
  for (auto const& [line, error] : {
           row{"", {empty, 0}},
           {"  \t ", {empty, 0}},
           {R"("")", {empty, 0}},
           {R"("";x=1)", {empty, 0}},
           {"abc", {not_a_string, 0}},
           {"8e03978e-40d5-43e8-bc93-6894a57f9324", {not_a_string, 0}},
           {" 12", {not_a_string, 1}},
           {"?1", {not_a_string, 0}},
           {":YQ==:", {not_a_string, 0}},
           {R"(("a" "b"))", {not_a_string, 0}},
           {R"("a)", {syntax, 2}},
           {R"("a", "b")", {syntax, 3}},
           {R"("a" "b")", {syntax, 4}},
           {R"("a"x)", {syntax, 3}},
           {R"(  "a"x)", {syntax, 5}},
           {R"("a\n")", {syntax, 3}},
           {"\"a\x01\"", {syntax, 2}},
           {"\"a\x7f\"", {syntax, 2}},
           {"\"\xc3\xa9\"", {syntax, 1}},
           {R"("a";)", {syntax, 4}},
           {R"("a";X=1)", {syntax, 4}},
           {R"("a";x=@1)", {syntax, 6}},    // a Date, which RFC 8941 does not have
           {R"("a";x=%"b")", {syntax, 6}},  // a Display String
       }) {
    EXPECT_EQ(read({line}).error, error) << line;
    EXPECT_EQ(code_of(error), problem_code::key_malformed) << line;
  }
}

TEST(idempotency_key, tells_a_missing_field_from_a_malformed_one) {
  EXPECT_EQ(read({}).error, (key_error{missing, 0}));
  EXPECT_EQ(code_of({missing, 0}), problem_code::key_missing);
  EXPECT_EQ(read({"\"a\"", "\"a\""}).error, (key_error{repeated, 0}));
  EXPECT_EQ(read({"\"a\"", ""}).error, (key_error{repeated, 0}));
  EXPECT_EQ(code_of({repeated, 0}), problem_code::key_malformed);
}

TEST(idempotency_key, bounds_the_length_of_the_key_without_quotes_and_escapes) {
  key_options const options{.length_max = 3};
  EXPECT_EQ(read({R"("abc")"}, options).key, "abc");
  EXPECT_EQ(read({R"("a\"b")"}, options).key, R"(a"b)");
  EXPECT_EQ(read({R"("abcd")"}, options).error, (key_error{too_long, 3}));
  EXPECT_EQ(read({'"' + std::string(255, 'k') + '"'}).key.size(), 255U);
  EXPECT_EQ(read({'"' + std::string(256, 'k') + '"'}).error, (key_error{too_long, 255}));
}

TEST(idempotency_key, takes_the_bare_form_where_the_route_lets_it) {
  key_options const options{.accept_unquoted = true};
  struct row {
    std::string_view line;
    std::string_view key;
  };
  for (auto const& [line, key] : {
           row{"abc", "abc"},
           {"\"abc\"", "abc"},
           {" abc ", "abc"},
           {"8e03978e-40d5-43e8-bc93-6894a57f9324", "8e03978e-40d5-43e8-bc93-6894a57f9324"},
           {"123", "123"},
           {"?1", "?1"},
           {":YQ==:", ":YQ==:"},
           {"order/17_a.b:c~'()", "order/17_a.b:c~'()"},
           {"abc;x=1", "abc"},
           {R"("a;b";x=1)", "a;b"},
       }) {
    auto const [read_key, error] = read({line}, options);
    EXPECT_FALSE(error.has_value()) << line;
    EXPECT_EQ(read_key, key) << line;
  }
}

TEST(idempotency_key, refuses_a_bare_form_that_could_mean_two_things) {
  key_options const options{.length_max = 5, .accept_unquoted = true};
  struct row {
    std::string_view line;
    key_error error;
  };
  for (auto const& [line, error] : {
           row{"", {empty, 0}},
           {";x=1", {empty, 0}},
           {"a,b", {invalid_character, 1}},
           {" a, b", {invalid_character, 2}},
           {"a b", {invalid_character, 1}},
           {"a\"b", {invalid_character, 1}},
           {"a\\b", {invalid_character, 1}},
           {"a\xc3\xa9", {invalid_character, 1}},
           {"a\x7f", {invalid_character, 1}},
           {std::string_view("a\0b", 3), {invalid_character, 1}},
           {"ab;X", {syntax, 3}},
           {" ab;x=", {syntax, 6}},
           {"\"ab", {syntax, 3}},
           {"abcdef", {too_long, 5}},
       }) {
    EXPECT_EQ(read({line}, options).error, error) << line;
  }
  EXPECT_EQ(read({"a", "a"}, options).error, (key_error{repeated, 0}));
}

TEST(idempotency_key, takes_only_uuids_where_the_format_says_so) {
  key_options const options{.format = key_format::uuid};
  EXPECT_EQ(read({R"("8e03978e-40d5-43e8-bc93-6894a57f9324")"}, options).key,
            "8e03978e-40d5-43e8-bc93-6894a57f9324");
  for (auto const* line : {
           R"("8e03978e-40d5-43e8-bc93-6894a57f932")",
           R"("8e03978e-40d5-43e8-bc93-6894a57f93244")",
           R"("8e03978e40d543e8bc936894a57f9324")",
           R"("8e03978e-40d5-43e8-bc93-6894a57f932g")",
           R"("8e03978e-40d5-43e8-bc936-894a57f9324")",
           R"("{8e03978e-40d5-43e8-bc93-6894a57f9324}")",
           R"("clkyoesmbgybucifusbbtdsbohtyuuwz")",
       }) {
    EXPECT_EQ(read({line}, options).error, (key_error{not_a_uuid, 0})) << line;
  }
}

TEST(idempotency_key, has_one_key_for_two_spellings_of_a_uuid) {
  for (bool const unquoted : {false, true}) {
    key_options const options{.format = key_format::uuid, .accept_unquoted = unquoted};
    EXPECT_EQ(read({R"("8E03978E-40d5-43E8-BC93-6894A57F9324")"}, options).key,
              "8e03978e-40d5-43e8-bc93-6894a57f9324");
  }
  key_options const bare{.format = key_format::uuid, .accept_unquoted = true};
  EXPECT_EQ(read({"8E03978E-40D5-43E8-BC93-6894A57F9324;x"}, bare).key,
            "8e03978e-40d5-43e8-bc93-6894a57f9324");
  EXPECT_EQ(read({R"("ABC")"}).key, "ABC") << "any other format tells case";
}

TEST(idempotency_key, takes_only_uuids_of_version_7_where_the_format_says_so) {
  key_options const options{.format = key_format::uuidv7};
  EXPECT_EQ(read({R"("017F22E2-79B0-7CC3-98C4-DC0C0C07398F")"}, options).key,
            "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
  for (auto const* line : {
           R"("017f22e2-79b0-4cc3-98c4-dc0c0c07398f")",  // version 4
           R"("017f22e2-79b0-7cc3-c8c4-dc0c0c07398f")",  // another variant
           R"("00000000-0000-0000-0000-000000000000")",
           R"("ffffffff-ffff-ffff-ffff-ffffffffffff")",
           R"("abc")",
       }) {
    EXPECT_EQ(read({line}, options).error, (key_error{not_a_uuidv7, 0})) << line;
  }
}

TEST(idempotency_key, bounds_the_age_of_a_uuid_of_version_7) {
  key_options const options{.format = key_format::uuidv7, .age_max = 24h};
  EXPECT_FALSE(read({uuidv7(now)}, options).error.has_value());
  EXPECT_FALSE(read({uuidv7(now - 24h)}, options).error.has_value());
  EXPECT_EQ(read({uuidv7(now - 24h - 1ms)}, options).error, (key_error{too_old, 0}));
  EXPECT_EQ(read({uuidv7(wall_time(0ms))}, options).error, (key_error{too_old, 0}));
  EXPECT_EQ(code_of({too_old, 0}), problem_code::key_too_old);
  // A key from the future would be young for longer than the record of its first use is kept.
  EXPECT_FALSE(read({uuidv7(now + 5min)}, options).error.has_value());
  EXPECT_EQ(read({uuidv7(now + 5min + 1ms)}, options).error, (key_error{from_the_future, 0}));
  key_options const any_age{.format = key_format::uuidv7};
  EXPECT_FALSE(read({uuidv7(wall_time(0ms))}, any_age).error.has_value());
  key_options const endless{.format = key_format::uuidv7,
                            .age_max = std::chrono::milliseconds::max()};
  EXPECT_FALSE(read({uuidv7(wall_time(0ms))}, endless).error.has_value());
}

TEST(idempotency_key, explains_every_fault_without_repeating_the_key) {
  for (auto fault : {missing, repeated, not_a_string, syntax, invalid_character, empty, too_long,
                     not_a_uuid, not_a_uuidv7, too_old, from_the_future}) {
    auto const text = to_string(key_error{fault, 17});
    EXPECT_TRUE(text.starts_with("The ") && text.ends_with('.')) << text;
  }
  EXPECT_EQ(to_string({too_long, 255}), "The Idempotency-Key has more than 255 characters.");
}

TEST(idempotency_key, allocates_nothing_for_what_nearly_every_client_sends) {
  std::string scratch;
  std::vector<std::string_view> const lines = {R"("8e03978e-40d5-43e8-bc93-6894a57f9324")"};
  key_options const options{.format = key_format::uuid, .accept_unquoted = true};
  auto const before = test::allocations();
  auto const key = read_key(lines, options, now, scratch);
  EXPECT_EQ(test::allocations(), before);
  ASSERT_TRUE(key.has_value());
  EXPECT_EQ(key->data(), lines[0].data() + 1);
}

// Whatever is in a String comes out again, and the bare form never means another key than its
// quotes do.
TEST(idempotency_key, reads_back_any_string_and_any_bare_form) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string key;
    std::string escaped;
    bool plain = true;
    for (auto left = 1 + random() % 40; left > 0; --left) {
      char const c = static_cast<char>(' ' + random() % 95);
      key += c;
      escaped += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
      plain = plain && std::string_view(" \"\\,;").find(c) == std::string_view::npos;
    }
    EXPECT_EQ(read({'"' + escaped + '"'}).key, key);
    key_options const options{.accept_unquoted = true};
    EXPECT_EQ(read({'"' + escaped + '"'}, options).key, key);
    if (plain) {
      EXPECT_EQ(read({key}, options).key, key);
    }
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::idempotency
