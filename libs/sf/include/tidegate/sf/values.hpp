// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/sf/bare_item.hpp>
#include <tidegate/sf/dialect.hpp>
#include <tidegate/sf/ordered_map.hpp>
#include <tidegate/sf/text.hpp>

#include <concepts>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

/// The owning tree. Its types hold what their dialect can write and nothing else, so serialising a
/// value that was made never fails.
namespace tidegate::TIDEGATE_ABI::sf {

/// The value of a parameter. In draft11 it may be missing, which is not the same as true.
template <dialect D>
using basic_parameter_value =
    std::conditional_t<D == dialect::draft11, std::optional<basic_bare_item<D>>,
                       basic_bare_item<D>>;
template <dialect D>
using basic_parameters = ordered_map<basic_key<D>, basic_parameter_value<D>>;

/// What stands in for parameters where draft11 has none: always empty.
template <dialect D>
class no_parameters {
 public:
  /// What parameters have.
  using entry = typename basic_parameters<D>::entry;
  [[nodiscard]] static constexpr auto size() noexcept -> std::size_t { return 0; }
  [[nodiscard]] static constexpr auto empty() noexcept -> bool { return true; }
  [[nodiscard]] static constexpr auto begin() noexcept -> entry const* { return nullptr; }
  [[nodiscard]] static constexpr auto end() noexcept -> entry const* { return nullptr; }
  auto operator==(no_parameters const&) const -> bool = default;
};

/// A bare item with its parameters. What a bare item is made of makes an item without parameters.
template <dialect D, class Parameters>
struct item_with {
  item_with() = default;
  template <std::convertible_to<basic_bare_item<D>> T>
  item_with(T&& from, Parameters with = {})  // NOLINT(google-explicit-constructor)
      : value(std::forward<T>(from)), parameters(std::move(with)) {}

  basic_bare_item<D> value;
  [[no_unique_address]] Parameters parameters{};
  auto operator==(item_with const&) const -> bool = default;
};

/// The parameters of an Item and of a Dictionary's member: none in draft11.
template <dialect D>
using basic_item_parameters =
    std::conditional_t<D == dialect::draft11, no_parameters<D>, basic_parameters<D>>;

/// An Item (RFC 9651, section 3.3).
template <dialect D>
using basic_item = item_with<D, basic_item_parameters<D>>;

/// An array of items, with parameters of its own.
template <dialect D, class Parameters>
struct inner_list_with {
  std::vector<basic_item<D>> items;
  [[no_unique_address]] Parameters parameters{};
  auto operator==(inner_list_with const&) const -> bool = default;
};

/// An Inner List (RFC 9651, section 3.1.1).
template <dialect D>
using basic_inner_list = inner_list_with<D, basic_item_parameters<D>>;

/// A member of a Dictionary: an Item or an Inner List.
template <dialect D>
using basic_dictionary_member = std::variant<basic_item<D>, basic_inner_list<D>>;
/// A member of a List: the same but that it has parameters in every dialect.
template <dialect D>
using basic_list_member =
    std::variant<item_with<D, basic_parameters<D>>, inner_list_with<D, basic_parameters<D>>>;

/// Lists and Dictionaries (RFC 9651, sections 3.1 and 3.2).
template <dialect D>
using basic_list = std::vector<basic_list_member<D>>;
template <dialect D>
using basic_dictionary = ordered_map<basic_key<D>, basic_dictionary_member<D>>;

/// The values of RFC 9651.
using parameters = basic_parameters<dialect::rfc9651>;
using item = basic_item<dialect::rfc9651>;
using inner_list = basic_inner_list<dialect::rfc9651>;
using list_member = basic_list_member<dialect::rfc9651>;
using list = basic_list<dialect::rfc9651>;
using dictionary_member = basic_dictionary_member<dialect::rfc9651>;
using dictionary = basic_dictionary<dialect::rfc9651>;

}  // namespace tidegate::TIDEGATE_ABI::sf
