// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/json/value.hpp>
#include <tidegate/scim/error.hpp>
#include <tidegate/scim/schema.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Which attributes of a resource a client gets (RFC 7644, section 3.9; `returned` of RFC 7643,
/// section 7).
namespace tidegate::TIDEGATE_ABI::scim {

/// `attributes` and `excludedAttributes` of a request, resolved. It points into the definition.
///
/// - What is returned `always` is in every result, and what is returned `never` in none.
/// - What is returned on `request` comes when `attributes` names it: itself, or a sub-attribute of
///   it.
/// - What is returned by `default` comes unless `attributes` names others, or `excludedAttributes`
///   names it. To name an extension is to name all that it has.
/// - Sub-attributes follow the same rules within a parent that is returned. When `attributes` names
///   only some of them, the parent comes with these.
class projection {
 public:
  /// Only one of both lists may have names (400 invalidValue otherwise). A name that no schema has
  /// is left out of the list: a client may ask several servers for the same names (section 3.9 says
  /// nothing of an error).
  [[nodiscard]] static auto make(std::span<std::string const> attributes,
                                 std::span<std::string const> excluded,
                                 resource_definition const& definition)
      -> result<projection, error>;

  /// Neither list has a name: what is returned by default.
  [[nodiscard]] auto is_default() const noexcept -> bool;

  /// Whether `name`, an attribute of the base schema such as `members` or `groups`, would be in the
  /// result (or a part of it).
  [[nodiscard]] auto wants(std::string_view name) const noexcept -> bool;

  /// What the client gets of `resource`, in the order of its members. What no schema has is left
  /// out, and so is an object of which nothing is left.
  [[nodiscard]] auto apply(json::value const& resource) const -> json::value;

 private:
  enum class mode : std::uint8_t { by_default, only, all_but };

  projection(resource_definition const& definition, mode m) : definition_(&definition), mode_(m) {}

  [[nodiscard]] auto takes(attribute_path const& path) const noexcept -> bool;
  [[nodiscard]] auto takes_sub(attribute_path const& path) const noexcept -> bool;
  void append_member(json::object& out, json::value const& value, attribute_path const& path) const;
  [[nodiscard]] auto part_of(json::value const& value, attribute_path const& path) const
      -> json::value;

  resource_definition const* definition_;
  mode mode_;
  std::vector<attribute_path> named_;
};

}  // namespace tidegate::TIDEGATE_ABI::scim
