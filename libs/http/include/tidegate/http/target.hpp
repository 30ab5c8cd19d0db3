// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What a request asks for: the request-target (RFC 9112, section 3.2), the one spelling of its
/// path by which routes are found, and the host.
namespace tidegate::TIDEGATE_ABI::http {

/// What is wrong with a request-target, path or host. Each of them is answered with 400.
enum class target_fault : std::uint8_t {
  invalid_character,   ///< one that cannot stand here, such as a control character, a space or "#"
  invalid_escape,      ///< "%" without two hexadecimal digits
  nul_escape,          ///< "%00", which ends a name in programs written in C
  slash_expected,      ///< a path begins with "/"
  form_not_allowed,    ///< "*" is for OPTIONS; an authority, and nothing else, is for CONNECT
  unsupported_scheme,  ///< neither http nor https
  user_information,    ///< "user@" before the host (RFC 9110, section 4.2.4)
  host_missing,        ///< http and https have one (RFC 9110, section 4.2.1)
  invalid_ip_literal,  ///< "[" without an IPv6 address and "]" after it
  invalid_port,        ///< not a number from 1 to 65535
  port_missing,        ///< CONNECT says to which port (RFC 9110, section 9.3.6)
};

/// What is wrong and at which byte of the text.
///
/// `offset` is the first byte with which nothing valid could go on, the length of the text when it
/// ends too early; for an escape it is its "%", and for a scheme, a port and an IP literal where
/// that begins.
struct target_error {
  target_fault fault{};
  std::size_t offset{};
  auto operator==(target_error const&) const -> bool = default;
};

/// One sentence for people, without the offset.
[[nodiscard]] auto message(target_fault fault) noexcept -> std::string_view;

/// How a host is written (RFC 3986, section 3.2.2).
enum class host_kind : std::uint8_t { reg_name, ipv4, ipv6 };

/// A host and perhaps a port: a Host field or the authority of a target. Views into what was
/// parsed.
struct host_view {
  host_kind kind{};
  std::string_view name{};  ///< as it was sent; an IPv6 address without its brackets
  std::optional<std::uint16_t> port{};
  auto operator==(host_view const&) const -> bool = default;
};

/// Whether `text` is what may follow the ":" of an authority: a number from 1 to 65535, or nothing.
[[nodiscard]] auto is_port(std::string_view text) noexcept -> bool;

/// Reads the value of a Host field (RFC 9110, section 7.2): `uri-host [ ":" port ]`. This is the
/// one reading of an authority: whatever it refuses is refused before a route is looked for, since
/// a server behind the gateway may still take it for a host that has one.
///
/// A name consists of unreserved characters and sub-delims but ",", since some read a list there.
/// Percent escapes, which RFC 3986 would let stand there, are refused: no name in use has them, and
/// they would give one host many spellings. What only resembles an IPv4 address is a name. A port
/// may be missing after ":", and is not 0.
[[nodiscard]] auto parse_host(std::string_view text) noexcept -> result<host_view, target_error>;

/// Appends the host by which routes are found: a name in lower case and without a dot at its end,
/// an IPv6 address as RFC 5952 writes it, in brackets; never the port. Allocates nothing when `out`
/// has room.
void append_normal_host(std::string& out, host_view const& host);

/// Whether `append_normal_host` writes `authority`, a valid Host field, as `normal_host`. Allocates
/// nothing.
[[nodiscard]] auto is_host_of(std::string_view authority, std::string_view normal_host) noexcept
    -> bool;

/// The four forms of a request-target (RFC 9112, section 3.2).
enum class target_form : std::uint8_t { origin, absolute, authority, asterisk };

/// The parts of a request-target. Views into what was parsed, but for the path "/" of an absolute
/// URI that has none.
struct target_view {
  target_form form{};
  std::string_view scheme{};                ///< of an absolute URI, as it was sent
  std::optional<host_view> host{};          ///< of an absolute URI or an authority
  std::string_view path{};                  ///< begins with "/"; empty in the two last forms
  std::optional<std::string_view> query{};  ///< without its "?"
  auto operator==(target_view const&) const -> bool = default;
};

/// Splits the target of a request with the method `method` (RFC 9112, section 3.2).
///
/// Every byte is checked to be visible ASCII other than "#"; escapes are not looked at: those of
/// the path are for `append_normal_path`, and a query may hold any "%". An absolute URI must be of
/// http or https and have no user information. The absolute URI of an OPTIONS request without path
/// and query means "*" (section 3.2.4): its form is `asterisk`, with scheme and host.
[[nodiscard]] auto parse_target(std::string_view method, std::string_view target) noexcept
    -> result<target_view, target_error>;

/// Whether `raw_path` is valid and `append_normal_path` would append it as it is. One look at each
/// byte.
[[nodiscard]] auto is_normal_path(std::string_view raw_path) noexcept -> bool;

/// Appends `raw_path` in the one spelling that all its equivalents share (RFC 3986, section 6.2.2):
///
/// - escaped unreserved characters are decoded, the digits of all other escapes are in upper case;
/// - "." and ".." are removed (section 5.2.4), also when they were escaped. What leads above the
///   root stays at the root, as the RFC says: then gateway and origin, which does the same, see the
///   same path;
/// - characters that no URI has, such as `"`, `\` and `|`, but clients send, are escaped;
/// - "//" is kept, since an origin may tell it from "/", and so is `%2F`, which does not separate:
///   `find_other_reading` knows what other readers make of them.
///
/// Control characters, spaces, "#", "?", what is not ASCII, incomplete escapes and `%00` are
/// errors; then `out` is as it was. The result is its own normal form. Allocates nothing when `out`
/// has room for as many bytes as `raw_path` has, thrice when it has characters to be escaped.
/// `raw_path` must not be part of `out`.
[[nodiscard]] auto append_normal_path(std::string& out, std::string_view raw_path)
    -> result<void, target_error>;

/// The normal form of `raw_path`: `raw_path` itself where that is normal, as it nearly always is;
/// else a view of `scratch`, whose text it replaces.
[[nodiscard]] auto normal_path(std::string_view raw_path, std::string& scratch)
    -> result<std::string_view, target_error>;

}  // namespace tidegate::TIDEGATE_ABI::http
