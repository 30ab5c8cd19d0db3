// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/field_name.hpp>

#include <string>
#include <string_view>

namespace tidegate::gateway {

using http::equal_names;

/// Takes a field out of a head.
inline void drop_field(std::string& head, std::string_view lower_case_name) {
  auto const is_named = [&](std::string_view line) {
    return line.size() > lower_case_name.size() && line[lower_case_name.size()] == ':' &&
           equal_names(line.substr(0, lower_case_name.size()), lower_case_name);
  };
  for (auto at = head.find("\r\n"); at != std::string::npos; at = head.find("\r\n", at + 2)) {
    while (is_named(std::string_view(head).substr(at + 2))) {
      head.erase(at, head.find("\r\n", at + 2) - at);
    }
  }
}

}  // namespace tidegate::gateway
