// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http.hpp"

#include <tidegate/engine/loop.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the tests of endpoints share: requests as a connection hands them on, and what was replied.
namespace tidegate::gateway {

inline constexpr std::string_view json_content = "application/json";

/// `target` may have a query.
[[nodiscard]] inline auto make_request(wire::method method, std::string_view target,
                                       std::string_view content = "",
                                       std::string_view content_type = json_content)
    -> admin_request {
  auto const mark = target.find('?');
  return {method, std::string(target.substr(0, mark)),
          std::string(mark == std::string_view::npos ? "" : target.substr(mark + 1)),
          std::string(content_type), std::string(content)};
}

[[nodiscard]] inline auto make_loop() -> std::unique_ptr<engine::loop> {
  auto made = engine::loop::make();
  EXPECT_TRUE(made);
  return *std::move(made);
}

/// Turns the loop until that is so; a test that would wait for long fails.
inline void turn_until(engine::loop& loop, std::function<bool()> const& is_so) {
  auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!is_so() && std::chrono::steady_clock::now() < end) {
    loop.turn(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(is_so());
}

/// The replies of one endpoint, in the order in which they came.
class reply_log {
 public:
  [[nodiscard]] auto next() -> std::move_only_function<void(admin_answer)> {
    return [to = answers_](admin_answer answer) { to->push_back(std::move(answer)); };
  }
  [[nodiscard]] auto all() const -> std::vector<admin_answer> const& { return *answers_; }
  [[nodiscard]] auto size() const -> std::size_t { return answers_->size(); }

 private:
  std::shared_ptr<std::vector<admin_answer>> answers_ =
      std::make_shared<std::vector<admin_answer>>();
};

/// Makes a request and turns the loop until it was answered, once.
[[nodiscard]] inline auto answer_of(
    engine::loop& loop, std::function<void(std::move_only_function<void(admin_answer)>)> const& ask)
    -> admin_answer {
  reply_log replies;
  ask(replies.next());
  turn_until(loop, [&] { return replies.size() > 0; });
  EXPECT_EQ(replies.size(), 1U);
  return replies.size() > 0 ? replies.all().front() : admin_answer{};
}

inline void expect_problem(admin_answer const& answer, int status, std::string_view part) {
  EXPECT_EQ(answer.status, status) << answer.content;
  EXPECT_EQ(answer.content_type, "application/problem+json");
  EXPECT_THAT(answer.content, testing::HasSubstr("\"status\":" + std::to_string(status)));
  EXPECT_THAT(answer.content, testing::HasSubstr(part));
}

/// A method that a path does not have, and those that it has.
inline void expect_not_allowed(admin_answer const& answer, std::string_view allow) {
  expect_problem(answer, 405, "Allowed here: " + std::string(allow) + ".");
  EXPECT_EQ(answer.allow, allow);
}

}  // namespace tidegate::gateway
