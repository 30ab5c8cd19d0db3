// SPDX-License-Identifier: Apache-2.0
#include "random_hex.hpp"

#include <sys/random.h>

#include <array>
#include <string_view>

namespace tidegate::gateway {

auto random_hex() -> std::string {
  std::array<unsigned char, 16> octets{};
  if (::getrandom(octets.data(), octets.size(), 0) != static_cast<ssize_t>(octets.size())) {
    return {};
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (auto const octet : octets) {
    text += {digits[octet >> 4U], digits[octet & 15U]};
  }
  return text;
}

}  // namespace tidegate::gateway
