// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>

namespace tidegate::idempotency {

/// A set of the values of an enumeration that has at most eight.
template <class Enum>
class enum_set {
 public:
  constexpr enum_set() noexcept = default;
  constexpr enum_set(std::initializer_list<Enum> values) noexcept {
    for (auto value : values) {
      insert(value);
    }
  }

  constexpr void insert(Enum value) noexcept {
    bits_ = static_cast<std::uint8_t>(bits_ | 1U << static_cast<unsigned>(value));
  }
  [[nodiscard]] constexpr auto contains(Enum value) const noexcept -> bool {
    return (bits_ >> static_cast<unsigned>(value) & 1U) != 0;
  }
  [[nodiscard]] constexpr auto empty() const noexcept -> bool { return bits_ == 0; }
  auto operator==(enum_set const&) const -> bool = default;

 private:
  std::uint8_t bits_ = 0;
};

}  // namespace tidegate::idempotency
