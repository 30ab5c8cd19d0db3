// SPDX-License-Identifier: Apache-2.0
//
// Requests with an Idempotency-Key through a gateway whose store does what a test says: fails, forgets to
// renew, or was changed by somebody else. The gateway runs inside the test.
#include "gateway.hpp"
#include "keyed.hpp"

#include <tidegate/gateway/config.hpp>
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
  std::atomic<int> changes = 0;  ///< that were asked for
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
    ++script_->changes;
    if (script_->changes_fail) {
      answer(failed());
    } else if (script_->changes_fail_but_are_made) {
      script_->records.apply(std::move(change), [](store::apply_answer const&) {});
      answer(failed());
    } else {
      script_->records.apply(std::move(change), std::move(answer));
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
    auto started = tidegate::gateway::server::start(
        *std::move(settings), randomness, [script](tidegate::gateway::config const&) {
          tidegate::gateway::idempotency_parts parts;
          parts.store = std::make_unique<scripted_store>(script);
          return result<tidegate::gateway::idempotency_parts, std::string>(std::move(parts));
        });
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
    client.send(std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: admin\r\n" +
                "Content-Length: " + std::to_string(content.size()) + "\r\n\r\n" +
                std::string(content));
    return client.read_response();
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
  /// What somebody does who has not heard of the owner for too long.
  void lose(std::string const& path) {
    auto const found = record_at(path);
    make(idempotency::lose(key_at(path), found, idempotency::unknown_reason::gateway_stopped,
                           found.changed));
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
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(duplicate.is_silent());
  auto const path = with.path_of("k");
  lose(path);
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
  std::this_thread::sleep_for(50ms);
  auto const path = with.path_of("k");
  lose(path);
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

}  // namespace
}  // namespace tidegate::e2e
