// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/scim/error.hpp>
#include <tidegate/scim/json.hpp>
#include <tidegate/scim/schema.hpp>

#include <span>
#include <string>
#include <vector>

/// Which attributes of a resource a client gets (RFC 7644, section 3.9; `returned` of RFC 7643, section 7).
namespace tidegate::scim {

/// `attributes` and `excludedAttributes` of a request, resolved. It points into the definition.
class projection {
 public:
  /// Only one of both lists may have names (400 invalidValue otherwise). A name that no schema has is left out of the list: a
  /// client may ask several servers for the same names (section 3.9 says nothing of an error).
  [[nodiscard]] static auto make(std::span<std::string const> attributes,
                                 std::span<std::string const> excluded,
                                 resource_definition const& definition)
      -> result<projection, error>;

  /// Neither list has a name: what is returned by default.
  [[nodiscard]] auto is_default() const noexcept -> bool;

  /// Whether `name`, an attribute of the base schema such as `members` or `groups`, would be in the result
  /// (or a part of it).
  [[nodiscard]] auto wants(std::string_view name) const noexcept -> bool;

  /// What the client gets of `resource`: `schemas` and what is returned always are there, what is never
  /// returned is not. A sub-attribute that is asked for comes in its parent.
  [[nodiscard]] auto apply(json const& resource) const -> json;

 private:
  resource_definition const* definition_ = nullptr;
  std::vector<attribute_path> attributes_;
  std::vector<attribute_path> excluded_;
  bool only_ = false;  // `attributes` was given, even if it names nothing known
};

}  // namespace tidegate::scim
