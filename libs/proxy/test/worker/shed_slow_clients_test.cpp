// SPDX-License-Identifier: Apache-2.0
#include "worker/shed_slow_clients.hpp"

#include "serving_worker.hpp"

#include <tidegate/config/config.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t buffered_max = 1024 * 1024;

/// A client for which something waits.
class slow_client final : public client_connection {
 public:
  slow_client(worker& on, std::size_t octets, std::chrono::nanoseconds waited)
      : worker_(on), place_(*on.add_client()), octets_(octets), since_(on.loop.now() - waited) {
    *place_ = this;
    worker_.count_buffered(counted_, octets);
  }
  slow_client(slow_client const&) = delete;
  auto operator=(slow_client const&) -> slow_client& = delete;
  ~slow_client() { drop(); }
  void drain() override {}
  void drop() override {
    if (!std::exchange(is_dropped_, true)) {
      worker_.count_buffered(counted_, 0);
      worker_.remove_client(place_);
    }
  }
  [[nodiscard]] auto waiting_octets() const -> std::size_t override { return octets_; }
  [[nodiscard]] auto waiting_since(instant /*now*/) const -> instant override { return since_; }
  [[nodiscard]] auto is_dropped() const -> bool { return is_dropped_; }

 private:
  worker& worker_;
  worker::client_place place_;
  std::size_t octets_;
  instant since_;
  std::size_t counted_ = 0;
  bool is_dropped_ = false;
};

class proxy_shed_slow_clients : public testing::Test {
 protected:
  proxy_shed_slow_clients() {
    auto read = parse_config(
        "listen: 127.0.0.1:0\nhttp: {max-buffered: 1MiB}\n"
        "routes: [{name: all, match: {path: /**}, service: echo}]\n",
        "t.yaml");
    EXPECT_TRUE(read) << (read ? "" : read.error().front().message);
    policy_ids ids;
    upstream_states loads;
    worker_.use(*active_config::make(*std::move(read), ids, loads));
    shared_.connections.clients_max = 1000;
    shared_.workers.push_back(&worker_);
  }
  [[nodiscard]] auto client(std::size_t octets, std::chrono::nanoseconds waited)
      -> std::unique_ptr<slow_client> {
    return std::make_unique<slow_client>(worker_, octets, waited);
  }
  void turn() {
    for (int i = 0; i < 4; ++i) {
      loop_->turn(0ms);
    }
  }
  [[nodiscard]] auto buffered() const -> std::int64_t { return shared_.memory.buffered.load(); }

  store::quota_table table_{{.partitions_max = 10}};
  access_log log_;
  shared_state shared_{table_, log_, std::make_shared<event_log>()};
  std::unique_ptr<engine::loop> loop_ = *engine::loop::make();
  serving_worker worker_{*loop_, shared_, std::make_shared<worker_metrics>(), log_.add_source(), 1};
};

TEST_F(proxy_shed_slow_clients, drops_no_client_while_there_is_room) {
  auto const first = client(buffered_max / 2, 10s);
  auto const second = client(buffered_max / 2, 10s);
  turn();
  EXPECT_FALSE(first->is_dropped());
  EXPECT_FALSE(second->is_dropped());
  EXPECT_EQ(buffered(), static_cast<std::int64_t>(buffered_max));
}

TEST_F(proxy_shed_slow_clients, drops_those_for_which_most_has_waited_for_longest) {
  auto const reader = client(buffered_max / 2, 0s);
  auto const slowest = client(buffered_max / 2, 10s);
  auto const small = client(10, 100s);
  EXPECT_FALSE(slowest->is_dropped()) << "not in the middle of a turn";
  turn();
  EXPECT_TRUE(slowest->is_dropped());
  EXPECT_FALSE(reader->is_dropped());
  EXPECT_FALSE(small->is_dropped()) << "it is not the reason";
  EXPECT_EQ(worker_.metrics->connections_shed.value(), 1U);
  EXPECT_EQ(shared_.memory.shed_requests.load(), 0U) << "the round has ended";
}

TEST_F(proxy_shed_slow_clients, drops_as_many_as_it_takes) {
  std::vector<std::unique_ptr<slow_client>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(client(buffered_max / 2, std::chrono::seconds(i)));
  }
  turn();
  EXPECT_FALSE(clients[0]->is_dropped());
  EXPECT_FALSE(clients[1]->is_dropped());
  EXPECT_TRUE(clients[2]->is_dropped());
  EXPECT_TRUE(clients[3]->is_dropped());
  EXPECT_LE(buffered(), static_cast<std::int64_t>(buffered_max));
}

TEST_F(proxy_shed_slow_clients, can_do_so_again) {
  auto const kept = client(buffered_max / 2, 0s);
  for (int i = 0; i < 3; ++i) {
    auto const slow = client(buffered_max, 10s);
    turn();
    EXPECT_TRUE(slow->is_dropped()) << i;
  }
  EXPECT_FALSE(kept->is_dropped());
}

TEST_F(proxy_shed_slow_clients, drops_the_largest_where_there_is_no_memory) {
  auto const small = client(100, 10s);
  auto const half = client(500, 0s);
  auto const large = client(1000, 0s);
  worker_.shedder.shed_largest();
  EXPECT_TRUE(large->is_dropped());
  EXPECT_TRUE(half->is_dropped());
  EXPECT_FALSE(small->is_dropped());
  worker_.shedder.shed_largest();
  EXPECT_TRUE(small->is_dropped()) << "it is the largest now";
  worker_.shedder.shed_largest();
}

TEST_F(proxy_shed_slow_clients, counts_a_text_once_for_all_that_wait_for_it) {
  std::string const text(1000, 'x');
  auto first = worker_.shedder.hold_text(text);
  EXPECT_EQ(buffered(), 1000);
  auto second = worker_.shedder.hold_text(text);
  EXPECT_EQ(buffered(), 1000);
  first.reset();
  EXPECT_EQ(buffered(), 1000);
  first.reset();
  auto moved = std::move(second);
  EXPECT_EQ(buffered(), 1000);
  moved = {};
  EXPECT_EQ(buffered(), 0);
}

TEST_F(proxy_shed_slow_clients, counts_changes_only) {
  std::size_t counted = 0;
  worker_.count_buffered(counted, 10);
  worker_.count_buffered(counted, 10);
  EXPECT_EQ(buffered(), 10);
  worker_.count_buffered(counted, 3);
  EXPECT_EQ(buffered(), 3);
  worker_.count_buffered(counted, 0);
  EXPECT_EQ(buffered(), 0);
}

TEST_F(proxy_shed_slow_clients, shares_half_of_the_memory_equally) {
  EXPECT_EQ(worker_.share_of_buffers(1, buffered_max), buffered_max / 2);
  EXPECT_EQ(worker_.share_of_buffers(1, 1000), 1000U) << "but not more than this";
  auto const first = client(0, 0s);
  auto const second = client(0, 0s);
  EXPECT_EQ(worker_.share_of_buffers(1, buffered_max), buffered_max / 4);
  EXPECT_EQ(worker_.share_of_buffers(buffered_max, buffered_max), buffered_max) << "nor less";
}

TEST_F(proxy_shed_slow_clients, holds_no_bodies_when_half_of_the_memory_is_in_use) {
  EXPECT_TRUE(worker_.may_hold_bodies());
  auto const first = client(buffered_max / 2, 0s);
  EXPECT_TRUE(worker_.may_hold_bodies());
  auto const second = client(1, 0s);
  EXPECT_FALSE(worker_.may_hold_bodies());
}

TEST_F(proxy_shed_slow_clients, lets_in_only_as_many_clients_as_there_may_be) {
  shared_.connections.clients_max = 2;
  auto const first = client(0, 0s);
  auto second = client(0, 0s);
  EXPECT_EQ(worker_.add_client(), std::nullopt);
  EXPECT_EQ(worker_.metrics->connections_open.value(), 2U);
  second.reset();
  auto const third = client(0, 0s);
  EXPECT_EQ(shared_.connections.clients.load(), 2);
}

}  // namespace
}  // namespace tidegate::gateway
