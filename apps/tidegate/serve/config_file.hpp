// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>

#include <cstdint>
#include <string>

namespace tidegate::app {

enum class config_reading : std::uint8_t {
  first,
  again,  ///< a pipe, which was read to its end, has nothing more to say: it is an error
};

/// What a configuration file says, as far as anybody would read it: one octet more than
/// `config_octets_max`. An error is the reason in a few words.
[[nodiscard]] auto read_config_file(std::string const& name, config_reading how)
    -> result<std::string, std::string>;

}  // namespace tidegate::app
