// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/json/value.hpp>
#include <tidegate/scim/filter.hpp>
#include <tidegate/scim/schema.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What a directory holds: its resource types, and what of them is indexed.
namespace tidegate::TIDEGATE_ABI::scim {

/// How many indexes a resource type may have.
inline constexpr std::size_t type_indexes_max = 64;

/// An attribute whose values a directory finds without reading resources.
struct index_definition {
  std::string name;     ///< as `canonical_name` has it; it names the index on the disk too
  attribute_path path;  ///< of a simple attribute or sub-attribute
  /// Uniqueness `server` or `global`: no two resources of a type have the same value.
  bool unique = false;
  /// A value is likely to be that of one resource, or of few.
  bool identifies = false;
};

/// A resource type with its indexes.
struct model_type {
  resource_definition definition;
  std::vector<index_definition> indexes;
  bool has_members = false;       ///< a Group: `members` are kept beside the resource
  bool has_groups = false;        ///< a User: `groups` come from where it is a member
  bool has_request_only = false;  ///< some attribute is returned only on request

  /// The number of the index of what `path` means: of a complex attribute, its sub-attribute
  /// `value`. Nothing when there is none, or when it is never returned: it would tell what
  /// no client may know.
  [[nodiscard]] auto find_index(attribute_path const& path) const noexcept
      -> std::optional<std::size_t>;
};

/// What is wrong with a model: which index or which type, and why.
struct model_error {
  std::string subject;
  std::string text;
  auto operator==(model_error const&) const -> bool = default;
};

/// All resource types of a directory. Filters and paths point into it: it is not changed. Moving it
/// is fine.
class model {
 public:
  model(model const&) = delete;
  auto operator=(model const&) -> model& = delete;
  model(model&&) noexcept = default;
  auto operator=(model&&) noexcept -> model& = default;
  ~model() = default;

  /// User and Group with the extension for enterprises, and what is given. A schema or type with
  /// the id of a built-in one takes its place. `indexes` are paths; one without a type is of every
  /// type that has the attribute, `Type:path` of one. userName, externalId, emails.value,
  /// displayName, id, meta.lastModified and what is unique are always indexed, where a type has
  /// them. `members` of a Group and `groups` of a User are found by who is a member and have no
  /// index of their own; to ask for one is not an error.
  [[nodiscard]] static auto make(std::span<schema const> schemas,
                                 std::span<resource_type const> types,
                                 std::span<std::string const> indexes)
      -> result<model, model_error>;

  /// The resource types, and the schemas of all of them.
  [[nodiscard]] auto types() const noexcept -> std::span<model_type const> { return types_; }
  [[nodiscard]] auto schemas() const noexcept -> std::span<schema const> { return schemas_; }

  /// The type of that name in any case, or exactly at that endpoint (`/Users`), or nothing.
  [[nodiscard]] auto find(std::string_view name) const noexcept -> model_type const*;
  [[nodiscard]] auto at(std::string_view endpoint) const noexcept -> model_type const*;

 private:
  model() = default;
  std::vector<model_type> types_;
  std::vector<schema> schemas_;
};

}  // namespace tidegate::TIDEGATE_ABI::scim
