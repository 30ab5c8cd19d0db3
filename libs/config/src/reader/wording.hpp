// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/yaml.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Pieces that the messages of faults have in common.
namespace tidegate::gateway {

/// So much of a text is shown.
inline constexpr std::size_t shown_octets_max = 60;

/// In quotes, and cut off when it is long.
[[nodiscard]] auto shown(std::string_view text) -> std::string;

/// `FILE:LINE:COLUMN`; `files` are their names by number.
[[nodiscard]] auto place_shown(yaml_place place, std::span<std::string const> files) -> std::string;

/// `line 5`, and its file where that is another than the one of `here`.
[[nodiscard]] auto line_shown(yaml_place place, yaml_place here, std::span<std::string const> files)
    -> std::string;

/// ` (expected TEXT)`, which ends a message.
[[nodiscard]] auto expected(std::string_view text) -> std::string;

/// `; did you mean "x"?` when one of the candidates is near enough to be meant.
[[nodiscard]] auto did_you_mean(std::string_view text,
                                std::vector<std::string_view> const& candidates) -> std::string;

[[nodiscard]] auto joined(std::vector<std::string_view> const& words, std::string_view separator)
    -> std::string;

}  // namespace tidegate::gateway
