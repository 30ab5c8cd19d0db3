// SPDX-License-Identifier: Apache-2.0
#include "phases/bridge_request.hpp"

#include <tidegate/http/field_name.hpp>

#include <algorithm>
#include <string_view>

namespace tidegate::gateway {

namespace {

using http::equal_names;

[[nodiscard]] auto last_segment(std::string_view path) -> std::string_view {
  return path.substr(path.rfind('/') + 1);
}

[[nodiscard]] auto has_parameter(std::string_view query, std::string_view lower_case_name) -> bool {
  while (!query.empty()) {
    auto const end = std::min(query.find('&'), query.size());
    auto const pair = query.substr(0, end);
    if (equal_names(pair.substr(0, pair.find('=')), lower_case_name)) {
      return true;
    }
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return false;
}

}  // namespace

auto bridge_subject_of(request_context const& context) -> std::optional<bridge_subject> {
  auto const& options = *context.route_settings().settings->bridge;
  auto query = context.head->query();
  query.remove_prefix(std::min<std::size_t>(1, query.size()));
  if (context.method == wire::method::post && last_segment(context.path) == ".search") {
    return bridge_subject::search;
  }
  if (context.method != wire::method::get) {
    return std::nullopt;
  }
  if (last_segment(context.path) == "ServiceProviderConfig") {
    return bridge_subject::abilities;
  }
  if (has_parameter(query, "cursor")) {
    return bridge_subject::list;
  }
  if (options.default_method == scim::pagination_method::cursor &&
      !has_parameter(query, "startindex")) {
    return bridge_subject::list_or_resource;
  }
  return std::nullopt;
}

void open_head(std::string& head) {
  head.resize(head.size() - 2);
  constexpr std::string_view no_content = "Content-Length: 0\r\n";
  if (auto const at = head.find("\r\n" + std::string(no_content)); at != std::string::npos) {
    head.erase(at + 2, no_content.size());
  }
}

}  // namespace tidegate::gateway
