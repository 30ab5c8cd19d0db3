// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/yaml.hpp>

#include <tidegate/config/config.hpp>

#include <span>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// Every option of a configuration without faults, by the table of options: what the file says with
/// its place, and what it leaves out with its default. Options that mean nothing by what others say
/// are left out, unless the file has them. At most `effective_options_max`.
///
/// An element of a list is called by its name or address, so that it keeps its path when others
/// come before it. `file_name` is empty when the text stands for a command line.
[[nodiscard]] auto effective_options(yaml_node const& root, config const& made,
                                     std::string_view file_name) -> std::vector<effective_option>;

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
