// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/connection.hpp"
#include "support/redis_server.hpp"

#include <tidegate/engine/loop.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tidegate::store_redis {

/// Sends commands to a server of its own, and waits for what they answer.
class script_server {
 public:
  using numbers = std::vector<std::int64_t>;

  /// The script under the name that the server knows it by.
  auto load(std::string const& script) -> std::string {
    return asked({"SCRIPT", "LOAD", script}).text;
  }
  auto time() -> std::int64_t {
    auto const now = asked({"TIME"});
    return std::stoll(now.items.at(0).text) * 1'000'000 + std::stoll(now.items.at(1).text);
  }
  auto asked(std::vector<std::string> const& words) -> resp_value {
    resp_value got;
    send(words, [&](resp_value value) { got = std::move(value); });
    wait();
    EXPECT_FALSE(got.is_error()) << got.text;
    return got;
  }
  /// Whether the server answers so with an error.
  auto error(std::vector<std::string> const& words) -> bool {
    bool got = false;
    send(words, [&](resp_value const& value) { got = value.is_error(); });
    wait();
    return got;
  }
  void send(std::vector<std::string> const& words, std::move_only_function<void(resp_value)> then) {
    command sent;
    for (auto const& word : words) {
      sent.add(word);
    }
    ++waiting_;
    connection_.send(sent, [this, then = std::move(then)](answer got) mutable {
      --waiting_;
      ASSERT_TRUE(got.has_value()) << got.error().text;
      then(*std::move(got));
    });
  }
  void wait() {
    while (waiting_ > 0) {
      loop_->turn(std::chrono::milliseconds(10));
    }
  }

 private:
  test::redis_server server_;
  std::unique_ptr<engine::loop> loop_ = *engine::loop::make();
  connection connection_{
      *loop_,
      {.server = {"127.0.0.1", server_.port()}, .command_timeout = std::chrono::seconds(30)}};
  int waiting_ = 0;
};

inline auto numbers_of(resp_value const& value) -> script_server::numbers {
  script_server::numbers numbers;
  if (value.is_integer()) {
    numbers.push_back(value.integer);
  }
  for (auto const& item : value.items) {
    numbers.push_back(item.is_integer() ? item.integer : -1);
  }
  return numbers;
}

}  // namespace tidegate::store_redis
