// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/hidden_values.hpp>
#include <tidegate/config/sources.hpp>
#include <tidegate/config/yaml.hpp>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// A configuration file and all that it includes, put together, with variables replaced.
struct config_tree {
  std::vector<std::string> names;       ///< of the files, by `yaml_place::file`
  std::vector<std::string_view> texts;  ///< of the files
  std::deque<std::string> included;     ///< what `texts` has of those that were read here
  yaml_document document;
  yaml_node const* root = nullptr;  ///< null where a file is missing or is not YAML
  std::vector<yaml_fault> faults;
  std::vector<yaml_fault> warnings;
  hidden_values hidden;
};

/// `text` must outlive the tree.
[[nodiscard]] auto read_tree(std::string_view text, std::string_view file_name,
                             config_sources const& sources) -> config_tree;

}  // namespace tidegate::gateway
