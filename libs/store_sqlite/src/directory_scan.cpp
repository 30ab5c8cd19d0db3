// SPDX-License-Identifier: Apache-2.0
#include "directory_scan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tidegate::store_sqlite {

using scim::filter;
using scim::filter_kind;
using store::directory_count;
using store::directory_query;
using store::directory_row;

namespace {

/// `spent` is asked each time that so many rows did not match.
constexpr std::uint32_t rows_between = 64;
/// As many steps of SQLite's machine as a rid takes at most, unless indexes have to be read for others too.
constexpr std::int64_t steps_of_rid = 12;
constexpr int steps_between = 1000;

/// Behind every key of an index.
constexpr std::string_view last_key = "\xff";

/// One more still fits.
[[nodiscard]] auto clamped(std::uint64_t rid) noexcept -> std::int64_t {
  return static_cast<std::int64_t>(
      std::min<std::uint64_t>(rid, std::numeric_limits<std::int64_t>::max() - 1));
}

/// Whether the filter asks for an attribute of the base schema.
[[nodiscard]] auto asks_for(filter const& f, scim::attribute const* attribute) -> bool {
  return f.path.parent == attribute ||
         std::any_of(f.operands.begin(), f.operands.end(),
                     [&](filter const& operand) { return asks_for(operand, attribute); });
}

/// Stops a statement when a limit is reached. At most one at a time on a connection.
class interrupter {
 public:
  interrupter(sqlite3* connection, std::move_only_function<bool()> stop)
      : connection_(connection), stop_(std::move(stop)) {
    sqlite3_progress_handler(
        connection_, steps_between,
        [](void* self) { return static_cast<interrupter*>(self)->stop_() ? 1 : 0; }, this);
  }
  ~interrupter() { sqlite3_progress_handler(connection_, 0, nullptr, nullptr); }
  interrupter(interrupter const&) = delete;
  auto operator=(interrupter const&) -> interrupter& = delete;

 private:
  sqlite3* connection_;
  std::move_only_function<bool()> stop_;
};

}  // namespace

auto rids_query(scim::filter_sql const& condition) -> std::string {
  return condition.rids.empty()
             ? "SELECT rid FROM resource WHERE rid >= ?1 AND rid <= ?2 AND " + condition.condition
             : condition.rids;
}

directory_scan::directory_scan(directory_session& session, directory_part const& part,
                               directory_query const& query)
    : session_(session), part_(part), query_(query), skip_(query.skip) {
  rid_min_ = rid_base(part.id) + 1;
  rid_max_ = std::min(clamped(query.rid_max), rid_base(part.id) + sequence_max);
  bool const forward = query.scan.place.towards == scim::direction::forward;
  up_ = forward != query.descending;
  key_from_ = up_ ? std::string_view() : last_key;
  auto const& from = query.scan.place.from;
  if (from) {
    // What is next to the gap on the far side belongs to the scan. Rids are whole numbers, so the other one
    // is left out by one more or less.
    bool const with_it = forward != from->behind;
    auto const rid = clamped(from->at.rid) + (with_it ? 0 : up_ ? 1 : -1);
    if (query.sort_index) {
      key_from_ = from->at.sort_key;
      rid_from_ = rid;
    } else if (up_) {
      rid_min_ = std::max(rid_min_, rid);
    } else {
      rid_max_ = std::min(rid_max_, rid);
    }
  }
}

auto directory_scan::compile() -> outcome<void> {
  if (query_.filter == nullptr) {
    return {};
  }
  TIDEGATE_TRY(auto const id_index_ids, session_.id_index_ids());
  condition_ = compile_filter(*query_.filter, *query_.type, part_.index_ids,
                              scim::sql_dialect::sqlite, 3, id_index_ids, part_.sort_ids);
  auto const& base = query_.type->definition.base();
  needs_members_ = query_.type->has_members && asks_for(*query_.filter, base.find("members"));
  needs_groups_ = query_.type->has_groups && asks_for(*query_.filter, base.find("groups"));
  return {};
}

auto directory_scan::rows() -> outcome<scim::scan_answer<directory_row>> {
  TIDEGATE_TRY_VOID(compile());
  auto const rows_max = query_.scan.rows_max;
  if (rows_max == 0) {
    return std::move(answer_);
  }
  if (!query_.each) {
    answer_.rows.reserve(std::min<std::uint32_t>(rows_max, 1024));
  }
  if (query_.filter == nullptr) {
    if (skip_ > 0) {
      TIDEGATE_TRY_VOID(query_.sort_index ? skip_keys() : skip_blocks());
    }
    TIDEGATE_TRY_VOID(query_.sort_index ? walk_keys() : walk_rids());
    return std::move(answer_);
  }
  if (auto const key = query_.sort_index ? std::nullopt : equal_key()) {
    TIDEGATE_TRY_VOID(walk_equal(*key));
    return std::move(answer_);
  }
  TIDEGATE_TRY(auto const found, candidates());
  if (found && query_.sort_index) {
    // A few are read and sorted; many are met soon in the index that sorts.
    TIDEGATE_TRY(auto const size, session_.size_of(part_));
    bool const few = found->size() * found->size() <= static_cast<std::size_t>(size.count);
    TIDEGATE_TRY_VOID(few ? walk_sorted_candidates(*found) : walk_keys_of(*found));
  } else if (found) {
    TIDEGATE_TRY_VOID(walk_candidates(*found));
  } else {
    condition_.exact = false;  // each resource is asked, as the indexes were not
    TIDEGATE_TRY_VOID(query_.sort_index ? walk_keys() : walk_rids());
  }
  return std::move(answer_);
}

// ---- ways through resources ----

auto directory_scan::walk_rids() -> outcome<void> {
  if (query_.filter == nullptr && skip_ > 0) {
    TIDEGATE_TRY_VOID(skip_rids());
  }
  TIDEGATE_TRY(auto const asked, session_.borrow(up_ ? sql::rids_up : sql::rids_down));
  bind_value(asked.get(), 1, rid_min_);
  bind_value(asked.get(), 2, rid_max_);
  TIDEGATE_TRY_VOID(walk(asked.get()));
  return {};
}

auto directory_scan::walk_keys() -> outcome<void> {
  // First the rest of the key it begins at, then the keys behind it: to compare keys and rids in one statement would cost
  // something for each row.
  auto const id = part_.sort_ids[*query_.sort_index];
  if (key_from_ != (up_ ? std::string_view() : last_key)) {
    constexpr auto end = std::numeric_limits<std::int64_t>::max();
    key_of_all_ = key_from_;
    TIDEGATE_TRY(auto const then,
                 walk_key(id, key_from_, up_ ? rid_from_ : -end, up_ ? end : rid_from_));
    if (then == next::stop) {
      return {};
    }
  }
  TIDEGATE_TRY(auto const asked, session_.borrow(up_ ? sql::sorted_up : sql::sorted_down));
  bind_value(asked.get(), 1, id);
  bind_value(asked.get(), 2, key_from_);
  TIDEGATE_TRY_VOID(walk(asked.get()));
  return {};
}

auto directory_scan::walk_equal(std::string_view key) -> outcome<void> {
  auto const index = query_.type->find_index(query_.filter->path);
  TIDEGATE_TRY_VOID(walk_key(part_.index_ids[*index], key, rid_min_, rid_max_));
  return {};
}

auto directory_scan::walk_key(std::int64_t index_id, std::string_view key, std::int64_t rid_min,
                              std::int64_t rid_max) -> outcome<next> {
  TIDEGATE_TRY(auto const asked, session_.borrow(up_ ? sql::equal_up : sql::equal_down));
  bind_value(asked.get(), 1, index_id);
  bind_value(asked.get(), 2, key);
  bind_value(asked.get(), 3, rid_min);
  bind_value(asked.get(), 4, rid_max);
  return walk(asked.get());
}

auto directory_scan::walk(sqlite3_stmt* statement) -> outcome<next> {
  auto* const other = std::exchange(session_.scan_, this);
  auto stepped = session_.connection_.step(statement);
  session_.scan_ = other;
  if (thrown_) {
    std::rethrow_exception(std::exchange(thrown_, nullptr));
  }
  TIDEGATE_TRY_VOID(std::exchange(looked_, {}));
  TIDEGATE_TRY(bool const has_stopped, std::move(stepped));
  return has_stopped ? next::stop : next::go_on;
}

void directory_scan::look_at_row(sqlite3_context* context, int count,
                                 sqlite3_value** values) noexcept {
  auto const octets = [](sqlite3_value* value) {
    auto const* const data = static_cast<char const*>(sqlite3_value_blob(value));
    auto const size = static_cast<std::size_t>(sqlite3_value_bytes(value));
    return data == nullptr ? std::string_view() : std::string_view(data, size);
  };
  auto& self = *static_cast<directory_session*>(sqlite3_user_data(context))->scan_;
  bool stops = true;
  try {
    auto const then = self.look_at(
        {sqlite3_value_int64(values[0]), count > 4 ? octets(values[4]) : self.key_of_all_,
         octets(values[1]), sqlite3_value_int(values[2]) != 0, octets(values[3])});
    stops = !then || *then == next::stop;
    if (!then) {
      self.looked_ = failure(then.error());
    }
  } catch (...) {  // must not go through SQLite
    self.thrown_ = std::current_exception();
  }
  sqlite3_result_int(context, stops ? 1 : 0);
}

auto directory_scan::walk_candidates(std::vector<std::int64_t> const& candidates) -> outcome<void> {
  auto const first = std::lower_bound(candidates.begin(), candidates.end(), rid_min_);
  auto const last = std::upper_bound(first, candidates.end(), rid_max_);
  auto left = last - first;
  if (condition_.exact && !counting_) {
    auto const over = std::min(skip_, static_cast<std::uint64_t>(left));
    skip_ -= over;
    left -= static_cast<std::ptrdiff_t>(over);
  }
  for (; left > 0; --left) {
    TIDEGATE_TRY(auto const then, look_up(up_ ? *(last - left) : *(first + (left - 1)), {}));
    if (then == next::stop) {
      return {};
    }
  }
  return {};
}

auto directory_scan::walk_sorted_candidates(std::vector<std::int64_t> const& candidates)
    -> outcome<void> {
  std::vector<scim::position> places;
  for (auto const rid : candidates) {
    TIDEGATE_TRY(auto const entries, session_.read_entries(*query_.type, rid));
    for (auto const& entry : entries) {
      if (entry.index == *query_.sort_index && entry.sorts) {
        places.push_back({entry.key, static_cast<std::uint64_t>(rid)});
      }
    }
  }
  std::sort(places.begin(), places.end());
  if (!up_) {
    std::reverse(places.begin(), places.end());
  }
  scim::position const from{key_from_,
                            static_cast<std::uint64_t>(std::max<std::int64_t>(rid_from_, 0))};
  for (auto const& place : places) {
    if (up_ ? place < from : from < place) {
      continue;
    }
    TIDEGATE_TRY(auto const then, look_up(static_cast<std::int64_t>(place.rid), place.sort_key));
    if (then == next::stop) {
      return {};
    }
  }
  return {};
}

auto directory_scan::walk_keys_of(std::vector<std::int64_t> const& candidates) -> outcome<void> {
  TIDEGATE_TRY(auto const asked, session_.borrow(up_ ? sql::keys_up : sql::keys_down));
  bind_value(asked.get(), 1, part_.sort_ids[*query_.sort_index]);
  bind_value(asked.get(), 2, key_from_);
  bind_value(asked.get(), 3, rid_from_);
  bind_value(asked.get(), 4, rid_max_);
  bind_value(asked.get(), 5, std::int64_t{0});
  for (;;) {
    TIDEGATE_TRY(bool const there, session_.connection_.step(asked.get()));
    if (!there) {
      return {};
    }
    auto const rid = sqlite3_column_int64(asked.get(), 0);
    auto const key = blob(asked.get(), 1);
    auto then = next::go_on;
    if (std::binary_search(candidates.begin(), candidates.end(), rid)) {
      TIDEGATE_TRY(then, look_up(rid, key));
    } else {
      then = passed(rid, key);
    }
    if (then == next::stop) {
      return {};
    }
  }
}

// ---- one resource ----

auto directory_scan::look_up(std::int64_t rid, std::string_view key) -> outcome<next> {
  TIDEGATE_TRY(auto const asked, session_.borrow(sql::find_by_rid));
  bind_value(asked.get(), 1, rid);
  TIDEGATE_TRY(bool const there, session_.connection_.step(asked.get()));
  if (!there) {
    return next::go_on;
  }
  return look_at({rid, key, blob(asked.get(), 1), sqlite3_column_int(asked.get(), 2) != 0,
                  blob(asked.get(), 3)});
}

auto directory_scan::look_at(row_view const& row) -> outcome<next> {
  bool match = row.rid <= rid_max_;
  if (match && query_.filter != nullptr && !condition_.exact) {
    TIDEGATE_TRY(match, is_match(row));
  }
  if (!match) {
    return passed(row.rid, row.key);
  }
  ++matched_;
  if (counting_) {
    return passed(row.rid, row.key);
  }
  if (skip_ > 0) {
    --skip_;
    return passed(row.rid, row.key);
  }
  ++given_;
  auto const rid = static_cast<std::uint64_t>(row.rid);
  if (query_.each) {
    bool const more = query_.each({rid, row.key, row.id, row.text, row.in_groups});
    return more && given_ < query_.scan.rows_max ? next::go_on : next::stop;
  }
  if (texts_ == nullptr) {
    texts_ = std::make_shared<row_texts>();
  }
  answer_.rows.push_back({{std::string(row.key), rid},
                          texts_->keep(row.id),
                          texts_->keep(row.text),
                          row.in_groups,
                          texts_});
  return given_ < query_.scan.rows_max ? next::go_on : next::stop;
}

auto directory_scan::passed(std::int64_t rid, std::string_view key) -> next {
  if (++passed_ % rows_between != 0 || !query_.spent || !query_.spent()) {
    return next::go_on;
  }
  answer_.stopped = scim::position{std::string(key), static_cast<std::uint64_t>(rid)};
  return next::stop;
}

auto directory_scan::is_match(row_view const& row) -> outcome<bool> {
  TIDEGATE_TRY(auto resource, parse_stored(session_.connection_, row.rid, row.text));
  TIDEGATE_TRY_VOID(complete(resource, row.rid));
  return matches(*query_.filter, resource);
}

auto directory_scan::complete(scim::json& resource, std::int64_t rid) -> outcome<void> {
  auto* const object = resource.if_object();
  if (object == nullptr) {
    return {};
  }
  auto const as_json = [](store::directory_member const& member, std::string_view type) {
    scim::json_object value;
    value.append("value", member.id);
    if (!member.display.empty()) {
      value.append("display", member.display);
    }
    value.append("type", type);
    return value;
  };
  if (needs_members_) {
    scim::json_array all;
    TIDEGATE_TRY_VOID(session_.members(static_cast<std::uint64_t>(rid),
                                       [&](store::directory_member const& member) {
                                         all.emplace_back(as_json(member, member.type));
                                         return true;
                                       }));
    if (!all.empty()) {
      object->set("members", std::move(all));
    }
  }
  if (needs_groups_) {
    scim::json_array all;
    TIDEGATE_TRY(auto const groups, session_.groups_of(static_cast<std::uint64_t>(rid)));
    for (auto const& group : groups) {
      all.emplace_back(as_json(group, "direct"));
    }
    if (!all.empty()) {
      object->set("groups", std::move(all));
    }
  }
  return {};
}

// ---- what indexes say ----

auto directory_scan::equal_key() const -> std::optional<std::string> {
  auto const& f = *query_.filter;
  if (f.kind != filter_kind::compare || f.op != scim::compare_op::eq ||
      condition_.condition.empty() || std::holds_alternative<std::nullptr_t>(f.value)) {
    return std::nullopt;
  }
  auto const index = query_.type->find_index(f.path);
  if (!index || part_.index_ids[*index] != part_.sort_ids[*index]) {
    return std::nullopt;  // of several values, entries are in two places
  }
  return index_key(*f.path.leaf(), f.value);
}

void directory_scan::bind_condition(sqlite3_stmt* statement) {
  int number = 2;
  for (auto const& value : condition_.values) {
    std::visit([&](auto const& v) { bind_value(statement, ++number, v); }, value);
  }
}

/// Takes at most `rids_max` rids from the indexes; nothing when there are more or `stop` says so.
auto directory_scan::rids_of_condition(std::size_t rids_max, std::move_only_function<bool()> stop)
    -> outcome<std::optional<std::vector<std::int64_t>>> {
  TIDEGATE_TRY(auto const asked, session_.borrow(rids_query(condition_)));
  if (condition_.rids.empty()) {
    bind_value(asked.get(), 1, rid_base(part_.id) + 1);
    bind_value(asked.get(), 2, rid_base(part_.id) + sequence_max);
  }
  bind_condition(asked.get());
  interrupter const limit(session_.connection_.get(), std::move(stop));
  std::vector<std::int64_t> found;
  for (;;) {
    int const code = sqlite3_step(asked.get());
    if (code == SQLITE_DONE) {
      // Members of a group may be of other types.
      std::erase_if(found, [&](std::int64_t rid) { return part_of(rid) != part_.id; });
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
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

auto directory_scan::candidates() -> outcome<std::optional<std::vector<std::int64_t>>> {
  if (condition_.condition.empty()) {
    return std::nullopt;
  }
  // To take a rid costs a fortieth of what it costs to look at a resource. Where there are as many as this, a page of a
  // hundred is found by looking at resources in the same time.
  TIDEGATE_TRY(auto const size, session_.size_of(part_));
  auto const most =
      512 + static_cast<std::size_t>(std::sqrt(4000.0 * static_cast<double>(size.count)));
  auto steps_left = static_cast<std::int64_t>(most) * steps_of_rid;
  return rids_of_condition(most, [&steps_left] { return (steps_left -= steps_between) < 0; });
}

// ---- index paging ----

/// Goes over whole blocks while all of them is to be left out.
auto directory_scan::skip_blocks() -> outcome<void> {
  if (session_.writing_ || skip_ < (1U << block_shift)) {
    return {};  // blocks are written at the end of a transaction
  }
  TIDEGATE_TRY(auto const asked, session_.borrow(up_ ? sql::blocks_up : sql::blocks_down));
  // The blocks at both ends may be part of the scan in part only.
  auto const first = block_of(rid_min_ - 1) + 1;
  auto const last = block_of(rid_max_ + 1) - 1;
  auto const edge = up_ ? (first << block_shift) - 1 : (last + 1) << block_shift;
  if (first > last) {
    return {};
  }
  TIDEGATE_TRY(auto const head, session_.borrow(sql::count_rids));
  bind_value(head.get(), 1, up_ ? rid_min_ : edge);
  bind_value(head.get(), 2, up_ ? edge : rid_max_);
  TIDEGATE_TRY_VOID(session_.connection_.step(head.get()));
  auto const before = static_cast<std::uint64_t>(sqlite3_column_int64(head.get(), 0));
  if (before > skip_) {
    return {};
  }
  skip_ -= before;
  (up_ ? rid_min_ : rid_max_) = up_ ? edge + 1 : edge - 1;
  bind_value(asked.get(), 1, first);
  bind_value(asked.get(), 2, last);
  for (;;) {
    TIDEGATE_TRY(bool const there, session_.connection_.step(asked.get()));
    auto const count = there ? static_cast<std::uint64_t>(sqlite3_column_int64(asked.get(), 1)) : 0;
    if (!there || count > skip_) {
      return {};
    }
    skip_ -= count;
    auto const block = sqlite3_column_int64(asked.get(), 0);
    (up_ ? rid_min_ : rid_max_) = up_ ? (block + 1) << block_shift : (block << block_shift) - 1;
  }
}

/// Goes over resources without reading them.
auto directory_scan::skip_rids() -> outcome<void> {
  TIDEGATE_TRY(auto const asked, session_.borrow(up_ ? sql::skip_rids_up : sql::skip_rids_down));
  bind_value(asked.get(), 1, rid_min_);
  bind_value(asked.get(), 2, rid_max_);
  bind_value(asked.get(), 3, clamped(std::exchange(skip_, 0)));
  TIDEGATE_TRY(bool const there, session_.connection_.step(asked.get()));
  if (!there) {
    rid_max_ = rid_min_ - 1;
    return {};
  }
  (up_ ? rid_min_ : rid_max_) = sqlite3_column_int64(asked.get(), 0);
  return {};
}

/// Goes over entries without looking at what they are of.
auto directory_scan::skip_keys() -> outcome<void> {
  TIDEGATE_TRY(auto const size, session_.size_of(part_));
  auto const over = clamped(std::exchange(skip_, 0));
  auto const step = [&](sqlite3_stmt* statement) -> outcome<void> {
    TIDEGATE_TRY(bool const there, session_.connection_.step(statement));
    rid_from_ = there ? sqlite3_column_int64(statement, 0) : 0;
    key_from_ = there ? blob(statement, 1) : up_ ? last_key : std::string_view();
    return {};
  };
  // From the start, and all of them, as the index method asks for it: SQLite has nothing to compare then, which
  // takes half the time.
  if (!query_.scan.place.from && rid_max_ >= size.last_rid) {
    TIDEGATE_TRY(auto const asked, session_.borrow(up_ ? sql::all_keys_up : sql::all_keys_down));
    bind_value(asked.get(), 1, part_.sort_ids[*query_.sort_index]);
    bind_value(asked.get(), 2, over);
    return step(asked.get());
  }
  TIDEGATE_TRY(auto const asked, session_.borrow(up_ ? sql::keys_up : sql::keys_down));
  bind_value(asked.get(), 1, part_.sort_ids[*query_.sort_index]);
  bind_value(asked.get(), 2, key_from_);
  bind_value(asked.get(), 3, rid_from_);
  bind_value(asked.get(), 4, rid_max_);
  bind_value(asked.get(), 5, over);
  return step(asked.get());
}

// ---- counting ----

auto directory_scan::count_all() -> outcome<std::uint64_t> {
  TIDEGATE_TRY(auto const size, session_.size_of(part_));
  if (rid_max_ >= size.last_rid) {
    return static_cast<std::uint64_t>(size.count);
  }
  std::int64_t all = 0;
  auto from = rid_min_;
  if (!session_.writing_) {
    TIDEGATE_TRY(auto const blocks, session_.borrow(sql::blocks_up));
    auto const last = block_of(rid_max_ + 1) - 1;
    bind_value(blocks.get(), 1, block_of(rid_min_));
    bind_value(blocks.get(), 2, last);
    for (;;) {
      TIDEGATE_TRY(bool const there, session_.connection_.step(blocks.get()));
      if (!there) {
        break;
      }
      all += sqlite3_column_int64(blocks.get(), 1);
    }
    from = std::max(from, (last + 1) << block_shift);
  }
  TIDEGATE_TRY(auto const rest, session_.borrow(sql::count_rids));
  bind_value(rest.get(), 1, from);
  bind_value(rest.get(), 2, rid_max_);
  TIDEGATE_TRY_VOID(session_.connection_.step(rest.get()));
  return static_cast<std::uint64_t>(all + sqlite3_column_int64(rest.get(), 0));
}

/// What the condition counts, which is exact. Nothing when it takes too long.
auto directory_scan::count_condition() -> outcome<std::optional<std::uint64_t>> {
  auto spent = [this] { return query_.spent && query_.spent(); };
  if (auto const key = equal_key()) {
    interrupter const limit(session_.connection_.get(), spent);
    TIDEGATE_TRY(auto const asked, session_.borrow(sql::count_equal));
    bind_value(asked.get(), 1, part_.index_ids[*query_.type->find_index(query_.filter->path)]);
    bind_value(asked.get(), 2, *key);
    bind_value(asked.get(), 3, rid_max_);
    switch (sqlite3_step(asked.get())) {
      case SQLITE_ROW: return static_cast<std::uint64_t>(sqlite3_column_int64(asked.get(), 0));
      case SQLITE_INTERRUPT: return std::nullopt;
      default: return failure(session_.connection_.error());
    }
  }
  TIDEGATE_TRY(auto const all, rids_of_condition(std::numeric_limits<std::size_t>::max(), spent));
  if (!all) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(std::upper_bound(all->begin(), all->end(), rid_max_) -
                                    all->begin());
}

auto directory_scan::count() -> outcome<directory_count> {
  TIDEGATE_TRY_VOID(compile());
  counting_ = true;
  if (query_.filter == nullptr) {
    TIDEGATE_TRY(auto const all, count_all());
    return directory_count{all};
  }
  if (condition_.exact) {
    TIDEGATE_TRY(auto const all, count_condition());
    return directory_count{all};
  }
  TIDEGATE_TRY(auto const found, candidates());
  TIDEGATE_TRY_VOID(found ? walk_candidates(*found) : walk_rids());
  return answer_.stopped ? directory_count{} : directory_count{matched_};
}

// ---- of the session ----

auto directory_session::scan(directory_query const& query)
    -> outcome<scim::scan_answer<directory_row>> {
  return noting([&]() -> outcome<scim::scan_answer<directory_row>> {
    TIDEGATE_TRY(auto const* const part, find_part(*query.type));
    if (part == nullptr) {
      return scim::scan_answer<directory_row>{};
    }
    return looking([&] { return directory_scan(*this, *part, query).rows(); });
  });
}

auto directory_session::count(directory_query const& query) -> outcome<directory_count> {
  return noting([&]() -> outcome<directory_count> {
    TIDEGATE_TRY(auto const* const part, find_part(*query.type));
    if (part == nullptr) {
      return directory_count{0};
    }
    auto all = query;
    all.scan = {};
    all.sort_index = std::nullopt;
    all.descending = false;
    return looking([&] { return directory_scan(*this, *part, all).count(); });
  });
}

auto directory_session::counts_cheaply(directory_query const& query) -> bool {
  if (query.filter == nullptr) {
    return true;
  }
  // Which numbers its indexes have makes no difference.
  std::vector<std::int64_t> const any(query.type->indexes.size(), 1);
  return compile_filter(*query.filter, *query.type, any, scim::sql_dialect::sqlite, 1, any).exact;
}

}  // namespace tidegate::store_sqlite
