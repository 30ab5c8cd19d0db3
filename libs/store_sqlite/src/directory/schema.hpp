// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/index_key.hpp>
#include <tidegate/scim/model.hpp>
#include <tidegate/store_directory/schema.hpp>

#include "connection.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

/// The tables of a directory and what is true of them.
///
/// - Parts, rids and blocks are as tidegate/store_directory/schema.hpp says.
/// - `entry` has a row for each value in an index. The index of an attribute with several values
///   has a second number, under which every resource stands once, by the value that sorts.
/// - `member` lies together by group in the order in which members were added; by `member_of` the
///   groups of a member are found, and whether it is one.
namespace tidegate::store_sqlite {

using namespace store_directory;

/// What a tenant has of one type.
struct directory_part {
  std::int64_t id = 0;
  std::vector<std::int64_t> index_ids;  ///< of the indexes of the type
  /// The same where an attribute has one value. Where it may have several, the one that sorts is
  /// here, and the others there.
  std::vector<std::int64_t> sort_ids;
  part_size size;  ///< when it was loaded
};

/// Makes the tables of a new file, and the indexes of an old one what `model` says.
[[nodiscard]] auto prepare_directory(connection& file, scim::model const& model) -> outcome<void>;

/// An error when the file is not a directory.
[[nodiscard]] auto check_directory(connection& file) -> outcome<void>;

/// Writes something that changes nothing.
[[nodiscard]] auto mark_directory(connection& file) -> outcome<void>;

/// What there is of the part with that number.
[[nodiscard]] auto load_part(connection& file, std::int64_t id, part_size size,
                             scim::model_type const& type) -> outcome<directory_part>;

/// Adds one, in the transaction that is open.
[[nodiscard]] auto make_part(connection& file, std::string_view tenant,
                             scim::model_type const& type) -> outcome<directory_part>;

}  // namespace tidegate::store_sqlite
