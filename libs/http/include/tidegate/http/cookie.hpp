// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <optional>
#include <span>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::http {

/// The value of the first cookie named `name` in the Cookie lines of a request, in the order of the
/// message: a view into a line. User agents send the cookie with the longest path first (RFC 6265,
/// section 5.4).
///
/// Names are compared to the letter. Pairs are divided by ";", also inside quotes, which have no
/// meaning in a Cookie field and are part of the value; name and value by the first "=", with
/// spaces and tabs around both left out. A pair without "=" is not a cookie with a name. Never
/// allocates.
[[nodiscard]] auto find_cookie(std::span<std::string_view const> lines,
                               std::string_view name) noexcept -> std::optional<std::string_view>;

/// Whether the lines have more than one cookie of that name: which of them counts, servers do not
/// agree about.
[[nodiscard]] auto is_repeated_cookie(std::span<std::string_view const> lines,
                                      std::string_view name) noexcept -> bool;

}  // namespace tidegate::TIDEGATE_ABI::http
