// SPDX-License-Identifier: Apache-2.0
#include "observe/traffic.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::ElementsAre;

class proxy_traffic : public testing::Test {
 protected:
  std::vector<std::shared_ptr<worker_metrics>> workers_{std::make_shared<worker_metrics>(),
                                                        std::make_shared<worker_metrics>()};
};

TEST_F(proxy_traffic, is_nothing_at_the_start) {
  auto const sums = sum_traffic(workers_);
  EXPECT_THAT(sums.responses, Each(0U));
  EXPECT_THAT(sums.latency, Each(0U));
  EXPECT_THAT(sums.keys, Each(0U));
  EXPECT_EQ(sums.upstream_failures, 0U);
}

TEST_F(proxy_traffic, is_grouped_by_status_with_429_apart) {
  auto& first = workers_[0]->of_route("a");
  for (auto const status : {101, 200, 204, 301, 400, 404, 429, 499, 500, 599}) {
    first.count(status, 1ms);
  }
  workers_[1]->of_route("a").count(429, 1ms);
  workers_[1]->of_route("b").count(429, 20s);
  auto const sums = sum_traffic(workers_);
  EXPECT_THAT(sums.responses, ElementsAre(1, 2, 1, 3, 2, 3));
  EXPECT_EQ(sums.latency[3], 11U);
  EXPECT_EQ(sums.latency.back(), 1U);
}

TEST_F(proxy_traffic, has_the_outcomes_of_keys_that_charts_show_and_the_rest_together) {
  for (std::size_t i = 0; i < keyed_outcomes_count; ++i) {
    workers_[i % 2]->of_route("a").of(static_cast<keyed_outcome>(i)).add();
  }
  EXPECT_THAT(sum_traffic(workers_).keys, ElementsAre(1, 1, 1, 1, 1, keyed_outcomes_count - 5));
  for (std::size_t i = 0; i + 1 < traffic_sums::key_names.size(); ++i) {
    EXPECT_EQ(traffic_sums::key_names[i], name_of(static_cast<keyed_outcome>(i)));
  }
}

TEST_F(proxy_traffic, has_failures_of_all_servers) {
  workers_[0]->of_server("a", "127.0.0.1:1")->failures.add(2);
  workers_[1]->of_server("a", "127.0.0.1:1")->failures.add(3);
  workers_[1]->of_server("b", "127.0.0.1:2")->failures.add(4);
  EXPECT_EQ(sum_traffic(workers_).upstream_failures, 9U);
}

}  // namespace
}  // namespace tidegate::gateway
