// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http1_head.hpp>

#include <string>

namespace tidegate::wire {

/// A request head that owns its text, for a request that has to wait: the copy says the same as the
/// head it was made from, and lives when the buffer of that one is gone.
class owned_request_head {
 public:
  explicit owned_request_head(request_head const& head);
  owned_request_head(owned_request_head const&) = delete;
  auto operator=(owned_request_head const&) -> owned_request_head& = delete;

  [[nodiscard]] auto head() const noexcept -> request_head const& { return head_; }
  /// What it takes in memory.
  [[nodiscard]] auto octets() const noexcept -> std::size_t {
    return sizeof *this + text_.capacity();
  }

 private:
  std::string text_;
  request_head head_;
};

}  // namespace tidegate::wire
