// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/query.hpp>

#include <tidegate/base/ascii.hpp>

#include "octets.hpp"

#include <algorithm>

namespace tidegate::TIDEGATE_ABI::http {

namespace {

/// Takes the first byte that `rest`, which is not empty, decodes to.
[[nodiscard]] auto take_decoded(std::string_view& rest) noexcept -> char {
  char c = rest.front();
  std::size_t size = 1;
  if (c == '+') {
    c = ' ';
  } else if (c == '%') {
    if (auto const octet = octets::escaped(rest, 0)) {
      c = *octet;
      size = 3;
    }
  }
  rest.remove_prefix(size);
  return c;
}

[[nodiscard]] auto decodes_to(std::string_view encoded, std::string_view text) noexcept -> bool {
  while (!encoded.empty() && !text.empty()) {
    if (take_decoded(encoded) != text.front()) {
      return false;
    }
    text.remove_prefix(1);
  }
  return encoded.empty() && text.empty();
}

}  // namespace

auto find_query_value(std::string_view query, std::string_view name) noexcept
    -> std::optional<std::string_view> {
  while (!query.empty()) {
    auto const parameter = take_until(query, '&');
    auto const equals = std::min(parameter.find('='), parameter.size());
    // "&&" has no parameter in it, not one without a name.
    if (!parameter.empty() && decodes_to(parameter.substr(0, equals), name)) {
      return parameter.substr(std::min(equals + 1, parameter.size()));
    }
  }
  return std::nullopt;
}

auto has_query_value(std::string_view query, std::string_view name,
                     std::optional<std::string_view> value) noexcept -> bool {
  while (auto const found = find_query_value(query, name)) {
    if (!value || decodes_to(*found, *value)) {
      return true;
    }
    auto const end = static_cast<std::size_t>(found->data() + found->size() - query.data());
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return false;
}

void append_query_encoded(std::string& out, std::string_view text) {
  for (char const c : text) {
    if (is_unreserved(c)) {
      out.push_back(c);
    } else {
      octets::append_escape(out, c);
    }
  }
}

void append_query_decoded(std::string& out, std::string_view encoded) {
  while (!encoded.empty()) {
    out.push_back(take_decoded(encoded));
  }
}

auto is_repeated_in_query(std::string_view query, std::string_view name) noexcept -> bool {
  auto const first = find_query_value(query, name);
  if (!first) {
    return false;
  }
  auto const end = static_cast<std::size_t>(first->data() + first->size() - query.data());
  return find_query_value(query.substr(std::min(end + 1, query.size())), name).has_value();
}

auto query_value(std::string_view query, std::string_view name, std::string& scratch)
    -> std::optional<std::string_view> {
  auto const encoded = find_query_value(query, name);
  if (!encoded || encoded->find_first_of("+%") == std::string_view::npos) {
    return encoded;
  }
  scratch.clear();
  append_query_decoded(scratch, *encoded);
  return scratch;
}

}  // namespace tidegate::TIDEGATE_ABI::http
