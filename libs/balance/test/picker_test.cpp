// SPDX-License-Identifier: Apache-2.0
#include <tidegate/balance/picker.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace tidegate::balance {
namespace {

using namespace std::chrono_literals;

auto count(std::string const& of, char what) -> double {
  return static_cast<double>(std::count(of.begin(), of.end(), what));
}

/// Servers `a`, `b` and so on.
class balance_picker : public testing::Test {
 protected:
  void add(std::int64_t weight) {
    auto const id = static_cast<std::uint32_t>(servers_.size());
    servers_.push_back({.id = id,
                        .weight = weight * parts_of_weight,
                        .seed = hash_of("server " + std::to_string(id))});
  }
  auto pick(method by, pick_options const& how = {}) -> candidate* {
    std::vector<candidate*> all;
    for (auto& each : servers_) {
      all.push_back(&each);
    }
    return picker_.pick(all, by, how, now_);
  }
  /// The names of those that are picked one after the other. `stays`: their requests do not end.
  auto picks(int count, method by, bool stays = false) -> std::string {
    std::string out;
    for (int i = 0; i < count; ++i) {
      auto* const one = pick(by);
      out += one == nullptr ? '-' : static_cast<char>('a' + one->id);
      if (stays) {
        ++one->in_flight;
      }
    }
    return out;
  }

  std::vector<candidate> servers_;
  picker picker_;
  instant now_{100s};
};

TEST_F(balance_picker, finds_none_among_none) {
  EXPECT_EQ(pick(method::least), nullptr);
}

TEST_F(balance_picker, takes_servers_in_turn) {
  add(1), add(1), add(1);
  EXPECT_EQ(picks(6, method::round_robin), "abcabc");
}

TEST_F(balance_picker, takes_turns_by_weight) {
  add(3), add(1);
  EXPECT_EQ(picks(8, method::round_robin), "abaaabaa");
}

TEST_F(balance_picker, takes_the_one_with_the_fewest_requests) {
  add(1), add(1), add(1);
  servers_[0].in_flight = 2;
  servers_[1].in_flight = 1;
  servers_[2].in_flight = 2;
  EXPECT_EQ(picks(3, method::least, true), "bac");
}

TEST_F(balance_picker, takes_the_one_with_the_fewest_requests_for_its_weight) {
  add(3), add(1);
  auto const taken = picks(8, method::least, true);
  EXPECT_EQ(count(taken, 'a'), 6) << taken;
}

TEST_F(balance_picker, takes_turns_by_weight_while_none_has_requests) {
  add(95), add(5);
  auto const taken = picks(1000, method::least);
  EXPECT_NEAR(count(taken, 'b'), 50, 2);
}

TEST_F(balance_picker, takes_none_of_weight_0) {
  add(0), add(1), add(0);
  EXPECT_EQ(picks(3, method::least, true), "bbb");
  servers_[1].weight = 0;
  EXPECT_EQ(pick(method::least), nullptr);
}

TEST_F(balance_picker, takes_none_that_is_out_while_there_is_another) {
  add(1), add(1);
  servers_[0].usable_from = now_ + 1s;
  EXPECT_EQ(picks(3, method::least, true), "bbb");
  servers_[1].usable_from = instant::max();
  EXPECT_NEAR(count(picks(10, method::round_robin), 'a'), 5, 1) << "better one of them than none";
}

TEST_F(balance_picker, takes_the_only_one_whatever_it_does) {
  add(1);
  servers_[0].usable_from = instant::max();
  EXPECT_EQ(picks(2, method::least), "aa");
}

TEST_F(balance_picker, avoids_what_failed_while_there_is_another) {
  add(1), add(1), add(1);
  std::vector<std::uint32_t> const avoid = {0, 1};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(pick(method::least, {.avoid = avoid})->id, 2U);
  }
  servers_[2].usable_from = instant::max();
  EXPECT_NE(pick(method::least, {.avoid = avoid})->id, 2U) << "it is out";
}

TEST_F(balance_picker, takes_turns_whatever_has_to_be_sent_again) {
  add(1), add(1), add(1);
  std::string first;
  std::string again;
  for (int i = 0; i < 12; ++i) {
    auto const* one = pick(method::least);
    first += static_cast<char>('a' + one->id);
    if (one->id == 0) {  // which fails always
      std::vector<std::uint32_t> const avoid = {0};
      again += static_cast<char>('a' + pick(method::least, {.avoid = avoid})->id);
    }
  }
  EXPECT_EQ(first, "abcabcabcabc");
  EXPECT_EQ(again, "bcbc");
}

TEST_F(balance_picker, keeps_the_order_of_those_that_were_not_taken) {
  add(1), add(1), add(1);
  EXPECT_EQ(picks(3, method::least), "abc");
  servers_[0].in_flight = servers_[1].in_flight = 1;
  EXPECT_EQ(picks(3, method::least), "ccc");
  servers_[2].in_flight = 1;
  EXPECT_EQ(picks(2, method::least), "ab") << "those that are behind come first, once";
  EXPECT_EQ(count(picks(30, method::least), 'c'), 10);
}

TEST_F(balance_picker, gives_a_server_that_comes_back_little_at_first) {
  add(1), add(1);
  servers_[1].usable_from = now_;
  EXPECT_EQ(weight_at(servers_[1], now_), 100);
  EXPECT_EQ(weight_at(servers_[1], now_ + 5s), 500);
  EXPECT_EQ(weight_at(servers_[1], now_ + 10s), 1000);
  auto const taken = picks(110, method::least);
  EXPECT_NEAR(count(taken, 'b'), 10, 1);
}

TEST_F(balance_picker, has_no_burst_for_a_server_that_was_out_for_long) {
  add(1), add(1);
  servers_[1].usable_from = now_ + 1s;
  (void)picks(1000, method::round_robin);
  servers_[1].usable_from = candidate::always;
  EXPECT_NEAR(count(picks(20, method::round_robin), 'b'), 10, 1);
}

TEST_F(balance_picker, gives_the_same_value_to_the_same_server) {
  add(1), add(1), add(1);
  for (int i = 0; i < 100; ++i) {
    auto const hash = hash_of("user " + std::to_string(i));
    auto* const first = pick(method::hash, {.hash = hash});
    first->in_flight += 7;
    EXPECT_EQ(pick(method::hash, {.hash = hash}), first);
  }
}

TEST_F(balance_picker, spreads_values_by_weight) {
  add(2), add(1), add(1);
  std::map<std::uint32_t, int> counts;
  for (int i = 0; i < 8000; ++i) {
    ++counts[pick(method::hash, {.hash = hash_of("user " + std::to_string(i))})->id];
  }
  EXPECT_NEAR(counts[0], 4000, 200);
  EXPECT_NEAR(counts[1], 2000, 200);
  EXPECT_NEAR(counts[2], 2000, 200);
}

TEST_F(balance_picker, moves_only_the_values_of_a_server_that_goes) {
  add(1), add(1), add(1), add(1);
  int moved = 0;
  for (int i = 0; i < 4000; ++i) {
    auto const hash = hash_of("user " + std::to_string(i));
    auto const before = pick(method::hash, {.hash = hash})->id;
    servers_[3].usable_from = instant::max();
    auto const after = pick(method::hash, {.hash = hash})->id;
    servers_[3].usable_from = candidate::always;
    if (before != after) {
      EXPECT_EQ(before, 3U);
      ++moved;
    }
  }
  EXPECT_NEAR(moved, 1000, 100);
}

TEST_F(balance_picker, takes_the_least_busy_one_for_a_request_without_a_value) {
  add(1), add(1);
  servers_[0].in_flight = 5;
  EXPECT_EQ(pick(method::hash)->id, 1U);
}

}  // namespace
}  // namespace tidegate::balance
