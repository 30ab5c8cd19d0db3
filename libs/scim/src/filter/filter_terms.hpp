// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/filter.hpp>

#include <tidegate/json/value.hpp>

#include <array>
#include <optional>
#include <string_view>

/// Operators and values of a comparison in a filter.
namespace tidegate::TIDEGATE_ABI::scim {

struct operator_word {
  std::string_view text;
  compare_op op;
};

/// In the order of `compare_op`.
inline constexpr auto operator_words = std::to_array<operator_word>({
    {"eq", compare_op::eq},
    {"ne", compare_op::ne},
    {"co", compare_op::co},
    {"sw", compare_op::sw},
    {"ew", compare_op::ew},
    {"gt", compare_op::gt},
    {"ge", compare_op::ge},
    {"lt", compare_op::lt},
    {"le", compare_op::le},
});

/// Whether values of `type` can be compared so. Order of Boolean and Binary attributes is refused
/// by RFC 7644, Table 3; parts of values are for text only.
[[nodiscard]] auto is_allowed(compare_op op, attribute_type type) noexcept -> bool;

/// `literal` in the type of `a`; nothing when it is of another.
[[nodiscard]] auto convert(json::value const& literal, attribute const& a)
    -> std::optional<filter_value>;

/// Whether a word stands for itself as a text, as clients write it and as examples of RFC 9865 do:
/// `userName sw J`. What may be a value of JSON, or an operator where the value is missing, does
/// not.
[[nodiscard]] auto is_bare_word(std::string_view word) noexcept -> bool;

}  // namespace tidegate::TIDEGATE_ABI::scim
