// SPDX-License-Identifier: Apache-2.0
//
// Requests whose quotas are in a store that other gateways share, which does what a test says:
// answers when it is let, or fails. The gateway runs inside the test.
#include "gateway.hpp"
#include "keyed.hpp"
#include "raw_http2.hpp"

#include <tidegate/config/config.hpp>
#include <tidegate/gateway/server.hpp>
#include <tidegate/store/memory_idempotency_store.hpp>
#include <tidegate/store/quota_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// What a test says to a store while a gateway uses it, and what the gateway asked.
struct quota_script {
  std::atomic<bool> holds = false;  ///< answers wait for `let_go`
  std::atomic<bool> fails = false;
  std::atomic<bool> is_down = false;
  std::atomic<bool> blocks = false;   ///< the thread of a worker that looks waits here
  std::atomic<bool> blocked = false;  ///< one does
  std::atomic<int> asked = 0;
  std::atomic<std::int64_t> given_back = 0;  ///< units
  std::atomic<int> forgotten = 0;            ///< times
  std::mutex mutex;
  std::vector<std::function<void()>> held;
  store::quota_table table{store::quota_table::options{.partitions_max = 1000}};

  void let_go() {
    holds = false;
    std::vector<std::function<void()>> now;
    {
      std::lock_guard const lock(mutex);
      now = std::exchange(held, {});
    }
    for (auto const& answer : now) {
      answer();
    }
  }
};

class scripted_quotas final : public store::quota_store {
 public:
  scripted_quotas(std::shared_ptr<quota_script> script, engine::loop& on)
      : script_(std::move(script)), loop_(on) {
    status_.gateways = 2;
  }

  auto spend_here(std::span<store::shared_charge const> /*charges*/, instant /*now*/,
                  std::span<store::charged> /*results*/)
      -> result<std::optional<bool>, store::store_error> override {
    script_->blocked = script_->blocks.load();
    script_->blocked.notify_all();
    script_->blocks.wait(true);
    if (script_->is_down) {
      return failure(store::store_error{store::store_fault::unavailable, "as the test says"});
    }
    return std::nullopt;
  }

  void spend(std::span<store::shared_charge const> charges, instant now,
             std::move_only_function<void(store::spend_answer)> answer) override {
    std::vector<store::charge> plain;
    for (auto const& charge : charges) {
      plain.push_back(charge.local);
    }
    store::spent spent;
    spent.admitted = script_->table.spend(plain, now, spent.results);
    auto const carried = std::make_shared<decltype(answer)>(std::move(answer));
    auto reply = [this, carried, spent] {
      loop_.post([carried, spent, failed = script_->fails.load()] {
        if (failed) {
          (*carried)(failure(store::store_error{store::store_fault::unavailable, "so it is"}));
        } else {
          (*carried)(spent);
        }
      });
    };
    // A charge of nothing is only a question, by the admin address.
    bool const is_question =
        std::ranges::all_of(plain, [](auto const& of) { return of.cost == 0; });
    script_->asked += is_question ? 0 : 1;
    if (script_->holds && !is_question) {
      std::lock_guard const lock(script_->mutex);
      script_->held.emplace_back(std::move(reply));
    } else {
      reply();
    }
  }

  void settle(store::shared_charge const& charge, instant admitted_at, instant now,
              std::int64_t units) override {
    script_->table.settle(charge.local, {}, admitted_at, now, units);
    script_->given_back -= units;
  }

  void forget(store::shared_charge const& charge,
              std::move_only_function<void(result<void, store::store_error>)> answer) override {
    if (script_->fails) {
      answer(failure(store::store_error{store::store_fault::unavailable, "so it is"}));
      return;
    }
    forget_here(charge);
    answer({});
  }
  void forget_here(store::shared_charge const& charge) override {
    (void)script_->table.forget(charge.local.policy_id, charge.local.partition);
    ++script_->forgotten;
  }

  auto look(store::shared_charge const& charge, instant now) const -> ratelimit::service override {
    return script_->table.look(charge.local, now);
  }

 private:
  std::shared_ptr<quota_script> script_;
  engine::loop& loop_;
};

/// A gateway in this process, with one thread.
class inner_gateway {
 public:
  inner_gateway(std::string const& config, std::shared_ptr<quota_script> const& script) {
    auto settings = tidegate::gateway::parse_config(
        "listen: \"127.0.0.1:0\"\nadmin: \"127.0.0.1:0\"\nworkers: 1\n"
        "stores: {quota: 'redis://as.the.test.says:1', idempotency: memory}\n" +
            config,
        "test.yaml");
    if (!settings) {
      throw std::runtime_error(to_string(settings.error().front()));
    }
    constexpr std::array<std::uint64_t, 4> randomness{1, 2, 3, 4};
    tidegate::gateway::server_options options;
    auto& open = options.stores;
    open.idempotency = [](tidegate::gateway::config const&, auto const& /*clock*/) {
      tidegate::gateway::idempotency_parts parts;
      parts.store = std::make_unique<store::memory_idempotency_store>(
          store::memory_idempotency_store::options{});
      return result<tidegate::gateway::idempotency_parts, std::string>(std::move(parts));
    };
    open.quotas = [script](tidegate::gateway::config const&, engine::loop& on) {
      return result<std::unique_ptr<store::quota_store>, std::string>(
          std::make_unique<scripted_quotas>(script, on));
    };
    auto started =
        tidegate::gateway::server::start(*std::move(settings), randomness, std::move(options));
    if (!started) {
      throw std::runtime_error(started.error());
    }
    server_ = *std::move(started);
  }

  [[nodiscard]] auto server() const -> tidegate::gateway::server& { return *server_; }
  [[nodiscard]] auto connect() const -> connection {
    return connect_to(port_of(server_->addresses().front()));
  }
  [[nodiscard]] auto ask(std::string_view request) const -> message {
    auto client = connect();
    client.send(request);
    return client.read_response();
  }
  [[nodiscard]] auto get(std::string_view lines = "") const -> message {
    return ask("GET /a HTTP/1.1\r\nHost: a\r\n" + std::string(lines) + "\r\n");
  }
  [[nodiscard]] auto admin(std::string_view path) const -> message {
    auto client = connect_to(port_of(server_->admin_address()));
    client.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return client.read_response();
  }
  [[nodiscard]] auto ask_admin(std::string_view what, std::string_view content) const -> message {
    auto client = connect_to(port_of(server_->admin_address()));
    client.send(
        "POST /api/v1/partitions/" + std::string(what) +
        " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
        std::to_string(content.size()) + "\r\n\r\n" + std::string(content));
    return client.read_response();
  }

 private:
  [[nodiscard]] static auto port_of(std::string const& address) -> std::uint16_t {
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }

  std::unique_ptr<tidegate::gateway::server> server_;
};

[[nodiscard]] auto limited(std::string const& url, std::string const& policy,
                           std::string const& route = "") -> std::string {
  return "upstreams: {api: " + url + "}\npolicies: {p: {quota: 3, window: 1h" +
         (policy.empty() ? "" : ", " + policy) +
         "}}\nroutes:\n  - {match: {path: /**}, upstream: api, limits: [p]" + route + "}\n";
}

constexpr std::string_view fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

class gateway_shared_quota : public testing::Test {
 protected:
  void expect_asked(int times) {
    expect_eventually([&] { return script_->asked == times; }, "the store is asked");
  }

  std::shared_ptr<quota_script> script_ = std::make_shared<quota_script>();
};

TEST_F(gateway_shared_quota, looks_up_and_resets_a_partition_in_the_store) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), "partition: []"), script_);
  for (int i = 0; i < 4; ++i) {
    (void)with.get();
  }
  EXPECT_EQ(with.get().status(), 429);
  constexpr std::string_view all = R"({"policy":"p","values":[]})";
  EXPECT_THAT(with.ask_admin("lookup", all).body, HasSubstr(R"("quota":3,"remaining":0,)"));
  auto const reset = with.ask_admin("reset", all);
  EXPECT_EQ(reset.status(), 200);
  EXPECT_THAT(reset.body, HasSubstr(R"("quota":3,"remaining":3,)"));
  expect_eventually([&] { return script_->forgotten == 2; }, "every thread forgets what it knew");
  EXPECT_EQ(with.get().status(), 200);
  script_->fails = true;
  EXPECT_EQ(with.ask_admin("lookup", all).status(), 503);
  EXPECT_EQ(with.ask_admin("reset", all).status(), 503);
}

TEST_F(gateway_shared_quota, is_not_waited_for_by_the_admin_address_when_it_blocks_a_data_loop) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), "partition: []"), script_);
  script_->blocks = true;
  auto first = with.connect();
  first.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
  script_->blocked.wait(false);
  auto second = with.connect();
  second.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(with.admin("/healthz").body, "ok\n");
  EXPECT_EQ(with.admin("/readyz").status(), 200);
  EXPECT_THAT(with.admin("/metrics").body, HasSubstr("\ntidegate_connections_open 1\n"));
  EXPECT_EQ(with.admin("/").status(), 200);
  for (auto const* const path : {"config", "policies", "partitions", "directory"}) {
    EXPECT_EQ(with.admin(std::string("/api/v1/") + path).status(), 200) << path;
  }
  EXPECT_THAT(with.ask_admin("lookup", R"({"policy":"p","values":[]})").body,
              HasSubstr(R"("quota":3,"remaining":3,)"));
  (void)with.server().begin_drain();
  EXPECT_EQ(with.admin("/healthz").status(), 200);
  EXPECT_EQ(with.admin("/readyz").status(), 503);
  EXPECT_TRUE(first.is_silent());
  EXPECT_TRUE(second.is_silent());
  script_->blocks = false;
  script_->blocks.notify_all();
  EXPECT_EQ(first.read_response().status(), 200);
  EXPECT_EQ(second.read_response().status(), 200);
}

TEST_F(gateway_shared_quota, gives_no_temporary_quota_that_other_gateways_would_not_know_of) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), "partition: []"), script_);
  auto const answer =
      with.ask_admin("quota", R"({"policy":"p","values":[],"quota":9,"seconds":60})");
  EXPECT_EQ(answer.status(), 501);
  EXPECT_THAT(answer.body, HasSubstr("Several gateways share these quotas"));
  EXPECT_THAT(with.get().field("RateLimit-Policy"), HasSubstr("q=3"));
}

TEST_F(gateway_shared_quota, says_since_when_the_store_fails_and_that_it_works_again) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), ""), script_);
  constexpr std::string_view up = "tidegate_store_up{store=\"quota\",kind=\"redis\"} ";
  auto const says = [&](std::string const& value) {
    return with.admin("/metrics").body.contains(std::string(up) + value + "\n");
  };
  EXPECT_TRUE(says("1"));
  script_->fails = true;
  expect_eventually([&] { return says("0"); }, "it is down");
  EXPECT_THAT(
      with.admin("/metrics").body,
      testing::ContainsRegex("tidegate_store_failing_since_timestamp_seconds\\{store=\"quota\","
                             "kind=\"redis\"\\} [0-9]{10}"));
  script_->fails = false;
  expect_eventually([&] { return says("1"); }, "it is up");
}

TEST_F(gateway_shared_quota, refuses_what_the_store_refuses_and_says_what_it_said) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), ""), script_);
  for (int left = 2; left >= 0; --left) {
    auto const answer = with.get();
    EXPECT_EQ(answer.status(), 200);
    EXPECT_THAT(answer.field("RateLimit"), StartsWith("\"p\";r=" + std::to_string(left)));
  }
  auto const refused = with.get();
  EXPECT_EQ(refused.status(), 429);
  EXPECT_THAT(refused.body, HasSubstr("quota-exceeded"));
  EXPECT_EQ(api.requests(), 3U);
}

TEST_F(gateway_shared_quota, holds_a_request_and_what_follows_until_the_store_answers) {
  origin api;
  inner_gateway const with(limited(api.url(), ""), script_);
  script_->holds = true;
  auto client = with.connect();
  client.send(
      "POST /a%2e/b?q=1 HTTP/1.1\r\nHost: a\r\nX-Odd:  two  \r\nContent-Length: 6\r\n\r\nabc");
  expect_asked(1);
  client.send("def");
  client.send("GET /second HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(api.is_untouched());
  EXPECT_TRUE(client.is_silent());
  script_->let_go();
  auto server = api.accept();
  auto const first = server.read_request();
  EXPECT_EQ(first.start_line, "POST /a./b?q=1 HTTP/1.1");
  EXPECT_EQ(first.field("X-Odd"), "two");
  EXPECT_EQ(first.body, "abcdef");
  server.send(fine);
  EXPECT_EQ(client.read_response().status(), 200);
  EXPECT_EQ(server.read_request().start_line, "GET /second HTTP/1.1");
  server.send(fine);
  EXPECT_EQ(client.read_response().body, "ok");
}

TEST_F(gateway_shared_quota, holds_a_large_upload_without_taking_it_all_in) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), ""), script_);
  script_->holds = true;
  auto client = with.connect();
  std::string const content(32 << 20, 'x');
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(content.size()) +
              "\r\n\r\n");
  expect_asked(1);
  auto const sent = client.send_until_blocked(content);
  EXPECT_LT(sent, content.size());
  script_->let_go();
  client.send(std::string_view(content).substr(sent));
  EXPECT_EQ(client.read_response().status(), 200);
}

TEST_F(gateway_shared_quota, keeps_the_order_of_pipelined_requests) {
  serving_origin const api([](message const& request) {
    return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + request.start_line.substr(5, 2);
  });
  inner_gateway const with(limited(api.url(), ""), script_);
  auto client = with.connect();
  std::string all;
  for (auto const* const path : {"/a1", "/a2", "/a3", "/a4"}) {
    all += "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n";
  }
  client.send(all);
  for (auto const* const body : {"a1", "a2", "a3"}) {
    EXPECT_EQ(client.read_response().body, body);
  }
  EXPECT_EQ(client.read_response().status(), 429);
}

TEST_F(gateway_shared_quota, releases_what_was_spent_for_a_client_that_has_left) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), ""), script_);
  script_->holds = true;
  auto client = with.connect();
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  expect_asked(1);
  client.abort();
  (void)with.ask("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n");  // the loop went round meanwhile
  script_->let_go();
  expect_eventually([&] { return script_->given_back == 1; }, "one unit is given back");
  EXPECT_EQ(api.requests(), 0U);
}

TEST_F(gateway_shared_quota, holds_streams_of_http2_apart) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), ""), script_);
  script_->holds = true;
  raw_client client(with.connect());
  client.post(1);
  client.get(3);
  client.send(data, 0, 1, "abc");
  expect_asked(2);
  client.reset(3);
  client.send(data, 1, 1, "def");
  script_->let_go();
  auto const head = client.read(headers);
  EXPECT_EQ(head.stream, 1U);
  EXPECT_EQ(client.read(data).payload, "ok");
  expect_eventually([&] { return script_->given_back == 1; }, "the other one is given back");
  EXPECT_EQ(api.requests(), 1U);
}

TEST_F(gateway_shared_quota, asks_once_for_a_request_with_a_key) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), "", ", idempotency: {mode: required}"), script_);
  script_->holds = true;
  auto client = with.connect();
  client.send(post("\"k\""));
  expect_asked(1);
  EXPECT_EQ(api.requests(), 0U);
  script_->let_go();
  EXPECT_EQ(client.read_response().status(), 200);
  EXPECT_EQ(with.ask(post("\"k\"")).field("Idempotent-Replayed"), "true");
  EXPECT_EQ(script_->asked, 1);
  EXPECT_EQ(api.requests(), 1U);
}

TEST_F(gateway_shared_quota, does_not_run_a_key_whose_client_has_gone_before_the_answer) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), "", ", idempotency: {mode: required}"), script_);
  script_->holds = true;
  auto client = with.connect();
  client.send(post("\"k\""));
  expect_asked(1);
  client.abort();
  (void)with.ask("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n");
  script_->let_go();
  expect_eventually([&] { return script_->given_back == 1; }, "one unit is given back");
  EXPECT_EQ(with.ask(post("\"k\"")).field("Idempotent-Replayed"), "(none)");
  EXPECT_EQ(api.requests(), 1U);
}

TEST_F(gateway_shared_quota, asks_about_the_cost_of_a_replay) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(
      limited(api.url(), "", ", idempotency: {mode: required, replay-cost: 1}"), script_);
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 200);
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 200);
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 200);
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 429);
  EXPECT_EQ(script_->asked, 4);
}

TEST_F(gateway_shared_quota, limits_who_guesses_tokens) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(
      limited(api.url(), "",
              ", auth: {bearer-tokens: [{name: a, sha256: " + std::string(64, 'a') + "}]}"),
      script_);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(with.get("Authorization: Bearer no\r\n").status(), 401);
  }
  EXPECT_EQ(with.get("Authorization: Bearer no\r\n").status(), 429);
}

// ---- without the store ----

TEST_F(gateway_shared_quota, admits_without_the_store_where_the_policy_says_so) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), "on-store-failure: allow"), script_);
  script_->fails = true;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(with.get().status(), 200);
  }
}

TEST_F(gateway_shared_quota, refuses_without_the_store_where_the_policy_says_so) {
  serving_origin const api{std::string(fine)};
  inner_gateway const with(limited(api.url(), "on-store-failure: deny"), script_);
  script_->is_down = true;
  auto const answer = with.get();
  EXPECT_EQ(answer.status(), 503);
  EXPECT_EQ(answer.field("Retry-After"), "1");
  EXPECT_EQ(answer.field("RateLimit"), "(none)");
  EXPECT_EQ(script_->asked, 0);
  EXPECT_EQ(api.requests(), 0U);
  script_->is_down = false;
  EXPECT_EQ(with.get().status(), 200);
}

TEST_F(gateway_shared_quota, counts_its_share_without_the_store) {
  serving_origin const api{std::string(fine)};
  // One of two gateways: half of the quota of 3, rounded down.
  inner_gateway const with(limited(api.url(), ""), script_);
  for (auto* const what : {&script_->fails, &script_->is_down}) {
    *what = true;
    EXPECT_EQ(with.get().status(), what == &script_->fails ? 200 : 429);
    EXPECT_EQ(with.get().status(), 429);
  }
}

TEST_F(gateway_shared_quota, holds_concurrent_requests_until_they_end) {
  origin api;
  inner_gateway const with("upstreams: {api: " + api.url() +
                               "}\npolicies: {p: {quota: 1, unit: concurrent-requests}}\n"
                               "routes:\n  - {match: {path: /**}, upstream: api, limits: [p]}\n",
                           script_);
  auto first = with.connect();
  first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  auto server = api.accept();
  (void)server.read_request();
  EXPECT_EQ(with.get().status(), 429);
  server.send(fine);
  EXPECT_EQ(first.read_response().status(), 200);
  EXPECT_EQ(script_->given_back, 1);
  first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  (void)server.read_request();
  server.send(fine);
  EXPECT_EQ(first.read_response().status(), 200);
}

}  // namespace
}  // namespace tidegate::e2e
