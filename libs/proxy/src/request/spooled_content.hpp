// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/socket.hpp>

#include <optional>

namespace tidegate::gateway {

/// The content of a request that is kept until all of it has come: the beginning in memory, the
/// rest in a file without a name.
class spooled_content {
 public:
  static constexpr std::size_t memory_octets_max = 128 * 1024;

  /// False when the disk does not take it. `folder` is where the file is made.
  [[nodiscard]] auto append(std::string_view piece, std::string const& folder) -> bool;
  [[nodiscard]] auto size() const noexcept -> std::uint64_t { return head_.size() + file_octets_; }
  [[nodiscard]] auto memory_octets() const noexcept -> std::size_t { return head_.size(); }
  /// All of it, when none is in the file.
  [[nodiscard]] auto in_memory() const noexcept -> std::optional<std::string_view> {
    return file_octets_ == 0 ? std::optional<std::string_view>(head_) : std::nullopt;
  }
  /// Appends up to `octets` of it from `at` on. False when the disk does not give it back.
  [[nodiscard]] auto read(std::uint64_t at, std::size_t octets, std::string& out) const -> bool;

 private:
  std::string head_;
  engine::descriptor file_;
  std::uint64_t file_octets_ = 0;
};

}  // namespace tidegate::gateway
