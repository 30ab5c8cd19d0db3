// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/json/value.hpp>
#include <tidegate/scim/model.hpp>
#include <tidegate/store/directory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

/// The schema of a directory, whatever the database.
///
/// A part is what a tenant has of one resource type. A rid is the number of its part, and then a
/// number that counts up in the part and is never given again: a part lies together in the table
/// `resource`, in the order of creation. The table `block` says how many resources there are in
/// each 1,024 rids, so that a scan can skip many of them without reading them.
namespace tidegate::store_directory {

template <class T>
using outcome = store::directory_outcome<T>;

inline constexpr int part_shift = 40;
inline constexpr int block_shift = 10;
inline constexpr std::int64_t part_max = (std::int64_t{1} << (63 - part_shift)) - 2;
inline constexpr std::int64_t sequence_max = (std::int64_t{1} << part_shift) - 1;

/// The lowest rid of a part is one more.
[[nodiscard]] constexpr auto rid_base(std::int64_t part) noexcept -> std::int64_t {
  return part << part_shift;
}
[[nodiscard]] constexpr auto rid_end(std::int64_t part) noexcept -> std::int64_t {
  return rid_base(part) + sequence_max;
}
[[nodiscard]] constexpr auto part_of(std::int64_t rid) noexcept -> std::int64_t {
  return rid >> part_shift;
}
[[nodiscard]] constexpr auto block_of(std::int64_t rid) noexcept -> std::int64_t {
  return rid >> block_shift;
}
/// The lowest rid of a block.
[[nodiscard]] constexpr auto block_begin(std::int64_t block) noexcept -> std::int64_t {
  return block << block_shift;
}

/// Databases count in signed numbers.
[[nodiscard]] constexpr auto signed_of(std::uint64_t rid) noexcept -> std::int64_t {
  return static_cast<std::int64_t>(rid);
}
[[nodiscard]] constexpr auto unsigned_of(std::int64_t rid) noexcept -> std::uint64_t {
  return static_cast<std::uint64_t>(rid);
}

/// A signed number to which one can be added.
[[nodiscard]] constexpr auto clamped(std::uint64_t number) noexcept -> std::int64_t {
  return static_cast<std::int64_t>(
      std::min<std::uint64_t>(number, std::numeric_limits<std::int64_t>::max() - 1));
}

/// How much a tenant has of one type.
struct part_size {
  std::int64_t last_rid = 0;  ///< the highest that was given
  std::int64_t count = 0;
  auto operator==(part_size const&) const -> bool = default;
};

/// The place of a type in its model.
[[nodiscard]] inline auto type_number(scim::model const& model,
                                      scim::model_type const& type) noexcept -> std::size_t {
  return static_cast<std::size_t>(&type - model.types().data());
}

// ---- indexes ----

[[nodiscard]] auto is_multi_valued(scim::index_definition const& index) noexcept -> bool;

/// One run of entries. An attribute with several values has two: one with its values, and one in
/// which every resource stands once, by the value that sorts.
struct stored_run {
  std::size_t index = 0;  ///< of the indexes of the type
  bool sorts = false;     ///< the second one of an attribute with several values
  auto operator==(stored_run const&) const -> bool = default;
};

/// The runs of a type, in the order of its indexes.
[[nodiscard]] auto stored_runs(scim::model_type const& type) -> std::vector<stored_run>;

/// What the keys of an index depend on: an index with another definition has to be built again.
/// `values` says which values of an attribute with several are in it.
[[nodiscard]] auto key_definition(scim::index_definition const& index, std::string_view values)
    -> std::string;

/// The number of the index of `id`, which every type has.
[[nodiscard]] auto id_index(scim::model_type const& type) noexcept -> std::size_t;

// ---- texts ----

/// A resource as it was stored. An error names `store`: file or server.
[[nodiscard]] auto parse_stored(std::string_view store, std::int64_t rid, std::string_view text)
    -> outcome<json::value>;

/// A group, with the text that was stored, as what a resource is a member of.
[[nodiscard]] auto read_group(std::string_view store, std::int64_t rid, std::string_view id,
                              std::string_view type, std::string_view text)
    -> outcome<store::directory_member>;

}  // namespace tidegate::store_directory
