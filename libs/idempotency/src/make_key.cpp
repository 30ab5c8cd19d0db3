// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency/make_key.hpp>

#include <tidegate/base/hex.hpp>

#include <algorithm>
#include <array>

namespace tidegate::TIDEGATE_ABI::idempotency {

auto make_key(wall_time now, std::span<std::uint8_t const, 10> randomness) -> std::string {
  std::array<std::uint8_t, 16> octets{};
  auto const time =
      static_cast<std::uint64_t>(std::max<std::int64_t>(now.time_since_epoch().count(), 0));
  for (std::size_t i = 0; i < 6; ++i) {
    octets[i] = static_cast<std::uint8_t>(time >> (40 - 8 * i));
  }
  std::ranges::copy(randomness, octets.begin() + 6);
  octets[6] = static_cast<std::uint8_t>(0x70 | (octets[6] & 0x0f));  // the version
  octets[8] = static_cast<std::uint8_t>(0x80 | (octets[8] & 0x3f));  // the variant

  std::string out;
  out.reserve(36);
  for (std::size_t i = 0; i < octets.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      out.push_back('-');
    }
    append_hex(out, static_cast<char>(octets[i]));
  }
  return out;
}

auto append_key_field(std::string& out, std::string_view key) -> bool {
  if (key.empty() || !std::ranges::all_of(key, [](char c) { return c >= ' ' && c <= '~'; })) {
    return false;
  }
  out.push_back('"');
  for (auto const c : key) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
    }
    out.push_back(c);
  }
  out.push_back('"');
  return true;
}

}  // namespace tidegate::TIDEGATE_ABI::idempotency
