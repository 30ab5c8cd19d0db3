// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/store_directory/scan.hpp>

#include "directory/channel.hpp"
#include "directory/schema.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::store_postgres {

/// The rows of a part, for one scan or count of a session. They come a few hundred at a time, each
/// time from where the last ones ended.
class directory_rows final : public row_source {
 public:
  directory_rows(directory_channel& to, directory_part const& part) : channel_(to), part_(part) {}

  [[nodiscard]] auto read(row_range const& range, row_visitor& to) -> outcome<void> override;
  [[nodiscard]] auto count(row_range const& range, std::function<bool()> const& spent)
      -> outcome<std::optional<std::uint64_t>> override;
  [[nodiscard]] auto find_rids(scim::filter_sql const& condition, std::size_t rids_max)
      -> outcome<std::optional<std::vector<std::int64_t>>> override;
  [[nodiscard]] auto count_matches(scim::filter_sql const& condition, std::int64_t rid_max,
                                   std::function<bool()> const& spent)
      -> outcome<std::optional<std::uint64_t>> override;
  [[nodiscard]] auto read_blocks(std::int64_t first, std::int64_t last, bool up,
                                 std::function<bool(std::int64_t, std::int64_t)> const& each)
      -> outcome<void> override;
  [[nodiscard]] auto size() -> outcome<part_size> override { return part_.size; }

 private:
  /// Rows and, where the path has keys, their keys, from the start of `range`.
  [[nodiscard]] auto ask(row_range const& range, std::int64_t most) -> outcome<rows>;
  [[nodiscard]] auto read_rids(row_range const& range, row_visitor& to) -> outcome<void>;
  [[nodiscard]] auto read_among(row_range range, row_visitor& to) -> outcome<void>;
  /// Asks for what may take long: nothing when it took longer than `most`.
  [[nodiscard]] auto ask_within(std::chrono::milliseconds most, std::string const& text,
                                parameters const& values) -> outcome<std::optional<rows>>;
  /// The number that a statement gives; nothing when `spent` said so before.
  [[nodiscard]] auto ask_until_spent(std::string const& text, parameters const& values,
                                     std::function<bool()> const& spent)
      -> outcome<std::optional<std::uint64_t>>;
  [[nodiscard]] auto condition_values(scim::filter_sql const& condition) const -> parameters;

  directory_channel& channel_;
  directory_part const& part_;
};

}  // namespace tidegate::store_postgres
