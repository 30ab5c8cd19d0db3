// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/sf/values.hpp>

#include <cstddef>
#include <string>
#include <string_view>

/// Values as JSON, in the form of the public test suite of Structured Fields: for tools and tests.
///
/// An item is `[bare, params]`, an inner list `[[items], params]`, a list an array of members, a
/// dictionary `[[key, member]…]`, params `[[key, bare]…]`. Integers are numbers without a point,
/// decimals with one, strings and booleans native; the rest are `{"__type": …, "value": …}` with
/// `token`, `binary` (base32), `date` or `displaystring`. In draft11 a parameter without value is
/// null.
namespace tidegate::TIDEGATE_ABI::sf {

/// The value as JSON.
template <dialect D>
[[nodiscard]] auto item_to_json(basic_item<D> const& value) -> std::string;
template <dialect D>
[[nodiscard]] auto list_to_json(basic_list<D> const& value) -> std::string;
template <dialect D>
[[nodiscard]] auto dictionary_to_json(basic_dictionary<D> const& value) -> std::string;

/// What is wrong with the JSON text, or with the value it describes, and where.
struct json_error {
  std::string message;
  std::size_t offset{};
  auto operator==(json_error const&) const -> bool = default;
};

/// Reads back what `item_to_json` writes. A decimal is rounded to three places, halves to even, as
/// RFC 9651, section 4.1.5, asks for.
template <dialect D = dialect::rfc9651>
[[nodiscard]] auto item_from_json(std::string_view json) -> result<basic_item<D>, json_error>;
template <dialect D = dialect::rfc9651>
[[nodiscard]] auto list_from_json(std::string_view json) -> result<basic_list<D>, json_error>;
template <dialect D = dialect::rfc9651>
[[nodiscard]] auto dictionary_from_json(std::string_view json)
    -> result<basic_dictionary<D>, json_error>;

#define TIDEGATE_SF_JSON(D)                                                                    \
  extern template auto item_to_json<D>(basic_item<D> const&)->std::string;                     \
  extern template auto list_to_json<D>(basic_list<D> const&)->std::string;                     \
  extern template auto dictionary_to_json<D>(basic_dictionary<D> const&)->std::string;         \
  extern template auto item_from_json<D>(std::string_view)->result<basic_item<D>, json_error>; \
  extern template auto list_from_json<D>(std::string_view)->result<basic_list<D>, json_error>; \
  extern template auto dictionary_from_json<D>(std::string_view)                               \
      ->result<basic_dictionary<D>, json_error>;
TIDEGATE_SF_JSON(dialect::rfc9651)
TIDEGATE_SF_JSON(dialect::rfc8941)
TIDEGATE_SF_JSON(dialect::draft11)
#undef TIDEGATE_SF_JSON

}  // namespace tidegate::TIDEGATE_ABI::sf
