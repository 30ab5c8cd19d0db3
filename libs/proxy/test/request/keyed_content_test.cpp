// SPDX-License-Identifier: Apache-2.0
#include "request/keyed_content.hpp"

#include <tidegate/idempotency/lookup.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace tidegate::gateway {
namespace {

using fault = keyed_content::fault;

constexpr wire::body_framing chunked{.kind = wire::body_kind::chunked};

auto of_length(std::uint64_t octets) -> wire::body_framing {
  return {.kind = wire::body_kind::content_length, .length = octets};
}

/// Everything that is sent of it.
auto sent(keyed_content& content) -> std::string {
  std::string out;
  while (!content.is_taken()) {
    EXPECT_TRUE(content.take_piece(out));
  }
  return out;
}

auto fingerprint_by(keyed_content const& content, idempotency::fingerprint_rule const& rule)
    -> std::optional<idempotency::fingerprint> {
  idempotency::secret const secret(std::as_bytes(std::span(std::string_view("test"))));
  idempotency::fingerprinter maker(secret, rule, "POST", "/", "");
  return content.fingerprint_by(rule, maker);
}

TEST(gateway_keyed_content, is_sent_with_the_framing_that_it_came_with) {
  struct row {
    std::string_view name;
    wire::body_framing framing;
    std::string_view came;
    std::string_view sent;
  };
  for (auto const& each : {
           row{"with a length", of_length(5), "hello", "hello"},
           {"empty", of_length(0), "", ""},
           {"in chunks, which become one", chunked, "2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
            "5\r\nhello\r\n0\r\n\r\n"},
           {"in no chunk but the last", chunked, "0\r\n\r\n", "0\r\n\r\n"},
       }) {
    for (std::size_t const piece : {std::size_t{1}, std::size_t{100}}) {
      keyed_content content(each.framing);
      auto const last_line = each.came.size() - std::min<std::size_t>(2, each.came.size());
      for (std::size_t at = 0; at < each.came.size();) {
        auto const bytes =
            each.came.substr(at, at < last_line ? std::min(piece, last_line - at) : 2);
        EXPECT_EQ(content.append(bytes, 5, testing::TempDir()), fault::none) << each.name;
        at += bytes.size();
      }
      EXPECT_TRUE(content.is_complete()) << each.name;
      EXPECT_EQ(sent(content), each.sent) << each.name;
    }
  }
}

TEST(gateway_keyed_content, is_bounded_by_what_it_decodes_to) {
  keyed_content content(chunked);
  EXPECT_EQ(content.append("2\r\nhe\r\n3\r\nllo\r\n", 5, testing::TempDir()), fault::none);
  EXPECT_EQ(content.append("1\r\n!", 5, testing::TempDir()), fault::too_large);
}

TEST(gateway_keyed_content, says_when_no_file_can_be_made_for_what_memory_does_not_hold) {
  keyed_content content(of_length(1 << 20));
  EXPECT_EQ(content.append(std::string(1 << 20, 'x'), 1 << 20, testing::TempDir() + "/none/at/all"),
            fault::not_kept);
}

TEST(gateway_keyed_content, counts_the_same_in_memory_and_in_a_file) {
  std::string const large = "\"" + std::string(300'000, 'x') + "\"";
  keyed_content content(of_length(large.size()));
  EXPECT_EQ(content.append(large, large.size(), testing::TempDir()), fault::none);
  EXPECT_LT(content.memory_octets(), large.size());
  auto const& rules = {idempotency::fingerprint_rule::body(),
                       idempotency::fingerprint_rule::json()};
  for (auto const& rule : rules) {
    idempotency::secret const secret(std::as_bytes(std::span(std::string_view("test"))));
    idempotency::fingerprinter whole(secret, rule, "POST", "/", "");
    if (rule.streams()) {
      whole.update(large);
    }
    EXPECT_EQ(fingerprint_by(content, rule), whole.finish(large));
  }
  sha256 hash;
  hash.update(large);
  EXPECT_EQ(content.matches(hash.finish()), true);
  EXPECT_EQ(content.matches({}), false);
  EXPECT_EQ(sent(content), large);
}

}  // namespace
}  // namespace tidegate::gateway
