// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/list_response.hpp>

#include "message.hpp"

#include <tidegate/json/string.hpp>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

void append_cursor(std::string& out, std::string_view name, std::string_view cursor) {
  if (!cursor.empty()) {
    out += name;
    json::append_string(out, cursor);
    out += ',';
  }
}

[[nodiscard]] auto integer_of(json::value const& message, std::string_view name)
    -> result<std::optional<std::uint64_t>, error> {
  auto const* value = message.find(name);
  if (value == nullptr || value->is_null()) {
    return std::nullopt;
  }
  auto const* number = value->if_integer();
  if (number == nullptr || *number < 0) {
    return failure(invalid_syntax(std::string(name) + " is not a number of resources"));
  }
  return static_cast<std::uint64_t>(*number);
}

[[nodiscard]] auto cursor_of(json::value const& message, std::string_view name)
    -> result<std::string, error> {
  auto const* value = message.find(name);
  if (value == nullptr || value->is_null()) {
    return std::string();
  }
  if (value->if_string() == nullptr) {
    return failure(invalid_syntax(std::string(name) + " is not a string"));
  }
  return *value->if_string();
}

}  // namespace

void append_list_begin(std::string& out, list_head const& head, std::size_t items) {
  out += '{';
  if (head.total_results) {
    out += R"("totalResults":)" + std::to_string(*head.total_results) + ',';
  }
  out += R"("itemsPerPage":)" + std::to_string(items) + ',';
  if (head.start_index) {
    out += R"("startIndex":)" + std::to_string(*head.start_index) + ',';
  }
  append_cursor(out, R"("previousCursor":)", head.previous_cursor);
  append_cursor(out, R"("nextCursor":)", head.next_cursor);
  out += R"("schemas":[")";
  out += list_response_schema;
  out += R"("],"Resources":[)";
}

void append_list_response(std::string& out, list_head const& head,
                          std::span<std::string_view const> resources) {
  append_list_begin(out, head, resources.size());
  for (bool first = true; auto resource : resources) {
    if (!first) {
      out += ',';
    }
    out += resource;
    first = false;
  }
  out += "]}";
}

auto parse_list_response(std::string_view body, json::limits const& limits)
    -> result<list_response, error> {
  TIDEGATE_TRY(auto message, parse_message(body, list_response_schema, limits));
  list_response read;
  TIDEGATE_TRY(read.head.total_results, integer_of(message, "totalResults"));
  TIDEGATE_TRY(read.head.start_index, integer_of(message, "startIndex"));
  TIDEGATE_TRY(read.items_per_page, integer_of(message, "itemsPerPage"));
  TIDEGATE_TRY(read.head.next_cursor, cursor_of(message, "nextCursor"));
  TIDEGATE_TRY(read.head.previous_cursor, cursor_of(message, "previousCursor"));
  auto* resources = message.if_object()->find("Resources");
  if (resources != nullptr && !resources->is_null()) {
    if (resources->if_array() == nullptr) {
      return failure(invalid_syntax("Resources is not an array"));
    }
    read.resources = std::move(*resources->if_array());
  }
  return read;
}

}  // namespace tidegate::TIDEGATE_ABI::scim
