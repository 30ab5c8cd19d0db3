// SPDX-License-Identifier: Apache-2.0
#include "directory/part_cache.hpp"

#include <cstddef>

namespace tidegate::store_sqlite {

using scim::model_type;
using store::store_error;
using store::store_fault;

namespace {

/// How many tenants and names of types are remembered.
constexpr std::size_t tenants_max = 4096;

}  // namespace

void part_cache::enter(std::string_view tenant) {
  auto [at, is_new] = tenants_.try_emplace(std::string(tenant));
  if (is_new) {
    at->second.tenant = tenant;
    at->second.parts.resize(model_.types().size());
  }
  tenant_ = &at->second;
}

auto part_cache::find(model_type const& type) -> outcome<directory_part*> {
  auto& part = tenant_->parts[type_number(model_, type)];
  if (part) {
    return &*part;
  }
  TIDEGATE_TRY(auto const asked,
               statements_.borrow(sql.find_part, tenant_->tenant, type.definition.type().name));
  TIDEGATE_TRY(bool const there, file_.step(asked.get()));
  if (!there) {
    return nullptr;
  }
  part_size const size{sqlite3_column_int64(asked.get(), 1), sqlite3_column_int64(asked.get(), 2)};
  TIDEGATE_TRY(part, load_part(file_, sqlite3_column_int64(asked.get(), 0), size, type));
  return &*part;
}

auto part_cache::find_or_make(model_type const& type) -> outcome<directory_part*> {
  TIDEGATE_TRY(auto* const there, find(type));
  if (there != nullptr) {
    return there;
  }
  auto& part = tenant_->parts[type_number(model_, type)];
  TIDEGATE_TRY(part, make_part(file_, tenant_->tenant, type));
  return &*part;
}

auto part_cache::id_index_ids() -> outcome<std::vector<std::int64_t>> {
  std::vector<std::int64_t> ids;
  for (auto const& type : model_.types()) {
    TIDEGATE_TRY(auto const* const part, find(type));
    if (part != nullptr) {
      ids.push_back(part->index_ids[id_index(type)]);
    }
  }
  return ids;
}

auto part_cache::stored_size(directory_part const& part) -> outcome<part_size> {
  TIDEGATE_TRY(auto const asked, statements_.borrow(sql.part_size, part.id));
  TIDEGATE_TRY(bool const there, file_.step(asked.get()));
  if (!there) {
    return part_size{};
  }
  return part_size{sqlite3_column_int64(asked.get(), 0), sqlite3_column_int64(asked.get(), 1)};
}

auto part_cache::type_name(std::int64_t rid) -> outcome<std::string_view> {
  auto const part = part_of(rid);
  auto const known = type_names_.find(part);
  if (known != type_names_.end()) {
    return known->second;
  }
  TIDEGATE_TRY(auto const asked, statements_.borrow(sql.part_type, part));
  TIDEGATE_TRY(bool const there, file_.step(asked.get()));
  if (!there) {
    return failure(
        store_error{store_fault::damaged, file_.file() + ": has no part " + std::to_string(part)});
  }
  if (type_names_.size() >= tenants_max) {
    type_names_.clear();
  }
  return type_names_.emplace(part, blob(asked.get(), 0)).first->second;
}

void part_cache::trim() noexcept {
  if (tenants_.size() >= tenants_max) {
    tenants_.clear();
  }
}

void part_cache::clear() noexcept {
  tenants_.clear();
  type_names_.clear();
  tenant_ = nullptr;
}

}  // namespace tidegate::store_sqlite
