// SPDX-License-Identifier: Apache-2.0
#include "gateway.hpp"
#include "keyed.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

std::string const echo = "routes: [{name: all, match: {path: /**}, service: echo}]\n";

/// A folder with the log in it, gone with the test.
class log_folder {
 public:
  log_folder() {
    auto pattern = (std::filesystem::temp_directory_path() / "tidegate_log_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("mkdtemp failed");
    }
    path_ = pattern;
  }
  log_folder(log_folder const&) = delete;
  auto operator=(log_folder const&) -> log_folder& = delete;
  ~log_folder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] auto file(std::string const& name = "access.log") const -> std::string {
    return (path_ / name).string();
  }
  [[nodiscard]] auto option() const -> std::string { return "access-log: " + file() + "\n"; }

  [[nodiscard]] auto text(std::string const& name = "access.log") const -> std::string {
    std::ostringstream out;
    out << std::ifstream(file(name)).rdbuf();
    return out.str();
  }
  /// Waits for so many lines.
  [[nodiscard]] auto lines(std::size_t count, std::string const& name = "access.log") const
      -> std::vector<std::string> {
    expect_eventually(
        [&] { return std::ranges::count(text(name), '\n') >= static_cast<std::ptrdiff_t>(count); },
        "the lines are written");
    std::vector<std::string> out;
    std::istringstream in(text(name));
    for (std::string line; std::getline(in, line);) {
      out.push_back(line);
    }
    EXPECT_EQ(out.size(), count);
    out.resize(count);
    return out;
  }

 private:
  std::filesystem::path path_;
};

TEST(gateway_access_log, has_a_line_for_a_request_that_is_sent_on) {
  log_folder const log;
  serving_origin const api(response("201 Created", "hello"));
  gateway const with(proxy_config(api.url(), log.option()));
  EXPECT_EQ(with.ask("POST /v1/a?key=secret HTTP/1.1\r\nHost: a.example\r\nUser-Agent: test/1\r\n"
                     "Content-Length: 3\r\n\r\nabc")
                .status(),
            201);
  EXPECT_THAT(
      log.lines(1)[0],
      MatchesRegex(
          R"(\{"time":"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z","client":"127\.0\.0\.1",)"
          R"("protocol":"HTTP/1\.1","method":"POST","host":"a\.example","path":"/v1/a",)"
          R"("user_agent":"test/1","decision":null,"policies":\[\],"partitions":\[\],)"
          R"("principal":null,"idempotency":null,"route":"all",)"
          R"("upstream":"api","server":"127\.0\.0\.1:[0-9]+","status":201,"reason":null,)"
          R"("request_bytes":3,)"
          R"("response_bytes":5,"duration_ms":[0-9]+\.[0-9]{3},"upstream_ms":[0-9]+\.[0-9]{3}\})"));
}

TEST(gateway_access_log, says_what_the_policies_said) {
  log_folder const log;
  gateway const with(
      log.option() +
      "policies: {a: {quota: 1, window: 1h}, b: {quota: 1, window: 1h, abuse: "
      "{refusals: 1}}, c: {quota: 9, window: 1h}}\n"
      "routes: [{name: all, match: {path: /**}, service: echo, limits: [a, b, c]}]\n");
  for (auto const expected : {200, 429, 429}) {
    EXPECT_EQ(with.get("/a").status(), expected);
  }
  auto const lines = log.lines(3);
  EXPECT_THAT(lines[0], HasSubstr(R"("decision":"admitted","policies":[],"partitions":[])"));
  EXPECT_THAT(lines[1], HasSubstr(R"("decision":"refused","policies":["a","b"])"));
  EXPECT_THAT(lines[2], HasSubstr(R"("decision":"blocked","policies":["b"])"));
  EXPECT_THAT(lines[2], HasSubstr(R"("status":429)"));
}

TEST(gateway_access_log, says_why_the_gateway_answered_itself) {
  log_folder const log;
  auto const gone = origin::refusing();
  origin silent;
  gateway const with(
      log.option() +
      "http: {max-body: 5}\nstores: {idempotency: memory}\ndata: " + log.file("data") +
      "\nupstreams: {gone: '" + gone.url() + "', silent: {servers: ['" + silent.url() +
      "'], timeout: 100ms, idle-timeout: 100ms}}\n"
      "policies: {p: {quota: 1, window: 1h}}\n"
      "routes:\n"
      "- {match: {path: /limited}, service: echo, limits: [p]}\n"
      "- {match: {path: /gone}, upstream: gone}\n"
      "- {match: {path: /silent}, upstream: silent}\n"
      "- {match: {path: /keyed}, upstream: gone, idempotency: {mode: required, anonymous: allow}}\n"
      "- {match: {path: /scoped}, upstream: gone, idempotency: {mode: required, scope: "
      "[header:x-who]}}\n"
      "- {match: {path: /token}, service: echo, auth: {bearer-tokens: [{name: a, sha256: "
      "e2186dbdb1bb4193608605e84f33208765b5693b55edd4f730a719a100eeea6f}]}}\n");
  std::size_t count = 0;
  auto const last = [&] { return log.lines(++count).back(); };
  auto const post = [](std::string const& path, std::string const& fields,
                       std::string const& body) {
    return "POST " + path + " HTTP/1.1\r\nHost: a\r\n" + fields +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  EXPECT_EQ(with.get("/limited").status(), 200);
  EXPECT_THAT(last(), HasSubstr(R"("status":200,"reason":null,)"));
  EXPECT_EQ(with.get("/limited").status(), 429);
  auto const refused = last();
  EXPECT_THAT(refused, HasSubstr(R"("status":429,"reason":"quota",)"));
  EXPECT_THAT(refused, Not(HasSubstr(R"("duration_ms":0.000,)")));
  EXPECT_EQ(with.get("/gone").status(), 502);
  EXPECT_THAT(last(), HasSubstr(R"("status":502,"reason":"upstream-refused",)"));
  EXPECT_EQ(with.get("/silent").status(), 504);
  EXPECT_THAT(last(), HasSubstr(R"("status":504,"reason":"upstream-timeout",)"));
  EXPECT_EQ(with.ask(post("/keyed", "Idempotency-Key: \"k\"\r\n", "x")).status(), 502);
  EXPECT_THAT(last(), HasSubstr(R"("status":502,"reason":"upstream-refused",)"));
  EXPECT_EQ(with.ask(post("/keyed", "", "x")).status(), 400);
  EXPECT_THAT(last(), HasSubstr(R"("status":400,"reason":"key-missing",)"));
  EXPECT_EQ(with.ask(post("/gone", "", "too long")).status(), 413);
  EXPECT_THAT(last(), HasSubstr(R"("status":413,"reason":"body-too-large",)"));
  EXPECT_EQ(with.get("/token").status(), 401);
  EXPECT_THAT(last(), HasSubstr(R"("status":401,"reason":"token-missing",)"));
  EXPECT_EQ(with.get("/token", "Authorization: Bearer x\r\n").status(), 401);
  EXPECT_THAT(last(), HasSubstr(R"("status":401,"reason":"token-unknown",)"));
  EXPECT_EQ(
      with.ask(post("/scoped", "Idempotency-Key: \"k\"\r\nX-Who: a\r\nX-Who: b\r\n", "x")).status(),
      400);
  EXPECT_THAT(last(), AllOf(HasSubstr(R"("idempotency":{"id":null,"outcome":"malformed"},)"),
                            HasSubstr(R"("status":400,"reason":"value-repeated",)")));
  EXPECT_EQ(with.get("/limited%2F..%2Ftoken").status(), 400);
  EXPECT_THAT(last(), HasSubstr(R"("status":400,"reason":"path-ambiguous",)"));
  EXPECT_EQ(with.ask("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n").status(), 405);
  EXPECT_THAT(last(), HasSubstr(R"("status":405,"reason":"method-not-allowed",)"));
  EXPECT_EQ(with.get("/none").status(), 404);
  EXPECT_THAT(last(), HasSubstr(R"("status":404,"reason":"no-route",)"));
  EXPECT_EQ(with.ask("no request\r\n\r\n").status(), 400);
  EXPECT_THAT(last(), HasSubstr(R"("status":400,"reason":"malformed",)"));
}

TEST(gateway_access_log, says_why_an_answer_was_cut) {
  log_folder const log;
  origin api;
  gateway with(log.option() + "upstreams: {api: {servers: ['" + api.url() +
               "'], idle-timeout: 100ms}}\nroutes: [{match: {path: /**}, upstream: api}]\n");
  auto client = with.connect();
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  auto server = api.accept();
  (void)server.read_request();
  server.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n");
  (void)client.read_to_end();
  EXPECT_THAT(log.lines(1)[0], HasSubstr(R"("status":200,"reason":"upstream-idle",)"));
  (void)with.errors_until("warning: upstream \"api\": server " + api.url() +
                          " failed: nothing arrived for 100ms in the middle of a response, which "
                          "was aborted (idle-timeout)");
}

TEST(gateway_access_log, says_who_was_refused) {
  log_folder const log;
  gateway const with(
      log.option() +
      "policies: {a: {quota: 1, window: 1h, partition: [principal]}}\n"
      "routes: [{name: all, match: {path: /**}, service: echo, limits: [a], auth: {bearer-tokens: "
      "[{name: acme, sha256: 8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8}]}}]"
      "\n");
  EXPECT_EQ(with.get("/a", "Authorization: Bearer alpha\r\n").status(), 200);
  EXPECT_EQ(with.get("/a", "Authorization: Bearer alpha\r\n").status(), 429);
  EXPECT_EQ(with.get("/a").status(), 401);
  auto const lines = log.lines(3);
  EXPECT_THAT(lines[0], HasSubstr(R"("partitions":[],"principal":"acme")"));
  auto const listed = with.admin("/api/v1/partitions?policy=a").body;
  constexpr std::string_view begin = R"("partitions":[")";
  auto const at = lines[1].find(begin);
  ASSERT_NE(at, std::string::npos) << lines[1];
  auto const digest = lines[1].substr(at + begin.size(), 32);
  EXPECT_THAT(digest, MatchesRegex("[0-9a-f]{32}"));
  EXPECT_THAT(listed, HasSubstr("\"key\":\"" + digest + "\"")) << "the console calls it the same";
  EXPECT_THAT(lines[1], HasSubstr(R"("],"principal":"acme")"));
  EXPECT_THAT(lines[2], HasSubstr(R"("principal":null)"));
  for (auto const& line : lines) {
    EXPECT_THAT(line, Not(HasSubstr("alpha")));
  }
}

TEST(gateway_access_log, leads_from_a_request_with_a_key_to_its_record) {
  log_folder const log;
  data_folder const data;
  origin api;
  gateway const with(log.option() + keyed_config(api.url(), data));
  std::vector<message> answers;
  auto const run = [&](std::string const& key, std::string_view answer) {
    auto client = with.connect();
    client.send(post(key));
    auto server = api.accept();
    (void)server.read_request();
    if (!answer.empty()) {
      server.send(answer);
    }
    server.close();
    answers.push_back(client.read_response());
  };
  run("\"paid\"", "HTTP/1.1 201 Created\r\nContent-Length: 4\r\nConnection: close\r\n\r\npaid");
  answers.push_back(with.ask(post("\"paid\"")));
  run("\"lost\"", "");
  answers.push_back(with.ask(post("\"lost\"")));
  answers.push_back(with.ask(post("")));
  auto const lines = log.lines(answers.size());
  std::array const outcomes = {"first", "replayed", "unknown", "unknown-refused", "missing"};
  constexpr std::string_view begin = R"("idempotency":{"id":)";
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    auto const& line = lines[i];
    EXPECT_THAT(line, HasSubstr("\"outcome\":\"" + std::string(outcomes[i]) + "\"}"));
    EXPECT_THAT(line, HasSubstr("\"status\":" + std::to_string(answers[i].status())));
    EXPECT_THAT(line,
                HasSubstr("\"response_bytes\":" + std::to_string(answers[i].body.size()) + ","));
    bool const ran = i == 0 || i == 2;
    EXPECT_THAT(line, HasSubstr("\"server\":" + (ran ? "\"" + api.authority() + "\"" : "null")));
    ids.push_back(line.substr(line.find(begin) + begin.size(), 66));
  }
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(ids[2], ids[3]);
  EXPECT_NE(ids[0], ids[2]);
  EXPECT_TRUE(ids[4].starts_with("null")) << ids[4];
  auto const record = with.admin("/api/v1/idempotency/" + ids[2].substr(1, 64));
  EXPECT_EQ(record.status(), 200);
  EXPECT_THAT(record.body,
              HasSubstr(R"("route":"/**","method":"POST","host":"a.example","path":"/a")"));
}

TEST(gateway_access_log, has_the_status_that_a_client_got_whose_answer_came_too_late) {
  log_folder const log;
  data_folder const data;
  origin api;
  gateway const with(log.option() + keyed_config(api.url(), data));
  auto client = with.connect();
  client.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  auto const told = client.read_response();  // after the time-out of one second
  expect_code(told, 504, "outcome-unknown");
  server.send(response("201 Created", "late"));
  auto const line = log.lines(1)[0];
  EXPECT_THAT(line, HasSubstr(R"("status":504,"reason":"upstream-timeout",)"));
  EXPECT_THAT(line, HasSubstr("\"response_bytes\":" + std::to_string(told.body.size()) + ","));
  EXPECT_THAT(line, HasSubstr(R"("outcome":"unknown"})"));
}

TEST(gateway_access_log, says_499_for_a_request_with_a_key_whose_client_went_before_its_answer) {
  log_folder const log;
  data_folder const data;
  origin api;
  gateway const with(log.option() + keyed_config(api.url(), data));
  auto client = with.connect();
  client.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  client.abort();
  expect_eventually([&] { return with.metric("tidegate_connections_open") == 0; },
                    "the gateway has seen it go");
  server.send(response("201 Created", "made"));
  EXPECT_THAT(log.lines(1)[0],
              AllOf(HasSubstr(R"("status":499,"reason":"client-gone",)"),
                    HasSubstr(R"("response_bytes":0,)"), HasSubstr(R"("outcome":"first"})")));
  EXPECT_EQ(with.metric("tidegate_requests_total{route=\"/**\",status=\"499\"}"), 1);
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 201) << "it was carried out";
}

TEST(gateway_access_log, has_the_same_members_where_a_request_cannot_be_read) {
  log_folder const log;
  gateway const with("access-log: {file: " + log.file() + ", query: true}\n" + echo);
  EXPECT_EQ(with.get("/a?b=c").status(), 200);
  EXPECT_EQ(with.ask("no request\r\n\r\n").status(), 400);
  auto const lines = log.lines(2);
  EXPECT_THAT(lines[0], HasSubstr(R"("path":"/a","query":"b=c","user_agent":null,)"));
  EXPECT_THAT(lines[1], HasSubstr(R"("path":null,"query":null,"user_agent":null,)"));
}

TEST(gateway_access_log, has_a_line_for_what_never_reached_a_route) {
  log_folder const log;
  gateway const with(log.option() + "routes: [{match: {path: /here}, service: echo}]\n");
  EXPECT_EQ(with.get("/elsewhere").status(), 404);
  EXPECT_EQ(with.ask("no request\r\n\r\n").status(), 400);
  auto const lines = log.lines(2);
  EXPECT_THAT(lines[0], AllOf(HasSubstr(R"("path":"/elsewhere")"), HasSubstr(R"("route":null)"),
                              HasSubstr(R"("status":404)")));
  EXPECT_THAT(lines[1], AllOf(HasSubstr(R"("method":null)"), HasSubstr(R"("status":400)")));
}

TEST(gateway_access_log,
     says_499_for_a_client_that_went_and_504_for_an_upstream_that_did_not_come) {
  log_folder const log;
  origin api;
  gateway const with(
      log.option() + "upstreams: {api: {servers: [\"" + api.url() +
      "\"], timeout: 200ms, retries: 0}}\nroutes: [{match: {path: /**}, upstream: api}]\n");
  {
    auto client = with.connect();
    client.send("GET /gone HTTP/1.1\r\nHost: a\r\n\r\n");
    auto server = api.accept();
    (void)server.read_request();
    client.abort();
    EXPECT_THAT(log.lines(1)[0], AllOf(HasSubstr("/gone"), HasSubstr(R"("status":499)"),
                                       HasSubstr(R"("upstream_ms":null)")));
  }
  EXPECT_EQ(with.get("/late").status(), 504);
  EXPECT_THAT(log.lines(2)[1], AllOf(HasSubstr("/late"), HasSubstr(R"("status":504)"),
                                     HasSubstr("\"server\":\"" + api.authority() + "\"")));
}

TEST(gateway_access_log, is_json_whatever_a_client_sends) {
  log_folder const log;
  gateway const with(log.option() + echo);
  std::string hostile;
  for (int c = 1; c < 256; ++c) {
    if (c != '\r' && c != '\n' && (c >= 0x20 || c == '\t') && c != 0x7f) {
      hostile += static_cast<char>(c);
    }
  }
  EXPECT_EQ(with.get("/%22%0a", "User-Agent: " + hostile + "\r\n").status(), 200);
  auto const line = log.lines(1)[0];
  auto const checked = run({"/usr/bin/env", "python3", "-c",
                            "import json,sys; print(json.load(sys.stdin)['user_agent'][:3])"},
                           line);
  EXPECT_EQ(checked.out, "!\"#\n") << line << checked.err;
}

TEST(gateway_access_log, names_the_client_that_trusted_proxies_name) {
  log_folder const log;
  gateway const with(log.option() + "trusted-proxies: [127.0.0.1/32]\n" + echo,
                     {.listen = "{address: \"127.0.0.1:0\", proxy-protocol: true}"});
  auto const ask = [&](std::string const& address) {
    auto client = with.connect();
    client.send("PROXY TCP4 " + address +
                " 192.0.2.1 1 2\r\nGET / HTTP/1.0\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n");
    EXPECT_EQ(client.read_response().status(), 200);
  };
  ask("203.0.113.9");
  ask("127.0.0.1");
  auto const lines = log.lines(2);
  EXPECT_THAT(lines[0], HasSubstr(R"("client":"203.0.113.9","protocol":"HTTP/1.0")"));
  EXPECT_THAT(lines[1], HasSubstr(R"("client":"198.51.100.1")"));
}

TEST(gateway_access_log, has_the_streams_of_http2_too) {
  log_folder const log;
  gateway const with("access-log: {file: " + log.file() + ", query: true}\n" + echo);
  EXPECT_THAT(run({"/usr/bin/env", "curl", "-sSi", "--max-time", "10", "--http2-prior-knowledge",
                   "http://" + with.authority() + "/a?b=c"})
                  .out,
              StartsWith("HTTP/2 200"));
  EXPECT_THAT(log.lines(1)[0],
              AllOf(HasSubstr(R"("protocol":"HTTP/2")"), HasSubstr(R"("path":"/a","query":"b=c")"),
                    HasSubstr("\"host\":\"" + with.authority() + "\"")));
}

TEST(gateway_access_log, continues_in_a_new_file_after_a_reload) {
  log_folder const log;
  gateway with(log.option() + echo);
  EXPECT_EQ(with.get("/first").status(), 200);
  EXPECT_THAT(log.lines(1)[0], HasSubstr("/first"));
  std::filesystem::rename(log.file(), log.file("access.log.1"));
  EXPECT_EQ(with.reload(log.option() + echo), "the configuration was applied");
  EXPECT_EQ(with.get("/second").status(), 200);
  EXPECT_THAT(log.lines(1)[0], HasSubstr("/second"));
  EXPECT_THAT(log.lines(1, "access.log.1")[0], HasSubstr("/first"));
}

TEST(gateway_access_log, can_be_turned_on_and_off_and_keeps_on_when_a_new_file_cannot_be_opened) {
  log_folder const log;
  gateway with(echo);
  EXPECT_EQ(with.get("/before").status(), 200);
  EXPECT_EQ(with.reload(log.option() + echo), "the configuration was applied");
  expect_eventually(
      [&] {
        (void)with.get("/on");
        return log.text().contains("/on");
      },
      "it is on");
  EXPECT_THAT(with.reload("access-log: /nonexistent/a.log\n" + echo),
              StartsWith("the configuration was not applied: access-log: cannot write"));
  EXPECT_EQ(with.get("/still").status(), 200);
  expect_eventually([&] { return log.text().contains("/still"); }, "it is still on");
  EXPECT_EQ(with.reload(echo), "the configuration was applied");
  EXPECT_THAT(log.text(), Not(HasSubstr("/before")));
}

TEST(gateway_access_log, is_complete_when_the_gateway_has_ended) {
  log_folder const log;
  constexpr std::size_t count = 500;
  {
    gateway with(log.option() + echo, 2);
    for (int i = 0; i < 5; ++i) {
      auto client = with.connect();
      for (std::size_t j = 0; j < count / 5; ++j) {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        EXPECT_EQ(client.read_response().status(), 200);
      }
    }
    with.signal(SIGTERM);
    EXPECT_EQ(with.wait(), 0);
  }
  EXPECT_EQ(std::ranges::count(log.text(), '\n'), static_cast<std::ptrdiff_t>(count));
}

TEST(gateway_access_log, drops_lines_that_are_not_taken_and_delays_no_request) {
  log_folder const log;
  ASSERT_EQ(::mkfifo(log.file().c_str(), 0600), 0);
  descriptor const reader(::open(log.file().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  gateway const with(log.option() + echo);
  auto client = with.connect();
  std::string const agent(4000, 'x');
  for (int i = 0; i < 1000; ++i) {
    client.send("GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: " + agent + "\r\n\r\n");
    ASSERT_EQ(client.read_response().status(), 200);
  }
  EXPECT_GT(with.metric("tidegate_access_log_dropped_total"), 0);
}

TEST(gateway_access_log, goes_to_standard_output) {
  gateway with("access-log: stdout\n" + echo);
  EXPECT_EQ(with.get("/a").status(), 200);
  EXPECT_THAT(with.output(), AllOf(StartsWith("{\"time\":"), HasSubstr(R"("path":"/a")")));
}

TEST(gateway_access_log, says_with_which_status_an_upload_was_given_up) {
  log_folder const log;
  origin api;
  gateway const with(proxy_config(api.url(), log.option()));
  EXPECT_EQ(with.ask("POST /here HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
                .status(),
            400);
  EXPECT_THAT(log.lines(1)[0], AllOf(HasSubstr(R"("path":"/here")"), HasSubstr(R"("status":400)")));
}

}  // namespace
}  // namespace tidegate::e2e
