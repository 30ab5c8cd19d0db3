// SPDX-License-Identifier: Apache-2.0
//
// What the service says of itself (RFC 7644, section 4).
#include <tidegate/scim_server/call.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/http/query.hpp>
#include <tidegate/scim/list_response.hpp>
#include <tidegate/scim/service_provider_config.hpp>

#include <string>
#include <vector>

namespace tidegate::gateway {

namespace {

auto with_meta(json::value resource, std::string_view type, std::string const& location)
    -> std::string {
  resource.if_object()->set("meta", json::object{{"resourceType", type}, {"location", location}});
  return to_string(resource);
}

auto schema_text(scim_call const& call, scim::schema const& schema) -> std::string {
  return with_meta(to_json(schema), "Schema", call.request.base + "/Schemas/" + schema.id);
}

auto type_text(scim_call const& call, scim::resource_type const& type) -> std::string {
  return with_meta(to_json(type), "ResourceType",
                   call.request.base + "/ResourceTypes/" + type.name);
}

auto list_of(std::vector<std::string> const& texts) -> scim_answer {
  scim::list_head head;
  head.total_results = texts.size();
  head.start_index = 1;
  std::vector<std::string_view> const views(texts.begin(), texts.end());
  std::string content;
  scim::append_list_response(content, head, views);
  return json_answer(200, std::move(content));
}

auto answer_config(scim_call const& call) -> scim_answer {
  auto const& options = *call.request.options;
  scim::service_provider_config said;
  said.pagination = options.pagination;
  said.bulk_max_operations = static_cast<std::uint64_t>(options.bulk_max_operations);
  said.bulk_max_payload_octets = static_cast<std::uint64_t>(options.bulk_max_payload);
  said.bearer_tokens = call.request.has_auth;
  said.location = call.request.base + "/ServiceProviderConfig";
  std::string content;
  scim::append_service_provider_config(content, said);
  return json_answer(200, std::move(content));
}

auto answer_schemas(scim_call const& call) -> scim_answer {
  std::vector<std::string> texts;
  for (auto const& schema : call.model().schemas()) {
    if (call.target.name.empty()) {
      texts.push_back(schema_text(call, schema));
    } else if (equal_ignoring_case(schema.id, call.target.name)) {
      return json_answer(200, schema_text(call, schema));
    }
  }
  return call.target.name.empty() ? list_of(texts) : scim_error_answer(not_found("schema"));
}

auto answer_types(scim_call const& call) -> scim_answer {
  std::vector<std::string> texts;
  for (auto const& each : call.model().types()) {
    auto const& type = each.definition.type();
    if (call.target.name.empty()) {
      texts.push_back(type_text(call, type));
    } else if (type.name == call.target.name) {
      return json_answer(200, type_text(call, type));
    }
  }
  return call.target.name.empty() ? list_of(texts) : scim_error_answer(not_found("resource type"));
}

}  // namespace

auto answer_discovery(scim_call const& call) -> scim_answer {
  // Section 4: a client must not take the answer for one that was filtered.
  if (http::find_query_value(call.request.query, "filter")) {
    return scim_error_answer(
        {403, scim::scim_type::none, "There are no filters at this endpoint."});
  }
  switch (call.target.endpoint) {
    case scim_endpoint::schemas: return answer_schemas(call);
    case scim_endpoint::resource_types: return answer_types(call);
    default: return answer_config(call);
  }
}

}  // namespace tidegate::gateway
