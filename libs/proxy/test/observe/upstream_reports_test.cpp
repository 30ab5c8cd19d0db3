// SPDX-License-Identifier: Apache-2.0
#include "observe/upstream_reports.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;

class proxy_upstream_reports : public testing::Test {
 protected:
  static constexpr unsigned failures_max = 3;
  void fail(unsigned in_a_row, std::chrono::nanoseconds at) {
    report_->failed("refused", {in_a_row, in_a_row >= failures_max, 10s}, instant(at));
  }

  event_log log_;
  upstream_reports reports_{log_};
  std::shared_ptr<server_report> const report_ = reports_.of("api", "127.0.0.1:3000");
};

TEST_F(proxy_upstream_reports, are_found_by_upstream_and_server) {
  EXPECT_EQ(reports_.of("api", "127.0.0.1:3000"), report_);
  EXPECT_NE(reports_.of("api", "127.0.0.1:3001"), report_);
  EXPECT_NE(reports_.of("other", "127.0.0.1:3000"), report_);
}

TEST_F(proxy_upstream_reports, begin_with_a_server_that_works) {
  EXPECT_FALSE(report_->is_down());
  EXPECT_FALSE(report_->awaits_answer());
}

TEST_F(proxy_upstream_reports, call_a_server_down_after_so_many_failures_in_a_row) {
  for (unsigned i = 1; i < failures_max; ++i) {
    fail(i, 1s);
    EXPECT_FALSE(report_->is_down()) << i;
  }
  fail(failures_max, 1s);
  EXPECT_TRUE(report_->is_down());
  EXPECT_TRUE(report_->awaits_answer());
}

TEST_F(proxy_upstream_reports, know_since_when_a_server_is_down) {
  EXPECT_EQ(report_->down_since(), std::nullopt);
  fail(failures_max, 7s);
  fail(failures_max + 1, 9s);
  EXPECT_EQ(report_->down_since(), instant(7s));
  report_->answered(instant(20s));
  EXPECT_EQ(report_->down_since(), std::nullopt);
}

TEST_F(proxy_upstream_reports, call_it_up_with_the_next_answer) {
  fail(failures_max, 1s);
  report_->answered(instant(5s));
  EXPECT_FALSE(report_->is_down());
  EXPECT_FALSE(report_->awaits_answer());
}

TEST_F(proxy_upstream_reports,
       still_await_an_answer_that_people_are_told_of_when_it_came_too_soon) {
  fail(failures_max, 1s);
  report_->answered(instant(1s + 10ms));
  EXPECT_FALSE(report_->is_down());
  EXPECT_TRUE(report_->awaits_answer()) << "the log still says that it is down";
  report_->answered(instant(3s));
  EXPECT_FALSE(report_->awaits_answer());
}

TEST_F(proxy_upstream_reports, know_that_a_server_is_down_though_the_log_is_silent) {
  fail(failures_max, 1s);
  report_->answered(instant(3s));
  fail(failures_max, 4s);  // within the pause of turns
  EXPECT_TRUE(report_->is_down());
  EXPECT_TRUE(report_->awaits_answer());
}

TEST_F(proxy_upstream_reports, of_one_server_say_nothing_of_another) {
  fail(failures_max, 1s);
  EXPECT_FALSE(reports_.of("api", "127.0.0.1:3001")->is_down());
}

}  // namespace
}  // namespace tidegate::gateway
