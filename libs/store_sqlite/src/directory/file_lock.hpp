// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "connection.hpp"

#include <string>
#include <utility>

namespace tidegate::store_sqlite {

/// Keeps other processes, and others in this one, away from a file by a lock on `FILE.lock` beside
/// it. The lock goes with the process; the file stays, since another one may be waiting with it
/// open.
class file_lock {
 public:
  [[nodiscard]] static auto take(std::string const& file) -> outcome<file_lock>;
  file_lock(file_lock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  auto operator=(file_lock&&) -> file_lock& = delete;
  ~file_lock();

 private:
  explicit file_lock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace tidegate::store_sqlite
