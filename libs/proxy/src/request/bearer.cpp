// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/bearer.hpp>

namespace tidegate::gateway {

auto bearer_token_of(wire::request_head const& request) -> std::string_view {
  std::string_view value;
  bool is_first = true;
  for (auto const& field : request.fields()) {
    if (field.known == wire::known_field::authorization) {
      if (!is_first) {
        return {};  // two readers could take two different ones
      }
      value = field.value;
      is_first = false;
    }
  }
  constexpr std::string_view scheme = "bearer ";
  if (!equal_ignoring_case(value.substr(0, scheme.size()), scheme)) {
    return {};
  }
  value.remove_prefix(scheme.size());
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

auto find_token(std::span<bearer_token const> tokens, std::string_view given)
    -> bearer_token const* {
  if (given.empty()) {
    return nullptr;
  }
  auto const digest = sha256::of(given);
  bearer_token const* found = nullptr;
  for (auto const& token : tokens) {
    if (equal_in_constant_time(digest, token.digest)) {
      found = &token;
    }
  }
  return found;
}

}  // namespace tidegate::gateway
