// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tidegate::TIDEGATE_ABI::sf {

/// Which specification a field is read and written by.
enum class dialect : std::uint8_t {
  rfc9651,  ///< RFC 9651: the current one, with Date and Display String
  rfc8941,  ///< RFC 8941: without those two
  draft11,  ///< draft-ietf-httpbis-header-structure-11
};

/// What a field is defined to be; its specification says which.
enum class field_type : std::uint8_t { item, list, dictionary };

/// A dialect as a type, so that a generic lambda can receive it as a constant.
template <dialect D>
using dialect_constant = std::integral_constant<dialect, D>;

/// Calls `f` with the `dialect_constant` that stands for `d`.
///
/// Every type and function of this library takes the dialect as a template argument, so that the
/// choice costs nothing inside; this is the one place where a choice made at run time turns into
/// one.
template <class F>
constexpr auto with_dialect(dialect d, F&& f) -> decltype(auto) {
  switch (d) {
    case dialect::rfc8941: return std::forward<F>(f)(dialect_constant<dialect::rfc8941>{});
    case dialect::draft11: return std::forward<F>(f)(dialect_constant<dialect::draft11>{});
    case dialect::rfc9651: break;
  }
  return std::forward<F>(f)(dialect_constant<dialect::rfc9651>{});
}

/// `rfc9651`, `rfc8941`, `draft11`.
[[nodiscard]] constexpr auto name_of(dialect d) noexcept -> std::string_view {
  switch (d) {
    case dialect::rfc8941: return "rfc8941";
    case dialect::draft11: return "draft11";
    case dialect::rfc9651: break;
  }
  return "rfc9651";
}

/// The dialect of that name, or nothing.
[[nodiscard]] constexpr auto dialect_named(std::string_view name) noexcept
    -> std::optional<dialect> {
  for (auto d : {dialect::rfc9651, dialect::rfc8941, dialect::draft11}) {
    if (name == name_of(d)) {
      return d;
    }
  }
  return std::nullopt;
}

/// `item`, `list`, `dictionary`.
[[nodiscard]] constexpr auto name_of(field_type t) noexcept -> std::string_view {
  switch (t) {
    case field_type::list: return "list";
    case field_type::dictionary: return "dictionary";
    case field_type::item: break;
  }
  return "item";
}

/// The type of that name, or nothing.
[[nodiscard]] constexpr auto field_type_named(std::string_view name) noexcept
    -> std::optional<field_type> {
  for (auto t : {field_type::item, field_type::list, field_type::dictionary}) {
    if (name == name_of(t)) {
      return t;
    }
  }
  return std::nullopt;
}

}  // namespace tidegate::TIDEGATE_ABI::sf
