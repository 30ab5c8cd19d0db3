// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http1_head.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {

/// A request to the admin address.
struct admin_request {
  wire::method method = wire::method::other;
  std::string path;
  std::string query;         ///< without its "?"
  std::string content_type;  ///< empty: the field is missing
  std::string content;
};

/// What it is answered.
struct admin_answer {
  int status = 200;
  std::string_view content_type;
  std::string content;
  std::string_view allow{};       ///< with 405: the methods that there are
  std::string security_policy{};  ///< Content-Security-Policy, of a page
  std::vector<std::pair<std::string_view, std::string>> fields{};  ///< that only this answer has
  bool streams = false;  ///< events follow until the client leaves, in place of `content`
};

/// Answers. To be called once, on the thread of the loop.
using admin_reply = std::move_only_function<void(admin_answer)>;
/// Logs what was asked for, in words without secrets, and the status of its answer, before that is
/// given.
using admin_note = std::move_only_function<void(std::string_view words, int status)>;

/// A problem without a type of its own; the detail is for people.
[[nodiscard]] auto admin_problem(int status, std::string_view detail) -> admin_answer;

/// 200 with JSON, to which the end of the line is added.
[[nodiscard]] auto admin_json(std::string content) -> admin_answer;

/// 405 for a path that has only the methods of `allow`, a literal such as `GET, HEAD`.
[[nodiscard]] auto method_not_allowed(std::string_view allow) -> admin_answer;

/// True for the content type of JSON, and where there is none.
[[nodiscard]] auto is_json(std::string_view content_type) -> bool;

}  // namespace tidegate::gateway
