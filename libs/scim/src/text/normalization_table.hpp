// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <array>
#include <cstdint>
#include <span>

/// Characters that canonically are others (Unicode 14), but for Hangul syllables, which follow a
/// rule.
namespace tidegate::TIDEGATE_ABI::scim {

/// `character` is `first` and `second`; or `first` alone, when `second` is 0.
struct decomposition {
  std::uint32_t character;
  std::uint32_t first;
  std::uint32_t second;
};

/// Compatibility ideographs from `first` on, and which character each of them is; 0 for those that
/// are themselves.
struct ideograph_block {
  std::uint32_t first;
  std::span<std::uint32_t const> characters;
};

/// The characters from `first` to `last` are marks of that class.
struct class_range {
  std::uint32_t first;
  std::uint32_t last;
  std::uint8_t combining_class;
};

/// By `character`. Those that NFC makes of their two parts, and those that it takes apart for good.
extern std::span<decomposition const> const composed_characters;
extern std::span<decomposition const> const never_composed_characters;
extern std::array<ideograph_block, 2> const ideograph_blocks;

/// In order. Every other character is of class 0.
extern std::span<class_range const> const combining_classes;

}  // namespace tidegate::TIDEGATE_ABI::scim
