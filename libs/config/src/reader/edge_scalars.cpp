// SPDX-License-Identifier: Apache-2.0
#include "reader/edge_scalars.hpp"

#include <tidegate/config/values.hpp>
#include <tidegate/http/field.hpp>
#include "reader/wording.hpp"

#include <tidegate/http/query.hpp>
#include <tidegate/http/target.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace tidegate::gateway {

namespace {

constexpr std::size_t header_value_octets_max = 4096;

auto invalid(std::string_view type, scalar const& given, std::string_view reason = "")
    -> std::unexpected<std::string> {
  return failure("invalid " + std::string(type) + " " + shown(given.text) +
                 (reason.empty() ? "" : ": ") + std::string(reason));
}

/// A scheme as browsers write it (RFC 3986, section 3.1), in lower case.
auto is_scheme(std::string_view text) -> bool {
  return !text.empty() && text.front() >= 'a' && text.front() <= 'z' &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || is_digit(c) || c == '+' || c == '-' || c == '.';
         });
}

auto default_port(std::string_view scheme) -> std::uint16_t {
  return scheme == "https" ? 443 : scheme == "http" ? 80 : 0;
}

/// What `{NAME}` stands for when the match has it; else what is wrong.
auto check_capture(std::string_view name, captures const& known) -> scalar_result<void> {
  auto const written = "{" + std::string(name) + "}";
  if (name == "**") {
    return known.rest ? scalar_result<void>()
                      : failure(written + " needs a match that ends with /**");
  }
  auto const number = parse_count(name);
  if (!number || *number < 1) {
    return failure("unknown capture " + shown(written) +
                   "; there are {1}, {2} and so on, and {**}");
  }
  if (static_cast<std::uint64_t>(*number) > known.segments) {
    return failure(written + " needs a match with " + std::to_string(*number) + " *; it has " +
                   std::to_string(known.segments));
  }
  return {};
}

/// The text with one letter in the place of each capture. Segments that have one beside nothing but
/// dots are refused: they could become `..`.
auto without_captures(std::string_view text, captures const& known) -> scalar_result<std::string> {
  std::string plain;
  std::string literal;  // of the segment
  bool has_capture = false;
  auto const is_dots = [&] {
    return has_capture && !literal.empty() && literal.find_first_not_of('.') == std::string::npos;
  };
  while (!text.empty()) {
    char const c = text.front();
    text.remove_prefix(1);
    if (c == '{') {
      auto const end = text.find('}');
      if (end == std::string_view::npos) {
        return failure(std::string("\"{\" without \"}\""));
      }
      TIDEGATE_TRY_VOID(check_capture(text.substr(0, end), known));
      text.remove_prefix(end + 1);
      plain += 'x';
      has_capture = true;
      continue;
    }
    if (c == '}') {
      return failure(std::string("\"}\" without \"{\""));
    }
    if (c == '/') {
      if (is_dots()) {
        break;
      }
      literal.clear();
      has_capture = false;
    } else {
      literal += c;
    }
    plain += c;
  }
  if (is_dots()) {
    return failure(std::string("a segment of dots and a capture could become \"..\""));
  }
  return plain;
}

}  // namespace

auto read_scalar(option const&, scalar const& given) -> scalar_result<std::string> {
  return std::string(given.text);
}

auto read_header_name(option const&, scalar const& given) -> scalar_result<std::string> {
  if (given.text == "*") {
    return failure(std::string("\"*\" is not allowed here; name each header"));
  }
  return http::is_token(given.text) ? scalar_result<std::string>(std::string(given.text))
                                    : invalid("header name", given);
}

auto read_header_value(option const&, scalar const& given) -> scalar_result<std::string> {
  auto const wrong = [](char const* reason) {
    return failure("invalid header value: " + std::string(reason));
  };
  if (given.text.empty()) {
    return wrong("it is empty");
  }
  if (given.text.size() > header_value_octets_max) {
    return wrong("it is longer than 4096 bytes");
  }
  if (!http::is_field_value(given.text)) {
    return wrong("it has a line break or another control character");
  }
  if (trimmed(given.text).size() != given.text.size()) {
    return wrong("it begins or ends with a space");
  }
  return std::string(given.text);
}

auto read_origin(option const&, scalar const& given) -> scalar_result<std::string> {
  constexpr std::string_view mark = "://";
  if (given.text == "null") {
    return std::string(given.text);
  }
  if (given.text == "*") {
    return failure(std::string("\"*\" stands alone, not in a list"));
  }
  if (given.text.contains('*')) {
    return invalid("origin", given, "\"*\" is not a part of one; name each origin");
  }
  auto const colon = given.text.find(mark);
  auto const scheme = given.text.substr(0, colon);
  if (colon == std::string_view::npos || !is_scheme(scheme)) {
    return invalid("origin", given, "it begins with a scheme in lower case, such as https://");
  }
  auto const authority = given.text.substr(colon + mark.size());
  if (authority.find_first_of("/?#") != std::string_view::npos) {
    return invalid("origin", given, "it has no path, and no slash at its end");
  }
  auto const host = http::parse_host(authority);
  if (!host || host->name.empty()) {
    return invalid("origin", given);
  }
  auto normal = std::string(scheme) + std::string(mark);
  http::append_normal_host(normal, *host);
  if (host->port && *host->port != default_port(scheme)) {
    normal += ":" + std::to_string(*host->port);
  }
  return normal == given.text
             ? scalar_result<std::string>(std::move(normal))
             : invalid("origin", given,
                       "browsers send a host in lower case and no default port; did you mean " +
                           shown(normal) + "?");
}

auto read_match_host(option const& rule, scalar const& given) -> scalar_result<std::string> {
  constexpr std::string_view any_label = "*.";
  if (!given.text.contains('*')) {
    return read_host(rule, given);
  }
  bool const has_one =
      given.text.starts_with(any_label) && !given.text.substr(any_label.size()).contains('*');
  if (!has_one) {
    return invalid("host", given, "\"*\" is allowed only as the first label");
  }
  TIDEGATE_TRY(auto const rest, read_host(rule, {given.text.substr(any_label.size())}));
  auto const host = http::parse_host(rest);
  if (!host || host->kind != http::host_kind::reg_name || rest.starts_with('.')) {
    return invalid("host", given, "\"*\" stands for labels of a name, not of an address");
  }
  return std::string(any_label) + rest;
}

auto read_prefix(option const&, scalar const& given) -> scalar_result<std::string> {
  if (given.text == "/") {
    return invalid("prefix", given, "every path begins with it");
  }
  if (given.text.contains('*') || given.text.find_first_of("{}") != std::string_view::npos) {
    return invalid("prefix", given, "wildcards and captures are not allowed");
  }
  if (auto const checked = check_path_pattern(given.text); !checked) {
    return invalid("prefix", given, message(checked.error().fault));
  }
  if (given.text.ends_with('/') || given.text.contains("//")) {
    return invalid("prefix", given, "a slash at its end, or two in a row");
  }
  return std::string(given.text);
}

auto captures_of(std::string_view pattern) -> captures {
  captures found;
  while (!pattern.empty()) {
    auto const segment = take_until(pattern, '/');
    found.segments += segment == "*" ? 1U : 0U;
    found.rest = found.rest || segment == "**";
  }
  return found;
}

auto check_path_template(std::string_view text, captures const& known) -> scalar_result<void> {
  if (!text.starts_with('/')) {
    return failure(std::string("a path begins with /"));
  }
  TIDEGATE_TRY(auto const plain, without_captures(text, known));
  if (plain.contains('?')) {
    return failure(std::string("a path has no query; that of the request is kept"));
  }
  if (plain.contains('*')) {
    return failure(std::string("* is written as {1}, {2} and so on, and ** as {**}"));
  }
  auto const checked = check_path_pattern(plain);
  return checked ? scalar_result<void>() : failure(std::string(message(checked.error().fault)));
}

auto check_redirect_target(std::string_view text, captures const& known) -> scalar_result<void> {
  auto rest = text;
  for (std::string_view const scheme : {"http://", "https://"}) {
    if (!text.starts_with(scheme)) {
      continue;
    }
    rest.remove_prefix(scheme.size());
    auto const authority = rest.substr(0, rest.find_first_of("/?#"));
    rest.remove_prefix(authority.size());
    if (authority.contains('{')) {
      return failure(std::string("captures are allowed only in the path"));
    }
    auto const host = http::parse_host(authority);
    if (!host || host->name.empty() || authority.ends_with(':') || authority.contains('*')) {
      return failure("invalid host " + shown(authority));
    }
  }
  bool const is_path = rest.size() == text.size();
  if (is_path && (!text.starts_with('/') || text.starts_with("//"))) {
    return failure(std::string("it begins with http://, https:// or one slash"));
  }
  auto const path = rest.substr(0, rest.find_first_of("?#"));
  if (path.size() != rest.size()) {
    return failure(std::string(rest[path.size()] == '?'
                                   ? "it has no query; that of the request is kept"
                                   : "it has no fragment"));
  }
  return path.empty() ? scalar_result<void>() : check_path_template(path, known);
}

}  // namespace tidegate::gateway
