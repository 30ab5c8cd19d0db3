// SPDX-License-Identifier: Apache-2.0
#include "exchange.hpp"

#include <tidegate/http/field.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace tidegate::TIDEGATE_ABI::client {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::uint8_t, 10> randomness = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
constexpr instant now{100s};

auto prepared(request wanted, session_options const& options = {})
    -> result<std::unique_ptr<exchange>, client_error> {
  return prepare(
      std::move(wanted), options,
      {now, std::chrono::sys_time<std::chrono::milliseconds>(1'700'000'000'000ms), randomness});
}

auto lane_of(request wanted) -> std::string {
  auto const made = prepared(std::move(wanted));
  return made ? (*made)->lane_name : to_string(made.error());
}

auto fault_of(request wanted) -> std::string {
  auto const made = prepared(std::move(wanted));
  return made ? "none" : to_string(made.error());
}

TEST(client_exchange, may_repeat_idempotent_methods_and_requests_with_a_key) {
  struct row {
    request wanted;
    bool idempotent_method;
    bool has_key;
  };
  std::vector<row> const rows = {
      {{.url = "http://a/"}, true, false},
      {{.method = "DELETE", .url = "http://a/"}, true, false},
      {{.method = "POST", .url = "http://a/"}, false, false},
      {{.method = "POST", .url = "http://a/", .idempotent = true}, false, true},
      {{.method = "POST", .url = "http://a/", .key = "mine"}, false, true},
      {{.method = "POST", .url = "http://a/", .fields = {{"idempotency-KEY", "\"x\""}}},
       false,
       true},
  };
  for (auto const& each : rows) {
    auto const made = prepared(each.wanted);
    ASSERT_TRUE(made);
    EXPECT_EQ((*made)->repeats.idempotent_method, each.idempotent_method);
    EXPECT_EQ((*made)->repeats.has_key, each.has_key);
  }
}

TEST(client_exchange, makes_a_key_keeps_a_given_one_and_leaves_the_field_of_the_caller_alone) {
  EXPECT_EQ((*prepared({.url = "http://a/", .idempotent = true}))->key,
            "018bcfe5-6800-7102-8304-05060708090a");
  EXPECT_EQ((*prepared({.url = "http://a/", .key = "mine"}))->key, "mine");
  EXPECT_EQ(
      (*prepared(
           {.url = "http://a/", .fields = {{"Idempotency-Key", "\"x\""}}, .idempotent = true}))
          ->key,
      "");
}

TEST(client_exchange, paces_by_origin_route_and_partition) {
  EXPECT_EQ(lane_of({.url = "HTTP://A.Example:80/x?y"}), "http://a.example\n\n");
  EXPECT_EQ(lane_of({.url = "https://a.example:443"}), "https://a.example\n\n");
  EXPECT_EQ(lane_of({.url = "http://a.example:443/"}), "http://a.example:443\n\n");
  EXPECT_EQ(lane_of({.url = "http://[::1]:8080/"}), "http://[::1]:8080\n\n");
  EXPECT_EQ(lane_of({.url = "http://a/", .route = "search", .partition = "me"}),
            "http://a\n6:search\n=me");
  EXPECT_EQ(lane_of({.url = "http://a/", .fields = {{"X-API-Key", "k"}, {"Authorization", "t"}}}),
            "http://a\n\n0=t\n1=k\n");
  EXPECT_NE(lane_of({.url = "http://a/", .route = "x\n=y"}),
            lane_of({.url = "http://a/", .route = "x", .partition = "y"}));
}

TEST(client_exchange, does_not_send_what_follows_a_hash) {
  EXPECT_EQ((*prepared({.url = "http://a/b#c"}))->wanted.url, "http://a/b");
}

TEST(client_exchange, knows_where_a_target_begins_that_can_be_sent_as_it_is) {
  auto const target_of = [](std::string const& url) {
    auto const made = *prepared({.url = url});
    return made->target_begin == 0 ? "" : made->wanted.url.substr(made->target_begin);
  };
  EXPECT_EQ(target_of("http://a/"), "/");
  EXPECT_EQ(target_of("http://a:8080/b/%2F?c=/&%zz#d"), "/b/%2F?c=/&%zz");
  EXPECT_EQ(target_of("https://[::1]/b"), "/b");
  for (auto const* const other : {"http://a", "http://a?b=/c", "http://a/b/../c", "http://a/%7e"}) {
    EXPECT_EQ(target_of(other), "") << other;
  }
}

TEST(client_exchange, refuses_what_cannot_be_sent) {
  for (auto const* const url : {"", "/", "a", "ftp://a/", "http://", "http://u:p@a/", "http://a/ b",
                                "http://a/\r\nX: y", "http://a:0/"}) {
    EXPECT_THAT(fault_of({.url = url}), testing::StartsWith("the request cannot be sent: ")) << url;
  }
  for (auto const* const method : {"", "GE T", "GET\r\n", "CONNECT"}) {
    EXPECT_NE(fault_of({.method = method, .url = "http://a/"}), "none") << method;
  }
  EXPECT_NE(fault_of({.method = "HEAD", .url = "http://a/", .body = "x"}), "none");
  EXPECT_NE(fault_of({.url = "http://a/" + std::string(70'000, 'x')}), "none");
  std::vector<http::field> const fields = {{"", "x"},           {"a b", "x"},
                                           {"a:", "x"},         {"a", "x\r\nb: c"},
                                           {"a", "x\n"},        {"a", std::string("x\0", 2)},
                                           {"Host", "b"},       {"content-length", "1"},
                                           {"Connection", "x"}, {"Transfer-Encoding", "chunked"}};
  for (auto const& each : fields) {
    EXPECT_NE(fault_of({.url = "http://a/", .fields = {each}}), "none") << each.name;
  }
  for (std::string const& key :
       {std::string("a\"\n"), std::string("\t"), std::string("\xc3\xa4"), std::string(256, 'x')}) {
    EXPECT_NE(fault_of({.url = "http://a/", .key = key}), "none") << key;
  }
}

TEST(client_exchange, has_a_deadline_that_never_overflows) {
  EXPECT_EQ((*prepared({.url = "http://a/"}))->deadline, now + 10min);
  EXPECT_EQ((*prepared({.url = "http://a/", .time_max = 3s}))->deadline, now + 3s);
  EXPECT_EQ(
      (*prepared({.url = "http://a/", .time_max = std::chrono::nanoseconds::max()}))->deadline,
      instant::max());
}

TEST(client_exchange, takes_a_time_that_is_over_for_no_time) {
  for (auto const time : {std::chrono::nanoseconds(0), std::chrono::nanoseconds(-1),
                          std::chrono::nanoseconds::min()}) {
    EXPECT_EQ((*prepared({.url = "http://a/", .time_max = time}))->deadline, now);
    session_options options;
    options.time_max = time;
    EXPECT_EQ((*prepared({.url = "http://a/"}, options))->deadline, now);
  }
}

TEST(client_exchange, takes_no_empty_field_for_a_key) {
  for (auto const* const value : {"", " ", "\t "}) {
    for (bool const idempotent : {true, false}) {
      EXPECT_NE(fault_of({.method = "POST",
                          .url = "http://a/",
                          .fields = {{"idempotency-Key", value}},
                          .idempotent = idempotent}),
                "none");
    }
  }
}

TEST(client_header_section, finds_names_in_any_case_and_keeps_their_order) {
  header_section fields;
  EXPECT_EQ(fields.find("a"), std::nullopt);
  fields.add("Vary", "x");
  fields.add("vary", "");
  ASSERT_EQ(fields.size(), 2U);
  EXPECT_EQ(fields.find("VARY"), "x");
  EXPECT_EQ(fields[1].name, "vary");
  EXPECT_EQ(fields[1].value, "");
  auto const moved = std::move(fields);
  EXPECT_EQ(moved.find("vary"), "x");
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::client
