// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/json/value.hpp>
#include <tidegate/scim/list_request.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace tidegate::TIDEGATE_ABI::client {

/// Which page is to be asked for: enough to continue in another process.
struct scim_position {
  /// Nothing until the first page is there.
  std::optional<scim::pagination_method> method{};
  std::string cursor{};
  std::uint64_t start_index = 1;
  std::optional<std::uint32_t> count{};
  bool by_id = false;       ///< sorted by id, though the query does not say so
  bool descending = false;  ///< the order that is asked for
  bool backward = false;    ///< against that order
  std::string beyond{};     ///< only what comes behind this id
  std::string edge{};  ///< the id of the last resource that was got, in the direction of the walk
  /// How many ids have come in their order; nothing when one did not.
  std::optional<std::uint64_t> ids_in_order = 0;
  std::optional<std::uint64_t> total_results{};
  /// By index, some were deleted on the way: others may have moved to pages that were read before.
  bool shrunk = false;
  auto operator==(scim_position const&) const -> bool = default;
};

/// As one line of JSON, and back. Nothing when it is not one.
[[nodiscard]] auto to_json(scim_position const& position) -> std::string;
[[nodiscard]] auto scim_position_of(json::value const& value) -> std::optional<scim_position>;

}  // namespace tidegate::TIDEGATE_ABI::client
