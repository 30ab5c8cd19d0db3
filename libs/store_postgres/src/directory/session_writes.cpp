// SPDX-License-Identifier: Apache-2.0
#include "directory/session.hpp"

#include <algorithm>
#include <iterator>

namespace tidegate::store_postgres {

using scim::index_entry;
using scim::model_type;
using store::store_fault;

namespace {

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

auto directory_session::read_entries(model_type const& type, std::int64_t rid)
    -> outcome<std::vector<index_entry>> {
  if (texts_.find(rid) == nullptr) {
    TIDEGATE_TRY(auto const found, channel_.ask(sql.find_by_rid, parameters(rid)));
    if (found.size() == 0) {
      return failure(channel_.server().error(store_fault::damaged,
                                             "there is no resource " + std::to_string(rid)));
    }
    texts_.put(rid, found.octets(0, 3));
  }
  TIDEGATE_TRY(auto const resource, parse_stored(channel_.server().name(), rid, *texts_.find(rid)));
  return index_entries(type, resource);
}

auto directory_session::insert(model_type const& type, std::string_view id, std::string_view text,
                               std::span<index_entry const> entries) -> outcome<std::uint64_t> {
  return tracking_failure([&]() -> outcome<std::uint64_t> {
    TIDEGATE_TRY(auto* const part, part_to_change(type));
    if (part->size.last_rid >= rid_end(part->id)) {
      return failure(channel_.server().error(store_fault::full, "there is no rid left"));
    }
    auto const rid = ++part->size.last_rid;
    ++part->size.count;
    ++transaction_blocks_[block_of(rid)];
    parameters values(rid, id, text);
    add_entries(values, parts_.stored_entries(type, *part, entries));
    TIDEGATE_TRY_VOID(channel_.write(sql.insert_resource, values));
    texts_.put(rid, text);
    return unsigned_of(rid);
  });
}

auto directory_session::update(model_type const& type, std::uint64_t rid, std::string_view text,
                               std::span<index_entry const> entries) -> outcome<void> {
  return tracking_failure([&]() -> outcome<void> {
    TIDEGATE_TRY(auto* const part, part_to_change(type));
    TIDEGATE_TRY(auto const old_entries, read_entries(type, signed_of(rid)));
    auto const before = parts_.stored_entries(type, *part, old_entries);
    auto const after = parts_.stored_entries(type, *part, entries);
    std::vector<stored_entry> gone;
    std::vector<stored_entry> added;
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                        std::back_inserter(gone));
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                        std::back_inserter(added));
    parameters values(signed_of(rid), text);
    add_entries(values, gone);
    add_entries(values, added);
    TIDEGATE_TRY_VOID(channel_.write(sql.update_resource, values));
    texts_.put(signed_of(rid), text);
    return {};
  });
}

auto directory_session::remove(model_type const& type, std::uint64_t rid) -> outcome<void> {
  return tracking_failure([&]() -> outcome<void> {
    TIDEGATE_TRY(auto* const part, part_to_change(type));
    TIDEGATE_TRY(auto const entries, read_entries(type, signed_of(rid)));
    parameters values(signed_of(rid));
    add_entries(values, parts_.stored_entries(type, *part, entries));
    TIDEGATE_TRY_VOID(channel_.write(sql.remove_resource, values));
    texts_.erase(signed_of(rid));
    group_ = {};
    --part->size.count;
    --transaction_blocks_[block_of(signed_of(rid))];
    return {};
  });
}

// ---- members ----

auto directory_session::add_member(std::uint64_t group_rid, std::uint64_t member_rid,
                                   std::string_view display) -> outcome<bool> {
  return tracking_failure([&]() -> outcome<bool> {
    auto const group = signed_of(group_rid);
    auto const member = signed_of(member_rid);
    TIDEGATE_TRY(auto const place, group_.find(channel_, group, member));
    if (place) {
      TIDEGATE_TRY_VOID(channel_.write(sql.update_member, parameters(group, *place, display)));
      return false;
    }
    TIDEGATE_TRY_VOID(group_.add(channel_, member, display));
    return true;
  });
}

auto directory_session::remove_member(std::uint64_t group_rid, std::uint64_t member_rid)
    -> outcome<bool> {
  return tracking_failure([&]() -> outcome<bool> {
    auto const group = signed_of(group_rid);
    auto const member = signed_of(member_rid);
    TIDEGATE_TRY(auto const place, group_.find(channel_, group, member));
    if (!place) {
      return false;
    }
    TIDEGATE_TRY_VOID(channel_.write(sql.remove_member, parameters(group, *place)));
    group_.erase(member);
    return true;
  });
}

auto directory_session::remove_members(std::uint64_t group_rid) -> outcome<void> {
  return tracking_failure([&]() -> outcome<void> {
    TIDEGATE_TRY_VOID(channel_.write(sql.remove_members, parameters(signed_of(group_rid))));
    group_ = {};
    return {};
  });
}

}  // namespace tidegate::store_postgres
