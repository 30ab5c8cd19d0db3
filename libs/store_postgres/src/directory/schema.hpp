// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/model.hpp>
#include <tidegate/store_directory/schema.hpp>

#include "connection.hpp"

#include <cstdint>
#include <vector>

/// The tables of a directory and what is true of them.
///
/// - Parts, rids and blocks are as tidegate/store_directory/schema.hpp says.
/// - A session that writes for a tenant holds an advisory lock of that tenant from its first
///   statement to its commit. So rids become visible in their order: no walk passes a place where a
///   resource turns up later with a lower rid. What was looked at stays as it is until the commit,
///   unique values too.
/// - `entry` has a row for each value in an index. `index_id` is the part and then the slot of the
///   index, which `directory_index` says. The index of an attribute with several values has a
///   second slot, under which every resource stands once, by the value that sorts. Slots from 128
///   are those of indexes that are unique: the server refuses a key that another resource has
///   there, and the program has looked for it before.
/// - `directory_state.generation` grows when indexes change; every transaction looks whether it is
///   as it knows it. Who writes shares a lock that who changes indexes has alone.
/// - `directory_writer` has a row for each thread that writes, with the number of its last
///   transaction: `write_mark`.
/// - `member` lies together by group in the order in which members were added; by `member_of` the
///   groups of a member are found, and whether it is one.
namespace tidegate::store_postgres {

using namespace store_directory;

inline constexpr int slot_shift = 8;
inline constexpr std::int64_t slot_max = (std::int64_t{1} << slot_shift) - 1;
inline constexpr std::int64_t unique_slot_min = 128;

/// What a tenant has of one type, in the transaction that is open.
struct directory_part {
  std::int64_t id = 0;
  part_size size;
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

/// Makes the indexes what `model` says. Waits for those who write and keeps them waiting, if there
/// is anything to do.
[[nodiscard]] auto update_indexes(connection& server, scim::model const& model) -> outcome<void>;

/// The indexes of `model` as they are; `unavailable` when not all of them are there.
[[nodiscard]] auto load_indexes(connection& server, scim::model const& model)
    -> outcome<directory_indexes>;

/// What is said of those that are not as the model says.
inline constexpr char const* other_indexes =
    "another gateway has changed the indexes: it has another configuration of SCIM";

/// Shared by all who write, and not by who changes indexes.
[[nodiscard]] auto index_lock() -> std::int64_t;

}  // namespace tidegate::store_postgres
