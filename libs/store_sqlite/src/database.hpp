// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/idempotency/lookup.hpp>
#include <tidegate/store/idempotency_store.hpp>

#include "connection.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::store_sqlite {

/// The file and the few statements that are made on it. For one thread.
class database {
 public:
  [[nodiscard]] static auto open(std::string const& file, std::size_t file_octets_max)
      -> outcome<database>;

  [[nodiscard]] auto begin() -> outcome<void> { return connection_.begin(); }
  [[nodiscard]] auto commit() -> outcome<void> { return connection_.commit(); }
  /// Also where SQLite has rolled back by itself.
  void rollback() noexcept { connection_.rollback(); }

  /// The row of a new record.
  [[nodiscard]] auto insert(idempotency::lookup_key const& key, std::string_view record,
                            std::optional<std::string> const& response) -> outcome<std::int64_t>;
  [[nodiscard]] auto update(std::int64_t row, std::string_view record,
                            std::optional<std::string> const& response) -> outcome<void>;
  [[nodiscard]] auto remove(std::int64_t row) -> outcome<void>;
  [[nodiscard]] auto response(std::int64_t row) -> outcome<std::optional<std::string>>;

  struct stored_row {
    std::int64_t row;
    std::string_view key;
    std::string_view record;
  };
  /// Calls `each` with every row, in the order of arrival, until it returns an error.
  [[nodiscard]] auto scan(std::function<outcome<void>(stored_row const&)> const& each)
      -> outcome<void>;

 private:
  connection connection_;
  statement insert_;
  statement update_;
  statement remove_;
  statement response_;
};

}  // namespace tidegate::store_sqlite
