// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/known_field.hpp>

#include "known_names.hpp"

namespace tidegate::wire {

auto find_known_field(std::string_view name) noexcept -> known_field {
  return detail::find_known(name.data(), name.size(), name.size());
}

auto name_of(known_field field) noexcept -> std::string_view {
  return detail::known_names[static_cast<std::size_t>(field)];
}

}  // namespace tidegate::wire
