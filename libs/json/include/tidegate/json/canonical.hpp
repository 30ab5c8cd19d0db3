// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <string>
#include <string_view>

/// One spelling for JSON texts that mean the same, in the way of RFC 8785. Its only use is to be
/// digested and compared.
namespace tidegate::TIDEGATE_ABI::json {

/// How deep a JSON text may be nested to have a canonical form.
inline constexpr int canonical_depth_max = 64;

/// Appends the canonical form of the JSON text `text` (RFC 8259). False when it has none; then
/// `out` is as it was.
///
/// - No whitespace; members in the order of the octets of their names; each string in one spelling,
///   with as few escapes as can be, and not normalised as Unicode.
/// - Numbers by their exact decimal value: `1`, `1.0` and `10e-1` are one, `0` and `-0` too. RFC
///   8785 would round them to a double, and then 9007199254740992 and 9007199254740993 would be
///   one amount.
///
/// No canonical form have: what is not JSON or not UTF-8 (a byte order mark counts as that), an
/// object with a name twice, escaped surrogates without a partner, more than `canonical_depth_max`
/// levels, and exponents of more than nine digits. The time is linear in the size of the text but
/// for sorting, and at worst the members of each level are copied once.
///
/// Records that are stored hold digests of this form: it never changes.
[[nodiscard]] auto append_canonical(std::string& out, std::string_view text) -> bool;

}  // namespace tidegate::TIDEGATE_ABI::json
