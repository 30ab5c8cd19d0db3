// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim_server/call.hpp>

#include <gtest/gtest.h>

#include <string_view>

namespace tidegate::gateway {
namespace {

struct target_row {
  std::string_view path;
  scim_endpoint endpoint;
  std::string_view type;  ///< its name; empty for none
  std::string_view name;
};

TEST(gateway_scim_target, is_what_a_path_means) {
  using enum scim_endpoint;
  auto const model = make_scim_model({});
  ASSERT_TRUE(model) << model.error();
  for (auto const& row : {
           target_row{"", root, "", ""},
           target_row{"/", root, "", ""},
           target_row{"/Users", type, "User", ""},
           target_row{"/Users/", type, "User", ""},
           target_row{"/Users/1", resource, "User", "1"},
           target_row{"/Groups/a%20b", resource, "Group", "a b"},
           target_row{"/Users/.search", search, "User", ""},
           target_row{"/.search", search, "", ""},
           target_row{"/Bulk", bulk, "", ""},
           target_row{"/Me", me, "", ""},
           target_row{"/Schemas", schemas, "", ""},
           target_row{"/Schemas/urn:x", schemas, "", "urn:x"},
           target_row{"/ResourceTypes/User", resource_types, "", "User"},
           target_row{"/ServiceProviderConfig", service_provider_config, "", ""},
           target_row{"/Users/1/2", nothing, "", ""},
           target_row{"/Schemas/a/b", nothing, "", ""},
           target_row{"/Bulk/1", nothing, "", ""},
           target_row{"/Usersx", nothing, "", ""},
           target_row{"/v2/Users", nothing, "", ""},
       }) {
    auto const found = find_scim_target(**model, row.path);
    EXPECT_EQ(found.endpoint, row.endpoint) << row.path;
    EXPECT_EQ(found.name, row.name) << row.path;
    EXPECT_EQ(found.type == nullptr ? "" : found.type->definition.type().name, row.type)
        << row.path;
  }
}

}  // namespace
}  // namespace tidegate::gateway
