// SPDX-License-Identifier: Apache-2.0
#include <tidegate/gateway/server.hpp>

#include <tidegate/engine/socket.hpp>
#include <tidegate/proxy/active_config.hpp>
#include <tidegate/proxy/consumers.hpp>
#include <tidegate/proxy/data_plane.hpp>
#include <tidegate/proxy/unresolved_names.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace tidegate::gateway {

auto check_files(config const& settings) -> std::vector<config_fault> {
  std::vector<config_fault> faults;
  auto const add = [&](std::string const& path, std::string message) {
    auto fault = place_of(settings, path);
    fault.message = std::move(message);
    faults.push_back(std::move(fault));
  };
  // Each alone, so that all that is wrong is said at once.
  policy_ids ids;
  upstream_states loads;
  auto const check_address = [&](std::string const& path, std::string const& text) {
    auto const address = engine::socket_address::parse(text);
    if (!address) {
      return;  // it is a fault of the file, which has been said
    }
    if (auto const checked = engine::check_listening(*address); !checked) {
      add(path, "cannot listen on " + text + ": " + engine::to_string(checked.error()));
    }
  };
  if (settings.admin) {
    check_address("admin.address", settings.admin->address);
  }
  for (auto const& listen : settings.listen) {
    check_address("listen[" + listen.address + "].address", listen.address);
    config part;
    part.listen.push_back(listen);
    if (auto const made = active_config::make(std::move(part), ids, loads); !made) {
      bool const is_key = made.error().contains("cannot use the key");
      add("listen[" + listen.address + "].tls." + (is_key ? "key" : "certificate"), made.error());
    }
  }
  for (auto const& upstream : settings.upstreams) {
    config part;
    part.upstreams.push_back(upstream);
    if (auto const made = active_config::make(std::move(part), ids, loads); !made) {
      auto const& error = made.error();
      add("upstreams." + upstream.name +
              (error.contains("cannot use the key ")            ? ".tls.key"
               : error.contains("cannot use the certificate ")  ? ".tls.certificate"
               : error.contains("cannot use the certificates ") ? ".tls.ca"
                                                                : ".servers"),
          error);
    }
  }
  if (auto const schemas = check_schemas(settings); !schemas) {
    auto const with = std::ranges::find_if(
        settings.routes, [](route_config const& route) { return route.scim.has_value(); });
    bool const is_file = std::ranges::any_of(with->scim->schemas, [&](std::string const& file) {
      return schemas.error().contains(file);
    });
    add("routes[" + with->name + (is_file ? "].scim.schemas" : "].scim.indexes"), schemas.error());
  }
  if (auto const consumers = load_consumers(settings.consumers); !consumers) {
    for (auto const& fault : consumers.error()) {
      // Of the file itself, unless it cannot be read.
      if (fault.message.starts_with("cannot read")) {
        add("consumers.file", "consumers: cannot read " + settings.consumers.file +
                                  fault.message.substr(fault.message.find(':')));
      } else {
        faults.push_back(fault);
      }
    }
  }
  if (settings.access_log.to == access_log_config::destination::file) {
    auto const& file = settings.access_log.file;
    auto const folder = std::filesystem::path(file).parent_path();
    bool const is_there = ::access(file.c_str(), F_OK) == 0;
    bool const is_folder = std::filesystem::is_directory(file);
    auto const& written = is_there ? file : folder.empty() ? std::string(".") : folder.string();
    if (is_folder || ::access(written.c_str(), W_OK) != 0) {
      add("access-log.file", "access-log: cannot write " + file + ": " +
                                 std::system_category().message(is_folder ? EISDIR : errno));
    }
  }
  return faults;
}

auto warn_of_names(config const& settings) -> std::vector<config_fault> {
  std::vector<config_fault> warnings;
  for (auto const& [upstream, name, why] : unresolved_names(settings)) {
    auto warning = place_of(settings, "upstreams." + upstream + ".servers");
    warning.message =
        "cannot resolve \"" + name + "\": " + why + "; it gets no requests until it has an address";
    warnings.push_back(std::move(warning));
  }
  return warnings;
}

}  // namespace tidegate::gateway
