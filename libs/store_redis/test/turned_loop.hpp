// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/client.hpp"
#include "protocol/connection.hpp"
#include "support/redis_server.hpp"

#include <tidegate/engine/loop.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tidegate::store_redis {

/// A loop that a test turns by hand.
class turned_loop : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::redis_server::is_installed()) {
      GTEST_SKIP() << test::redis_server::missing;
    }
  }

  [[nodiscard]] auto on() -> engine::loop& { return *loop_; }

  /// Turns the loop until `holds`.
  template <class Condition>
  [[nodiscard]] auto until(Condition holds) -> bool {
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!holds() && std::chrono::steady_clock::now() < end) {
      loop_->turn(std::chrono::milliseconds(10));
    }
    return holds();
  }

  /// Sends and waits for the answer.
  [[nodiscard]] auto ask(connection& to, command const& what) -> answer {
    std::optional<answer> got;
    to.send(what, [&](answer a) { got = std::move(a); });
    EXPECT_TRUE(until([&] { return got.has_value(); }));
    return got.value_or(failure(store::store_error{}));
  }
  [[nodiscard]] auto ask(client& to, std::string_view key, command what) -> answer {
    std::optional<answer> got;
    to.send(key, std::move(what), [&](answer a) { got = std::move(a); });
    EXPECT_TRUE(until([&] { return got.has_value(); }));
    return got.value_or(failure(store::store_error{}));
  }
  /// The text of the answer, or of the error.
  template <class... Arguments>
  [[nodiscard]] auto text(Arguments&&... arguments) -> std::string {
    auto const got = ask(std::forward<Arguments>(arguments)...);
    return got ? got->text : "error: " + got.error().text;
  }

 private:
  std::unique_ptr<engine::loop> loop_ = *engine::loop::make();
};

}  // namespace tidegate::store_redis
