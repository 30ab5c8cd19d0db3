// SPDX-License-Identifier: Apache-2.0
#include "observe/access_log.hpp"
#include "observe/access_log_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using testing::HasSubstr;
using testing::StartsWith;

auto parsed(std::string_view text) -> wire::request_head {
  wire::request_head head;
  EXPECT_EQ(wire::parse_request_head(text, 0, {}, head).state, wire::head_state::complete);
  return head;
}

auto address(std::string_view text) -> http::ip_address {
  return *http::parse_ip_address(text);
}

std::chrono::system_clock::time_point const time =
    std::chrono::sys_days(std::chrono::year(2024) / 2 / 29) + 7h + 5min + 9s + 42ms;

TEST(gateway_access_log_line, has_every_member) {
  std::string const text =
      "GET /a/b?secret=1 HTTP/1.1\r\nHost: a.example\r\nUser-Agent: curl/8\r\n\r\n";
  std::string line;
  append_log_client(line, time, address("2001:db8::1"), "HTTP/1.1");
  append_log_request(line, parsed(text), false);
  std::array<std::string_view, 2> const policies{"burst", "daily"};
  std::array<std::string, 2> const partitions{"aa", "bb"};
  append_log_decision(line, "refused", policies, partitions);
  append_log_response(line, {.principal = "acme",
                             .key_id = "0f",
                             .key_outcome = "first",
                             .route = "all",
                             .upstream = "api",
                             .server = "127.0.0.1:80",
                             .status = 429,
                             .reason = "quota",
                             .request_octets = 5,
                             .response_octets = 12345,
                             .duration = 12'345'678ns,
                             .upstream_time = 7ms});
  EXPECT_EQ(
      line,
      R"({"time":"2024-02-29T07:05:09.042Z","client":"2001:db8::1","protocol":"HTTP/1.1",)"
      R"("method":"GET","host":"a.example","path":"/a/b","user_agent":"curl/8",)"
      R"("decision":"refused","policies":["burst","daily"],"partitions":["aa","bb"],)"
      R"("principal":"acme","idempotency":{"id":"0f","outcome":"first"},)"
      R"("route":"all","upstream":"api","server":"127.0.0.1:80","status":429,"reason":"quota",)"
      R"("request_bytes":5,"response_bytes":12345,"duration_ms":12.345,"upstream_ms":7.000})"
      "\n");
}

TEST(gateway_access_log_line, says_null_where_there_is_nothing_to_say) {
  std::string line;
  append_log_client(line, time, address("192.0.2.1"), "HTTP/1.1");
  append_log_no_request(line, false);
  append_log_decision(line, "", {}, {});
  append_log_response(line, {.status = 400});
  EXPECT_EQ(
      line,
      R"({"time":"2024-02-29T07:05:09.042Z","client":"192.0.2.1","protocol":"HTTP/1.1",)"
      R"("method":null,"host":null,"path":null,"user_agent":null,)"
      R"("decision":null,"policies":[],"partitions":[],"principal":null,"idempotency":null,)"
      R"("route":null,"upstream":null,"server":null,)"
      R"("status":400,"reason":null,"request_bytes":0,"response_bytes":0,"duration_ms":0.000,)"
      R"("upstream_ms":null})"
      "\n");
}

TEST(gateway_access_log_line, has_the_query_only_when_it_is_wanted) {
  std::string const text = "GET /a?b=c HTTP/1.1\r\nHost: a.example\r\n\r\n";
  std::string with;
  append_log_request(with, parsed(text), true);
  EXPECT_THAT(with, HasSubstr(R"("path":"/a","query":"b=c")"));
  std::string without;
  append_log_request(without, parsed(text), false);
  EXPECT_THAT(without, testing::Not(HasSubstr("b=c")));
}

TEST(gateway_access_log_line, escapes_and_cuts_what_a_client_sends) {
  std::string const text = "GET / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: \"\\\t\xff" +
                           std::string(2 * logged_octets_max, 'x') + "\r\n\r\n";
  std::string line;
  append_log_request(line, parsed(text), false);
  EXPECT_THAT(line, HasSubstr("\"user_agent\":\"\\\"\\\\\\t\xef\xbf\xbdxxx"));
  EXPECT_LT(line.size(), logged_octets_max + 200);
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

/// A pipe that holds little.
struct small_pipe {
  small_pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    ::fcntl(ends[1], F_SETPIPE_SZ, 4096);
    from = engine::descriptor(ends[0]);
    to = engine::descriptor(ends[1]);
  }
  engine::descriptor from;
  engine::descriptor to;
};

TEST(gateway_access_log, writes_every_line_before_it_ends) {
  auto name = testing::TempDir() + "tidegate_access_log_XXXXXX";
  engine::descriptor const file(::mkstemp(name.data()));
  {
    access_log log;
    auto& first = log.add_source();
    auto& second = log.add_source();
    auto opened = access_log::open({access_log_config::destination::file, name});
    ASSERT_TRUE(opened.has_value());
    log.use(*std::move(opened));
    for (int i = 0; i < 1000; ++i) {
      EXPECT_TRUE(first.add("a\n"));
      EXPECT_TRUE(second.add("b\n"));
    }
    EXPECT_EQ(log.lost(), 0U);
  }
  std::string text(10'000, '\0');
  text.resize(static_cast<std::size_t>(::pread(file.get(), text.data(), text.size(), 0)));
  ::unlink(name.c_str());
  EXPECT_EQ(text.size(), 4000U);
  EXPECT_EQ(std::ranges::count(text, 'a'), 1000);
  EXPECT_EQ(std::ranges::count(text, 'b'), 1000);
}

TEST(gateway_access_log, loses_lines_and_no_time_when_they_are_not_taken) {
  small_pipe pipe;
  access_log log;
  auto& lines = log.add_source();
  log.use(std::move(pipe.to));
  std::string const line = std::string(4095, 'x') + "\n";
  auto const fit = static_cast<int>(access_log::waiting_octets_max / line.size());
  int taken = 0;
  for (int i = 0; i < 10 * fit; ++i) {
    taken += lines.add(line) ? 1 : 0;
  }
  EXPECT_GE(taken, fit);
  EXPECT_LE(taken, 3 * fit);  // waiting, being written, and what was given up meanwhile
  pipe.from.close();          // what is left cannot be written
}

TEST(gateway_access_log, survives_a_reader_that_goes_away) {
  small_pipe pipe;
  access_log log;
  auto& lines = log.add_source();
  log.use(std::move(pipe.to));
  pipe.from.close();
  EXPECT_TRUE(lines.add("a\n"));
  auto const until = std::chrono::steady_clock::now() + 10s;
  while (log.lost() == 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
  EXPECT_EQ(log.lost(), 1U);
}

TEST(gateway_access_log, says_what_cannot_be_opened) {
  auto const opened =
      access_log::open({access_log_config::destination::file, "/nonexistent/access.log"});
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error(), StartsWith("access-log: cannot write /nonexistent/access.log: "));
}

}  // namespace
}  // namespace tidegate::gateway
