// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/duplicate_waiters.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>

namespace tidegate::gateway {
namespace {

/// Notes that it was woken.
struct waiting_request final : duplicate {
  void look_again() override { ++woken; }
  int woken = 0;
};

class proxy_duplicate_waiters : public testing::Test {
 protected:
  [[nodiscard]] auto key(std::string const& scope, int n) const -> idempotency::lookup_key {
    return secret_.lookup(scope, std::to_string(n));
  }

  idempotency::secret secret_{{}};
  std::unique_ptr<engine::loop> loop_ = *engine::loop::make();
  duplicate_waiters waiters_;
};

TEST_F(proxy_duplicate_waiters, are_counted_by_key) {
  auto const first = std::make_shared<waiting_request>();
  auto const second = std::make_shared<waiting_request>();
  auto const other = std::make_shared<waiting_request>();
  EXPECT_EQ(waiters_.count(key("a", 1)), 0U);
  waiters_.enter(key("a", 1), *loop_, first);
  waiters_.enter(key("a", 1), *loop_, second);
  waiters_.enter(key("a", 2), *loop_, other);
  EXPECT_EQ(waiters_.count(key("a", 1)), 2U);
  EXPECT_EQ(waiters_.count(key("a", 2)), 1U);
  EXPECT_EQ(waiters_.count(key("b", 1)), 0U);
  EXPECT_EQ(waiters_.size(), 3U);
}

TEST_F(proxy_duplicate_waiters, leave_one_by_one) {
  auto const first = std::make_shared<waiting_request>();
  auto const second = std::make_shared<waiting_request>();
  waiters_.enter(key("a", 1), *loop_, first);
  waiters_.enter(key("a", 1), *loop_, second);
  waiters_.leave(key("a", 1), *first);
  EXPECT_EQ(waiters_.count(key("a", 1)), 1U);
  waiters_.leave(key("a", 1), *first);
  EXPECT_EQ(waiters_.count(key("a", 1)), 1U) << "it has left";
  waiters_.leave(key("a", 1), *second);
  EXPECT_EQ(waiters_.size(), 0U);
}

TEST_F(proxy_duplicate_waiters, let_one_leave_that_never_came) {
  auto const stranger = std::make_shared<waiting_request>();
  waiters_.leave(key("a", 1), *stranger);
  EXPECT_EQ(waiters_.size(), 0U);
}

TEST_F(proxy_duplicate_waiters, wait_no_more_once_they_are_woken) {
  {
    auto const first = std::make_shared<waiting_request>();
    auto const second = std::make_shared<waiting_request>();
    auto const other = std::make_shared<waiting_request>();
    waiters_.enter(key("a", 1), *loop_, first);
    waiters_.enter(key("a", 1), *loop_, second);
    waiters_.enter(key("a", 2), *loop_, other);
  }  // they have gone, and are not called
  waiters_.wake(key("a", 3));
  EXPECT_EQ(waiters_.size(), 3U) << "for a key without waiters";
  waiters_.wake(key("a", 1));
  EXPECT_EQ(waiters_.count(key("a", 1)), 0U);
  EXPECT_EQ(waiters_.size(), 1U);
  loop_->turn(std::chrono::milliseconds(0));
}

TEST_F(proxy_duplicate_waiters, look_again_when_they_are_woken) {
  auto const first = std::make_shared<waiting_request>();
  auto const other = std::make_shared<waiting_request>();
  waiters_.enter(key("a", 1), *loop_, first);
  waiters_.enter(key("a", 2), *loop_, other);
  waiters_.wake(key("a", 1));
  EXPECT_EQ(first->woken, 0) << "on its own thread";
  loop_->turn(std::chrono::milliseconds(0));
  EXPECT_EQ(first->woken, 1);
  EXPECT_EQ(other->woken, 0);
}

TEST_F(proxy_duplicate_waiters, have_no_place_in_a_scope_that_is_full) {
  auto const who = std::make_shared<waiting_request>();
  for (std::size_t i = 0; i < duplicate_waiters::scope_max; ++i) {
    EXPECT_LT(waiters_.count(key("a", static_cast<int>(i))), duplicate_waiters::scope_max);
    waiters_.enter(key("a", static_cast<int>(i)), *loop_, who);
  }
  EXPECT_EQ(waiters_.count(key("a", 5000)), std::numeric_limits<std::size_t>::max());
  EXPECT_EQ(waiters_.count(key("b", 1)), 0U) << "another scope";
  waiters_.leave(key("a", 7), *who);
  EXPECT_EQ(waiters_.count(key("a", 5000)), 0U);
}

}  // namespace
}  // namespace tidegate::gateway
