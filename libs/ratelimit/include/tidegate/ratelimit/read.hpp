// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/ratelimit/fields.hpp>

#include <span>
#include <string_view>

/// Reading the two fields of either draft. Which draft it is shows in the field itself, so each is
/// judged for itself. Times count from the moment the response was made; fields of a response that
/// comes from a cache are stale (draft-09, section 7.3), which the caller has to see to.
namespace tidegate::TIDEGATE_ABI::ratelimit {

/// Reads RateLimit-Policy from all its lines, in their order. No lines: no policies.
///
/// - draft-09 (section 3): a List of Strings with `q`, `qu`, `w`, `pk`.
/// - draft-07 (section 3.5): a List of Integers with `w`.
///
/// The first item decides which of them it is. Other parameters are kept as comments. A unit that
/// the draft does not define is `quota_unit::other` and no error: the registry may know it.
/// On error the whole field is to be ignored.
[[nodiscard]] auto read_policies(std::span<std::string_view const> lines)
    -> result<policy_field, field_error>;

/// Reads RateLimit from all its lines, in their order. No lines, or an empty value: no limits.
///
/// - draft-09 (section 4): a List of Strings with `r`, `t`, `pk`.
/// - draft-07 (section 3.1): a Dictionary with `limit`, `remaining`, `reset`; their parameters are
///   ignored, and so are other members, of which those that are Items are kept as comments.
///
/// A value that has one of the three keys as a Dictionary is draft-07's; what neither draft can
/// parse is judged by the one that comes further. On error the whole field is to be ignored.
[[nodiscard]] auto read_limits(std::span<std::string_view const> lines)
    -> result<limit_field, field_error>;

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
