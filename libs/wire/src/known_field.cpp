// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/known_field.hpp>

#include "known_names.hpp"
#include "spelling.hpp"

#include <array>

namespace tidegate::TIDEGATE_ABI::wire {

auto find_known_field(std::string_view name) noexcept -> known_field {
  return detail::find_known(name.data(), name.size(), name.size());
}

auto find_known_field_by_any_spelling(std::string_view name) noexcept -> known_field {
  if (spelling::is_plain(name)) {
    return find_known_field(name);
  }
  std::array<char, sizeof(detail::known_entry::name)> spelled{};
  std::size_t size = 0;
  bool between = false;
  for (char const c : name) {
    if (!spelling::is_in_word(c)) {
      between = size > 0;
      continue;
    }
    if (size + 1 >= spelled.size()) {
      return known_field::other;
    }
    if (between) {
      spelled[size++] = '-';
      between = false;
    }
    spelled[size++] = c;
  }
  return find_known_field({spelled.data(), size});
}

auto name_of(known_field field) noexcept -> std::string_view {
  return detail::known_names[static_cast<std::size_t>(field)];
}

}  // namespace tidegate::TIDEGATE_ABI::wire
