// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/field.hpp>
#include <tidegate/wire/known_field.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::wire {

/// Methods that callers tell apart. The text stays in the head.
enum class method : std::uint8_t {
  other,
  get,
  head,
  post,
  put,
  delete_,  ///< `delete` is a keyword
  patch,
  options,
  connect,
  trace,
};

/// What keeps a head from being taken. `status_of` says how to answer.
enum class head_fault : std::uint8_t {
  none,
  // Lines.
  bare_cr,
  bare_lf,
  too_many_empty_lines,
  request_line_too_long,
  head_too_large,
  too_many_fields,
  // The request line.
  invalid_method,
  invalid_target,       ///< a character that no target has
  invalid_target_form,  ///< none of the four forms, or not that of this method
  malformed_version,
  unsupported_version,
  // The status line.
  malformed_status_line,
  invalid_status,
  // Field lines.
  obs_fold,
  empty_name,
  space_before_colon,
  invalid_name,
  missing_colon,
  invalid_value,  ///< a control character
  // What the fields say.
  missing_host,
  repeated_host,
  invalid_host,
  target_host_mismatch,
  repeated_content_length,
  invalid_content_length,
  content_length_overflow,
  content_length_and_transfer_encoding,
  transfer_encoding_in_http_1_0,
  unknown_transfer_coding,
  misplaced_chunked,  ///< twice, or with another coding after it
  invalid_transfer_encoding,
  invalid_connection,
  unknown_expectation,
  body_in_interim_response,
};

/// The status with which a server refuses a request: 400, 414, 417, 431, 501 or 505. A response
/// with a fault is answered by 502 whatever it is.
[[nodiscard]] auto status_of(head_fault fault) noexcept -> int;

/// The name of the fault as it stands above, for logs and tests.
[[nodiscard]] auto to_string(head_fault fault) noexcept -> std::string_view;

/// Room for fields in a head.
inline constexpr std::size_t fields_capacity = 128;

/// What is too large.
struct head_limits {
  /// Of a request line with its end of line; a longer one is `request_line_too_long`.
  std::size_t request_line_octets_max = 8 * 1024;
  /// Of the whole head with the empty lines before it and its last line.
  std::size_t head_octets_max = 32 * 1024;
  /// Above `fields_capacity` it is `fields_capacity`.
  std::size_t fields_max = 100;
};

/// A field line of the buffer that was read: its name as it came, its value without the white space
/// around it.
struct field_view : http::field_view {
  known_field known = known_field::other;
};

/// How long a body is (RFC 9112, section 6.3).
enum class body_kind : std::uint8_t {
  none,            ///< there is none, or its length is 0
  content_length,  ///< as many octets as the field says, and at least one
  chunked,
  until_close,  ///< of a response only
};

/// The framing of a body.
struct body_framing {
  body_kind kind = body_kind::none;
  std::uint64_t length = 0;  ///< for `content_length`

  auto operator==(body_framing const&) const -> bool = default;
};

/// What request heads and response heads share.
///
/// A head borrows all of its text from the buffer that was read and lives no longer. It is large:
/// keep one for each loop and read every message into it.
class message_head {
 public:
  /// The fields in the order in which they came.
  [[nodiscard]] auto fields() const noexcept -> std::span<field_view const> {
    return {fields_.data(), fields_count_};
  }
  /// The first field of that name, or nullptr. Not for `other`.
  [[nodiscard]] auto find(known_field name) const noexcept -> field_view const* {
    if (present_.contains(name)) {
      for (auto const& f : fields()) {
        if (f.known == name) {
          return &f;
        }
      }
    }
    return nullptr;
  }
  /// Its value, or an empty text.
  [[nodiscard]] auto value_of(known_field name) const noexcept -> std::string_view {
    auto const* const f = find(name);
    return f == nullptr ? std::string_view{} : f->value;
  }
  [[nodiscard]] auto has(known_field name) const noexcept -> bool {
    return present_.contains(name);
  }
  [[nodiscard]] auto present() const noexcept -> field_set const& { return present_; }

  /// The field lines as they came, each with its end of line, without the empty line after them.
  [[nodiscard]] auto field_lines() const noexcept -> std::string_view { return field_lines_; }

  /// 0 or 1, of HTTP/1.0 and HTTP/1.1.
  [[nodiscard]] auto minor_version() const noexcept -> int { return minor_version_; }
  [[nodiscard]] auto body() const noexcept -> body_framing { return body_; }
  /// True when the connection can be used again once this message is complete (RFC 9112, section
  /// 9.3).
  [[nodiscard]] auto keep_alive() const noexcept -> bool { return keep_alive_; }
  /// True when `Connection` says `upgrade` and there is an `Upgrade` field, in HTTP/1.1.
  [[nodiscard]] auto upgrade_asked() const noexcept -> bool { return upgrade_asked_; }
  /// True when `Connection` names a field that does not belong to the connection, such as
  /// `Authorization`. It is sent on all the same; worth a line in a log.
  [[nodiscard]] auto connection_names_end_to_end_field() const noexcept -> bool {
    return connection_names_end_to_end_;
  }
  /// True when `Connection` has options that no entry of `known_field` stands for.
  [[nodiscard]] auto connection_names_other_fields() const noexcept -> bool {
    return connection_names_other_;
  }

 private:
  friend class head_reader;
  friend class owned_request_head;
  friend class field_judge;

  std::array<field_view, fields_capacity> fields_;  // only the first fields_count_ mean anything
  std::size_t fields_count_ = 0;
  std::string_view field_lines_;
  field_set present_;
  body_framing body_;
  int minor_version_ = 1;
  bool keep_alive_ = false;
  bool upgrade_asked_ = false;
  bool connection_names_end_to_end_ = false;
  bool connection_names_other_ = false;
};

/// The head of a request (RFC 9112, section 3).
class request_head : public message_head {
 public:
  /// The method of the request.
  [[nodiscard]] auto method() const noexcept -> wire::method { return method_; }
  [[nodiscard]] auto method_text() const noexcept -> std::string_view { return method_text_; }
  /// As it came.
  [[nodiscard]] auto target() const noexcept -> std::string_view { return target_; }
  /// The path of the target, in origin-form and in absolute-form; "/" when an absolute target has
  /// none, "*" in asterisk-form, empty in authority-form.
  [[nodiscard]] auto path() const noexcept -> std::string_view { return path_; }
  /// The query with its "?", or an empty text.
  [[nodiscard]] auto query() const noexcept -> std::string_view { return query_; }
  /// The value of `Host`, or the authority of the target when an HTTP/1.0 request has only that;
  /// may be empty in HTTP/1.0.
  [[nodiscard]] auto authority() const noexcept -> std::string_view { return authority_; }
  /// True when the client waits for a 100 before it sends the body (RFC 9110, section 10.1.1).
  [[nodiscard]] auto expects_continue() const noexcept -> bool { return expects_continue_; }
  /// True when `TE` says that the client takes trailers.
  [[nodiscard]] auto accepts_trailers() const noexcept -> bool { return accepts_trailers_; }
  /// True for an extended CONNECT of HTTP/2 (RFC 8441), which is shown as the GET with `Upgrade`
  /// that HTTP/1.1 would have. A 2xx means that the protocol has begun.
  [[nodiscard]] auto is_extended_connect() const noexcept -> bool { return extended_connect_; }

 private:
  friend class head_reader;
  friend class owned_request_head;
  friend class field_judge;

  wire::method method_ = wire::method::other;
  bool expects_continue_ = false;
  bool accepts_trailers_ = false;
  bool extended_connect_ = false;
  std::string_view method_text_;
  std::string_view target_;
  std::string_view path_;
  std::string_view query_;
  std::string_view authority_;
};

/// The head of a response (RFC 9112, section 4).
class response_head : public message_head {
 public:
  /// What the status line says.
  [[nodiscard]] auto status() const noexcept -> int { return status_; }
  [[nodiscard]] auto reason() const noexcept -> std::string_view { return reason_; }
  /// True for 1xx but 101: another head follows.
  [[nodiscard]] auto interim() const noexcept -> bool { return status_ < 200 && status_ != 101; }

 private:
  friend class head_reader;
  friend class field_judge;

  int status_ = 0;
  std::string_view reason_;
};

enum class head_state : std::uint8_t {
  incomplete,     ///< keep the bytes; `size` of them need not be searched again
  complete,       ///< the first `size` bytes are the head
  refused,        ///< for `fault`, found at byte `size`
  http2_preface,  ///< the bytes begin the preface of HTTP/2 (RFC 9113, section 3.4)
};

/// What came of reading a head.
struct head_status {
  head_state state = head_state::incomplete;
  head_fault fault = head_fault::none;
  std::size_t size = 0;

  auto operator==(head_status const&) const -> bool = default;
};

/// Reads the head of a request at the beginning of `bytes`; up to two empty lines before it are
/// skipped.
///
/// While it is incomplete, call again with the same bytes and more behind them, and with the `size`
/// of the answer as `already_seen` (0 at first): input that comes byte by byte is not read over and
/// over. Where the bytes were split makes no difference to the last answer: a line is judged when
/// its LF is there (its first octet in the request line at once), the limits as soon as they are
/// reached.
///
/// `out` holds a message only after `complete`.
[[nodiscard]] auto parse_request_head(std::string_view bytes, std::size_t already_seen,
                                      head_limits const& limits, request_head& out) noexcept
    -> head_status;

/// The fields of a head that came one by one, as those of HTTP/2 do. Borrows its texts.
struct field_parts {
  /// How long name and value of a line are, which is `name: value` and CRLF.
  struct line {
    std::uint32_t name_size;
    std::uint32_t value_size;
  };

  std::string_view field_lines;  ///< with nothing in it that may not stand in a field line
  std::span<line const> lines;   ///< all of `field_lines`
};

/// The head of a request in parts.
struct request_parts {
  std::string_view method;
  std::string_view target;
  field_parts fields;
  bool extended_connect = false;  ///< see `request_head::is_extended_connect`
};

/// Judges a head in parts as `parse_request_head` does one of HTTP/1.1. `out` borrows from the
/// parts and holds a message only after `none`.
[[nodiscard]] auto take_request_head(request_parts const& parts, head_limits const& limits,
                                     request_head& out) noexcept -> head_fault;

/// Reads the head of a response to a request with the method `asked`, which decides whether there
/// is a body. Otherwise as above, but for empty lines, which may not come first.
[[nodiscard]] auto parse_response_head(std::string_view bytes, std::size_t already_seen,
                                       head_limits const& limits, method asked,
                                       response_head& out) noexcept -> head_status;

/// Judges the fields of a response in parts, as `parse_response_head` does. A response whose
/// Content-Length is not there ends as HTTP/2 says (`until_close`), or is `without_content`.
/// `status` is 100 to 599. `out` borrows from the parts and holds a message only after `none`.
[[nodiscard]] auto take_response_head(int status, field_parts const& parts,
                                      head_limits const& limits, method asked, bool without_content,
                                      response_head& out) noexcept -> head_fault;

/// What a method's text means; methods are case-sensitive.
[[nodiscard]] auto find_method(std::string_view text) noexcept -> method;

/// Whether `http::parse_host` takes `text`, `uri-host [ ":" port ]` (RFC 9110, section 7.2), told
/// quicker for the usual names.
[[nodiscard]] auto is_authority(std::string_view text) noexcept -> bool;

}  // namespace tidegate::TIDEGATE_ABI::wire
