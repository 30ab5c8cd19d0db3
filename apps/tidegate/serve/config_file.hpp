// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/config/config.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tidegate::app {

enum class config_reading : std::uint8_t {
  first,
  again,  ///< a pipe, which was read to its end, has nothing more to say: it is an error
};

/// What a file says, up to one octet more than `octets_max`. An error is the reason in a few words.
[[nodiscard]] auto read_config_file(std::string const& name, config_reading how,
                                    std::size_t octets_max = gateway::config_octets_max)
    -> result<std::string, std::string>;

/// The environment and the files of this machine.
[[nodiscard]] auto sources_of_process(config_reading how) -> gateway::config_sources;

/// Reads a configuration file and all that it includes.
[[nodiscard]] auto load_config_file(std::string const& name, config_reading how)
    -> result<gateway::config, std::vector<gateway::config_fault>>;

}  // namespace tidegate::app
