// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tidegate::gateway {

/// Finds the first of many routes that takes all requests of another, as `covers` says, without a
/// look at each of them: paths are a tree of segments, and in each node routes are found by their
/// host and by the first header or parameter that they ask for.
class cover_index {
 public:
  /// `routes` must outlive the index.
  explicit cover_index(std::vector<route_config> const& routes) : routes_(routes) {}

  /// Takes in the routes that were added since the last time.
  void update();

  /// The position of the first route so far that covers `match`.
  [[nodiscard]] auto find(request_match const& match) const -> std::optional<std::size_t>;

 private:
  struct search;
  using node = std::uint32_t;

  void add(std::size_t position);
  void take(search& wanted, node at, char kind) const;

  std::vector<route_config> const& routes_;
  std::size_t count_ = 0;  // of routes that are in it
  node nodes_ = 1;
  std::unordered_map<std::string, node> children_;  // by parent and segment
  std::unordered_map<std::string, std::vector<std::size_t>> positions_;
};

}  // namespace tidegate::gateway
