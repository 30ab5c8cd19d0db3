// SPDX-License-Identifier: Apache-2.0
#include <tidegate/json/canonical.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

namespace tidegate::TIDEGATE_ABI::json {
namespace {

using namespace std::string_literals;

/// The canonical form, or "none".
auto canonical(std::string_view text) -> std::string {
  std::string out = "before";
  if (!append_canonical(out, text)) {
    EXPECT_EQ(out, "before") << "what was there must stay";
    return "none";
  }
  EXPECT_TRUE(out.starts_with("before"));
  return out.substr(6);
}

TEST(json_canonical, has_one_spelling_for_what_means_the_same) {
  struct row {
    std::string_view text;
    std::string_view form;
  };
  for (auto const& [text, form] : {
           row{"null", "null"},
           {" true ", "true"},
           {"false\n", "false"},
           {R"("a")", R"("a")"},
           {"[]", "[]"},
           {"{}", "{}"},
           {"[ 1 , [ ] , { } ]", "[1,[],{}]"},
           {R"({"b":1,"a":2})", R"({"a":2,"b":1})"},
           {R"({"a":2,"b":1})", R"({"a":2,"b":1})"},
           {R"({ "b" : { "d" : 1 , "c" : [ 2 ] } , "a" : {} })", R"({"a":{},"b":{"c":[2],"d":1}})"},
           {R"({"":1,"a":2,"aa":3,"A":4})", R"({"":1,"A":4,"a":2,"aa":3})"},
           {R"([{"b":1,"a":2},{"b":3,"a":4}])", R"([{"a":2,"b":1},{"a":4,"b":3}])"},
           {R"("\u0061\/\b\f\n\r\t\"\\")", R"("a/\b\f\n\r\t\"\\")"},
           {R"("\u20ac\u00e9\ud83d\ude00\u001f\u007f")", "\"\u20ac\u00e9\U0001f600\\u001f\x7f\""},
           {"\"\u20ac\"", "\"\u20ac\""},
           {R"({"\u0061":1})", R"({"a":1})"},
       }) {
    EXPECT_EQ(canonical(text), form) << text;
  }
}

TEST(json_canonical, has_one_spelling_for_each_number) {
  struct row {
    std::string_view text;
    std::string_view form;
  };
  for (auto const& [text, form] : {
           row{"0", "0"},
           {"-0", "0"},
           {"0.000", "0"},
           {"0e999999999999", "none"},
           {"0e9", "0"},
           {"1", "1"},
           {"1.0", "1"},
           {"10e-1", "1"},
           {"1E0", "1"},
           {"1e+00000000000000", "1"},
           {"0.1e1", "1"},
           {"-12.50", "-125e-1"},
           {"100", "1e2"},
           {"1e2", "1e2"},
           {"0.01E4", "1e2"},
           {"0.00120", "12e-4"},
           {"9007199254740992", "9007199254740992"},
           {"9007199254740993", "9007199254740993"},
           {"1e999999999", "1e999999999"},
           {"1e1000000000", "none"},
           {"1e-1000000000", "none"},
           {"01", "none"},
           {"-", "none"},
           {"+1", "none"},
           {".5", "none"},
           {"1.", "none"},
           {"1e", "none"},
           {"1e+", "none"},
           {"0x1", "none"},
           {"NaN", "none"},
           {"Infinity", "none"},
       }) {
    EXPECT_EQ(canonical(text), form) << text;
  }
}

TEST(json_canonical, refuses_what_is_not_json_or_says_something_twice) {
  for (auto const& text : {
           ""s,
           " "s,
           "nul"s,
           "nulll"s,
           "True"s,
           "1 2"s,
           "["s,
           "[1"s,
           "[1,"s,
           "[1,]"s,
           "[,1]"s,
           "[1 2]"s,
           "{"s,
           R"({"a")"s,
           R"({"a":)"s,
           R"({"a":1)"s,
           R"({"a":1,})"s,
           R"({a:1})"s,
           R"({"a" 1})"s,
           R"({1:1})"s,
           "]"s,
           "}"s,
           "[}"s,
           R"({"a":1])"s,
           R"({"a":1,"a":1})"s,
           R"({"a":1,"\u0061":2})"s,
           R"([{"b":1,"a":1,"b":2}])"s,
           "\""s,
           "\"a"s,
           "\"\\"s,
           "\"\\\""s,
           "\"\n\""s,
           "\"\0\""s,
           R"("\x")"s,
           R"("\u12")"s,
           R"("\u12g4")"s,
           R"("\u+123")"s,
           R"("\ud800")"s,
           R"("\udc00")"s,
           R"("\ud800\u0061")"s,
           R"("\ud800x")"s,
           "\"\xff\""s,
           "\"\xc3\""s,
           "\"\xc3\\n\""s,
           "\"\\\xc3\xa9\""s,
           "\"\xed\xa0\x80\""s,
           "\xef\xbb\xbf{}"s,
           "[1]\0"s,
           "'a'"s,
           "[1] // comment"s,
       }) {
    EXPECT_EQ(canonical(text), "none") << text;
  }
}

TEST(json_canonical, goes_64_levels_deep_and_no_further) {
  auto const nested = [](std::size_t levels, char open, char close) {
    return std::string(levels, open) + std::string(levels, close);
  };
  EXPECT_EQ(canonical(nested(64, '[', ']')), nested(64, '[', ']'));
  EXPECT_EQ(canonical(nested(65, '[', ']')), "none");
  EXPECT_EQ(canonical(std::string(1'000'000, '[')), "none");
}

TEST(json_canonical, takes_hostile_megabytes_in_its_stride) {
  // The worst for the order of members: every level has to be turned around.
  std::string deep = "0";
  for (int level = 0; level < 64; ++level) {
    deep = R"({"z":)" + deep + R"(,"a":")" + std::string(16'000, 'x') + "\"}";
  }
  std::string wide = "{";
  for (int i = 100'000; i > 0; --i) {
    wide += '"' + std::to_string(i) + "\":1,";
  }
  wide.back() = '}';
  auto const begin = std::chrono::steady_clock::now();
  EXPECT_EQ(canonical(deep).size(), deep.size());
  EXPECT_EQ(canonical(wide).size(), wide.size());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

/// Writes the same random value twice, each time with other spaces, order and spelling.
class two_writers {
 public:
  explicit two_writers(unsigned seed) : random_(seed) {}

  auto value(int depth) -> std::pair<std::string, std::string> {
    switch (random_() % (depth > 3 ? 3 : 5)) {
      case 0: return {blank() + "1500" + blank(), "15e+2"};
      case 1: return {R"("a/\u00e9")", "\"\\u0061\\/\u00e9\"" + blank()};
      case 2: return {"null", blank() + "null"};
      case 3: {
        std::pair<std::string, std::string> out{"[" + blank(), "["};
        for (auto left = random_() % 4; left > 0; --left) {
          auto const [a, b] = value(depth + 1);
          out.first += a + (left > 1 ? "," : "");
          out.second += b + (left > 1 ? "," + blank() : "");
        }
        return {out.first + "]", out.second + blank() + "]"};
      }
      default: break;
    }
    std::vector<std::pair<std::string, std::string>> members;
    for (auto left = random_() % 5; left > 0; --left) {
      auto const name = "\"" + std::string(left, 'n') + "\":";
      auto const [a, b] = value(depth + 1);
      members.emplace_back(name + a, name + blank() + b);
    }
    std::pair<std::string, std::string> out{"{", "{" + blank()};
    for (auto const& member : members) {
      out.first += (out.first.size() > 1 ? "," : "") + member.first;
    }
    std::shuffle(members.begin(), members.end(), random_);
    for (std::size_t i = 0; i < members.size(); ++i) {
      out.second += (i > 0 ? "," : "") + members[i].second;
    }
    return {out.first + "}", out.second + "}"};
  }

 private:
  auto blank() -> std::string { return std::string(random_() % 3, " \t\n"[random_() % 3]); }
  std::mt19937 random_;
};

TEST(json_canonical, is_the_same_however_a_value_is_spelled) {
  for (unsigned seed = 0; seed < 5'000; ++seed) {
    auto const [a, b] = two_writers(seed).value(0);
    auto const form = canonical(a);
    EXPECT_NE(form, "none") << a;
    EXPECT_EQ(form, canonical(b)) << a << "\n" << b;
    EXPECT_EQ(form, canonical(form)) << "its own canonical form";
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::json
