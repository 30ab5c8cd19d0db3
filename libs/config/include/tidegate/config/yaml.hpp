// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// YAML as the configuration takes it: a tree that keeps the order of keys, repeated keys and the
/// place of everything, none of which yaml-cpp's own tree does.
namespace tidegate::gateway {

struct yaml_place {
  std::size_t line = 1;
  std::size_t column = 1;
  auto operator<=>(yaml_place const&) const = default;
};

enum class yaml_kind : std::uint8_t { null, scalar, sequence, mapping };

struct yaml_node {
  struct member {
    yaml_node const* key;
    yaml_node const* value;
  };

  yaml_kind kind = yaml_kind::null;
  yaml_place place{};
  bool quoted = false;
  std::string text{};                     ///< of a scalar
  std::vector<yaml_node const*> items{};  ///< of a sequence
  std::vector<member> members{};          ///< of a mapping, in their order
};

/// An alias points to the node that its anchor named, so the tree may share nodes; walking all of
/// it visits at most `yaml_nodes_max`.
struct yaml_document {
  std::deque<yaml_node> nodes{};
  yaml_node const* root = nullptr;
};

struct yaml_fault {
  yaml_place place{};
  std::string message{};
};

inline constexpr std::size_t yaml_depth_max = 32;
inline constexpr std::size_t yaml_nodes_max = 100'000;

/// Reads one document of UTF-8. Tags, merge keys and keys that are not plain text are refused. An
/// empty text is a null.
[[nodiscard]] auto read_yaml(std::string_view text) -> result<yaml_document, yaml_fault>;

}  // namespace tidegate::gateway
