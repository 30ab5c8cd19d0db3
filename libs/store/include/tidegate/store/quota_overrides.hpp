// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::TIDEGATE_ABI::store {

/// Quotas that single partitions have for a while instead of that of their policy. For any number
/// of threads.
///
/// Nearly always there are none, and a caller that decides asks `any` first, which is one load.
class quota_overrides {
 public:
  /// How many there may be.
  static constexpr std::size_t entries_max = 1'000;
  /// Of all partitions together.
  static constexpr std::size_t partition_octets_max = std::size_t{1} << 20;

  /// What a partition has, and until when.
  struct standing {
    std::int64_t quota = 0;
    instant until{};
    auto operator==(standing const&) const -> bool = default;
  };

  /// One partition of one policy, and what it has.
  struct entry {
    std::uint32_t policy_id = 0;
    std::string partition;
    std::int64_t quota = 0;
    instant until{};
    auto operator==(entry const&) const -> bool = default;
  };

  /// Whether there is one at all.
  [[nodiscard]] auto any() const noexcept -> bool {
    return size_.load(std::memory_order_acquire) != 0;
  }

  /// The quota that a partition has at `now`, where it is not that of its policy.
  [[nodiscard]] auto find(std::uint32_t policy_id, std::string_view partition, instant now) const
      -> std::optional<standing>;
  /// Of a partition that was given one before, the new one holds. False when there are as many as
  /// there may be.
  [[nodiscard]] auto set(entry made) -> bool;
  /// True when it was there.
  auto remove(std::uint32_t policy_id, std::string_view partition) -> bool;
  /// Takes out those that have ended at `now`.
  auto take_ended(instant now) -> std::vector<entry>;
  /// All that there are, those that end first before others.
  [[nodiscard]] auto list() const -> std::vector<entry>;

 private:
  using key_view = std::pair<std::uint32_t, std::string_view>;
  struct before {
    using is_transparent = void;
    template <class A, class B>
    auto operator()(A const& a, B const& b) const noexcept -> bool {
      return key_view(a.first, a.second) < key_view(b.first, b.second);
    }
  };
  using table = std::map<std::pair<std::uint32_t, std::string>, standing, before>;

  void erase(table::iterator at);

  mutable std::shared_mutex mutex_;
  table entries_;
  std::size_t octets_ = 0;  // of their partitions
  std::atomic<std::size_t> size_{0};
};

}  // namespace tidegate::TIDEGATE_ABI::store
