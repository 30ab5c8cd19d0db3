// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/explain/finding.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/ratelimit/legacy.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace tidegate::TIDEGATE_ABI::explain {

/// What is known of a message. Borrows its fields.
struct message_view {
  std::span<http::field_view const> fields;  ///< names in any case, one entry for each line
  std::optional<int> status{};               ///< of a response, where it is known
};

/// So many findings are made of one message; where there are more, the last one says how many are
/// left out.
inline constexpr std::size_t findings_max = 200;

/// Explains the fields RateLimit and RateLimit-Policy (draft-09 and draft-07), Retry-After,
/// X-RateLimit-* with its relatives, those of Anthropic, Shopify and Stripe, and Idempotency-Key.
/// Of other fields that have `ratelimit` in their name it says that they are not known.
/// Where fields ask for different waits, the last finding, of the field `In short`, is the one to
/// obey. Fields that belong together are explained together; Date and Age are looked at where they
/// change what others mean; all others are passed over.
///
/// `now` counts where the message has no Date. Without any of these fields there are no findings.
[[nodiscard]] auto explain_fields(message_view const& message, std::chrono::sys_seconds now)
    -> std::vector<finding>;

}  // namespace tidegate::TIDEGATE_ABI::explain
