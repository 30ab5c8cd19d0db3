// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <compare>
#include <string_view>

/// Which form of an answer a client wants (RFC 9110, section 12.5.1).
namespace tidegate::TIDEGATE_ABI::http {

/// How much a media type is wanted: its weight, which the range that is closest to it has, and how
/// close that is. The greater one wins; a weight of 0 is not acceptable.
struct type_preference {
  int weight = 0;     // in thousandths
  int closeness = 0;  // 1 by "*/*", 2 by "application/*", 3 by its name
  auto operator<=>(type_preference const&) const = default;
};

/// How much `accept`, a value of the field Accept, wants the media type `type`, which is without
/// parameters.
[[nodiscard]] auto preference_for(std::string_view type, std::string_view accept)
    -> type_preference;

}  // namespace tidegate::TIDEGATE_ABI::http
