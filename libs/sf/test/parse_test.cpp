// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf.hpp>

#include <gtest/gtest.h>

#include <string>

namespace tidegate::TIDEGATE_ABI::sf {
namespace {

/// `count` times what `part` returns, with `separator` between.
template <class Part>
auto repeat(int count, std::string_view separator, Part part) -> std::string {
  std::string out;
  for (int i = 0; i < count; ++i) {
    if (i != 0) {
      out.append(separator);
    }
    out.append(part(i));
  }
  return out;
}

template <dialect D>
void supports_the_minimum_sizes() {
  auto const key = [](int i) { return "k" + std::to_string(i); };
  auto const list = parse_list<D>(repeat(1024, ", ", [](int) { return "a"; }));
  EXPECT_EQ(list.value().size(), 1024U);
  auto const dictionary =
      parse_dictionary<D>(repeat(1024, ",", [&](int i) { return key(i) + "=1"; }));
  EXPECT_EQ(dictionary.value().size(), 1024U);
  EXPECT_NE(dictionary->find("k1023"), nullptr);
  auto const parameters = parse_list<D>("x;" + repeat(256, ";", key));
  EXPECT_EQ(std::get<0>(parameters.value()[0]).parameters.size(), 256U);
  auto const on_inner = parse_list<D>("(1);" + repeat(256, ";", key));
  EXPECT_EQ(std::get<1>(on_inner.value()[0]).parameters.size(), 256U);
  auto const inner = parse_list<D>("(" + repeat(256, " ", [](int) { return "1"; }) + ")");
  EXPECT_EQ(std::get<1>(inner.value()[0]).items.size(), 256U);
  std::string const long_key(64, 'k');
  EXPECT_TRUE(parse_dictionary<D>(long_key + "=1").value().contains(long_key));
  EXPECT_TRUE(parse_list<D>("x;" + long_key).has_value());
  std::string const text(1024, 's');
  EXPECT_EQ(parse_item<D>('"' + text + '"').value().value.as_string(), text);
  std::string const token(512, 't');
  EXPECT_EQ(parse_item<D>(token).value().value.as_token(), token);
  char const delimiter = D == dialect::draft11 ? '*' : ':';
  std::string octets(16384, '\0');
  for (std::size_t i = 0; i < octets.size(); ++i) {
    octets[i] = static_cast<char>(i * 7);
  }
  basic_item<D> const bytes{byte_sequence_view{octets}};
  auto const written = serialized(bytes);
  EXPECT_EQ(written.front(), delimiter);
  EXPECT_EQ(parse_item<D>(written).value().value.as_byte_sequence().octets, octets);
}

TEST(sf_parse, supports_the_minimum_sizes_of_rfc9651) {
  supports_the_minimum_sizes<dialect::rfc9651>();
}
TEST(sf_parse, supports_the_minimum_sizes_of_rfc8941) {
  supports_the_minimum_sizes<dialect::rfc8941>();
}
TEST(sf_parse, supports_the_minimum_sizes_of_draft11) {
  supports_the_minimum_sizes<dialect::draft11>();
}

TEST(sf_parse, supports_dates_of_the_years_1_to_9999) {
  EXPECT_EQ(parse_item("@-62135596800").value().value.as_date().time(),
            std::chrono::sys_days(std::chrono::year(1) / 1 / 1));
  EXPECT_EQ(parse_item("@253402214400").value().value.as_date().time(),
            std::chrono::sys_days(std::chrono::year(9999) / 12 / 31));
}

TEST(sf_parse, owns_its_text) {
  auto text = std::string(R"(a="something longer than sixteen", b=:AAECAwQFBgcICQoLDA0ODxAREg==:)");
  auto const value = parse_dictionary(text).value();
  std::fill(text.begin(), text.end(), '#');
  EXPECT_EQ(std::get<item>(*value.find("a")).value.as_string(), "something longer than sixteen");
  EXPECT_EQ(std::get<item>(*value.find("b")).value.as_byte_sequence().octets.size(), 19U);
}

TEST(sf_parse, keeps_the_first_position_and_the_last_value_of_a_repeated_key) {
  auto const value = parse_dictionary("a=1;x, b=2, a=(3);y").value();
  EXPECT_EQ(serialized(value), "a=(3);y, b=2");
  EXPECT_EQ(serialized(parse_item("1;a=1;b=2;a=3").value()), "1;a=3;b=2");
}

TEST(sf_parse, fails_as_a_whole) {
  EXPECT_EQ(parse_list("1, 2, 3;A").error(), (parse_error{parse_fault::key_expected, 8}));
  EXPECT_EQ(parse_dictionary("a=1, b=(1 2").error(),
            (parse_error{parse_fault::unexpected_end, 11}));
  EXPECT_EQ(parse_item("1;a=").error(), (parse_error{parse_fault::unexpected_end, 4}));
  EXPECT_EQ(to_string(parse_item("1;a=").error()), "the value ends too early at offset 4");
}

TEST(sf_parse, takes_every_byte_that_may_come) {
  for (int c = 0; c < 256; ++c) {
    auto const alone = std::string(1, static_cast<char>(c));
    bool const alpha = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    bool const digit = c >= '0' && c <= '9';
    EXPECT_EQ(parse_item(alone).has_value(), alpha || digit || c == '*') << c;
    EXPECT_EQ(parse_item<dialect::draft11>(alone).has_value(), alpha || digit) << c;
    bool const lower = c >= 'a' && c <= 'z';
    EXPECT_EQ(parse_dictionary("k" + alone + "=1").has_value(),
              lower || digit || c == '_' || c == '-' || c == '.' || c == '*')
        << c;
    EXPECT_EQ(parse_dictionary<dialect::draft11>("k" + alone + "=1").has_value(),
              lower || digit || c == '_' || c == '-')
        << c;
    auto const token_chars = std::string_view("!#$%&'*+-.^_`|~:/");
    bool const token = alpha || digit ||
                       (c != 0 && token_chars.find(static_cast<char>(c)) != std::string_view::npos);
    auto const parsed = parse_item("t" + alone + "t");
    EXPECT_EQ(parsed.has_value(), token || c == ';') << c;
    auto const draft_chars = std::string_view("_-.:%*/");
    bool const draft_token =
        alpha || digit ||
        (c != 0 && draft_chars.find(static_cast<char>(c)) != std::string_view::npos);
    EXPECT_EQ(parse_item<dialect::draft11>("t" + alone + "t").has_value(), draft_token) << c;
  }
}

TEST(sf_parse, combines_lines_as_one_value) {
  std::string scratch;
  std::vector<std::string_view> const two = {"a=1, b=2", "c=3, a=4"};
  auto const value = combine(two, scratch);
  EXPECT_EQ(value, "a=1, b=2, c=3, a=4");
  EXPECT_EQ(serialized(parse_dictionary(value).value()), "a=4, b=2, c=3");
  std::vector<std::string_view> const one = {"a=1"};
  EXPECT_EQ(combine(one, scratch).data(), one[0].data());
  EXPECT_EQ(combine({}, scratch), "");
  std::vector<std::string_view> const split = {R"("foo)", R"(bar")"};
  EXPECT_EQ(parse_item(combine(split, scratch)).value().value.as_string(), "foo, bar");
  std::vector<std::string_view> const numbers = {"1", "2"};
  EXPECT_FALSE(parse_item(combine(numbers, scratch)).has_value());
  std::vector<std::string_view> const hollow = {"1", "", "2"};
  EXPECT_FALSE(parse_list(combine(hollow, scratch)).has_value());
}

// Quadratic work over this many members would take minutes, not the blink that this takes.
TEST(sf_parse, takes_a_hundred_thousand_members_in_its_stride) {
  constexpr int count = 100'000;
  auto const distinct =
      repeat(count, ",", [](int i) { return "key" + std::to_string(i) + "=" + std::to_string(i); });
  EXPECT_EQ(parse_dictionary(distinct).value().size(), static_cast<std::size_t>(count));
  EXPECT_EQ(parse_dictionary<dialect::draft11>(distinct).value().size(),
            static_cast<std::size_t>(count));
  auto const repeated = repeat(count, ",", [](int i) { return "key" + std::to_string(i % 1000); });
  EXPECT_EQ(parse_dictionary(repeated).value().size(), 1000U);
  auto const same = repeat(count, ",", [](int) { return "k"; });
  EXPECT_EQ(parse_dictionary(same).value().size(), 1U);
  auto const alike =
      repeat(2000, ";", [](int i) { return std::string(200, 'p') + std::to_string(i); });
  EXPECT_EQ(parse_item("1;" + alike).value().parameters.size(), 2000U);
  EXPECT_EQ(parse_list(repeat(count, ",", [](int i) { return std::to_string(i); })).value().size(),
            static_cast<std::size_t>(count));
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::sf
