// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/ratelimit/fields.hpp>
#include <tidegate/sf/values.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <variant>

/// The fields as trees of Structured Fields that keep every rule of their draft: what reading makes
/// the model from, and what merging needs to pass on parameters in their order.
namespace tidegate::TIDEGATE_ABI::ratelimit::detail {

using field_list = sf::basic_list<field_dialect>;
using field_dictionary = sf::basic_dictionary<field_dialect>;
using field_item = std::variant_alternative_t<0, field_list::value_type>;

/// The parameters that draft-09 defines, per field. Whatever else there is, is a comment.
inline constexpr std::array<std::string_view, 4> policy_parameters{"q", "qu", "w", "pk"};
inline constexpr std::array<std::string_view, 3> limit_parameters{"r", "t", "pk"};
/// The one that draft-07 defines for RateLimit-Policy, and the keys of its RateLimit.
inline constexpr std::array<std::string_view, 1> older_policy_parameters{"w"};
inline constexpr std::array<std::string_view, 3> older_limit_keys{"limit", "remaining", "reset"};

[[nodiscard]] inline auto is_one_of(std::string_view key,
                                    std::span<std::string_view const> keys) noexcept -> bool {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// Every member of `list` is an Item, and `model.policies` has one entry for each.
struct parsed_policies {
  policy_field model;
  field_list list;
};

/// In draft-09 as above; in draft-07 the one entry of `model.limits` is `dictionary`.
struct parsed_limits {
  limit_field model;
  field_list list;
  field_dictionary dictionary;
};

[[nodiscard]] auto parse_policies(std::span<std::string_view const> lines)
    -> result<parsed_policies, field_error>;
[[nodiscard]] auto parse_limits(std::span<std::string_view const> lines)
    -> result<parsed_limits, field_error>;

}  // namespace tidegate::TIDEGATE_ABI::ratelimit::detail
