// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>
#include <tidegate/wire/owned_request_head.hpp>

namespace tidegate::gateway {

class exchange;
struct worker_config;

/// The octets of a request that waits for the store of quotas, from its head on.
struct held_request {
  held_request(wire::request_head const& from, std::string_view normal_path)
      : head(from), path(normal_path) {}

  void append(std::string_view bytes, std::uint64_t octets, bool is_last) {
    body.append(bytes);
    content_octets += octets;
    body_is_last = is_last;
  }

  /// What it takes in memory.
  [[nodiscard]] auto octets() const noexcept -> std::size_t {
    auto const& kept = head.head();
    return sizeof *this + kept.target().size() + kept.field_lines().size() + path.size() +
           body.size();
  }

  wire::owned_request_head head;
  std::string path;    ///< normal
  std::string body{};  ///< framed as it came
  std::uint64_t content_octets = 0;
  std::optional<bool> body_is_last{};  ///< nothing: none of it came
};

/// A question to the store of quotas. It outlives its exchange, so that what was spent for a client
/// that has gone is released.
struct quota_question {
  exchange* owner = nullptr;        ///< null when no exchange waits any more
  worker_config* config = nullptr;  ///< whose policies the charges point to
  std::string partitions;           ///< what the charges point into
  std::unique_ptr<std::array<std::optional<ratelimit::policy>, limits_max>> policies;  ///< the same
  std::array<store::shared_charge, limits_max> charges{};
  std::size_t charges_count = 0;
  instant asked_at{};

  /// Gives back what was spent.
  void release(store::quota_store& quotas, store::spent const& spent, instant now) const {
    for (std::size_t i = 0; i < charges_count; ++i) {
      auto const& charge = charges[i];
      if (spent.admitted && spent.results[i].decision.admitted && charge.local.cost != 0) {
        quotas.settle(charge, asked_at, now, -charge.local.cost);
      }
    }
  }
};

}  // namespace tidegate::gateway
