// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/base64.hpp>

#include <algorithm>

namespace tidegate::TIDEGATE_ABI {

auto to_base64url(std::string_view octets) -> std::string {
  std::string out(base64::encoded_size(octets.size()), '\0');
  base64::encode<base64::url>(octets, out.data());
  return out;
}

auto from_base64url(std::string_view text) -> std::optional<std::string> {
  auto const is_digit = [](char c) { return base64::url.value(c) != base64::no_digit; };
  // A digit that adds no octet, or bits behind the last octet: another spelling of the same octets.
  auto const rest = text.size() % 4;
  if (rest == 1 || !std::ranges::all_of(text, is_digit) ||
      (rest != 0 && (base64::url.value(text.back()) & (rest == 2 ? 15U : 3U)) != 0)) {
    return std::nullopt;
  }
  std::string out(text.size() / 4 * 3 + (rest == 0 ? 0 : rest - 1), '\0');
  base64::decode<base64::url>(text, out.data());
  return out;
}

}  // namespace tidegate::TIDEGATE_ABI
