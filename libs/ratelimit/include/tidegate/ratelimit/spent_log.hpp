// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/ratelimit/limiter.hpp>
#include <tidegate/ratelimit/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tidegate::TIDEGATE_ABI::ratelimit {

/// What one partition has spent under a policy with `algorithm::log`, and when: at most the quota
/// is admitted in any window, wherever it begins. A unit counts for exactly a window.
///
/// A log is empty at first. It takes no memory by itself: its owner gives it some with `grow`
/// when `wanted` says how much would do. A log without room for another time counts its two oldest
/// as spent at the later one, so that it may admit less and never more. That is also done from
/// 10,000 times on, where it makes no difference: so many are a quota by themselves.
///
/// Each time is kept as what has passed since the one before, in as few octets as that needs: six
/// or so for a few requests a second, one for those that come at once.
class spent_log {
 public:
  /// What `decide` says of a policy with `algorithm::log`; nothing is spent yet, but what no longer
  /// counts is forgotten.
  [[nodiscard]] auto decide(policy const& p, instant now, std::int64_t cost) noexcept -> verdict;

  /// Notes units that are spent now, there or not.
  void add(instant now, std::int64_t units) noexcept;

  /// Gives units back that were admitted at a time: of what was spent then, or first after it.
  /// Nothing when that no longer counts.
  void release(policy const& p, instant admitted_at, instant now, std::int64_t units) noexcept;

  /// What is left without spending anything.
  [[nodiscard]] auto look(policy const& p, instant now) const noexcept -> service;

  /// From when on nothing of it counts.
  [[nodiscard]] auto expires(policy const& p) const noexcept -> instant;
  /// Whether nothing of it counts.
  [[nodiscard]] auto is_empty() const noexcept -> bool { return used_ == 0; }
  /// What it has allocated.
  [[nodiscard]] auto octets() const noexcept -> std::size_t { return capacity_; }
  /// How many octets it should have before another time is added; what it has when that is enough.
  [[nodiscard]] auto wanted() const noexcept -> std::size_t;
  /// Gives it so many octets, at least as many as it has. False when there is no memory.
  auto grow(std::size_t octets) noexcept -> bool;

 private:
  struct entry {
    std::int64_t time = 0;
    std::int64_t units = 0;
    std::uint32_t end = 0;  // where the next one is
  };

  [[nodiscard]] auto after(entry const& e) const noexcept -> entry;
  [[nodiscard]] auto oldest() const noexcept -> entry { return {oldest_, oldest_units_, begin_}; }
  [[nodiscard]] auto first_that_counts(std::int64_t from, std::int64_t& used) const noexcept
      -> entry;
  [[nodiscard]] auto left(policy const& p, std::int64_t now, entry first, std::int64_t used,
                          std::int64_t more) const noexcept -> service;
  [[nodiscard]] auto wait(policy const& p, std::int64_t now, entry first, std::int64_t excess,
                          std::int64_t added_at) const noexcept -> std::int64_t;
  [[nodiscard]] auto encode(std::uint32_t to, std::int64_t passed, std::int64_t units) noexcept
      -> std::uint32_t;
  void take_oldest(entry const& e) noexcept;
  void merge_oldest() noexcept;
  void take_from(std::int64_t admitted_at, std::int64_t units) noexcept;

  // The oldest as numbers; those after it as octets.
  std::int64_t oldest_ = 0;
  std::int64_t oldest_units_ = 0;
  std::int64_t newest_ = 0;
  std::int64_t used_ = 0;  // in all
  std::unique_ptr<std::uint8_t[]> octets_;
  std::uint32_t begin_ = 0;
  std::uint32_t end_ = 0;
  std::uint32_t capacity_ = 0;
  std::uint32_t size_ = 0;  // times that are kept as octets
};

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
