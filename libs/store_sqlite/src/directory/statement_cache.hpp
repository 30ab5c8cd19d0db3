// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "connection.hpp"
#include "directory/statements.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tidegate::store_sqlite {

/// A statement on loan. It goes back to be used again; while it is away, another one is made.
class borrowed_statement {
 public:
  borrowed_statement(statement lent, std::vector<statement>& home)
      : statement_(std::move(lent)), home_(&home) {}
  borrowed_statement(borrowed_statement&&) noexcept = default;
  auto operator=(borrowed_statement&&) -> borrowed_statement& = delete;
  ~borrowed_statement() {
    if (statement_) {
      sqlite3_reset(statement_.get());
      sqlite3_clear_bindings(statement_.get());
      home_->push_back(std::move(statement_));
    }
  }
  [[nodiscard]] auto get() const noexcept -> sqlite3_stmt* { return statement_.get(); }

 private:
  statement statement_;
  std::vector<statement>* home_;
};

/// The statements of a connection, each prepared once.
class statement_cache {
 public:
  explicit statement_cache(connection& on) : connection_(on) {}

  /// With values for its first placeholders, which are borrowed as long as the statement.
  template <class... Values>
  [[nodiscard]] auto borrow(fixed_statement const& which, Values const&... values)
      -> outcome<borrowed_statement> {
    TIDEGATE_TRY(auto lent, borrow_from(fixed_[&which], which.text));
    bind_values(lent.get(), values...);
    return lent;
  }
  /// One that a filter makes.
  [[nodiscard]] auto borrow(std::string const& text) -> outcome<borrowed_statement> {
    return borrow_from(of_filters_[text], text);
  }
  /// Runs a statement that gives no rows.
  template <class... Values>
  [[nodiscard]] auto run(fixed_statement const& which, Values const&... values) -> outcome<void> {
    TIDEGATE_TRY(auto const statement, borrow(which, values...));
    TIDEGATE_TRY_VOID(connection_.step(statement.get()));
    return {};
  }

  /// Forgets those of filters when there are many. None is on loan.
  void trim() noexcept {
    constexpr std::size_t of_filters_max = 128;
    if (of_filters_.size() >= of_filters_max) {
      of_filters_.clear();
    }
  }
  /// Before the connection is closed. None is on loan.
  void clear() noexcept {
    fixed_.clear();
    of_filters_.clear();
  }

 private:
  [[nodiscard]] auto borrow_from(std::vector<statement>& home, std::string_view text)
      -> outcome<borrowed_statement> {
    if (home.empty()) {
      TIDEGATE_TRY(auto made, connection_.prepare(text));
      return borrowed_statement(std::move(made), home);
    }
    auto taken = std::move(home.back());
    home.pop_back();
    return borrowed_statement(std::move(taken), home);
  }

  connection& connection_;
  std::unordered_map<fixed_statement const*, std::vector<statement>> fixed_;
  std::unordered_map<std::string, std::vector<statement>> of_filters_;
};

}  // namespace tidegate::store_sqlite
