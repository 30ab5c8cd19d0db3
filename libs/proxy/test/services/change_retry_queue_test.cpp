// SPDX-License-Identifier: Apache-2.0
#include "services/change_retry_queue.hpp"

#include <tidegate/idempotency/decide.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;

/// Notes every change, and answers when the test says how.
class store_of_the_test final : public store::idempotency_store {
 public:
  struct asked {
    idempotency::change change;
    std::move_only_function<void(store::apply_answer)> answer;
  };

  explicit store_of_the_test(std::vector<asked>& to) : to_(to) {}
  void find(idempotency::lookup_key const& /*key*/,
            std::move_only_function<void(store::find_answer)> answer) override {
    answer(std::optional<store::found_record>());
  }
  void apply(idempotency::change change,
             std::move_only_function<void(store::apply_answer)> answer) override {
    to_.push_back({std::move(change), std::move(answer)});
  }
  void list_unknown(std::size_t /*records*/,
                    std::move_only_function<void(store::list_answer)> answer) override {
    answer(std::vector<store::listed_record>());
  }
  void sweep(idempotency::wall_time /*now*/, std::size_t /*records*/) override {}
  [[nodiscard]] auto used() const -> usage override { return {}; }

 private:
  std::vector<asked>& to_;
};

class gateway_change_retry_queue : public testing::Test {
 protected:
  /// The n-th key.
  [[nodiscard]] auto key(int n) const -> idempotency::lookup_key {
    return state_->secret.lookup("scope", std::to_string(n));
  }
  /// The answer to the n-th request.
  [[nodiscard]] auto answer(int n, std::size_t octets) const -> idempotency::change {
    return idempotency::complete(key(n), {}, {200, {}, std::string(octets, 'x'), octets, true}, {});
  }
  void turn_until(std::function<bool()> const& is_so) {
    for (int i = 0; i < 500 && !is_so(); ++i) {
      loop_->turn(20ms);
    }
    ASSERT_TRUE(is_so());
  }
  static auto down() -> store::apply_answer {
    return failure(store::store_error{store::store_fault::unavailable, ""});
  }

  std::vector<store_of_the_test::asked> asked_;
  std::unique_ptr<engine::loop> loop_ = *engine::loop::make();
  std::shared_ptr<idempotency_service> state_ = std::make_shared<idempotency_service>(
      std::make_unique<store_of_the_test>(asked_), std::span<std::byte const>(), "",
      std::make_shared<slewed_clock>(idempotency::wall_time(), instant()));
};

TEST_F(gateway_change_retry_queue, tries_changes_again_until_the_store_takes_them) {
  change_retry_queue late(*loop_, state_);
  late.add(answer(1, 3));
  EXPECT_TRUE(asked_.empty()) << "it has just failed";
  turn_until([&] { return asked_.size() == 1; });
  EXPECT_EQ(asked_[0].change, answer(1, 3));
  asked_[0].answer(down());
  turn_until([&] { return asked_.size() == 2; });
  EXPECT_EQ(asked_[1].change, answer(1, 3));
  asked_[1].answer(store::applied{true, {}});
  for (int i = 0; i < 60; ++i) {
    loop_->turn(20ms);
  }
  EXPECT_EQ(asked_.size(), 2U);
}

TEST_F(gateway_change_retry_queue, is_done_with_changes_that_were_overtaken) {
  change_retry_queue late(*loop_, state_);
  late.add(answer(1, 3));
  turn_until([&] { return asked_.size() == 1; });
  asked_[0].answer(store::applied{false, {}});
  for (int i = 0; i < 60; ++i) {
    loop_->turn(20ms);
  }
  EXPECT_EQ(asked_.size(), 1U);
}

TEST_F(gateway_change_retry_queue, gives_the_oldest_up_when_there_are_too_many) {
  change_retry_queue late(*loop_, state_);
  for (int i = 0; i <= 10'000; ++i) {
    late.add(answer(i, 0));
  }
  turn_until([&] { return !asked_.empty(); });
  EXPECT_EQ(asked_.size(), 10'000U);
  EXPECT_EQ(asked_.front().change.key, key(1));
  EXPECT_EQ(asked_.back().change.key, key(10'000));
}

TEST_F(gateway_change_retry_queue, leaves_bodies_out_when_they_are_too_large_together) {
  constexpr std::size_t large = std::size_t{20} << 20;
  change_retry_queue late(*loop_, state_);
  for (int i = 0; i < 5; ++i) {
    late.add(answer(i, large));
  }
  turn_until([&] { return !asked_.empty(); });
  ASSERT_EQ(asked_.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    auto const& change = asked_[i].change;
    bool const is_kept = i < 3;
    EXPECT_EQ(change.response->body.size(), is_kept ? large : 0);
    EXPECT_EQ(change.response->body_kept, is_kept);
    EXPECT_EQ(change.response->body_size, large);
    EXPECT_EQ(change.next->replayable, is_kept);
  }
}

TEST_F(gateway_change_retry_queue, is_forgotten_with_its_worker) {
  {
    change_retry_queue late(*loop_, state_);
    late.add(answer(1, 3));
    turn_until([&] { return asked_.size() == 1; });
  }
  asked_[0].answer(down());
  for (int i = 0; i < 60; ++i) {
    loop_->turn(20ms);
  }
  EXPECT_EQ(asked_.size(), 1U);
}

TEST_F(gateway_change_retry_queue, does_not_take_the_end_of_a_store_for_a_failure) {
  change_retry_queue late(*loop_, state_);
  late.add(answer(1, 3));
  turn_until([&] { return asked_.size() == 1; });
  asked_[0].answer(failure(store::store_error{store::store_fault::stopped, ""}));
  EXPECT_FALSE(state_->health.is_failing());
  turn_until([&] { return asked_.size() == 2; });
  asked_[1].answer(down());
  EXPECT_TRUE(state_->health.is_failing());
}

TEST_F(gateway_change_retry_queue, does_not_keep_a_store_that_has_yet_to_answer) {
  std::weak_ptr const service = state_;
  {
    change_retry_queue late(*loop_, state_);
    late.add(answer(1, 3));
    turn_until([&] { return asked_.size() == 1; });
  }
  state_.reset();
  EXPECT_TRUE(service.expired()) << "the thread of the store would be the one to end it";
}

}  // namespace
}  // namespace tidegate::gateway
