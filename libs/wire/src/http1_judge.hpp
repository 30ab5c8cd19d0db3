// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/field.hpp>
#include <tidegate/http/target.hpp>
#include <tidegate/wire/http1_head.hpp>

#include "grammar.hpp"
#include "scan.hpp"

#include <cstdint>
#include <limits>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::wire {

namespace detail {

/// Content-Length = 1*DIGIT (RFC 9110, section 8.6). One number, no list of equal ones.
[[nodiscard]] inline auto parse_content_length(std::string_view text,
                                               std::uint64_t& length) noexcept -> head_fault {
  // So that signed arithmetic holds every length.
  constexpr std::uint64_t length_max = std::numeric_limits<std::int64_t>::max();
  std::uint64_t value = 0;
  bool overflow = false;
  for (char const c : text) {
    if (!is_digit(c)) {
      return head_fault::invalid_content_length;
    }
    auto const digit = static_cast<std::uint64_t>(c - '0');
    overflow = overflow || value > (length_max - digit) / 10;
    value = overflow ? 0 : value * 10 + digit;
  }
  if (text.empty()) {
    return head_fault::invalid_content_length;
  }
  length = value;
  return overflow ? head_fault::content_length_overflow : head_fault::none;
}

/// As `is_authority`, for a text in a buffer that begins at `begin`. The usual name of a host, also
/// with a port, needs no second look; what is left is for the one parser of hosts.
[[nodiscard]] inline auto is_authority_in(char const* begin, std::string_view text) noexcept
    -> bool {
  auto const* const end = text.data() + text.size();
  auto const* const unusual = scan::find<scan::unusual>(begin, text.data(), end);
  if (unusual != text.data() && (unusual == end || *unusual == ':')) {
    return unusual == end ||
           http::is_port({unusual + 1, static_cast<std::size_t>(end - unusual - 1)});
  }
  return http::parse_host(text).has_value();
}

}  // namespace detail

/// What the fields of a head say about its message and the connection.
class field_judge {
 public:
  /// `begin` is where the buffer of the head begins.
  explicit field_judge(char const* begin) noexcept : begin_(begin) {}

  /// Notes a field, and what it says when it says something to us.
  [[nodiscard, gnu::always_inline]] auto take(field_view const& f, message_head& out,
                                              request_head* request) noexcept -> head_fault {
    if (f.known != known_field::other && f.known <= known_field::te) {
      if (auto const fault = judge(f, out, request); fault != head_fault::none) [[unlikely]] {
        return fault;
      }
    }
    out.present_.insert(f.known);
    return head_fault::none;
  }

  /// All fields are there.
  void finish(message_head& out) const noexcept {
    bool const persistent = out.minor_version_ == 1 || keep_alive_option_;
    out.keep_alive_ = persistent && !close_option_;
    out.upgrade_asked_ =
        upgrade_option_ && out.minor_version_ == 1 && out.present_.contains(known_field::upgrade);
  }

  [[nodiscard]] auto host() const noexcept -> std::string_view { return host_; }

 private:
  /// What one field says about the message and the connection.
  [[nodiscard]] auto judge(field_view const& f, message_head& out, request_head* request) noexcept
      -> head_fault {
    switch (f.known) {
      case known_field::host: return request == nullptr ? head_fault::none : judge_host(f, out);
      case known_field::content_length: return judge_content_length(f, out);
      case known_field::transfer_encoding: return judge_transfer_encoding(f, out);
      case known_field::connection: return judge_connection(f, out);
      case known_field::expect:
        return request == nullptr ? head_fault::none : judge_expect(f, *request);
      case known_field::te:
        if (request != nullptr) {
          judge_te(f, *request);
        }
        return head_fault::none;
      default: return head_fault::none;
    }
  }

  [[nodiscard]] auto judge_host(field_view const& f, message_head const& out) noexcept
      -> head_fault {
    if (out.present_.contains(known_field::host)) {
      return head_fault::repeated_host;
    }
    host_ = f.value;
    return detail::is_authority_in(begin_, f.value) ? head_fault::none : head_fault::invalid_host;
  }

  [[nodiscard]] static auto judge_content_length(field_view const& f, message_head& out) noexcept
      -> head_fault {
    if (out.present_.contains(known_field::content_length)) {
      return head_fault::repeated_content_length;
    }
    if (out.present_.contains(known_field::transfer_encoding)) {
      return head_fault::content_length_and_transfer_encoding;
    }
    auto const fault = detail::parse_content_length(f.value, out.body_.length);
    out.body_.kind = out.body_.length == 0 ? body_kind::none : body_kind::content_length;
    return fault;
  }

  /// We decode no other coding than chunked, which comes last and once (RFC 9112, section 6.1).
  [[nodiscard]] static auto judge_transfer_encoding(field_view const& f, message_head& out) noexcept
      -> head_fault {
    if (out.present_.contains(known_field::content_length)) {
      return head_fault::content_length_and_transfer_encoding;
    }
    if (out.minor_version_ == 0) {
      return head_fault::transfer_encoding_in_http_1_0;
    }
    auto rest = f.value;
    do {
      bool const list_goes_on = rest.find(',') != rest.npos;
      auto const coding = http::take_element(rest);
      if (!grammar::is_token(coding) || (list_goes_on && rest.empty())) {
        return head_fault::invalid_transfer_encoding;
      }
      if (out.body_.kind == body_kind::chunked) {
        return head_fault::misplaced_chunked;
      }
      if (!equal_ignoring_case(coding, "chunked")) {
        return head_fault::unknown_transfer_coding;
      }
      out.body_.kind = body_kind::chunked;
    } while (!rest.empty());
    return head_fault::none;
  }

  [[nodiscard]] auto judge_connection(field_view const& f, message_head& out) noexcept
      -> head_fault {
    if (f.value == "keep-alive") {
      keep_alive_option_ = true;  // by far the most frequent
      return head_fault::none;
    }
    auto rest = f.value;
    while (!rest.empty()) {
      auto const option = http::take_element(rest);
      if (option.empty()) {
        continue;  // a recipient takes empty elements of a list (RFC 9110, section 5.6.1.2)
      }
      if (equal_ignoring_case(option, "keep-alive")) {
        keep_alive_option_ = true;
      } else if (equal_ignoring_case(option, "close")) {
        close_option_ = true;
      } else if (!grammar::is_token(option)) {
        return head_fault::invalid_connection;
      } else if (auto const name = find_known_field(option); name == known_field::other) {
        out.connection_names_other_ = true;
      } else if (name == known_field::upgrade) {
        upgrade_option_ = true;
      } else if (!connection_specific_fields.contains(name)) {
        out.connection_names_end_to_end_ = true;
      }
    }
    return head_fault::none;
  }

  /// Only 100-continue is defined (RFC 9110, section 10.1.1); in HTTP/1.0 it means nothing.
  [[nodiscard]] static auto judge_expect(field_view const& f, request_head& out) noexcept
      -> head_fault {
    if (out.minor_version_ == 0) {
      return head_fault::none;
    }
    out.expects_continue_ = equal_ignoring_case(f.value, "100-continue");
    return out.expects_continue_ ? head_fault::none : head_fault::unknown_expectation;
  }

  static void judge_te(field_view const& f, request_head& out) noexcept {
    for (auto rest = f.value; !rest.empty();) {
      if (equal_ignoring_case(http::take_element(rest), "trailers")) {
        out.accepts_trailers_ = true;
      }
    }
  }

  char const* begin_;
  std::string_view host_;
  bool keep_alive_option_ = false;
  bool close_option_ = false;
  bool upgrade_option_ = false;
};

}  // namespace tidegate::TIDEGATE_ABI::wire
