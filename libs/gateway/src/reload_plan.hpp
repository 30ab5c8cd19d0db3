// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>
#include <tidegate/config/effective.hpp>
#include <tidegate/config/reload.hpp>

#include <vector>

namespace tidegate::gateway {

/// Which stores are open: a change of what they were opened with waits for a start.
struct open_stores {
  bool keys = false;
  bool directory = false;
  bool bridge = false;
};

/// What a reload from the options `effective` to `next` changes.
[[nodiscard]] auto changes_of(std::vector<effective_option> const& effective, config const& next,
                              open_stores open) -> std::vector<config_change>;

/// The options that hold once `next` was applied: what waits for a start stays as it is.
[[nodiscard]] auto effective_after(std::vector<effective_option> const& effective,
                                   config const& next, open_stores open)
    -> std::vector<effective_option>;

}  // namespace tidegate::gateway
