// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/json/value.hpp>
#include <tidegate/scim/cursor.hpp>
#include <tidegate/scim/model.hpp>

#include <cstddef>
#include <string>
#include <vector>

/// Values as octets that compare as the values do.
namespace tidegate::TIDEGATE_ABI::scim {

/// The key of one value of `a`: 0x01 and the value. Text that is not caseExact is folded and
/// composed as `case_fold` does it, so that it sorts and is found in any case; numbers, booleans
/// and moments are in order. What is equal for a filter has one key. It is cut at
/// `sort_key_octets_max`: two that are as long as that may stand for different values. What is null
/// or not of the type of `a` has `missing_key`.
[[nodiscard]] auto index_key(attribute const& a, json::value const& value) -> std::string;

/// The key of what a filter compares `a` with, as `index_key` makes it of the same value.
[[nodiscard]] auto index_key(attribute const& a, filter_value const& value) -> std::string;

/// Behind every value: in an ascending order what has no value comes last (RFC 7644, section
/// 3.4.2.3).
inline constexpr std::string_view missing_key = "\x02";

/// A value in an index.
struct index_entry {
  std::size_t index = 0;  ///< of `model_type::indexes`
  std::string key;
  /// By this one the resource is sorted: the only value, the primary one, or the first. Every
  /// resource has exactly one in every index; without a value, it is `missing_key`.
  bool sorts = false;
  auto operator==(index_entry const&) const -> bool = default;
};

/// All entries of a resource, as `read_resource` gives it, in the order of the indexes and then of
/// the keys; no (index, key) twice. `missing_key` comes only alone.
[[nodiscard]] auto index_entries(model_type const& type, json::value const& resource)
    -> std::vector<index_entry>;

}  // namespace tidegate::TIDEGATE_ABI::scim
