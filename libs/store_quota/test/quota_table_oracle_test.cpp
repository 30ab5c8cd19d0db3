// SPDX-License-Identifier: Apache-2.0
//
// Requests that meet several policies at once, decided by the table and by a model that knows
// nothing but the history of what was admitted.
#include <tidegate/store_quota/quota_table.hpp>

#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::store {
namespace {

using namespace std::chrono_literals;
using ratelimit::algorithm;
using ratelimit::policy;
using ratelimit::quota_unit;
__extension__ using int128 = __int128;

constexpr int decisions_of_a_mix = test_support::sanitized ? 100'000 : 1'000'000;

auto at(std::int64_t nanoseconds) -> instant {
  return instant(std::chrono::nanoseconds(nanoseconds));
}

/// What becomes of a charge when the request is over.
enum class afterwards { nothing, all_comes_back, actual_size_counts, failures_come_back };

struct rule {
  policy limits;
  bool enforced = true;
  afterwards then = afterwards::nothing;
};

auto make(std::int64_t quota, std::chrono::seconds window, quota_unit unit, algorithm a,
          std::optional<std::int64_t> burst = {}) -> policy {
  return policy::make({quota, window, unit, a, burst}).value();
}

auto make_rules() -> std::vector<rule> {
  using enum algorithm;
  using enum quota_unit;
  using enum afterwards;
  return {
      {make(5, 10s, requests, fixed)},
      {make(12, 60s, requests, sliding)},
      {make(10, 5s, requests, gcra, 4)},
      {make(3, 0s, concurrent_requests, fixed), true, all_comes_back},
      {make(10'000, 10s, content_bytes, fixed), true, actual_size_counts},
      {make(9'000, 20s, content_bytes, sliding), true, actual_size_counts},
      {make(7'000, 10s, content_bytes, gcra), true, actual_size_counts},
      {make(4, 20s, requests, sliding), false},
      {make(2, 7s, requests, gcra), false},
      {make(6, 30s, requests, fixed), true, failures_come_back},
      {make(8, 30s, requests, sliding), true, failures_come_back},
      {make(7, 13s, requests, gcra), true, failures_come_back},
      {make(12, 30s, requests, log)},
      {make(9'000, 20s, content_bytes, log), true, actual_size_counts},
      {make(8, 30s, requests, log), true, failures_come_back},
      {make(3, 7s, requests, log), false},
  };
}

/// One partition under one policy, worked out from what was spent and released, and when.
class model {
 public:
  explicit model(policy const& p) : p_(&p), window_(std::chrono::nanoseconds(p.window()).count()) {}

  auto room(std::int64_t now) -> std::int64_t {
    if (p_->unit() == quota_unit::concurrent_requests) {
      return p_->quota() - sum(0, now + 1);
    }
    switch (p_->algorithm()) {
      case algorithm::fixed: return fixed_room(now);
      case algorithm::sliding: return sliding_room(now);
      case algorithm::log: return log_room(now);
      case algorithm::gcra: break;
    }
    return gcra_room(now);
  }

  void spend(std::int64_t now, std::int64_t units) {
    static_cast<void>(room(now));  // forgets what no longer counts
    if (units > 0) {
      history_.push_back({now, units});
    }
  }

  void release(std::int64_t admitted_at, std::int64_t now, std::int64_t units) {
    static_cast<void>(room(now));
    if (history_.empty()) {
      return;  // what it was spent from no longer counts
    }
    if (p_->algorithm() == algorithm::log && admitted_at <= now - window_) {
      return;
    }
    // A level has no windows: what comes back does so now.
    history_.push_back({is_gcra() ? now : admitted_at, -units});
  }

 private:
  struct event {
    std::int64_t time;
    std::int64_t units;
  };

  [[nodiscard]] auto is_gcra() const -> bool {
    return p_->algorithm() == algorithm::gcra && p_->unit() != quota_unit::concurrent_requests;
  }

  /// Units spent from `begin` on and before `end`; what comes back never makes it less than none.
  [[nodiscard]] auto sum(std::int64_t begin, std::int64_t end) const -> std::int64_t {
    std::int64_t units = 0;
    for (auto const& e : history_) {
      if (e.time >= begin && e.time < end) {
        units = std::max<std::int64_t>(units + e.units, 0);
      }
    }
    return units;
  }

  /// The window begins with the first unit after the one before has ended.
  auto fixed_room(std::int64_t now) -> std::int64_t {
    if (history_.empty() || now >= begin_ + window_) {
      history_.clear();
      begin_ = now;
    }
    return p_->quota() - sum(begin_, now + 1);
  }

  /// Windows in a row, for as long as there is something in this one or in the one before.
  auto sliding_room(std::int64_t now) -> std::int64_t {
    if (now >= begin_ + 2 * window_) {
      history_.clear();
    } else if (now >= begin_ + window_) {
      begin_ += window_;
    }
    auto const before = sum(begin_ - window_, begin_);
    auto const current = sum(begin_, now + 1);
    if (before == 0 && current == 0) {
      history_.clear();
      begin_ = now;
      return p_->quota();
    }
    auto const counted = int128(before) * (window_ - 1 - (now - begin_)) / window_;
    return p_->quota() - current - static_cast<std::int64_t>(counted);
  }

  /// Each unit counts for a window.
  auto log_room(std::int64_t now) -> std::int64_t {
    std::erase_if(history_, [&](event const& e) { return e.time <= now - window_; });
    std::int64_t used = 0;
    for (auto const& e : history_) {
      used += e.units;
    }
    return p_->quota() - used;
  }

  /// Each unit drains in window / quota; the level is kept in fractions of a unit, window to one.
  auto gcra_room(std::int64_t now) -> std::int64_t {
    int128 level = 0;
    std::int64_t last = 0;
    for (auto const& e : history_) {
      level = std::max<int128>(level - int128(e.time - last) * p_->quota(), 0);
      level = std::max<int128>(level + int128(e.units) * window_, 0);
      last = e.time;
    }
    level = std::max<int128>(level - int128(now - last) * p_->quota(), 0);
    if (level == 0) {
      history_.clear();
    }
    return p_->burst() - static_cast<std::int64_t>((level + window_ - 1) / window_);
  }

  policy const* p_;
  std::int64_t window_;
  std::int64_t begin_ = 0;
  std::vector<event> history_;
};

/// Random traffic through the table and the model at the same time.
class traffic {
 public:
  traffic(std::vector<std::size_t> rules_met, unsigned seed)
      : met_(std::move(rules_met)), random_(seed) {
    for (std::size_t i = 0; i < partitions; ++i) {
      keys_.push_back("key-" + std::to_string(i));
      addresses_.push_back("192.0.2." + std::to_string(i));
    }
  }

  void run() {
    while (decisions_ < decisions_of_a_mix && !testing::Test::HasFatalFailure()) {
      pass_time();
      finish_some();
      request();
    }
    EXPECT_GT(admitted_, requests_ / 10);
    EXPECT_LT(admitted_, requests_ * 9 / 10);
  }

 private:
  struct running {
    std::vector<charge> charges;
    std::vector<charged> results;
    std::int64_t admitted_at;
  };

  static constexpr std::size_t partitions = 60;

  auto below(std::int64_t n) -> std::int64_t {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }

  void pass_time() {
    constexpr std::int64_t second = 1'000'000'000;
    switch (below(1000)) {
      case 0: now_ += below(100 * second); break;
      case 1: now_ += 10 * second; break;
      case 2: now_ += 10 * second - 1; break;
      case 3: break;
      default: now_ += below(second / 40); break;
    }
  }

  auto model_of(charge const& c) -> model& {
    return models_.try_emplace({c.policy_id, std::string(c.partition)}, *c.policy).first->second;
  }

  auto cost_under(rule const& r) -> std::int64_t {
    if (r.limits.unit() == quota_unit::content_bytes) {
      return below(3'000);
    }
    return below(10) == 0 ? below(r.limits.cost_max() + 2) : below(8) == 0 ? 0 : 1;
  }

  void request() {
    // Half of the policies count by API key, the others by address.
    std::array<std::string_view, 2> const names = {
        keys_[static_cast<std::size_t>(below(partitions))],
        addresses_[static_cast<std::size_t>(below(partitions / 2))]};
    std::shuffle(met_.begin(), met_.end(), random_);
    auto const count = static_cast<std::size_t>(2 + below(3));
    std::vector<charge> charges;
    for (std::size_t i = 0; i < std::min(count, met_.size()); ++i) {
      auto const& r = rules_[met_[i]];
      charges.push_back({&r.limits, static_cast<std::uint32_t>(met_[i]), names[met_[i] % 2],
                         cost_under(r), r.enforced});
    }
    std::vector<std::int64_t> rooms;
    bool all = true;
    for (auto const& c : charges) {
      rooms.push_back(model_of(c).room(now_));
      all = all && (c.cost <= rooms.back() || !c.enforced);
    }
    std::vector<charged> results(charges.size());
    ASSERT_EQ(table_.spend(charges, at(now_), results), all) << "request " << requests_;
    for (std::size_t i = 0; i < charges.size(); ++i) {
      auto const& c = charges[i];
      auto const& verdict = results[i].decision;
      ASSERT_FALSE(results[i].shared);
      ASSERT_EQ(verdict.admitted, c.cost <= rooms[i])
          << "request " << requests_ << ", policy " << c.policy_id;
      auto const left = all && verdict.admitted ? rooms[i] - c.cost : rooms[i];
      ASSERT_EQ(verdict.left.remaining, std::max<std::int64_t>(left, 0))
          << "request " << requests_ << ", policy " << c.policy_id;
      if (all && verdict.admitted) {
        model_of(c).spend(now_, c.cost);
      }
    }
    ++requests_;
    decisions_ += static_cast<int>(charges.size());
    if (all) {
      ++admitted_;
      keep_running(charges, results);
    }
  }

  void keep_running(std::vector<charge> const& charges, std::vector<charged> const& results) {
    running r{{}, {}, now_};
    for (std::size_t i = 0; i < charges.size(); ++i) {
      if (results[i].decision.admitted &&
          rules_[charges[i].policy_id].then != afterwards::nothing) {
        r.charges.push_back(charges[i]);
        r.results.push_back(results[i]);
      }
    }
    running_.push_back(std::move(r));
  }

  /// Answers come in any order, most of them soon.
  void finish_some() {
    while (!running_.empty() && (running_.size() > 400 || below(2) == 0)) {
      auto const last = static_cast<std::int64_t>(running_.size());
      auto const i = static_cast<std::size_t>(below(8) == 0 ? below(last) : last - 1);
      finish(running_[i]);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void finish(running const& r) {
    bool const failed = below(3) == 0;
    for (std::size_t i = 0; i < r.charges.size(); ++i) {
      auto const& c = r.charges[i];
      std::int64_t units = 0;
      switch (rules_[c.policy_id].then) {
        case afterwards::nothing: break;
        case afterwards::all_comes_back: units = -c.cost; break;
        case afterwards::actual_size_counts: units = below(4'000) - c.cost; break;
        case afterwards::failures_come_back: units = failed ? -c.cost : 0; break;
      }
      if (units == 0) {
        continue;
      }
      table_.settle(c, r.results[i], at(r.admitted_at), at(now_), units);
      if (units > 0) {
        model_of(c).spend(now_, units);
      } else {
        model_of(c).release(r.admitted_at, now_, -units);
      }
    }
  }

  std::vector<rule> const rules_ = make_rules();
  std::vector<std::size_t> met_;
  std::vector<std::string> keys_;  // the charges borrow from these
  std::vector<std::string> addresses_;
  std::mt19937_64 random_;
  quota_table table_{{10'000, {1, 2, 3, 4}}};
  std::map<std::pair<std::uint32_t, std::string>, model> models_;
  std::deque<running> running_;
  std::int64_t now_ = 1'000'000'000;
  int requests_ = 0;
  int admitted_ = 0;
  int decisions_ = 0;
};

TEST(store_quota_table_oracle, agrees_in_a_million_decisions_on_windows_and_levels_together) {
  traffic({0, 1, 2}, 1).run();
}

TEST(store_quota_table_oracle, agrees_in_a_million_decisions_with_requests_that_are_held) {
  traffic({0, 1, 2, 3}, 2).run();
}

TEST(store_quota_table_oracle, agrees_in_a_million_decisions_with_bytes_that_are_settled) {
  traffic({1, 4, 5, 6}, 3).run();
}

TEST(store_quota_table_oracle, agrees_in_a_million_decisions_with_failures_that_do_not_count) {
  traffic({2, 9, 10, 11}, 4).run();
}

TEST(store_quota_table_oracle, agrees_in_a_million_decisions_on_every_policy_shadow_ones_too) {
  traffic({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 5).run();
}

TEST(store_quota_table_oracle, agrees_in_a_million_decisions_on_logs) {
  traffic({12, 13, 14, 15}, 6).run();
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::store
