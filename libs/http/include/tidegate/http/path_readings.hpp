// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <functional>
#include <string>
#include <string_view>

/// One path, several readers. A normal path (see `append_normal_path`) is what a gateway finds its
/// route by; a server behind it may read the same octets as another path, and serve what another
/// route was to guard.
namespace tidegate::TIDEGATE_ABI::http {

/// Whether `normal_path` has anything that readers are known to differ about: "//", ";", `%2F`,
/// `%5C`, or the escape of an octet that may stand there as it is (a sub-delim, ":" or "@"). One
/// look at each byte, nearly always all there is to do.
[[nodiscard]] auto may_be_read_otherwise(std::string_view normal_path) noexcept -> bool;

/// Calls `is_wanted` with each other path that `normal_path` may be read as, until it returns true;
/// tells whether it did.
///
/// Servers differ in whether they
/// - decode the escapes of sub-delims, ":" and "@", as nginx does and Express does not: `/a%3Ab` is
///   then `/a:b`;
/// - decode `%2F` to a separator (nginx, Python), and `%5C` as well (IIS, where a backslash is
///   one);
/// - drop what follows ";" in a segment (Tomcat, Jetty, Spring), before or after decoding;
/// - take several slashes for one (nginx, Python), before or after dot segments are removed;
/// - remove the dot segments that come to light by this.
///
/// All combinations are shown, some of them more than once, at most 80 for the oddest path. What is
/// escaped twice (`%252F`) is decoded by no server that follows RFC 3986 (section 2.4) and is not
/// looked into.
[[nodiscard]] auto find_other_reading(std::string_view normal_path,
                                      std::function<bool(std::string_view)> const& is_wanted)
    -> bool;

/// Appends `normal_path` with each escape of a sub-delim, ":" or "@" decoded: one spelling of all
/// paths that those who decode such escapes take for one.
void append_plain_path(std::string& out, std::string_view normal_path);

}  // namespace tidegate::TIDEGATE_ABI::http
