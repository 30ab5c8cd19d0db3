// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sources/config_tree.hpp"

#include <map>
#include <string_view>
#include <unordered_map>

namespace tidegate::gateway {

/// Puts the keys of included files into those of the including one: lists go behind each other, and
/// mappings are merged. Anything that is there twice is a fault.
class merger {
 public:
  explicit merger(config_tree& tree) : tree_(tree) {}

  void merge(yaml_node& into, yaml_node const& from);

 private:
  /// A list or a mapping that files are merged into: a copy, since aliases may share the original.
  struct merged {
    yaml_node* node = nullptr;
    std::unordered_map<std::string_view, yaml_place> names{};  // of a mapping
  };

  void merge_value(yaml_node::member& member, yaml_node::member const& more);
  [[nodiscard]] auto merged_for(yaml_node::member& member) -> merged&;
  void refuse_second(yaml_node const& key, yaml_place first);

  config_tree& tree_;
  std::map<std::string_view, merged> merged_;  // by key
};

}  // namespace tidegate::gateway
