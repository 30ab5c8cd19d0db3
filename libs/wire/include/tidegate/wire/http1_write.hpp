// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http1_head.hpp>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

/// Everything here appends to the caller's text and allocates nothing when that has room: for a
/// head, 256 octets more than the parts that it is made of.
namespace tidegate::TIDEGATE_ABI::wire {

namespace detail {

inline constexpr std::size_t number_size_max = 20;

[[nodiscard]] constexpr auto part_size_max(std::string_view text) noexcept -> std::size_t {
  return text.size();
}
template <std::size_t N>  // a literal: its size is known
[[nodiscard]] constexpr auto part_size_max(
    char const (&/*text*/)[N]) noexcept  // NOLINT(modernize-avoid-c-arrays)
    -> std::size_t {
  return N - 1;
}
template <std::unsigned_integral Number>
[[nodiscard]] constexpr auto part_size_max(Number /*number*/) noexcept -> std::size_t {
  return number_size_max;
}

[[nodiscard, gnu::always_inline]] inline auto put_part(char* p, std::string_view text) noexcept
    -> char* {
  if (!text.empty()) {  // an empty view may have no address, which memcpy does not take
    std::memcpy(p, text.data(), text.size());
  }
  return p + text.size();
}
template <std::size_t N>
[[nodiscard, gnu::always_inline]] inline auto put_part(
    char* p, char const (&text)[N]) noexcept  // NOLINT(modernize-avoid-c-arrays)
    -> char* {
  std::memcpy(p, text, N - 1);
  return p + N - 1;
}
template <std::unsigned_integral Number>
[[nodiscard]] auto put_part(char* p, Number number) noexcept -> char* {
  return std::to_chars(p, p + number_size_max, number).ptr;
}

}  // namespace detail

/// Appends texts and unsigned numbers, one behind the other. Room is made once for all of them, and
/// what the compiler knows the size of is copied without a call.
template <class... Parts>
[[gnu::always_inline]] inline void append_parts(std::string& out, Parts const&... parts) {
  auto const before = out.size();
  auto const size_max = (before + ... + detail::part_size_max(parts));
  out.resize_and_overwrite(size_max, [&](char* data, std::size_t) {
    auto* p = data + before;
    ((p = detail::put_part(p, parts)), ...);
    return static_cast<std::size_t>(p - data);
  });
}

/// The phrase that RFC 9110 or a later RFC gives a status; empty when there is none.
[[nodiscard]] auto reason_phrase(int status) noexcept -> std::string_view;

/// `HTTP/1.1 429 Too Many Requests` and the end of line. A status is 100 to 999.
void append_status_line(std::string& out, int status);

/// `name: value` and the end of line. The caller vouches for both.
void append_field(std::string& out, std::string_view name, std::string_view value);
void append_field(std::string& out, std::string_view name, std::uint64_t value);

/// A final response whose content is all there; one that cannot have content (RFC 9110, section
/// 6.4.1) gets no length. `field_lines` and `connection_line` are complete lines.
void append_whole_response(std::string& out, int status, std::string_view field_lines,
                           std::string_view connection_line, std::string_view content);
/// The same without the content, which has `length` octets.
void append_whole_head(std::string& out, int status, std::string_view field_lines,
                       std::string_view connection_line, std::uint64_t length);

/// The empty line behind the fields of a head.
inline void append_end_of_head(std::string& out) {
  out.append("\r\n", 2);
}

/// The size of a chunk and the end of line; the content and `chunk_end` must follow. Not for 0,
/// which would end the body.
void append_chunk_size(std::string& out, std::uint64_t size);
inline constexpr std::string_view chunk_end = "\r\n";

/// The end of a chunked body without trailers. With trailers: `last_chunk`, the fields, the empty
/// line.
inline constexpr std::string_view last_chunk_and_end = "0\r\n\r\n";
inline constexpr std::string_view last_chunk = "0\r\n";

/// Whether a field of `head` belongs to the connection that it came by and is not sent on: one of
/// `connection_specific_fields`, or one that `Connection` names and that has no entry in
/// `known_field`.
[[nodiscard]] auto is_of_connection(message_head const& head, field_view const& of) noexcept
    -> bool;

/// What a proxy changes in a request that it sends on.
struct request_forwarding {
  /// The request target; empty: the path and query of the request (of asterisk-form: "*").
  std::string_view target{};
  /// Empty: the request's own authority.
  std::string_view host{};
  /// Fields that are left out besides those of the connection, for instance because `field_lines`
  /// has them. With `other` in it, every field that has no entry in `known_field` is left out.
  field_set drop{};
  /// The same for fields without an entry in `known_field`, by their names in lower case.
  std::span<std::string const> drop_names{};
  /// Names in lower case, besides those in `known_field`, that mean something to us: fields that
  /// spell one of them with "_" in the place of "-" are left out, as those are which spell a known
  /// field so. CGI, WSGI and PHP take them for the field itself.
  std::span<std::string const> other_names{};
  /// Complete field lines behind the others, each with its end of line: `Via`, `X-Forwarded-For`,
  /// `Date`.
  std::string_view field_lines{};
  /// How the body is sent. Content-Length is sent on as it came or made again.
  body_framing body{};
  /// Sends `Connection: upgrade` and the request's `Upgrade`.
  bool upgrade = false;
};

/// Appends the head of a request as an HTTP/1.1 client sends it: Host first, then the fields of
/// `head` from end to end in their order, then what is made here, then the empty line.
///
/// Not sent on: the fields of the connection and those that `Connection` names. One that we know to
/// be of the message (`Authorization`, say) is sent on even so: a client must not take fields out
/// of a request by naming them. `TE: trailers` is sent on, and one line of `Expect` unless the
/// request is of HTTP/1.0. A Content-Length that stays is written again when it did not come as we
/// write it. Use it while the buffer of `head` lives.
void append_request_head(std::string& out, request_head const& head,
                         request_forwarding const& forwarding);

/// What `Connection` says in a response.
enum class connection_option : std::uint8_t { none, keep_alive, close };

/// What a proxy changes in a response that it sends on.
struct response_forwarding {
  /// As for a request.
  field_set drop{};
  std::span<std::string const> drop_names{};
  std::string_view field_lines{};
  /// How the body is sent: `chunked` for what ended `until_close` before, for instance.
  /// Content-Length is sent on as it came when this is `content_length`, and when it is `none`, as
  /// HEAD and 304 want it; never in a 1xx or 204.
  body_framing body{};
  connection_option connection = connection_option::none;
  /// Sends `Connection: upgrade` and the response's `Upgrade`, of a 101.
  bool upgrade = false;
};

/// Appends the head of a response as an HTTP/1.1 server sends it, as above: the status and its
/// phrase as they came.
void append_response_head(std::string& out, response_head const& head,
                          response_forwarding const& forwarding);

}  // namespace tidegate::TIDEGATE_ABI::wire
