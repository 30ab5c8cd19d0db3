// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/store/idempotency_store.hpp>

#include <libpq-fe.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::store_postgres {

template <class T>
using outcome = result<T, store::store_error>;

/// Where a server is and who we are there, as libpq takes it.
struct server_settings {
  std::vector<std::pair<std::string, std::string>> words;
  std::string name;  ///< for logs: without user and password
};

/// Reads `postgres://user:password@host:port/database?sslmode=…`. What the URL leaves open is set
/// so that a server that does not answer is noticed, and that of several hosts the one that takes
/// writes is used.
[[nodiscard]] auto read_url(std::string const& url) -> outcome<server_settings>;

struct finish_connection {
  void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
};
using connection_handle = std::unique_ptr<PGconn, finish_connection>;

/// Connects and sets up the session, waiting for both: what a change is answered after is as
/// durable as the server can make it, whatever the defaults of the user are.
[[nodiscard]] auto connect(server_settings const& settings) -> outcome<connection_handle>;

/// What libpq has to say, on one line.
[[nodiscard]] auto error_text(char const* message) -> std::string;

/// Values for the placeholders of a statement, in the binary form of the protocol.
class parameters {
 public:
  template <class... Values>
  explicit parameters(Values const&... values) {
    (add(values), ...);
  }

  void add(std::int64_t value);
  void add(std::optional<std::int64_t> value);
  void add(bool value);
  void add(std::string_view octets);  ///< bytea
  void add(std::string const& octets) { add(std::string_view(octets)); }
  void add(std::optional<std::string_view> octets);
  void add(std::vector<std::int64_t> const& values);
  void add(std::vector<std::string_view> const& values);  ///< bytea[]

  [[nodiscard]] auto octets() const noexcept -> std::size_t { return buffer_.size(); }
  [[nodiscard]] auto size() const noexcept -> int { return static_cast<int>(types_.size()); }
  [[nodiscard]] auto types() const noexcept -> Oid const* { return types_.data(); }
  [[nodiscard]] auto lengths() const noexcept -> int const* { return lengths_.data(); }
  [[nodiscard]] auto formats() const noexcept -> int const* { return formats_.data(); }
  /// Good until something is added.
  [[nodiscard]] auto values() const -> std::vector<char const*>;

 private:
  void add_value(Oid type, std::string_view octets);

  std::string buffer_;
  std::vector<Oid> types_;
  std::vector<std::size_t> offsets_;
  std::vector<int> lengths_;  // -1: null
  std::vector<int> formats_;
};

/// The rows that a statement gave.
class rows {
 public:
  rows() = default;
  explicit rows(PGresult* result) : result_(result) {}

  [[nodiscard]] auto size() const noexcept -> int { return result_ ? PQntuples(result_.get()) : 0; }
  [[nodiscard]] auto is_null(int row, int column) const noexcept -> bool {
    return PQgetisnull(result_.get(), row, column) != 0;
  }
  /// Good as long as the rows are.
  [[nodiscard]] auto octets(int row, int column) const noexcept -> std::string_view {
    return {PQgetvalue(result_.get(), row, column),
            static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
  }
  /// Of smallint, integer and bigint; 0 where it is null.
  [[nodiscard]] auto number(int row, int column) const noexcept -> std::int64_t;
  [[nodiscard]] auto boolean(int row, int column) const noexcept -> bool {
    return number(row, column) != 0;
  }
  [[nodiscard]] auto get() const noexcept -> PGresult const* { return result_.get(); }

 private:
  struct clear {
    void operator()(PGresult* result) const noexcept { PQclear(result); }
  };
  std::unique_ptr<PGresult, clear> result_;
};

/// What came of a statement that was sent outside of a pipeline: its last rows. `sent` is what
/// libpq said when it was sent; the error is one line for people, also when there is no answer in
/// `timeout`. Then the connection is of no use any more.
[[nodiscard]] auto receive(PGconn* from, int sent, std::chrono::milliseconds timeout)
    -> result<rows, std::string>;

/// A connection of one thread that waits for its answers.
///
/// Statements are sent as they come (pipeline mode) and waited for when the caller wants to know:
/// `send` says nothing of how it went, `finish` does, of all that was sent since the last one.
class connection {
 public:
  /// `statements` are prepared, and run by their number.
  [[nodiscard]] static auto open(server_settings const& settings, std::chrono::milliseconds timeout,
                                 std::span<std::string_view const> statements)
      -> outcome<connection>;

  /// Of the prepared ones, or any other. Where much is under way, it is waited for first, and what
  /// it gave is dropped.
  [[nodiscard]] auto send(std::size_t statement, parameters const& values = parameters())
      -> outcome<void>;
  [[nodiscard]] auto send(std::string const& sql, parameters const& values = parameters())
      -> outcome<void>;
  /// What the statements gave, in order; the first error when there was one. Then those behind it
  /// were not run. After an error the connection is in sync, and the server has said ERROR to one
  /// of the statements; in any other case it is broken.
  [[nodiscard]] auto finish() -> outcome<std::vector<rows>>;
  /// Has the server work through what was sent, and looks at the answers before the next statement.
  /// Errors are not reported.
  void leave();

  /// One statement, and all that was sent before it.
  template <class Statement>
  [[nodiscard]] auto ask(Statement const& statement, parameters const& values = parameters())
      -> outcome<rows> {
    TIDEGATE_TRY_VOID(send(statement, values));
    TIDEGATE_TRY(auto all, finish());
    return std::move(all.back());
  }

  /// It is of no use any more.
  [[nodiscard]] auto is_broken() const noexcept -> bool { return broken_; }
  /// Five characters; of the last error of the server. Empty when there was none.
  [[nodiscard]] auto sqlstate() const noexcept -> std::string const& { return sqlstate_; }
  [[nodiscard]] auto timeout() const noexcept -> std::chrono::milliseconds { return timeout_; }
  [[nodiscard]] auto name() const noexcept -> std::string const& { return name_; }
  void forget_error() noexcept { sqlstate_.clear(); }
  [[nodiscard]] auto error(store::store_fault fault, std::string const& text) const
      -> store::store_error {
    return {fault, name_ + ": " + text};
  }

 private:
  connection(connection_handle handle, std::string name, std::chrono::milliseconds timeout);
  [[nodiscard]] auto make_room() -> outcome<void>;
  [[nodiscard]] auto sent(int code, std::size_t octets) -> outcome<void>;
  [[nodiscard]] auto lost(std::string const& why) -> store::store_error;
  [[nodiscard]] auto next_result(std::chrono::steady_clock::time_point deadline)
      -> outcome<PGresult*>;
  [[nodiscard]] auto read_flight(std::size_t statements) -> outcome<std::vector<rows>>;

  connection_handle handle_;
  std::string name_;
  std::chrono::milliseconds timeout_;
  std::size_t open_ = 0;          // statements since the last Sync
  std::size_t open_octets_ = 0;   // of their values
  std::deque<std::size_t> left_;  // statements before each Sync whose answers are not waited for
  std::string sqlstate_;
  bool broken_ = false;
};

}  // namespace tidegate::store_postgres
