// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/json.hpp>
#include <tidegate/scim/model.hpp>

#include "connection.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

/// The tables of a directory and what is true of them.
///
/// - A part is what a tenant has of one resource type. A rid is the number of its part, and then a number that counts up
///   in the part and is never given again: a part lies together in `resource`, in the order of creation.
/// - Whoever writes for a tenant holds an advisory lock of that tenant from its first statement to its commit. So rids
///   become visible in their order: no walk passes a place where somebody turns up later with a lower rid. What was looked
///   at stays as it is until the commit, unique values too.
/// - `entry` has a row for each value in an index. `index_id` is the part and then the slot of the index, which
///   `directory_index` says. The index of an attribute with several values has a second slot, under which every resource stands
///   once, by the value that sorts. Slots from 128 are those of indexes that are unique: the server refuses a key that
///   another resource has there, and the program has looked for it before.
/// - `directory_state.generation` grows when indexes change; every transaction looks whether it is as it knows it. Who writes
///   shares a lock that who changes indexes has alone.
/// - `directory_writer` has a row for each thread that writes, with the number of its last transaction: `write_mark`.
/// - `block` says how many resources there are in each 1,024 rids, to go far without reading them.
/// - `member` lies together by group in the order in which members were added; by `member_of` the groups of a
///   member are found, and whether it is one.
namespace tidegate::store_postgres {

inline constexpr int part_shift = 40;
inline constexpr int block_shift = 10;
inline constexpr int slot_shift = 8;
inline constexpr std::int64_t part_max = (std::int64_t{1} << (63 - part_shift)) - 2;
inline constexpr std::int64_t sequence_max = (std::int64_t{1} << part_shift) - 1;
inline constexpr std::int64_t slot_max = (std::int64_t{1} << slot_shift) - 1;
inline constexpr std::int64_t unique_slot_min = 128;

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

/// What a tenant has of one type, in the transaction that is open.
struct directory_part {
  std::int64_t id = 0;
  std::int64_t last_rid = 0;  ///< the highest that was given
  std::int64_t count = 0;
  auto operator==(directory_part const&) const -> bool = default;
};

/// Where the indexes of a type are.
struct index_slots {
  std::vector<std::int64_t> values;  ///< of the indexes of the type
  std::vector<std::int64_t> sorted;  ///< the same where an attribute has one value
};

/// The slots of every type of a model, in its order, and when they were so.
struct directory_indexes {
  std::int64_t generation = 0;
  std::vector<index_slots> types;
  /// Of these types there are no others. Who does not know them all must not write.
  bool are_all = true;
};

/// Makes the indexes what `model` says. Waits for those who write and keeps them waiting, if there is anything to do.
[[nodiscard]] auto update_indexes(connection& server, scim::model const& model) -> outcome<void>;

/// The indexes of `model` as they are; `unavailable` when not all of them are there.
[[nodiscard]] auto load_indexes(connection& server, scim::model const& model)
    -> outcome<directory_indexes>;

/// What is said of those that are not as the model says.
inline constexpr char const* other_indexes =
    "another gateway has changed the indexes: it has another configuration of SCIM";

/// Shared by all who write, and not by who changes indexes.
[[nodiscard]] auto index_lock() -> std::int64_t;

/// A resource as it was stored.
[[nodiscard]] auto parse_stored(connection const& server, std::int64_t rid, std::string_view text)
    -> outcome<scim::json>;

}  // namespace tidegate::store_postgres
