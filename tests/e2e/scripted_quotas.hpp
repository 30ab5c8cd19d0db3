// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gateway.hpp"

#include <tidegate/config/config.hpp>
#include <tidegate/gateway/server.hpp>
#include <tidegate/store/memory_idempotency_store.hpp>
#include <tidegate/store/quota_store.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A gateway inside the test, whose quotas are in a store that does what the test says.
namespace tidegate::e2e {

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
  inner_gateway(std::string const& config, std::shared_ptr<quota_script> const& script)
      : config_(std::make_shared<std::string>(config)) {
    auto settings = parse(config);
    if (!settings) {
      throw std::runtime_error(to_string(settings.error().front()));
    }
    constexpr std::array<std::uint64_t, 4> randomness{1, 2, 3, 4};
    tidegate::gateway::server_options options;
    options.load = [from = config_] { return parse(*from); };
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
  void reload(std::string const& config) const {
    *config_ = config;
    EXPECT_TRUE(server_->reload());
  }
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

  [[nodiscard]] static auto parse(std::string const& config)
      -> result<tidegate::gateway::config, std::vector<tidegate::gateway::config_fault>> {
    return tidegate::gateway::parse_config(
        "listen: \"127.0.0.1:0\"\nadmin: \"127.0.0.1:0\"\nworkers: 1\n"
        "stores: {quota: 'redis://as.the.test.says:1', idempotency: memory}\n" +
            config,
        "test.yaml");
  }

  std::shared_ptr<std::string> config_;  // that a reload reads
  std::unique_ptr<tidegate::gateway::server> server_;
};

/// A configuration with one policy `p` of three requests, and one route with `route` at its end.
[[nodiscard]] inline auto limited(std::string const& url, std::string const& policy,
                                  std::string const& route = "") -> std::string {
  return "upstreams: {api: " + url + "}\npolicies: {p: {quota: 3, window: 1h" +
         (policy.empty() ? "" : ", " + policy) +
         "}}\nroutes:\n  - {match: {path: /**}, upstream: api, limits: [p]" + route + "}\n";
}

class with_scripted_quotas : public testing::Test {
 protected:
  void expect_asked(int times) {
    expect_eventually([&] { return script_->asked == times; }, "the store is asked");
  }

  std::shared_ptr<quota_script> script_ = std::make_shared<quota_script>();
};

}  // namespace tidegate::e2e
