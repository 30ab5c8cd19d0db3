// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/local_reply.hpp"

#include <tidegate/config/config.hpp>

namespace tidegate::gateway {

/// A refusal of a request with a key, or without one that it needs.
[[nodiscard]] auto key_refusal(reply_texts texts, idempotency::problem_details const& problem,
                               std::chrono::seconds retry_after, std::string_view more_lines = {})
    -> local_reply;

/// What a client is told when the outcome of its request is not known, with `status`.
[[nodiscard]] auto unknown_reply(reply_texts texts, int status, std::string_view reason,
                                 idempotency_config const& settings) -> local_reply;

/// Whether a field of a first answer says something that was so then: Retry-After in seconds counts
/// from when it came.
[[nodiscard]] inline auto is_stale(http::field const& field) -> bool {
  return equal_ignoring_case(field.name, "retry-after") &&
         field.value.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace tidegate::gateway
