// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <cstdint>
#include <initializer_list>

namespace tidegate::TIDEGATE_ABI {

/// A set of the values of an enumeration that has at most as many as `Bits` has bits.
template <class Enum, class Bits = std::uint8_t>
class enum_set {
 public:
  constexpr enum_set() noexcept = default;
  constexpr enum_set(std::initializer_list<Enum> values) noexcept {
    for (auto value : values) {
      insert(value);
    }
  }

  /// Puts a value in, and asks for one.
  constexpr void insert(Enum value) noexcept {
    bits_ = static_cast<Bits>(bits_ | Bits{1} << static_cast<unsigned>(value));
  }
  [[nodiscard]] constexpr auto contains(Enum value) const noexcept -> bool {
    return (bits_ >> static_cast<unsigned>(value) & 1U) != 0;
  }
  [[nodiscard]] constexpr auto empty() const noexcept -> bool { return bits_ == 0; }
  [[nodiscard]] constexpr auto has_any_of(enum_set other) const noexcept -> bool {
    return (bits_ & other.bits_) != 0;
  }
  constexpr auto operator|=(enum_set other) noexcept -> enum_set& {
    bits_ = static_cast<Bits>(bits_ | other.bits_);
    return *this;
  }
  [[nodiscard]] friend constexpr auto operator|(enum_set a, enum_set b) noexcept -> enum_set {
    return a |= b;
  }
  auto operator==(enum_set const&) const -> bool = default;

 private:
  Bits bits_ = 0;
};

}  // namespace tidegate::TIDEGATE_ABI
