// SPDX-License-Identifier: Apache-2.0
//
// What the service says of itself (RFC 7644, section 4).
#include <tidegate/scim_server/job.hpp>

#include <tidegate/http/query.hpp>
#include <tidegate/scim/case_fold.hpp>
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

auto schema_text(scim_job const& job, scim::schema const& schema) -> std::string {
  return with_meta(to_json(schema), "Schema", job.request.base + "/Schemas/" + schema.id);
}

auto type_text(scim_job const& job, scim::resource_type const& type) -> std::string {
  return with_meta(to_json(type), "ResourceType", job.request.base + "/ResourceTypes/" + type.name);
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

auto answer_config(scim_job const& job) -> scim_answer {
  auto const& how = *job.request.how;
  scim::service_provider_config said;
  said.pagination = how.pagination;
  said.bulk_max_operations = static_cast<std::uint64_t>(how.bulk_max_operations);
  said.bulk_max_payload_octets = static_cast<std::uint64_t>(how.bulk_max_payload);
  said.bearer_tokens = job.request.has_auth;
  said.location = job.request.base + "/ServiceProviderConfig";
  std::string content;
  scim::append_service_provider_config(content, said);
  return json_answer(200, std::move(content));
}

auto answer_schemas(scim_job const& job) -> scim_answer {
  std::vector<std::string> texts;
  for (auto const& schema : job.model().schemas()) {
    if (job.target.name.empty()) {
      texts.push_back(schema_text(job, schema));
    } else if (scim::equal_names(schema.id, job.target.name)) {
      return json_answer(200, schema_text(job, schema));
    }
  }
  return job.target.name.empty() ? list_of(texts) : scim_error_answer(not_found("schema"));
}

auto answer_types(scim_job const& job) -> scim_answer {
  std::vector<std::string> texts;
  for (auto const& each : job.model().types()) {
    auto const& type = each.definition.type();
    if (job.target.name.empty()) {
      texts.push_back(type_text(job, type));
    } else if (type.name == job.target.name) {
      return json_answer(200, type_text(job, type));
    }
  }
  return job.target.name.empty() ? list_of(texts) : scim_error_answer(not_found("resource type"));
}

}  // namespace

auto answer_discovery(scim_job const& job) -> scim_answer {
  // Section 4: a client must not take the answer for one that was filtered.
  if (http::find_query_value(job.request.query, "filter")) {
    return scim_error_answer(
        {403, scim::scim_type::none, "There are no filters at this endpoint."});
  }
  switch (job.target.place) {
    case scim_place::schemas: return answer_schemas(job);
    case scim_place::resource_types: return answer_types(job);
    default: return answer_config(job);
  }
}

}  // namespace tidegate::gateway
