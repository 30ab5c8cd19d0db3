// SPDX-License-Identifier: Apache-2.0
//
// The model of schemas and resource types, from the files that the configuration names.
#include <tidegate/json/parse.hpp>
#include <tidegate/scim_server/service.hpp>

#include <fstream>
#include <iterator>
#include <utility>

namespace tidegate::gateway {

namespace {

/// One schema or resource type, or several in an array or a ListResponse.
auto read_definitions(std::string const& file, std::vector<scim::schema>& schemas,
                      std::vector<scim::resource_type>& types) -> result<void, std::string> {
  constexpr std::size_t octets_max = std::size_t{8} << 20;
  std::ifstream from(file, std::ios::binary);
  std::string const text((std::istreambuf_iterator<char>(from)), std::istreambuf_iterator<char>());
  if (!from) {
    return failure("cannot read " + file);
  }
  auto const read = json::parse(text, {.octets_max = octets_max});
  if (!read) {
    return failure(file + ": " + to_string(read.error()));
  }
  auto const* const listed = read->find("Resources");
  auto const& all = listed != nullptr ? *listed : *read;
  json::array const one{all};
  for (auto const& each : all.if_array() != nullptr ? *all.if_array() : one) {
    // A resource type has an endpoint, and a schema has none.
    if (each.find("endpoint") != nullptr) {
      auto type = scim::read_resource_type(each);
      if (!type) {
        return failure(file + ": " + to_string(type.error()));
      }
      types.push_back(*std::move(type));
    } else {
      auto schema = scim::read_schema(each);
      if (!schema) {
        return failure(file + ": " + to_string(schema.error()));
      }
      schemas.push_back(*std::move(schema));
    }
  }
  return {};
}

}  // namespace

auto make_scim_model(scim_config const& settings)
    -> result<std::shared_ptr<scim::model const>, std::string> {
  std::vector<scim::schema> schemas;
  std::vector<scim::resource_type> types;
  for (auto const& file : settings.schemas) {
    TIDEGATE_TRY_VOID(read_definitions(file, schemas, types));
  }
  auto made = scim::model::make(schemas, types, settings.indexes);
  if (!made) {
    return failure("scim: " + made.error().subject + ": " + made.error().text);
  }
  return std::make_shared<scim::model const>(*std::move(made));
}

}  // namespace tidegate::gateway
