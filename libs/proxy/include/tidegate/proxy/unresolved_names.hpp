// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>

#include <string>
#include <vector>

namespace tidegate::gateway {

/// A name of a server that has no address now.
struct unresolved_name {
  std::string upstream;
  std::string name;
  std::string why;  ///< a few words for people
};

/// Looks up the names of all servers, one after the other, as the data plane does. Waits.
[[nodiscard]] auto unresolved_names(config const& settings) -> std::vector<unresolved_name>;

}  // namespace tidegate::gateway
