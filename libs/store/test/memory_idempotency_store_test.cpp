// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store/memory_idempotency_store.hpp>

#include "support/idempotency_store_contract.hpp"

#include <tidegate/store/record_table.hpp>

#include <gtest/gtest.h>

#include <set>

namespace tidegate::TIDEGATE_ABI::store {
namespace {

using namespace std::chrono_literals;
using namespace contract;

struct memory_maker {
  [[nodiscard]] auto make(std::size_t records_max) -> std::unique_ptr<idempotency_store> {
    return std::make_unique<memory_idempotency_store>(
        memory_idempotency_store::options{.records_max = records_max});
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(memory, store_contract, memory_maker);

TEST(store_memory_idempotency, claims_nothing_more_when_responses_take_too_much) {
  memory_idempotency_store store({.records_max = 1000, .octets_max = 40'000});
  std::vector<idempotency::change> claims;
  for (int i = 0; i < 100; ++i) {
    claims.push_back(claim_of(key_of(std::to_string(i)), 1));
    ASSERT_TRUE(contract::made(store, claims.back()));
  }
  for (auto const& claim : claims) {
    EXPECT_TRUE(contract::made(
        store,
        complete(claim.key, *claim.next, response_of(std::string(1000, 'x')), contract::start)))
        << "what was claimed is taken in any case";
  }
  std::size_t refused = 0;
  for (int i = 100; i < 200; ++i) {
    refused += contract::apply(store, claim_of(key_of(std::to_string(i)), 1)).has_value() ? 0U : 1U;
  }
  EXPECT_GT(refused, 90U);
  EXPECT_GT(store.used().response_octets, 100'000U);
}

TEST(store_record_table, takes_at_most_200_octets_for_a_key) {
  record_table table;
  constexpr std::size_t keys = 200'000;
  auto const record = *claim_of(key_of("a"), 1).next;
  for (std::size_t i = 0; i < keys; ++i) {
    idempotency::lookup_key key;
    std::memcpy(key.octets.data(), &i, sizeof i);
    auto const spread = i * 0x9e3779b97f4a7c15;
    std::memcpy(key.octets.data(), &spread, sizeof spread);
    table.put(key, {record, nullptr, 0});
  }
  EXPECT_EQ(table.size(), keys);
  EXPECT_LE(table.memory() / keys, 200U);
}

// Keys of which many want the same slot, so that taking one out has to move others.
TEST(store_record_table, does_what_a_set_does) {
  record_table table;
  std::set<unsigned> oracle;
  std::mt19937 random(5);
  auto record = *claim_of(key_of("a"), 1).next;
  auto const key = [](unsigned number) {
    idempotency::lookup_key k;
    std::uint64_t const hash = number % 7;
    std::memcpy(k.octets.data(), &hash, sizeof hash);
    std::memcpy(k.octets.data() + 8, &number, sizeof number);
    return k;
  };
  for (int i = 0; i < 50'000; ++i) {
    auto const number = static_cast<unsigned>(random() % 200);
    if (random() % 2 == 0) {
      record.token = number;
      record.fingerprint.rule = number % 3 == 0 ? "j" : "b";
      table.put(key(number), {record, nullptr, number});
      oracle.insert(number);
    } else {
      table.erase(key(number));
      oracle.erase(number);
    }
    ASSERT_EQ(table.size(), oracle.size());
  }
  for (unsigned number = 0; number < 200; ++number) {
    auto const found = table.find(key(number));
    ASSERT_EQ(found.has_value(), oracle.contains(number)) << number;
    if (found) {
      EXPECT_EQ(found->record.token, number);
      EXPECT_EQ(found->record.fingerprint.rule, number % 3 == 0 ? "j" : "b");
      EXPECT_EQ(found->row, number);
    }
  }
  std::size_t seen = 0;
  for (std::size_t place = 0; place < table.places(); ++place) {
    seen += table.key_at(place).has_value() ? 1U : 0U;
  }
  EXPECT_EQ(seen, oracle.size());
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::store
