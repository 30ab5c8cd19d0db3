// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http1_head.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::wire {

/// What keeps a body from being taken. A server answers 400 to a request and 502 to a response, and
/// closes the connection: where the next message begins is not known.
enum class body_fault : std::uint8_t {
  none,
  missing_chunk_size,
  invalid_chunk_size,  ///< what is neither a hexadecimal digit nor the end of the size
  chunk_size_overflow,
  invalid_chunk_extension,  ///< a control character
  chunk_extensions_too_large,
  bare_cr,
  bare_lf,
  missing_chunk_end,  ///< no end of line behind the content of a chunk
  trailers_too_large,
  too_many_trailers,
  invalid_trailer,  ///< no field line
};

/// The name of the fault as it stands above.
[[nodiscard]] auto to_string(body_fault fault) noexcept -> std::string_view;

/// The fields that may not come as trailers, because they frame or route the message, or
/// authenticate its sender (RFC 9110, section 6.5.1).
inline constexpr field_set fields_forbidden_in_trailers =
    connection_specific_fields |
    field_set{
        known_field::host,          known_field::content_length, known_field::expect,
        known_field::trailer,       known_field::content_type,   known_field::content_encoding,
        known_field::authorization, known_field::cookie,         known_field::set_cookie,
        known_field::forwarded,     known_field::x_forwarded_for};

/// The fields that say something of the exchange with us, which an upstream does not know at the
/// end of its answer any more than at the beginning: left out of trailers in either direction.
inline constexpr field_set fields_left_out_of_trailers = {known_field::ratelimit,
                                                          known_field::ratelimit_policy};

/// Whether a trailer field goes on through a proxy; the message goes on without the others. The one
/// place that says so. A name that has `_` in the place of `-` counts as the one that it is read as
/// by some (see `find_known_field_by_any_spelling`).
[[nodiscard]] auto is_forwarded_trailer(field_view const& trailer) noexcept -> bool;
/// Whether the trailer has one of these names, in lower case, or spells one with `_` for `-`.
[[nodiscard]] auto is_trailer_of(std::string_view name, std::span<std::string const> names) noexcept
    -> bool;

/// What is too large.
struct body_limits {
  /// Of all chunk extensions of a body together, their ";" among them. They mean nothing to us.
  std::uint32_t extension_octets_max = 4 * 1024;
  /// Of all trailer lines together with their ends.
  std::uint32_t trailer_octets_max = 8 * 1024;
  std::uint32_t trailers_max = 32;
  /// Trailers of these names, in lower case, do not go on, nor do those that some read as one of
  /// them.
  std::span<std::string const> left_out{};
};

enum class body_state : std::uint8_t {
  more,     ///< call again with what follows
  trailer,  ///< a trailer field was read; call again with what follows
  done,     ///< the body is complete; bytes behind `consumed` belong to the next message
  refused,  ///< for `fault`, found at byte `consumed`
};

/// What came of feeding bytes.
struct body_progress {
  body_state state = body_state::more;
  body_fault fault = body_fault::none;
  std::size_t consumed = 0;  ///< how many of the bytes are done with, framing and content
  std::string_view content;  ///< a part of the bytes, or empty; also with `trailer` and `done`
  field_view trailer;        ///< with `trailer`; borrows from the bytes too
};

/// What came of passing bytes on with their framing.
struct raw_progress {
  body_state state = body_state::more;  ///< never `trailer`
  body_fault fault = body_fault::none;
  std::size_t consumed = 0;          ///< this many of the bytes are done with
  std::uint64_t content_octets = 0;  ///< so many of them are content
  /// What is to be sent on for them: the bytes themselves, as nearly always, or a text of the
  /// caller.
  std::string_view send;
};

/// Follows the framing of one body. Keeps no bytes.
///
/// A caller gives each call what was not consumed before and what came after it. Only in the
/// trailer section of a chunked body, `more` may leave bytes over: the beginning of a line. They
/// are at most `trailer_octets_max`.
class body_decoder {
 public:
  /// A body that is done.
  body_decoder() = default;
  explicit body_decoder(body_framing framing) noexcept;

  /// Goes on to the end of one span of content and the framing around it. Call again while the
  /// state is `more` or `trailer`, `consumed` is above 0 and bytes are left. Trailers that do not
  /// go on are not shown.
  [[nodiscard]] auto feed(std::string_view bytes, body_limits const& limits = {}) noexcept
      -> body_progress;

  /// Goes as far as the bytes do, for one who sends them on to a peer that reads the same framing.
  /// What is sent on has chunk sizes without zeros in front, no chunk extensions (RFC 9112, section
  /// 7.1.1: they are of the hop) and no trailers that do not go on. Where that is how the bytes
  /// came, nothing is copied; else `rewritten`, whose text is replaced, is what to send.
  [[nodiscard]] auto pass(std::string_view bytes, std::string& rewritten,
                          body_limits const& limits = {}) -> raw_progress;

  /// Whether the body has ended.
  [[nodiscard]] auto done() const noexcept -> bool { return state_ == state::done; }
  /// True when the peer may close the connection now: the body is complete, or ends so.
  [[nodiscard]] auto may_end_here() const noexcept -> bool {
    return state_ == state::done || state_ == state::until_close;
  }

 private:
  enum class state : std::uint8_t {
    done,
    content_length,
    until_close,
    chunk_size,
    chunk_extension,
    chunk_size_lf,
    chunk_content,
    chunk_end_cr,
    chunk_end_lf,
    trailers,
    refused,
  };

  /// What of the bytes of one call does not go on. Null for `feed`, which shows no framing.
  class rewriting;

  [[nodiscard]] auto feed(std::string_view bytes, body_limits const& limits, rewriting* out)
      -> body_progress;
  void feed_chunked(std::string_view bytes, body_limits const& limits, rewriting* out,
                    body_progress& progress);
  [[nodiscard]] auto read_chunk_size(std::string_view bytes, std::size_t at, rewriting* out)
      -> body_fault;
  [[nodiscard]] auto read_extension(std::string_view bytes, body_limits const& limits,
                                    std::size_t& at) noexcept -> body_fault;
  void read_trailer(std::string_view bytes, body_limits const& limits, rewriting* out,
                    body_progress& progress);
  void refuse(body_fault fault, body_progress& progress) noexcept;

  std::uint64_t remaining_ = 0;  // octets of the body or of the chunk; the size while it is read
  std::uint32_t extension_octets_ = 0;
  std::uint32_t trailer_octets_ = 0;
  std::uint32_t trailers_ = 0;
  std::uint8_t size_digits_ = 0;
  state state_ = state::done;
  body_fault fault_ = body_fault::none;
  bool zero_is_held_ = false;  // the bytes ended behind it: it may be one in front of other digits
};
static_assert(sizeof(body_decoder) <= 32);

}  // namespace tidegate::TIDEGATE_ABI::wire
