// SPDX-License-Identifier: Apache-2.0
#include "directory/rows.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace tidegate::store_sqlite {

namespace {

/// As many steps of SQLite's machine as a rid takes at most, unless indexes have to be read for
/// others too.
constexpr std::int64_t steps_of_rid = 12;
constexpr int steps_between = 1000;

/// Stops a statement when a limit is reached. At most one at a time on a connection.
class interrupter {
 public:
  interrupter(sqlite3* connection, std::function<bool()> const& stop) : connection_(connection) {
    sqlite3_progress_handler(
        connection_, steps_between,
        [](void* context) {
          auto const& asked = *static_cast<std::function<bool()> const*>(context);
          return asked && asked() ? 1 : 0;
        },
        const_cast<std::function<bool()>*>(&stop));
  }
  ~interrupter() { sqlite3_progress_handler(connection_, 0, nullptr, nullptr); }
  interrupter(interrupter const&) = delete;
  auto operator=(interrupter const&) -> interrupter& = delete;

 private:
  sqlite3* connection_;
};

}  // namespace

auto rids_query(scim::filter_sql const& condition) -> std::string {
  return condition.rids.empty()
             ? "SELECT rid FROM resource WHERE rid >= ?1 AND rid <= ?2 AND " + condition.condition
             : condition.rids;
}

// ---- rows ----

auto directory_rows::read(row_range const& range, row_visitor& to) -> outcome<void> {
  visitor_ = &to;
  switch (range.path) {
    case access_path::by_rid: return read_by_rid(range);
    case access_path::by_key: return read_by_key(range);
    case access_path::by_key_among: return read_among(range);
    case access_path::by_equal_key: TIDEGATE_TRY_VOID(read_equal(range)); return {};
    case access_path::by_rids: break;
  }
  for (auto const rid : range.rids) {
    TIDEGATE_TRY(auto const then, look_up(rid, {}));
    if (then == next::stop) {
      break;
    }
  }
  return {};
}

auto directory_rows::read_by_rid(row_range range) -> outcome<void> {
  if (range.skip > 0) {
    TIDEGATE_TRY_VOID(skip_rids(range));
  }
  TIDEGATE_TRY(auto const asked, statements_.borrow(range.up ? sql.rids_up : sql.rids_down,
                                                    range.rid_min, range.rid_max));
  TIDEGATE_TRY_VOID(run(asked.get()));
  return {};
}

auto directory_rows::read_by_key(row_range range) -> outcome<void> {
  if (range.skip > 0) {
    TIDEGATE_TRY_VOID(skip_keys(range));
  }
  // First the rest of the key it begins at, then the keys behind it: to compare keys and rids in
  // one statement would cost something for each row.
  if (!range.is_from_start()) {
    constexpr auto end = std::numeric_limits<std::int64_t>::max();
    auto rest = range;
    rest.rid_min = range.up ? range.rid_from : -end;
    rest.rid_max = range.up ? end : range.rid_from;
    equal_key_ = range.key;
    auto const then = read_equal(rest);
    equal_key_ = {};
    if (!then || *then == next::stop) {
      return then ? outcome<void>() : failure(then.error());
    }
  }
  TIDEGATE_TRY(auto const asked, statements_.borrow(range.up ? sql.sorted_up : sql.sorted_down,
                                                    range.index_id, range.key));
  TIDEGATE_TRY_VOID(run(asked.get()));
  return {};
}

auto directory_rows::read_equal(row_range const& range) -> outcome<next> {
  TIDEGATE_TRY(auto const asked,
               statements_.borrow(range.up ? sql.equal_up : sql.equal_down, range.index_id,
                                  range.key, range.rid_min, range.rid_max));
  return run(asked.get());
}

auto directory_rows::read_among(row_range const& range) -> outcome<void> {
  TIDEGATE_TRY(auto const asked,
               statements_.borrow(range.up ? sql.keys_up : sql.keys_down, range.index_id, range.key,
                                  range.rid_from, range.rid_max, 0));
  for (;;) {
    TIDEGATE_TRY(bool const there, session_.connection_.step(asked.get()));
    if (!there) {
      return {};
    }
    auto const rid = sqlite3_column_int64(asked.get(), 0);
    auto const key = blob(asked.get(), 1);
    auto then = next::more;
    if (std::ranges::binary_search(range.rids, rid)) {
      TIDEGATE_TRY(then, look_up(rid, key));
    } else {
      then = visitor_->pass(rid, key);
    }
    if (then == next::stop) {
      return {};
    }
  }
}

auto directory_rows::run(sqlite3_stmt* statement) -> outcome<next> {
  auto* const other = std::exchange(session_.rows_, this);
  auto stepped = session_.connection_.step(statement);
  session_.rows_ = other;
  if (thrown_) {
    std::rethrow_exception(std::exchange(thrown_, nullptr));
  }
  TIDEGATE_TRY_VOID(std::exchange(shown_, {}));
  TIDEGATE_TRY(bool const has_stopped, std::move(stepped));
  return has_stopped ? next::stop : next::more;
}

void directory_rows::show_row(sqlite3_context* context, int count,
                              sqlite3_value** values) noexcept {
  auto const octets = [](sqlite3_value* value) {
    auto const* const data = static_cast<char const*>(sqlite3_value_blob(value));
    auto const size = static_cast<std::size_t>(sqlite3_value_bytes(value));
    return data == nullptr ? std::string_view() : std::string_view(data, size);
  };
  auto& self = *static_cast<directory_session*>(sqlite3_user_data(context))->rows_;
  bool stops = true;
  try {
    auto const then = self.visitor_->show(
        {sqlite3_value_int64(values[0]), count > 4 ? octets(values[4]) : self.equal_key_,
         octets(values[1]), sqlite3_value_int(values[2]) != 0, octets(values[3])});
    stops = !then || *then == next::stop;
    if (!then) {
      self.shown_ = failure(then.error());
    }
  } catch (...) {  // must not go through SQLite
    self.thrown_ = std::current_exception();
  }
  sqlite3_result_int(context, stops ? 1 : 0);
}

auto directory_rows::look_up(std::int64_t rid, std::string_view key) -> outcome<next> {
  TIDEGATE_TRY(auto const asked, statements_.borrow(sql.find_by_rid, rid));
  TIDEGATE_TRY(bool const there, session_.connection_.step(asked.get()));
  if (!there) {
    return next::more;
  }
  return visitor_->show({rid, key, blob(asked.get(), 1), sqlite3_column_int(asked.get(), 2) != 0,
                         blob(asked.get(), 3)});
}

// ---- index paging ----

auto directory_rows::skip_rids(row_range& range) -> outcome<void> {
  TIDEGATE_TRY(auto const asked,
               statements_.borrow(range.up ? sql.skip_rids_up : sql.skip_rids_down, range.rid_min,
                                  range.rid_max, clamped(range.skip)));
  TIDEGATE_TRY(bool const there, session_.connection_.step(asked.get()));
  if (!there) {
    range.rid_max = range.rid_min - 1;
    return {};
  }
  (range.up ? range.rid_min : range.rid_max) = sqlite3_column_int64(asked.get(), 0);
  return {};
}

auto directory_rows::skip_keys(row_range& range) -> outcome<void> {
  TIDEGATE_TRY(auto const size, session_.size_of(part_));
  // From the start, and all of them, as the index method asks for it: SQLite has nothing to compare
  // then, which takes half the time.
  bool const of_all = range.is_from_start() && range.rid_max >= size.last_rid;
  auto const skip = clamped(range.skip);
  TIDEGATE_TRY(auto const asked,
               of_all ? statements_.borrow(range.up ? sql.all_keys_up : sql.all_keys_down,
                                           range.index_id, skip)
                      : statements_.borrow(range.up ? sql.keys_up : sql.keys_down, range.index_id,
                                           range.key, range.rid_from, range.rid_max, skip));
  TIDEGATE_TRY(bool const there, session_.connection_.step(asked.get()));
  range.rid_from = there ? sqlite3_column_int64(asked.get(), 0) : 0;
  range.key = there ? blob(asked.get(), 1) : range.up ? last_key : std::string_view();
  return {};
}

auto directory_rows::read_blocks(std::int64_t first, std::int64_t last, bool up,
                                 std::function<bool(std::int64_t, std::int64_t)> const& each)
    -> outcome<void> {
  TIDEGATE_TRY(auto const asked,
               statements_.borrow(up ? sql.blocks_up : sql.blocks_down, first, last));
  for (;;) {
    TIDEGATE_TRY(bool const there, session_.connection_.step(asked.get()));
    if (!there ||
        !each(sqlite3_column_int64(asked.get(), 0), sqlite3_column_int64(asked.get(), 1))) {
      return {};
    }
  }
}

// ---- what indexes say ----

auto directory_rows::find_rids_until(scim::filter_sql const& condition, std::size_t rids_max,
                                     std::function<bool()> const& stop)
    -> outcome<std::optional<std::vector<std::int64_t>>> {
  TIDEGATE_TRY(auto const asked, statements_.borrow(rids_query(condition)));
  if (condition.rids.empty()) {
    bind_values(asked.get(), rid_base(part_.id) + 1, rid_end(part_.id));
  }
  int number = 2;
  for (auto const& value : condition.values) {
    std::visit([&](auto const& v) { bind_value(asked.get(), ++number, v); }, value);
  }
  interrupter const limit(session_.connection_.get(), stop);
  std::vector<std::int64_t> found;
  for (;;) {
    int const code = sqlite3_step(asked.get());
    if (code == SQLITE_DONE) {
      return found;
    }
    if (code == SQLITE_INTERRUPT || (code == SQLITE_ROW && found.size() == rids_max)) {
      return std::nullopt;
    }
    if (code != SQLITE_ROW) {
      return failure(session_.connection_.error());
    }
    found.push_back(sqlite3_column_int64(asked.get(), 0));
  }
}

auto directory_rows::find_rids(scim::filter_sql const& condition, std::size_t rids_max)
    -> outcome<std::optional<std::vector<std::int64_t>>> {
  auto steps_left = static_cast<std::int64_t>(rids_max) * steps_of_rid;
  return find_rids_until(condition, rids_max,
                         [&steps_left] { return (steps_left -= steps_between) < 0; });
}

auto directory_rows::count_matches(scim::filter_sql const& condition, std::int64_t rid_max,
                                   std::function<bool()> const& spent)
    -> outcome<std::optional<std::uint64_t>> {
  TIDEGATE_TRY(auto all,
               find_rids_until(condition, std::numeric_limits<std::size_t>::max(), spent));
  if (!all) {
    return std::nullopt;
  }
  keep_part(*all, part_.id);
  return static_cast<std::uint64_t>(std::ranges::upper_bound(*all, rid_max) - all->begin());
}

auto directory_rows::count(row_range const& range, std::function<bool()> const& spent)
    -> outcome<std::optional<std::uint64_t>> {
  bool const is_equal = range.path == access_path::by_equal_key;
  interrupter const limit(session_.connection_.get(), spent);
  TIDEGATE_TRY(auto const asked,
               is_equal
                   ? statements_.borrow(sql.count_equal, range.index_id, range.key, range.rid_max)
                   : statements_.borrow(sql.count_rids, range.rid_min, range.rid_max));
  switch (sqlite3_step(asked.get())) {
    case SQLITE_ROW: return static_cast<std::uint64_t>(sqlite3_column_int64(asked.get(), 0));
    case SQLITE_INTERRUPT: return std::nullopt;
    default: return failure(session_.connection_.error());
  }
}

// ---- of the session ----

auto directory_session::with_part(store::directory_query const& query, part_use use)
    -> outcome<void> {
  TIDEGATE_TRY(auto const* const part, parts_.find(*query.type));
  if (part == nullptr) {
    return {};
  }
  TIDEGATE_TRY_VOID(put_sizes());
  scanned_part scanned{.id = part->id,
                       .index_ids = part->index_ids,
                       .sort_ids = part->sort_ids,
                       .sorts_apart = true,
                       .dialect = scim::sql_dialect::sqlite,
                       .has_blocks = !writing_,
                       .store = connection_.file()};
  if (query.filter != nullptr) {
    TIDEGATE_TRY(scanned.id_index_ids, parts_.id_index_ids());
  }
  directory_rows rows(*this, *part);
  return use(rows, scanned);
}

}  // namespace tidegate::store_sqlite
