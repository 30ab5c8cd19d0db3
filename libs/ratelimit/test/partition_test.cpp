// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/partition.hpp>

#include <tidegate/base/hex.hpp>

#include "support/allocations.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <random>
#include <set>

namespace tidegate::TIDEGATE_ABI::ratelimit {
namespace {

using enum partition_source_kind;
using enum partition_source_fault;
using values = std::vector<std::string_view>;
using namespace std::string_view_literals;

auto rule_of(std::vector<std::string_view> const& texts,
             partition_key_form form = partition_key_form::none) -> partition_rule {
  std::vector<partition_source> sources;
  for (auto text : texts) {
    sources.push_back(parse_partition_source(text).value());
  }
  return partition_rule(sources, form);
}

auto partition_of(partition_rule const& rule, values const& v) -> std::string {
  std::string out;
  rule.append_partition(out, v);
  return out;
}

auto key_of(partition_rule const& rule, values const& v) -> std::string {
  std::string out;
  rule.append_key(out, partition_of(rule, v));
  return out;
}

// ---- sources ----

auto hex(std::string_view octets) -> std::string {
  return to_hex(std::as_bytes(std::span(octets)));
}

TEST(ratelimit_partition_source, reads_every_source) {
  struct row {
    std::string_view text;
    partition_source source;
    std::string_view written;
  };
  for (auto const& [text, source, written] : {
           row{"client-ip", {client_ip}, "client-ip"},
           {"header:x-api-key", {header, "x-api-key"}, "header:x-api-key"},
           {"header:X-API-Key", {header, "x-api-key"}, "header:x-api-key"},
           {"header:!#$%&'*+-.^_`|~09", {header, "!#$%&'*+-.^_`|~09"}, "header:!#$%&'*+-.^_`|~09"},
           {"query:userId", {query, "userId"}, "query:userId"},
           {"query:filter[a:b]", {query, "filter[a:b]"}, "query:filter[a:b]"},
           {"query:\xc3\xa9t\xc3\xa9 1",
            {query, "\xc3\xa9t\xc3\xa9 1"},
            "query:\xc3\xa9t\xc3\xa9 1"},
           {"cookie:SID", {cookie, "SID"}, "cookie:SID"},
           {"method", {method}, "method"},
           {"host", {host}, "host"},
           {"path", {path}, "path"},
           {"route", {route}, "route"},
           {"principal", {principal}, "principal"},
       }) {
    auto const read = parse_partition_source(text);
    ASSERT_TRUE(read.has_value()) << text;
    EXPECT_EQ(*read, source) << text;
    EXPECT_EQ(to_string(*read), written);
    EXPECT_EQ(parse_partition_source(to_string(*read)), *read);
  }
}

TEST(ratelimit_partition_source, refuses_what_is_none_and_says_where) {
  struct row {
    std::string_view text;
    partition_source_error error;
  };
  for (auto const& [text, error] : {
           row{"", {unknown_source, 0}},
           {"client_ip", {unknown_source, 0}},
           {"Client-IP", {unknown_source, 0}},
           {" method", {unknown_source, 0}},
           {"method ", {unknown_source, 0}},
           {":x", {unknown_source, 0}},
           {"headers:x", {unknown_source, 0}},
           {"header", {name_missing, 6}},
           {"header:", {name_missing, 7}},
           {"query", {name_missing, 5}},
           {"cookie:", {name_missing, 7}},
           {"method:GET", {name_not_allowed, 6}},
           {"client-ip:", {name_not_allowed, 9}},
           {"header: x", {invalid_name_character, 7}},
           {"header:x:y", {invalid_name_character, 8}},
           {"header:x=y", {invalid_name_character, 8}},
           {"header:\xc3\xa9", {invalid_name_character, 7}},
           {"header:x\n", {invalid_name_character, 8}},
           {"cookie:a;b", {invalid_name_character, 8}},
           {"query:a=b", {invalid_query_character, 7}},
           {"query:a&b", {invalid_query_character, 7}},
           {"query:a\n"sv, {invalid_query_character, 7}},
           {"query:\0"sv, {invalid_query_character, 6}},
           {"query:\x7f", {invalid_query_character, 6}},
       }) {
    auto const read = parse_partition_source(text);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_EQ(read.error(), error) << text << ": " << to_string(read.error());
    EXPECT_NE(to_string(read.error()).find("allowed"), std::string::npos);
  }
}

TEST(ratelimit_partition_source, tells_credentials_by_their_names) {
  for (auto const* const text : {"header:authorization",
                                 "header:proxy-authorization",
                                 "header:x-api-key",
                                 "header:api-key",
                                 "header:apikey",
                                 "header:X-Auth-Token",
                                 "header:cookie",
                                 "header:x-csrf-token",
                                 "header:x-amz-security-token",
                                 "header:x-session-id",
                                 "header:client-cert",
                                 "query:api_key",
                                 "query:apiKey",
                                 "query:access_token",
                                 "query:token",
                                 "query:key",
                                 "query:client_secret",
                                 "query:sig",
                                 "cookie:anything",
                                 "header:Ocp-Apim-Subscription-Key",
                                 "header:x-functions-key",
                                 "header:x-license-key",
                                 "header:x-pass",
                                 "header:x-passcode",
                                 "header:dpop",
                                 "header:x-jwt-assertion",
                                 "header:x-hub-signature-256",
                                 "header:x-auth",
                                 "header:x-goog-iam-credentials",
                                 "query:sid",
                                 "header:x-sid",
                                 "query:PHPSESSID",
                                 "query:code",
                                 "query:pwd",
                                 "query:authkey",
                                 "query:subscription-key",
                                 "header:x-monkey",
                                 "query:author"}) {
    EXPECT_TRUE(is_credential(*parse_partition_source(text))) << text;
  }
  for (auto const* const text :
       {"client-ip", "principal", "path", "route", "method", "host", "header:x-tenant",
        "header:x-name", "header:user-agent", "header:accept-language", "query:page",
        "header:x-customer", "header:x-user-id", "header:x-business-id", "header:x-country-code",
        "header:x-design"}) {
    EXPECT_FALSE(is_credential(*parse_partition_source(text))) << text;
  }
}

TEST(ratelimit_partition_source, says_what_is_allowed) {
  EXPECT_EQ(to_string(partition_source_error{unknown_source, 0}),
            "no such source; allowed are client-ip, header:NAME, query:NAME, cookie:NAME, method, "
            "host, path, route, principal, plan and attribute:NAME (at offset 0)");
}

TEST(ratelimit_partition_source, reads_what_is_known_of_who_asks) {
  EXPECT_EQ(parse_partition_source("plan"), (partition_source{partition_source_kind::plan, ""}));
  EXPECT_EQ(parse_partition_source("attribute:Region"),
            (partition_source{partition_source_kind::attribute, "Region"}));
  EXPECT_EQ(to_string(*parse_partition_source("attribute:Region")), "attribute:Region");
  EXPECT_FALSE(parse_partition_source("plan:a"));
  EXPECT_FALSE(parse_partition_source("attribute"));
  EXPECT_FALSE(parse_partition_source("attribute:a b"));
  for (auto const* const text : {"principal", "plan", "attribute:x"}) {
    auto const source = parse_partition_source(text);
    EXPECT_TRUE(needs_principal(source->kind)) << text;
    EXPECT_FALSE(is_credential(*source)) << text;
  }
  EXPECT_FALSE(needs_principal(partition_source_kind::header));
}

// ---- partitions ----

TEST(ratelimit_partition, is_one_line_for_each_source) {
  EXPECT_EQ(partition_of(rule_of({"header:X-API-Key"}), {"secret"}), "header:x-api-key=secret\n");
  EXPECT_EQ(partition_of(rule_of({"client-ip", "query:userId", "method"}), {"::1", "a=b", "GET"}),
            "client-ip=::1\nquery:userId=a=b\nmethod=GET\n");
  EXPECT_EQ(partition_of(rule_of({}), {}), "");
}

TEST(ratelimit_partition, takes_what_is_missing_for_the_empty_value) {
  auto const rule = rule_of({"header:a", "header:b"});
  EXPECT_EQ(partition_of(rule, {"", ""}), "header:a=\nheader:b=\n");
  EXPECT_EQ(partition_of(rule, {}), "header:a=\nheader:b=\n");
  EXPECT_EQ(partition_of(rule, {"x"}), "header:a=x\nheader:b=\n");
}

TEST(ratelimit_partition, cannot_be_forged_by_a_value_with_line_ends) {
  auto const rule = rule_of({"header:a", "header:b"});
  EXPECT_EQ(partition_of(rule, {"x\nheader:b=y", "z\r\n\0"sv}),
            "header:a=x header:b=y\nheader:b=z   \n");
}

TEST(ratelimit_partition, cleans_a_value_wherever_it_needs_it) {
  auto const rule = rule_of({"header:k"});
  for (char const c : {'\r', '\n', '\0', '\t', '\x0e', '\x01', '\x80', '\xff'}) {
    bool const kept = c != '\r' && c != '\n' && c != '\0';
    for (std::size_t size = 1; size < 26; ++size) {
      for (std::size_t at = 0; at < size; ++at) {
        std::string value(size, 'x');
        value[at] = c;
        auto expected = value;
        expected[at] = kept ? c : ' ';
        EXPECT_EQ(partition_of(rule, {value}), "header:k=" + expected + "\n") << size << ' ' << at;
      }
    }
  }
}

TEST(ratelimit_partition, differs_whenever_a_cleaned_value_differs) {
  std::mt19937 random(1);
  auto const rule = rule_of({"header:a", "query:b", "path"});
  std::set<std::array<std::string, 3>> requests;
  std::set<std::string> partitions;
  for (int i = 0; i < 20'000; ++i) {
    std::array<std::string, 3> raw;
    std::array<std::string, 3> clean;
    for (std::size_t j = 0; j < raw.size(); ++j) {
      for (auto size = random() % 4; size > 0; --size) {
        raw[j] += "a=\n\r\0: h"[random() % 8];
      }
      for (char c : raw[j]) {
        clean[j] += c == '\n' || c == '\r' || c == '\0' ? ' ' : c;
      }
    }
    requests.insert(clean);
    partitions.insert(partition_of(rule, {raw[0], raw[1], raw[2]}));
  }
  EXPECT_EQ(requests.size(), partitions.size());
}

// ---- keys ----

TEST(ratelimit_partition_key, is_empty_unless_asked_for) {
  EXPECT_EQ(key_of(rule_of({"header:x-api-key"}), {"secret"}), "");
}

TEST(ratelimit_partition_key, is_what_sha256sum_prints_when_hashed) {
  EXPECT_EQ(hex(key_of(rule_of({"header:x-api-key"}, partition_key_form::hashed), {"secret"})),
            "e89cb0d55ce05600be66bae34340de72");
  EXPECT_EQ(
      hex(key_of(rule_of({"client-ip", "header:x-api-key", "method"}, partition_key_form::hashed),
                 {"192.0.2.1", "a\r\nb"})),
      "4fbf6dcba83fbbbb360d80b5c95f3906");
}

TEST(ratelimit_partition_key, is_the_values_when_plain) {
  auto const rule = rule_of({"client-ip", "header:a", "method"}, partition_key_form::plain);
  EXPECT_EQ(key_of(rule, {"192.0.2.1", "x=\n", "GET"}), "192.0.2.1\nx= \nGET");
  EXPECT_EQ(key_of(rule, {}), "\n\n");
  EXPECT_EQ(key_of(rule_of({"header:a"}, partition_key_form::plain), {"x"}), "x");
  EXPECT_EQ(key_of(rule_of({}, partition_key_form::plain), {}), "");
}

TEST(ratelimit_partition, allocates_nothing_when_there_is_room) {
  for (auto form :
       {partition_key_form::none, partition_key_form::hashed, partition_key_form::plain}) {
    auto const rule = rule_of({"client-ip", "header:x-api-key"}, form);
    std::string partition;
    std::string key;
    partition.reserve(256);
    key.reserve(256);
    values const v = {"2001:db8:85a3::8a2e:370:7334", "a key that is longer than any small string"};
    auto const before = test::allocations();
    rule.append_partition(partition, v);
    rule.append_key(key, partition);
    EXPECT_EQ(test::allocations(), before);
  }
}

// ---- descriptions ----

TEST(ratelimit_partition, describes_itself_to_people) {
  EXPECT_EQ(describe(rule_of({})),
            "All requests count together. Responses do not have the partition key.");
  EXPECT_EQ(describe(rule_of({"client-ip", "header:x-api-key"}, partition_key_form::plain)),
            "Requests count together when all of these are the same in them: the address of the "
            "client, the header field x-api-key. A missing value counts as an empty one. The "
            "partition key (pk) is their values in this order, with a line feed between "
            "two. CR, LF and NUL in a value count as a space.");
  EXPECT_EQ(
      describe(rule_of({"header:x-api-key"}, partition_key_form::hashed)),
      "Requests count together when this is the same in them: the header field x-api-key. A "
      "missing value counts as an empty one. The partition key (pk) is the first "
      "16 bytes of the SHA-256 of a text with one line for each of these, in this order, that "
      "ends with a line feed; in hexadecimal digits: printf 'header:x-api-key=%s\\n' "
      "\"$VALUE\" | sha256sum | head -c 32. CR, LF and NUL in a value count as a space. The "
      "key does not hide values of which there are few, such as IPv4 addresses: all who see "
      "it can try them.");
}

TEST(ratelimit_partition, describes_itself_to_programs) {
  EXPECT_EQ(describe_as_json(rule_of({})), R"({"sources":[],"partition-key":"none"})");
  EXPECT_EQ(describe_as_json(rule_of({"client-ip", R"(query:a"b)"}, partition_key_form::hashed)),
            R"({"sources":["client-ip","query:a\"b"],"partition-key":"hashed",)"
            R"("digest":"sha-256","digest-octets":16,"line":"SOURCE=VALUE\n"})");
  EXPECT_EQ(describe_as_json(rule_of({"host"}, partition_key_form::plain)),
            R"({"sources":["host"],"partition-key":"plain","separator":"\n"})");
}

/// What a shell prints.
auto output_of(std::string const& command) -> std::string {
  auto const close = [](FILE* pipe) { pclose(pipe); };
  std::unique_ptr<FILE, decltype(close)> const pipe(popen(command.c_str(), "r"), close);
  std::string out(64, '\0');
  out.resize(pipe ? std::fread(out.data(), 1, out.size(), pipe.get()) : 0);
  return out;
}

TEST(ratelimit_partition, describes_a_command_that_makes_the_hashed_key) {
  struct row {
    std::vector<std::string_view> sources;
    values v;
    std::string assignments;
  };
  for (auto const& row : {
           row{{"header:x-api-key"}, {"it's 100%"}, "VALUE=\"it's 100%\"; "},
           {{R"(query:it's 100%s\n)", "header:%d'"}, {"a", "b"}, "VALUE1=a VALUE2=b; "},
           {{"client-ip", "host"}, {"192.0.2.1", ""}, "VALUE1=192.0.2.1 VALUE2=; "},
           {{}, {}, ""},
       }) {
    auto const rule = rule_of(row.sources, partition_key_form::hashed);
    auto const text = describe(rule);
    auto const begin = text.find("printf ");
    auto const end = text.find("head -c 32") + std::string_view("head -c 32").size();
    EXPECT_EQ(output_of(row.assignments + text.substr(begin, end - begin)),
              hex(key_of(rule, row.v)))
        << text;
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::ratelimit
