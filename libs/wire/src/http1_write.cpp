// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/http1_write.hpp>

#include <tidegate/http/field.hpp>

#include "grammar.hpp"
#include "spelling.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <iterator>

namespace tidegate::TIDEGATE_ABI::wire {

namespace {

using detail::number_size_max;

/// Calls `write` with room for `size_max` octets behind `out`; it returns the end of what it wrote.
template <class Write>
void append_in_place(std::string& out, std::size_t size_max, Write write) {
  auto const before = out.size();
  out.resize_and_overwrite(before + size_max, [&](char* data, std::size_t) {
    return static_cast<std::size_t>(write(data + before) - data);
  });
}

[[gnu::always_inline]] inline auto put(char* p, std::string_view text) noexcept -> char* {
  return detail::put_part(p, text);
}

[[nodiscard]] auto put(char* p, std::uint64_t number) noexcept -> char* {
  return detail::put_part(p, number);
}

[[nodiscard]] auto put_status(char* p, int status) noexcept -> char* {
  *p++ = static_cast<char>('0' + status / 100);
  *p++ = static_cast<char>('0' + status / 10 % 10);
  *p++ = static_cast<char>('0' + status % 10);
  *p++ = ' ';
  return p;
}

constexpr std::string_view version = "HTTP/1.1 ";
constexpr std::string_view chunked_line = "Transfer-Encoding: chunked\r\n";
constexpr std::string_view length_name = "Content-Length: ";
constexpr std::string_view expect_line = "Expect: 100-continue\r\n";
constexpr std::string_view te_lines = "Connection: te\r\nTE: trailers\r\n";
constexpr std::string_view upgrade_line = "Connection: upgrade\r\n";
constexpr std::string_view upgrade_name = "Upgrade: ";
constexpr std::string_view keep_alive_line = "Connection: keep-alive\r\n";
constexpr std::string_view close_line = "Connection: close\r\n";
constexpr std::string_view line_end = "\r\n";

/// More than all of the above together, with a number.
constexpr std::size_t made_anew_size_max = 256;

/// True when an option of a Connection field is this name.
[[nodiscard]] auto connection_names(message_head const& head, std::string_view name) noexcept
    -> bool {
  if (!head.connection_names_other_fields()) {
    return false;
  }
  for (auto const& f : head.fields()) {
    if (f.known != known_field::connection) {
      continue;
    }
    for (auto rest = f.value; !rest.empty();) {
      if (equal_ignoring_case(http::take_element(rest), name)) {
        return true;
      }
    }
  }
  return false;
}

/// Whether a name without an entry in `known_field` is read by some as one that has an entry, or as
/// one of `names`, which are in lower case.
[[nodiscard]] auto is_other_spelling(std::string_view name,
                                     std::span<std::string const> names) noexcept -> bool {
  if (spelling::is_plain(name)) {  // nearly always
    return false;
  }
  return find_known_field_by_any_spelling(name) != known_field::other ||
         std::ranges::any_of(names, [name](std::string_view wanted) {
           return !equal_ignoring_case(name, wanted) && spelling::are_one(name, wanted);
         });
}

[[nodiscard]] auto is_one_of(std::string_view name, std::span<std::string const> names) noexcept
    -> bool {
  return std::ranges::any_of(
      names, [name](std::string_view each) { return equal_ignoring_case(name, each); });
}

/// What is not copied of the fields of a head.
struct left_out {
  field_set known;
  std::span<std::string const> names;
  bool is_request = false;
  std::span<std::string const> read_names{};  // of a request; see `is_other_spelling`
};

/// Copies the field lines that are not left out nor named by Connection; of a request not those
/// either that some read as other fields. Lines that stand together are copied together, as they
/// came.
[[nodiscard]] auto put_fields(char* p, message_head const& head, left_out const& what) noexcept
    -> char* {
  auto const lines = head.field_lines();
  auto const fields = head.fields();
  auto const* kept = lines.data();  // the first line that is not copied yet
  for (auto it = fields.begin(); it != fields.end(); ++it) {
    bool const is_left_out =
        what.known.contains(it->known) ||
        (it->known == known_field::other &&
         (connection_names(head, it->name) || is_one_of(it->name, what.names) ||
          (what.is_request && is_other_spelling(it->name, what.read_names))));
    if (is_left_out) {
      auto const* const line = it->name.data();
      p = put(p, {kept, static_cast<std::size_t>(line - kept)});
      kept =
          std::next(it) == fields.end() ? lines.data() + lines.size() : std::next(it)->name.data();
    }
  }
  return put(p, {kept, static_cast<std::size_t>(lines.data() + lines.size() - kept)});
}

/// The Upgrade fields, and that they belong to the connection.
[[nodiscard]] auto put_upgrade(char* p, message_head const& head) noexcept -> char* {
  p = put(p, upgrade_line);
  for (auto const& f : head.fields()) {
    if (f.known == known_field::upgrade) {
      p = put(put(put(p, upgrade_name), f.value), line_end);
    }
  }
  return p;
}

/// What put_fields and put_upgrade write at most.
[[nodiscard]] auto fields_size_max(message_head const& head, bool upgrade) noexcept -> std::size_t {
  return head.field_lines().size() * (upgrade ? 2 : 1);
}

/// True when the Content-Length field of `head` says what is sent.
[[nodiscard]] auto length_stays(message_head const& head, body_framing const& body) noexcept
    -> bool {
  return body == head.body() && head.has(known_field::content_length);
}

/// Whether a Content-Length line is as we would write it: one space before the digits, nothing
/// behind them, no zeros in front. Others are read as more than one thing, or refused, by some.
[[nodiscard]] auto is_plain_length(field_view const& length) noexcept -> bool {
  auto const* const colon = length.name.data() + length.name.size();
  auto const* const digits = length.value.data();
  return digits == colon + 2 && colon[1] == ' ' && digits[length.value.size()] == '\r' &&
         (length.value.size() == 1 || digits[0] != '0');
}

/// The digits of a Content-Length line that says what is sent, but in another way than we do; else
/// empty.
[[nodiscard]] auto respelled_length(message_head const& head, body_framing const& body) noexcept
    -> std::string_view {
  auto const* const length =
      length_stays(head, body) ? head.find(known_field::content_length) : nullptr;
  if (length == nullptr || is_plain_length(*length)) {
    return {};
  }
  return length->value.substr(
      std::min(length->value.find_first_not_of('0'), length->value.size() - 1));
}

/// What says where the body ends, unless a field that stays does. `length` are the digits of one
/// that does not stay only because of how it came.
[[nodiscard]] auto put_framing(char* p, message_head const& head, body_framing const& body,
                               std::string_view length) noexcept -> char* {
  if (body.kind == body_kind::chunked) {
    return put(p, chunked_line);
  }
  if (!length.empty()) {
    return put(put(put(p, length_name), length), line_end);
  }
  bool const emptied = body.kind == body_kind::none && head.body().kind != body_kind::none;
  if ((body.kind == body_kind::content_length && !length_stays(head, body)) || emptied) {
    return put(put(put(p, length_name), emptied ? 0 : body.length), line_end);
  }
  return p;
}

}  // namespace

auto is_of_connection(message_head const& head, field_view const& of) noexcept -> bool {
  return connection_specific_fields.contains(of.known) ||
         (of.known == known_field::other && connection_names(head, of.name));
}

auto reason_phrase(int status) noexcept -> std::string_view {
  switch (status) {
    case 100: return "Continue";
    case 101: return "Switching Protocols";
    case 102: return "Processing";
    case 103: return "Early Hints";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 203: return "Non-Authoritative Information";
    case 204: return "No Content";
    case 205: return "Reset Content";
    case 206: return "Partial Content";
    case 207: return "Multi-Status";
    case 208: return "Already Reported";
    case 226: return "IM Used";
    case 300: return "Multiple Choices";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 305: return "Use Proxy";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 402: return "Payment Required";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 407: return "Proxy Authentication Required";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 411: return "Length Required";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 416: return "Range Not Satisfiable";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 423: return "Locked";
    case 424: return "Failed Dependency";
    case 425: return "Too Early";
    case 426: return "Upgrade Required";
    case 428: return "Precondition Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 451: return "Unavailable For Legal Reasons";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    case 506: return "Variant Also Negotiates";
    case 507: return "Insufficient Storage";
    case 508: return "Loop Detected";
    case 511: return "Network Authentication Required";
    default: return {};
  }
}

void append_status_line(std::string& out, int status) {
  assert(status >= 100 && status <= 999);
  auto const reason = reason_phrase(status);
  append_in_place(out, version.size() + 4 + reason.size() + line_end.size(), [&](char* p) {
    return put(put(put_status(put(p, version), status), reason), line_end);
  });
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  append_parts(out, name, ": ", value, line_end);
}

void append_whole_head(std::string& out, int status, std::string_view field_lines,
                       std::string_view connection_line, std::uint64_t length) {
  append_status_line(out, status);
  if (status != 204 && status != 304) {
    append_field(out, "Content-Length", length);
  }
  append_parts(out, field_lines, connection_line, line_end);
}

void append_whole_response(std::string& out, int status, std::string_view field_lines,
                           std::string_view connection_line, std::string_view content) {
  append_whole_head(out, status, field_lines, connection_line, content.size());
  out.append(content);
}

void append_field(std::string& out, std::string_view name, std::uint64_t value) {
  append_parts(out, name, ": ", value, line_end);
}

void append_chunk_size(std::string& out, std::uint64_t size) {
  assert(size != 0);
  append_in_place(out, number_size_max, [&](char* p) {
    return put(std::to_chars(p, p + number_size_max, size, 16).ptr, line_end);
  });
}

void append_request_head(std::string& out, request_head const& head,
                         request_forwarding const& forwarding) {
  auto const host = forwarding.host.empty() ? head.authority() : forwarding.host;
  auto drop = connection_specific_fields | forwarding.drop;
  drop.insert(known_field::host);
  auto const length = respelled_length(head, forwarding.body);
  if (!length.empty() || !length_stays(head, forwarding.body)) {
    drop.insert(known_field::content_length);
  }
  // It means nothing in HTTP/1.0 (RFC 9110, section 10.1.1), where no client waits for a 100.
  // Several lines of it become one.
  bool const sends_expect = head.expects_continue() && head.minor_version() == 1 &&
                            !forwarding.drop.contains(known_field::expect);
  drop.insert(known_field::expect);
  bool const sends_te = head.accepts_trailers() && !forwarding.drop.contains(known_field::te);
  auto const size_max = head.method_text().size() + forwarding.target.size() +
                        head.target().size() + host.size() +
                        fields_size_max(head, forwarding.upgrade) + forwarding.field_lines.size() +
                        made_anew_size_max;
  append_in_place(out, size_max, [&](char* p) {
    p = put(p, head.method_text());
    *p++ = ' ';
    p = forwarding.target.empty() ? put(put(p, head.path()), head.query())
                                  : put(p, forwarding.target);
    p = put(put(put(p, " HTTP/1.1\r\nHost: "), host), line_end);
    p = put_fields(p, head, {drop, forwarding.drop_names, true, forwarding.other_names});
    if (forwarding.upgrade) {
      p = put_upgrade(p, head);
    }
    if (sends_te) {
      p = put(p, te_lines);
    }
    if (sends_expect) {
      p = put(p, expect_line);
    }
    p = put_framing(p, head, forwarding.body, length);
    return put(put(p, forwarding.field_lines), line_end);
  });
}

void append_response_head(std::string& out, response_head const& head,
                          response_forwarding const& forwarding) {
  auto drop = connection_specific_fields | forwarding.drop;
  // RFC 9110, section 8.6: no Content-Length in a 1xx or 204.
  bool const never_a_body = head.status() < 200 || head.status() == 204;
  auto const length = never_a_body ? std::string_view() : respelled_length(head, forwarding.body);
  if (never_a_body || !length.empty() || !length_stays(head, forwarding.body)) {
    drop.insert(known_field::content_length);
  }
  auto const size_max = head.reason().size() + fields_size_max(head, forwarding.upgrade) +
                        forwarding.field_lines.size() + made_anew_size_max;
  append_in_place(out, size_max, [&](char* p) {
    p = put(put(put_status(put(p, version), head.status()), head.reason()), line_end);
    p = put_fields(p, head, {drop, forwarding.drop_names});
    if (forwarding.upgrade) {
      p = put_upgrade(p, head);
    } else if (forwarding.connection != connection_option::none) {
      p = put(p, forwarding.connection == connection_option::close ? close_line : keep_alive_line);
    }
    p = put_framing(p, head, forwarding.body, length);
    return put(put(p, forwarding.field_lines), line_end);
  });
}

}  // namespace tidegate::TIDEGATE_ABI::wire
