// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/partition_key.hpp>

#include <tidegate/ratelimit/partition.hpp>

namespace tidegate::gateway {

auto partition_key_of(std::string_view partition) -> std::string {
  static ratelimit::partition_rule const hashed({}, ratelimit::partition_key_form::hashed);
  std::string key;
  hashed.append_key(key, partition);
  std::string text;
  for (char const c : key) {
    constexpr std::string_view hex = "0123456789abcdef";
    auto const octet = static_cast<unsigned char>(c);
    text += {hex[octet >> 4U], hex[octet & 15U]};
  }
  return text;
}

}  // namespace tidegate::gateway
