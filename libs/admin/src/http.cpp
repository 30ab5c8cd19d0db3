// SPDX-License-Identifier: Apache-2.0
#include "http.hpp"

#include <tidegate/http/field.hpp>
#include <tidegate/http/problem.hpp>
#include <tidegate/wire/http1_write.hpp>

namespace tidegate::gateway {

auto admin_problem(int status, std::string_view detail) -> admin_answer {
  admin_answer answer{status, http::problem_json, {}};
  http::problem_writer(answer.content,
                       {.title = wire::reason_phrase(status), .status = status, .detail = detail});
  answer.content += '\n';
  return answer;
}

auto admin_json(std::string content) -> admin_answer {
  return {200, "application/json", std::move(content) + "\n"};
}

auto method_not_allowed(std::string_view allow) -> admin_answer {
  auto answer = admin_problem(405, "Allowed here: " + std::string(allow) + ".");
  answer.allow = allow;
  return answer;
}

auto is_json(std::string_view content_type) -> bool {
  return http::media_type(content_type).empty() || http::is_json(content_type);
}

}  // namespace tidegate::gateway
