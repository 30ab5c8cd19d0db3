// SPDX-License-Identifier: Apache-2.0
//
// What the path of a request means.
#include <tidegate/http/query.hpp>
#include <tidegate/scim_server/call.hpp>

#include <algorithm>
#include <optional>

namespace tidegate::gateway {

namespace {

/// A segment of a path in which escapes are decoded.
auto decoded(std::string_view segment) -> std::string {
  std::string out;
  if (segment.contains('%')) {
    http::append_query_decoded(out, segment);
  } else {
    out.assign(segment);
  }
  return out;
}

/// What follows `prefix` in `path`: nothing where it is not its beginning, or ends inside of a
/// segment.
auto behind(std::string_view path, std::string_view prefix) -> std::optional<std::string_view> {
  if (!path.starts_with(prefix)) {
    return std::nullopt;
  }
  path.remove_prefix(prefix.size());
  if (!path.empty() && path.front() != '/') {
    return std::nullopt;
  }
  path.remove_prefix(std::min<std::size_t>(path.size(), 1));
  return path;
}

}  // namespace

auto find_scim_target(scim::model const& model, std::string_view path) -> scim_target {
  if (path.ends_with('/')) {
    path.remove_suffix(1);
  }
  if (path.empty()) {
    return {scim_endpoint::root};
  }
  struct fixed_path {
    std::string_view path;
    scim_endpoint endpoint;
    bool has_name;
  };
  static constexpr fixed_path fixed[] = {
      // NOLINT(modernize-avoid-c-arrays): its length is counted by the compiler
      {"/.search", scim_endpoint::search, false},
      {"/Bulk", scim_endpoint::bulk, false},
      {"/Me", scim_endpoint::me, false},
      {"/Schemas", scim_endpoint::schemas, true},
      {"/ResourceTypes", scim_endpoint::resource_types, true},
      {"/ServiceProviderConfig", scim_endpoint::service_provider_config, false},
  };
  for (auto const& each : fixed) {
    if (auto const rest = behind(path, each.path)) {
      bool const fits = rest->empty() || (each.has_name && !rest->contains('/'));
      return fits ? scim_target{each.endpoint, nullptr, decoded(*rest)} : scim_target{};
    }
  }
  for (auto const& type : model.types()) {
    auto const rest = behind(path, type.definition.type().endpoint);
    if (!rest) {
      continue;
    }
    if (rest->empty()) {
      return {scim_endpoint::type, &type};
    }
    if (*rest == ".search") {
      return {scim_endpoint::search, &type};
    }
    return rest->contains('/') ? scim_target{}
                               : scim_target{scim_endpoint::resource, &type, decoded(*rest)};
  }
  return {};
}

}  // namespace tidegate::gateway
