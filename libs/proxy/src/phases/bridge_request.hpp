// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace tidegate::gateway {

/// What a request on a route with `bridge: scim-cursor` asks for that has to be changed.
enum class bridge_subject : std::uint8_t {
  list,
  list_or_resource,  ///< the answer tells: nothing in the request does
  search,            ///< POST to .search
  abilities,         ///< ServiceProviderConfig
};

/// Nothing for what goes through as it is.
[[nodiscard]] auto bridge_subject_of(request_context const& context)
    -> std::optional<bridge_subject>;

/// Takes framing and the empty line out of the head of a search, whose content comes later.
void open_head(std::string& head);

}  // namespace tidegate::gateway
