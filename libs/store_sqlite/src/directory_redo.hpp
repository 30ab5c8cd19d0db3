// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::store_sqlite {

/// What was done to a directory, so that it can be done again. Entries are left out: they follow from the text.
struct redo {
  enum class what : std::uint8_t {
    insert = 1,
    update,
    remove,
    add_member,
    remove_member,
    remove_members,
  };
  what done{};
  std::uint64_t rid = 0;     ///< of the resource, or of the group
  std::uint64_t member = 0;  ///< its rid
  std::string_view tenant{};
  std::string_view type{};
  std::string_view id{};
  std::string_view text{};  ///< of the resource, or what the member is called
};

/// Appends it to `to`.
void write_redo(std::string& to, redo const& one);

/// Takes the first one off `from`, and borrows from it. Nothing when that is none.
[[nodiscard]] auto read_redo(std::string_view& from) -> std::optional<redo>;

}  // namespace tidegate::store_sqlite
