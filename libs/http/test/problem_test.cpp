// SPDX-License-Identifier: Apache-2.0
#include "support/allocations.hpp"

#include <tidegate/http/problem.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tidegate::TIDEGATE_ABI::http {
namespace {

using fault = extension_name_fault;

auto written(problem const& standard) -> std::string {
  std::string out;
  problem_writer(out, standard);
  return out;
}

TEST(http_problem, has_the_media_type_of_rfc_9457) {
  EXPECT_EQ(problem_json, "application/problem+json");
}

TEST(http_problem, writes_the_example_of_rfc_9457) {
  std::string out;
  problem_writer(out, {.type = "https://example.com/probs/out-of-credit",
                       .title = "You do not have enough credit.",
                       .detail = "Your current balance is 30, but that costs 50.",
                       .instance = "/account/12345/msgs/abc"})
      .extension("balance", 30)
      .extension("accounts", {"/account/12345", "/account/67890"});
  EXPECT_EQ(out, R"({"type":"https://example.com/probs/out-of-credit",)"
                 R"("title":"You do not have enough credit.",)"
                 R"("detail":"Your current balance is 30, but that costs 50.",)"
                 R"("instance":"/account/12345/msgs/abc",)"
                 R"("balance":30,"accounts":["/account/12345","/account/67890"]})");
}

TEST(http_problem, leaves_empty_members_out) {
  struct row {
    problem standard;
    std::string_view json;
  };
  for (auto const& [standard, json] : {
           row{{}, R"({})"},
           {{.type = "about:blank"}, R"({"type":"about:blank"})"},
           {{.title = "Not Found"}, R"({"title":"Not Found"})"},
           {{.status = 404}, R"({"status":404})"},
           {{.detail = "No such order."}, R"({"detail":"No such order."})"},
           {{.instance = "/orders/7"}, R"({"instance":"/orders/7"})"},
           {{.title = "Not Found", .status = 404}, R"({"title":"Not Found","status":404})"},
           {{.status = 100, .detail = "d"}, R"({"status":100,"detail":"d"})"},
           {{.type = "t", .title = "u", .status = 599, .detail = "d", .instance = "i"},
            R"({"type":"t","title":"u","status":599,"detail":"d","instance":"i"})"},
       }) {
    EXPECT_EQ(written(standard), json);
  }
}

TEST(http_problem, appends_to_what_is_there) {
  for (std::string const before : {"", "\r\n", "{", "{}", "}", "{\"a\":{"}) {
    auto out = before;
    problem_writer(out).extension("code", "x");
    EXPECT_EQ(out, before + R"({"code":"x"})");
  }
}

TEST(http_problem, is_complete_after_every_call) {
  std::string out;
  problem_writer writer(out, {.status = 422});
  EXPECT_EQ(out, R"({"status":422})");
  writer.extension("code", "key-reused");
  EXPECT_EQ(out, R"({"status":422,"code":"key-reused"})");
  writer.extension("differs", {"body"});
  EXPECT_EQ(out, R"({"status":422,"code":"key-reused","differs":["body"]})");
}

TEST(http_problem, writes_extension_members_of_every_type_in_the_order_of_the_calls) {
  std::vector<std::string> const strings = {"a", "", "b\""};
  std::array<std::string_view, 2> const views = {"x", "y"};
  char const* const literals[] = {"p", "q"};
  std::string out;
  problem_writer writer(out);
  writer.extension("literal", "text");
  writer.extension("string", std::string("owned"));
  writer.extension("view", std::string_view("borrowed"));
  writer.extension("yes", true).extension("no_", false);
  writer.extension("zero", 0).extension("small", std::int8_t{-8}).extension("unsigned", 7U);
  writer.extension("min", std::numeric_limits<std::int64_t>::min());
  writer.extension("max", std::numeric_limits<std::uint64_t>::max());
  writer.extension("strings", strings);
  writer.extension("views", std::span<std::string_view const>(views));
  writer.extension("literals", literals);
  writer.extension("one", {"single"});
  writer.extension("two", {"first", "second"});
  EXPECT_EQ(out, R"({"literal":"text","string":"owned","view":"borrowed","yes":true,"no_":false,)"
                 R"("zero":0,"small":-8,"unsigned":7,"min":-9223372036854775808,)"
                 R"("max":18446744073709551615,"strings":["a","","b\""],"views":["x","y"],)"
                 R"("literals":["p","q"],"one":["single"],"two":["first","second"]})");
}

TEST(http_problem, leaves_empty_extension_members_out_but_not_zero_and_false) {
  std::string out;
  problem_writer(out)
      .extension("text", "")
      .extension("texts", std::vector<std::string>())
      .extension("views", std::span<std::string_view const>())
      .extension("count", 0)
      .extension("flag", false)
      .extension("empty-text", {""})
      .extension("last", std::string());
  EXPECT_EQ(out, R"({"count":0,"flag":false,"empty-text":[""]})");
}

TEST(http_problem, is_valid_json_whatever_the_texts_hold) {
  std::string out;
  problem_writer(out, {.type = "\"", .title = "\\", .detail = "a\nb", .instance = "\xff"})
      .extension("code", "\x01}")
      .extension("differs", {"{", "],", "\xc3"});
  EXPECT_EQ(out, R"({"type":"\"","title":"\\","detail":"a\nb","instance":")"
                 "\xef\xbf\xbd"
                 R"(","code":"\u0001}","differs":["{","],",")"
                 "\xef\xbf\xbd"
                 R"("]})");
}

TEST(http_problem, allocates_nothing_when_the_buffer_is_large_enough) {
  std::array<std::string_view, 2> const policies = {"burst", "daily"};
  std::string out;
  out.reserve(512);
  auto const before = test::allocations();
  problem_writer(out, {.type = "https://iana.org/assignments/http-problem-types#quota-exceeded",
                       .title = "Request cannot be satisfied as assigned quota has been exceeded",
                       .status = 429})
      .extension("violated-policies", policies)
      .extension("code", "quota")
      .extension("retry_after", 30)
      .extension("final", false);
  EXPECT_EQ(test::allocations(), before);
  EXPECT_TRUE(out.ends_with(
      R"("violated-policies":["burst","daily"],"code":"quota","retry_after":30,"final":false})"));
}

TEST(http_extension_name, is_checked_when_it_is_made) {
  struct row {
    std::string_view text;
    std::optional<extension_name_error> error;
  };
  constexpr auto ok = std::nullopt;
  constexpr auto bad = [](std::size_t at) {
    return extension_name_error{fault::invalid_character, at};
  };
  constexpr auto too_short = [](std::size_t size) {
    return extension_name_error{fault::too_short, size};
  };
  constexpr auto standard = extension_name_error{fault::standard_name, 0};
  for (auto const& [text, error] : {
           row{"code", ok},
           {"abc", ok},
           {"ABC", ok},
           {"a_1", ok},
           {"a--", ok},
           {"violated-policies", ok},
           {"z9999999999999999999999999999999999999999999999999999999999999999", ok},
           {"Type", ok},
           {"types", ok},
           {"typ", ok},
           {"", too_short(0)},
           {"a", too_short(1)},
           {"ab", too_short(2)},
           {"1bc", bad(0)},
           {"_bc", bad(0)},
           {"-bc", bad(0)},
           {"a b", bad(1)},
           {"a.b", bad(1)},
           {"ab\"", bad(2)},
           {"abc\\", bad(3)},
           {"abc\n", bad(3)},
           {"abc:", bad(3)},
           {"abc/", bad(3)},
           {"abc@", bad(3)},
           {"abc[", bad(3)},
           {"abc`", bad(3)},
           {"abc{", bad(3)},
           {"ab\xc3\xa9", bad(2)},
           {std::string_view("ab\0c", 4), bad(2)},
           {"type", standard},
           {"title", standard},
           {"status", standard},
           {"detail", standard},
           {"instance", standard},
       }) {
    auto const name = extension_name::make(text);
    if (error) {
      ASSERT_FALSE(name.has_value()) << text;
      EXPECT_EQ(name.error(), *error) << text;
    } else {
      ASSERT_TRUE(name.has_value()) << text;
      EXPECT_EQ(name->text(), text);
    }
  }
}

TEST(http_extension_name, is_checked_by_the_compiler_when_it_is_a_literal) {
  constexpr extension_name name = "violated-policies";
  static_assert(name.text() == "violated-policies");
  static_assert(!extension_name::make("status").has_value());
  static_assert(!std::is_convertible_v<std::string_view, extension_name>);
  static_assert(!std::is_convertible_v<std::string, extension_name>);
  static_assert(!std::is_constructible_v<extension_name, char const*>);
  std::string out;
  problem_writer(out).extension(name, 1).extension(*extension_name::make("made"), 2);
  EXPECT_EQ(out, R"({"violated-policies":1,"made":2})");
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::http
