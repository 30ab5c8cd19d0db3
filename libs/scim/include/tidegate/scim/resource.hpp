// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/json/value.hpp>
#include <tidegate/scim/error.hpp>
#include <tidegate/scim/schema.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Resources as clients send them, judged by their schemas.
namespace tidegate::TIDEGATE_ABI::scim {

/// What is wrong with a resource.
enum class resource_fault : std::uint8_t {
  object_expected,
  schemas_missing,
  unknown_schema,         ///< `schemas` names what is not of this resource type
  base_schema_missing,    ///< `schemas` lacks the base schema of the resource type
  extension_missing,      ///< a required extension is not there
  unknown_attribute,      ///< no schema of the resource type has it
  required_missing,       ///< a required attribute has no value
  wrong_type,             ///< not of the type of the attribute
  array_expected,         ///< the attribute is multi-valued
  single_value_expected,  ///< the attribute is not
  primary_twice,          ///< more than one value is the primary one
  immutable_changed,
};

/// Why, and of which attribute: `emails[0].value`.
struct resource_error {
  resource_fault fault{};
  std::string path;
  auto operator==(resource_error const&) const -> bool = default;
};

/// The scimType of RFC 7644, section 3.12: invalidSyntax, invalidValue or mutability. The status
/// is 400.
[[nodiscard]] auto scim_type_of(resource_fault fault) noexcept -> scim_type;

/// One line for people.
[[nodiscard]] auto to_string(resource_error const& error) -> std::string;

/// What to do with attributes and URNs of schemas that a resource type lacks.
enum class unknown_attributes : std::uint8_t { refuse, ignore };

/// What was ignored, since a resource type lacks it. What has no value is not counted: it says
/// nothing.
struct ignored_names {
  /// How many names are kept of one request.
  static constexpr std::size_t names_max = 8;
  static constexpr std::size_t name_octets_max = 128;

  std::uint64_t attributes = 0;
  std::uint64_t schemas = 0;
  std::vector<std::string> names;  ///< of the first few: `roles.displayName`, printable and cut off

  /// Takes note of a name that no schema has, or of names noted elsewhere.
  void note_attribute(std::string_view owner, std::string_view name);
  void note_schema(std::string_view urn);
  void add(ignored_names const& others);
  auto operator==(ignored_names const&) const -> bool = default;

 private:
  void keep(std::string name);
};

/// Judges a resource that a client sends with POST or PUT and returns it as it is to be kept:
///
/// - names as the schemas spell them, in the order in which they came;
/// - `schemas` first, with the base schema and the extensions that have data;
/// - without attributes that are readOnly, which are ignored (RFC 7644, sections 3.3 and 3.5.1),
///   and without what has no value: null, an empty array, an object without values (RFC 7643,
///   section 2.5);
/// - of values with the same `type` and `value` only the last, in the place of the first (RFC 7643,
///   section 2.4);
/// - an attribute that stands by its name alone beside those of the base schema, and that one
///   extension has and no other, in that extension; what stands there itself wins;
/// - `"true"` and `"False"` for booleans, as some clients write them, are booleans;
/// - a list of one is its element where a single value is expected, an empty list none, and a plain
///   value for a single complex attribute is its `value`, an empty text and `{"value": ""}` none;
/// - with `unknown_attributes::ignore`, without what the resource type lacks, which is told to
///   `ignored`. Null for such an attribute says nothing, and `schemas` inside of an extension
///   nothing new: they are ignored in any case.
[[nodiscard]] auto read_resource(json::value value, resource_definition const& definition,
                                 unknown_attributes unknown = unknown_attributes::refuse,
                                 ignored_names* ignored = nullptr)
    -> result<json::value, resource_error>;

/// Whether a value counts as one for `pr` and for required attributes: not null, not empty, and of
/// arrays and objects, something in them does.
[[nodiscard]] auto is_present(json::value const& value) -> bool;

/// Judges the step from one kept resource to another: an immutable attribute that had a value keeps
/// it.
[[nodiscard]] auto check_immutable(json::value const& before, json::value const& after,
                                   resource_definition const& definition)
    -> result<void, resource_error>;

}  // namespace tidegate::TIDEGATE_ABI::scim
