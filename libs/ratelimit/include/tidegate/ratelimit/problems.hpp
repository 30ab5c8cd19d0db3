// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// The problem types of draft-09, section 5, with which a refusal says why.
namespace tidegate::TIDEGATE_ABI::ratelimit {

enum class problem_type : std::uint8_t {
  quota_exceeded,              ///< section 5.1: one or more policies refuse the request
  temporary_reduced_capacity,  ///< section 5.2: the service cannot do for now what it promises
  abnormal_usage_detected,     ///< section 5.3: requests that look like an error or abuse
};

/// The URI that identifies it: `https://iana.org/assignments/http-problem-types#quota-exceeded` and
/// so on.
[[nodiscard]] auto uri_of(problem_type type) noexcept -> std::string_view;
/// The title, which is the same for every occurrence (RFC 9457, section 3.1.3).
[[nodiscard]] auto title_of(problem_type type) noexcept -> std::string_view;
/// The status code of the response: 429, 503, 429.
[[nodiscard]] auto status_of(problem_type type) noexcept -> int;

/// Appends the content of the response, an `application/problem+json` object with `type`, `title`,
/// `status`, `detail` unless it is empty, and `violated-policies` unless there are none.
///
/// `violated_policies` are the names of the policies whose quota was exceeded, as in
/// RateLimit-Policy. Allocates nothing when `out` has room.
void append_problem(std::string& out, problem_type type,
                    std::span<std::string_view const> violated_policies,
                    std::string_view detail = {});

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
