// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/scim/error.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Lists of resources (RFC 7644, section 3.4.2; RFC 9865, section 2).
namespace tidegate::TIDEGATE_ABI::scim {

/// The schema of lists.
inline constexpr std::string_view list_response_schema =
    "urn:ietf:params:scim:api:messages:2.0:ListResponse";

/// What a ListResponse says besides its resources.
struct list_head {
  std::optional<std::uint64_t> total_results{};
  std::optional<std::uint64_t> start_index{};  ///< of the index method only
  std::string next_cursor{};                   ///< empty: there is none
  std::string previous_cursor{};
  auto operator==(list_head const&) const -> bool = default;
};

/// Appends a ListResponse; `resources` are JSON texts, and `itemsPerPage` is how many there are.
void append_list_response(std::string& out, list_head const& head,
                          std::span<std::string_view const> resources);

/// Appends a ListResponse up to where its resources begin, of which there are `items`: texts with a
/// comma between, and `]}`, follow.
void append_list_begin(std::string& out, list_head const& head, std::size_t items);

/// A ListResponse as it was read.
struct list_response {
  list_head head;
  std::optional<std::uint64_t> items_per_page;
  json::array resources;
};

/// Reads a ListResponse of any server. Members that are null are the same as none, and an empty
/// cursor is none: to follow it would begin again.
[[nodiscard]] auto parse_list_response(std::string_view body, json::limits const& limits = {})
    -> result<list_response, error>;

}  // namespace tidegate::TIDEGATE_ABI::scim
