// SPDX-License-Identifier: Apache-2.0
//
// Requests with an Idempotency-Key through a gateway whose store does what a test says: fails,
// forgets to renew, or was changed by another gateway. The gateway runs inside the test.
#include "gateway.hpp"
#include "keyed.hpp"

#include <tidegate/config/config.hpp>
#include <tidegate/gateway/server.hpp>
#include <tidegate/idempotency/decide.hpp>
#include <tidegate/store/memory_idempotency_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace tidegate::e2e {
namespace {

using namespace std::chrono_literals;
using idempotency::record_state;
using testing::HasSubstr;

/// What a test says to a store while a gateway uses it.
struct store_script {
  std::atomic<bool> finds_fail = false;
  std::atomic<bool> changes_fail = false;
  std::atomic<bool> changes_fail_but_are_made = false;
  store::memory_idempotency_store records{{}};
};

class scripted_store final : public store::idempotency_store {
 public:
  explicit scripted_store(std::shared_ptr<store_script> script) : script_(std::move(script)) {}

  void find(idempotency::lookup_key const& key,
            std::move_only_function<void(store::find_answer)> answer) override {
    if (script_->finds_fail) {
      answer(failed());
    } else {
      script_->records.find(key, std::move(answer));
    }
  }

  void apply(idempotency::change change,
             std::move_only_function<void(store::apply_answer)> answer) override {
    if (script_->changes_fail) {
      answer(failed());
    } else if (script_->changes_fail_but_are_made) {
      script_->records.apply(std::move(change), [](store::apply_answer const&) {});
      answer(failed());
    } else {
      script_->records.apply(std::move(change), std::move(answer));
    }
  }

  void list_unknown(std::size_t records,
                    std::move_only_function<void(store::list_answer)> answer) override {
    if (script_->finds_fail) {
      answer(failed());
    } else {
      script_->records.list_unknown(records, std::move(answer));
    }
  }
  void sweep(idempotency::wall_time /*now*/, std::size_t /*records*/) override {}
  [[nodiscard]] auto used() const -> usage override { return script_->records.used(); }

 private:
  static auto failed() -> std::unexpected<store::store_error> {
    return failure(store::store_error{store::store_fault::unavailable, "as the test says"});
  }

  std::shared_ptr<store_script> script_;
};

/// A gateway in this process.
class inner_gateway {
 public:
  inner_gateway(std::string const& config, std::shared_ptr<store_script> const& script) {
    auto settings = tidegate::gateway::parse_config(
        "listen: \"127.0.0.1:0\"\nadmin: \"127.0.0.1:0\"\nworkers: 2\n" + config, "test.yaml");
    if (!settings) {
      throw std::runtime_error(to_string(settings.error().front()));
    }
    constexpr std::array<std::uint64_t, 4> randomness{1, 2, 3, 4};
    tidegate::gateway::server_options options;
    auto& open = options.stores;
    open.idempotency = [script](tidegate::gateway::config const&, auto const& /*clock*/) {
      tidegate::gateway::idempotency_parts parts;
      parts.store = std::make_unique<scripted_store>(script);
      return result<tidegate::gateway::idempotency_parts, std::string>(std::move(parts));
    };
    auto started =
        tidegate::gateway::server::start(*std::move(settings), randomness, std::move(options));
    if (!started) {
      throw std::runtime_error(started.error());
    }
    server_ = *std::move(started);
  }

  [[nodiscard]] auto connect() const -> connection {
    return connect_to(port_of(server_->addresses().front()));
  }
  [[nodiscard]] auto ask(std::string_view request) const -> message {
    auto client = connect();
    client.send(request);
    return client.read_response();
  }
  [[nodiscard]] auto admin(std::string_view method, std::string_view target,
                           std::string_view content = "") const -> message {
    auto client = connect_to(port_of(server_->admin_address()));
    client.send(
        std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n" +
        "Content-Length: " + std::to_string(content.size()) + "\r\n\r\n" + std::string(content));
    return client.read_response();
  }
  /// Comes back when so many requests wait for the answer to another.
  void expect_waiting(std::size_t requests) const {
    expect_eventually(
        [&] {
          return admin("GET", "/metrics")
                     .body.find("\ntidegate_idempotency_waiting " + std::to_string(requests) +
                                "\n") != std::string::npos;
        },
        "a duplicate waits");
  }
  /// The path of a key in the admin API.
  [[nodiscard]] auto path_of(std::string_view key) const -> std::string {
    auto const found = admin("GET", "/api/v1/idempotency?scope=Bearer+x&key=" + std::string(key));
    return "/api/v1/idempotency/" + found.body.substr(std::string_view(R"({"id":")").size(), 64);
  }

 private:
  [[nodiscard]] static auto port_of(std::string const& address) -> std::uint16_t {
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }

  std::unique_ptr<tidegate::gateway::server> server_;
};

class gateway_idempotency_store : public testing::Test {
 protected:
  [[nodiscard]] auto record_at(std::string const& path) -> idempotency::record {
    std::optional<idempotency::record> record;
    script_->records.find(key_at(path), [&](store::find_answer const& found) {
      record = found && *found ? std::optional((*found)->record) : std::nullopt;
    });
    return record.value();
  }
  /// Makes a change behind the back of the gateway.
  void make(idempotency::change change) {
    script_->records.apply(std::move(change), [](store::apply_answer const& answer) {
      EXPECT_TRUE(answer && answer->made);
    });
  }
  /// What another gateway does when the lease of the owner has ended.
  void mark_unknown(std::string const& path) {
    auto const found = record_at(path);
    make(idempotency::mark_unknown(key_at(path), found,
                                   idempotency::unknown_reason::gateway_stopped, found.changed));
  }
  /// What FLUSHALL does.
  void forget(std::string const& path) {
    auto const found = record_at(path);
    make({.key = key_at(path), .when = {found.token, {found.state}}});
  }
  /// A claim of another gateway that tries once more.
  [[nodiscard]] auto claim_again(std::string const& path) -> idempotency::record {
    auto const found = record_at(path);
    idempotency::request_facts const request{
        .key = key_at(path), .fingerprint = found.fingerprint, .token = found.token + 1};
    idempotency::policy policy;
    policy.upstream_deduplicates = true;
    policy.retry_unknown = true;
    auto const decided = decide(&found, request, policy, found.changed);
    make(decided.claim.value());
    return *decided.claim->next;
  }
  [[nodiscard]] static auto key_at(std::string const& path) -> idempotency::lookup_key {
    return idempotency::parse_lookup_key(path.substr(path.size() - 64)).value();
  }

  data_folder data_;
  std::shared_ptr<store_script> script_ = std::make_shared<store_script>();
};

// ---- an operator resolves while others wait ----

TEST_F(gateway_idempotency_store, tells_a_waiting_duplicate_that_an_operator_knows_it_ran) {
  origin api;
  inner_gateway const with(keyed_config(api.url(), data_, "in-flight: wait"), script_);
  auto owner = with.connect();
  owner.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  auto duplicate = with.connect();
  duplicate.send(post("\"k\""));
  with.expect_waiting(1);
  EXPECT_TRUE(duplicate.is_silent());
  auto const path = with.path_of("k");
  mark_unknown(path);
  EXPECT_TRUE(duplicate.is_silent());
  EXPECT_EQ(with.admin("POST", path + "/resolve", R"({"outcome":"executed"})").status(), 200);
  expect_code(duplicate.read_response(), 409, "response-not-replayable");
  // The owner comes back, and changes nothing any more.
  server.send(response("200 OK", "late"));
  expect_code(owner.read_response(), 409, "response-not-replayable");
  expect_code(with.ask(post("\"k\"")), 409, "response-not-replayable");
  EXPECT_TRUE(api.is_untouched());
}

TEST_F(gateway_idempotency_store, runs_a_waiting_duplicate_when_an_operator_knows_it_did_not_run) {
  origin api;
  inner_gateway const with(keyed_config(api.url(), data_, "in-flight: wait"), script_);
  auto owner = with.connect();
  owner.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  auto duplicate = with.connect();
  duplicate.send(post("\"k\""));
  with.expect_waiting(1);
  auto const path = with.path_of("k");
  mark_unknown(path);
  EXPECT_TRUE(duplicate.is_silent());
  EXPECT_EQ(with.admin("POST", path + "/resolve", R"({"outcome":"not-executed"})").status(), 200);
  auto second = api.accept();
  (void)second.read_request();
  // The owner comes back while the other one runs.
  server.send(response("200 OK", "late"));
  expect_code(owner.read_response(), 409, "in-flight");
  second.send(response("200 OK", "done"));
  EXPECT_EQ(duplicate.read_response().body, "done");
  EXPECT_EQ(with.ask(post("\"k\"")).body, "done");
}

// ---- the store fails ----

TEST_F(gateway_idempotency_store, sends_nothing_while_the_store_cannot_be_asked) {  // N10
  origin api;
  inner_gateway const with(keyed_config(api.url(), data_), script_);
  script_->finds_fail = true;
  auto const refused = with.ask(post("\"k\""));
  expect_code(refused, 503, "store-unavailable");
  EXPECT_NE(refused.field("Retry-After"), "(none)");
  script_->finds_fail = false;
  script_->changes_fail = true;
  expect_code(with.ask(post("\"k\"")), 503, "store-unavailable");
  // The connection comes before the claim, but no byte.
  auto server = api.accept();
  EXPECT_TRUE(server.is_closed());
  EXPECT_EQ(with.admin("GET", "/api/v1/idempotency?scope=Bearer+x&key=k").status(), 404);
  script_->finds_fail = true;
  EXPECT_EQ(with.admin("GET", "/api/v1/idempotency?scope=Bearer+x&key=k").status(), 503);
  EXPECT_THAT(with.admin("GET", "/metrics").body, HasSubstr("outcome=\"store-failed\"} 2"));
}

TEST_F(gateway_idempotency_store, passes_requests_on_without_protection_where_the_route_says_so) {
  serving_origin const api(response("200 OK", "done"));
  inner_gateway const with(keyed_config(api.url(), data_, "on-store-failure: pass"), script_);
  for (auto* const failing : {&script_->finds_fail, &script_->changes_fail}) {
    *failing = true;
    for (int i = 0; i < 2; ++i) {
      auto const answer = with.ask(post("\"k\""));
      EXPECT_EQ(answer.status(), 200);
      EXPECT_EQ(answer.body, "done");
      EXPECT_EQ(answer.field("Idempotency-Status"), "bypassed");
      EXPECT_EQ(answer.count("Idempotent-Replayed"), 0U);
    }
    *failing = false;
  }
  EXPECT_EQ(api.requests(), 4U);
  EXPECT_THAT(with.admin("GET", "/metrics").body, HasSubstr("outcome=\"bypassed\"} 4"));
  // The store is back, and so is the protection.
  expect_eventually([&] { return with.ask(post("\"other\"")).count("Idempotency-Status") == 0; },
                    "requests are protected");
  EXPECT_EQ(with.ask(post("\"other\"")).field("Idempotent-Replayed"), "true");
}

TEST_F(gateway_idempotency_store, numbers_no_attempt_that_is_not_protected) {
  origin api;
  inner_gateway const with(
      keyed_config(api.url(), data_, "on-store-failure: pass, max-response: 1KiB"), script_);
  script_->finds_fail = true;
  auto client = with.connect();
  client.send(post("\"k\""));
  auto server = api.accept();
  auto const seen = server.read_request();
  EXPECT_EQ(seen.count("Idempotency-Attempt"), 0U);
  EXPECT_EQ(seen.field("Idempotency-Key"), "\"k\"");
  auto const large = std::string(100'000, 'x');
  server.send(response("200 OK", large));
  auto const answer = client.read_response();
  EXPECT_EQ(answer.body, large);
  EXPECT_EQ(answer.field("Idempotency-Status"), "bypassed");
}

TEST_F(gateway_idempotency_store, releases_a_claim_that_was_made_when_it_seemed_to_fail) {
  serving_origin const api(response("200 OK", "done"));
  inner_gateway const with(keyed_config(api.url(), data_), script_);
  script_->changes_fail_but_are_made = true;
  expect_code(with.ask(post("\"k\"")), 503, "store-unavailable");
  script_->changes_fail_but_are_made = false;
  expect_code(with.ask(post("\"k\"")), 409, "in-flight");
  expect_eventually([&] { return with.ask(post("\"k\"")).status() == 200; }, "it is given back");
  EXPECT_EQ(api.requests(), 1U);
}

TEST_F(gateway_idempotency_store, does_not_know_what_became_of_a_claim_that_it_passed_on) {
  serving_origin const api(response("200 OK", "done"));
  inner_gateway const with(keyed_config(api.url(), data_, "on-store-failure: pass"), script_);
  script_->changes_fail_but_are_made = true;
  EXPECT_EQ(with.ask(post("\"k\"")).field("Idempotency-Status"), "bypassed");
  script_->changes_fail_but_are_made = false;
  message retried;
  expect_eventually(
      [&] {
        retried = with.ask(post("\"k\""));
        return retried.body.find("in-flight") == std::string::npos;
      },
      "the claim is settled");
  expect_code(retried, 409, "outcome-unknown");
  EXPECT_EQ(api.requests(), 1U);
}

TEST_F(gateway_idempotency_store, answers_and_writes_it_down_when_the_store_is_back) {  // N11
  origin api;
  inner_gateway const with(keyed_config(api.url(), data_, "in-flight: wait"), script_);
  auto client = with.connect();
  client.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  auto duplicate = with.connect();
  duplicate.send(post("\"k\""));
  with.expect_waiting(1);
  script_->changes_fail = true;
  server.send(response("201 Created", "done"));
  auto const answer = client.read_response();
  EXPECT_EQ(answer.status(), 201);
  EXPECT_EQ(answer.body, "done");
  EXPECT_EQ(answer.count("Idempotency-Status"), 0U) << "it was protected";
  EXPECT_TRUE(duplicate.is_silent());
  script_->changes_fail = false;
  auto const again = duplicate.read_response();  // woken when it is written down
  EXPECT_EQ(again.body, "done");
  EXPECT_EQ(again.field("Idempotent-Replayed"), "true");
  EXPECT_EQ(with.ask(post("\"k\"")).body, "done");
  EXPECT_EQ(
      with.admin("GET", "/metrics").body.find("\ntidegate_idempotency_store_failures_total 0\n"),
      std::string::npos);
}

TEST_F(gateway_idempotency_store, streams_a_large_answer_though_the_store_takes_nothing) {
  origin api;
  inner_gateway const with(keyed_config(api.url(), data_, "max-response: 1KiB"), script_);
  auto client = with.connect();
  client.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  script_->changes_fail = true;
  auto const large = std::string(300'000, 'x');
  std::thread sends([&] { server.send(response("200 OK", large)); });
  EXPECT_EQ(client.read_response().body, large);
  sends.join();
  script_->changes_fail = false;
  expect_eventually(
      [&] {
        return with.ask(post("\"k\"")).body.find("response-not-replayable") != std::string::npos;
      },
      "it is written down");
}

TEST_F(gateway_idempotency_store, writes_an_unknown_outcome_down_when_the_store_is_back) {
  origin api;
  inner_gateway const with(keyed_config(api.url(), data_), script_);
  auto client = with.connect();
  client.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  script_->changes_fail = true;
  server.close();
  auto const answer = client.read_response();
  EXPECT_EQ(answer.status(), 502);
  EXPECT_THAT(answer.body, HasSubstr("outcome-unknown"));
  script_->changes_fail = false;
  expect_eventually(
      [&] { return with.ask(post("\"k\"")).body.find("outcome-unknown") != std::string::npos; },
      "it is written down");
}

// ---- another gateway was faster ----

/// Another gateway claims the key again after the lease of its owner, for an upstream that
/// deduplicates.
TEST_F(gateway_idempotency_store, gives_the_client_of_an_overtaken_owner_the_answer_of_the_other) {
  origin api;
  inner_gateway const with(keyed_config(api.url(), data_), script_);
  auto client = with.connect();
  client.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  auto const path = with.path_of("k");
  mark_unknown(path);
  auto const other = claim_again(path);
  make(idempotency::complete(key_at(path), other, {201, {{"X-Other", "1"}}, "other", 5, true},
                             other.changed));
  server.send(response("200 OK", "mine"));
  auto const answer = client.read_response();
  EXPECT_EQ(answer.status(), 201);
  EXPECT_EQ(answer.body, "other");
  EXPECT_EQ(answer.field("Idempotent-Replayed"), "true");
  EXPECT_EQ(with.ask(post("\"k\"")).body, "other");
}

TEST_F(gateway_idempotency_store, tells_the_client_of_an_overtaken_owner_that_another_one_runs) {
  origin api;
  inner_gateway const with(keyed_config(api.url(), data_, "in-flight: wait"), script_);
  auto client = with.connect();
  client.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  auto const path = with.path_of("k");
  mark_unknown(path);
  auto const other = claim_again(path);
  server.send(response("200 OK", "mine"));
  expect_code(client.read_response(), 409, "in-flight");
  EXPECT_EQ(record_at(path).token, other.token) << "it was not touched";
}

TEST_F(gateway_idempotency_store, tells_the_client_of_a_purged_owner_that_the_outcome_is_unknown) {
  origin api;
  inner_gateway const with(keyed_config(api.url(), data_), script_);
  auto client = with.connect();
  client.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  auto const path = with.path_of("k");
  mark_unknown(path);
  EXPECT_EQ(with.admin("DELETE", path).status(), 204);
  server.send(response("200 OK", "mine"));
  expect_code(client.read_response(), 409, "outcome-unknown");
  EXPECT_EQ(with.admin("GET", path).status(), 404) << "an owner that comes back adds nothing";
}

TEST_F(gateway_idempotency_store, sends_nothing_again_that_it_has_under_way_when_records_are_lost) {
  origin api;
  inner_gateway const with(keyed_config(api.url(), data_), script_);
  auto client = with.connect();
  client.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  auto const path = with.path_of("k");
  forget(path);
  expect_code(with.ask(post("\"k\"")), 409, "in-flight");
  expect_code(with.ask(post("\"k\"", "another")), 422, "key-reused");
  auto waiting = with.connect();
  waiting.send(post("\"k\"", "{\"a\":1}", "/a", "Prefer: wait=20\r\n"));
  with.expect_waiting(1);
  server.send(response("201 Created", "once"));
  EXPECT_EQ(client.read_response().body, "once");
  EXPECT_EQ(waiting.read_response().field("Idempotent-Replayed"), "true");
  EXPECT_EQ(with.ask(post("\"k\"")).field("Idempotent-Replayed"), "true");
  EXPECT_TRUE(server.is_silent());
  EXPECT_TRUE(api.is_untouched());
}

TEST_F(gateway_idempotency_store, knows_that_an_outcome_is_unknown_though_its_record_was_lost) {
  origin api;
  inner_gateway const with(keyed_config(api.url(), data_), script_);
  auto client = with.connect();
  client.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  forget(with.path_of("k"));
  server.close();
  expect_code(client.read_response(), 502, "outcome-unknown");
  expect_code(with.ask(post("\"k\"")), 409, "outcome-unknown");
  EXPECT_TRUE(api.is_untouched());
}

TEST_F(gateway_idempotency_store, resolves_an_unknown_outcome_by_a_late_true_answer) {  // N7
  origin api;
  inner_gateway const with(keyed_config(api.url(), data_), script_);
  auto client = with.connect();
  client.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  mark_unknown(with.path_of("k"));
  expect_code(with.ask(post("\"k\"")), 409, "outcome-unknown");
  server.send(response("200 OK", "late"));
  EXPECT_EQ(client.read_response().body, "late");
  EXPECT_EQ(with.ask(post("\"k\"")).body, "late");
}

}  // namespace
}  // namespace tidegate::e2e
