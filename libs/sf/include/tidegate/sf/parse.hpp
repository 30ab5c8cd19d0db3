// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/sf/error.hpp>
#include <tidegate/sf/reader.hpp>
#include <tidegate/sf/values.hpp>

#include <span>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::sf {

/// Parses one Item field (RFC 9651, section 4.2). The result owns its text. On error the caller
/// ignores the whole field.
template <dialect D = dialect::rfc9651>
[[nodiscard]] auto parse_item(std::string_view field_value) -> result<basic_item<D>, parse_error>;

/// Parses one List field. An empty value, as of an absent field, is an empty List.
template <dialect D = dialect::rfc9651>
[[nodiscard]] auto parse_list(std::string_view field_value) -> result<basic_list<D>, parse_error>;

/// Parses one Dictionary field. When a key repeats, the last value wins and keeps the first
/// position; in draft11 it is an error.
template <dialect D = dialect::rfc9651>
[[nodiscard]] auto parse_dictionary(std::string_view field_value)
    -> result<basic_dictionary<D>, parse_error>;

/// The value of a field that came in several lines: one line is returned as it is, more are joined
/// with ", " in `scratch` (RFC 9110, section 5.2). Offsets in errors count in this value.
[[nodiscard]] auto combine(std::span<std::string_view const> lines, std::string& scratch)
    -> std::string_view;

/// The owned value of a bare item that a reader of the same dialect came to.
template <dialect D>
[[nodiscard]] auto to_value(bare_item_view const& view) -> basic_bare_item<D>;

#define TIDEGATE_SF_PARSE(D)                                                                \
  extern template auto parse_item<D>(std::string_view)->result<basic_item<D>, parse_error>; \
  extern template auto parse_list<D>(std::string_view)->result<basic_list<D>, parse_error>; \
  extern template auto parse_dictionary<D>(std::string_view)                                \
      ->result<basic_dictionary<D>, parse_error>;                                           \
  extern template auto to_value<D>(bare_item_view const&)->basic_bare_item<D>;
TIDEGATE_SF_PARSE(dialect::rfc9651)
TIDEGATE_SF_PARSE(dialect::rfc8941)
TIDEGATE_SF_PARSE(dialect::draft11)
#undef TIDEGATE_SF_PARSE

}  // namespace tidegate::TIDEGATE_ABI::sf
