// SPDX-License-Identifier: Apache-2.0
#include "crc32c.hpp"

#include <array>
#include <cstddef>
#include <cstring>

namespace tidegate::store_sqlite {

namespace {

constexpr std::uint32_t all_ones = 0xffff'ffff;

/// What an octet makes of the value, and what it makes of it when up to seven others follow.
constexpr auto tables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> made{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    auto value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f6'3b78U : 0U);
    }
    made[0][i] = value;
  }
  for (std::size_t table = 1; table < 8; ++table) {
    for (std::size_t i = 0; i < 256; ++i) {
      auto const before = made[table - 1][i];
      made[table][i] = (before >> 8) ^ made[0][before & 0xff];
    }
  }
  return made;
}();

/// The first octet is the lowest.
[[nodiscard]] auto word_at(char const* octets) noexcept -> std::uint64_t {
  std::uint64_t value = 0;
  for (int i = 7; i >= 0; --i) {
    value = (value << 8) | static_cast<unsigned char>(octets[i]);
  }
  return value;
}

}  // namespace

auto crc32c_portable(std::string_view octets) noexcept -> std::uint32_t {
  std::uint32_t value = all_ones;
  std::size_t at = 0;
  for (; at + 8 <= octets.size(); at += 8) {
    auto const word = word_at(octets.data() + at) ^ value;
    value = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      value ^= tables[7 - i][(word >> (8 * i)) & 0xff];
    }
  }
  for (; at < octets.size(); ++at) {
    value = (value >> 8) ^ tables[0][(value ^ static_cast<unsigned char>(octets[at])) & 0xff];
  }
  return ~value;
}

#if defined(__x86_64__)

namespace {

[[gnu::target("sse4.2")]] auto crc32c_sse(std::string_view octets) noexcept -> std::uint32_t {
  std::uint64_t value = all_ones;
  std::size_t at = 0;
  for (; at + 8 <= octets.size(); at += 8) {
    std::uint64_t word = 0;  // which is as this processor has it in memory
    std::memcpy(&word, octets.data() + at, sizeof word);
    value = __builtin_ia32_crc32di(value, word);
  }
  auto rest = static_cast<std::uint32_t>(value);
  for (; at < octets.size(); ++at) {
    rest = __builtin_ia32_crc32qi(rest, static_cast<unsigned char>(octets[at]));
  }
  return ~rest;
}

}  // namespace

auto crc32c(std::string_view octets) noexcept -> std::uint32_t {
  static bool const has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  return has_instruction ? crc32c_sse(octets) : crc32c_portable(octets);
}

#else

auto crc32c(std::string_view octets) noexcept -> std::uint32_t {
  return crc32c_portable(octets);
}

#endif

}  // namespace tidegate::store_sqlite
