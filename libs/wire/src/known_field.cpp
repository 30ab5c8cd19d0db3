// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/known_field.hpp>

#include "known_names.hpp"

#include <algorithm>
#include <array>

namespace tidegate::wire {

auto find_known_field(std::string_view name) noexcept -> known_field {
  return detail::find_known(name.data(), name.size(), name.size());
}

auto find_known_field_by_any_spelling(std::string_view name) noexcept -> known_field {
  if (name.find('_') == name.npos) {
    return find_known_field(name);
  }
  std::array<char, sizeof(detail::known_entry::name)> spelled{};
  if (name.size() > spelled.size()) {
    return known_field::other;
  }
  std::replace_copy(name.begin(), name.end(), spelled.begin(), '_', '-');
  return find_known_field({spelled.data(), name.size()});
}

auto name_of(known_field field) noexcept -> std::string_view {
  return detail::known_names[static_cast<std::size_t>(field)];
}

}  // namespace tidegate::wire
