// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/store_redis/resp.hpp>
#include <tidegate/store_redis/server_url.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// How a cluster spreads keys (https://redis.io/docs/reference/cluster-spec/).
namespace tidegate::store_redis {

inline constexpr std::size_t cluster_slots = 16'384;
inline constexpr std::size_t cluster_nodes_max = 1'000;

/// The slot of a key: that of what is between the first { and the next }, where there is something.
[[nodiscard]] auto slot_of(std::string_view key) noexcept -> std::uint16_t;

/// Slots of one master.
struct slot_range {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  server_address master;
  auto operator==(slot_range const&) const -> bool = default;
};

/// Reads the answer to CLUSTER SLOTS that `asked` gave, which stands for a host that is left out.
/// The error is for people.
[[nodiscard]] auto read_cluster_slots(resp_value const& answer, server_address const& asked)
    -> result<std::vector<slot_range>, std::string>;

/// Where to go instead: `MOVED 3999 127.0.0.1:6381`, and the same with ASK.
struct redirection {
  bool is_moved = false;
  std::uint16_t slot = 0;
  server_address to;
  auto operator==(redirection const&) const -> bool = default;
};
/// Nothing when the error is another, or makes no sense.
[[nodiscard]] auto read_redirection(resp_value const& error, server_address const& asked)
    -> std::optional<redirection>;

}  // namespace tidegate::store_redis
