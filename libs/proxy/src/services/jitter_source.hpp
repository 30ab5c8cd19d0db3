// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tidegate::gateway {

/// Random numbers that spread what many clients do; they protect nothing (xorshift64*).
class jitter_source {
 public:
  explicit jitter_source(std::uint64_t seed) : state_(seed | 1) {}

  [[nodiscard]] auto next() noexcept -> std::uint64_t {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1d;
  }

 private:
  std::uint64_t state_;
};

}  // namespace tidegate::gateway
