// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/http1_head.hpp>
#include <tidegate/wire/http1_write.hpp>

#include "field_line.hpp"
#include "grammar.hpp"
#include "http1_judge.hpp"
#include "http1_scanner.hpp"
#include "scan.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tidegate::TIDEGATE_ABI::wire {

using namespace grammar;
using detail::has_lf;
using detail::view;

auto is_authority(std::string_view text) noexcept -> bool {
  return detail::is_authority_in(text.data(), text);
}

auto find_method(std::string_view text) noexcept -> method {
  switch (text.size()) {
    case 3: return text == "GET" ? method::get : text == "PUT" ? method::put : method::other;
    case 4: return text == "POST" ? method::post : text == "HEAD" ? method::head : method::other;
    case 5:
      return text == "PATCH" ? method::patch : text == "TRACE" ? method::trace : method::other;
    case 6: return text == "DELETE" ? method::delete_ : method::other;
    case 7:
      return text == "OPTIONS"   ? method::options
             : text == "CONNECT" ? method::connect
                                 : method::other;
    default: return method::other;
  }
}

/// Reads one head. Every step returns true when it went well; otherwise `status_` is the answer.
class head_reader : head_scanner {
 public:
  head_reader(std::string_view bytes, head_limits const& limits) noexcept
      : head_scanner(bytes, limits), judge_(bytes.data()) {}

  [[nodiscard]] auto read_request(std::size_t already_seen, head_limits const& limits,
                                  request_head& out) noexcept -> head_status {
    begin_message(out);
    out.expects_continue_ = false;
    out.accepts_trailers_ = false;
    out.extended_connect_ = false;
    if (skip_empty_lines()) {
      limit_first_line(limits.request_line_octets_max);
      if (has_news(already_seen) && read_request_line(out) && read_fields(out, &out)) {
        finish_request(out);
      }
    }
    return status_;
  }

  /// For a reader of `parts.field_lines`.
  [[nodiscard]] auto take_request(request_parts const& parts, head_limits const& limits,
                                  request_head& out) noexcept -> head_fault {
    begin_message(out);
    out.expects_continue_ = false;
    out.accepts_trailers_ = false;
    out.extended_connect_ = parts.extended_connect;
    out.minor_version_ = 1;
    if (take_request_line(parts, limits, out) && take_fields(parts.fields, out, &out)) {
      finish_request(out);
    }
    return status_.fault;
  }

  [[nodiscard]] auto take_response(int status, field_parts const& parts, method asked,
                                   bool without_content, response_head& out) noexcept
      -> head_fault {
    begin_message(out);
    out.minor_version_ = 1;
    out.status_ = status;
    out.reason_ = reason_phrase(status);
    if (take_fields(parts, out, nullptr)) {
      finish_response(asked, out);
      if (without_content && out.body_.kind == body_kind::until_close) {
        out.body_ = {};
      }
    }
    return status_.fault;
  }

  [[nodiscard]] auto read_response(std::size_t already_seen, method asked,
                                   response_head& out) noexcept -> head_status {
    begin_message(out);
    if (begins_with_h() && has_news(already_seen) && read_status_line(out) &&
        read_fields(out, nullptr)) {
      finish_response(asked, out);
    }
    return status_;
  }

 private:
  static void begin_message(message_head& out) noexcept {
    out.fields_count_ = 0;
    out.present_ = {};
    out.body_ = {};
    out.upgrade_asked_ = false;
    out.connection_names_end_to_end_ = false;
    out.connection_names_other_ = false;
  }

  // ── the request line ───────────────────────────────────────────────────────────────────────────

  [[nodiscard]] auto read_request_line(request_head& out) noexcept -> bool {
    if (!read_method(out)) {
      return false;
    }
    auto const* const target_begin = at_;
    at_ = scan::find<scan::target_end>(begin_, at_, end_);
    if (at_ == end_) {
      return out_of_bytes();
    }
    if (*at_ != ' ' || at_ == target_begin) {
      bool const without_version = *at_ == '\r' && at_ != target_begin;
      return refuse(detail::fault_at(at_, end_,
                                     without_version ? head_fault::malformed_version
                                                     : head_fault::invalid_target),
                    at_);
    }
    out.target_ = view(target_begin, at_);

    auto const* const version = ++at_;
    int major = 1;
    if (!read_version(major, out.minor_version_)) {
      return false;
    }
    if (!read_line_end(head_fault::malformed_version)) {
      return false;
    }
    if (at_ > first_line_end_max_) {
      return refuse_at_once(head_fault::request_line_too_long, first_line_end_max_);
    }
    in_first_line_ = false;
    if (major != 1 || out.minor_version_ > 1) {
      return refuse_version(version);
    }
    return read_target(out);
  }

  /// The method and the space behind it.
  [[nodiscard, gnu::always_inline]] auto read_method(request_head& out) noexcept -> bool {
    if (end_ - at_ >= 4 && std::memcmp(at_, "GET ", 4) == 0) {  // by far the most frequent
      out.method_text_ = {at_, 3};
      out.method_ = method::get;
      at_ += 4;
      return true;
    }
    auto const* const begin = at_;
    while (at_ != end_ && is(*at_, token_char)) {
      ++at_;
    }
    if (at_ == end_) {
      return out_of_bytes();
    }
    if (*at_ != ' ') {
      return refuse(detail::fault_at(at_, end_, head_fault::invalid_method), at_);
    }
    out.method_text_ = view(begin, at_);
    out.method_ = find_method(out.method_text_);
    ++at_;
    return true;
  }

  /// Another version: 505, or the preface of HTTP/2, which is told apart by the empty line after
  /// it.
  [[gnu::cold]] auto refuse_version(char const* version) noexcept -> bool {
    bool const may_be_preface = first_line_ == begin_ && view(begin_, at_) == "PRI * HTTP/2.0\r\n";
    if (!may_be_preface) {
      return refuse_at_once(head_fault::unsupported_version, version);
    }
    if (!has_lf(at_, end_)) {
      return out_of_bytes();
    }
    if (view(at_, end_).starts_with("\r\n")) {
      status_ = {head_state::http2_preface, head_fault::none, 0};
      return false;
    }
    return refuse_at_once(head_fault::unsupported_version, version);
  }

  [[nodiscard]] auto take_request_line(request_parts const& parts, head_limits const& limits,
                                       request_head& out) noexcept -> bool {
    constexpr std::string_view besides = "  HTTP/1.1\r\n";
    auto const [method, target] = std::pair(parts.method, parts.target);
    if (method.size() + target.size() + besides.size() > limits.request_line_octets_max) {
      return refuse_at_once(head_fault::request_line_too_long, begin_);
    }
    if (!is_token(method)) {
      return refuse_at_once(head_fault::invalid_method, begin_);
    }
    auto const* const target_end = target.data() + target.size();
    if (target.empty() ||
        scan::find<scan::target_end>(target.data(), target.data(), target_end) != target_end) {
      return refuse_at_once(head_fault::invalid_target, begin_);
    }
    out.method_text_ = method;
    out.method_ = find_method(method);
    out.target_ = target;
    return read_target(out);
  }

  /// The four forms of a target (RFC 9112, section 3.2).
  [[nodiscard]] auto read_target(request_head& out) noexcept -> bool {
    auto const target = out.target_;
    out.query_ = {};
    out.authority_ = {};
    if (target[0] == '/' && out.method_ != method::connect) {
      split_query(target, out);
      return true;
    }
    bool good = false;
    if (out.method_ == method::connect) {
      out.path_ = {};
      out.authority_ = target;
      good = is_authority(target) && is_digit(target.back()) && target.rfind(':') != target.npos;
    } else if (target == "*") {
      out.path_ = target;
      good = out.method_ == method::options;
    } else {
      good = read_absolute_form(target, out);
    }
    return good || refuse_at_once(head_fault::invalid_target_form, target.data());
  }

  static void split_query(std::string_view path, request_head& out) noexcept {
    auto const* const end = path.data() + path.size();
    auto const* const mark = scan::find<scan::exactly<'?'>>(path.data(), path.data(), end);
    out.path_ = view(path.data(), mark);
    out.query_ = view(mark, end);
  }

  [[nodiscard]] static auto read_absolute_form(std::string_view target, request_head& out) noexcept
      -> bool {
    auto const scheme = target.substr(0, target.find("://"));
    if (!equal_ignoring_case(scheme, "http") && !equal_ignoring_case(scheme, "https")) {
      return false;
    }
    if (scheme.size() == target.size()) {
      return false;
    }
    auto const rest = target.substr(scheme.size() + 3);
    auto const authority = rest.substr(0, rest.find_first_of("/?"));
    out.authority_ = authority;
    split_query(rest.substr(authority.size()), out);
    if (out.path_.empty()) {
      out.path_ = "/";
    }
    return is_authority(authority);
  }

  // ── the status line ────────────────────────────────────────────────────────────────────────────

  [[nodiscard]] auto read_status_line(response_head& out) noexcept -> bool {
    auto const* const version = at_;
    int major = 1;
    if (!read_version(major, out.minor_version_)) {
      // Not that a version is wrong: this is not a response at all.
      if (status_.fault == head_fault::malformed_version) {
        status_.fault = head_fault::malformed_status_line;
      }
      return false;
    }
    int status = 0;
    if (!read_status(status)) {
      return false;
    }
    auto const* const after_status = at_;
    // Some origins leave out the space when there is no phrase.
    if (at_ != end_ && *at_ == ' ') {
      ++at_;
    }
    auto const* const reason = at_;
    if (reason != after_status) {
      at_ = scan::find<scan::control>(begin_, at_, end_);
    }
    auto const* const reason_end = at_;
    if (!read_line_end(head_fault::malformed_status_line)) {
      return false;
    }
    in_first_line_ = false;
    if (major != 1 || out.minor_version_ > 1) {
      return refuse_at_once(head_fault::unsupported_version, version);
    }
    if (status < 100 || status > 599) {
      return refuse_at_once(head_fault::invalid_status, after_status - 3);
    }
    out.status_ = status;
    out.reason_ = view(reason, reason_end);
    return true;
  }

  /// A space and three digits.
  [[nodiscard, gnu::always_inline]] auto read_status(int& status) noexcept -> bool {
    auto const* const p = at_;
    if (end_ - p >= 4 && p[0] == ' ' && is_digit(p[1]) && is_digit(p[2]) && is_digit(p[3])) {
      status = (p[1] - '0') * 100 + (p[2] - '0') * 10 + (p[3] - '0');
      at_ += 4;
      return true;
    }
    for (int i = 0; at_ != end_; ++i, ++at_) {
      if (i == 0 ? *at_ != ' ' : !is_digit(*at_)) {
        return refuse(detail::fault_at(at_, end_, head_fault::malformed_status_line), at_);
      }
    }
    return out_of_bytes();
  }

  // ── fields ─────────────────────────────────────────────────────────────────────────────────────

  /// `request` is the same head when it is that of a request.
  [[nodiscard, gnu::always_inline]] auto read_fields(message_head& out,
                                                     request_head* request) noexcept -> bool {
    auto const* const begin = begin_;
    auto const* const end = end_;
    auto const* line = at_;
    if (end - begin < 16) [[unlikely]] {
      // No head is so short, and no first line with a field. Said here once, it need not be asked
      // for every field.
      return refuse_field_line(line, head_fault::none);
    }
    auto* next = out.fields_.data();
    auto* const last = next + fields_max_;
    for (;;) {
      if (end - line >= 2 && std::memcmp(line, "\r\n", 2) == 0) {
        break;
      }
      if (next == last) [[unlikely]] {
        return refuse_field_line(line, head_fault::too_many_fields);
      }
      auto const* const next_line = detail::read_field_line(begin, line, end, *next);
      if (next_line == nullptr) [[unlikely]] {
        return refuse_field_line(line, head_fault::none);
      }
      if (auto const fault = judge_.take(*next, out, request); fault != head_fault::none)
          [[unlikely]] {
        return refuse_at_once(fault, next->value.data());
      }
      ++next;
      line = next_line;
    }
    out.fields_count_ = static_cast<std::size_t>(next - out.fields_.data());
    out.field_lines_ = view(at_, line);
    at_ = line + 2;
    return true;
  }

  /// The lines are told apart already.
  [[nodiscard]] auto take_fields(field_parts const& parts, message_head& out,
                                 request_head* request) noexcept -> bool {
    if (parts.lines.size() > fields_max_) {
      return refuse_at_once(head_fault::too_many_fields, begin_);
    }
    auto* next = out.fields_.data();
    auto const* line = parts.field_lines.data();
    auto const* const end = line + parts.field_lines.size();
    for (auto const [name_size, value_size] : parts.lines) {
      auto const* const value = line + name_size + 2;
      next->name = {line, name_size};
      next->value = {value, value_size};
      next->known = detail::find_known(line, name_size, static_cast<std::size_t>(end - line));
      if (auto const fault = judge_.take(*next, out, request); fault != head_fault::none)
          [[unlikely]] {
        return refuse_at_once(fault, value);
      }
      ++next;
      line = value + value_size + 2;
    }
    out.fields_count_ = parts.lines.size();
    out.field_lines_ = parts.field_lines;
    at_ = end;
    return true;
  }

  /// Refuses a line for what is wrong in it, or else for `otherwise`.
  [[gnu::cold]] auto refuse_field_line(char const* line, head_fault otherwise) noexcept -> bool {
    auto const [fault, at] = detail::explain_field_line(line, end_);
    return fault != head_fault::none ? refuse(fault, at) : refuse(otherwise, line);
  }

  // ── the whole ──────────────────────────────────────────────────────────────────────────────────

  void finish(message_head& out) noexcept {
    judge_.finish(out);
    status_ = {head_state::complete, head_fault::none, offset_of(at_)};
  }

  void finish_request(request_head& out) noexcept {
    if (out.present_.contains(known_field::host)) {
      if (!out.authority_.empty() && !equal_ignoring_case(out.authority_, judge_.host())) {
        refuse_at_once(head_fault::target_host_mismatch, out.target_.data());
        return;
      }
      out.authority_ = judge_.host();
    } else if (out.minor_version_ == 1) {
      refuse_at_once(head_fault::missing_host, at_ - std::min<std::ptrdiff_t>(2, at_ - begin_));
      return;
    }
    finish(out);
  }

  void finish_response(method asked, response_head& out) noexcept {
    finish(out);
    int const status = out.status_;
    bool const has_transfer_encoding = out.present_.contains(known_field::transfer_encoding);
    bool const frames_a_body = has_transfer_encoding || out.body_.length != 0;
    if (status < 200 && frames_a_body) {
      refuse_at_once(head_fault::body_in_interim_response, at_ - 2);
      return;
    }
    if (status == 204 && frames_a_body) {
      out.keep_alive_ = false;  // who knows whether the body comes
    }
    bool const tunnel = asked == method::connect && status >= 200 && status < 300;
    if (status < 200 || status == 204 || status == 304 || asked == method::head || tunnel) {
      out.body_ = {};
    } else if (!has_transfer_encoding && !out.present_.contains(known_field::content_length)) {
      out.body_.kind = body_kind::until_close;
      out.keep_alive_ = false;
    }
  }

  field_judge judge_;
};

auto parse_request_head(std::string_view bytes, std::size_t already_seen, head_limits const& limits,
                        request_head& out) noexcept -> head_status {
  return head_reader(bytes, limits).read_request(already_seen, limits, out);
}

auto take_request_head(request_parts const& parts, head_limits const& limits,
                       request_head& out) noexcept -> head_fault {
  return head_reader(parts.fields.field_lines, limits).take_request(parts, limits, out);
}

auto take_response_head(int status, field_parts const& parts, head_limits const& limits,
                        method asked, bool without_content, response_head& out) noexcept
    -> head_fault {
  return head_reader(parts.field_lines, limits)
      .take_response(status, parts, asked, without_content, out);
}

auto parse_response_head(std::string_view bytes, std::size_t already_seen,
                         head_limits const& limits, method asked, response_head& out) noexcept
    -> head_status {
  return head_reader(bytes, limits).read_response(already_seen, asked, out);
}

}  // namespace tidegate::TIDEGATE_ABI::wire
