// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency/lookup.hpp>

#include "support/allocations.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace tidegate::TIDEGATE_ABI::idempotency {
namespace {

auto make(std::string_view master) -> secret {
  return secret(std::as_bytes(std::span(master)));
}

TEST(idempotency_lookup, is_the_same_for_the_same_scope_and_key) {
  EXPECT_EQ(make("s").lookup("tenant", "key"), make("s").lookup("tenant", "key"));
}

// Made with another implementation of HMAC: what is stored must be found after an update.
TEST(idempotency_lookup, does_not_change_from_one_version_to_the_next) {
  EXPECT_EQ(to_string(make("0123456789abcdef0123456789abcdef").lookup("tenant", "key")),
            "844de1248a7ae38964e73e18618d0a49ab66dc6398d61641e8e82869ddc3a8cf");
}

TEST(idempotency_lookup, differs_whenever_scope_key_or_secret_differ) {
  std::set<std::string> seen;
  std::size_t made = 0;
  for (auto const* master : {"s", "t"}) {
    for (auto const* scope : {"", "a", "ab", "abc", "b"}) {
      for (auto const* key : {"", "c", "bc", "abc", "b"}) {
        seen.insert(to_string(make(master).lookup(scope, key)));
        ++made;
      }
    }
  }
  EXPECT_EQ(seen.size(), made) << "scope and key must not run into each other";
}

TEST(idempotency_lookup, tells_the_scope_and_nothing_else_about_two_keys) {
  auto const one = make("s").lookup("tenant", "one");
  EXPECT_EQ(one.scope(), make("s").lookup("tenant", "two").scope());
  EXPECT_NE(one.scope(), make("s").lookup("another", "one").scope());
  EXPECT_NE(one.scope(), make("t").lookup("tenant", "one").scope());
  EXPECT_NE(one.scope(), make("s").lookup("", "tenant").scope());
}

TEST(idempotency_lookup, is_written_in_64_digits_and_read_back) {
  auto const key = make("s").lookup("tenant", "key");
  auto const text = to_string(key);
  EXPECT_EQ(text.size(), 64U);
  EXPECT_EQ(parse_lookup_key(text), key);
  EXPECT_EQ(text.find("key"), std::string::npos);
  for (auto const& wrong :
       {std::string(), text.substr(1), text + "0", std::string(64, 'A'), std::string(64, 'g')}) {
    EXPECT_EQ(parse_lookup_key(wrong), std::nullopt) << wrong;
  }
}

TEST(idempotency_lookup, allocates_nothing) {
  auto const secret = make("s");
  auto const before = test::allocations();
  auto const key = secret.lookup("tenant", "key");
  EXPECT_EQ(test::allocations(), before);
  EXPECT_NE(lookup_key_hash{}(key), 0U);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::idempotency
