// SPDX-License-Identifier: Apache-2.0
//
// Quotas by plan and by attribute, against histories that are added up again for each decision.
#include "phases/quota.hpp"

#include "phases/phase_fixture.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
__extension__ using int128 = __int128;

constexpr std::int64_t window = std::chrono::nanoseconds(60s).count();
constexpr std::int64_t usual_quota = 7;

/// What one partition was let do, and whether it may do more.
class history {
 public:
  explicit history(std::string algorithm) : algorithm_(std::move(algorithm)) {}

  auto spend(std::int64_t now, std::int64_t cost, std::int64_t quota) -> bool {
    bool const fits = algorithm_ == "fixed"     ? fits_fixed(now, cost, quota)
                      : algorithm_ == "sliding" ? fits_sliding(now, cost, quota)
                                                : fits_gcra(now, cost, quota);
    if (fits && cost > 0) {
      spent_.push_back({now, cost});
    }
    return fits;
  }

 private:
  struct entry {
    std::int64_t at;
    std::int64_t cost;
  };

  [[nodiscard]] auto sum(std::int64_t from, std::int64_t to) const -> std::int64_t {
    std::int64_t all = 0;
    for (auto const& each : spent_) {
      all += each.at >= from && each.at < to ? each.cost : 0;
    }
    return all;
  }

  /// Windows that each begin with the first unit behind the one before.
  [[nodiscard]] auto fits_fixed(std::int64_t now, std::int64_t cost, std::int64_t quota) const
      -> bool {
    std::int64_t begin = now;
    std::int64_t end = 0;
    for (auto const& each : spent_) {
      if (each.at >= end) {
        begin = each.at;
        end = each.at + window;
      }
    }
    return (now < end ? sum(begin, end) : 0) + cost <= quota;
  }

  /// Windows one behind the other; the first begins when nothing counts any more.
  [[nodiscard]] auto fits_sliding(std::int64_t now, std::int64_t cost, std::int64_t quota) -> bool {
    auto k = (now - begin_) / window;
    auto at = begin_ + k * window;
    auto const before = sum(at - window, at);
    auto const used = sum(at, at + window);
    bool const begins = before == 0 && used == 0;
    auto const weighs =
        static_cast<std::int64_t>(int128(before) * (window - 1 - (now - at)) / window);
    bool const fits = (begins ? 0 : weighs + used) + cost <= quota;
    if (fits && begins) {
      begin_ = now;
    }
    return fits;
  }

  /// A level that drains by the quota of the moment.
  [[nodiscard]] auto fits_gcra(std::int64_t now, std::int64_t cost, std::int64_t quota) -> bool {
    auto const drained = std::max<int128>(level_ - int128(now - at_) * quota, 0);
    if (drained + int128(cost) * window > int128(quota) * window) {
      return false;
    }
    level_ = drained + int128(cost) * window;
    at_ = now;
    return true;
  }

  std::string algorithm_;
  std::vector<entry> spent_;
  std::int64_t begin_ = 0;
  int128 level_ = 0;  // units times the window
  std::int64_t at_ = 0;
};

auto settings(std::string const& algorithm, std::string const& quota) -> std::string {
  return "consumers: {}\npolicies: {p: {quota: " + quota + ", window: 1m, algorithm: " + algorithm +
         ", partition: [principal]}}\nroutes: [{match: {path: /**}, service: echo, limits: [p], "
         "auth: {api-keys: {in: bearer}}}]\n";
}

/// The routes of a worker for each plan.
class plan_routes {
 public:
  explicit plan_routes(phase_fixture& with) {
    auto& base = with.config.routes.front();
    for (auto const& variant : base.route->by_plan) {
      auto made = std::make_unique<worker_route>(
          worker_route{&variant.route, nullptr, 0, base.counts, base.policies});
      base.by_plan.push_back(std::move(made));
    }
  }
};

class proxy_quota_plans : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(with, proxy_quota_plans, testing::Values("fixed", "sliding", "gcra"),
                         [](auto const& test) { return test.param; });

/// Consumers that change their plan, or their number, ask at random times for random costs.
void expect_the_same(phase_fixture& with, std::string const& algorithm,
                     std::vector<std::string> const& values, bool is_plan) {
  plan_routes const routes(with);
  std::mt19937 random(7);  // NOLINT: the same numbers each time
  std::map<std::string, history> histories;
  std::map<std::string, std::string> value_of;
  quota_phase quota;
  int admitted = 0;
  constexpr int decisions = 20'000;
  for (int i = 0; i < decisions; ++i) {
    auto const name = std::to_string(random() % 20);
    if (random() % 50 == 0) {
      value_of[name] = values[random() % values.size()];
    }
    // Often at the same moment, now and then after a long time.
    auto const pause = random() % 3 == 0 ? random() % 4'000'000'000U : 0;
    with.now += std::chrono::nanoseconds(random() % 500 == 0 ? pause * 60 : pause);
    auto const cost = static_cast<std::int64_t>(random() % 3);

    consumer_config consumer{.name = name};
    (is_plan ? consumer.plan : consumer.attributes.emplace_back("n", "").value) = value_of[name];
    auto context = with.ask("GET /" + std::to_string(cost) + " HTTP/1.1\r\nHost: h\r\n\r\n");
    context.consumer = std::make_shared<consumer_config const>(consumer);
    context.credential = shown_credential::right;
    context.route = &context.route->of_plan(consumer.plan);
    quota.reset();
    ASSERT_TRUE(quota.find_charges(context, with.quotas, with.now));
    bool const is_admitted = quota.enter(context, with.quotas, with.now) == step::next;

    auto const& choice = *with.settings().config.policies[0].choice;
    auto& of = histories.try_emplace(name, algorithm).first->second;
    bool const wanted = of.spend(with.now.time_since_epoch().count(), cost,
                                 choice.quota_for(value_of[name], usual_quota));
    ASSERT_EQ(is_admitted, wanted) << algorithm << ", decision " << i << " of " << name
                                   << " with \"" << value_of[name] << "\"";
    admitted += is_admitted ? 1 : 0;
  }
  EXPECT_GT(admitted, decisions / 10);
  EXPECT_LT(admitted, decisions * 9 / 10);
}

constexpr std::string_view costs = ", cost: {default: 1, \"GET /0\": 0, \"GET /2\": 2}";

auto with_costs(std::string text) -> std::string {
  auto const at = text.rfind(", auth:");
  return text.insert(at, costs);
}

TEST_P(proxy_quota_plans, decide_as_a_history_with_the_quota_of_the_plan_does) {
  phase_fixture with(
      with_costs(settings(GetParam(), "{by: plan, free: 3, pro: 40, closed: 0, default: 7}")));
  expect_the_same(with, GetParam(), {"free", "pro", "closed", "", "other"}, true);
}

TEST_P(proxy_quota_plans, decide_as_a_history_with_the_quota_of_an_attribute_does) {
  phase_fixture with(
      with_costs(settings(GetParam(), "{by: \"attribute:n\", default: 7, max: 40}")));
  expect_the_same(with, GetParam(), {"3", "40", "0", "", "x", "1000"}, false);
}

}  // namespace
}  // namespace tidegate::gateway
