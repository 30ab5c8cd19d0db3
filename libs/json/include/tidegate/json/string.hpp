// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::json {

/// Appends `text` as a JSON string with its quotes (RFC 8259, section 7), valid whatever `text`
/// holds.
///
/// Quotes, backslashes and control characters are escaped, the rest stands as UTF-8. Where `text`
/// is not UTF-8, each longest beginning of a character, or else each byte, becomes one U+FFFD, as
/// decoders on the web do it. `text` must not be part of `out`. Allocates nothing when `out` has
/// room: six characters for each byte and two for the quotes always do.
void append_string(std::string& out, std::string_view text);

/// How many characters of ASCII that stand for themselves in a JSON string `text` begins with.
[[nodiscard]] auto plain_octets(std::string_view text) noexcept -> std::size_t;

}  // namespace tidegate::TIDEGATE_ABI::json
