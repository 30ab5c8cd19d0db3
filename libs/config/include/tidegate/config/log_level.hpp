// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tidegate::gateway {

enum class log_level : std::uint8_t { error, warning, info, debug };

/// `error`, `warning`, `info`, `debug`
[[nodiscard]] auto name_of(log_level level) noexcept -> std::string_view;
[[nodiscard]] auto log_level_named(std::string_view name) noexcept -> std::optional<log_level>;

}  // namespace tidegate::gateway
