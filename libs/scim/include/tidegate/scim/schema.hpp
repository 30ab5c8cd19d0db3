// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/json/value.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Schemas and resource types (RFC 7643, sections 6 and 7).
namespace tidegate::TIDEGATE_ABI::scim {

/// The URNs of the schemas that RFC 7643 defines.
inline constexpr std::string_view schema_schema = "urn:ietf:params:scim:schemas:core:2.0:Schema";
inline constexpr std::string_view resource_type_schema =
    "urn:ietf:params:scim:schemas:core:2.0:ResourceType";
inline constexpr std::string_view user_schema = "urn:ietf:params:scim:schemas:core:2.0:User";
inline constexpr std::string_view group_schema = "urn:ietf:params:scim:schemas:core:2.0:Group";
inline constexpr std::string_view enterprise_user_schema =
    "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

/// The data types of section 2.3.
enum class attribute_type : std::uint8_t {
  string,
  boolean,
  decimal,
  integer,
  date_time,
  binary,
  reference,
  complex,
};

/// The characteristics of section 7 by their names there.
enum class attribute_mutability : std::uint8_t { read_only, read_write, immutable, write_only };
enum class attribute_returned : std::uint8_t { always, never, by_default, request };
enum class attribute_uniqueness : std::uint8_t { none, server, global };

/// An attribute and its characteristics (section 7); what is not said has the default of section
/// 2.2.
struct attribute {
  std::string name;
  attribute_type type = attribute_type::string;
  std::string description;
  bool multi_valued = false;
  bool required = false;
  bool case_exact = false;
  attribute_mutability mutability = attribute_mutability::read_write;
  attribute_returned returned = attribute_returned::by_default;
  attribute_uniqueness uniqueness = attribute_uniqueness::none;
  std::vector<std::string> canonical_values;
  std::vector<std::string> reference_types;
  std::vector<attribute> sub_attributes;  ///< of a complex one; none of them is complex itself

  /// The sub-attribute of that name in any case, or nothing.
  [[nodiscard]] auto find(std::string_view sub_name) const noexcept -> attribute const*;

  auto operator==(attribute const&) const -> bool = default;
};

/// The one of `attributes` that has that name in any case, or nothing.
[[nodiscard]] auto find_by_name(std::span<attribute const> attributes,
                                std::string_view name) noexcept -> attribute const*;

/// A schema: `id` is its URN.
struct schema {
  std::string id;
  std::string name;
  std::string description;
  std::vector<attribute> attributes;

  /// The attribute of that name in any case, or nothing.
  [[nodiscard]] auto find(std::string_view attribute_name) const noexcept -> attribute const*;

  auto operator==(schema const&) const -> bool = default;
};

/// An extension that resources of a type may have.
struct schema_extension {
  std::string schema;
  bool required = false;
  auto operator==(schema_extension const&) const -> bool = default;
};

/// A kind of resource and where it is found (section 6). `schema` is the URN of its base schema.
struct resource_type {
  std::string id;
  std::string name;
  std::string description;
  std::string endpoint;
  std::string schema;
  std::vector<schema_extension> schema_extensions;
  auto operator==(resource_type const&) const -> bool = default;
};

/// What is wrong with the JSON of a schema or resource type.
enum class schema_fault : std::uint8_t {
  object_expected,
  array_expected,
  string_expected,
  boolean_expected,
  missing,         ///< a required member is not there, or is empty
  unknown_value,   ///< not one of the words that the RFC knows
  invalid_name,    ///< not an ATTRNAME (section 2.1)
  invalid_uri,     ///< not the URN of a schema, or no endpoint that begins with "/"
  name_twice,      ///< two attributes, sub-attributes or extensions have the same name
  nested_complex,  ///< a complex sub-attribute
  not_complex,     ///< sub-attributes where the type is not complex
  too_many,        ///< more attributes than are allowed
  unknown_schema,  ///< a resource type names a schema that is not there
};

/// Why, and of which member: `attributes[2].subAttributes[0].type`.
struct schema_error {
  schema_fault fault{};
  std::string path;
  auto operator==(schema_error const&) const -> bool = default;
};

/// One line for people.
[[nodiscard]] auto to_string(schema_error const& error) -> std::string;

/// How many attributes a schema may have, and an attribute sub-attributes.
inline constexpr std::size_t schema_attributes_max = 512;

/// Reads a schema. Members that the RFC does not know are ignored.
[[nodiscard]] auto read_schema(json::value const& value) -> result<schema, schema_error>;

/// Reads a resource type. Members that the RFC does not know are ignored.
[[nodiscard]] auto read_resource_type(json::value const& value)
    -> result<resource_type, schema_error>;

/// As `/Schemas` and `/ResourceTypes` show them, without `meta`. Reading gives the same again.
[[nodiscard]] auto to_json(schema const& value) -> json::value;
[[nodiscard]] auto to_json(resource_type const& value) -> json::value;

/// User, Group and EnterpriseUser (sections 4 and 8.7.1), and the resource types of Users and
/// Groups.
[[nodiscard]] auto builtin_schemas() -> std::span<schema const>;
[[nodiscard]] auto builtin_resource_types() -> std::span<resource_type const>;

/// `schemas`, `id`, `externalId` and `meta`, which every resource has (sections 3 and 3.1).
[[nodiscard]] auto common_attributes() -> std::span<attribute const>;

/// A name in a resource that the schemas know: an attribute, a sub-attribute, or a whole extension.
///
/// It points into the `resource_definition` that resolved it.
struct attribute_path {
  schema const* extension = nullptr;  ///< whose attribute it is; nothing for the base schema
  attribute const* parent = nullptr;  ///< nothing when the extension as a whole is meant
  attribute const* sub = nullptr;     ///< the sub-attribute of `parent` that is meant

  /// What is meant: `sub`, or else `parent`.
  [[nodiscard]] auto leaf() const noexcept -> attribute const* {
    return sub != nullptr ? sub : parent;
  }
  auto operator==(attribute_path const&) const -> bool = default;
};

/// Why a path could not be resolved, and at which byte of it.
enum class path_fault : std::uint8_t {
  malformed,  ///< not `[URI ":"] ATTRNAME ["." ATTRNAME]`
  unknown_schema,
  unknown_attribute,
  unknown_sub_attribute,
};

/// Why, and where.
struct path_error {
  path_fault fault{};
  std::size_t offset{};
  auto operator==(path_error const&) const -> bool = default;
};

/// All that resources of one type may have: the common attributes, the base schema and the
/// extensions.
///
/// Paths and filters point into it: it is not changed and outlives them. Moving it is fine, a copy
/// is another one.
class resource_definition {
 public:
  /// Takes copies of what it needs. A schema that lists common attributes itself does not change
  /// them (section 3.1).
  [[nodiscard]] static auto make(resource_type type, std::span<schema const> schemas)
      -> result<resource_definition, schema_error>;

  /// The resource type it was made of.
  [[nodiscard]] auto type() const noexcept -> resource_type const& { return type_; }

  /// The common attributes and those of the base schema.
  [[nodiscard]] auto base() const noexcept -> schema const& { return base_; }

  /// In the order of the resource type.
  [[nodiscard]] auto extensions() const noexcept -> std::span<schema const> { return extensions_; }

  /// The extension of that URN in any case, or nothing.
  [[nodiscard]] auto find_extension(std::string_view urn) const noexcept -> schema const*;

  /// Resolves `attribute`, `attribute.sub`, either of them after the URN of its schema and a colon,
  /// or the URN of an extension alone (RFC 7644, section 3.10). Case makes no difference. A name
  /// without a URN that the base schema lacks means the attribute of the one extension that has it;
  /// where several do, none is meant.
  [[nodiscard]] auto resolve(std::string_view path) const -> result<attribute_path, path_error>;

 private:
  resource_definition() = default;

  resource_type type_;
  schema base_;
  std::vector<schema> extensions_;
};

/// Users with the enterprise extension, and Groups, as the RFC defines them (`builtin_schemas`).
/// Made at the first call, and there until the program ends.
[[nodiscard]] auto user_definition() -> resource_definition const&;
[[nodiscard]] auto group_definition() -> resource_definition const&;

/// The one spelling of what `path` means, in lower case, with the URN of an extension.
[[nodiscard]] auto canonical_name(attribute_path const& path) -> std::string;

/// The same as the schemas spell it, for people.
[[nodiscard]] auto spelled_name(attribute_path const& path) -> std::string;

/// Whether `name` is an ATTRNAME of section 2.1, or `$ref`, which the RFC itself uses beside it.
[[nodiscard]] auto is_attribute_name(std::string_view name) noexcept -> bool;

}  // namespace tidegate::TIDEGATE_ABI::scim
