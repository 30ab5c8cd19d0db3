// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/ascii.hpp>

#include <optional>
#include <string>
#include <string_view>

/// Parameters of a query, as forms and programs write them (`application/x-www-form-urlencoded`).
namespace tidegate::TIDEGATE_ABI::http {

/// The value of the first parameter named `name`, still encoded: a view into `query`.
///
/// `query` is without its "?". Parameters are divided by "&", name and value by the first "="; a
/// parameter without "=" has an empty value. `name` is compared with what the name in the query
/// decodes to. Never allocates.
[[nodiscard]] auto find_query_value(std::string_view query, std::string_view name) noexcept
    -> std::optional<std::string_view>;

/// Whether there is a parameter named `name`, and with this value where one is given: both are
/// compared with what the query decodes to. Of a repeated parameter any may have the value. Never
/// allocates.
[[nodiscard]] auto has_query_value(std::string_view query, std::string_view name,
                                   std::optional<std::string_view> value) noexcept -> bool;

/// unreserved (RFC 3986, section 2.3)
[[nodiscard]] constexpr auto is_unreserved(char c) noexcept -> bool {
  return is_letter_or_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

/// Appends `text` with every byte escaped that is not unreserved.
void append_query_encoded(std::string& out, std::string_view text);

/// Appends what `encoded` decodes to: "+" is a space, "%" and two hexadecimal digits are a byte,
/// any byte; a "%" without them stands for itself. Allocates nothing when `out` has room for as
/// many bytes.
void append_query_decoded(std::string& out, std::string_view encoded);

/// The first value of `name`, decoded: a view into `query` when it has nothing to decode; else a
/// view of `scratch`, whose text it replaces.
[[nodiscard]] auto query_value(std::string_view query, std::string_view name, std::string& scratch)
    -> std::optional<std::string_view>;

/// Whether more than one parameter is named `name`, as `find_query_value` compares names: which of
/// them counts, servers do not agree about.
[[nodiscard]] auto is_repeated_in_query(std::string_view query, std::string_view name) noexcept
    -> bool;

}  // namespace tidegate::TIDEGATE_ABI::http
