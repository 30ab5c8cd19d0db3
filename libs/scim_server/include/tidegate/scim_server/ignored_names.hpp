// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/resource.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace tidegate::gateway {

/// What SCIM clients send that no schema has, so that misspelled names are seen: counted by route,
/// and each name told to people once. Any thread may use it.
class scim_ignored {
 public:
  /// So many names are told; more are only counted.
  static constexpr std::size_t names_max = 100;

  /// How much was ignored on a route.
  struct counts {
    std::uint64_t attributes = 0;
    std::uint64_t schemas = 0;
  };

  /// `report` is called with one line for people; it may be empty.
  explicit scim_ignored(std::function<void(std::string_view)> report);

  void note(std::string const& route, scim::ignored_names const& what);

  [[nodiscard]] auto by_route() const -> std::map<std::string, counts>;

 private:
  std::function<void(std::string_view)> report_;
  mutable std::mutex mutex_;
  std::map<std::string, counts> counts_;  // as many as there are routes
  std::set<std::string> told_;            // at most `names_max`
};

}  // namespace tidegate::gateway
