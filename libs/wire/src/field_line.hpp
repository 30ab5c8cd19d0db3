// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http1_head.hpp>

#include "grammar.hpp"
#include "known_names.hpp"
#include "scan.hpp"

#include <cstddef>
#include <cstring>

namespace tidegate::TIDEGATE_ABI::wire::detail {

/// What is wrong with the octet at `p`, where something else should stand. When it is the end of
/// the line, that is `otherwise`.
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

/// What is wrong with the name of the line at `line`, of which the octet at `p` is not a
/// token character.
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

/// Reads the field line at `line` (RFC 9112, section 5) and returns where the next one begins, or
/// nullptr when something is wrong with it or missing: `explain_field_line` says what.
[[nodiscard, gnu::always_inline]] inline auto read_field_line(char const* begin, char const* line,
                                                              char const* end,
                                                              field_view& out) noexcept
    -> char const* {
  auto const* const colon = scan::find<scan::exactly<':'>>(begin, line, end);
  auto const name_size = static_cast<std::size_t>(colon - line);
  auto const known = find_known(line, name_size, static_cast<std::size_t>(end - line));
  if (known == known_field::other) {
    // The names that we know have only token characters.
    auto const* p = scan::find<scan::unusual>(begin, line, colon);
    while (p != colon && grammar::is(*p, grammar::token_char)) {
      ++p;
    }
    if (p != colon || name_size == 0) [[unlikely]] {
      return nullptr;
    }
  }
  auto const* const stop = scan::find<scan::control>(begin, colon, end);
  if (end - stop < 2 || std::memcmp(stop, "\r\n", 2) != 0) [[unlikely]] {
    return nullptr;
  }
  auto const* value = colon + 1;
  while (grammar::is(*value, grammar::blank)) {  // the CR at `stop` is none
    ++value;
  }
  auto const* value_end = stop;
  while (grammar::is(value_end[-1], grammar::blank) && value_end != value) {
    --value_end;
  }
  out.name = {line, name_size};
  out.value = {value, static_cast<std::size_t>(value_end - value)};
  out.known = known;
  return stop + 2;
}

/// Why a line was not read, and where.
struct line_fault {
  head_fault fault = head_fault::none;  ///< `none`: its end is missing, so far nothing is wrong
  char const* at = nullptr;
};

/// Says why `read_field_line` returned nullptr; `none` also for a line that it reads.
[[nodiscard, gnu::cold, gnu::noinline]] inline auto explain_field_line(char const* line,
                                                                       char const* end) noexcept
    -> line_fault {
  auto const* p = line;
  while (p != end && grammar::is(*p, grammar::token_char)) {
    ++p;
  }
  if (p != end && (*p != ':' || p == line)) {
    return {name_fault(line, p, end), p};
  }
  while (p != end && !scan::control::matches(*p)) {
    ++p;
  }
  if (p == end || (*p == '\r' && (end - p < 2 || p[1] == '\n'))) {
    return {};
  }
  return {fault_at(p, end, head_fault::invalid_value), p};
}

}  // namespace tidegate::TIDEGATE_ABI::wire::detail
