// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/event_log.hpp>

#include "observe/upstream_reports.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;

/// A pipe; what is written to it is read when a test wants to.
class pipe_end {
 public:
  pipe_end() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) {
      throw std::runtime_error("pipe2 failed");
    }
  }
  ~pipe_end() {
    close_reader();
    ::close(ends_[1]);
  }
  [[nodiscard]] auto writer() const -> int { return ends_[1]; }
  void close_reader() {
    if (ends_[0] >= 0) {
      ::close(ends_[0]);
      ends_[0] = -1;
    }
  }
  /// The next line without its end; fails after a while.
  [[nodiscard]] auto line() -> std::string {
    std::size_t end = 0;
    while ((end = read_.find('\n')) == std::string::npos) {
      pollfd polled{ends_[0], POLLIN, 0};
      std::array<char, 4096> bytes{};
      if (::poll(&polled, 1, 30'000) != 1) {
        throw std::runtime_error("no line came");
      }
      auto const size = ::read(ends_[0], bytes.data(), bytes.size());
      read_.append(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    }
    auto out = read_.substr(0, end);
    read_.erase(0, end + 1);
    return out;
  }
  /// The next line without its time.
  [[nodiscard]] auto text() -> std::string {
    auto const whole = line();
    return whole.substr(whole.find(' ') + 1);
  }

 private:
  std::array<int, 2> ends_{-1, -1};
  std::string read_;
};

TEST(gateway_event_log, begins_a_line_with_time_and_level) {
  pipe_end to;
  event_log log(to.writer());
  log.error("it burns");
  EXPECT_THAT(
      to.line(),
      MatchesRegex("2[0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z error: it "
                   "burns"));
  log.warning("it smells");
  EXPECT_EQ(to.text(), "warning: it smells");
  log.info("it is quiet");
  EXPECT_EQ(to.text(), "info: it is quiet");
}

TEST(gateway_event_log, leaves_out_what_is_less_important_than_its_level) {
  pipe_end to;
  event_log log(to.writer());
  log.debug("1");
  log.use(log_level::error);
  log.warning("2");
  log.use(log_level::debug);
  log.debug("3");
  EXPECT_EQ(to.text(), "debug: 3");
}

TEST(gateway_event_log, keeps_a_line_one_line_and_not_longer_than_a_pipe_takes_at_once) {
  pipe_end to;
  event_log log(to.writer());
  log.info("one\ntwo\r\x1b[2J");
  EXPECT_EQ(to.text(), "info: one two  [2J");
  log.info(std::string(10'000, 'x'));
  EXPECT_EQ(to.line().size() + 1, event_log::line_octets_max);
}

TEST(gateway_event_log, never_waits_for_a_reader_and_says_what_was_dropped) {
  pipe_end to;
  event_log log(to.writer());
  std::string const text(1000, 'x');
  std::uint64_t written = 0;
  while (log.dropped() < 100) {
    log.info(text);
    ++written;
    ASSERT_LT(written, 100'000U);
  }
  std::string last;
  std::uint64_t read = 0;
  while ((last = to.text()).starts_with("info: ")) {
    ++read;
  }
  EXPECT_EQ(last, "warning: 100 lines of this log were dropped: standard error was not read");
  EXPECT_EQ(read, written - 100);
}

TEST(gateway_event_log, ends_though_it_is_not_read) {
  pipe_end to;
  auto const begun = std::chrono::steady_clock::now();
  {
    event_log log(to.writer());
    std::string const text(4000, 'x');
    while (log.dropped() == 0) {
      log.info(text);
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 20s);
  // The thread that was left behind ends when it is read, before the pipe is closed.
  std::string line;
  do {
    line = to.text();
  } while (line.starts_with("info: "));
}

TEST(gateway_event_log, outlives_a_reader_that_goes_away) {
  pipe_end to;
  event_log log(to.writer());
  to.close_reader();
  log.info("one");
  while (log.dropped() == 0) {
    std::this_thread::yield();
  }
}

TEST(gateway_event_log, says_a_limited_line_at_once_and_the_rest_when_its_pause_ends) {
  pipe_end to;
  event_log log(to.writer());
  for (auto const* const text : {"lost 1", "lost 2", "lost 3", "lost 4"}) {
    log.write_limited("lost", log_level::warning, text, 500ms);
  }
  log.write_limited("full", log_level::error, "full", 500ms);
  EXPECT_EQ(to.text(), "warning: lost 1");
  EXPECT_EQ(to.text(), "error: full") << "of another kind";
  EXPECT_EQ(to.text(), "warning: lost 4; 2 more since the last such line");
  log.write_limited("lost", log_level::warning, "lost 5", 500ms);
  EXPECT_EQ(to.text(), "warning: lost 5");
}

TEST(gateway_event_log, says_the_rest_of_limited_lines_when_it_ends) {
  pipe_end to;
  {
    event_log log(to.writer());
    log.write_limited("lost", log_level::warning, "lost 1", 1h);
    log.write_limited("lost", log_level::warning, "lost 2", 1h);
    log.write_limited("lost", log_level::debug, "lost 3", 1h);
  }
  EXPECT_EQ(to.text(), "warning: lost 1");
  EXPECT_EQ(to.text(), "warning: lost 2");
}

TEST(gateway_event_log, knows_its_levels_by_name) {
  for (auto const level :
       {log_level::error, log_level::warning, log_level::info, log_level::debug}) {
    EXPECT_EQ(log_level_named(name_of(level)), level);
  }
  EXPECT_EQ(log_level_named("verbose"), std::nullopt);
}

// ---- what is said of servers ----

class gateway_server_report : public testing::Test {
 protected:
  pipe_end to_;
  event_log log_{to_.writer()};
  upstream_reports reports_{log_};
  std::shared_ptr<server_report> const report_ = reports_.of("api", "127.0.0.1:3000");
  /// Three in a row are too many.
  void fail(char const* what, std::uint64_t in_a_row, std::optional<std::chrono::seconds> out_for,
            instant now) {
    report_->failed(what, {in_a_row, in_a_row >= 3, out_for}, now);
  }
  instant now_{std::chrono::hours(1)};
};

TEST_F(gateway_server_report, says_the_first_failure_and_then_counts_for_a_while) {
  fail("refused", 1, std::nullopt, now_);
  EXPECT_EQ(to_.text(), "warning: upstream \"api\": server 127.0.0.1:3000 failed: refused");
  for (int i = 0; i < 7; ++i) {
    fail("refused", 1, std::nullopt, now_ + 1s);
  }
  fail("late", 1, std::nullopt, now_ + 11s);
  EXPECT_EQ(to_.text(),
            "warning: upstream \"api\": server 127.0.0.1:3000 failed: late (7 more since the last "
            "line about it)");
}

TEST_F(gateway_server_report, says_once_that_a_server_is_taken_out_and_once_that_it_is_back) {
  EXPECT_FALSE(report_->is_down());
  fail("refused", 1, 10s, now_);
  (void)to_.text();
  fail("refused", 2, 10s, now_);
  fail("refused", 3, 10s, now_);
  EXPECT_EQ(to_.text(),
            "error: upstream \"api\": server 127.0.0.1:3000 is ejected for 10s after 3 failures "
            "in a row: refused");
  EXPECT_TRUE(report_->is_down());
  for (int i = 0; i < 50; ++i) {
    fail("refused", 4, 10s, now_ + std::chrono::seconds(i));
  }
  fail("refused", 54, 10s, now_ + 60s);
  EXPECT_EQ(to_.text(),
            "error: upstream \"api\": server 127.0.0.1:3000 still fails: refused (50 more since "
            "the last line about it)");
  report_->answered(now_ + 70s);
  EXPECT_EQ(to_.text(), "info: upstream \"api\": server 127.0.0.1:3000 answers again, after 70s");
  EXPECT_FALSE(report_->is_down());
  EXPECT_FALSE(report_->awaits_answer());
}

TEST_F(gateway_server_report, says_that_the_only_server_is_still_used) {
  fail("refused", 3, std::nullopt, now_);
  EXPECT_THAT(to_.text(), EndsWith("has 3 failures in a row and is still used, since there is no "
                                   "other: refused"));
}

TEST_F(gateway_server_report, does_not_say_every_turn_of_a_server_that_comes_and_goes) {
  fail("refused", 3, 10s, now_);
  EXPECT_THAT(to_.text(), HasSubstr("is ejected"));
  report_->answered(now_);  // too early to say
  EXPECT_FALSE(report_->is_down());
  EXPECT_TRUE(report_->awaits_answer());
  for (int i = 0; i < 20; ++i) {
    fail("refused", 3, 10s, now_ + std::chrono::milliseconds(i));
    report_->answered(now_ + std::chrono::milliseconds(i));
  }
  report_->answered(now_ + 2s);
  EXPECT_THAT(to_.text(), HasSubstr("answers again"));
  fail("refused", 3, 10s, now_ + 8s);
  EXPECT_THAT(to_.text(), HasSubstr("is ejected"));
}

}  // namespace
}  // namespace tidegate::gateway
