// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/proxy/control.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// What was counted of one policy since the start.
struct named_policy_sums {
  std::string_view name;
  policy_sums sums;
};

/// The last hour of traffic in a ring of samples, whose memory is taken at once. It has no clock:
/// the caller says when a sample ends.
class traffic_history {
 public:
  static constexpr std::chrono::seconds interval{5};
  static constexpr std::chrono::seconds kept{3600};
  static constexpr std::size_t samples_max = kept / interval;
  /// Policies that have series. Of more, those that come later have none.
  static constexpr std::size_t policies_max = 32;
  /// Shares of requests whose latency is kept, in percent.
  static constexpr std::array<unsigned, 3> latency_shares = {50, 90, 99};
  static constexpr std::uint32_t no_latency = std::numeric_limits<std::uint32_t>::max();

  struct policy_counts {
    std::uint32_t admitted = 0;
    std::uint32_t refused = 0;  ///< blocked for abuse counts, too
    std::uint32_t shadow_refused = 0;
  };
  /// What was counted since the sample before.
  struct sample {
    instant at{};  ///< when it ends
    std::array<std::uint32_t, traffic_sums::response_names.size()> responses{};
    /// Microseconds; `no_latency` where there was no request.
    std::array<std::uint32_t, latency_shares.size()> latency{};
    std::array<std::uint32_t, traffic_sums::key_names.size()> keys{};
    std::uint32_t upstream_failures = 0;
    std::array<policy_counts, policies_max> policies{};  ///< by the index of `policy_name`
  };
  /// So many series there are at most, and so many octets do they take for the whole process.
  static constexpr std::size_t series_max = traffic_sums::response_names.size() +
                                            latency_shares.size() + traffic_sums::key_names.size() +
                                            1 + 3 * policies_max;
  static constexpr std::size_t octets_max = samples_max * sizeof(sample);

  traffic_history() { ring_.reserve(samples_max); }

  /// Ends a sample at `now`, which has what was counted since the call before. The first call
  /// begins the first sample. `policies` are those that there are now: of a policy that is not
  /// among them the series stay until another one needs their place.
  void add(instant now, traffic_sums const& counted, std::span<named_policy_sums const> policies);

  [[nodiscard]] auto size() const noexcept -> std::size_t { return ring_.size(); }
  /// The oldest that is kept is at 0.
  [[nodiscard]] auto at(std::size_t index) const noexcept -> sample const& {
    return ring_[(oldest_ + index) % ring_.size()];
  }
  /// How many samples came before the oldest that is kept.
  [[nodiscard]] auto dropped() const noexcept -> std::uint64_t { return dropped_; }
  /// The index of the first sample that ended after `then`.
  [[nodiscard]] auto first_after(instant then) const noexcept -> std::size_t;
  /// Empty where no policy has this place.
  [[nodiscard]] auto policy_name(std::size_t place) const noexcept -> std::string_view {
    return places_[place].name;
  }

 private:
  struct place {
    std::string name;
    policy_sums last;
  };

  /// The place of each policy, new ones included; none where there is no room.
  [[nodiscard]] auto place_of(named_policy_sums const& policy,
                              std::span<named_policy_sums const> all) -> std::optional<std::size_t>;
  void count_policies(sample& made, std::span<named_policy_sums const> policies);

  std::vector<sample> ring_;
  std::size_t oldest_ = 0;
  std::uint64_t dropped_ = 0;
  std::optional<traffic_sums> last_;
  std::array<place, policies_max> places_;
};

/// The microseconds within which `percent` of the requests were answered that a histogram by
/// `latency_bounds` has; `traffic_history::no_latency` where it has none.
[[nodiscard]] auto latency_within(
    std::array<std::uint64_t, latency_bounds.size() + 1> const& counts, unsigned percent)
    -> std::uint32_t;

}  // namespace tidegate::gateway
