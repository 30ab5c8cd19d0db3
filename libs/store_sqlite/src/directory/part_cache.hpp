// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "connection.hpp"
#include "directory/schema.hpp"
#include "directory/statement_cache.hpp"

#include <tidegate/scim/model.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tidegate::store_sqlite {

/// The parts of tenants as a session has read or made them. `enter` says whose transaction it is.
class part_cache {
 public:
  part_cache(connection& file, statement_cache& statements, scim::model const& model)
      : file_(file), statements_(statements), model_(model) {}

  void enter(std::string_view tenant);
  /// Nothing when the tenant has none of the type.
  [[nodiscard]] auto find(scim::model_type const& type) -> outcome<directory_part*>;
  /// The part, which is made where there is none, in the transaction that is open.
  [[nodiscard]] auto find_or_make(scim::model_type const& type) -> outcome<directory_part*>;
  /// Those of the indexes of `id` of everything the tenant has.
  [[nodiscard]] auto id_index_ids() -> outcome<std::vector<std::int64_t>>;
  /// As the file has it.
  [[nodiscard]] auto stored_size(directory_part const& part) -> outcome<part_size>;
  /// The name of the type of a resource.
  [[nodiscard]] auto type_name(std::int64_t rid) -> outcome<std::string_view>;

  /// Between transactions: forgets tenants when there are many.
  void trim() noexcept;
  void clear() noexcept;

 private:
  struct tenant_parts {
    std::string tenant;
    std::vector<std::optional<directory_part>> parts;  // by the number of the type
  };

  connection& file_;
  statement_cache& statements_;
  scim::model const& model_;
  std::unordered_map<std::string, tenant_parts> tenants_;
  std::unordered_map<std::int64_t, std::string> type_names_;  // of parts
  tenant_parts* tenant_ = nullptr;                            // whose transaction it is
};

}  // namespace tidegate::store_sqlite
