// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/partition_key.hpp>

#include <tidegate/base/hex.hpp>
#include <tidegate/ratelimit/partition.hpp>

namespace tidegate::gateway {

auto partition_key_of(std::string_view partition) -> std::string {
  static ratelimit::partition_rule const hashed({}, ratelimit::partition_key_form::hashed);
  std::string key;
  hashed.append_key(key, partition);
  return to_hex(std::as_bytes(std::span(key)));
}

}  // namespace tidegate::gateway
