// SPDX-License-Identifier: Apache-2.0
//
// Numbers, times and texts of strangers as people read them.
#pragma once

#include <tidegate/version.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::explain {

/// `12 s`, `5 min`, `1 h 30 min`, `2 d`: the two largest units.
[[nodiscard]] auto duration_words(std::int64_t seconds) -> std::string;

/// `second`, `minute`, `hour`, `day`, `week`, or nothing for other lengths.
[[nodiscard]] auto window_name(std::int64_t seconds) -> std::string_view;

/// `512 B`, `1.5 KiB`, `50 MiB`.
[[nodiscard]] auto octets_words(std::int64_t octets) -> std::string;

/// A rate that lets `units` last for `seconds`, both above 0, never rounded up:
/// `3.1 requests a second`, `one request every 5 s`, `512 KiB a second`. `unit` is one of them,
/// such as `request` or `token`.
[[nodiscard]] auto pace_words(std::int64_t units, std::int64_t seconds, bool are_octets,
                              std::string_view unit = "request") -> std::string;

/// In double quotes and shortened when it is long.
[[nodiscard]] auto quoted(std::string_view text) -> std::string;

}  // namespace tidegate::TIDEGATE_ABI::explain
