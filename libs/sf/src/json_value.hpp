// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/sf/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::sf::detail {

enum class json_type : std::uint8_t { null, boolean, number, string, array, object };

/// A JSON value that remembers how its numbers were spelled: `1.0` is not `1` here.
struct json_value {
  json_type type = json_type::null;
  std::size_t offset = 0;            ///< where it begins in the text
  std::string text;                  ///< decoded string, spelling of a number, `true` or `false`
  std::vector<json_value> elements;  ///< of an array; of an object the values
  std::vector<std::string> names;    ///< of an object, one for each value

  /// The member called `name`, or null.
  [[nodiscard]] auto member(std::string_view name) const noexcept -> json_value const*;
};

/// Reads one JSON text (RFC 8259), strictly: UTF-8, no repeated names, at most 64 levels.
[[nodiscard]] auto parse_json(std::string_view text) -> result<json_value, json_error>;

template <dialect D>
[[nodiscard]] auto item_from_json(json_value const& json) -> result<basic_item<D>, json_error>;
template <dialect D>
[[nodiscard]] auto list_from_json(json_value const& json) -> result<basic_list<D>, json_error>;
template <dialect D>
[[nodiscard]] auto dictionary_from_json(json_value const& json)
    -> result<basic_dictionary<D>, json_error>;

}  // namespace tidegate::TIDEGATE_ABI::sf::detail
