// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace tidegate::store_directory {

/// A statement of SQL by its name in an enumeration.
template <class Name>
struct statement_row {
  Name name;
  std::string_view text;
};

/// The texts by the numbers of their names. Does not compile unless each stands where it belongs.
template <class Name, std::size_t Size>
[[nodiscard]] consteval auto statement_table(statement_row<Name> const (&rows)[Size])
    -> std::array<std::string_view, Size> {
  std::array<std::string_view, Size> texts;
  for (std::size_t i = 0; i < Size; ++i) {
    texts[i] = static_cast<std::size_t>(rows[i].name) == i ? rows[i].text : throw rows[i].name;
  }
  return texts;
}

}  // namespace tidegate::store_directory
