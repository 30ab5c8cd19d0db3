// SPDX-License-Identifier: Apache-2.0
#include "keys/key_file.hpp"

#include "crc32c.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace tidegate::store_sqlite {

using store::store_error;
using store::store_fault;

namespace {

constexpr std::int32_t application_id = 0x7469'6467;  // "tidg"
constexpr std::int32_t schema_version = 2;
constexpr std::int32_t version_without_checksums = 1;
constexpr std::size_t checksum_octets = 4;

[[nodiscard]] auto octets_of(idempotency::lookup_key const& key) -> std::string_view {
  return {reinterpret_cast<char const*>(key.octets.data()), key.octets.size()};
}

/// Content with a checksum behind it, which is of the lookup key too.
[[nodiscard]] auto with_checksum(std::string_view key, std::string_view content) -> std::string {
  auto const sum = crc32c(content) ^ std::rotl(crc32c(key), 1);
  std::string out;
  out.reserve(content.size() + checksum_octets);
  out.append(content);
  for (std::size_t i = 0; i < checksum_octets; ++i) {
    out.push_back(static_cast<char>((sum >> (8 * i)) & 0xff));
  }
  return out;
}

/// What stands before its checksum; nothing when that is of something else.
[[nodiscard]] auto without_checksum(std::string_view key, std::string_view octets)
    -> std::optional<std::string_view> {
  if (octets.size() < checksum_octets) {
    return std::nullopt;
  }
  auto const content = octets.substr(0, octets.size() - checksum_octets);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < checksum_octets; ++i) {
    sum |= std::uint32_t{static_cast<unsigned char>(octets[content.size() + i])} << (8 * i);
  }
  if (sum != (crc32c(content) ^ std::rotl(crc32c(key), 1))) {
    return std::nullopt;
  }
  return content;
}

/// For SQL: `with_checksum(lookup, content)`, NULL for NULL.
void sql_with_checksum(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  auto const octets = [](sqlite3_value* value) {
    auto const* const data = static_cast<char const*>(sqlite3_value_blob(value));
    return std::string_view(data == nullptr ? "" : data,
                            static_cast<std::size_t>(sqlite3_value_bytes(value)));
  };
  if (sqlite3_value_type(arguments[1]) == SQLITE_NULL) {
    sqlite3_result_null(context);
    return;
  }
  auto const made = with_checksum(octets(arguments[0]), octets(arguments[1]));
  sqlite3_result_blob64(context, made.data(), made.size(), SQLITE_TRANSIENT);
}

/// A file of the version before checksums gets them.
[[nodiscard]] auto add_checksums(connection& on) -> outcome<void> {
  if (sqlite3_create_function_v2(on.get(), "with_checksum", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                 nullptr, sql_with_checksum, nullptr, nullptr,
                                 nullptr) != SQLITE_OK) {
    return failure(on.error());
  }
  return on.execute(
      "UPDATE record SET record = with_checksum(lookup, record),"
      " response = with_checksum(lookup, response)");
}

}  // namespace

auto key_file::damaged(std::string const& what) const -> store_error {
  return {store_fault::damaged, connection_.file() + ": " + what};
}

auto key_file::look_at(std::string const& name) -> std::optional<seen_file> {
  struct stat is {};
  if (::stat(name.c_str(), &is) != 0) {
    return std::nullopt;
  }
  return seen_file{is.st_dev, is.st_ino, is.st_size};
}

void key_file::note_sizes() {
  for (auto& file : files_) {
    if (auto const now = file.grows ? look_at(file.name) : std::nullopt) {
      file.was.octets = std::max(file.was.octets, now->octets);
    }
  }
}

auto key_file::open(std::string const& file, std::size_t file_octets_max,
                    std::string_view secret_digest) -> outcome<key_file> {
  TIDEGATE_TRY(auto const marked, commit_mark::read(file));
  if (marked && !look_at(file)) {
    return failure(store_error{
        store_fault::damaged,
        file + ": the file is missing, and its mark " + file +
            ".commits is there: restore it, or remove the mark to begin with an empty store"});
  }
  key_file made;
  TIDEGATE_TRY(made.connection_, connection::open(file, sharing::exclusive));
  TIDEGATE_TRY_VOID(made.connection_.begin());
  TIDEGATE_TRY_VOID(made.prepare_tables(marked, secret_digest));
  TIDEGATE_TRY(made.count_, made.connection_.prepare("UPDATE store SET commits = ?, records = ?"));
  TIDEGATE_TRY_VOID(made.commit());
  TIDEGATE_TRY(made.mark_, commit_mark::open(file, made.state_));
  made.mark_.write(made.state_);
  // The mark is written as a whole each time.
  made.files_ = {{.name = file, .grows = true},
                 {.name = file + "-wal", .grows = true},
                 {.name = commit_mark::name_of(file), .grows = false}};
  for (auto& each : made.files_) {
    each.was = look_at(each.name).value_or(seen_file());
    each.was.octets = each.grows ? each.was.octets : 0;
  }
  TIDEGATE_TRY_VOID(made.connection_.limit_file(file_octets_max));
  TIDEGATE_TRY(made.insert_, made.connection_.prepare(
                                 "INSERT INTO record (lookup, record, response) VALUES (?, ?, ?)"));
  TIDEGATE_TRY(made.update_,
               made.connection_.prepare("UPDATE record SET record = ?, response = ? WHERE id = ?"));
  TIDEGATE_TRY(made.remove_, made.connection_.prepare("DELETE FROM record WHERE id = ?"));
  TIDEGATE_TRY(made.response_,
               made.connection_.prepare("SELECT response FROM record WHERE id = ?"));
  return made;
}

auto key_file::prepare_tables(std::optional<commit_mark::content> const& marked,
                              std::string_view secret_digest) -> outcome<void> {
  TIDEGATE_TRY(auto const version,
               connection_.claim(application_id, schema_version, version_without_checksums,
                                 "store of idempotency keys"));
  if (version == 0 && marked) {
    return failure(
        damaged("changes are missing: the file is empty, and its mark says that it was not"));
  }
  is_new_ = version == 0;
  if (is_new_) {
    // Without an index by lookup key: it is in memory, and keys in random order would make each
    // transaction write many pages.
    TIDEGATE_TRY_VOID(
        connection_.execute("CREATE TABLE record (id INTEGER PRIMARY KEY, lookup BLOB NOT NULL,"
                            " record BLOB NOT NULL, response BLOB)"));
  }
  if (version < schema_version) {
    TIDEGATE_TRY_VOID(
        connection_.execute("CREATE TABLE store (id BLOB NOT NULL, commits INTEGER NOT NULL,"
                            " records INTEGER NOT NULL, secret BLOB)"));
    TIDEGATE_TRY_VOID(connection_.execute(
        "INSERT INTO store SELECT randomblob(16), 0, (SELECT count(*) FROM record), NULL"));
    if (version == version_without_checksums) {
      TIDEGATE_TRY_VOID(add_checksums(connection_));
    }
  }
  TIDEGATE_TRY_VOID(read_state());
  if (marked && marked->store != state_.store) {
    return failure(damaged("not the store of " + connection_.file() +
                           ".commits: another file was put in its place"));
  }
  if (marked && marked->commits > state_.commits) {
    return failure(damaged("changes are missing: it has had " + std::to_string(marked->commits) +
                           " commits, and " + std::to_string(state_.commits) +
                           " are there. The file or its log was damaged, shortened or is an old "
                           "copy: keys that were used would run again. Restore it, or remove " +
                           connection_.file() + ".commits to go on with what is left"));
  }
  if (secret_digest.empty()) {
    return {};
  }
  TIDEGATE_TRY(auto const asked, connection_.prepare("SELECT secret FROM store"));
  TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
  if (there && sqlite3_column_type(asked.get(), 0) != SQLITE_NULL) {
    if (blob(asked.get(), 0) != secret_digest) {
      return failure(damaged(
          "was made with another secret, so that no key in it would be found: restore the secrets "
          "file that it was made with"));
    }
    return {};
  }
  TIDEGATE_TRY(auto const set, connection_.prepare("UPDATE store SET secret = ?"));
  bind_value(set.get(), 1, secret_digest);
  TIDEGATE_TRY_VOID(connection_.step(set.get()));
  return {};
}

auto key_file::read_state() -> outcome<void> {
  TIDEGATE_TRY(auto const asked, connection_.prepare("SELECT id, commits, records FROM store"));
  TIDEGATE_TRY(bool const there, connection_.step(asked.get()));
  if (!there || blob(asked.get(), 0).size() != 16 || sqlite3_column_int64(asked.get(), 1) < 0) {
    return failure(damaged("says nothing of its commits"));
  }
  state_ = {std::string(blob(asked.get(), 0)),
            static_cast<std::uint64_t>(sqlite3_column_int64(asked.get(), 1))};
  rows_ = sqlite3_column_int64(asked.get(), 2);
  return {};
}

auto key_file::begin() -> outcome<void> {
  for (auto const& [name, was, grows] : files_) {
    auto const now = look_at(name);
    if (!now || now->device != was.device || now->inode != was.inode) {
      return failure(store_error{
          store_fault::damaged,
          name + ": was deleted or replaced while in use, so nothing that is written to it would "
                 "be found again: put it back, or restart"});
    }
    if (now->octets < was.octets) {
      return failure(store_error{
          store_fault::damaged,
          name + ": was shortened while in use, from " + std::to_string(was.octets) +
              " octets to " + std::to_string(now->octets) +
              ": keys that were used would run again after a restart. Restore it from a backup"});
    }
  }
  rows_added_ = 0;
  return connection_.begin();
}

auto key_file::commit() -> outcome<void> {
  {
    resetting const guard(count_.get());
    bind_value(count_.get(), 1, static_cast<std::int64_t>(state_.commits + 1));
    bind_value(count_.get(), 2, rows_ + rows_added_);
    TIDEGATE_TRY_VOID(connection_.step(count_.get()));
  }
  if (auto const done = connection_.commit(); !done) {
    commit_failed_ = true;
    return done;
  }
  commit_failed_ = false;
  ++state_.commits;
  rows_ += std::exchange(rows_added_, 0);
  mark_.write(state_);
  note_sizes();
  return {};
}

void key_file::rollback() noexcept {
  connection_.rollback();
  rows_added_ = 0;
}

auto key_file::insert(idempotency::lookup_key const& key, std::string_view record,
                      std::optional<std::string> const& response) -> outcome<std::int64_t> {
  auto const lookup = octets_of(key);
  auto const checked = with_checksum(lookup, record);
  auto const checked_response =
      response ? std::optional(with_checksum(lookup, *response)) : std::nullopt;
  resetting const guard(insert_.get());
  bind_value(insert_.get(), 1, lookup);
  bind_value(insert_.get(), 2, checked);
  bind_value(insert_.get(), 3, checked_response);
  TIDEGATE_TRY_VOID(connection_.step(insert_.get()));
  ++rows_added_;
  return sqlite3_last_insert_rowid(connection_.get());
}

auto key_file::update(std::int64_t row, idempotency::lookup_key const& key, std::string_view record,
                      std::optional<std::string> const& response) -> outcome<void> {
  auto const lookup = octets_of(key);
  auto const checked = with_checksum(lookup, record);
  auto const checked_response =
      response ? std::optional(with_checksum(lookup, *response)) : std::nullopt;
  resetting const guard(update_.get());
  bind_value(update_.get(), 1, checked);
  bind_value(update_.get(), 2, checked_response);
  bind_value(update_.get(), 3, row);
  TIDEGATE_TRY_VOID(connection_.step(update_.get()));
  return {};
}

auto key_file::remove(std::int64_t row) -> outcome<void> {
  resetting const guard(remove_.get());
  bind_value(remove_.get(), 1, row);
  TIDEGATE_TRY_VOID(connection_.step(remove_.get()));
  --rows_added_;
  return {};
}

auto key_file::response(std::int64_t row, idempotency::lookup_key const& key)
    -> outcome<std::optional<std::string>> {
  resetting const guard(response_.get());
  bind_value(response_.get(), 1, row);
  TIDEGATE_TRY(bool const there, connection_.step(response_.get()));
  if (!there || sqlite3_column_type(response_.get(), 0) == SQLITE_NULL) {
    return std::nullopt;
  }
  auto const content = without_checksum(octets_of(key), blob(response_.get(), 0));
  if (!content) {
    return failure(damaged("row " + std::to_string(row) + " has a damaged response"));
  }
  return std::string(*content);
}

auto key_file::scan(std::function<outcome<void>(stored_row const&)> const& each) -> outcome<void> {
  TIDEGATE_TRY(auto const all,
               connection_.prepare("SELECT id, lookup, record, coalesce(length(response), 0)"
                                   " FROM record ORDER BY id"));
  std::int64_t rows = 0;
  for (;; ++rows) {
    TIDEGATE_TRY(bool const there, connection_.step(all.get()));
    if (!there) {
      break;
    }
    auto const row = sqlite3_column_int64(all.get(), 0);
    auto const key = blob(all.get(), 1);
    auto const record = without_checksum(key, blob(all.get(), 2));
    if (!record) {
      return failure(damaged("row " + std::to_string(row) + " is damaged"));
    }
    TIDEGATE_TRY_VOID(
        each({row, key, *record, static_cast<std::uint32_t>(sqlite3_column_int64(all.get(), 3))}));
  }
  if (rows != rows_) {
    return failure(damaged("has " + std::to_string(rows) + " records where there should be " +
                           std::to_string(rows_)));
  }
  return {};
}

}  // namespace tidegate::store_sqlite
