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
constexpr std::int32_t schema_version = 3;
constexpr std::int32_t version_without_marks = 2;
constexpr std::int32_t version_without_checksums = 1;
constexpr std::size_t checksum_octets = 4;
constexpr std::size_t mark_octets = 16;

/// The lowest octet comes first.
void append_number(std::string& out, std::uint64_t value, std::size_t octets) {
  for (std::size_t i = 0; i < octets; ++i) {
    out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
  }
}

[[nodiscard]] auto number_of(std::string_view octets) -> std::uint64_t {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < octets.size(); ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(octets[i])} << (8 * i);
  }
  return value;
}

[[nodiscard]] auto octets_of(idempotency::lookup_key const& key) -> std::string_view {
  return {reinterpret_cast<char const*>(key.octets.data()), key.octets.size()};
}

/// Content with a checksum behind it, which is of the lookup key too.
[[nodiscard]] auto with_checksum(std::string_view key, std::string_view content) -> std::string {
  auto const sum = crc32c(content) ^ std::rotl(crc32c(key), 1);
  std::string out;
  out.reserve(content.size() + checksum_octets);
  out.append(content);
  append_number(out, sum, checksum_octets);
  return out;
}

/// What stands before its checksum; nothing when that is of something else.
[[nodiscard]] auto without_checksum(std::string_view key, std::string_view octets)
    -> std::optional<std::string_view> {
  if (octets.size() < checksum_octets) {
    return std::nullopt;
  }
  auto const content = octets.substr(0, octets.size() - checksum_octets);
  if (number_of(octets.substr(content.size())) != (crc32c(content) ^ std::rotl(crc32c(key), 1))) {
    return std::nullopt;
  }
  return content;
}

[[nodiscard]] auto octets_of(sqlite3_value* value) -> std::string_view {
  auto const* const data = static_cast<char const*>(sqlite3_value_blob(value));
  return {data == nullptr ? "" : data, static_cast<std::size_t>(sqlite3_value_bytes(value))};
}

void return_octets(sqlite3_context* context, std::string_view octets) {
  sqlite3_result_blob64(context, octets.data(), octets.size(), SQLITE_TRANSIENT);
}

/// For SQL: `with_checksum(lookup, content)`, NULL for NULL.
void sql_with_checksum(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  if (sqlite3_value_type(arguments[1]) == SQLITE_NULL) {
    sqlite3_result_null(context);
    return;
  }
  return_octets(context, with_checksum(octets_of(arguments[0]), octets_of(arguments[1])));
}

/// For SQL: `with_mark(lookup, record)`, with a mark of no commit. What is damaged stays so.
void sql_with_mark(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  auto const lookup = octets_of(arguments[0]);
  auto const octets = octets_of(arguments[1]);
  auto const record = without_checksum(lookup, octets);
  return_octets(context, record
                             ? with_checksum(lookup, std::string(*record).append(mark_octets, '\0'))
                             : std::string(octets));
}

/// Adds to a file of an earlier version what its rows have not.
[[nodiscard]] auto migrate(connection& on, std::int64_t version) -> outcome<void> {
  auto const define = [&](char const* name, auto* function) {
    return sqlite3_create_function_v2(on.get(), name, 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                      nullptr, function, nullptr, nullptr, nullptr) == SQLITE_OK;
  };
  if (!define("with_checksum", sql_with_checksum) || !define("with_mark", sql_with_mark)) {
    return failure(on.error());
  }
  if (version == version_without_checksums) {
    TIDEGATE_TRY_VOID(
        on.execute("UPDATE record SET record = with_checksum(lookup, record),"
                   " response = with_checksum(lookup, response)"));
  }
  return on.execute("UPDATE record SET record = with_mark(lookup, record)");
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
  made.found_mark_ = marked;
  made.file_octets_max_ = file_octets_max;
  TIDEGATE_TRY(made.connection_, connection::open(file, sharing::exclusive));
  TIDEGATE_TRY_VOID(made.connection_.begin());
  TIDEGATE_TRY_VOID(made.prepare_tables(secret_digest));
  TIDEGATE_TRY_VOID(made.prepare_statements());
  return made;
}

auto key_file::load(std::function<outcome<void>(stored_row const&)> const& each) -> outcome<void> {
  TIDEGATE_TRY_VOID(scan(each));
  TIDEGATE_TRY_VOID(check_commits());
  TIDEGATE_TRY_VOID(commit());
  auto const& file = connection_.file();
  TIDEGATE_TRY(mark_, commit_mark::open(file, state_));
  mark_.write(state_);
  // The mark is written as a whole each time.
  files_ = {{.name = file, .grows = true},
            {.name = file + "-wal", .grows = true},
            {.name = commit_mark::name_of(file), .grows = false}};
  for (auto& watched : files_) {
    watched.was = look_at(watched.name).value_or(seen_file());
    watched.was.octets = watched.grows ? watched.was.octets : 0;
  }
  return connection_.limit_file(file_octets_max_);
}

auto key_file::prepare_statements() -> outcome<void> {
  TIDEGATE_TRY(begin_, connection_.prepare("BEGIN IMMEDIATE"));
  TIDEGATE_TRY(commit_, connection_.prepare("COMMIT"));
  TIDEGATE_TRY(count_, connection_.prepare("UPDATE store SET commits = ?, records = ?"));
  TIDEGATE_TRY(insert_, connection_.prepare(
                            "INSERT INTO record (lookup, record, response) VALUES (?, ?, ?)"));
  TIDEGATE_TRY(update_,
               connection_.prepare("UPDATE record SET record = ?, response = ? WHERE id = ?"));
  TIDEGATE_TRY(remove_, connection_.prepare("DELETE FROM record WHERE id = ?"));
  TIDEGATE_TRY(response_, connection_.prepare("SELECT response FROM record WHERE id = ?"));
  return {};
}

auto key_file::prepare_tables(std::string_view secret_digest) -> outcome<void> {
  TIDEGATE_TRY(auto const version,
               connection_.claim(application_id, schema_version, version_without_checksums,
                                 "store of idempotency keys"));
  if (version == 0 && found_mark_) {
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
  if (version < version_without_marks) {
    TIDEGATE_TRY_VOID(
        connection_.execute("CREATE TABLE store (id BLOB NOT NULL, commits INTEGER NOT NULL,"
                            " records INTEGER NOT NULL, secret BLOB)"));
    TIDEGATE_TRY_VOID(connection_.execute(
        "INSERT INTO store SELECT randomblob(16), 0, (SELECT count(*) FROM record), NULL"));
  }
  if (!is_new_ && version < schema_version) {
    TIDEGATE_TRY_VOID(migrate(connection_, version));
  }
  TIDEGATE_TRY_VOID(read_state());
  if (found_mark_ && found_mark_->store != state_.store) {
    return failure(damaged("not the store of " + connection_.file() +
                           ".commits: another file was put in its place"));
  }
  return check_secret(secret_digest);
}

auto key_file::check_secret(std::string_view secret_digest) -> outcome<void> {
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

auto key_file::check_commits() const -> outcome<void> {
  if (found_mark_ && found_mark_->commits > state_.commits) {
    return failure(damaged("changes are missing: it has had " +
                           std::to_string(found_mark_->commits) + " commits, and " +
                           std::to_string(state_.commits) +
                           " are there. The file or its log was damaged, shortened or is an old "
                           "copy: keys that were used would run again. Restore it, or remove " +
                           connection_.file() + ".commits to go on with what is left"));
  }
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
          name + ": was shortened while in use, from " + std::to_string(was.octets) + " bytes to " +
              std::to_string(now->octets) +
              ": keys that were used would run again after a restart. Restore it from a backup"});
    }
  }
  rows_added_ = 0;
  written_ = 0;
  is_marked_ = false;
  resetting const guard(begin_.get());
  TIDEGATE_TRY_VOID(connection_.step(begin_.get()));
  return {};
}

auto key_file::commit() -> outcome<void> {
  if (!is_marked_) {
    resetting const guard(count_.get());
    bind_value(count_.get(), 1, static_cast<std::int64_t>(state_.commits + 1));
    bind_value(count_.get(), 2, rows_ + rows_added_);
    TIDEGATE_TRY_VOID(connection_.step(count_.get()));
  }
  {
    resetting const guard(commit_.get());
    if (auto const done = connection_.step(commit_.get()); !done) {
      commit_failed_ = true;
      return failure(done.error());
    }
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

auto key_file::marked(std::string_view lookup, std::string_view record) -> std::string {
  is_marked_ = true;
  std::string content;
  content.reserve(record.size() + mark_octets);
  content.append(record);
  append_number(content, state_.commits + 1, 8);
  append_number(content, ++written_, 4);
  append_number(content, static_cast<std::uint64_t>(rows_ + rows_added_), 4);
  return with_checksum(lookup, content);
}

auto key_file::unmarked(std::string_view lookup, std::string_view octets)
    -> std::optional<marked_record> {
  auto const content = without_checksum(lookup, octets);
  if (!content || content->size() < mark_octets) {
    return std::nullopt;
  }
  auto const mark = content->substr(content->size() - mark_octets);
  return marked_record{
      content->substr(0, content->size() - mark_octets),
      {number_of(mark.substr(0, 8)), static_cast<std::uint32_t>(number_of(mark.substr(8, 4))),
       static_cast<std::uint32_t>(number_of(mark.substr(12, 4)))}};
}

auto key_file::insert(idempotency::lookup_key const& key, std::string_view record,
                      std::optional<std::string> const& response) -> outcome<std::int64_t> {
  auto const lookup = octets_of(key);
  ++rows_added_;
  auto const checked = marked(lookup, record);
  auto const checked_response =
      response ? std::optional(with_checksum(lookup, *response)) : std::nullopt;
  resetting const guard(insert_.get());
  bind_value(insert_.get(), 1, lookup);
  bind_value(insert_.get(), 2, checked);
  bind_value(insert_.get(), 3, checked_response);
  TIDEGATE_TRY_VOID(connection_.step(insert_.get()));
  return sqlite3_last_insert_rowid(connection_.get());
}

auto key_file::update(std::int64_t row, idempotency::lookup_key const& key, std::string_view record,
                      std::optional<std::string> const& response) -> outcome<void> {
  auto const lookup = octets_of(key);
  auto const checked = marked(lookup, record);
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
  is_marked_ = false;
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
  row_mark last;
  for (;; ++rows) {
    TIDEGATE_TRY(bool const there, connection_.step(all.get()));
    if (!there) {
      break;
    }
    auto const row = sqlite3_column_int64(all.get(), 0);
    auto const key = blob(all.get(), 1);
    auto const read = unmarked(key, blob(all.get(), 2));
    if (!read) {
      return failure(damaged("row " + std::to_string(row) + " is damaged"));
    }
    last = std::max(last, read->mark);
    TIDEGATE_TRY_VOID(each(
        {row, key, read->record, static_cast<std::uint32_t>(sqlite3_column_int64(all.get(), 3))}));
  }
  if (last.commits > state_.commits) {
    state_.commits = last.commits;
    rows_ = last.rows;
  }
  if (rows != rows_) {
    return failure(damaged("has " + std::to_string(rows) + " records where there should be " +
                           std::to_string(rows_)));
  }
  return {};
}

}  // namespace tidegate::store_sqlite
