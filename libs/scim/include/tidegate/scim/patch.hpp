// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/json/value.hpp>
#include <tidegate/scim/error.hpp>
#include <tidegate/scim/filter.hpp>
#include <tidegate/scim/resource.hpp>
#include <tidegate/scim/schema.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

/// PATCH (RFC 7644, section 3.5.2), with the forms that deployed clients send.
namespace tidegate::TIDEGATE_ABI::scim {

/// The schema of PATCH.
inline constexpr std::string_view patch_op_schema = "urn:ietf:params:scim:api:messages:2.0:PatchOp";

/// What an operation of PATCH does.
enum class patch_kind : std::uint8_t { add, remove, replace };

/// One operation, its path resolved against the definition that it points into.
struct patch_operation {
  patch_kind kind{};
  patch_path path;
  json::value value;  ///< null when there is none
};

/// How many operations a PATCH may have.
inline constexpr std::size_t patch_operations_max = 1000;

/// How much a PATCH may do, roughly in octets of values that are compared with filters and with
/// each other: ten thousand values are compared with a hundred others. It takes less than a second.
inline constexpr std::size_t patch_work_max = std::size_t{1} << 27;

/// Reads the body of a PATCH. `op` and the names of members are in any case. An operation without a
/// path becomes one with a path for each member of its value, whose names are paths: `title`,
/// `name.givenName`, `urn:…:User:department`, `emails[type eq "work"].value`; what is readOnly is
/// passed over. So is the value divided of an operation on an extension as a whole, where `schemas`
/// says nothing new.
///
/// A list of one is its element where a single value is expected. A plain value for a complex
/// attribute is its `value`; an empty text there is null, but for `remove`.
///
/// What the resource type lacks is ignored in values with `unknown_attributes::ignore`, and told to
/// `ignored`: names without a path, sub-attributes, and URNs in `schemas`. In a path it is always
/// an error, and so it is in a name that is a path with a filter.
///
/// Errors: invalidSyntax, invalidPath, invalidFilter, invalidValue (the value is not an object of
/// attributes where it has to be one), noTarget (a remove without a path); 413 when there are too
/// many operations.
[[nodiscard]] auto parse_patch(json::value const& body, resource_definition const& definition,
                               unknown_attributes unknown = unknown_attributes::refuse,
                               ignored_names* ignored = nullptr)
    -> result<std::vector<patch_operation>, error>;

/// Applies all operations in turn to `resource`, as it is kept, or none: returns what it becomes,
/// judged by its schemas as `read_resource` does; what is readOnly (`id`, `meta`) stays as it was.
/// When nothing changes, the result has the same text.
///
/// - `add` and `replace` of a single complex attribute change the sub-attributes that are given. A
///   plain value for a complex attribute is its `value`, and then all of it.
/// - `add` to several values appends those that are not there yet. `add` with a filter that selects
///   no value makes one of what the filter says with `eq`.
/// - `replace` with a filter replaces each value that it selects. Without an attribute there it is
///   an `add`.
/// - A single value for a multi-valued attribute is an array of one. Null is not a value: `replace`
///   takes away what was there, `add` does nothing.
/// - `remove` of a multi-valued attribute with a value takes away the values that have all that is
///   given.
/// - A value that becomes the primary one takes that from the others.
///
/// Errors: noTarget, mutability (what is readOnly, what is immutable and has a value, removing what
/// is required), invalidValue, invalidSyntax (a sub-attribute that no schema has), tooMany (beyond
/// `patch_work_max`).
[[nodiscard]] auto apply_patch(json::value const& resource,
                               std::vector<patch_operation> const& operations,
                               resource_definition const& definition) -> result<json::value, error>;

enum class member_action : std::uint8_t {
  add,     ///< these
  remove,  ///< these, by their `value`
  remove_all,
  replace_all,      ///< by these
  remove_matching,  ///< those that match `value_filter`
};

/// What a PATCH does to the members of a group, which are kept apart from it, in order.
struct member_change {
  member_action action{};
  std::vector<json::value> members;  ///< objects with `value` and perhaps `display`, `type`, `$ref`
  std::optional<filter> value_filter;
};

/// The operations of a PATCH of a group, apart: those on `members`, and the others in their order.
/// Path-less operations with `members` in their value are divided. A `members[value eq "x"]` to be
/// removed becomes a `remove` by value. What cannot be done to members (a change of a
/// sub-attribute) is an error with `mutability`.
struct group_patch {
  std::vector<patch_operation> rest;
  std::vector<member_change> members;
};
/// Divides operations so.
[[nodiscard]] auto split_members(std::vector<patch_operation> operations,
                                 resource_definition const& definition)
    -> result<group_patch, error>;

}  // namespace tidegate::TIDEGATE_ABI::scim
