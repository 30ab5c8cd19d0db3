// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace tidegate::store_sqlite {

/// How many octets of memory this process may have: what the machine has, or less where it runs in a container or in a
/// service with a limit (control groups of both versions). `root` is where /proc and /sys are.
[[nodiscard]] auto memory_limit(std::filesystem::path const& root = "/") -> std::uint64_t;

/// How many of them the pages of a directory's writer get.
[[nodiscard]] constexpr auto page_octets_of(std::uint64_t limit) noexcept -> std::uint64_t {
  constexpr std::uint64_t most = std::uint64_t{512} << 20;  // the indexes of two million users
  constexpr std::uint64_t least = std::uint64_t{16} << 20;
  auto const part = limit / 4;
  return part < least ? least : part > most ? most : part;
}

}  // namespace tidegate::store_sqlite
