// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/index_key.hpp>
#include <tidegate/scim/model.hpp>

#include "connection.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The tables of a directory and what is true of them.
///
/// - A part is what a tenant has of one resource type. A rid is the number of its part, and then a number that counts up
///   in the part and is never given again: a part lies together in `resource`, in the order of creation.
/// - `entry` has a row for each value in an index. The index of an attribute with several values has a second number, under
///   which every resource stands once, by the value that sorts.
/// - `block` says how many resources there are in each 1,024 rids, to go far without reading them.
/// - `member` lies together by group in the order in which members were added; by `member_of` the groups of a
///   member are found, and whether it is one.
/// - `journal` says how much of `FILE.journal` is in the file.
namespace tidegate::store_sqlite {

inline constexpr int part_shift = 40;
inline constexpr int block_shift = 10;
inline constexpr std::int64_t part_max = (std::int64_t{1} << (63 - part_shift)) - 2;
inline constexpr std::int64_t sequence_max = (std::int64_t{1} << part_shift) - 1;

/// The lowest rid of a part is one more.
[[nodiscard]] constexpr auto rid_base(std::int64_t part) noexcept -> std::int64_t {
  return part << part_shift;
}
[[nodiscard]] constexpr auto part_of(std::int64_t rid) noexcept -> std::int64_t {
  return rid >> part_shift;
}
[[nodiscard]] constexpr auto block_of(std::int64_t rid) noexcept -> std::int64_t {
  return rid >> block_shift;
}

/// How much a tenant has of one type.
struct part_size {
  std::int64_t last_rid = 0;  ///< the highest that was given
  std::int64_t count = 0;
};

/// What a tenant has of one type.
struct directory_part {
  std::int64_t id = 0;
  std::vector<std::int64_t> index_ids;  ///< of the indexes of the type
  /// The same where an attribute has one value. Where it may have several, the one that sorts is here, and the others there.
  std::vector<std::int64_t> sort_ids;
  part_size size;  ///< when it was loaded
};

[[nodiscard]] auto is_multi_valued(scim::index_definition const& index) noexcept -> bool;

/// Makes the tables of a new file, and the indexes of an old one what `model` says.
[[nodiscard]] auto prepare_directory(connection& file, scim::model const& model) -> outcome<void>;

/// What there is of the part with that number.
[[nodiscard]] auto load_part(connection& file, std::int64_t id, part_size size,
                             scim::model_type const& type) -> outcome<directory_part>;

/// Adds one, in the transaction that is open.
[[nodiscard]] auto make_part(connection& file, std::string_view tenant,
                             scim::model_type const& type) -> outcome<directory_part>;

/// A resource as it was stored.
[[nodiscard]] auto parse_stored(connection const& file, std::int64_t rid, std::string_view text)
    -> outcome<scim::json>;

}  // namespace tidegate::store_sqlite
