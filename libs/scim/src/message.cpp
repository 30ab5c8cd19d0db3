// SPDX-License-Identifier: Apache-2.0
#include "message.hpp"

#include <tidegate/scim/case_fold.hpp>

#include <algorithm>

namespace tidegate::scim {

auto invalid_syntax(std::string detail) -> error {
  return {.status = 400, .type = scim_type::invalid_syntax, .detail = std::move(detail)};
}

auto check_message(json::value const& message, std::string_view schema) -> result<void, error> {
  auto const* schemas = message.find("schemas");
  auto const* list = schemas == nullptr ? nullptr : schemas->if_array();
  bool const named =
      list != nullptr && std::any_of(list->begin(), list->end(), [&](json::value const& j) {
        return j.if_string() != nullptr && equal_names(*j.if_string(), schema);
      });
  if (!named) {
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

}  // namespace tidegate::scim
