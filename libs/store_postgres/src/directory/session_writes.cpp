// SPDX-License-Identifier: Apache-2.0
#include "directory/session.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tidegate::store_postgres {

using scim::index_entry;
using scim::model_type;
using store::store_fault;

namespace {

/// How many texts a session remembers.
constexpr std::size_t texts_max = 64;
/// So many members are looked for one by one before all of a group are read, and so many are added
/// at once.
constexpr int asked_max = 8;
constexpr std::size_t added_max = 1000;

/// The columns of entries.
template <class Entries>
void add_entries(parameters& values, Entries const& entries) {
  std::vector<std::int64_t> ids;
  std::vector<std::string_view> keys;
  for (auto const& entry : entries) {
    ids.push_back(entry.index_id);
    keys.push_back(entry.key);
  }
  values.add(ids);
  values.add(keys);
}

}  // namespace

// ---- writing ----

/// A transaction that finds a resource often changes it then; its entries are those of its text.
void directory_session::remember_text(std::int64_t rid, std::string_view text) {
  if (!writing_) {
    return;
  }
  if (texts_.size() >= texts_max) {
    texts_.clear();
  }
  texts_.insert_or_assign(rid, std::string(text));
}

auto directory_session::read_entries(model_type const& type, std::int64_t rid)
    -> outcome<std::vector<index_entry>> {
  if (!texts_.contains(rid)) {
    TIDEGATE_TRY(auto const found, ask(sql::find_by_rid, parameters(rid)));
    if (found.size() == 0) {
      return failure(
          server_.error(store_fault::damaged, "there is no resource " + std::to_string(rid)));
    }
    remember_text(rid, found.octets(0, 3));
  }
  TIDEGATE_TRY(auto const resource, parse_stored(server_.name(), rid, texts_.at(rid)));
  return index_entries(type, resource);
}

auto directory_session::stored_entries(model_type const& type, directory_part const& part,
                                       std::span<index_entry const> entries) const
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

auto directory_session::insert(model_type const& type, std::string_view id, std::string_view text,
                               std::span<index_entry const> entries) -> outcome<std::uint64_t> {
  return tracking_failure([&]() -> outcome<std::uint64_t> {
    TIDEGATE_TRY(auto* const part, part_to_change(type));
    if (part->size.last_rid >= rid_end(part->id)) {
      return failure(server_.error(store_fault::full, "there is no rid left"));
    }
    auto const rid = ++part->size.last_rid;
    ++part->size.count;
    ++transaction_blocks_[block_of(rid)];
    parameters values(rid, id, text);
    add_entries(values, stored_entries(type, *part, entries));
    TIDEGATE_TRY_VOID(write(sql::insert_resource, values));
    remember_text(rid, text);
    return unsigned_of(rid);
  });
}

auto directory_session::update(model_type const& type, std::uint64_t rid, std::string_view text,
                               std::span<index_entry const> entries) -> outcome<void> {
  return tracking_failure([&]() -> outcome<void> {
    TIDEGATE_TRY(auto* const part, part_to_change(type));
    TIDEGATE_TRY(auto const old_entries, read_entries(type, signed_of(rid)));
    auto const before = stored_entries(type, *part, old_entries);
    auto const after = stored_entries(type, *part, entries);
    std::vector<stored_entry> gone;
    std::vector<stored_entry> added;
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                        std::back_inserter(gone));
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                        std::back_inserter(added));
    parameters values(signed_of(rid), text);
    add_entries(values, gone);
    add_entries(values, added);
    TIDEGATE_TRY_VOID(write(sql::update_resource, values));
    remember_text(signed_of(rid), text);
    return {};
  });
}

auto directory_session::remove(model_type const& type, std::uint64_t rid) -> outcome<void> {
  return tracking_failure([&]() -> outcome<void> {
    TIDEGATE_TRY(auto* const part, part_to_change(type));
    TIDEGATE_TRY(auto const entries, read_entries(type, signed_of(rid)));
    parameters values(signed_of(rid));
    add_entries(values, stored_entries(type, *part, entries));
    TIDEGATE_TRY_VOID(write(sql::remove_resource, values));
    texts_.erase(signed_of(rid));
    group_ = {};
    --part->size.count;
    --transaction_blocks_[block_of(signed_of(rid))];
    return {};
  });
}

// ---- members ----

/// What is known of the members of a group. The first few are looked for one by one, then all of
/// them are read: who adds ten thousand waits for the server a few times only.
auto directory_session::load_group(std::int64_t group) -> outcome<void> {
  if (group_.rid != group) {
    TIDEGATE_TRY_VOID(send_added());
    group_ = {};
    group_.rid = group;
  }
  if (group_.is_loaded || ++group_.asked <= asked_max) {
    return {};
  }
  TIDEGATE_TRY(auto const found, ask(sql::all_members, parameters(group)));
  for (int i = 0; i < found.size(); ++i) {
    group_.places.emplace(found.number(i, 0), found.number(i, 1));
    group_.last_place = std::max(group_.last_place, found.number(i, 1));
  }
  group_.is_loaded = true;
  return {};
}

auto directory_session::send_added() -> outcome<void> {
  if (group_.added.empty()) {
    return {};
  }
  auto const rids = std::exchange(group_.added, {});
  auto const places = std::exchange(group_.added_places, {});
  auto const displays = std::exchange(group_.added_displays, {});
  TIDEGATE_TRY_VOID(write(sql::insert_members, parameters(group_.rid, rids, places,
                                                          std::vector<std::string_view>(
                                                              displays.begin(), displays.end()))));
  return write(sql::mark_in_groups, parameters(rids));
}

auto directory_session::add_member(std::uint64_t group_rid, std::uint64_t member_rid,
                                   std::string_view display) -> outcome<bool> {
  return tracking_failure([&]() -> outcome<bool> {
    auto const group = signed_of(group_rid);
    auto const member = signed_of(member_rid);
    TIDEGATE_TRY_VOID(load_group(group));
    if (!group_.is_loaded) {
      TIDEGATE_TRY(auto const found, ask(sql::is_member, parameters(group, member)));
      group_.last_place = found.number(0, 1);
      if (!found.is_null(0, 0)) {
        group_.places[member] = found.number(0, 0);
      }
    }
    auto const at = group_.places.find(member);
    if (at != group_.places.end()) {
      TIDEGATE_TRY_VOID(write(sql::update_member, parameters(group, at->second, display)));
      return false;
    }
    group_.places.emplace(member, ++group_.last_place);
    group_.added.push_back(member);
    group_.added_places.push_back(group_.last_place);
    group_.added_displays.emplace_back(display);
    if (group_.added.size() >= added_max) {
      TIDEGATE_TRY_VOID(send_added());
    }
    return true;
  });
}

auto directory_session::remove_member(std::uint64_t group_rid, std::uint64_t member_rid)
    -> outcome<bool> {
  return tracking_failure([&]() -> outcome<bool> {
    auto const group = signed_of(group_rid);
    auto const member = signed_of(member_rid);
    TIDEGATE_TRY_VOID(load_group(group));
    if (!group_.is_loaded) {
      TIDEGATE_TRY(auto const found, ask(sql::is_member, parameters(group, member)));
      if (!found.is_null(0, 0)) {
        group_.places[member] = found.number(0, 0);
      }
    }
    auto const at = group_.places.find(member);
    if (at == group_.places.end()) {
      return false;
    }
    TIDEGATE_TRY_VOID(write(sql::remove_member, parameters(group, at->second)));
    group_.places.erase(member);
    return true;
  });
}

auto directory_session::remove_members(std::uint64_t group_rid) -> outcome<void> {
  return tracking_failure([&]() -> outcome<void> {
    TIDEGATE_TRY_VOID(write(sql::remove_members, parameters(signed_of(group_rid))));
    group_ = {};
    return {};
  });
}

}  // namespace tidegate::store_postgres
