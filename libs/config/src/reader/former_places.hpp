// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reader/option_reader.hpp"

namespace tidegate::gateway {

/// Puts options of routes that stand where they stood in an older version into the mapping that
/// they are in now, each with a warning, so that all that reads the tree knows one place. One that
/// stands in both is a fault. Nodes that are new lie in `document`.
[[nodiscard]] auto with_options_in_place(option_reader& in, yaml_document& document,
                                         yaml_node const& given) -> yaml_node const&;

}  // namespace tidegate::gateway
