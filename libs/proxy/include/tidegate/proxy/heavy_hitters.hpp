// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/ratelimit/limiter.hpp>

#include <mutex>

namespace tidegate::gateway {

/// The partitions of one policy that one thread sees most of, for people to look at. An estimate.
///
/// One thread counts, any other looks. Memory is bounded: when there are as many as may be, a new
/// partition takes the place of the one that came least (Metwally and others, "Efficient
/// computation of frequent and top-k elements"), so that a partition that has more than a share of
/// 1/`partitions_max` of all requests is in it. Long texts take the places of several. Time is
/// bounded: of more than about `samples_per_second` requests only every so many-th is looked at.
class heavy_hitters {
 public:
  static constexpr std::size_t partitions_max = 64;
  /// All texts together. No head of a request has so many, so that no client hides behind a long
  /// text.
  static constexpr std::size_t text_octets_max = std::size_t{256} << 10;
  static constexpr std::uint32_t samples_per_second = 1000;
  /// After such a time the next one is looked at in any case.
  static constexpr std::chrono::milliseconds pause{100};
  /// What came before is forgotten.
  static constexpr std::chrono::seconds window{10};

  struct partition {
    std::string text;                   ///< as `partition_rule::append_partition` made it
    double requests = 0;                ///< in the last `window`, about
    double refused = 0;                 ///< of them
    std::int64_t remaining = 0;         ///< when it was last looked at
    std::chrono::nanoseconds reset{0};  ///< from now on; 0 when it has passed
  };

  /// A decision on a request of `text` at `now`, which never steps back.
  void count(std::string_view text, ratelimit::verdict const& decided, instant now) {
    if (++skipped_ >= stride_ || now - sampled_ >= pause) {
      sample(text, decided, now);
    }
  }

  /// An operator has changed what is left of a partition: that is shown until it is looked at
  /// again. By any thread.
  void correct(std::string_view text, ratelimit::service const& left, instant now);

  /// All that were seen within the last `window`, in no order.
  [[nodiscard]] auto look(instant now) const -> std::vector<partition>;

 private:
  struct slot {
    std::string text;
    std::uint64_t tag = 0;
    std::uint64_t current = 0;    // in this window
    std::uint64_t inherited = 0;  // of `current`: from those whose place it took
    std::uint64_t before = 0;     // in the one before
    std::uint64_t refused = 0;
    std::uint64_t refused_before = 0;
    std::int64_t remaining = 0;
    instant reset{};
  };

  void sample(std::string_view text, ratelimit::verdict const& decided, instant now);
  void pass_time(instant now);
  [[nodiscard]] auto place_of(std::string_view text) -> slot&;

  // Of the thread that counts.
  std::uint32_t skipped_ = 0;
  std::uint32_t stride_ = 1;
  std::uint32_t samples_ = 0;
  instant sampled_{};  // when it last looked
  instant second_{};

  mutable std::mutex mutex_;  // of what follows
  std::vector<slot> slots_;
  std::size_t text_octets_ = 0;  // of all slots
  instant begin_{};              // of this window
};

}  // namespace tidegate::gateway
