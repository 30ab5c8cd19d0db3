// SPDX-License-Identifier: Apache-2.0
#include "memory_limit.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace tidegate::store_sqlite {

namespace {

constexpr auto no_limit = std::numeric_limits<std::uint64_t>::max();

/// What a file with one number says. One that says `max`, or is not there, has no limit.
[[nodiscard]] auto number_in(std::filesystem::path const& file) -> std::uint64_t {
  std::ifstream from(file);
  std::uint64_t number = 0;
  return from >> number ? number : no_limit;
}

/// The lowest limit of a group and of all that it is in.
[[nodiscard]] auto lowest(std::filesystem::path const& top, std::filesystem::path group,
                          char const* file) -> std::uint64_t {
  auto limit = number_in(top / file);
  for (; group.has_relative_path(); group = group.parent_path()) {
    limit = std::min(limit, number_in(top / group.relative_path() / file));
  }
  return limit;
}

}  // namespace

auto memory_limit(std::filesystem::path const& root) -> std::uint64_t {
  auto limit = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 1L)) *
               static_cast<std::uint64_t>(std::max(::sysconf(_SC_PAGESIZE), 1L));
  // A line is `number:controllers:group`; those of version 2 are `0::group`.
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    auto const first = std::min(line.find(':'), line.size());
    auto const second = line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    auto const controllers = std::string_view(line).substr(first + 1, second - first - 1);
    std::filesystem::path const group = line.substr(second + 1);
    if (controllers.empty()) {
      limit = std::min(limit, lowest(root / "sys/fs/cgroup", group, "memory.max"));
    } else if (controllers == "memory") {
      limit =
          std::min(limit, lowest(root / "sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
    }
  }
  return limit;
}

}  // namespace tidegate::store_sqlite
