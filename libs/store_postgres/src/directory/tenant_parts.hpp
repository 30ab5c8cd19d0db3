// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "connection.hpp"
#include "directory/schema.hpp"

#include <tidegate/scim/index_key.hpp>
#include <tidegate/scim/model.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tidegate::store_postgres {

/// A row of `entry`, but for its rid.
struct stored_entry {
  std::int64_t index_id;
  std::string_view key;
  auto operator<=>(stored_entry const&) const = default;
};

/// What the tenant of a transaction has, and where its indexes are.
class tenant_parts {
 public:
  using part_list = std::vector<std::optional<directory_part>>;  ///< by the number of the type

  explicit tenant_parts(scim::model const& model) : model_(model) {}

  /// Takes what the statement `parts` has given.
  void load(rows const& parts);
  [[nodiscard]] auto all() const noexcept -> part_list const& { return parts_; }
  void restore(part_list parts) { parts_ = std::move(parts); }
  [[nodiscard]] auto indexes() noexcept -> directory_indexes& { return indexes_; }

  /// Nothing when the tenant has none of the type.
  [[nodiscard]] auto find(scim::model_type const& type) const noexcept -> directory_part const*;
  [[nodiscard]] auto at(scim::model_type const& type) noexcept -> std::optional<directory_part>& {
    return parts_[type_number(model_, type)];
  }
  /// The type of a part that is among these.
  [[nodiscard]] auto type_of(std::int64_t part) const noexcept -> scim::model_type const*;

  [[nodiscard]] auto index_id(scim::model_type const& type, directory_part const& part,
                              std::size_t index) const -> std::int64_t;
  [[nodiscard]] auto sort_id(scim::model_type const& type, directory_part const& part,
                             std::size_t index) const -> std::int64_t;
  /// The slots of the type, as `index_id` of the part.
  [[nodiscard]] auto ids_of(scim::model_type const& type, directory_part const& part) const
      -> index_slots;
  /// Those of the indexes of `id` of everything the tenant has.
  [[nodiscard]] auto id_index_ids() const -> std::vector<std::int64_t>;
  /// In order. They point to the keys of `entries`.
  [[nodiscard]] auto stored_entries(scim::model_type const& type, directory_part const& part,
                                    std::span<scim::index_entry const> entries) const
      -> std::vector<stored_entry>;

 private:
  scim::model const& model_;
  directory_indexes indexes_;
  part_list parts_;
};

}  // namespace tidegate::store_postgres
