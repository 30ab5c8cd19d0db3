// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tidegate::store_sqlite {

/// Makes SQLite take the memory of its pages from a range of its own, in large pages of the processor where the system has
/// them; all else as before. A writer that has a hundred thousand pages in memory and meets another one with each key
/// spends a tenth of its time on finding out where they are otherwise, and on asking the system for each.
///
/// To be called before SQLite is used for the first time. Where it is too late, or there is no room for the range,
/// SQLite stays as it is.
void use_page_memory() noexcept;

/// How many octets of that range are in use, in pieces that the system can have back.
[[nodiscard]] auto page_memory_octets() noexcept -> std::size_t;

}  // namespace tidegate::store_sqlite
