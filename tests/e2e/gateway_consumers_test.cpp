// SPDX-License-Identifier: Apache-2.0
//
// API keys of consumers, in the configuration and in a file that is followed, and quotas by plan.
#include "gateway.hpp"
#include "keyed.hpp"
#include "process.hpp"

#include "support/redis_server.hpp"

#include <tidegate/base/sha256.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::e2e {
namespace {

using namespace std::chrono_literals;
using test::redis_server;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

auto digest_of(std::string const& key) -> std::string {
  std::string out;
  for (auto const octet : sha256::of(std::string_view(key))) {
    constexpr std::string_view digits = "0123456789abcdef";
    out += digits[std::to_integer<unsigned>(octet) >> 4U];
    out += digits[std::to_integer<unsigned>(octet) & 15U];
  }
  return out;
}

auto key(std::string const& text) -> std::string {
  return "{name: n" + digest_of(text).substr(0, 8) + ", sha256: " + digest_of(text) + "}";
}

/// Two consumers with plans, one without.
auto const consumers = "acme: {plan: pro, keys: [" + key("acme-key") + ", " + key("acme-next") +
                       "], attributes: {quota: 4}}\nfree rider: {plan: free, keys: [" +
                       key("free-key") + "]}\nzoe: {keys: [" + key("zoe-key") + "]}\n";

auto indented(std::string const& text) -> std::string {
  std::string out = "  ";
  for (char const c : text) {
    out += c;
    out += c == '\n' ? "  " : "";
  }
  return out.substr(0, out.find_last_not_of(' ') + 1);
}

/// Consumers in the configuration, and a route with keys.
auto config_of(std::string const& url, std::string const& auth, std::string const& route = "",
               std::string const& more = "") -> std::string {
  return "consumers:\n" + indented(consumers) + "upstreams: {api: \"" + url + "\"}\n" + more +
         "routes: [{match: {path: /**}, upstream: api, auth: {" + auth + "}" + route + "}]\n";
}

auto const in_header = std::string("api-keys: {in: [header:x-api-key, query:api_key, bearer]}");

auto with_key(std::string const& text) -> std::string {
  return "X-Api-Key: " + text + "\r\n";
}

/// An origin that answers with what it got.
class mirror {
 public:
  [[nodiscard]] auto url() const -> std::string { return origin_.url(); }

 private:
  serving_origin origin_{[](message const& request) {
    std::string got = request.start_line + "\n";
    for (auto const& [name, value] : request.fields) {
      got += name + ": " + value + "\n";
    }
    return response("200 OK", got + request.body + "\n" + request.trailers);
  }};
};

TEST(gateway_consumers, let_in_who_has_a_key_and_no_other) {
  mirror const api;
  gateway const with(config_of(api.url(), in_header));
  EXPECT_EQ(with.get("/", with_key("acme-key")).status(), 200);
  EXPECT_EQ(with.get("/", with_key("acme-next")).status(), 200);
  EXPECT_EQ(with.get("/?api_key=free-key").status(), 200);
  EXPECT_EQ(with.get("/", "Authorization: bearer zoe-key\r\n").status(), 200);
  auto const without = with.get("/");
  EXPECT_EQ(without.status(), 401);
  EXPECT_EQ(without.field("WWW-Authenticate"), "Bearer realm=\"tidegate\"");
  EXPECT_EQ(without.field("Content-Type"), "application/problem+json");
  auto const wrong = with.get("/", with_key("acme-kez"));
  EXPECT_EQ(wrong.status(), 401);
  EXPECT_EQ(wrong.field("WWW-Authenticate"), "Bearer realm=\"tidegate\", error=\"invalid_token\"");
  auto const twice = with.get("/", with_key("acme-key") + with_key("acme-key"));
  EXPECT_EQ(twice.status(), 400);
  EXPECT_THAT(twice.body, HasSubstr("header:x-api-key more than once"));
}

TEST(gateway_consumers, keep_their_keys_from_the_upstream_and_tell_it_who_asks) {
  mirror const api;
  gateway const with(config_of(
      api.url(), in_header + ", pass: {principal: X-Consumer, plan: X-Plan}, optional: true"));
  auto const got = with.get("/a?b=%41&api_key=other&c",
                            with_key("acme-key") + "X-Consumer: root\r\nX_Plan: root\r\n")
                       .body;
  EXPECT_THAT(got, StartsWith("GET /a?b=%41&c HTTP/1.1\n"));
  EXPECT_THAT(got, HasSubstr("X-Consumer: acme\nX-Plan: pro\n"));
  for (auto const* const secret : {"acme-key", "other", "root"}) {
    EXPECT_THAT(got, Not(HasSubstr(secret)));
  }
  EXPECT_THAT(with.get("/").body, HasSubstr("X-Plan: anonymous\n"));
  // Nor in trailers, however they are spelled.
  auto const trailers = with.ask(
      "POST / HTTP/1.1\r\nHost: a\r\nX-Api-Key: acme-key\r\nTransfer-Encoding: chunked\r\n\r\n"
      "1\r\nx\r\n0\r\nX-Consumer: root\r\nx_consumer: root\r\nX-Api-Key: root\r\nX-Fine: "
      "yes\r\n\r\n");
  EXPECT_THAT(trailers.body, HasSubstr("X-Fine: yes"));
  EXPECT_THAT(trailers.body, Not(HasSubstr("root")));
}

TEST(gateway_consumers, leave_no_key_in_the_log_the_metrics_and_the_console) {
  mirror const api;
  data_folder const data;
  auto const file = data.path() + "/access.log";
  gateway with(config_of(api.url(), in_header, ", limits: [p]",
                         "access-log: {file: " + file +
                             ", query: true}\npolicies: {p: {quota: 1, window: 1m, partition: "
                             "[header:x-api-key, query:api_key]}}\n"));
  EXPECT_EQ(with.get("/a?x=1&api_key=acme-key&y").status(), 200);
  EXPECT_EQ(with.get("/a?x=1&api_key=acme-key&y").status(), 429);
  EXPECT_EQ(with.get("/a", with_key("free-key")).status(), 200);
  EXPECT_EQ(with.get("/a", with_key("wrong-key")).status(), 401);
  std::string log;
  expect_eventually(
      [&] {
        std::ifstream in(file);
        log.assign(std::istreambuf_iterator<char>(in), {});
        return std::ranges::count(log, '\n') == 4;
      },
      "four lines");
  EXPECT_THAT(log, HasSubstr(R"("query":"x=1&y")"));
  EXPECT_THAT(log, HasSubstr(R"("principal":"acme")"));
  EXPECT_THAT(log, HasSubstr(R"("reason":"credential-unknown")"));
  auto const said = log + with.errors() + with.admin("/metrics").body +
                    with.admin("/api/v1/policies").body + with.admin("/api/v1/partitions").body +
                    with.admin("/api/v1/config").body + with.get("/.well-known/tidegate").body;
  for (auto const* const secret : {"acme-key", "free-key", "wrong-key"}) {
    EXPECT_THAT(said, Not(HasSubstr(secret)));
    EXPECT_THAT(said, Not(HasSubstr(digest_of(secret))));
  }
}

TEST(gateway_consumers, own_idempotency_keys_by_name_whichever_key_they_show) {
  mirror const api;
  data_folder const data;
  gateway const with(config_of(api.url(), in_header, ", idempotency: {mode: required}",
                               "data: " + data.path() + "\n"));
  auto const post_with = [&](std::string const& target, std::string const& lines) {
    return with.ask("POST " + target + " HTTP/1.1\r\nHost: a\r\nIdempotency-Key: \"k\"\r\n" +
                    lines + "Content-Length: 0\r\n\r\n");
  };
  EXPECT_EQ(post_with("/a?b", with_key("acme-key")).field("Idempotent-Replayed"), "(none)");
  EXPECT_EQ(post_with("/a?b", with_key("acme-next")).field("Idempotent-Replayed"), "true");
  EXPECT_EQ(post_with("/a?b&api_key=acme-key", "").field("Idempotent-Replayed"), "true");
  EXPECT_EQ(post_with("/a?b", with_key("free-key")).field("Idempotent-Replayed"), "(none)");
}

TEST(gateway_consumers, are_refused_with_the_limits_that_need_no_principal) {
  mirror const api;
  gateway const with(
      config_of(api.url(), in_header, ", limits: [address, own]",
                "policies:\n  address: {quota: 3, window: 1h, partition: [client-ip]}\n"
                "  own: {quota: 2, window: 1h, partition: [principal]}\n"));
  auto const refused = with.get("/");
  EXPECT_EQ(refused.status(), 401);
  EXPECT_THAT(refused.field("RateLimit"), StartsWith("\"address\";r=2"));
  EXPECT_THAT(refused.field("RateLimit-Policy"), Not(HasSubstr("own")));
  EXPECT_EQ(with.get("/", with_key("x")).status(), 401);
  EXPECT_THAT(with.get("/", with_key("acme-key")).field("RateLimit"), HasSubstr("\"own\";r=1"));
  EXPECT_EQ(with.get("/").status(), 429);  // guessing is limited
}

TEST(gateway_consumers, list_the_header_of_their_keys_for_pages_of_other_origins) {
  mirror const api;
  gateway const with(config_of(api.url(), in_header, ", cors: {origins: \"https://a.example\"}"));
  auto const answer = with.ask(
      "OPTIONS / HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\n"
      "Access-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: x-api-key\r\n\r\n");
  EXPECT_EQ(answer.status(), 204);
  EXPECT_THAT(answer.field("Access-Control-Allow-Headers"), HasSubstr("x-api-key"));
}

// ---- in a file ----

/// Consumers in a file, beside a configuration with them.
class followed {
 public:
  followed() { write(consumers); }
  void write(std::string const& text) const {
    std::ofstream(file() + ".new") << text;
    std::filesystem::rename(file() + ".new", file());
  }
  [[nodiscard]] auto file() const -> std::string { return data_.path() + "/who.yaml"; }
  [[nodiscard]] auto config(std::string const& more = "") const -> std::string {
    return "consumers: {file: " + file() + "}\n" + more +
           "routes: [{match: {path: /**}, service: echo, auth: {" + in_header + "}}]\n";
  }

 private:
  data_folder data_;
};

TEST(gateway_consumers, in_a_file_are_followed_without_a_reload) {
  followed const who;
  gateway with(who.config());
  EXPECT_EQ(with.get("/", with_key("acme-key")).status(), 200);
  EXPECT_EQ(with.get("/", with_key("new-key")).status(), 401);
  EXPECT_EQ(with.metric("tidegate_consumers"), 3);
  EXPECT_EQ(with.metric("tidegate_consumer_keys"), 4);
  who.write("acme: {keys: [" + key("new-key") + "]}\n");
  expect_eventually([&] { return with.get("/", with_key("new-key")).status() == 200; },
                    "the new key is good");
  EXPECT_EQ(with.get("/", with_key("acme-key")).status(), 401);
  EXPECT_THAT(with.errors_until("read again"), HasSubstr("1 consumers, 1 keys"));

  who.write("acme: {keys: [{name: x}]}\n");
  auto const said = with.errors_until("stays in use");
  EXPECT_THAT(said, HasSubstr(who.file() + ":1:15: \"sha256\" is missing"));
  EXPECT_EQ(with.get("/", with_key("new-key")).status(), 200);
  EXPECT_EQ(with.metric("tidegate_consumers_last_reload_successful"), 0);
  EXPECT_EQ(with.metric("tidegate_consumers_reload_failures_total"), 1);

  who.write(consumers);
  expect_eventually([&] { return with.get("/", with_key("acme-key")).status() == 200; },
                    "the file is good again");
  EXPECT_EQ(with.metric("tidegate_consumers_last_reload_successful"), 1);
  // A reload reads it as well.
  EXPECT_THAT(with.reload(who.config()), HasSubstr("was applied"));
  EXPECT_EQ(with.get("/", with_key("acme-key")).status(), 200);
}

TEST(gateway_consumers, in_a_file_lose_a_key_within_a_second) {
  followed const who;
  gateway const with(who.config(), 2);
  auto client = with.connect();
  auto const ask = [&] {
    client.send("GET / HTTP/1.1\r\nHost: a\r\n" + with_key("free-key") + "\r\n");
    return client.read_response().status();
  };
  EXPECT_EQ(ask(), 200);
  for (int i = 0; i < 3; ++i) {
    who.write("acme: {keys: [" + key("acme-key") + "]}\n");
    auto const begun = std::chrono::steady_clock::now();
    expect_eventually([&] { return ask() == 401; }, "the key is revoked");
    auto const took = std::chrono::steady_clock::now() - begun;
    std::cout << "revoked after " << took / 1ms << " ms\n";
    EXPECT_LT(took, 1s);
    who.write(consumers);
    expect_eventually([&] { return ask() == 200; }, "it is there again");
  }
}

TEST(gateway_consumers, in_a_file_are_checked_before_the_start) {
  followed const who;
  who.write("acme: {plans: pro}\n");
  data_folder const data;
  auto const config = data.path() + "/t.yaml";
  std::ofstream(config) << "listen: '127.0.0.1:0'\n" << who.config();
  auto const checked = run({TIDEGATE_BINARY, "check", "-c", config});
  EXPECT_EQ(checked.status, 2);
  EXPECT_THAT(checked.err + checked.out,
              HasSubstr(who.file() + ":1:8: unknown key \"plans\"; did you mean \"plan\"?"));
  std::filesystem::remove(who.file());
  auto const missing = run({TIDEGATE_BINARY, "check", "-c", config});
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.err + missing.out,
              HasSubstr(":2:19: consumers: cannot read " + who.file() + ": No such file"));
}

// ---- quotas by plan ----

auto const by_plan = std::string(
    "quota: {by: plan, free: 2, pro: 5, anonymous: 0, default: 3}, window: 1h, partition: "
    "[principal]");

auto quota_config(std::string const& policy, std::string const& more = "") -> std::string {
  return "consumers:\n" + indented(consumers) + more + "policies: {p: {" + policy +
         "}}\nroutes: [{match: {path: /**}, service: echo, limits: [p], auth: {" + in_header +
         ", optional: true}}]\n";
}

/// How many requests in a row are let in.
auto admitted(gateway const& with, std::string const& lines, int asked = 8) -> int {
  int count = 0;
  for (int i = 0; i < asked; ++i) {
    count += with.get("/", lines).status() == 200 ? 1 : 0;
  }
  return count;
}

TEST(gateway_plans, have_quotas_of_their_own_with_every_algorithm) {
  for (auto const* const algorithm : {"fixed", "sliding", "gcra"}) {
    gateway const with(quota_config(by_plan + ", algorithm: " + algorithm));
    auto const first = with.get("/", with_key("acme-key"));
    EXPECT_EQ(first.field("RateLimit-Policy"), "\"p\";q=5;w=3600") << algorithm;
    EXPECT_THAT(first.field("RateLimit"), StartsWith("\"p\";r=4;")) << algorithm;
    EXPECT_EQ(admitted(with, with_key("acme-next")), 4) << algorithm;  // one consumer, two keys
    EXPECT_EQ(admitted(with, with_key("free-key")), 2) << algorithm;
    EXPECT_EQ(admitted(with, with_key("zoe-key")), 3) << algorithm;
    auto const refused = with.get("/", with_key("free-key"));
    EXPECT_EQ(refused.status(), 429);
    EXPECT_EQ(refused.field("RateLimit-Policy"), "\"p\";q=2;w=3600") << algorithm;
    auto const none = with.get("/");
    EXPECT_EQ(none.status(), 429) << algorithm;
    EXPECT_EQ(none.field("RateLimit-Policy"), "\"p\";q=0;w=3600") << algorithm;
    EXPECT_EQ(none.field("RateLimit"), "\"p\";r=0;t=3600") << algorithm;
    EXPECT_EQ(none.field("Retry-After"), "3600") << algorithm;
  }
}

TEST(gateway_plans, bound_what_is_held_at_a_time) {
  gateway const with(quota_config(
      "quota: {by: plan, free: 0, default: 1}, unit: concurrent-requests, partition: [principal]"));
  EXPECT_EQ(admitted(with, with_key("acme-key"), 3), 3);
  auto const none = with.get("/", with_key("free-key"));
  EXPECT_EQ(none.status(), 429);
  EXPECT_EQ(none.field("Retry-After"), "1");
}

TEST(gateway_plans, may_be_a_number_of_the_consumer_itself) {
  gateway const with(quota_config(
      "quota: {by: attribute:quota, default: 1, max: 10}, window: 1h, partition: [principal]"));
  EXPECT_EQ(with.get("/", with_key("acme-key")).field("RateLimit-Policy"), "\"p\";q=4;w=3600");
  EXPECT_EQ(admitted(with, with_key("acme-key")), 3);
  EXPECT_EQ(admitted(with, with_key("zoe-key")), 1);
}

TEST(gateway_plans, are_one_partition_where_they_are_its_source) {
  gateway const with(quota_config("quota: 3, window: 1h, partition: [plan, attribute:quota]"));
  EXPECT_EQ(admitted(with, with_key("free-key")), 3);
  EXPECT_EQ(admitted(with, with_key("acme-key")), 3);
  EXPECT_EQ(admitted(with, ""), 3);
}

TEST(gateway_plans, that_change_hold_at_once_and_keep_what_was_used) {
  followed const who;
  gateway const with("consumers: {file: " + who.file() + "}\npolicies: {p: {" + by_plan +
                     "}}\nroutes: [{match: {path: /**}, service: echo, limits: [p], auth: {" +
                     in_header + "}}]\n");
  EXPECT_EQ(admitted(with, with_key("free-key")), 2);
  who.write("free rider: {plan: pro, keys: [" + key("free-key") + "]}\n");
  expect_eventually(
      [&] { return with.get("/", with_key("free-key")).field("RateLimit-Policy").contains("q=5"); },
      "it has another plan");
  // One of the five was the question, or none if it was refused before.
  EXPECT_EQ(admitted(with, with_key("free-key")), 2);
}

TEST(gateway_plans, are_shown_to_clients_and_operators) {
  gateway const with(quota_config(by_plan));
  EXPECT_EQ(admitted(with, with_key("acme-key"), 1), 1);
  auto const quotas = HasSubstr(
      R"("quota":3,"quotas":{"by":"plan","default":3,"plans":{"free":2,"pro":5,"anonymous":0}})");
  EXPECT_THAT(with.ask("GET /.well-known/tidegate HTTP/1.1\r\nHost: a\r\nAccept: "
                       "application/json\r\n\r\n")
                  .body,
              quotas);
  EXPECT_THAT(with.admin("/api/v1/policies").body, quotas);
  EXPECT_THAT(with.admin("/api/v1/partitions?policy=p").body,
              HasSubstr(R"("quota":5,"remaining":4)"));
}

// ---- several gateways ----

/// 64 clients of two plans ask three gateways that share quotas until nothing is admitted.
TEST(gateway_plans, are_exact_over_three_gateways) {
  if (!redis_server::is_installed()) {
    GTEST_SKIP() << redis_server::missing;
  }
  constexpr int free_quota = 1500;
  constexpr int pro_quota = 6000;
  for (auto const* const algorithm : {"fixed", "sliding", "gcra"}) {
    redis_server const redis;
    auto const config = quota_config("quota: {by: plan, free: " + std::to_string(free_quota) +
                                         ", pro: " + std::to_string(pro_quota) +
                                         ", default: 0}, window: 24h, on-store-failure: deny, "
                                         "partition: [principal], algorithm: " +
                                         algorithm,
                                     "stores: {quota: \"redis://" + redis.address() + "\"}\n");
    std::vector<std::unique_ptr<gateway>> gateways;
    for (int i = 0; i < 3; ++i) {
      gateways.push_back(std::make_unique<gateway>(config));
    }
    std::array<std::atomic<int>, 2> seen{};
    std::atomic<int> other = 0;
    {
      std::vector<std::jthread> threads;
      for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
          constexpr int depth = 8;
          constexpr int rounds = pro_quota * 4 / 32 / depth;  // each plan asks for four quotas
          std::vector<connection> clients;
          for (int i = 0; i < 16; ++i) {
            clients.push_back(gateways[static_cast<std::size_t>(i + thread) % 3]->connect());
          }
          std::array<std::string, 2> bursts;
          for (int i = 0; i < depth; ++i) {
            bursts[0] += "GET / HTTP/1.1\r\nHost: a\r\n" + with_key("free-key") + "\r\n";
            bursts[1] += "GET / HTTP/1.1\r\nHost: a\r\n" + with_key("acme-key") + "\r\n";
          }
          for (int round = 0; round < rounds; ++round) {
            for (std::size_t i = 0; i < clients.size(); ++i) {
              clients[i].send(bursts.at(i % 2));
            }
            for (std::size_t i = 0; i < clients.size(); ++i) {
              for (int j = 0; j < depth; ++j) {
                auto const status = clients[i].read_response().status();
                seen.at(i % 2) += status == 200 ? 1 : 0;
                other += status != 200 && status != 429 ? 1 : 0;
              }
            }
          }
        });
      }
    }
    // What drains meanwhile with gcra, of a quota for a day.
    int const drained = std::string_view(algorithm) == "gcra" ? 2 : 0;
    EXPECT_GE(seen[0], free_quota) << algorithm;
    EXPECT_LE(seen[0], free_quota + drained) << algorithm;
    EXPECT_GE(seen[1], pro_quota) << algorithm;
    EXPECT_LE(seen[1], pro_quota + drained) << algorithm;
    EXPECT_EQ(other, 0) << algorithm;
    std::cout << algorithm << ": free " << seen[0] << " of " << free_quota << ", pro " << seen[1]
              << " of " << pro_quota << "\n";
  }
}

TEST(gateway_plans, of_three_gateways_lose_a_revoked_key_within_a_second) {
  followed const who;
  std::vector<std::unique_ptr<gateway>> gateways;
  for (int i = 0; i < 3; ++i) {
    gateways.push_back(std::make_unique<gateway>(who.config()));
    EXPECT_EQ(gateways.back()->get("/", with_key("free-key")).status(), 200);
  }
  who.write("acme: {keys: [" + key("acme-key") + "]}\n");
  auto const begun = std::chrono::steady_clock::now();
  for (auto const& each : gateways) {
    expect_eventually([&] { return each->get("/", with_key("free-key")).status() == 401; },
                      "the key is revoked");
    EXPECT_EQ(each->get("/", with_key("acme-key")).status(), 200);
  }
  auto const took = std::chrono::steady_clock::now() - begun;
  std::cout << "revoked everywhere after " << took / 1ms << " ms\n";
  EXPECT_LT(took, 1s);
}

}  // namespace
}  // namespace tidegate::e2e
