// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/idempotency/decide.hpp>
#include <tidegate/store/idempotency_store.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// What every store of idempotency keys promises. A back end says how one is made, by a type with a
/// member `make(records_max)` that returns a fresh store, and instantiates the suite
/// `store_contract` with it. When it needs a program that may be missing, a member `missing` says
/// so, or returns an empty text.
namespace tidegate::TIDEGATE_ABI::store::contract {

using namespace std::chrono_literals;
using namespace idempotency;

inline constexpr wall_time start{1'700'000'000'000ms};

[[nodiscard]] inline auto key_of(std::string_view text) -> lookup_key {
  static auto const made = secret(std::as_bytes(std::span(std::string_view("contract"))));
  return made.lookup("scope", text);
}

[[nodiscard]] inline auto response_of(std::string body) -> stored_response {
  auto const size = body.size();
  return {201, {{"Location", "/1"}, {"x", "\xc3\xa9"}, {"x", ""}}, std::move(body), size, true};
}

/// Asks and waits for the answer.
[[nodiscard]] inline auto find(idempotency_store& store, lookup_key const& key) -> find_answer {
  std::promise<find_answer> promise;
  store.find(key, [&promise](find_answer answer) { promise.set_value(std::move(answer)); });
  return promise.get_future().get();
}
[[nodiscard]] inline auto apply(idempotency_store& store, change c) -> apply_answer {
  std::promise<apply_answer> promise;
  store.apply(std::move(c),
              [&promise](apply_answer answer) { promise.set_value(std::move(answer)); });
  return promise.get_future().get();
}
[[nodiscard]] inline auto unknown_in(idempotency_store& store, std::size_t records)
    -> std::vector<listed_record> {
  std::promise<list_answer> promise;
  store.list_unknown(records,
                     [&promise](list_answer answer) { promise.set_value(std::move(answer)); });
  auto const answer = promise.get_future().get();
  EXPECT_TRUE(answer.has_value());
  return answer.value_or(std::vector<listed_record>());
}
[[nodiscard]] inline auto made(idempotency_store& store, change c) -> bool {
  auto const answer = apply(store, std::move(c));
  return answer.has_value() && answer->made;
}
[[nodiscard]] inline auto record_in(idempotency_store& store, lookup_key const& key)
    -> std::optional<record> {
  auto const answer = find(store, key);
  EXPECT_TRUE(answer.has_value());
  return answer && *answer ? std::optional((*answer)->record) : std::nullopt;
}

[[nodiscard]] inline auto claim_of(lookup_key const& key, fencing_token token,
                                   wall_time now = start) -> change {
  request_facts request{.key = key, .fingerprint = {}, .token = token};
  request.fingerprint.parts[3][0] = std::byte{7};
  return *decide(nullptr, request, {}, now).claim;
}

template <class Maker>
class store_contract : public testing::Test {
 protected:
  void SetUp() override {
    if constexpr (requires { Maker::missing(); }) {
      if (auto const why = std::string(Maker::missing()); !why.empty()) {
        GTEST_SKIP() << why;
      }
    }
  }
  [[nodiscard]] auto fresh(std::size_t records_max = 1000) -> std::unique_ptr<idempotency_store> {
    return maker_.make(records_max);
  }

 private:
  Maker maker_;
};
TYPED_TEST_SUITE_P(store_contract);

TYPED_TEST_P(store_contract, finds_what_was_stored_and_nothing_else) {
  auto const store = this->fresh();
  EXPECT_EQ(record_in(*store, key_of("a")), std::nullopt);
  auto const claim = claim_of(key_of("a"), 1);
  EXPECT_TRUE(made(*store, claim));
  EXPECT_EQ(record_in(*store, key_of("a")), claim.next);
  EXPECT_EQ(record_in(*store, key_of("b")), std::nullopt);
  EXPECT_EQ(store->used().records, 1U);
}

TYPED_TEST_P(store_contract, counts_unknown_outcomes_and_says_what_they_are_about) {
  auto const store = this->fresh();
  auto claim = claim_of(key_of("a"), 1);
  claim.next->origin = {"payments", "shop", "POST", "a.example", "/payments/7"};
  EXPECT_TRUE(made(*store, claim));
  EXPECT_TRUE(made(*store, claim_of(key_of("b"), 2)));
  EXPECT_TRUE(
      made(*store, mark_unknown(key_of("a"), *claim.next, unknown_reason::no_answer, start)));
  EXPECT_EQ(record_in(*store, key_of("a"))->origin, claim.next->origin);
  auto const listed = unknown_in(*store, 10);
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].record.origin, claim.next->origin);
  auto const count_is = [&](std::size_t count) {
    // A store that others use too is asked when it is swept.
    for (int i = 0; i < 1000 && store->used().unknown != count; ++i) {
      store->sweep(start, 1000);
      (void)unknown_in(*store, 1);  // comes back when it has answered
    }
    return store->used().unknown == count;
  };
  EXPECT_TRUE(count_is(1));
  auto const settled =
      resolve(key_of("a"), *record_in(*store, key_of("a")), resolution::executed, start);
  ASSERT_TRUE(settled.has_value());
  EXPECT_TRUE(made(*store, *settled));
  EXPECT_TRUE(count_is(0));
}

TYPED_TEST_P(store_contract,
             refuses_a_change_whose_condition_does_not_hold_and_shows_what_is_there) {
  auto const store = this->fresh();
  auto const key = key_of("a");
  auto const first = claim_of(key, 1);
  EXPECT_TRUE(made(*store, first));
  auto const answer = apply(*store, claim_of(key, 2));
  ASSERT_TRUE(answer.has_value() && answer->found.has_value());
  EXPECT_FALSE(answer->made);
  EXPECT_EQ(answer->found->record, *first.next);
  auto stranger = *first.next;
  stranger.token = 9;
  EXPECT_FALSE(made(*store, complete(key, stranger, response_of("x"), start)));
  EXPECT_FALSE(made(*store, release(key, stranger, start)));
  EXPECT_EQ(record_in(*store, key), first.next);
  auto const nothing = apply(*store, complete(key_of("b"), *first.next, response_of("x"), start));
  ASSERT_TRUE(nothing.has_value());
  EXPECT_FALSE(nothing->made || nothing->found.has_value());
}

TYPED_TEST_P(store_contract, returns_a_response_as_it_was_stored) {
  auto const store = this->fresh();
  std::string every_octet;
  for (int i = 0; i < 256; ++i) {
    every_octet += static_cast<char>(i);
  }
  int number = 0;
  for (auto const& body : {std::string(), every_octet, std::string(100'000, 'x')}) {
    auto const key = key_of(std::to_string(++number));
    auto const claim = claim_of(key, 1);
    EXPECT_TRUE(made(*store, claim));
    EXPECT_TRUE(made(*store, complete(key, *claim.next, response_of(body), start)));
    auto const found = find(*store, key);
    ASSERT_TRUE(found.has_value() && found->has_value() && (*found)->response != nullptr);
    EXPECT_EQ(*(*found)->response, response_of(body));
    EXPECT_EQ((*found)->record.state, record_state::completed);
    auto const refused = apply(*store, claim_of(key, 2));
    ASSERT_TRUE(refused.has_value() && refused->found && refused->found->response != nullptr);
    EXPECT_EQ(*refused->found->response, response_of(body)) << "a loser can replay at once";
  }
}

TYPED_TEST_P(store_contract, forgets_what_was_released) {
  auto const store = this->fresh();
  auto const key = key_of("a");
  auto const claim = claim_of(key, 1);
  EXPECT_TRUE(made(*store, claim));
  EXPECT_TRUE(made(*store, release(key, *claim.next, start)));
  EXPECT_EQ(record_in(*store, key), std::nullopt);
  EXPECT_EQ(store->used().records, 0U);
  EXPECT_TRUE(made(*store, claim_of(key, 2)));
}

TYPED_TEST_P(store_contract, drops_the_response_with_the_tombstone_and_then_the_record) {
  auto const store = this->fresh();
  auto const key = key_of("a");
  auto const claim = claim_of(key, 1);
  EXPECT_TRUE(made(*store, claim));
  EXPECT_TRUE(made(*store, complete(key, *claim.next, response_of("body"), start)));
  auto const live = claim_of(key_of("live"), 2, start + 192h);
  EXPECT_TRUE(made(*store, live));
  auto const sweep_to = [&](wall_time now) {
    store->sweep(now, 1000);
    // Whatever comes behind a sweep sees what it did.
    EXPECT_EQ(apply(*store, release(key_of("none"), *claim.next, start))->made, false);
  };
  sweep_to(start + 24h - 1ms);
  EXPECT_EQ(record_in(*store, key)->state, record_state::completed);
  // Only one on several servers has no order between them.
  constexpr int sweeps_max = requires {
    TypeParam::is_on_several_servers;
  }
  ? 1000 : 1;
  auto const sweep_until = [&](wall_time now, auto holds) {
    for (int i = 0; i == 0 || (i < sweeps_max && !holds()); ++i) {
      sweep_to(now);
    }
  };
  sweep_until(start + 24h,
              [&] { return record_in(*store, key)->state == record_state::tombstone; });
  auto const found = find(*store, key);
  ASSERT_TRUE(found.has_value() && found->has_value());
  EXPECT_EQ((*found)->record.state, record_state::tombstone);
  EXPECT_EQ((*found)->record.status, 201);
  EXPECT_EQ((*found)->response, nullptr);
  EXPECT_EQ(store->used().response_octets, 0U);
  sweep_until(start + 192h, [&] { return !record_in(*store, key); });
  EXPECT_EQ(record_in(*store, key), std::nullopt);
  EXPECT_EQ(record_in(*store, key_of("live")), live.next);
}

TYPED_TEST_P(store_contract, lists_unknown_outcomes_with_the_newest_first) {
  auto const store = this->fresh();
  EXPECT_TRUE(unknown_in(*store, 10).empty());
  std::vector<lookup_key> keys;
  for (int i = 0; i < 5; ++i) {
    auto const& key = keys.emplace_back(key_of("lost " + std::to_string(i)));
    auto const claim = claim_of(key, static_cast<fencing_token>(i) + 1);
    EXPECT_TRUE(made(*store, claim));
    EXPECT_TRUE(
        made(*store, mark_unknown(key, *claim.next, unknown_reason::no_answer, start + i * 1s)));
  }
  auto const running = claim_of(key_of("running"), 7);
  EXPECT_TRUE(made(*store, running));
  auto const answered = claim_of(key_of("answered"), 8);
  EXPECT_TRUE(made(*store, answered));
  EXPECT_TRUE(
      made(*store, complete(key_of("answered"), *answered.next, response_of("body"), start)));

  auto const all = unknown_in(*store, 10);
  ASSERT_EQ(all.size(), 5U);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].key, keys[4 - i]) << i;
    EXPECT_EQ(all[i].record, record_in(*store, all[i].key)) << i;
    EXPECT_EQ(all[i].record.reason, unknown_reason::no_answer);
  }
  auto const few = unknown_in(*store, 2);
  ASSERT_EQ(few.size(), 2U);
  EXPECT_EQ(few[1].key, keys[3]);

  // Whatever becomes of one, it is unknown no more.
  auto const there = [&](int i) { return *record_in(*store, keys[static_cast<std::size_t>(i)]); };
  EXPECT_TRUE(made(*store, *resolve(keys[4], there(4), resolution::executed, start + 9s)));
  EXPECT_TRUE(made(*store, *resolve(keys[3], there(3), resolution::not_executed, start + 9s)));
  EXPECT_TRUE(made(*store, *purge(keys[2], there(2), start + 9s)));
  auto const left = unknown_in(*store, 10);
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0].key, keys[1]);
  EXPECT_EQ(left[1].key, keys[0]);
}

TYPED_TEST_P(store_contract, takes_no_new_key_when_it_is_full_and_loses_none) {
  auto const store = this->fresh(100);
  std::vector<change> claims;
  for (int i = 0;; ++i) {
    ASSERT_LT(i, 10'000) << "the bound must come some time";
    auto const claim = claim_of(key_of(std::to_string(i)), 1);
    auto const answer = apply(*store, claim);
    if (!answer) {
      EXPECT_EQ(answer.error().fault, store_fault::full);
      break;
    }
    claims.push_back(claim);
  }
  EXPECT_GE(claims.size(), 50U);
  for (auto const& claim : claims) {
    EXPECT_EQ(record_in(*store, claim.key), claim.next);
    EXPECT_TRUE(made(*store, complete(claim.key, *claim.next, response_of("x"), start)))
        << "what was claimed can be completed";
  }
  auto probe = claim_of(key_of("probe"), 1);
  probe.bounded = false;
  EXPECT_TRUE(made(*store, probe)) << "only to try whether changes are made";
}

TYPED_TEST_P(store_contract, bounds_the_keys_of_each_scope_by_what_the_change_says) {
  auto const store = this->fresh();
  auto const other = secret(std::as_bytes(std::span(std::string_view("contract"))));
  auto const claim_within = [](lookup_key const& key, std::size_t keys_max) {
    auto claim = claim_of(key, 1);
    claim.scope_keys_max = keys_max;
    return claim;
  };
  EXPECT_TRUE(made(*store, claim_within(key_of("a"), 2)));
  EXPECT_TRUE(made(*store, claim_within(key_of("b"), 2)));
  auto const refused = apply(*store, claim_within(key_of("c"), 2));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().fault, store_fault::scope_full);
  EXPECT_EQ(record_in(*store, key_of("c")), std::nullopt);
  EXPECT_TRUE(made(*store, claim_within(other.lookup("another", "c"), 2)));
  // What is stored stays usable, and makes room when it ends.
  auto const a = *record_in(*store, key_of("a"));
  EXPECT_TRUE(made(*store, mark_unknown(key_of("a"), a, unknown_reason::no_answer, start)));
  EXPECT_FALSE(apply(*store, claim_within(key_of("c"), 2)));
  EXPECT_TRUE(made(*store, release(key_of("a"), a, start)));
  EXPECT_TRUE(made(*store, claim_within(key_of("c"), 2)));
  EXPECT_FALSE(apply(*store, claim_within(key_of("d"), 2)));
  EXPECT_TRUE(made(*store, claim_within(key_of("d"), 0)));
  // The bound is that of the change: there are three now.
  EXPECT_FALSE(apply(*store, claim_within(key_of("e"), 3)));
  EXPECT_TRUE(made(*store, claim_within(key_of("e"), 4)));
}

TYPED_TEST_P(store_contract, counts_the_keys_of_a_scope_exactly_for_many_threads) {
  auto const store = this->fresh(10'000);
  std::atomic<int> claimed = 0;
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      for (int i = 0; i < 100; ++i) {
        auto claim = claim_of(key_of(std::to_string(number) + "/" + std::to_string(i)), 1);
        claim.scope_keys_max = 150;
        claimed += made(*store, std::move(claim)) ? 1 : 0;
      }
    });
  }
  for (auto& each : threads) {
    each.join();
  }
  EXPECT_EQ(claimed, 150);
  EXPECT_EQ(store->used().records, 150U);
}

TYPED_TEST_P(store_contract, lets_one_of_many_threads_win_each_key) {
  auto const store = this->fresh(10'000);
  constexpr int keys = 100;
  constexpr int threads = 4;
  std::atomic<int> won = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < keys; ++i) {
        auto const key = key_of(std::to_string(i));
        auto const token = static_cast<fencing_token>(t + 1);
        auto const claim = claim_of(key, token);
        if (made(*store, claim)) {
          ++won;
          EXPECT_TRUE(
              made(*store, complete(key, *claim.next, response_of(std::to_string(token)), start)));
        }
        auto const found = find(*store, key);
        EXPECT_TRUE(found.has_value() && found->has_value());
      }
    });
  }
  for (auto& thread : all) {
    thread.join();
  }
  EXPECT_EQ(won, keys);
  for (int i = 0; i < keys; ++i) {
    auto const found = find(*store, key_of(std::to_string(i)));
    ASSERT_TRUE(found.has_value() && found->has_value() && (*found)->response != nullptr);
    EXPECT_EQ((*found)->response->body, std::to_string((*found)->record.token));
  }
}

/// Random changes, made one after the other, against a map that does what `change` says.
TYPED_TEST_P(store_contract, does_what_a_plain_map_does) {
  auto const store = this->fresh(10'000);
  std::map<std::string, std::pair<record, std::optional<stored_response>>> oracle;
  std::mt19937 random(11);
  fencing_token next_token = 0;
  auto now = start;
  for (int i = 0; i < 1'000; ++i) {
    auto const name = std::to_string(random() % 40);
    auto const key = key_of(name);
    auto const at = oracle.find(name);
    auto const* stored = at == oracle.end() ? nullptr : &at->second.first;
    change c = claim_of(key, ++next_token, now);
    if (stored != nullptr) {
      auto holder = *stored;
      holder.token -= random() % 4 == 0 ? 1U : 0U;  // now and then one that was overtaken
      switch (random() % 5) {
        case 0: c = complete(key, holder, response_of(std::to_string(i)), now); break;
        case 1: c = mark_unknown(key, holder, unknown_reason::no_answer, now); break;
        case 2: c = release(key, holder, now); break;
        case 3: c = purge(key, holder, now + 1h).value_or(c); break;
        default: break;
      }
    }
    bool const may = holds(c.when, stored);
    EXPECT_EQ(made(*store, c), may);
    if (may && c.next) {
      oracle[name] = {*c.next, c.response};
    } else if (may) {
      oracle.erase(name);
    }
    auto const found = find(*store, key);
    ASSERT_TRUE(found.has_value());
    auto const expected = oracle.find(name);
    ASSERT_EQ(found->has_value(), expected != oracle.end());
    if (found->has_value()) {
      EXPECT_EQ((*found)->record, expected->second.first);
      ASSERT_EQ((*found)->response != nullptr, expected->second.second.has_value());
      if ((*found)->response) {
        EXPECT_EQ(*(*found)->response, *expected->second.second);
      }
    }
    now += 1ms;
  }
  EXPECT_EQ(store->used().records, oracle.size());
}

REGISTER_TYPED_TEST_SUITE_P(store_contract, finds_what_was_stored_and_nothing_else,
                            counts_unknown_outcomes_and_says_what_they_are_about,
                            refuses_a_change_whose_condition_does_not_hold_and_shows_what_is_there,
                            returns_a_response_as_it_was_stored, forgets_what_was_released,
                            drops_the_response_with_the_tombstone_and_then_the_record,
                            lists_unknown_outcomes_with_the_newest_first,
                            takes_no_new_key_when_it_is_full_and_loses_none,
                            bounds_the_keys_of_each_scope_by_what_the_change_says,
                            counts_the_keys_of_a_scope_exactly_for_many_threads,
                            lets_one_of_many_threads_win_each_key, does_what_a_plain_map_does);

}  // namespace tidegate::TIDEGATE_ABI::store::contract
