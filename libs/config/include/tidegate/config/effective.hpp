// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/yaml.hpp>

#include <tidegate/config/config.hpp>

#include <span>
#include <string>
#include <vector>

namespace tidegate::gateway {

/// Every option of a configuration without faults, by the table of options: what the file says with
/// its place, and what it leaves out with its default. Options that mean nothing by what others say
/// are left out, unless the file has them. At most `effective_options_max`.
///
/// An element of a list is called by its name or address, so that it keeps its path when others
/// come before it. `files` are the names of files by number; the first is empty when the text
/// stands for a command line. What came through a variable is shown as it is written.
[[nodiscard]] auto effective_options(yaml_node const& root, config const& made,
                                     std::span<std::string const> files,
                                     hidden_values const& hidden) -> std::vector<effective_option>;

/// One option that another configuration changes.
struct option_difference {
  effective_option const* from = nullptr;  ///< null: it is not there
  effective_option const* to = nullptr;    ///< null: it is not there any more
};

/// What differs, in the order of `to`, then what is only in `from`. Both must outlive the answer.
[[nodiscard]] auto differences(std::span<effective_option const> from,
                               std::span<effective_option const> to)
    -> std::vector<option_difference>;

}  // namespace tidegate::gateway
