// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/http1_head.hpp>

#include <tidegate/http/target.hpp>

#include "field_line.hpp"
#include "grammar.hpp"
#include "scan.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace tidegate::wire {

namespace {

using namespace grammar;

[[nodiscard]] auto has_lf(char const* begin, char const* end) noexcept -> bool {
  return begin < end && std::memchr(begin, '\n', static_cast<std::size_t>(end - begin)) != nullptr;
}

[[nodiscard]] auto view(char const* begin, char const* end) noexcept -> std::string_view {
  return {begin, static_cast<std::size_t>(end - begin)};
}

/// Content-Length = 1*DIGIT (RFC 9110, section 8.6). One number, no list of equal ones.
[[nodiscard]] auto parse_content_length(std::string_view text, std::uint64_t& length) noexcept
    -> head_fault {
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
[[nodiscard]] auto is_authority_in(char const* begin, std::string_view text) noexcept -> bool {
  auto const* const end = text.data() + text.size();
  auto const* const unusual = scan::find<scan::unusual>(begin, text.data(), end);
  if (unusual != text.data() && (unusual == end || *unusual == ':')) {
    return unusual == end || http::is_port(view(unusual + 1, end));
  }
  return http::parse_host(text).has_value();
}

}  // namespace

auto is_authority(std::string_view text) noexcept -> bool {
  return is_authority_in(text.data(), text);
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

auto status_of(head_fault fault) noexcept -> int {
  switch (fault) {
    case head_fault::request_line_too_long: return 414;
    case head_fault::head_too_large:
    case head_fault::too_many_fields: return 431;
    case head_fault::unsupported_version: return 505;
    case head_fault::unknown_transfer_coding: return 501;
    case head_fault::unknown_expectation: return 417;
    default: return 400;
  }
}

auto to_string(head_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case head_fault::none: return "none";
    case head_fault::bare_cr: return "bare_cr";
    case head_fault::bare_lf: return "bare_lf";
    case head_fault::too_many_empty_lines: return "too_many_empty_lines";
    case head_fault::request_line_too_long: return "request_line_too_long";
    case head_fault::head_too_large: return "head_too_large";
    case head_fault::too_many_fields: return "too_many_fields";
    case head_fault::invalid_method: return "invalid_method";
    case head_fault::invalid_target: return "invalid_target";
    case head_fault::invalid_target_form: return "invalid_target_form";
    case head_fault::malformed_version: return "malformed_version";
    case head_fault::unsupported_version: return "unsupported_version";
    case head_fault::malformed_status_line: return "malformed_status_line";
    case head_fault::invalid_status: return "invalid_status";
    case head_fault::obs_fold: return "obs_fold";
    case head_fault::empty_name: return "empty_name";
    case head_fault::space_before_colon: return "space_before_colon";
    case head_fault::invalid_name: return "invalid_name";
    case head_fault::missing_colon: return "missing_colon";
    case head_fault::invalid_value: return "invalid_value";
    case head_fault::missing_host: return "missing_host";
    case head_fault::repeated_host: return "repeated_host";
    case head_fault::invalid_host: return "invalid_host";
    case head_fault::target_host_mismatch: return "target_host_mismatch";
    case head_fault::repeated_content_length: return "repeated_content_length";
    case head_fault::invalid_content_length: return "invalid_content_length";
    case head_fault::content_length_overflow: return "content_length_overflow";
    case head_fault::content_length_and_transfer_encoding:
      return "content_length_and_transfer_encoding";
    case head_fault::transfer_encoding_in_http_1_0: return "transfer_encoding_in_http_1_0";
    case head_fault::unknown_transfer_coding: return "unknown_transfer_coding";
    case head_fault::misplaced_chunked: return "misplaced_chunked";
    case head_fault::invalid_transfer_encoding: return "invalid_transfer_encoding";
    case head_fault::invalid_connection: return "invalid_connection";
    case head_fault::unknown_expectation: return "unknown_expectation";
    case head_fault::body_in_interim_response: return "body_in_interim_response";
  }
  return "";
}

/// Reads one head. Every step returns true when it went well; otherwise `status_` is the answer.
class head_reader {
 public:
  head_reader(std::string_view bytes, head_limits const& limits) noexcept
      : begin_(bytes.data()),
        end_(bytes.data() + std::min(bytes.size(), limits.head_octets_max)),
        at_(bytes.data()),
        first_line_end_max_(end_),
        fields_max_(std::min(limits.fields_max, fields_capacity)),
        head_is_full_(bytes.size() >= limits.head_octets_max) {}

  [[nodiscard]] auto read_request(std::size_t already_seen, head_limits const& limits,
                                  request_head& out) noexcept -> head_status {
    begin_message(out);
    out.expects_continue_ = false;
    out.accepts_trailers_ = false;
    if (skip_empty_lines()) {
      limit_first_line(limits.request_line_octets_max);
      if (may_go_on(already_seen) && read_request_line(out) && read_fields(out, &out)) {
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
    out.minor_version_ = 1;
    if (take_request_line(parts, limits, out) && take_fields(parts, out)) {
      finish_request(out);
    }
    return status_.fault;
  }

  [[nodiscard]] auto read_response(std::size_t already_seen, method asked,
                                   response_head& out) noexcept -> head_status {
    begin_message(out);
    if (begins_with_h() && may_go_on(already_seen) && read_status_line(out) &&
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

  // ── answers ────────────────────────────────────────────────────────────────────────────────────

  [[nodiscard]] auto offset_of(char const* p) const noexcept -> std::size_t {
    return static_cast<std::size_t>(p - begin_);
  }

  auto refuse_at_once(head_fault fault, char const* p) noexcept -> bool {
    status_ = {head_state::refused, fault, offset_of(p)};
    return false;
  }

  /// The bytes end before the head does: more are needed, unless it is too large already.
  [[gnu::cold]] auto out_of_bytes() noexcept -> bool {
    if (first_line_is_full_ && !has_lf(first_line_, first_line_end_max_)) {
      return refuse_at_once(head_fault::request_line_too_long, first_line_end_max_);
    }
    if (head_is_full_) {
      return refuse_at_once(head_fault::head_too_large, end_);
    }
    status_ = {head_state::incomplete, head_fault::none, offset_of(end_)};
    return false;
  }

  /// Refuses for what is wrong at `p`, once the line is complete: so the answer does not depend on
  /// where the bytes were split.
  [[gnu::cold]] auto refuse(head_fault fault, char const* p) noexcept -> bool {
    auto const* const line_end_max = in_first_line_ ? first_line_end_max_ : end_;
    return has_lf(p, line_end_max) ? refuse_at_once(fault, p) : out_of_bytes();
  }

  // ── before the first line ──────────────────────────────────────────────────────────────────────

  /// A server skips an empty line before a request line (RFC 9112, section 2.2), and a second one.
  [[nodiscard]] auto skip_empty_lines() noexcept -> bool {
    for (int lines = 0; at_ != end_; ++lines) {
      if (*at_ != '\r') {
        if (*at_ == '\n') {
          return refuse_at_once(head_fault::bare_lf, at_);
        }
        return is(*at_, token_char) || refuse_at_once(head_fault::invalid_method, at_);
      }
      if (end_ - at_ < 2) {
        break;
      }
      if (at_[1] != '\n') {
        return refuse_at_once(head_fault::bare_cr, at_);
      }
      if (lines == 2) {
        return refuse_at_once(head_fault::too_many_empty_lines, at_);
      }
      at_ += 2;
    }
    return out_of_bytes();
  }

  [[nodiscard]] auto begins_with_h() noexcept -> bool {
    if (at_ == end_) {
      return out_of_bytes();
    }
    first_line_ = at_;
    return *at_ == 'H' || refuse_at_once(head_fault::malformed_status_line, at_);
  }

  void limit_first_line(std::size_t octets_max) noexcept {
    first_line_ = at_;
    first_line_is_full_ =
        head_is_full_ || static_cast<std::size_t>(end_ - first_line_) >= octets_max;
    if (static_cast<std::size_t>(end_ - first_line_) > octets_max) {
      first_line_end_max_ = first_line_ + octets_max;
    }
  }

  /// Nothing can be said about a line without its LF. A valid head has few of them, so slow input
  /// is read a bounded number of times.
  [[nodiscard]] auto may_go_on(std::size_t already_seen) noexcept -> bool {
    if (already_seen == 0) {
      return true;
    }
    auto const seen = std::min(already_seen, static_cast<std::size_t>(end_ - begin_));
    return has_lf(begin_ + seen, end_) || out_of_bytes();
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

  /// `HTTP/1.1`, or whatever stands there.
  [[nodiscard]] auto read_version(int& major, int& minor) noexcept -> bool {
    constexpr std::string_view usual = "HTTP/1.1";
    if (end_ - at_ >= 8 && std::memcmp(at_, usual.data(), 8) == 0) {
      minor = 1;
      at_ += 8;
      return true;
    }
    for (char const c : std::string_view("HTTP/0.0")) {
      if (at_ == end_) {
        return out_of_bytes();
      }
      if (c == '0' ? !is_digit(*at_) : *at_ != c) {
        return refuse(detail::fault_at(at_, end_, head_fault::malformed_version), at_);
      }
      ++at_;
    }
    major = at_[-3] - '0';
    minor = at_[-1] - '0';
    return true;
  }

  [[nodiscard]] auto read_line_end(head_fault otherwise) noexcept -> bool {
    if (end_ - at_ < 2) {
      if (at_ != end_ && *at_ != '\r') {
        return refuse(detail::fault_at(at_, end_, otherwise), at_);
      }
      return out_of_bytes();
    }
    if (at_[0] != '\r' || at_[1] != '\n') {
      return refuse(detail::fault_at(at_, end_, otherwise), at_);
    }
    at_ += 2;
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
    if (!same_text(scheme, "http") && !same_text(scheme, "https")) {
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
      // Not that a version is wrong: this is no response at all.
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
      if (auto const fault = judge_known(*next, out, request); fault != head_fault::none)
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
  [[nodiscard]] auto take_fields(request_parts const& parts, request_head& out) noexcept -> bool {
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
      if (auto const fault = judge_known(*next, out, &out); fault != head_fault::none)
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

  /// Notes a field, and what it says when it says something to us.
  [[nodiscard, gnu::always_inline]] auto judge_known(field const& f, message_head& out,
                                                     request_head* request) noexcept -> head_fault {
    if (f.known != known_field::other && f.known <= known_field::te) {
      if (auto const fault = judge(f, out, request); fault != head_fault::none) [[unlikely]] {
        return fault;
      }
    }
    out.present_.insert(f.known);
    return head_fault::none;
  }

  /// What one field says about the message and the connection.
  [[nodiscard]] auto judge(field const& f, message_head& out, request_head* request) noexcept
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

  [[nodiscard]] auto judge_host(field const& f, message_head const& out) noexcept -> head_fault {
    if (out.present_.contains(known_field::host)) {
      return head_fault::repeated_host;
    }
    host_ = f.value;
    return is_authority_in(begin_, f.value) ? head_fault::none : head_fault::invalid_host;
  }

  [[nodiscard]] static auto judge_content_length(field const& f, message_head& out) noexcept
      -> head_fault {
    if (out.present_.contains(known_field::content_length)) {
      return head_fault::repeated_content_length;
    }
    if (out.present_.contains(known_field::transfer_encoding)) {
      return head_fault::content_length_and_transfer_encoding;
    }
    auto const fault = parse_content_length(f.value, out.body_.length);
    out.body_.kind = out.body_.length == 0 ? body_kind::none : body_kind::content_length;
    return fault;
  }

  /// We decode no other coding than chunked, which comes last and once (RFC 9112, section 6.1).
  [[nodiscard]] static auto judge_transfer_encoding(field const& f, message_head& out) noexcept
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
      auto const coding = next_element(rest);
      if (!is_token(coding) || (list_goes_on && rest.empty())) {
        return head_fault::invalid_transfer_encoding;
      }
      if (out.body_.kind == body_kind::chunked) {
        return head_fault::misplaced_chunked;
      }
      if (!same_text(coding, "chunked")) {
        return head_fault::unknown_transfer_coding;
      }
      out.body_.kind = body_kind::chunked;
    } while (!rest.empty());
    return head_fault::none;
  }

  [[nodiscard]] auto judge_connection(field const& f, message_head& out) noexcept -> head_fault {
    if (f.value == "keep-alive") {
      keep_alive_option_ = true;  // by far the most frequent
      return head_fault::none;
    }
    auto rest = f.value;
    while (!rest.empty()) {
      auto const option = next_element(rest);
      if (option.empty()) {
        continue;  // a recipient takes empty elements of a list (RFC 9110, section 5.6.1.2)
      }
      if (same_text(option, "keep-alive")) {
        keep_alive_option_ = true;
      } else if (same_text(option, "close")) {
        close_option_ = true;
      } else if (!is_token(option)) {
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
  [[nodiscard]] static auto judge_expect(field const& f, request_head& out) noexcept -> head_fault {
    if (out.minor_version_ == 0) {
      return head_fault::none;
    }
    out.expects_continue_ = same_text(f.value, "100-continue");
    return out.expects_continue_ ? head_fault::none : head_fault::unknown_expectation;
  }

  static void judge_te(field const& f, request_head& out) noexcept {
    for (auto rest = f.value; !rest.empty();) {
      if (same_text(next_element(rest), "trailers")) {
        out.accepts_trailers_ = true;
      }
    }
  }

  // ── the whole ──────────────────────────────────────────────────────────────────────────────────

  void finish(message_head& out) noexcept {
    bool const persistent = out.minor_version_ == 1 || keep_alive_option_;
    out.keep_alive_ = persistent && !close_option_;
    out.upgrade_asked_ =
        upgrade_option_ && out.minor_version_ == 1 && out.present_.contains(known_field::upgrade);
    status_ = {head_state::complete, head_fault::none, offset_of(at_)};
  }

  void finish_request(request_head& out) noexcept {
    if (out.present_.contains(known_field::host)) {
      if (!out.authority_.empty() && !same_text(out.authority_, host_)) {
        refuse_at_once(head_fault::target_host_mismatch, out.target_.data());
        return;
      }
      out.authority_ = host_;
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

  char const* begin_;
  char const* end_;  // no further than the limit of a head
  char const* at_;
  char const* first_line_ = nullptr;
  char const* first_line_end_max_;
  std::size_t fields_max_;
  std::string_view host_;
  head_status status_;
  bool head_is_full_;
  bool first_line_is_full_ = false;
  bool in_first_line_ = true;
  bool keep_alive_option_ = false;
  bool close_option_ = false;
  bool upgrade_option_ = false;
};

auto parse_request_head(std::string_view bytes, std::size_t already_seen, head_limits const& limits,
                        request_head& out) noexcept -> head_status {
  return head_reader(bytes, limits).read_request(already_seen, limits, out);
}

auto take_request_head(request_parts const& parts, head_limits const& limits,
                       request_head& out) noexcept -> head_fault {
  return head_reader(parts.field_lines, limits).take_request(parts, limits, out);
}

auto parse_response_head(std::string_view bytes, std::size_t already_seen,
                         head_limits const& limits, method asked, response_head& out) noexcept
    -> head_status {
  return head_reader(bytes, limits).read_response(already_seen, asked, out);
}

}  // namespace tidegate::wire
