// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/config/config.hpp>

#include <optional>
#include <string>
#include <vector>

namespace tidegate::gateway {

/// One option that a reload changes, for people.
struct config_change {
  std::string path;
  std::optional<std::string> from;  ///< missing: it was not there
  std::optional<std::string> to;    ///< missing: it is not there any more
  bool at_start = false;            ///< it is taken over by the next start only
  auto operator==(config_change const&) const -> bool = default;
};

/// Why a configuration is not taken over.
struct reload_refusal {
  std::vector<config_fault> faults{};  ///< that it has
  std::string reason{};                ///< else: one line for people
};

using reload_outcome = result<std::vector<config_change>, reload_refusal>;

}  // namespace tidegate::gateway
