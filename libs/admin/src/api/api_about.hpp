// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http.hpp"

#include <tidegate/admin/server.hpp>
#include <tidegate/proxy/control.hpp>

#include <optional>
#include <string>

namespace tidegate::gateway {

/// The file that a configuration was read from; nothing where it is only the command line.
[[nodiscard]] auto config_file_of(config const& settings) -> std::optional<std::string>;

/// Which gateway this is: version, machine, file, since when it runs, and where clients reach it.
[[nodiscard]] auto about_json(control const& seen, program_facts const& about) -> std::string;

}  // namespace tidegate::gateway
