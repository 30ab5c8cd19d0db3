// SPDX-License-Identifier: Apache-2.0
#include "message.hpp"

#include <tidegate/base/ascii.hpp>

#include <algorithm>

namespace tidegate::TIDEGATE_ABI::scim {

auto invalid_syntax(std::string detail) -> error {
  return {.status = 400, .type = scim_type::invalid_syntax, .detail = std::move(detail)};
}

auto has_schema(json::value const& message, std::string_view schema) -> bool {
  auto const* const list = message.find<json::array>("schemas");
  return list != nullptr && std::ranges::any_of(*list, [&](json::value const& one) {
           return one.if_string() != nullptr && equal_ignoring_case(*one.if_string(), schema);
         });
}

auto check_message(json::value const& message, std::string_view schema) -> result<void, error> {
  if (!has_schema(message, schema)) {
    return failure(invalid_syntax("schemas must name " + std::string(schema)));
  }
  return {};
}

auto parse_message(std::string_view body, std::string_view schema, json::limits const& limits)
    -> result<json::value, error> {
  auto read = json::parse(body, limits);
  if (!read) {
    return failure(invalid_syntax(to_string(read.error())));
  }
  TIDEGATE_TRY_VOID(check_message(*read, schema));
  return *std::move(read);
}

}  // namespace tidegate::TIDEGATE_ABI::scim
