// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "observe/metrics.hpp"
#include "request/request_context.hpp"

#include <tidegate/ratelimit/advertise.hpp>
#include <tidegate/store/quota_table.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// The charges of a request and what became of them, in the order of the limits of its route.
struct quota_outcome {
  std::span<store::charge const> charges;
  std::span<store::charged const> results;
  bool admitted = true;
  bool given_back = false;  ///< with what `count: successful` gives back
};

/// What the RateLimit fields of one response say: our own policies, merged with those of an
/// upstream.
class quota_fields {
 public:
  /// Makes what each policy that is enforced says; `random` spreads what clients do.
  void make(request_context const& context, quota_outcome const& outcome, std::uint64_t random);
  /// Nothing is known of the policies, so that nothing is said.
  void clear() noexcept { count_ = 0; }
  /// One for each policy that is enforced, in the order of the route.
  [[nodiscard]] auto views() const noexcept -> std::span<ratelimit::service_limit_view const> {
    return {views_.data(), count_};
  }

  struct appended_to {
    wire::response_head const* upstream = nullptr;  ///< null for an answer of our own
    int status = 200;
    bool has_resets = true;  ///< false: RateLimit of draft-09 has no `t`
    /// Those of the request where some have other quotas than their policies; else none.
    std::span<store::charge const> overridden{};
  };
  /// Appends RateLimit-Policy and RateLimit, and X-RateLimit-* where they are wanted.
  void append(std::string& out, request_context const& context, appended_to const& response,
              worker_metrics& metrics, std::vector<std::string_view>& lines) const;

  /// Has the memory fetched that `append` reads.
  void prefetch() const noexcept { __builtin_prefetch(views_.data(), 1); }

 private:
  void append_merged(std::string& out, ratelimit::draft version, appended_to const& response,
                     std::span<ratelimit::quota_policy_view const> policies,
                     worker_metrics& metrics, std::vector<std::string_view>& lines) const;

  std::size_t count_ = 0;
  std::string partition_keys_;  // of all limits, one after the other
  std::array<ratelimit::service_limit_view, limits_max> views_;
};

}  // namespace tidegate::gateway
