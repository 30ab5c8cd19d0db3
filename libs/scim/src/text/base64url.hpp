// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tidegate::scim {

/// base64url without padding (RFC 4648, section 5).
[[nodiscard]] auto to_base64url(std::string_view octets) -> std::string;

/// What `to_base64url` wrote; nothing for any other spelling.
[[nodiscard]] auto from_base64url(std::string_view text) -> std::optional<std::string>;

}  // namespace tidegate::scim
