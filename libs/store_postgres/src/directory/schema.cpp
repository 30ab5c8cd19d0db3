// SPDX-License-Identifier: Apache-2.0
#include "directory/schema.hpp"

#include "server_schema.hpp"

#include <tidegate/scim/index_key.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace tidegate::store_postgres {

using store::store_fault;

namespace {

/// How many resources one transaction reads while indexes are built.
constexpr std::int64_t build_rows = 2'000;
constexpr std::string_view unique_violation = "23505";

/// All values are in the first slot, and the one that sorts is in the second one, too.
[[nodiscard]] auto definition_of(scim::index_definition const& index) -> std::string {
  return key_definition(index, "values");
}

/// Whether the server keeps its keys unique. Ids have an index of their own, by the whole id.
[[nodiscard]] auto is_unique(stored_run const& wanted, scim::model_type const& type) -> bool {
  auto const& index = type.indexes[wanted.index];
  return index.unique && !wanted.sorts && index.name != "id";
}

struct stored_index {
  std::string name;
  bool sorts = false;
  std::int64_t slot = 0;
  std::string definition;
  bool complete = false;
};

[[nodiscard]] auto stored_indexes(connection& server, std::string const& type)
    -> outcome<std::vector<stored_index>> {
  TIDEGATE_TRY(auto const found, server.ask("SELECT name, sorts, slot, definition, complete"
                                            " FROM directory_index WHERE type = $1 ORDER BY slot",
                                            parameters(type)));
  std::vector<stored_index> all;
  for (int i = 0; i < found.size(); ++i) {
    all.push_back({std::string(found.octets(i, 0)), found.boolean(i, 1), found.number(i, 2),
                   std::string(found.octets(i, 3)), found.boolean(i, 4)});
  }
  return all;
}

[[nodiscard]] auto is_same(stored_run const& wanted, scim::model_type const& type,
                           stored_index const& stored) -> bool {
  auto const& index = type.indexes[wanted.index];
  return stored.complete && index.name == stored.name && wanted.sorts == stored.sorts &&
         is_unique(wanted, type) == (stored.slot >= unique_slot_min) &&
         definition_of(index) == stored.definition;
}

/// What has to be done for a type.
struct index_changes {
  std::vector<std::int64_t> gone;  // slots
  std::vector<stored_run> missing;
};

[[nodiscard]] auto changes_of(connection& server, scim::model_type const& type)
    -> outcome<index_changes> {
  TIDEGATE_TRY(auto const stored, stored_indexes(server, type.definition.type().name));
  index_changes changes{{}, stored_runs(type)};
  for (auto const& old : stored) {
    auto const same = std::find_if(changes.missing.begin(), changes.missing.end(),
                                   [&](stored_run const& w) { return is_same(w, type, old); });
    if (same != changes.missing.end()) {
      changes.missing.erase(same);
    } else {
      changes.gone.push_back(old.slot);
    }
  }
  return changes;
}

[[nodiscard]] auto parts_of(connection& server, std::string const& type)
    -> outcome<std::vector<std::int64_t>> {
  TIDEGATE_TRY(auto const found,
               server.ask("SELECT id FROM part WHERE type = $1", parameters(type)));
  std::vector<std::int64_t> parts;
  for (int i = 0; i < found.size(); ++i) {
    parts.push_back(found.number(i, 0));
  }
  return parts;
}

/// An index that is being built.
struct new_index {
  std::int64_t slot = 0;
  stored_run run;
};

/// What is said when two resources have a value that should be unique.
[[nodiscard]] auto not_unique(connection& server, scim::model_type const& type,
                              scim::index_definition const& index, std::int64_t index_id,
                              std::string const& key, std::int64_t rid) -> store::store_error {
  auto const ids = server.ask(
      "SELECT id FROM resource WHERE rid = $3 OR rid IN"
      " (SELECT rid FROM entry WHERE index_id = $1 AND key = $2) ORDER BY rid LIMIT 2",
      parameters(index_id, key, rid));
  if (!ids || ids->size() < 2) {
    return server.error(store_fault::unavailable, ids ? "a resource is gone" : ids.error().text);
  }
  return server.error(
      store_fault::damaged,
      "two resources of the type \"" + type.definition.type().name + "\" have the same \"" +
          index.path.leaf()->name + "\", which the schema says is unique: their ids are \"" +
          std::string(ids->octets(0, 0)) + "\" and \"" + std::string(ids->octets(1, 0)) +
          "\". Start with a schema in which it is not unique, change one of them, and start again");
}

[[nodiscard]] auto build_indexes(connection& server, scim::model_type const& type,
                                 std::int64_t part, std::vector<new_index> const& made)
    -> outcome<void> {
  auto from = rid_base(part);
  for (bool more = true; more;) {
    TIDEGATE_TRY(auto const found,
                 server.ask("SELECT rid, text FROM resource WHERE rid > $1 AND rid <= $2"
                            " ORDER BY rid LIMIT $3",
                            parameters(from, rid_end(part), build_rows)));
    more = found.size() == build_rows;
    std::vector<std::int64_t> indexes;
    std::vector<std::string> keys;
    std::vector<std::int64_t> rids;
    std::vector<std::size_t> numbers;  // of their indexes
    for (int i = 0; i < found.size(); ++i) {
      from = found.number(i, 0);
      TIDEGATE_TRY(auto const resource, parse_stored(server.name(), from, found.octets(i, 1)));
      for (auto& entry : index_entries(type, resource)) {
        for (auto const& index : made) {
          if (index.run.index == entry.index && (!index.run.sorts || entry.sorts)) {
            indexes.push_back(part << slot_shift | index.slot);
            keys.push_back(entry.key);
            rids.push_back(from);
            numbers.push_back(entry.index);
          }
        }
      }
    }
    auto inserted = server.ask(
        "INSERT INTO entry (index_id, key, rid)"
        " SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bigint[])",
        parameters(indexes, std::vector<std::string_view>(keys.begin(), keys.end()), rids));
    if (!inserted && server.sqlstate() == unique_violation) {
      // One after the other, to say which.
      for (std::size_t i = 0; i < keys.size(); ++i) {
        auto one = server.ask("INSERT INTO entry (index_id, key, rid) VALUES ($1, $2, $3)",
                              parameters(indexes[i], keys[i], rids[i]));
        if (!one && server.sqlstate() == unique_violation) {
          return failure(
              not_unique(server, type, type.indexes[numbers[i]], indexes[i], keys[i], rids[i]));
        }
        TIDEGATE_TRY_VOID(std::move(one));
      }
    }
    TIDEGATE_TRY_VOID(std::move(inserted));
  }
  return {};
}

/// A change of indexes that is seen by all others.
[[nodiscard]] auto begin_generation(connection& server) -> outcome<void> {
  TIDEGATE_TRY_VOID(server.send("BEGIN"));
  return server.send("UPDATE directory_state SET generation = generation + 1");
}

[[nodiscard]] auto change_indexes(connection& server, scim::model_type const& type,
                                  index_changes const& changes) -> outcome<void> {
  auto const& name = type.definition.type().name;
  TIDEGATE_TRY_VOID(begin_generation(server));
  TIDEGATE_TRY_VOID(
      server.send("UPDATE directory_index SET complete = false"
                  " WHERE type = $1 AND slot = ANY ($2)",
                  parameters(name, changes.gone)));
  TIDEGATE_TRY_VOID(server.ask("COMMIT"));
  TIDEGATE_TRY(auto const parts, parts_of(server, name));
  for (auto const slot : changes.gone) {
    for (auto const part : parts) {
      TIDEGATE_TRY_VOID(server.ask("DELETE FROM entry WHERE index_id = $1",
                                   parameters(part << slot_shift | slot)));
    }
    TIDEGATE_TRY_VOID(server.ask("DELETE FROM directory_index WHERE type = $1 AND slot = $2",
                                 parameters(name, slot)));
  }

  TIDEGATE_TRY(auto const stored, stored_indexes(server, name));
  std::set<std::int64_t> taken;
  for (auto const& index : stored) {
    taken.insert(index.slot);
  }
  std::vector<new_index> made;
  for (auto const& wanted : changes.missing) {
    bool const unique = is_unique(wanted, type);
    auto slot = unique ? unique_slot_min : 0;
    while (taken.contains(slot)) {
      ++slot;
    }
    if (slot > (unique ? slot_max : unique_slot_min - 1)) {
      return failure(server.error(store_fault::full, "too many indexes of " + name));
    }
    taken.insert(slot);
    auto const& index = type.indexes[wanted.index];
    TIDEGATE_TRY_VOID(
        server.ask("INSERT INTO directory_index (type, name, sorts, slot, definition, complete)"
                   " VALUES ($1, $2, $3, $4, $5, false)",
                   parameters(name, index.name, wanted.sorts, slot, definition_of(index))));
    made.push_back({slot, wanted});
  }
  for (auto const part : parts) {
    TIDEGATE_TRY_VOID(build_indexes(server, type, part, made));
  }
  TIDEGATE_TRY_VOID(begin_generation(server));
  TIDEGATE_TRY_VOID(
      server.send("UPDATE directory_index SET complete = true WHERE type = $1", parameters(name)));
  TIDEGATE_TRY_VOID(server.ask("COMMIT"));
  return {};
}

}  // namespace

auto index_lock() -> std::int64_t {
  static auto const key = lock_key("directory indexes");
  return key;
}

auto update_indexes(connection& server, scim::model const& model) -> outcome<void> {
  bool locked = false;
  for (auto const& type : model.types()) {
    TIDEGATE_TRY(auto changes, changes_of(server, type));
    if (changes.gone.empty() && changes.missing.empty()) {
      continue;
    }
    if (!locked) {
      TIDEGATE_TRY_VOID(server.ask("SELECT pg_advisory_lock($1)", parameters(index_lock())));
      locked = true;
      TIDEGATE_TRY(changes, changes_of(server, type));  // another gateway may have done it
    }
    if (!changes.gone.empty() || !changes.missing.empty()) {
      TIDEGATE_TRY_VOID(change_indexes(server, type, changes));
    }
  }
  if (locked) {
    TIDEGATE_TRY_VOID(server.ask("SELECT pg_advisory_unlock($1)", parameters(index_lock())));
  }
  return {};
}

auto load_indexes(connection& server, scim::model const& model) -> outcome<directory_indexes> {
  TIDEGATE_TRY(auto const state, server.ask("SELECT generation FROM directory_state"));
  directory_indexes all{state.number(0, 0), {}, true};
  for (auto const& type : model.types()) {
    TIDEGATE_TRY(auto const stored, stored_indexes(server, type.definition.type().name));
    index_slots slots;
    for (auto const& wanted : stored_runs(type)) {
      auto const found = std::find_if(stored.begin(), stored.end(),
                                      [&](auto const& s) { return is_same(wanted, type, s); });
      if (found == stored.end()) {
        return failure(server.error(store_fault::unavailable, other_indexes));
      }
      if (wanted.sorts) {
        slots.sorted.back() = found->slot;
      } else {
        slots.values.push_back(found->slot);
        slots.sorted.push_back(found->slot);
      }
    }
    all.are_all = all.are_all && stored.size() == stored_runs(type).size();
    all.types.push_back(std::move(slots));
  }
  return all;
}

}  // namespace tidegate::store_postgres
