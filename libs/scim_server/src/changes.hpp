// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim_server/call.hpp>

#include <tidegate/scim/patch.hpp>
#include <tidegate/scim/plain_resource.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Changes of single resources, alone or as operations of a bulk request.
namespace tidegate::gateway {

enum class change_kind : std::uint8_t { create, replace, patch, remove };

/// A member of a group, as a client gives it.
struct given_member {
  std::string id;
  std::string display;
};

/// What a client wants of one resource, checked as far as that goes without the directory.
struct scim_change {
  change_kind kind{};
  scim::model_type const* type = nullptr;
  bool unique_group_names = false;
  scim::wall_time now;
  std::string if_match;
  std::string if_none_match;
  json::value resource;               ///< as it is to be kept, but for id and meta; without members
  std::vector<given_member> members;  ///< of a group that is made or replaced
  scim::kept_form created;            ///< of a resource that is made: see `prepare_create`
  scim::group_patch patch;
  scim::ignored_names ignored;  ///< of what the client sent
  /// Members with these ids may not be there yet: they are left out, and told.
  std::vector<std::string> made_later;
};

/// What became of a resource.
struct scim_changed {
  int status = 200;
  store::directory_resource resource;
  std::vector<given_member> left_out;  ///< of `made_later`
};

/// Reads the body of a request that changes a resource; of `remove` there is none.
[[nodiscard]] auto read_change(change_kind kind, scim::model_type const& type, json::value body,
                               scim::unknown_attributes unknown)
    -> result<scim_change, scim::error>;

/// Makes what the directory is to get of a resource that is made, so that its one writer has less
/// to do. It is made of `change.resource`, which is null then.
void prepare_create(scim_change& change, std::string const& id);

/// Makes a change. With an error of the client nothing was written.
[[nodiscard]] auto carry_out(store::directory_writer& in, scim_change const& change,
                             std::string const& id) -> result<scim_changed, scim::error>;

/// An id that no resource has: a UUID of version 7 (RFC 9562), which keeps new ones together on the
/// disk.
[[nodiscard]] auto make_resource_id(scim::wall_time now) -> std::string;

/// Reads a body as JSON; what is wrong with it is `invalidSyntax`.
[[nodiscard]] auto read_body(std::string_view content, std::size_t octets_max)
    -> result<json::value, scim::error>;

}  // namespace tidegate::gateway
