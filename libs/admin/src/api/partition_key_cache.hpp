// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tidegate::gateway {

/// The partitions that operators were shown lately, by their keys, which tell no secrets. Of one
/// thread.
class partition_key_cache {
 public:
  static constexpr std::size_t entries_max = 1'024;
  /// Of all partitions together; one that is longer is not remembered.
  static constexpr std::size_t octets_max = std::size_t{1} << 20;

  void add(std::string_view partition);
  /// The partition of a key; null when it is not known any more.
  [[nodiscard]] auto find(std::string_view key) const -> std::string const*;

 private:
  struct entry {
    std::string key;
    std::string partition;
  };
  std::list<entry> entries_;  // the one that was shown last at the end
  std::unordered_map<std::string_view, std::list<entry>::iterator> by_key_;
  std::size_t octets_ = 0;
};

}  // namespace tidegate::gateway
