// SPDX-License-Identifier: Apache-2.0
#include "directory/tenant_parts.hpp"

#include <algorithm>

namespace tidegate::store_postgres {

using scim::model_type;

void tenant_parts::load(rows const& parts) {
  parts_.assign(model_.types().size(), std::nullopt);
  for (int i = 0; i < parts.size(); ++i) {
    if (auto const* const type = model_.find(parts.octets(i, 0))) {
      at(*type) = directory_part{parts.number(i, 1), {parts.number(i, 2), parts.number(i, 3)}};
    }
  }
}

auto tenant_parts::find(model_type const& type) const noexcept -> directory_part const* {
  auto const& part = parts_[type_number(model_, type)];
  return part ? &*part : nullptr;
}

auto tenant_parts::type_of(std::int64_t part) const noexcept -> model_type const* {
  for (auto const& type : model_.types()) {
    auto const* const known = find(type);
    if (known != nullptr && known->id == part) {
      return &type;
    }
  }
  return nullptr;
}

auto tenant_parts::index_id(model_type const& type, directory_part const& part,
                            std::size_t index) const -> std::int64_t {
  return part.id << slot_shift | indexes_.types[type_number(model_, type)].values[index];
}

auto tenant_parts::sort_id(model_type const& type, directory_part const& part,
                           std::size_t index) const -> std::int64_t {
  return part.id << slot_shift | indexes_.types[type_number(model_, type)].sorted[index];
}

auto tenant_parts::ids_of(model_type const& type, directory_part const& part) const -> index_slots {
  index_slots ids;
  for (std::size_t i = 0; i < type.indexes.size(); ++i) {
    ids.values.push_back(index_id(type, part, i));
    ids.sorted.push_back(sort_id(type, part, i));
  }
  return ids;
}

auto tenant_parts::id_index_ids() const -> std::vector<std::int64_t> {
  std::vector<std::int64_t> ids;
  for (auto const& type : model_.types()) {
    if (auto const* const part = find(type)) {
      ids.push_back(index_id(type, *part, id_index(type)));
    }
  }
  return ids;
}

auto tenant_parts::stored_entries(model_type const& type, directory_part const& part,
                                  std::span<scim::index_entry const> entries) const
    -> std::vector<stored_entry> {
  std::vector<stored_entry> all;
  all.reserve(entries.size() + type.indexes.size());
  for (auto const& entry : entries) {
    auto const id = index_id(type, part, entry.index);
    auto const sorted = sort_id(type, part, entry.index);
    all.push_back({id, entry.key});
    if (entry.sorts && sorted != id) {
      all.push_back({sorted, entry.key});
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace tidegate::store_postgres
