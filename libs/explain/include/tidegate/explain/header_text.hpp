// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/field.hpp>
#include <tidegate/ratelimit/legacy.hpp>

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::explain {

/// Takes `NAME: VALUE` apart; spaces around the value are dropped. Nothing when the name is not a
/// token (RFC 9110, section 5.6.2) right before the colon.
[[nodiscard]] auto parse_field_line(std::string_view line) -> std::optional<http::field_view>;

/// A header section as people have it at hand. Borrows the text.
struct header_text {
  std::optional<int> status;
  std::vector<http::field_view> fields;
  std::size_t other_lines = 0;  ///< that are not field lines
};

/// Reads what `curl -I`, `curl -i` or `curl -v` print, or field lines alone.
///
/// Where there are several header sections, as after redirects, the last one counts. The content
/// behind one is passed over. Of `curl -v` the lines that begin with "< " count.
[[nodiscard]] auto read_header_text(std::string_view text) -> header_text;

}  // namespace tidegate::TIDEGATE_ABI::explain
