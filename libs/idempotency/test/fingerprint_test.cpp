// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency/fingerprint.hpp>

#include <gtest/gtest.h>

#include <random>

namespace tidegate::TIDEGATE_ABI::idempotency {
namespace {

auto const test_secret = secret(std::as_bytes(std::span(std::string_view("test"))));

struct request {
  std::string_view method = "POST";
  std::string_view path = "/orders";
  std::string_view query{};
  std::string_view body{};
};

auto fingerprint_of(request const& r, fingerprint_rule const& rule = {},
                    secret const& s = test_secret) -> fingerprint {
  fingerprinter maker(s, rule, r.method, r.path, r.query);
  if (rule.streams()) {
    maker.update(r.body);
  }
  return maker.finish(r.body);
}

auto pointers(std::initializer_list<std::string_view> texts) -> fingerprint_rule {
  std::vector<json::pointer> all;
  for (auto text : texts) {
    all.push_back(json::pointer::parse(text).value());
  }
  return fingerprint_rule::json(std::move(all)).value();
}

auto differing(request const& a, request const& b, fingerprint_rule const& rule = {})
    -> request_parts {
  return differing_parts(fingerprint_of(a, rule), fingerprint_of(b, rule));
}

TEST(idempotency_fingerprint, names_the_parts_that_differ) {
  using enum request_part;
  request const first{"POST", "/orders", "a=1", "x"};
  EXPECT_EQ(differing(first, first), request_parts{});
  EXPECT_EQ(differing(first, {"PATCH", "/orders", "a=1", "x"}), request_parts{method});
  EXPECT_EQ(differing(first, {"POST", "/order", "a=1", "x"}), request_parts{path});
  EXPECT_EQ(differing(first, {"POST", "/orders", "a=2", "x"}), request_parts{query});
  EXPECT_EQ(differing(first, {"POST", "/orders", "a=1", "y"}), request_parts{body});
  EXPECT_EQ(differing(first, {"PATCH", "/order", "", ""}),
            (request_parts{method, path, query, body}));
}

TEST(idempotency_fingerprint, does_not_mix_up_parts) {
  using enum request_part;
  EXPECT_EQ(differing({"A", "B", "C", "D"}, {"B", "C", "D", "A"}),
            (request_parts{method, path, query, body}));
  auto const same = fingerprint_of({"A", "A", "A", "A"});
  EXPECT_NE(same.parts[0], same.parts[1]);
  EXPECT_NE(same.parts[1], same.parts[2]);
  EXPECT_NE(same.parts[2], same.parts[3]);
}

TEST(idempotency_fingerprint, is_of_exact_bytes_unless_told_otherwise) {
  using enum request_part;
  EXPECT_EQ(differing({.body = R"({"a":1})"}, {.body = R"({"a": 1})"}), request_parts{body});
  EXPECT_EQ(differing({.body = {"\0", 1}}, {.body = {"\0\0", 2}}), request_parts{body});
  EXPECT_EQ(differing({.body = ""}, {.body = {"\0", 1}}), request_parts{body});
}

TEST(idempotency_fingerprint, is_the_same_however_the_content_is_cut) {
  std::mt19937 random(7);
  std::string content;
  for (int i = 0; i < 3'000; ++i) {
    content += static_cast<char>(random());
  }
  fingerprint_rule const rule;
  auto const whole = fingerprint_of({.body = content});
  for (int round = 0; round < 200; ++round) {
    fingerprinter maker(test_secret, rule, "POST", "/orders", "");
    for (auto rest = std::string_view(content); !rest.empty();) {
      auto const piece = rest.substr(0, random() % 200);
      maker.update(piece);
      rest.remove_prefix(piece.size());
    }
    EXPECT_EQ(maker.finish(), whole);
  }
}

TEST(idempotency_fingerprint, is_the_same_with_a_memo_of_what_came_before) {
  struct named_parts {
    std::string_view method, path, query;
  };
  fingerprint_rule const rule;
  part_memo memo;
  for (auto const& [method, path, query] : {
           named_parts{"", "", ""},
           {"POST", "/orders", ""},
           {"POST", "/orders", ""},
           {"POST", "/orders", "a=1"},
           {"PATCH", "/orders/1", "a=1"},
           {"/orders/1", "a=1", "PATCH"},
           {"POST", "/orders", ""},
       }) {
    EXPECT_EQ(fingerprinter(test_secret, rule, method, path, query, &memo).finish(),
              fingerprinter(test_secret, rule, method, path, query).finish());
  }
}

TEST(idempotency_fingerprint, ignores_order_and_spelling_of_json_where_the_rule_says_so) {
  using enum request_part;
  auto const rule = fingerprint_rule::json();
  EXPECT_FALSE(rule.streams());
  EXPECT_EQ(
      differing({.body = R"({"a":1,"b":"\u0078"})"}, {.body = R"({ "b":"x", "a":1.0 })"}, rule),
      request_parts{});
  EXPECT_EQ(differing({.body = R"({"a":1})"}, {.body = R"({"a":2})"}, rule), request_parts{body});
  EXPECT_EQ(differing({.body = R"({"amount":9007199254740992})"},
                      {.body = R"({"amount":9007199254740993})"}, rule),
            request_parts{body});
  EXPECT_EQ(differing({.path = "/a", .body = "{}"}, {.path = "/b", .body = "{ }"}, rule),
            request_parts{path});
}

TEST(idempotency_fingerprint, takes_exact_bytes_where_json_is_invalid_or_has_a_name_twice) {
  using enum request_part;
  for (auto const& rule : {fingerprint_rule::json(), pointers({"/a"})}) {
    for (auto const& [a, b] : {
             std::pair<std::string_view, std::string_view>{"{", "{ "},
             {R"({"a":1,"a":2})", R"({"a":1, "a":2})"},
             {"", " "},
             {"a=1&b=2", "b=2&a=1"},
         }) {
      EXPECT_EQ(differing({.body = a}, {.body = b}, rule), request_parts{body}) << a;
      EXPECT_EQ(differing({.body = a}, {.body = a}, rule), request_parts{}) << a;
    }
  }
  // Bytes that look like a canonical form are not taken for one.
  EXPECT_EQ(differing({.body = R"({"a":1e1000000000})"}, {.body = R"({"a":1})"},
                      fingerprint_rule::json()),
            request_parts{body});
}

TEST(idempotency_fingerprint, looks_only_at_what_the_pointers_name) {
  using enum request_part;
  auto const rule = pointers({"/amount", "/to/iban"});
  request const first{.body = R"({"amount":5,"to":{"iban":"X","name":"A"},"at":1})"};
  auto const judged = [&](std::string_view content) {
    return differing(first, {.body = content}, rule);
  };
  EXPECT_EQ(judged(R"({"at":2,"to":{"name":"B","iban":"X"},"amount":5.0})"), request_parts{});
  EXPECT_EQ(judged(R"({"amount":6,"to":{"iban":"X"}})"), request_parts{body});
  EXPECT_EQ(judged(R"({"amount":5,"to":{"iban":"Y"}})"), request_parts{body});
  EXPECT_EQ(judged(R"({"amount":5})"), request_parts{body}) << "missing is not the same";
  EXPECT_EQ(judged(R"({"amount":5,"to":{"iban":null}})"), request_parts{body});
  EXPECT_EQ(differing({.body = R"({"amount":5})"}, {.body = R"({"amount":5,"to":1})"}, rule),
            request_parts{})
      << "missing in both";
  EXPECT_EQ(differing({.body = R"({"amount":"1\n2"})"}, {.body = R"({"amount":1,"to":{"iban":2}})"},
                      rule),
            request_parts{body});
}

TEST(idempotency_fingerprint, ignores_the_content_where_the_rule_is_none) {
  using enum request_part;
  auto const rule = fingerprint_rule::none();
  EXPECT_EQ(differing({.body = "a"}, {.body = "b"}, rule), request_parts{});
  EXPECT_EQ(differing({.query = "a"}, {.query = "b"}, rule), request_parts{query});
}

TEST(idempotency_fingerprint, depends_on_the_secret) {
  auto const other = secret(std::as_bytes(std::span(std::string_view("other"))));
  auto const a = fingerprint_of({.body = "small"});
  auto const b = fingerprint_of({.body = "small"}, {}, other);
  for (std::size_t i = 0; i < a.parts.size(); ++i) {
    EXPECT_NE(a.parts[i], b.parts[i]);
  }
}

TEST(idempotency_fingerprint_rule, is_kept_as_text_and_read_back) {
  for (auto const& rule :
       {fingerprint_rule::none(), fingerprint_rule::body(), fingerprint_rule::json(),
        pointers({""}), pointers({"/a", "/b/0"}), pointers({"/3:/x", "/\n"})}) {
    EXPECT_EQ(fingerprint_rule::parse(rule.text()), rule) << rule.text();
    request const r{.body = R"({"a":1,"b":[2],"3:":{"x":3}})"};
    EXPECT_EQ(fingerprint_of(r, *fingerprint_rule::parse(rule.text())), fingerprint_of(r, rule));
  }
  EXPECT_EQ(pointers({"/a", "/b"}).text(), "p2:/a2:/b");
}

TEST(idempotency_fingerprint_rule, refuses_texts_that_are_none) {
  for (auto const* text : {"", "x", "bb", "p", "p1", "p2:/", "p02:/a", "p2:/a ", "p2:ab",
                           "p-1:", "p99999999999999999999:", "p2:/a2:/", "nj"}) {
    EXPECT_EQ(fingerprint_rule::parse(text), std::nullopt) << text;
  }
  EXPECT_EQ(fingerprint_rule::json({}), std::nullopt);
  std::vector<json::pointer> const many(33, json::pointer::parse("/a").value());
  EXPECT_EQ(fingerprint_rule::json(many), std::nullopt);
  std::vector<json::pointer> const most(
      32, json::pointer::parse("/" + std::string(json::pointer::octets_max - 1, 'a')).value());
  auto const longest = fingerprint_rule::json(most);
  ASSERT_TRUE(longest.has_value());
  EXPECT_LE(longest->text().size(), fingerprint_rule::text_octets_max);
  EXPECT_EQ(fingerprint_rule::parse(longest->text()), longest);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::idempotency
