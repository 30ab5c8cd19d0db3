// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "connection.hpp"
#include "directory/schema.hpp"
#include "directory/statements.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::store_postgres {

/// The statements of a session on their way to the server.
///
/// Members that are added to a group are collected, and sent before anything that could see them.
class directory_channel {
 public:
  explicit directory_channel(connection server) : server_(std::move(server)) {}

  [[nodiscard]] auto server() noexcept -> connection& { return server_; }
  [[nodiscard]] auto server() const noexcept -> connection const& { return server_; }

  [[nodiscard]] auto ask(fixed_statement const& which, parameters const& values = parameters())
      -> outcome<rows>;
  [[nodiscard]] auto ask(std::string const& text, parameters const& values) -> outcome<rows>;
  /// Without what is collected.
  [[nodiscard]] auto send(fixed_statement const& which, parameters const& values = parameters())
      -> outcome<void>;
  /// For what changes something.
  [[nodiscard]] auto write(fixed_statement const& which, parameters const& values) -> outcome<void>;
  /// Collects a member that is new in the group.
  [[nodiscard]] auto write_member(std::int64_t group, std::int64_t member, std::int64_t place,
                                  std::string_view display) -> outcome<void>;
  /// Sends what is collected.
  [[nodiscard]] auto send_members() -> outcome<void>;

  /// A transaction begins. Where others share the one of the database, it gets a savepoint before
  /// its first change.
  void begin_transaction(bool is_alone) noexcept;
  [[nodiscard]] auto make_savepoint() -> outcome<void>;
  [[nodiscard]] auto keep_transaction() -> outcome<void>;
  [[nodiscard]] auto undo_transaction() -> outcome<void>;
  /// Forgets what is collected and not sent.
  void forget_members() noexcept { added_ = {}; }

 private:
  struct added_members {
    std::int64_t group = 0;
    std::vector<std::int64_t> rids;
    std::vector<std::int64_t> places;
    std::vector<std::string> displays;
  };

  connection server_;
  bool is_alone_ = false;       // the transaction is a group for itself
  bool has_savepoint_ = false;  // this transaction has written
  added_members added_;
};

}  // namespace tidegate::store_postgres
