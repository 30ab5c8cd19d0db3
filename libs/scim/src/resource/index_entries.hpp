// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/index_key.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::scim {

/// The key of a value of `a`, whose values are strings.
[[nodiscard]] auto index_key(attribute const& a, std::string_view text) -> std::string;

/// Appends the entries of `resource` in the index with that number, which is of what `path` means.
void append_entries(std::vector<index_entry>& entries, std::size_t index,
                    attribute_path const& path, json::value const& resource);

}  // namespace tidegate::TIDEGATE_ABI::scim
