// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

/// The hash computation of SHA-256 (FIPS 180-4, section 6.2.2) over `count` blocks of 64 bytes,
/// once for every machine and once with the instructions that most x86 processors have for it. Both
/// do the same.
namespace tidegate::TIDEGATE_ABI::detail {

using sha256_words = std::array<std::uint32_t, 8>;

void compress_portable(sha256_words& state, std::byte const* blocks, std::size_t count) noexcept;

#if defined(__x86_64__)
/// Whether this processor has what `compress_x86` needs.
[[nodiscard]] auto has_sha_instructions() noexcept -> bool;
void compress_x86(sha256_words& state, std::byte const* blocks, std::size_t count) noexcept;
#endif

/// The fastest of them.
void compress(sha256_words& state, std::byte const* blocks, std::size_t count) noexcept;

}  // namespace tidegate::TIDEGATE_ABI::detail
