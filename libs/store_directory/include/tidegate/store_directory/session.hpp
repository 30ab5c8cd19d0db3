// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/store_directory/scan.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace tidegate::store_directory {

/// What every session of a directory does: a connection, and the transactions that are run on it
/// one after the other. For one thread.
class session : public store::directory_writer {
 public:
  /// What has failed first in this transaction: nothing of it must be kept.
  [[nodiscard]] auto failed() const noexcept -> std::optional<store::store_error> const& {
    return failed_;
  }

  [[nodiscard]] auto find(scim::model_type const& type, std::string_view id)
      -> outcome<std::optional<store::directory_resource>> final;
  [[nodiscard]] auto find_any(std::string_view id) -> outcome<std::optional<any_resource>> final;
  [[nodiscard]] auto scan(store::directory_query const& query)
      -> outcome<scim::scan_answer<store::directory_row>> final;
  [[nodiscard]] auto count(store::directory_query const& query)
      -> outcome<store::directory_count> final;

 protected:
  explicit session(std::shared_ptr<scim::model const> model) : model_(std::move(model)) {}

  [[nodiscard]] virtual auto find_in_type(scim::model_type const& type, std::string_view id)
      -> outcome<std::optional<store::directory_resource>> = 0;
  /// Calls `use` with what the tenant has of the type of `query`, unless it has none of it.
  using part_use = std::move_only_function<outcome<void>(row_source&, scanned_part const&)>;
  [[nodiscard]] virtual auto with_part(store::directory_query const& query, part_use use)
      -> outcome<void> = 0;

  [[nodiscard]] auto model() const noexcept -> scim::model const& { return *model_; }

  void forget_failure() noexcept { failed_.reset(); }
  /// Remembers an error of `body`. After one, nothing more is run: the database may have undone
  /// more than what failed, and what comes after must not be made without what came before.
  template <class Body>
  [[nodiscard]] auto tracking_failure(Body&& body) -> decltype(body()) {
    if (failed_) {
      return failure(*failed_);
    }
    auto made = body();
    if (!made && !failed_) {
      failed_ = made.error();
    }
    return made;
  }

 private:
  std::shared_ptr<scim::model const> model_;
  std::optional<store::store_error> failed_;
};

}  // namespace tidegate::store_directory
