// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Pieces that the messages of faults have in common.
namespace tidegate::gateway {

/// In quotes, and cut off when it is long.
[[nodiscard]] auto shown(std::string_view text) -> std::string;

/// ` (expected TEXT)`, which ends a message.
[[nodiscard]] auto expected(std::string_view text) -> std::string;

/// `; did you mean "x"?` when one of the candidates is near enough to be meant.
[[nodiscard]] auto did_you_mean(std::string_view text,
                                std::vector<std::string_view> const& candidates) -> std::string;

[[nodiscard]] auto joined(std::vector<std::string_view> const& words, std::string_view separator)
    -> std::string;

}  // namespace tidegate::gateway
