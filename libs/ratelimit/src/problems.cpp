// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/problems.hpp>

#include <tidegate/http/problem.hpp>

namespace tidegate::TIDEGATE_ABI::ratelimit {

auto uri_of(problem_type type) noexcept -> std::string_view {
  switch (type) {
    case problem_type::quota_exceeded:
      return "https://iana.org/assignments/http-problem-types#quota-exceeded";
    case problem_type::temporary_reduced_capacity:
      return "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
    case problem_type::abnormal_usage_detected: break;
  }
  return "https://iana.org/assignments/http-problem-types#abnormal-usage-detected";
}

// The titles of the draft's examples, which spell "satisfied" in another way.
auto title_of(problem_type type) noexcept -> std::string_view {
  switch (type) {
    case problem_type::quota_exceeded:
      return "Request cannot be satisfied as assigned quota has been exceeded";
    case problem_type::temporary_reduced_capacity:
      return "Request cannot be satisfied due to temporary server capacity constraints";
    case problem_type::abnormal_usage_detected: break;
  }
  return "Request not satisfied due to detection of abnormal request pattern";
}

auto status_of(problem_type type) noexcept -> int {
  return type == problem_type::temporary_reduced_capacity ? 503 : 429;
}

void append_problem(std::string& out, problem_type type,
                    std::span<std::string_view const> violated_policies, std::string_view detail) {
  http::problem_writer(
      out,
      {.type = uri_of(type), .title = title_of(type), .status = status_of(type), .detail = detail})
      .extension("violated-policies", violated_policies);
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
