// SPDX-License-Identifier: Apache-2.0
#include "random_hex.hpp"

#include <tidegate/base/hex.hpp>

#include <sys/random.h>

#include <array>

namespace tidegate::gateway {

auto random_hex() -> std::string {
  std::array<unsigned char, 16> octets{};
  if (::getrandom(octets.data(), octets.size(), 0) != static_cast<ssize_t>(octets.size())) {
    return {};
  }
  return to_hex(std::as_bytes(std::span(octets)));
}

}  // namespace tidegate::gateway
