// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/accept.hpp>

#include <tidegate/http/field.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace tidegate::TIDEGATE_ABI::http {

namespace {

/// A weight (RFC 9110, section 12.4.2) in thousandths; nothing when it is none.
auto read_weight(std::string_view text) -> std::optional<int> {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1') ||
      (text.size() > 1 && text[1] != '.')) {
    return std::nullopt;
  }
  int weight = (text[0] - '0') * 1000;
  int digit = 100;
  for (char const c : text.substr(std::min<std::size_t>(text.size(), 2))) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    weight += (c - '0') * digit;
    digit /= 10;
  }
  return weight <= 1000 ? std::optional(weight) : std::nullopt;
}

/// Whether `name` is the range of all types that begin as `type` does: "application/*".
auto is_range_of(std::string_view name, std::string_view type) -> bool {
  auto const slash = type.find('/') + 1;
  return name.size() == slash + 1 && name.ends_with('*') &&
         equal_ignoring_case(name.substr(0, slash), type.substr(0, slash));
}

}  // namespace

auto preference_for(std::string_view type, std::string_view accept) -> type_preference {
  type_preference found;
  while (!accept.empty()) {
    auto range = take_element(accept, ',');
    auto const name = take_element(range, ';');
    int weight = 1000;
    bool is_valid = true;
    while (!range.empty()) {
      auto parameter = take_element(range, ';');
      if (equal_ignoring_case(take_element(parameter, '='), "q")) {
        auto const read = read_weight(trimmed(parameter));
        is_valid = is_valid && read.has_value();
        weight = read.value_or(0);
      }
    }
    int const closeness = equal_ignoring_case(name, type) ? 3
                          : is_range_of(name, type)       ? 2
                          : name == "*/*"                 ? 1
                                                          : 0;
    if (is_valid && closeness > found.closeness) {
      found = {weight, closeness};
    }
  }
  return found;
}

}  // namespace tidegate::TIDEGATE_ABI::http
