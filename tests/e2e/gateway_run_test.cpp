// SPDX-License-Identifier: Apache-2.0
//
// Running the gateway: reload, drain, the admin address, the description, flags.
#include "gateway.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::e2e {
namespace {

using namespace std::string_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view get_request = "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n";

auto echo_with_quota(int quota) -> std::string {
  return "policies: {p: {quota: " + std::to_string(quota) +
         ", window: 1h, algorithm: fixed}}\n"
         "routes: [{name: all, match: {path: /**}, service: echo, limits: [p]}]\n";
}

// ---- reload ----

TEST(gateway_reload, keeps_what_was_used_and_applies_the_new_quota) {
  gateway with(echo_with_quota(10));
  EXPECT_THAT(with.get("/a").field("RateLimit"), StartsWith("\"p\";r=9;"));
  EXPECT_THAT(with.get("/a").field("RateLimit"), StartsWith("\"p\";r=8;"));
  EXPECT_EQ(with.reload(echo_with_quota(5)), "the configuration was applied");
  auto const after = with.get("/a");
  EXPECT_EQ(after.field("RateLimit-Policy"), R"("p";q=5;w=3600)");
  EXPECT_THAT(after.field("RateLimit"), StartsWith("\"p\";r=2;"));
  EXPECT_EQ(with.metric(R"(tidegate_requests_total{route="all",status="200"})"), 3);
}

TEST(gateway_reload, keeps_the_old_configuration_when_the_new_one_has_faults) {
  gateway with(echo_with_quota(10));
  EXPECT_THAT(with.get("/a").field("RateLimit"), StartsWith("\"p\";r=9;"));
  EXPECT_EQ(with.reload("routes: [{match: {path: /**}, upstream: none}]\n"),
            "the configuration was not applied: it has faults");
  EXPECT_EQ(with.reload("routes: ["), "the configuration was not applied: it has faults");
  EXPECT_THAT(with.get("/a").field("RateLimit"), StartsWith("\"p\";r=8;"));
  EXPECT_EQ(with.reload(echo_with_quota(20)), "the configuration was applied");
  EXPECT_THAT(with.get("/a").field("RateLimit"), StartsWith("\"p\";r=17;"));
}

TEST(gateway_reload, ends_a_request_under_way_with_the_configuration_that_it_began_with) {
  origin before;
  origin after;
  gateway with(proxy_config(before.url()));
  auto client = with.connect();
  client.send(get_request);
  auto server = before.accept();
  (void)server.read_request();
  EXPECT_EQ(with.reload(proxy_config(after.url())), "the configuration was applied");
  EXPECT_EQ(with.reload(proxy_config(after.url())), "the configuration was applied");
  server.send(response("200 OK", "old"));
  EXPECT_EQ(client.read_response().body, "old");
  client.send(get_request);
  auto second = after.accept();
  (void)second.read_request();
  second.send(response("200 OK", "new"));
  EXPECT_EQ(client.read_response().body, "new");
}

TEST(gateway_reload, drops_no_request) {
  serving_origin const api(response("200 OK", "hello"));
  gateway with(proxy_config(api.url()), 2);
  std::atomic<int> answered = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&](std::stop_token const& stopping) {
      auto client = with.connect();
      while (!stopping.stop_requested()) {
        client.send(get_request);
        EXPECT_EQ(client.read_response().body, "hello");
        ++answered;
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(with.reload(proxy_config(api.url())), "the configuration was applied");
    EXPECT_EQ(with.get("/a").body, "hello");
    ++answered;
  }
  threads.clear();
  EXPECT_EQ(api.requests(), static_cast<std::size_t>(answered));
}

TEST(gateway_reload, says_what_takes_effect_on_restart_only) {
  gateway with(echo_with_quota(10));
  with.options().listen = "\"127.0.0.2:0\"";
  with.write_config(echo_with_quota(10));
  with.signal(SIGHUP);
  auto const said = with.errors_until("the configuration was applied");
  EXPECT_THAT(said, HasSubstr("Z warning: listen changed: takes effect on restart\n"));
  EXPECT_THAT(said, HasSubstr("Z info: the configuration was applied\n"));
}

TEST(gateway_reload, says_faults_in_the_log) {
  gateway with(echo_with_quota(10));
  with.write_config("routes: [{match: {path: /**}, service: echos}]\n");
  with.signal(SIGHUP);
  EXPECT_THAT(with.errors_until("was not applied"),
              AllOf(HasSubstr("Z error: " + with.file() + ":4:"),
                    HasSubstr("Z error: the configuration was not applied: it has faults")));
}

TEST(gateway_reload, warns_of_what_is_most_likely_not_meant) {
  gateway with(echo_with_quota(10));
  with.write_config(
      "policies: {p: {quota: 1, window: 1h}}\n"
      "routes:\n- {match: {path: /**}, service: echo}\n"
      "- {match: {path: /v1/**}, service: echo}\n");
  with.signal(SIGHUP);
  EXPECT_THAT(with.errors_until("the configuration was applied"),
              AllOf(HasSubstr("Z warning: " + with.file() + ":4:12: policy \"p\""),
                    HasSubstr("Z warning: " + with.file() + ":7:3: never reached: the route")));
}

// ---- drain ----

TEST(gateway_drain, ends_what_is_under_way_and_takes_nothing_new) {
  origin api;
  gateway with(proxy_config(api.url()));
  auto idle = with.connect();
  idle.send(get_request);
  auto server = api.accept();
  (void)server.read_request();
  server.send(response("200 OK", "first"));
  EXPECT_EQ(idle.read_response().body, "first");
  auto busy = with.connect();
  busy.send(get_request);
  (void)server.read_request();
  with.signal(SIGTERM);
  EXPECT_TRUE(idle.is_closed());
  expect_eventually([&] { return !with.accepts(); }, "it listens no more");
  EXPECT_EQ(with.admin("/readyz").status(), 503);
  EXPECT_EQ(with.admin("/healthz").status(), 200);
  server.send(response("200 OK", "last"));
  auto const last = busy.read_response();
  EXPECT_EQ(last.body, "last");
  EXPECT_EQ(last.field("Connection"), "close");
  EXPECT_TRUE(busy.is_closed());
  busy.close();
  EXPECT_EQ(with.wait(), 0);
}

TEST(gateway_drain, ends_at_once_when_nothing_is_under_way) {
  for (auto const number : {SIGTERM, SIGINT}) {
    gateway with(echo_with_quota(10));
    EXPECT_EQ(with.get("/a").status(), 200);
    with.signal(number);
    EXPECT_EQ(with.wait(), 0);
  }
}

TEST(gateway_drain, serves_what_waits_to_be_accepted) {
  constexpr int rounds = 5;
  constexpr int clients = 40;
  for (int round = 0; round < rounds; ++round) {
    gateway with(echo_with_quota(1000), 2);
    with.signal(SIGSTOP);
    std::vector<connection> waiting;
    for (int i = 0; i < clients; ++i) {
      waiting.push_back(with.connect());
      waiting.back().send(get_request);
    }
    with.signal(SIGTERM);
    with.signal(SIGCONT);
    for (auto& each : waiting) {
      EXPECT_EQ(each.read_response().status(), 200);
    }
    waiting.clear();
    EXPECT_EQ(with.wait(), 0);
  }
}

TEST(gateway_drain, lets_a_new_connection_speak) {
  gateway with(echo_with_quota(10));
  auto late = with.connect();
  expect_eventually([&] { return with.metric("tidegate_connections_open") == 1; }, "it is taken");
  with.signal(SIGTERM);
  expect_eventually([&] { return !with.accepts(); }, "it listens no more");
  late.send(get_request);
  auto const answer = late.read_response();
  EXPECT_EQ(answer.status(), 200);
  EXPECT_EQ(answer.field("Connection"), "close");
  late.close();
  EXPECT_EQ(with.wait(), 0);
}

TEST(gateway_drain, does_not_wait_long_for_a_new_connection_that_says_nothing) {
  gateway with("http: {header-timeout: 1h}\n" + echo_with_quota(10));
  auto silent = with.connect();
  expect_eventually([&] { return with.metric("tidegate_connections_open") == 1; }, "it is taken");
  with.signal(SIGTERM);
  EXPECT_TRUE(silent.is_closed());
  EXPECT_EQ(with.wait(), 0);
}

TEST(gateway_drain, says_that_it_is_not_ready_before_it_stops_listening) {
  gateway with("drain-delay: 1h\n" + echo_with_quota(10));
  with.signal(SIGTERM);
  expect_eventually([&] { return with.admin("/readyz").status() == 503; }, "it is not ready");
  auto const answer = with.get("/a");
  EXPECT_EQ(answer.status(), 200);
  EXPECT_EQ(answer.field("Connection"), "close");
  with.signal(SIGTERM);  // a second one does not wait
  EXPECT_EQ(with.wait(), 0);
}

TEST(gateway_drain, stops_by_itself_after_the_delay) {
  gateway with(echo_with_quota(10));
  EXPECT_EQ(with.reload("drain-delay: 100ms\n" + echo_with_quota(10)),
            "the configuration was applied");
  with.signal(SIGTERM);
  EXPECT_EQ(with.wait(), 0);
}

// ---- the admin address ----

TEST(gateway_admin, is_healthy_and_ready) {
  gateway const with(echo_with_quota(10));
  EXPECT_EQ(with.admin("/healthz").status(), 200);
  EXPECT_EQ(with.admin("/readyz").status(), 200);
  EXPECT_EQ(with.admin("/none").status(), 404);
}

TEST(gateway_admin, shows_metrics) {
  gateway const with(echo_with_quota(2));
  for (auto const expected : {200, 200, 429}) {
    EXPECT_EQ(with.get("/a").status(), expected);
  }
  auto const metrics = with.admin("/metrics");
  EXPECT_EQ(metrics.status(), 200);
  EXPECT_THAT(metrics.field("Content-Type"), StartsWith("text/plain; version=0.0.4"));
  for (auto const* const line :
       {"# TYPE tidegate_requests_total counter\n",
        "tidegate_requests_total{route=\"all\",status=\"200\"} 2\n",
        "tidegate_requests_total{route=\"all\",status=\"429\"} 1\n",
        "tidegate_decisions_total{policy=\"p\",decision=\"admitted\"} 2\n",
        "tidegate_decisions_total{policy=\"p\",decision=\"refused\"} 1\n",
        "tidegate_request_duration_seconds_count{route=\"all\"} 3\n",
        "tidegate_request_duration_seconds_bucket{route=\"all\",le=\"+Inf\"} 3\n",
        "tidegate_connections_accepted_total 3\n"}) {
    EXPECT_THAT(metrics.body, HasSubstr(line));
  }
  EXPECT_GT(with.metric("process_resident_memory_bytes"), 1e6);
  EXPECT_GT(with.metric("process_cpu_seconds_total"), 0);
}

TEST(gateway_admin, is_not_on_the_address_of_clients) {
  gateway const with("routes: [{match: {path: /v1}, service: echo}]\n");
  for (auto const* const path : {"/metrics", "/healthz", "/readyz", "/"}) {
    EXPECT_EQ(with.get(path).status(), 404) << path;
  }
}

// ---- the description ----

TEST(gateway_description, is_json_for_programs_and_html_for_people) {
  gateway const with(
      "policies: {p: {quota: 10, window: 1h, algorithm: gcra, partition: [header:x-key], "
      "partition-key: hashed}, \"<b>\": {quota: 1, window: 1s}}\n"
      "routes: [{match: {path: /v1}, service: echo, limits: [p]}]\n");
  auto const json = with.get("/.well-known/tidegate");
  EXPECT_EQ(json.status(), 200);
  EXPECT_EQ(json.field("Content-Type"), "application/json");
  EXPECT_EQ(json.field("Vary"), "Accept");
  EXPECT_THAT(
      json.body,
      AllOf(HasSubstr(R"("name":"p","quota":10,"unit":"requests","window":3600)"),
            HasSubstr(R"("sources":["header:x-key"])"), HasSubstr(R"("digest":"sha-256")")));
  auto const html = with.get("/.well-known/tidegate", "Accept: text/html,*/*;q=0.8\r\n");
  EXPECT_EQ(html.status(), 200);
  EXPECT_EQ(html.field("Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(html.body,
              AllOf(StartsWith("<!doctype html>"), HasSubstr("&lt;b&gt;"), Not(HasSubstr("<b>"))));
  for (auto const* const accept :
       {"text/html;q=0", "application/json, text/html;q=0", "*/*, text/html; q=0.0",
        "application/json, text/html;q=0.5", "*/*", "text/htmlx", "application/json"}) {
    auto const answer = with.get("/.well-known/tidegate", "Accept: "s + accept + "\r\n");
    EXPECT_EQ(answer.field("Content-Type"), "application/json") << accept;
  }
  for (auto const* const accept :
       {"TEXT/HTML", "text/*", "text/html, application/json", "application/json;q=0.5, text/html",
        "application/json;q=0.1\r\nAccept: text/html"}) {
    auto const answer = with.get("/.well-known/tidegate", "Accept: "s + accept + "\r\n");
    EXPECT_EQ(answer.field("Content-Type"), "text/html; charset=utf-8") << accept;
  }
  auto const post = with.ask("POST /.well-known/tidegate HTTP/1.1\r\nHost: a.example\r\n\r\n");
  EXPECT_EQ(post.status(), 405);
  EXPECT_EQ(post.field("Allow"), "GET, HEAD");
}

TEST(gateway_description, says_what_counts_what_it_costs_and_how_much_may_come_at_once) {
  gateway const with(
      "policies:\n"
      "  even: {quota: 60, window: 1m, algorithm: gcra, burst: 5, count: successful}\n"
      "  day: {quota: 1000, window: 1d, algorithm: fixed}\n"
      "  slots: {quota: 3, unit: concurrent-requests}\n"
      "  watched: {quota: 9, window: 1m, enforce: shadow}\n"
      "routes:\n"
      "  - {name: search, match: {path: /v1/**, methods: [GET, POST], host: api.example}, service: "
      "echo, limits: [even, watched, day],\n"
      "     cost: {default: 2, \"POST /v1/search\": 5, \"GET /v1/free/**\": 0}}\n"
      "  - {name: open, match: {path: /open}, service: echo, limits: [watched]}\n"
      "  - {name: held, match: {path: /held}, service: echo, limits: [slots]}\n");
  auto const json = with.get("/.well-known/tidegate").body;
  EXPECT_THAT(json, HasSubstr(R"("name":"even","quota":60,"unit":"requests","window":60,)"
                              R"("algorithm":"gcra",)"));
  EXPECT_THAT(json, HasSubstr(R"("partition-key":"none"},"count":"successful","burst":5},)"));
  EXPECT_THAT(json, HasSubstr(R"("partition-key":"none"},"count":"all"},)"));
  EXPECT_THAT(json, HasSubstr(R"("routes":[{"route":"search","path":"/v1/**","methods":["GET",)"
                              R"("POST"],"host":"api.example","limits":["even","day"],)"
                              R"("cost":{"default":2,"rules":[{"methods":["POST"],)"
                              R"("path":"/v1/search","cost":5},{"methods":["GET"],)"
                              R"("path":"/v1/free/**","cost":0}]}},)"
                              R"({"route":"held","path":"/held","limits":["slots"],)"
                              R"("cost":{"default":1,"rules":[]}}])"));
  auto const html = with.get("/.well-known/tidegate", "Accept: text/html\r\n").body;
  EXPECT_THAT(html,
              AllOf(HasSubstr("At most 5 at once"), HasSubstr("status from 400 on costs nothing"),
                    HasSubstr("<code>POST /v1/search</code>: 5"), HasSubstr("All others: 2"),
                    HasSubstr("A request counts until its response has ended")));
}

TEST(gateway_description, is_hidden_only_by_a_route_that_is_meant_to) {
  gateway const of_everything(echo_with_quota(10));
  EXPECT_THAT(of_everything.get("/.well-known/tidegate").body, StartsWith("{\"policies\":["));
  EXPECT_THAT(of_everything.get("/.well-known/other").body, HasSubstr("\"method\":\"GET\""));
  gateway const of_their_own("routes: [{match: {path: /.well-known/**}, service: echo}]\n");
  EXPECT_THAT(of_their_own.get("/.well-known/tidegate").body, HasSubstr("\"method\":\"GET\""));
}

// ---- flags ----

TEST(gateway_flags, stand_for_a_file) {
  serving_origin const api(response("200 OK", "hello"));
  gateway const with(std::vector<std::string>{"--upstream", api.url(), "--listen", "127.0.0.1:0",
                                              "--limit", "2/1m by header:x-api-key"});
  auto const first = with.get("/a", "X-Api-Key: 1\r\n");
  EXPECT_EQ(first.body, "hello");
  EXPECT_EQ(first.field("RateLimit-Policy"), R"("default";q=2;w=60)");
  EXPECT_THAT(first.field("RateLimit"), MatchesRegex(R"("default";r=1;t=[0-9]+)"));
  EXPECT_EQ(with.get("/a", "X-Api-Key: 1\r\n").status(), 200);
  EXPECT_EQ(with.get("/a", "X-Api-Key: 1\r\n").status(), 429);
  EXPECT_EQ(with.get("/a", "X-Api-Key: 2\r\n").status(), 200);
}

TEST(gateway_flags, say_what_is_done) {
  serving_origin const api(response("200 OK", "hello"));
  gateway plain(std::vector<std::string>{"--upstream", api.url(), "--listen", "127.0.0.1:0"});
  EXPECT_EQ(plain.output(), "http://" + plain.authority() + " -> " + api.url() +
                                ", no limits; console: add --admin 127.0.0.1:9901");
  gateway limited(std::vector<std::string>{"--upstream", api.url(), "--listen", "127.0.0.1:0",
                                           "--limit", "2/1m by header:x-api-key"});
  EXPECT_THAT(limited.output(), HasSubstr(", 2 requests a minute for each header:x-api-key;"));
  gateway several(std::vector<std::string>{"--upstream", api.url(), "--listen", "127.0.0.1:0",
                                           "--limit", "1/s", "--limit", "9/2h by host,path",
                                           "--idempotency", "optional", "--admin", "127.0.0.1:0"});
  auto const admin = several.output();
  ASSERT_THAT(admin, StartsWith("admin on "));
  EXPECT_THAT(several.output(), MatchesRegex(".*, 1 request a second for each client-ip, "
                                             "9 requests in 2h for each host and path; "
                                             "Idempotency-Key optional; "
                                             "console: http://127.0.0.1:[0-9]+"));
}

TEST(gateway_flags, are_refused_with_what_is_wrong) {
  auto const wrong =
      run({TIDEGATE_BINARY, "serve", "--upstream", "http://127.0.0.1:1", "--limit", "many"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, StartsWith("error: --limit: expected QUOTA/WINDOW"));
  auto const nothing = run({TIDEGATE_BINARY, "serve"});
  EXPECT_EQ(nothing.status, 2);
  EXPECT_THAT(nothing.err, StartsWith("error: FILE or --upstream is missing\n"));
}

TEST(gateway_listening, says_that_another_gateway_has_the_same_address) {
  std::string const echo = "routes: [{match: {path: /**}, service: echo}]\n";
  gateway first(echo);
  gateway second(echo, gateway_options{.listen = "\"" + first.authority() + "\""});
  (void)second.errors_until("warning: another process also listens on " + first.authority());
  EXPECT_THAT(first.errors(), Not(HasSubstr("another process")));
  EXPECT_EQ(second.get("/").status(), 200);
}

TEST(gateway_flags, do_not_start_where_another_program_listens) {
  origin const taken;
  auto const answer = run({TIDEGATE_BINARY, "serve", "--upstream", "http://127.0.0.1:1", "--listen",
                           taken.authority()});
  EXPECT_EQ(answer.status, 1);
  EXPECT_THAT(answer.err, HasSubstr("cannot listen on " + taken.authority()));
}

}  // namespace
}  // namespace tidegate::e2e
