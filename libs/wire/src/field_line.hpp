// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http1_head.hpp>

#include "grammar.hpp"
#include "known_names.hpp"
#include "scan.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tidegate::wire::detail {

enum class line_state : std::uint8_t { complete, out_of_bytes, refused };

/// What came of reading a line.
struct line_status {
  line_state state = line_state::complete;
  head_fault fault = head_fault::none;
  char const* at = nullptr;  ///< the next line, or the place of the fault
};

/// What is wrong with the octet at `p`, where something else should stand. When it is the end of the
/// line, that is `otherwise`.
[[nodiscard]] inline auto fault_at(char const* p, char const* end, head_fault otherwise) noexcept
    -> head_fault {
  if (*p == '\n') {
    return head_fault::bare_lf;
  }
  if (*p == '\r' && end - p > 1 && p[1] != '\n') {
    return head_fault::bare_cr;
  }
  return otherwise;
}

/// What is wrong with the name of the line at `line`, of which the octet at `p` is no token character.
[[nodiscard]] inline auto name_fault(char const* line, char const* p, char const* end) noexcept
    -> head_fault {
  if (*p == '\r' || *p == '\n') {
    return fault_at(p, end, head_fault::missing_colon);
  }
  if (*p == ':') {
    return head_fault::empty_name;
  }
  if (grammar::is(*p, grammar::blank)) {
    if (p == line) {
      return head_fault::obs_fold;
    }
    while (p != end && grammar::is(*p, grammar::blank)) {
      ++p;
    }
    return p != end && *p == ':' ? head_fault::space_before_colon : head_fault::invalid_name;
  }
  return head_fault::invalid_name;
}

/// Reads the field line at `line` (RFC 9112, section 5). A fault may be found before the line is
/// complete.
[[nodiscard, gnu::always_inline]] inline auto read_field_line(char const* begin, char const* line,
                                                              char const* end, field& out) noexcept
    -> line_status {
  using enum line_state;
  auto const* const colon = scan::find<scan::exactly<':'>>(begin, line, end);
  auto const name_size = static_cast<std::size_t>(colon - line);
  auto const known = find_known(line, name_size, static_cast<std::size_t>(end - line));
  if (known == known_field::other) {
    // The names that we know have only token characters.
    auto const* p = line;
    while (p != colon && grammar::is(*p, grammar::token_char)) {
      ++p;
    }
    if (p != colon || (name_size == 0 && colon != end)) {
      return {refused, name_fault(line, p, end), p};
    }
  }
  if (colon == end) {
    return {out_of_bytes, head_fault::none, nullptr};
  }
  auto const* value = colon + 1;
  while (value != end && grammar::is(*value, grammar::blank)) {
    ++value;
  }
  auto const* const stop = scan::find<scan::control>(begin, value, end);
  if (end - stop < 2) {
    // A LF or a control at the very end is wrong whatever follows.
    if (stop != end && *stop != '\r') {
      return {refused, fault_at(stop, end, head_fault::invalid_value), stop};
    }
    return {out_of_bytes, head_fault::none, nullptr};
  }
  if (stop[0] != '\r' || stop[1] != '\n') {
    return {refused, fault_at(stop, end, head_fault::invalid_value), stop};
  }
  auto const* value_end = stop;
  while (value_end != value && grammar::is(value_end[-1], grammar::blank)) {
    --value_end;
  }
  out.name = {line, name_size};
  out.value = {value, static_cast<std::size_t>(value_end - value)};
  out.known = known;
  return {complete, head_fault::none, stop + 2};
}

}  // namespace tidegate::wire::detail
