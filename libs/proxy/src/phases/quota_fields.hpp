// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "observe/metrics.hpp"
#include "request/request_context.hpp"

namespace tidegate::gateway {

/// What the RateLimit fields of one response say: our own policies, merged with those of an
/// upstream.
class quota_fields {
 public:
  /// Makes what each policy that is enforced says, by the charges of the request and what became of
  /// them. `given_back`: with what `count: successful` gives back. `random` spreads what clients
  /// do.
  void make(request_context const& context, std::span<store::charge const> charges,
            std::span<store::charged const> results, bool admitted, bool given_back,
            std::uint64_t random);
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
  void append_unusual(std::string& out, request_context const& context, appended_to const& response,
                      worker_metrics& metrics, std::vector<std::string_view>& lines) const;
  void append_merged(std::string& out, ratelimit::draft version, appended_to const& response,
                     std::span<ratelimit::quota_policy_view const> policies,
                     worker_metrics& metrics, std::vector<std::string_view>& lines) const;

  std::size_t count_ = 0;
  std::string partition_keys_;  // of all limits, one after the other
  std::array<ratelimit::service_limit_view, limits_max> views_;
};

}  // namespace tidegate::gateway
