// SPDX-License-Identifier: Apache-2.0
//
// Answers of a SCIM server as rules look at them: pages of lists, and what its configuration says.
#pragma once

#include <tidegate/version.hpp>

#include "recording.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::lint {

[[nodiscard]] auto is_scim(probe purpose) -> bool;

/// A page of a list that was answered with 200 and an object.
struct page {
  seen const* by = nullptr;
  std::vector<std::string_view> ids;
  std::size_t resources = 0;
  std::int64_t const* total = nullptr;
  json::value const* next = nullptr;
  json::value const* previous = nullptr;
};

[[nodiscard]] auto page_of(recording const& what, probe purpose) -> std::optional<page>;
[[nodiscard]] auto pages_of(recording const& what) -> std::vector<page>;

/// The member `pagination` of ServiceProviderConfig; null where there is none.
[[nodiscard]] auto pagination_of(recording const& what) -> json::object const*;

/// The boolean of that name; nothing where there is none.
[[nodiscard]] auto says(json::object const* object, std::string_view name) -> std::optional<bool>;

/// Cursors are there: the server says so, or gives one.
[[nodiscard]] auto has_cursors(recording const& what) -> bool;

}  // namespace tidegate::TIDEGATE_ABI::lint
