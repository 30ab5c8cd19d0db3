// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/json/value.hpp>
#include <tidegate/scim/date_time.hpp>
#include <tidegate/scim/schema.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// Filters (RFC 7644, section 3.4.2.2) and the paths of PATCH (section 3.5.2).
namespace tidegate::TIDEGATE_ABI::scim {

/// The operators that compare. `pr` is a `filter_kind`.
enum class compare_op : std::uint8_t { eq, ne, co, sw, ew, gt, ge, lt, le };

/// What a filter asks at its top.
enum class filter_kind : std::uint8_t {
  all_of,      ///< `and`: two operands or more
  any_of,      ///< `or`: two operands or more
  negation,    ///< `not`: one operand
  compare,     ///< `path op value`
  present,     ///< `path pr`
  value_path,  ///< `path[filter]`: one operand, asked of each value of `path`
};

/// What an attribute is compared with, in the type of the attribute. Text for an attribute that is
/// not caseExact is folded. A number is an integer whenever it is a whole one that fits.
using filter_value =
    std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, date_time>;

/// A filter as a tree, resolved against the `resource_definition` that it points into.
///
/// In it, `and` of `and` and `or` of `or` are one, a comparison with a complex attribute is one
/// with its sub-attribute `value`, and `a[f].b op v` is `a[f and b op v]`. Inside of a value path,
/// `path.sub` is the sub-attribute that is asked for.
struct filter {
  filter_kind kind{};
  std::vector<filter> operands;
  attribute_path path;
  compare_op op{};
  filter_value value;

  auto operator==(filter const&) const -> bool = default;
};

/// What is wrong with a filter or path.
enum class filter_fault : std::uint8_t {
  too_long,             ///< `offset` is the length that is allowed
  too_deep,             ///< too many brackets in each other
  too_many_terms,       ///< too many comparisons
  expression_expected,  ///< an attribute, `not` or `(`
  malformed_path,
  unknown_schema,
  unknown_attribute,
  unknown_sub_attribute,
  sub_attribute_needed,  ///< the attribute is complex and has no `value`, or an extension is meant
  not_complex,           ///< `[` behind what has no sub-attributes
  nested_value_path,     ///< `[` inside of `[`
  not_filterable,        ///< the attribute is never returned, so no client may guess at it
  operator_expected,
  unknown_operator,
  operator_not_allowed,  ///< not for the type of the attribute
  value_expected,
  invalid_value,  ///< not JSON
  wrong_type,     ///< not a value of the type of the attribute
  round_bracket_expected,
  square_bracket_expected,
  end_expected,
};

/// Why, and at which byte.
struct filter_error {
  filter_fault fault{};
  std::size_t offset{};
  auto operator==(filter_error const&) const -> bool = default;
};

/// One line for people. The scimType is `invalidFilter`, of a path `invalidPath`.
[[nodiscard]] auto to_string(filter_error const& error) -> std::string;

/// How much of it is read.
struct filter_limits {
  std::size_t octets_max = 8192;
  int depth_max = 32;
  std::size_t terms_max = 256;
};

/// Reads a filter. `not` binds closer than `and`, `and` closer than `or`. Names and operators are
/// in any case; more than one space may stand where one must, and spaces may stand around brackets.
/// A boolean may be written as a string, as some clients do. A word without quotes, up to a space
/// or bracket, is a string (`userName sw J`), unless it is `true`, `false`, `null`, an operator, or
/// looks like a number.
///
/// The result owns its text and points into `definition`.
[[nodiscard]] auto parse_filter(std::string_view text, resource_definition const& definition,
                                filter_limits const& limits = {}) -> result<filter, filter_error>;

/// The same for one of several resource types that are asked together: what this one has no
/// attribute for has no value (RFC 7644, section 3.4.2.1).
[[nodiscard]] auto parse_filter_among_types(std::string_view text,
                                            resource_definition const& definition,
                                            filter_limits const& limits = {})
    -> result<filter, filter_error>;

/// Whether it is plain that nothing can match: a resource would need what its type lacks.
[[nodiscard]] auto never_matches(filter const& f) -> bool;

/// One spelling for all filters that have the same tree: names in lower case and without the URN of
/// the base schema, one space, no brackets without need, folded values. It is a filter itself, with
/// the same tree.
[[nodiscard]] auto canonical_text(filter const& f) -> std::string;

/// Whether `resource` is one that the filter asks for.
///
/// - Of several values one has to match.
/// - An attribute without a value has the value null: `ne` matches it, `eq null` too, nothing else
///   does. `eq null` is `not (pr)`, and `ne null` is `pr`.
/// - `pr` asks for a value that is not empty; of a complex attribute, for one in any sub-attribute.
/// - DateTime values are compared as moments, text by code points.
[[nodiscard]] auto matches(filter const& f, json::value const& resource) -> bool;

/// Whether `value`, one of the values of the attribute that `f` was written for in brackets,
/// matches.
[[nodiscard]] auto matches_value(filter const& f, json::value const& value) -> bool;

/// What a PATCH operation is about: `attribute`, `attribute.sub`, `attribute[filter]`,
/// `attribute[filter].sub`, or an extension.
struct patch_path {
  attribute_path path;
  std::optional<filter> value_filter;  ///< for `matches_value`
  std::vector<json::value>
      literals;  ///< of each comparison of `value_filter` in turn, as it was written
  auto operator==(patch_path const&) const -> bool = default;
};

/// Reads the path of a PATCH operation.
[[nodiscard]] auto parse_patch_path(std::string_view text, resource_definition const& definition,
                                    filter_limits const& limits = {})
    -> result<patch_path, filter_error>;

}  // namespace tidegate::TIDEGATE_ABI::scim
