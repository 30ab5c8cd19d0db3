// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <span>
#include <string_view>

namespace tidegate::TIDEGATE_ABI {

/// The candidate that `text` is most likely a misspelling of, for "did you mean"; empty when none
/// is near. Near is at most three letters that are added, removed or changed, and at most half of
/// `text`. Of two that are equally near the first is taken. Words of more than 64 octets are near
/// to nothing, so that hostile input costs little.
[[nodiscard]] auto nearest(std::string_view text, std::span<std::string_view const> candidates)
    -> std::string_view;

}  // namespace tidegate::TIDEGATE_ABI
