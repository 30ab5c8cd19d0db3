// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/target.hpp>

#include <tidegate/http/ip_address.hpp>
#include <tidegate/http/query.hpp>

#include "octets.hpp"

#include <algorithm>
#include <array>

#ifdef __SSE2__
#include <emmintrin.h>

#include <bit>
#endif

namespace tidegate::TIDEGATE_ABI::http {

namespace {

using octets::append_escape;
using octets::escaped;

/// What a byte is to a path.
enum class path_octet : std::uint8_t {
  plain,    // stands for itself wherever it is
  dot,      // may be part of a dot segment
  percent,  // begins an escape
  foreign,  // ASCII that no URI has: to be escaped
  refused,
};

constexpr auto path_octets = [] {
  std::array<path_octet, 256> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    char const c = static_cast<char>(i);
    if (is_unreserved(c) || octets::is_sub_delim(c) || c == ':' || c == '@' || c == '/') {
      table[i] = c == '.' ? path_octet::dot : path_octet::plain;
    } else if (c == '%') {
      table[i] = path_octet::percent;
    } else {
      bool const visible = i > 0x20 && i < 0x7f;
      table[i] = visible && c != '#' && c != '?' ? path_octet::foreign : path_octet::refused;
    }
  }
  return table;
}();

[[nodiscard]] auto path_octet_of(char c) noexcept -> path_octet {
  return path_octets[static_cast<unsigned char>(c)];
}

#ifdef __SSE2__
/// A bit for each of the sixteen bytes from `at` on that is not plain.
[[nodiscard]] auto not_plain_mask(char const* at) noexcept -> unsigned {
  auto const bytes = _mm_loadu_si128(reinterpret_cast<__m128i const*>(at));
  auto const is = [bytes](char c) { return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(c)); };
  // The comparison is signed: what is not ASCII is less than every character.
  auto const is_between = [bytes](char first, char last) {
    return _mm_and_si128(_mm_cmpgt_epi8(bytes, _mm_set1_epi8(static_cast<char>(first - 1))),
                         _mm_cmplt_epi8(bytes, _mm_set1_epi8(static_cast<char>(last + 1))));
  };
  auto plain = _mm_or_si128(is_between('&', ';'), is_between('@', 'Z'));
  plain = _mm_andnot_si128(is('.'), _mm_or_si128(plain, is_between('a', 'z')));
  plain = _mm_or_si128(plain, _mm_or_si128(is('_'), is('~')));
  plain = _mm_or_si128(plain, _mm_or_si128(is('='), _mm_or_si128(is('!'), is('$'))));
  return static_cast<unsigned>(_mm_movemask_epi8(plain)) ^ 0xffffU;
}
#endif

/// The first byte from `i` on that is not plain, or the end.
[[nodiscard]] auto skip_plain(std::string_view path, std::size_t i) noexcept -> std::size_t {
#ifdef __SSE2__
  for (; path.size() - i >= 16; i += 16) {
    if (auto const mask = not_plain_mask(path.data() + i); mask != 0) {
      return i + static_cast<std::size_t>(std::countr_zero(mask));
    }
  }
#endif
  while (i < path.size() && path_octet_of(path[i]) == path_octet::plain) {
    ++i;
  }
  return i;
}

/// Whether "." or ".." and the end of the segment follow the "/" before `i`.
[[nodiscard]] auto is_dot_segment(std::string_view path, std::size_t i) noexcept -> bool {
  auto const segment = path.substr(i, std::min(path.find('/', i), i + 3) - i);
  return segment == "." || segment == "..";
}

/// Whether the escape at `i` is how a normal path writes that byte.
[[nodiscard]] auto is_normal_escape(std::string_view path, std::size_t i) noexcept -> bool {
  auto const octet = escaped(path, i);
  auto const is_lower = [](char digit) { return digit >= 'a'; };
  return octet && *octet != '\0' && !is_unreserved(*octet) && !is_lower(path[i + 1]) &&
         !is_lower(path[i + 2]);
}

/// Appends the segment of `path` that begins at `i`, without looking whether it is a dot segment;
/// returns where it ends.
[[nodiscard]] auto append_segment(std::string& out, std::string_view path, std::size_t i)
    -> result<std::size_t, target_error> {
  while (i < path.size() && path[i] != '/') {
    char const c = path[i];
    switch (path_octet_of(c)) {
      case path_octet::plain:
      case path_octet::dot:
        out.push_back(c);
        ++i;
        break;
      case path_octet::foreign:
        append_escape(out, c);
        ++i;
        break;
      case path_octet::percent: {
        auto const octet = escaped(path, i);
        if (!octet) {
          return failure(target_error{target_fault::invalid_escape, i});
        }
        if (*octet == '\0') {
          return failure(target_error{target_fault::nul_escape, i});
        }
        if (is_unreserved(*octet)) {
          out.push_back(*octet);
        } else {
          append_escape(out, *octet);
        }
        i += 3;
        break;
      }
      case path_octet::refused: return failure(target_error{target_fault::invalid_character, i});
    }
  }
  return i;
}

[[nodiscard]] auto append_normal_segments(std::string& out, std::string_view path)
    -> result<void, target_error> {
  auto const root = out.size();
  std::size_t i = 0;
  while (i < path.size()) {
    // RFC 3986, section 5.2.4, one "/" and its segment at a time.
    auto const slash = out.size();
    out.push_back('/');
    TIDEGATE_TRY(i, append_segment(out, path, i + 1));
    auto const segment = std::string_view(out).substr(slash + 1);
    bool const up = segment == "..";
    if (!up && segment != ".") {
      continue;
    }
    out.resize(slash);
    if (up && slash > root) {
      out.resize(out.rfind('/'));
    }
    if (i == path.size()) {
      out.push_back('/');
    }
  }
  return {};
}

/// The port after the ":" at `colon`; nothing when that is the end.
[[nodiscard]] auto port_after(std::string_view text, std::size_t colon) noexcept
    -> result<std::optional<std::uint16_t>, target_error> {
  auto const digits = text.substr(colon + 1);
  if (!is_port(digits)) {
    return failure(target_error{target_fault::invalid_port, colon + 1});
  }
  unsigned port = 0;
  for (char const digit : digits) {
    port = port * 10 + static_cast<unsigned>(digit - '0');
  }
  return port == 0 ? std::nullopt : std::optional(static_cast<std::uint16_t>(port));
}

/// What a name of a host consists of: unreserved characters and sub-delims but ",".
[[nodiscard]] auto is_host_octet(char c) noexcept -> bool {
  return is_unreserved(c) || (octets::is_sub_delim(c) && c != ',');
}

/// `[` IPv6 address `]` [ ":" port ]
[[nodiscard]] auto parse_ip_literal(std::string_view text) noexcept
    -> result<host_view, target_error> {
  auto const end = text.find(']');
  if (end == std::string_view::npos) {
    return failure(target_error{target_fault::invalid_ip_literal, 0});
  }
  host_view host{.kind = host_kind::ipv6, .name = text.substr(1, end - 1)};
  if (host.name.find(':') == std::string_view::npos || !parse_ip_address(host.name)) {
    return failure(target_error{target_fault::invalid_ip_literal, 0});
  }
  if (end + 1 == text.size()) {
    return host;
  }
  if (text[end + 1] != ':') {
    return failure(target_error{target_fault::invalid_character, end + 1});
  }
  TIDEGATE_TRY(host.port, port_after(text, end + 1));
  return host;
}

/// "example.com." is the same name in DNS, written to its end; "." and "a.." are not names there
/// and stay.
[[nodiscard]] auto without_final_dot(std::string_view name) noexcept -> std::string_view {
  bool const has_one = name.size() > 1 && name.ends_with('.') && !name.ends_with("..");
  return name.substr(0, name.size() - (has_one ? 1 : 0));
}

/// Moves the place of an error in a part to where it is in the whole.
[[nodiscard]] auto moved_by(target_error error, std::size_t offset) noexcept -> target_error {
  error.offset += offset;
  return error;
}

[[nodiscard]] auto check_visible(std::string_view text) noexcept -> result<void, target_error> {
  auto const refused = [](char c) { return c <= ' ' || c >= '\x7f' || c == '#'; };
  if (auto const found = std::find_if(text.begin(), text.end(), refused); found != text.end()) {
    auto const offset = static_cast<std::size_t>(found - text.begin());
    return failure(target_error{target_fault::invalid_character, offset});
  }
  return {};
}

/// Splits what follows the authority at its first "?".
void split_query(target_view& target, std::string_view path_and_query) noexcept {
  auto const question = path_and_query.find('?');
  target.path = path_and_query.substr(0, question);
  if (question != std::string_view::npos) {
    target.query = path_and_query.substr(question + 1);
  }
}

/// authority-form (RFC 9112, section 3.2.3): the one form of CONNECT.
[[nodiscard]] auto parse_authority_form(std::string_view text) noexcept
    -> result<target_view, target_error> {
  if (text.find_first_of("/?*") != std::string_view::npos) {
    return failure(target_error{target_fault::form_not_allowed, 0});
  }
  TIDEGATE_TRY(auto const host, parse_host(text));
  if (!host.port) {
    return failure(target_error{target_fault::port_missing, text.size()});
  }
  return target_view{.form = target_form::authority, .host = host};
}

/// absolute-form (RFC 9112, section 3.2.2)
[[nodiscard]] auto parse_absolute_form(std::string_view method, std::string_view text) noexcept
    -> result<target_view, target_error> {
  constexpr std::string_view separator = "://";
  target_view target{.form = target_form::absolute};
  auto const colon = text.find(':');
  if (colon == std::string_view::npos) {
    return failure(target_error{target_fault::slash_expected, 0});
  }
  target.scheme = text.substr(0, colon);
  if (!equal_ignoring_case(target.scheme, "http") && !equal_ignoring_case(target.scheme, "https")) {
    return failure(target_error{target_fault::unsupported_scheme, 0});
  }
  if (text.substr(colon, separator.size()) != separator) {
    return failure(target_error{target_fault::slash_expected, colon + 1});
  }
  auto const begin = colon + separator.size();
  auto end = begin;
  while (end < text.size() && text[end] != '/' && text[end] != '?') {
    ++end;
  }
  auto const authority = text.substr(begin, end - begin);
  if (authority.find('@') != std::string_view::npos) {
    return failure(target_error{target_fault::user_information, begin});
  }
  auto const host = parse_host(authority);
  if (!host) {
    return failure(moved_by(host.error(), begin));
  }
  target.host = *host;
  split_query(target, text.substr(end));
  if (target.path.empty()) {
    if (method == "OPTIONS" && !target.query) {
      target.form = target_form::asterisk;
    } else {
      target.path = "/";
    }
  }
  return target;
}

}  // namespace

auto message(target_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case target_fault::invalid_character: return "this character cannot stand here";
    case target_fault::invalid_escape: return "\"%\" must have two hexadecimal digits after it";
    case target_fault::nul_escape: return "\"%00\" is not allowed";
    case target_fault::slash_expected: return "\"/\" must stand here";
    case target_fault::form_not_allowed: return "the method does not go with this form of target";
    case target_fault::unsupported_scheme: return "the scheme must be http or https";
    case target_fault::user_information:
      return "a user name or password before the host is not allowed";
    case target_fault::host_missing: return "a host must stand here";
    case target_fault::invalid_ip_literal:
      return "an IPv6 address must stand between \"[\" and \"]\"";
    case target_fault::invalid_port: return "a port is a number from 1 to 65535";
    case target_fault::port_missing: return "CONNECT needs a port";
  }
  return "unknown fault";
}

auto is_port(std::string_view text) noexcept -> bool {
  unsigned port = 0;
  for (char const c : text) {
    auto const digit = static_cast<unsigned>(c) - '0';
    if (digit > 9 || port > 6553) {
      return false;
    }
    port = port * 10 + digit;
  }
  return text.empty() || (port > 0 && port <= 65535);
}

auto parse_host(std::string_view text) noexcept -> result<host_view, target_error> {
  if (text.starts_with('[')) {
    return parse_ip_literal(text);
  }
  auto const colon = std::min(text.find(':'), text.size());
  host_view host{.name = text.substr(0, colon)};
  for (std::size_t i = 0; i < colon; ++i) {
    if (!is_host_octet(text[i])) {
      return failure(target_error{target_fault::invalid_character, i});
    }
  }
  if (host.name.empty()) {
    return failure(target_error{target_fault::host_missing, 0});
  }
  if (parse_ip_address(host.name)) {
    host.kind = host_kind::ipv4;
  }
  if (colon < text.size()) {
    TIDEGATE_TRY(host.port, port_after(text, colon));
  }
  return host;
}

void append_normal_host(std::string& out, host_view const& host) {
  if (host.kind == host_kind::ipv6) {
    auto const address = parse_ip_address(host.name).value_or(ip_address());
    out.append(address.is_v4() ? "[::ffff:" : "[");  // which is how it came, in IPv6
    append_ip_address(out, address);
    out.push_back(']');
    return;
  }
  for (char const c : without_final_dot(host.name)) {
    out.push_back(to_lower(c));
  }
}

auto is_host_of(std::string_view authority, std::string_view normal_host) noexcept -> bool {
  if (authority == normal_host) {  // nearly always, or the sizes differ
    return true;
  }
  auto const host = parse_host(authority);
  if (!host || (host->kind == host_kind::ipv6) != normal_host.starts_with('[')) {
    return false;
  }
  if (host->kind == host_kind::ipv6) {
    auto const wanted = parse_ip_address(normal_host.substr(1, normal_host.size() - 2));
    auto const given = parse_ip_address(host->name);
    return wanted && given && *wanted == *given;
  }
  return std::ranges::equal(without_final_dot(host->name), normal_host,
                            [](char is, char wanted) { return to_lower(is) == wanted; });
}

auto parse_target(std::string_view method, std::string_view target) noexcept
    -> result<target_view, target_error> {
  TIDEGATE_TRY_VOID(check_visible(target));
  if (method == "CONNECT") {
    return parse_authority_form(target);
  }
  if (target.starts_with('/')) {
    target_view origin{.form = target_form::origin};
    split_query(origin, target);
    return origin;
  }
  if (target == "*") {
    if (method != "OPTIONS") {
      return failure(target_error{target_fault::form_not_allowed, 0});
    }
    return target_view{.form = target_form::asterisk};
  }
  return parse_absolute_form(method, target);
}

auto is_normal_path(std::string_view raw_path) noexcept -> bool {
  if (!raw_path.starts_with('/')) {
    return false;
  }
  for (auto i = skip_plain(raw_path, 1); i < raw_path.size(); i = skip_plain(raw_path, i + 1)) {
    switch (path_octet_of(raw_path[i])) {
      case path_octet::plain: break;
      case path_octet::dot:
        if (raw_path[i - 1] == '/' && is_dot_segment(raw_path, i)) {
          return false;
        }
        break;
      case path_octet::percent:
        if (!is_normal_escape(raw_path, i)) {
          return false;
        }
        break;  // its digits are plain
      case path_octet::foreign:
      case path_octet::refused: return false;
    }
  }
  return true;
}

auto append_normal_path(std::string& out, std::string_view raw_path) -> result<void, target_error> {
  if (is_normal_path(raw_path)) {
    out.append(raw_path);
    return {};
  }
  if (!raw_path.starts_with('/')) {
    return failure(target_error{target_fault::slash_expected, 0});
  }
  auto const size = out.size();
  auto const appended = append_normal_segments(out, raw_path);
  if (!appended) {
    out.resize(size);
  }
  return appended;
}

auto normal_path(std::string_view raw_path, std::string& scratch)
    -> result<std::string_view, target_error> {
  if (is_normal_path(raw_path)) {
    return raw_path;
  }
  scratch.clear();
  TIDEGATE_TRY_VOID(append_normal_path(scratch, raw_path));
  return std::string_view(scratch);
}

}  // namespace tidegate::TIDEGATE_ABI::http
