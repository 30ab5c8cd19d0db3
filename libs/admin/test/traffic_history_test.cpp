// SPDX-License-Identifier: Apache-2.0
#include "traffic_history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr auto step = traffic_history::interval;

/// A gateway that counts as it is told, and its history, by a clock that the test sets.
class admin_traffic_history : public testing::Test {
 protected:
  /// Answers so many requests, each within a millisecond, and ends a sample.
  void serve(std::uint64_t requests, std::vector<named_policy_sums> const& policies = {}) {
    counted.responses[1] += requests;
    counted.latency[3] += requests;
    now += step;
    history.add(now, counted, policies);
  }
  void begin() { history.add(now, counted, {}); }
  [[nodiscard]] auto newest() const -> traffic_history::sample const& {
    return history.at(history.size() - 1);
  }

  instant now{1h};
  traffic_sums counted;
  traffic_history history;
};

TEST_F(admin_traffic_history, has_a_sample_for_every_five_seconds_of_ten_minutes_of_load) {
  begin();
  for (std::uint64_t i = 1; i <= 120; ++i) {
    serve(i);
  }
  ASSERT_EQ(history.size(), 120U);
  EXPECT_EQ(history.dropped(), 0U);
  for (std::size_t i = 0; i < history.size(); ++i) {
    EXPECT_EQ(history.at(i).at, instant(1h) + step * static_cast<int>(i + 1));
    EXPECT_EQ(history.at(i).responses[1], i + 1);
  }
  EXPECT_EQ(newest().at - history.at(0).at, 595s);
}

TEST_F(admin_traffic_history, keeps_an_hour_and_no_more_octets_than_it_says) {
  begin();
  for (std::uint64_t i = 1; i <= 3 * traffic_history::samples_max; ++i) {
    serve(i);
  }
  EXPECT_EQ(history.size(), traffic_history::samples_max);
  EXPECT_EQ(history.dropped(), 2 * traffic_history::samples_max);
  EXPECT_EQ(history.at(0).responses[1], 2 * traffic_history::samples_max + 1);
  EXPECT_EQ(newest().responses[1], 3 * traffic_history::samples_max);
  EXPECT_EQ(newest().at - history.at(0).at, traffic_history::kept - step);
  EXPECT_LE(traffic_history::octets_max, 512U * 1024U);
  EXPECT_EQ(traffic_history::series_max, 112U);
  std::cout << "history: " << traffic_history::samples_max << " samples of "
            << traffic_history::series_max << " series, " << traffic_history::octets_max
            << " octets\n";
}

TEST_F(admin_traffic_history, begins_with_the_first_call_whatever_was_counted_before) {
  counted.responses[1] = 1000;
  begin();
  EXPECT_EQ(history.size(), 0U);
  serve(3);
  ASSERT_EQ(history.size(), 1U);
  EXPECT_EQ(history.at(0).responses[1], 3U);
}

TEST_F(admin_traffic_history, keeps_what_was_counted_of_each_kind) {
  begin();
  counted.responses = {1, 2, 3, 4, 5, 6};
  counted.keys = {7, 8, 9, 10, 11, 12};
  counted.upstream_failures = 13;
  serve(0);
  EXPECT_THAT(newest().responses, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(newest().keys, ElementsAre(7, 8, 9, 10, 11, 12));
  EXPECT_EQ(newest().upstream_failures, 13U);
  EXPECT_THAT(newest().latency, testing::Each(traffic_history::no_latency));
  serve(0);
  EXPECT_THAT(newest().responses, testing::Each(0U));
}

TEST_F(admin_traffic_history, finds_the_samples_after_a_moment) {
  begin();
  EXPECT_EQ(history.first_after(instant(0s)), 0U);
  for (int i = 0; i < 10; ++i) {
    serve(1);
  }
  EXPECT_EQ(history.first_after(instant(1h)), 0U);
  EXPECT_EQ(history.first_after(instant(1h) + step), 1U);
  EXPECT_EQ(history.first_after(now - 1ns), 9U);
  EXPECT_EQ(history.first_after(now), 10U);
}

TEST_F(admin_traffic_history, counts_policies_by_name_whatever_their_order) {
  begin();
  serve(0, {{"a", {}}, {"b", {}}});
  serve(0, {{"b", {.admitted = 5, .refused = 2, .blocked = 1}},
            {"a", {.admitted = 7, .shadow_refused = 4}}});
  EXPECT_EQ(history.policy_name(0), "a");
  EXPECT_EQ(history.policy_name(1), "b");
  auto const& [a, b] = std::pair(newest().policies[0], newest().policies[1]);
  EXPECT_EQ(a.admitted, 7U);
  EXPECT_EQ(a.shadow_refused, 4U);
  EXPECT_EQ(b.admitted, 5U);
  EXPECT_EQ(b.refused, 3U);
}

TEST_F(admin_traffic_history, gives_the_place_of_a_policy_that_is_gone_to_one_that_is_new) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i <= traffic_history::policies_max; ++i) {
    names.push_back("policy-" + std::to_string(i));
  }
  auto const sums = [&](std::size_t from, std::size_t count, std::uint64_t admitted) {
    std::vector<named_policy_sums> made;
    for (std::size_t i = from; i < from + count; ++i) {
      made.push_back({names[i], {.admitted = admitted}});
    }
    return made;
  };
  begin();
  serve(0, sums(0, names.size(), 0));  // one more than there are places
  serve(0, sums(0, names.size(), 3));
  for (std::size_t i = 0; i < traffic_history::policies_max; ++i) {
    EXPECT_EQ(history.policy_name(i), names[i]);
    EXPECT_EQ(newest().policies[i].admitted, 3U);
  }
  // The first is taken out of the configuration: the last one gets its place, without its past.
  serve(0, sums(1, traffic_history::policies_max, 4));
  EXPECT_EQ(history.policy_name(0), names.back());
  EXPECT_EQ(newest().policies[0].admitted, 0U);
  EXPECT_EQ(history.at(1).policies[0].admitted, 0U);
  EXPECT_EQ(newest().policies[1].admitted, 1U);
  serve(0, sums(1, traffic_history::policies_max, 6));
  EXPECT_EQ(newest().policies[0].admitted, 2U);
}

TEST_F(admin_traffic_history, never_counts_backwards) {
  begin();
  serve(0, {{"a", {.admitted = 5}}});
  counted = {};
  serve(0, {{"a", {.admitted = 2}}});
  EXPECT_THAT(newest().responses, testing::Each(0U));
  EXPECT_EQ(newest().policies[0].admitted, 0U);
}

TEST(admin_latency_within, reads_a_histogram) {
  using histogram = std::array<std::uint64_t, latency_bounds.size() + 1>;
  histogram const none{};
  histogram one{};
  one[3] = 1;  // within 500 to 1000
  histogram spread{};
  spread[0] = 50;
  spread[5] = 40;  // within 2500 to 5000
  spread[8] = 10;  // within 25 to 50 milliseconds
  histogram late{};
  late.back() = 4;
  struct row {
    char const* name;
    histogram counts;
    unsigned percent;
    std::uint32_t within;
  };
  for (auto const& [name, counts, percent, within] : {
           row{"nothing", none, 50, traffic_history::no_latency},
           row{"the middle of one", one, 50, 750},
           row{"the end of one", one, 100, 1000},
           row{"the first bound", spread, 50, 100},
           row{"half of the first", spread, 25, 50},
           row{"the second", spread, 90, 5000},
           row{"the third", spread, 99, 47'500},
           row{"beyond the last bound", late, 50, 5'000'000},
       }) {
    EXPECT_EQ(latency_within(counts, percent), within) << name;
  }
}

}  // namespace
}  // namespace tidegate::gateway
