// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reader/scalars.hpp"

#include <cstddef>
#include <string>
#include <string_view>

/// How the values are read that routes have for browsers, headers and paths. What is wrong with a
/// value of a header is said without the value: it may be a secret.
namespace tidegate::gateway {

/// Any text.
[[nodiscard]] auto read_scalar(option const&, scalar const& given) -> scalar_result<std::string>;
[[nodiscard]] auto read_header_name(option const&, scalar const& given)
    -> scalar_result<std::string>;
/// What can be sent as it is: not empty, no control characters, no blanks at the ends.
[[nodiscard]] auto read_header_value(option const&, scalar const& given)
    -> scalar_result<std::string>;
/// As browsers serialise it (Fetch, section 3.1): `https://app.example.com`, `null`.
[[nodiscard]] auto read_origin(option const&, scalar const& given) -> scalar_result<std::string>;
/// A host, or `*.` and one.
[[nodiscard]] auto read_match_host(option const&, scalar const& given)
    -> scalar_result<std::string>;
/// Whole segments of a path, none of them a wildcard: `/v1`.
[[nodiscard]] auto read_prefix(option const&, scalar const& given) -> scalar_result<std::string>;

/// What a template may refer to: so many `*`, and perhaps `**`.
struct captures {
  std::size_t segments = 0;
  bool rest = false;
};

/// Those of a pattern that `check_path_pattern` takes.
[[nodiscard]] auto captures_of(std::string_view pattern) -> captures;

/// Says what is wrong with a path that has `{1}` and `{**}` in it.
[[nodiscard]] auto check_path_template(std::string_view text, captures const& known)
    -> scalar_result<void>;

/// The same of a URL or a path that clients are sent to, with captures in its path only.
[[nodiscard]] auto check_redirect_target(std::string_view text, captures const& known)
    -> scalar_result<void>;

}  // namespace tidegate::gateway
