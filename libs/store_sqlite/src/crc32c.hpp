// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tidegate::store_sqlite {

/// CRC-32C (RFC 3720, appendix B.4), by the processor where it can.
[[nodiscard]] auto crc32c(std::string_view octets) noexcept -> std::uint32_t;

/// The same on any processor.
[[nodiscard]] auto crc32c_portable(std::string_view octets) noexcept -> std::uint32_t;

}  // namespace tidegate::store_sqlite
