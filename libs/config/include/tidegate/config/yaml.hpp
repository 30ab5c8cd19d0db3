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
  std::uint32_t line = 1;
  std::uint32_t column = 1;
  std::uint32_t file = 0;  ///< of those that a configuration has, by number
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
  bool is_key = false;
  std::string const* written = nullptr;   ///< what people see in the place of `text`, if not null
  std::string text{};                     ///< of a scalar
  std::vector<yaml_node const*> items{};  ///< of a sequence
  std::vector<member> members{};          ///< of a mapping, in their order
};

/// What a scalar is for people: without what came through a variable.
[[nodiscard]] inline auto written_text(yaml_node const& node) -> std::string const& {
  return node.written == nullptr ? node.text : *node.written;
}

/// The nodes of one file or of several. An alias points to the node that its anchor named, so that
/// trees may share nodes; walking all of them visits at most `yaml_nodes_max`.
struct yaml_document {
  std::deque<yaml_node> nodes{};
  std::deque<std::string> texts{};  ///< that `yaml_node::written` points to
  std::size_t visited = 0;          ///< so many values are there, with all that aliases repeat
};

struct yaml_fault {
  yaml_place place{};
  std::string message{};
};

inline constexpr std::size_t yaml_depth_max = 32;
inline constexpr std::size_t yaml_nodes_max = 2'000'000;

/// Reads one document of UTF-8 into `document` and returns its root. Tags, merge keys and keys that
/// are not plain text are refused. An empty text is a null. `file` is for the places.
[[nodiscard]] auto read_yaml(std::string_view text, yaml_document& document, std::uint32_t file = 0)
    -> result<yaml_node*, yaml_fault>;

/// The position of the first octet that no text of a configuration has: a control character, or one
/// that is never in UTF-8. The size of `text` when it has none.
[[nodiscard]] auto first_strange_octet(std::string_view text) -> std::size_t;

}  // namespace tidegate::gateway
