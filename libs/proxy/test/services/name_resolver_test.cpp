// SPDX-License-Identifier: Apache-2.0
#include "services/name_resolver.hpp"

#include <tidegate/config/values.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

/// Names that a test changes while they are looked up.
class proxy_name_resolver : public testing::Test {
 protected:
  proxy_name_resolver() {
    settings_.name = "api";
    settings_.resolve.bounds = {1ms, 1h};
    settings_.servers = {*parse_server_url("http://a.test"), *parse_server_url("http://10.0.0.9")};
  }
  auto look_up(std::string const& name) -> result<balance::name_answer, std::string> {
    std::lock_guard const lock(mutex_);
    ++asked_;
    changed_.notify_all();
    auto const found = names_.find(name);
    if (found == names_.end()) {
      return failure(std::string("it does not exist"));
    }
    return balance::name_answer{{*http::parse_ip_address(found->second)}, 1ms};
  }
  void set(std::string const& name, std::string const& address) {
    std::lock_guard const lock(mutex_);
    names_.erase(name);
    if (!address.empty()) {
      names_.emplace(name, address);
    }
  }
  /// Waits for a look-up that begins after this call, and one more, so that it was taken over.
  void await_look_ups() {
    std::unique_lock lock(mutex_);
    auto const from = asked_;
    EXPECT_TRUE(changed_.wait_for(lock, 30s, [&] { return asked_ >= from + 2; }));
  }
  void use() {
    servers_->use(settings_);
    upstream const one{&settings_, nullptr, servers_, {}};
    resolver_.use({&one, 1}, 30s);
  }
  [[nodiscard]] auto labels() const -> std::vector<std::string> {
    std::vector<std::string> out;
    auto const list = servers_->list();
    for (auto const& [server, weight] : *list) {
      out.push_back(server->identity.label);
    }
    return out;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> names_;
  int asked_ = 0;
  event_log log_;
  upstream_config settings_;
  std::shared_ptr<server_set> servers_ = std::make_shared<server_set>();
  name_resolver resolver_{log_, [this](std::string const& name, std::optional<std::string> const&) {
                            return look_up(name);
                          }};
};

TEST_F(proxy_name_resolver, waits_for_the_first_answer) {
  set("a.test", "10.0.0.1");
  use();
  EXPECT_THAT(labels(), ElementsAre("http://a.test#10.0.0.1", "http://10.0.0.9"));
}

TEST_F(proxy_name_resolver, goes_on_without_a_name_that_fails) {
  use();
  EXPECT_THAT(labels(), ElementsAre("http://10.0.0.9"));
  ASSERT_EQ(resolver_.figures().size(), 1U);
  EXPECT_TRUE(resolver_.figures().front().is_failing);
  set("a.test", "10.0.0.1");
  await_look_ups();
  EXPECT_THAT(labels(), ElementsAre("http://a.test#10.0.0.1", "http://10.0.0.9"));
  EXPECT_FALSE(resolver_.figures().front().is_failing);
  EXPECT_GE(resolver_.figures().front().failures, 1U);
}

TEST_F(proxy_name_resolver, follows_a_name_and_keeps_its_last_address_when_it_fails) {
  set("a.test", "10.0.0.1");
  use();
  set("a.test", "10.0.0.2");
  await_look_ups();
  EXPECT_THAT(labels(), ElementsAre("http://a.test#10.0.0.2", "http://10.0.0.9"));
  set("a.test", "");
  await_look_ups();
  EXPECT_THAT(labels(), ElementsAre("http://a.test#10.0.0.2", "http://10.0.0.9"));
}

TEST_F(proxy_name_resolver, asks_for_no_name_that_no_upstream_has) {
  set("a.test", "10.0.0.1");
  use();
  settings_.servers.erase(settings_.servers.begin());
  use();
  EXPECT_THAT(labels(), ElementsAre("http://10.0.0.9"));
  EXPECT_THAT(resolver_.figures(), IsEmpty());
}

}  // namespace
}  // namespace tidegate::gateway
