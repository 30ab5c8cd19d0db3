// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check.hpp"

#include <tidegate/wire.hpp>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the fuzz targets for heads share: a second reader, as lax as they come, that must not find
/// another message in what the strict one accepts.
namespace tidegate::fuzz {

/// A head as one reads it who takes LF for the end of a line, folds no lines and trims everything.
struct lax_head {
  std::size_t size = 0;
  std::vector<std::pair<std::string, std::string>> fields;  // names in lower case
};

inline auto lax_trimmed(std::string_view text) -> std::string_view {
  auto const blank = [](char c) { return static_cast<unsigned char>(c) <= ' '; };
  while (!text.empty() && blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

inline auto lower(std::string_view text) -> std::string {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

inline auto read_lax(std::string_view bytes) -> std::optional<lax_head> {
  lax_head head;
  bool first_line = true;
  while (head.size < bytes.size()) {
    auto const lf = bytes.find('\n', head.size);
    if (lf == bytes.npos) {
      return std::nullopt;
    }
    auto line = bytes.substr(head.size, lf - head.size);
    head.size = lf + 1;
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (line.empty()) {
      if (first_line) {
        continue;
      }
      return head;
    }
    if (!first_line) {
      auto const colon = std::min(line.find(':'), line.size());
      head.fields.emplace_back(lower(lax_trimmed(line.substr(0, colon))),
                               lax_trimmed(line.substr(std::min(colon + 1, line.size()))));
    }
    first_line = false;
  }
  return std::nullopt;
}

/// A head that was accepted has one reading only.
inline void check_one_reading(std::string_view bytes, std::size_t size,
                              wire::message_head const& head) {
  auto const lax = read_lax(bytes);
  check(lax.has_value(), "a lax reader finds a head too");
  check(lax->size == size, "and it ends at the same byte");
  check(lax->fields.size() == head.fields().size(), "with as many fields");
  std::size_t lengths = 0;
  std::size_t codings = 0;
  for (std::size_t i = 0; i < lax->fields.size(); ++i) {
    auto const& [name, value] = lax->fields[i];
    auto const& field = head.fields()[i];
    check(lower(field.name) == name, "of the same names");
    check(field.value == value, "and values");
    check(wire::find_known_field(name) == field.known, "and what is known is known");
    lengths += name == "content-length" ? 1U : 0U;
    codings += name == "transfer-encoding" ? 1U : 0U;
  }
  check(lengths + codings <= 1, "one field at most says how long the body is");
  auto const body = head.body();
  if (body.kind == wire::body_kind::content_length) {
    check(lengths == 1 && std::stoull(std::string(
                              head.value_of(wire::known_field::content_length))) == body.length,
          "a length is what the field says");
  }
  check((body.kind != wire::body_kind::chunked) || codings == 1, "chunked is what a field says");
  for (char const c : head.field_lines()) {
    check(c != '\0', "no NUL gets through");
  }
}

/// The fields that go from end to end are the same in both.
inline void check_same_fields(wire::message_head const& a, wire::message_head const& b) {
  auto end_to_end = [&a](wire::message_head const& head) {
    std::vector<std::pair<std::string, std::string>> fields;
    for (auto const& f : head.fields()) {
      bool const framing = f.known == wire::known_field::host ||
                           f.known == wire::known_field::content_length ||
                           f.known == wire::known_field::expect ||
                           wire::connection_specific_fields.contains(f.known);
      bool const named = f.known == wire::known_field::other && a.connection_names_other_fields();
      // Of a request not what CGI reads as a field of ours.
      bool const spelled = f.known == wire::known_field::other &&
                           wire::find_known_field_by_any_spelling(f.name) != f.known;
      if (!framing && !named && !spelled) {
        fields.emplace_back(f.name, f.value);
      }
    }
    return fields;
  };
  check(end_to_end(a) == end_to_end(b), "what was sent on has the same fields");
}

}  // namespace tidegate::fuzz
