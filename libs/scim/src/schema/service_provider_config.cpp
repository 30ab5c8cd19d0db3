// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/service_provider_config.hpp>

#include "message.hpp"

#include <tidegate/json/string.hpp>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

[[nodiscard]] auto word(bool value) noexcept -> std::string_view {
  return value ? "true" : "false";
}

[[nodiscard]] auto bool_of(json::value const& from, std::string_view name, bool otherwise) noexcept
    -> bool {
  auto const* const value = from.find<bool>(name);
  return value != nullptr ? *value : otherwise;
}

[[nodiscard]] auto positive_of(json::value const& from, std::string_view name) noexcept
    -> std::optional<std::uint64_t> {
  auto const number = number_of(from, name);
  return number == std::uint64_t{0} ? std::nullopt : number;
}

}  // namespace

void append_pagination(std::string& out, pagination_options const& options) {
  auto const most = std::to_string(options.max_page_size);
  out += R"({"cursor":)";
  out += word(options.cursor);
  out += R"(,"index":)";
  out += word(options.index);
  out += R"(,"defaultPaginationMethod":)";
  out += options.default_method == pagination_method::cursor ? R"("cursor")" : R"("index")";
  out += R"(,"defaultPageSize":)" + std::to_string(options.default_page_size);
  out += R"(,"maxPageSize":)" + most;
  out += R"(,"maximumPageSize":)" + most;
  if (options.cursor) {
    out += R"(,"cursorTimeout":)" + std::to_string(options.cursor_timeout.count());
  }
  out += '}';
}

void append_service_provider_config(std::string& out, service_provider_config const& config) {
  out += R"({"schemas":[")";
  out += service_provider_config_schema;
  out += "\"]";
  if (!config.documentation_uri.empty()) {
    out += R"(,"documentationUri":)";
    json::append_string(out, config.documentation_uri);
  }
  out += R"(,"patch":{"supported":true},"bulk":{"supported":true,"maxOperations":)" +
         std::to_string(config.bulk_max_operations) + R"(,"maxPayloadSize":)" +
         std::to_string(config.bulk_max_payload_octets) +
         R"(},"filter":{"supported":true,"maxResults":)" +
         std::to_string(config.pagination.max_page_size) +
         R"(},"changePassword":{"supported":false},"sort":{"supported":true},)"
         R"("etag":{"supported":true},"pagination":)";
  append_pagination(out, config.pagination);
  out += R"(,"authenticationSchemes":[)";
  if (config.bearer_tokens) {
    out += R"({"type":"oauthbearertoken","name":"OAuth Bearer Token",)"
           R"("description":"A token in the Authorization field",)"
           R"("specUri":"https://www.rfc-editor.org/info/rfc6750","primary":true})";
  }
  out += R"(],"meta":{"resourceType":"ServiceProviderConfig","location":)";
  json::append_string(out, config.location);
  out += "}}";
}

auto parse_pagination_support(std::string_view body) -> result<pagination_support, error> {
  TIDEGATE_TRY(auto const message, parse_message(body, service_provider_config_schema));
  pagination_support read;
  auto const* const pagination = message.find("pagination");
  if (pagination == nullptr || pagination->if_object() == nullptr) {
    return read;
  }
  read.cursor = bool_of(*pagination, "cursor", false);
  read.index = bool_of(*pagination, "index", true);
  if (auto const* method = pagination->find("defaultPaginationMethod")) {
    if (*method == json::value("cursor")) {
      read.default_method = pagination_method::cursor;
    } else if (*method == json::value("index")) {
      read.default_method = pagination_method::index;
    }
  }
  read.default_page_size = positive_of(*pagination, "defaultPageSize");
  read.max_page_size = positive_of(*pagination, "maxPageSize");
  if (!read.max_page_size) {
    read.max_page_size = positive_of(*pagination, "maximumPageSize");
  }
  if (auto const timeout = positive_of(*pagination, "cursorTimeout")) {
    read.cursor_timeout = std::chrono::seconds(*timeout);
  }
  return read;
}

}  // namespace tidegate::TIDEGATE_ABI::scim
