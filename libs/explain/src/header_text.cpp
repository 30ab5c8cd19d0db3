// SPDX-License-Identifier: Apache-2.0
#include <tidegate/explain/header_text.hpp>

#include <tidegate/base/ascii.hpp>

#include "words.hpp"

#include <algorithm>

namespace tidegate::TIDEGATE_ABI::explain {

namespace {

/// The status of `HTTP/1.1 429 Too Many Requests` or `HTTP/2 200`.
[[nodiscard]] auto status_of(std::string_view line) -> std::optional<int> {
  auto const space = line.find(' ');
  if (!line.starts_with("HTTP/") || space == std::string_view::npos) {
    return std::nullopt;
  }
  auto const digits = line.substr(space + 1, 3);
  if (digits.size() != 3 || !std::ranges::all_of(digits, is_digit)) {
    return std::nullopt;
  }
  return (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
}

}  // namespace

auto parse_field_line(std::string_view line) -> std::optional<http::field_view> {
  auto const colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos || !http::is_token(line.substr(0, colon))) {
    return std::nullopt;
  }
  return http::field_view{line.substr(0, colon), trimmed(line.substr(colon + 1))};
}

auto read_header_text(std::string_view text) -> header_text {
  header_text read;
  bool is_inside = true;
  while (!text.empty()) {
    auto line = take_until(text, '\n');
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    bool const is_verbose = line.starts_with("< ") || line == "<";
    if (is_verbose) {
      line.remove_prefix(std::min<std::size_t>(2, line.size()));
    } else if (line.starts_with("> ") || line.starts_with("* ")) {
      continue;  // what curl -v says of the request and of itself
    }
    line = trimmed(line);
    if (auto const status = status_of(line)) {
      read = {.status = status, .fields = {}, .other_lines = 0};
      is_inside = true;
    } else if (line.empty()) {
      // Behind a header section there is content. Lines alone may have blank ones among them.
      is_inside = is_inside && !read.status;
    } else if (auto const field = is_inside ? parse_field_line(line) : std::nullopt) {
      read.fields.push_back(*field);
    } else if (is_inside) {
      ++read.other_lines;
    }
  }
  return read;
}

}  // namespace tidegate::TIDEGATE_ABI::explain
