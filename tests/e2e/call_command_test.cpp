// SPDX-License-Identifier: Apache-2.0
#include "counting_api.hpp"
#include "faulty_way.hpp"
#include "gateway.hpp"
#include "keyed.hpp"
#include "process.hpp"
#include "support/sanitized.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <pty.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;
using namespace std::chrono_literals;

auto call(std::vector<std::string> arguments) -> outcome {
  arguments.insert(arguments.begin(), {TIDEGATE_BINARY, "call"});
  return run(arguments);
}

auto in_background(std::vector<std::string> arguments) -> std::future<outcome> {
  return std::async(std::launch::async, call, std::move(arguments));
}

auto lines_of(std::string const& text) -> std::size_t {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

TEST(call_command, prints_the_content_of_an_answer) {
  serving_origin server([](message const& request) {
    return response("200 OK", request.start_line + "|" + request.field("X-A") + "|" +
                                  request.field("Content-Type") + "|" + request.body);
  });
  auto const got = call({server.url() + "/x?y"});
  EXPECT_EQ(got.out, "GET /x?y HTTP/1.1|(none)|(none)|");
  EXPECT_EQ(got.err, "");
  EXPECT_EQ(got.status, 0);
  EXPECT_EQ(call({"-d", "a=b", "-H", "X-A: 1", server.url()}).out,
            "POST / HTTP/1.1|1|application/x-www-form-urlencoded|a=b");
  EXPECT_EQ(
      call({"-X", "PUT", "-d", "{}", "-H", "content-type: application/json", server.url()}).out,
      "PUT / HTTP/1.1|(none)|application/json|{}");
  EXPECT_EQ(run({TIDEGATE_BINARY, "call", "-d", "@-", server.url()}, "from outside").out,
            "POST / HTTP/1.1|(none)|application/x-www-form-urlencoded|from outside");
}

TEST(call_command, exits_with_1_when_an_answer_is_an_error_or_does_not_come) {
  serving_origin const server(response("404 Not Found", "nothing here"));
  auto const missing = call({server.url()});
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(missing.out, "nothing here");
  EXPECT_EQ(missing.err, "error: the server answered 404\n");
  auto const refused = call({"--retries", "0", origin::refusing().url()});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, StartsWith("error: cannot connect: "));
}

TEST(call_command, exits_with_2_when_the_command_line_is_wrong) {
  for (auto const& wrong : std::vector<std::vector<std::string>>{
           {},
           {"ftp://a/"},
           {"/path"},
           {"http://a/", "-i", "--json"},
           {"http://a/", "-o", "x", "--repeat", "2"},
           {"http://a/", "--rate", "fast"},
           {"http://a/", "--rate", "0/s"},
           {"http://a/", "--rate", "5/0s"},
           {"http://a/", "--rate", "5/"},
           {"http://a/", "--max-time", "5"},
           {"http://a/", "--timeout", "0s"},
           {"http://a/", "--repeat", "0"},
           {"http://a/", "-H", "no colon"},
           {"http://a/", "-d", "x", "-H", "Idempotency-Key:"},
           {"http://a/", "--idempotent", "-H", "idempotency-key: "},
           {"http://a/", "-H", "a: b\nc: d"},
           {"http://a/", "-d", "@/no/such/file"},
           {"http://a/", "http://b/"}}) {
    auto const got = call(wrong);
    EXPECT_EQ(got.status, 2) << (wrong.empty() ? "" : wrong.back());
    EXPECT_EQ(got.out, "");
    EXPECT_NE(got.err, "");
  }
  auto const help = call({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, HasSubstr("130 interrupted"));
}

TEST(call_command, takes_http_for_this_machine_where_a_url_has_no_scheme) {
  serving_origin const server(response("200 OK", "here"));
  auto const url = server.url();
  EXPECT_EQ(call({url.substr(std::string("http://").size()) + "/x"}).out, "here");
}

TEST(call_command, prints_the_header_section_and_writes_a_file_when_it_is_asked_to) {
  serving_origin const server(response("200 OK", "here", "X-A: b\r\n"));
  EXPECT_EQ(call({"-i", server.url()}).out, "HTTP 200\nX-A: b\nContent-Length: 4\n\nhere");
  data_folder const folder;
  auto const name = folder.path() + "/out";
  EXPECT_EQ(call({"-o", name, server.url()}).out, "");
  std::ifstream file(name);
  std::string content;
  std::getline(file, content);
  EXPECT_EQ(content, "here");
  auto const failed = call({"-o", "/no/such/folder/out", server.url()});
  EXPECT_EQ(failed.status, 1);
  EXPECT_THAT(failed.err, HasSubstr("cannot write /no/such/folder/out"));
}

TEST(call_command, tells_how_long_a_request_took_apart_from_how_long_it_waited) {
  serving_origin const server(response("200 OK", "x"));
  auto const got = call({"--repeat", "2", "--rate", "1/s", server.url()});
  EXPECT_EQ(got.status, 0);
  double took = 0;
  double waited = 0;
  auto const second = got.out.find("\n2 ");
  ASSERT_NE(second, std::string::npos) << got.out;
  ASSERT_EQ(std::sscanf(got.out.c_str() + second + 1, "2 200 %lf ms after a wait of %lf ms", &took,
                        &waited),
            2)
      << got.out;
  EXPECT_LT(took, 900);
  EXPECT_GE(waited, 900);
}

TEST(call_command, prints_a_line_for_each_of_many_requests_and_a_summary) {
  serving_origin const server(response("200 OK", "x"));
  auto const got = call({"--repeat", "20", server.url()});
  EXPECT_EQ(got.status, 0);
  EXPECT_EQ(lines_of(got.out), 20U);
  EXPECT_THAT(got.out, MatchesRegex("1 200 [0-9.]+ ms( after a wait of [0-9.]+ ms)?\n.*"));
  EXPECT_THAT(got.err, MatchesRegex("20 ok, 0 failed, 0 retries, [0-9.]+ ms\n"));
  EXPECT_EQ(server.requests(), 20U);
}

TEST(call_command, speaks_json_line_by_line) {
  serving_origin server([](message const& request) {
    return request.field("Idempotency-Key") == "(none)"
               ? response("400 Bad Request", "\"", "X: y\r\n")
               : response("201 Created", "made");
  });
  auto const failed = call({"--json", server.url()});
  EXPECT_EQ(failed.status, 1);
  EXPECT_THAT(
      failed.out,
      MatchesRegex(R"(\{"number":1,"ok":false,"status":400,"attempts":1,"took_ms":[0-9.]+,)"
                   R"("waited_ms":[0-9.]+,"fields":\[\["X","y"\],\["Content-Length","1"\]\],)"
                   R"("body":"\\""\})"
                   "\n"
                   R"(\{"summary":\{"wanted":1,"ok":0,"failed":1,"unfinished":0,"retries":0,)"
                   R"("seconds":[0-9.]+\}\})"
                   "\n"));
  auto const made = call({"--json", "--idempotent", "-d", "x", server.url()});
  EXPECT_EQ(made.status, 0);
  EXPECT_THAT(made.out, HasSubstr("\"replayed\":false"));
  auto const lost = call({"--json", "--retries", "0", origin::refusing().url()});
  EXPECT_EQ(lost.status, 1);
  EXPECT_THAT(lost.out, HasSubstr(R"("fault":"cannot-connect")"));
  EXPECT_THAT(lost.out, HasSubstr(R"("may_have_run":false)"));
}

TEST(call_command, takes_the_time_of_a_rate_as_it_stands) {
  serving_origin const server(response("200 OK", "x"));
  // With 2/11s the second one would come after 5.5 s.
  EXPECT_EQ(call({"--repeat", "2", "--rate", "2/1s", "--max-time", "5s", server.url()}).status, 0);
}

TEST(call_command, comes_back_when_retry_after_says_and_stays_below_the_rate_that_is_given) {
  std::atomic<int> number = 0;
  serving_origin server([&](message const&) {
    return ++number == 1 ? response("429 Too Many Requests", "", "Retry-After: 1\r\n")
                         : response("200 OK", "now");
  });
  auto const began = std::chrono::steady_clock::now();
  EXPECT_EQ(call({server.url()}).out, "now");
  EXPECT_GE(std::chrono::steady_clock::now() - began, 1s);

  auto const again = std::chrono::steady_clock::now();
  EXPECT_EQ(call({"--repeat", "5", "--rate", "10/s", server.url()}).status, 0);
  EXPECT_GE(std::chrono::steady_clock::now() - again, 400ms);
}

TEST(call_command, has_every_request_with_a_key_executed_once_whatever_happens_on_the_way) {
  data_folder const data;
  counting_api const api;
  gateway const with(keyed_config(api.url(), data, "anonymous: allow"));
  faulty_way const way(with);
  auto const got = call({"--idempotent", "--repeat", "24", "--retries", "20", "--timeout", "1s",
                         "--rate", "100/s", "-d", "pay", way.url() + "/final"});
  EXPECT_EQ(got.status, 0) << got.out << got.err;
  EXPECT_EQ(lines_of(got.out), 24U) << got.out;
  EXPECT_EQ(api.counts(), (std::map<std::size_t, std::size_t>{{1, 24}}));
  EXPECT_GT(way.requests(), 30U) << "there were retries";
  EXPECT_THAT(got.out, HasSubstr(", replayed"));
}

TEST(call_command, does_not_repeat_a_post_without_a_key_that_may_have_run) {
  origin server;
  auto got = in_background({"-d", "pay", server.url()});
  auto client = server.accept();
  (void)client.read_request();
  client.abort();
  auto const outcome = got.get();
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("it may have been carried out"));
  EXPECT_TRUE(server.is_untouched());
}

TEST(call_command, waits_for_a_key_that_is_in_flight) {
  data_folder const data;
  origin api;
  gateway const with("data: " + data.path() + "\nupstreams: {api: {servers: [" + api.url() +
                     "], timeout: 20s}}\nroutes:\n  - match: {path: /**}\n    upstream: api\n"
                     "    idempotency: {mode: required, anonymous: allow}\n");
  auto got = in_background({"--idempotent", "--json", "--timeout", "300ms", "-d", "pay",
                            "http://" + with.authority() + "/"});
  auto at_api = api.accept();
  (void)at_api.read_request();
  expect_eventually(
      [&] {
        return with.metric("tidegate_idempotency_total{route=\"/**\",outcome=\"conflict\"}") >= 1;
      },
      "the client asks again while the first request runs");
  at_api.send(response("201 Created", "made once"));
  auto const outcome = got.get();
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(R"("replayed":true)"));
  EXPECT_THAT(outcome.out, HasSubstr("made once"));
  EXPECT_TRUE(api.is_untouched());
}

TEST(call_command, ends_cleanly_when_it_is_interrupted) {
  origin server;
  std::string const url = server.url();
  std::array<std::string, 5> arguments = {TIDEGATE_BINARY, "call", "--repeat", "1000", url};
  std::vector<char*> argv;
  for (auto& each : arguments) {
    argv.push_back(each.data());
  }
  argv.push_back(nullptr);
  pid_t child = -1;
  ASSERT_EQ(::posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ), 0);
  auto connection = server.accept();
  (void)connection.read_request();  // and there is no answer
  ::kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

TEST(call_command, draws_a_bar_on_a_terminal) {
  serving_origin const server(response("200 OK", "x"));
  int terminal = -1;
  int other_end = -1;
  ASSERT_EQ(::openpty(&terminal, &other_end, nullptr, nullptr, nullptr), 0);
  descriptor const reading(terminal);
  descriptor writing(other_end);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, other_end, STDERR_FILENO);
  std::string const url = server.url();
  std::array<std::string, 7> arguments = {TIDEGATE_BINARY, "call", "--repeat", "15",
                                          "--rate",        "10/s", url};
  std::vector<char*> argv;
  for (auto& each : arguments) {
    argv.push_back(each.data());
  }
  argv.push_back(nullptr);
  pid_t child = -1;
  ASSERT_EQ(::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ), 0);
  ::posix_spawn_file_actions_destroy(&actions);
  writing.close();
  std::string shown;
  std::array<char, 4096> piece{};
  for (ssize_t size = 0; (size = ::read(reading.get(), piece.data(), piece.size())) > 0;) {
    shown.append(piece.data(), static_cast<std::size_t>(size));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(shown, HasSubstr("\r\x1b[K[#"));
  EXPECT_THAT(shown, HasSubstr("of 15 done, "));
  EXPECT_THAT(shown, HasSubstr("\r\x1b[K15 ok, 0 failed, 0 retries")) << "the bar is removed";
}

TEST(call_command, stops_when_its_time_is_over) {
  origin const server;
  auto const got = call({"--max-time", "300ms", "--repeat", "1000", server.url()});
  EXPECT_EQ(got.status, 1);
  EXPECT_THAT(got.err, HasSubstr("900 not finished"));
}

/// What a gateway has decided, by its access log.
struct logged_decision {
  std::chrono::sys_time<std::chrono::milliseconds> time;
  bool admitted;
};

auto read_decisions(std::string const& file) -> std::vector<logged_decision> {
  std::vector<logged_decision> out;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    int year = 0;
    unsigned month = 0;
    unsigned day = 0;
    int hour = 0;
    int minute = 0;
    int second = 0;
    int milliseconds = 0;
    if (std::sscanf(line.c_str(), R"({"time":"%d-%u-%uT%d:%d:%d.%dZ")", &year, &month, &day, &hour,
                    &minute, &second, &milliseconds) != 7) {
      throw std::runtime_error("no time in " + line);
    }
    out.push_back({std::chrono::sys_days(std::chrono::year(year) / std::chrono::month(month) /
                                         std::chrono::day(day)) +
                       std::chrono::hours(hour) + std::chrono::minutes(minute) +
                       std::chrono::seconds(second) + std::chrono::milliseconds(milliseconds),
                   line.find(R"("decision":"admitted")") != std::string::npos});
  }
  std::ranges::stable_sort(out, {}, &logged_decision::time);
  return out;
}

TEST(call_command, uses_95_percent_of_a_quota_that_eight_share_and_is_hardly_refused) {
  constexpr int quota = 400;
  constexpr auto window = 10s;
  data_folder const data;
  auto const log = data.path() + "/access.log";
  std::size_t requests = 0;
  {
    gateway const with("access-log: " + log +
                       "\npolicies: {p: {quota: 400, window: 10s, algorithm: fixed}}\n"
                       "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n");
    std::vector<std::future<outcome>> callers;
    for (int i = 0; i < 8; ++i) {
      // Together what two windows and a half have.
      callers.push_back(in_background({"--repeat", "125", "http://" + with.authority() + "/"}));
    }
    for (auto& each : callers) {
      auto const got = each.get();
      EXPECT_EQ(got.status, 0) << got.err;
      requests += lines_of(got.out);
    }
  }
  EXPECT_EQ(requests, 1000U);
  auto const decisions = read_decisions(log);
  auto const refused = std::ranges::count(decisions, false, &logged_decision::admitted);
  EXPECT_LT(static_cast<double>(refused), 0.02 * static_cast<double>(decisions.size()));
  // A window begins with the first request behind the one before; the last one is not over. Time
  // between two windows is quota that was not used.
  ASSERT_FALSE(decisions.empty());
  auto const first = decisions.front().time;
  auto last = first;
  double admitted = 0;
  double in_window = 0;
  for (auto const& each : decisions) {
    if (each.time - last >= window) {
      admitted += in_window;
      in_window = 0;
      last = each.time;
    }
    in_window += each.admitted ? 1 : 0;
  }
  ASSERT_GE(last - first, 2 * window);
  auto const used = admitted / (quota * std::chrono::duration<double>(last - first) / window);
  EXPECT_GE(used, 0.95);
  RecordProperty("used", std::to_string(used));
  RecordProperty("refused", std::to_string(refused));
}

TEST(call_command, uses_90_percent_from_the_first_reset_on_when_it_starts_on_a_spent_quota) {
  constexpr auto window = 5s;
  constexpr auto time = 26s;
  // With sanitizers the machine is too slow for figures: there it must only not crawl.
  constexpr double share = test_support::sanitized ? 0.5 : 0.9;
  constexpr double quota = 20;
  gateway const with(
      "policies:\n"
      "  fixed: {quota: 20, window: 5s, algorithm: fixed}\n"
      "  sliding: {quota: 20, window: 5s, algorithm: sliding}\n"
      "  gcra: {quota: 20, window: 5s, algorithm: gcra}\n"
      "routes:\n"
      "  - {match: {path: /fixed}, service: echo, limits: [fixed]}\n"
      "  - {match: {path: /sliding}, service: echo, limits: [sliding]}\n"
      "  - {match: {path: /gcra}, service: echo, limits: [gcra]}\n");
  std::vector<std::pair<std::string, std::future<outcome>>> callers;
  for (auto const* const algorithm : {"fixed", "sliding", "gcra"}) {
    auto client = with.connect();
    for (int i = 0; i < static_cast<int>(quota) + 1; ++i) {
      client.send("GET /" + std::string(algorithm) + " HTTP/1.1\r\nHost: a\r\n\r\n");
      (void)client.read_response();
    }
    callers.emplace_back(algorithm,
                         in_background({"--repeat", "1000", "--max-time", "26s",
                                        "http://" + with.authority() + "/" + algorithm}));
  }
  for (auto& [algorithm, caller] : callers) {
    auto const got = caller.get();
    auto const reset = algorithm == "gcra" ? 0s : window;
    auto const allowed = quota * std::chrono::duration<double>(time - reset) / window;
    EXPECT_GE(static_cast<double>(lines_of(got.out)), share * allowed) << algorithm << got.err;
  }
}

}  // namespace
}  // namespace tidegate::e2e
