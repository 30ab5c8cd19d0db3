// SPDX-License-Identifier: Apache-2.0
#include "directory/schema.hpp"

#include <algorithm>
#include <utility>

namespace tidegate::store_sqlite {

using store::store_error;
using store::store_fault;

namespace {

constexpr std::int32_t application_id = 0x7469'6464;  // "tidd"
constexpr std::int32_t schema_version = 3;
constexpr std::int32_t oldest_version = 1;
/// How many rows of a table one transaction changes while indexes are built.
constexpr std::int64_t build_rows = 10'000;

constexpr char const* tables =
    "CREATE TABLE part (id INTEGER PRIMARY KEY, tenant BLOB NOT NULL, type BLOB NOT NULL,"
    " last_rid INTEGER NOT NULL, count INTEGER NOT NULL, UNIQUE (tenant, type));"
    "CREATE TABLE resource (rid INTEGER PRIMARY KEY, id BLOB NOT NULL, version INTEGER NOT NULL,"
    " in_groups INTEGER NOT NULL, text BLOB NOT NULL);"
    "CREATE TABLE block (id INTEGER PRIMARY KEY, count INTEGER NOT NULL);"
    "CREATE TABLE index_name (id INTEGER PRIMARY KEY, part INTEGER NOT NULL, name BLOB NOT NULL,"
    " sorts INTEGER NOT NULL, definition BLOB NOT NULL, complete INTEGER NOT NULL,"
    " UNIQUE (part, name, sorts));"
    "CREATE TABLE entry (index_id INTEGER NOT NULL, key BLOB NOT NULL, rid INTEGER NOT NULL,"
    " PRIMARY KEY (index_id, key, rid)) WITHOUT ROWID;"
    "CREATE TABLE member (group_rid INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " member_rid INTEGER NOT NULL, member_id BLOB NOT NULL, display BLOB NOT NULL,"
    " PRIMARY KEY (group_rid, seq)) WITHOUT ROWID;"
    "CREATE UNIQUE INDEX member_of ON member (member_rid, group_rid)";

/// The value that sorts is in an index of its own, where there may be several.
[[nodiscard]] auto definition_of(scim::index_definition const& index, bool sorts) -> std::string {
  return key_definition(index, sorts ? "values" : "other values");
}

struct stored_index {
  std::int64_t id = 0;
  std::string name;
  bool sorts = false;
  std::string definition;
  bool complete = false;
};

[[nodiscard]] auto stored_indexes(connection& file, std::int64_t part)
    -> outcome<std::vector<stored_index>> {
  TIDEGATE_TRY(auto const asked,
               file.prepare("SELECT id, name, sorts, definition, complete FROM index_name"
                            " WHERE part = ?",
                            part));
  std::vector<stored_index> all;
  for (;;) {
    TIDEGATE_TRY(bool const there, file.step(asked.get()));
    if (!there) {
      return all;
    }
    all.push_back({sqlite3_column_int64(asked.get(), 0), std::string(blob(asked.get(), 1)),
                   sqlite3_column_int(asked.get(), 2) != 0, std::string(blob(asked.get(), 3)),
                   sqlite3_column_int(asked.get(), 4) != 0});
  }
}

[[nodiscard]] auto add_index(connection& file, std::int64_t part,
                             scim::index_definition const& index, bool sorts, bool complete)
    -> outcome<std::int64_t> {
  auto const definition = definition_of(index, sorts);
  TIDEGATE_TRY(auto const added,
               file.prepare("INSERT INTO index_name (part, name, sorts, definition, complete)"
                            " VALUES (?, ?, ?, ?, ?)",
                            part, index.name, sorts, definition, complete));
  TIDEGATE_TRY_VOID(file.step(added.get()));
  return sqlite3_last_insert_rowid(file.get());
}

/// Takes an index out, a bounded number of rows in each transaction, and its name at last.
[[nodiscard]] auto drop_index(connection& file, std::int64_t id) -> outcome<void> {
  TIDEGATE_TRY(auto const last, file.prepare("SELECT key, rid FROM entry WHERE index_id = ?1"
                                             " ORDER BY key, rid LIMIT 1 OFFSET ?2"));
  TIDEGATE_TRY(auto const some, file.prepare("DELETE FROM entry WHERE index_id = ?1"
                                             " AND (key, rid) <= (?2, ?3)"));
  TIDEGATE_TRY(auto const rest, file.prepare("DELETE FROM entry WHERE index_id = ?1", id));
  TIDEGATE_TRY(auto const name, file.prepare("DELETE FROM index_name WHERE id = ?1", id));
  // A start after a crash that wants the index must not take the rest of it for all
  // of it.
  TIDEGATE_TRY(auto const mark,
               file.prepare("UPDATE index_name SET complete = 0 WHERE id = ?1 AND complete = 1"));
  for (bool more = true; more;) {
    TIDEGATE_TRY_VOID(file.begin());
    {
      resetting const guard(mark.get());
      bind_values(mark.get(), id);
      TIDEGATE_TRY_VOID(file.step(mark.get()));
    }
    std::string key;
    std::int64_t rid = 0;
    {
      resetting const guard(last.get());
      bind_values(last.get(), id, build_rows);
      TIDEGATE_TRY(more, file.step(last.get()));
      if (more) {
        key = blob(last.get(), 0);
        rid = sqlite3_column_int64(last.get(), 1);
      }
    }
    if (more) {
      resetting const guard(some.get());
      bind_values(some.get(), id, key, rid);
      TIDEGATE_TRY_VOID(file.step(some.get()));
    } else {
      TIDEGATE_TRY_VOID(file.step(rest.get()));
      TIDEGATE_TRY_VOID(file.step(name.get()));
    }
    TIDEGATE_TRY_VOID(file.commit());
  }
  return {};
}

/// An index that is being built.
struct new_index {
  std::int64_t id = 0;
  stored_run run;
};

[[nodiscard]] auto build_indexes(connection& file, scim::model_type const& type, std::int64_t part,
                                 std::vector<new_index> const& made) -> outcome<void> {
  TIDEGATE_TRY(auto const read, file.prepare("SELECT rid, text FROM resource"
                                             " WHERE rid > ? AND rid <= ? ORDER BY rid LIMIT ?"));
  TIDEGATE_TRY(auto const add,
               file.prepare("INSERT INTO entry (index_id, key, rid) VALUES (?, ?, ?)"));
  auto from = rid_base(part);
  for (bool more = true; more;) {
    TIDEGATE_TRY_VOID(file.begin());
    resetting const guard(read.get());
    bind_values(read.get(), from, rid_end(part), build_rows);
    std::int64_t rows = 0;
    for (;; ++rows) {
      TIDEGATE_TRY(bool const there, file.step(read.get()));
      if (!there) {
        break;
      }
      from = sqlite3_column_int64(read.get(), 0);
      TIDEGATE_TRY(auto const resource, parse_stored(file.file(), from, blob(read.get(), 1)));
      for (auto const& entry : index_entries(type, resource)) {
        for (auto const& index : made) {
          bool const is_of_other_half =
              is_multi_valued(type.indexes[entry.index]) && index.run.sorts != entry.sorts;
          if (index.run.index != entry.index || is_of_other_half) {
            continue;
          }
          resetting const added(add.get());
          bind_values(add.get(), index.id, entry.key, from);
          TIDEGATE_TRY_VOID(file.step(add.get()));
        }
      }
    }
    more = rows == build_rows;
    if (!more) {
      TIDEGATE_TRY(auto const done,
                   file.prepare("UPDATE index_name SET complete = 1 WHERE part = ?", part));
      TIDEGATE_TRY_VOID(file.step(done.get()));
    }
    sqlite3_reset(read.get());
    TIDEGATE_TRY_VOID(file.commit());
  }
  return {};
}

/// Makes the indexes of a part what its type says. What was begun and not ended begins again.
[[nodiscard]] auto update_indexes(connection& file, scim::model_type const& type, std::int64_t part)
    -> outcome<void> {
  TIDEGATE_TRY(auto const stored, stored_indexes(file, part));
  auto missing = stored_runs(type);
  for (auto const& old : stored) {
    auto const same = std::find_if(missing.begin(), missing.end(), [&](stored_run const& w) {
      auto const& index = type.indexes[w.index];
      return old.complete && index.name == old.name && w.sorts == old.sorts &&
             definition_of(index, w.sorts) == old.definition;
    });
    if (same != missing.end()) {
      missing.erase(same);
    } else {
      TIDEGATE_TRY_VOID(drop_index(file, old.id));
    }
  }
  if (missing.empty()) {
    return {};
  }
  std::vector<new_index> made;
  TIDEGATE_TRY_VOID(file.begin());
  for (auto const& w : missing) {
    TIDEGATE_TRY(auto const id, add_index(file, part, type.indexes[w.index], w.sorts, false));
    made.push_back({id, w});
  }
  TIDEGATE_TRY_VOID(file.commit());
  return build_indexes(file, type, part, made);
}

}  // namespace

auto prepare_directory(connection& file, scim::model const& model) -> outcome<void> {
  TIDEGATE_TRY_VOID(file.begin());
  TIDEGATE_TRY(auto const version,
               file.claim(application_id, schema_version, oldest_version, "directory"));
  if (version == 0) {
    TIDEGATE_TRY_VOID(file.execute(tables));
  }
  TIDEGATE_TRY_VOID(file.commit());

  std::vector<std::pair<std::int64_t, std::string>> parts;
  TIDEGATE_TRY(auto const all, file.prepare("SELECT id, type FROM part"));
  for (;;) {
    TIDEGATE_TRY(bool const there, file.step(all.get()));
    if (!there) {
      break;
    }
    parts.emplace_back(sqlite3_column_int64(all.get(), 0), blob(all.get(), 1));
  }
  sqlite3_reset(all.get());
  for (auto const& [part, name] : parts) {
    // What is of a type that is not there any more stays as it is.
    if (auto const* const type = model.find(name)) {
      TIDEGATE_TRY_VOID(update_indexes(file, *type, part));
    }
  }
  return {};
}

auto check_directory(connection& file) -> outcome<void> {
  TIDEGATE_TRY(auto const id, file.number("PRAGMA application_id"));
  if (id != application_id) {
    return failure(
        store_error{store_fault::damaged, file.file() + ": is not a directory of SCIM resources"});
  }
  return {};
}

auto mark_directory(connection& file) -> outcome<void> {
  return file.execute(("PRAGMA user_version=" + std::to_string(schema_version)).c_str());
}

auto load_part(connection& file, std::int64_t id, part_size size, scim::model_type const& type)
    -> outcome<directory_part> {
  directory_part part;
  part.id = id;
  part.size = size;
  TIDEGATE_TRY(auto const stored, stored_indexes(file, part.id));
  auto const id_of = [&](std::string const& name, bool sorts) -> std::int64_t {
    for (auto const& index : stored) {
      if (index.name == name && index.sorts == sorts) {
        return index.id;
      }
    }
    return 0;
  };
  for (auto const& index : type.indexes) {
    part.index_ids.push_back(id_of(index.name, false));
    part.sort_ids.push_back(is_multi_valued(index) ? id_of(index.name, true)
                                                   : part.index_ids.back());
    if (part.index_ids.back() == 0 || part.sort_ids.back() == 0) {
      return failure(
          store_error{store_fault::damaged, file.file() + ": has no index of " + index.name});
    }
  }
  return part;
}

auto make_part(connection& file, std::string_view tenant, scim::model_type const& type)
    -> outcome<directory_part> {
  TIDEGATE_TRY(auto const added, file.prepare("INSERT INTO part (tenant, type, last_rid, count)"
                                              " VALUES (?, ?, 0, 0)",
                                              tenant, type.definition.type().name));
  TIDEGATE_TRY_VOID(file.step(added.get()));
  directory_part part;
  part.id = sqlite3_last_insert_rowid(file.get());
  if (part.id > part_max) {
    return failure(store_error{store_fault::full, file.file() + ": has too many tenants"});
  }
  part.size.last_rid = rid_base(part.id);
  for (auto const& index : type.indexes) {
    TIDEGATE_TRY(auto const id, add_index(file, part.id, index, false, true));
    part.index_ids.push_back(id);
    part.sort_ids.push_back(id);
    if (is_multi_valued(index)) {
      TIDEGATE_TRY(part.sort_ids.back(), add_index(file, part.id, index, true, true));
    }
  }
  return part;
}

}  // namespace tidegate::store_sqlite
