// SPDX-License-Identifier: Apache-2.0
#include "directory/session.hpp"

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <utility>

namespace tidegate::store_postgres {

namespace {

/// How many rows are asked for at once where it is not known how many match.
constexpr std::int64_t rows_first = 128;
constexpr std::int64_t rows_most = 1024;
/// Until a condition is given up and resources are read in order, and how long a count takes before
/// the budget is asked.
constexpr std::chrono::milliseconds candidates_time{100};
constexpr std::chrono::milliseconds count_time{100};

/// How many rows to ask for: just the page where each of them is one of it; otherwise more and
/// more.
class batch_size {
 public:
  explicit batch_size(row_range const& range)
      : next_(std::clamp<std::int64_t>(range.rows_max, range.all_match ? 1 : rows_first,
                                       rows_most)) {}
  [[nodiscard]] auto take() noexcept -> std::int64_t {
    return std::exchange(next_, std::min(2 * next_, rows_most));
  }

 private:
  std::int64_t next_;
};

/// A row of rid, id, in_groups and text.
[[nodiscard]] auto view_of(rows const& found, int row, std::string_view key) -> row_view {
  return {found.number(row, 0), key, found.octets(row, 1), found.boolean(row, 2),
          found.octets(row, 3)};
}

/// Which row has which rid.
[[nodiscard]] auto by_rid(rows const& found) -> std::unordered_map<std::int64_t, int> {
  std::unordered_map<std::int64_t, int> all;
  for (int i = 0; i < found.size(); ++i) {
    all.emplace(found.number(i, 0), i);
  }
  return all;
}

/// The query for the rids for which a condition holds, its placeholders from 3 on. Where it is not
/// that of the condition itself, the first and the second are the lowest and the highest rid.
[[nodiscard]] auto rids_query(scim::filter_sql const& condition, std::string const& what,
                              std::string const& tail) -> std::string {
  auto const rids =
      condition.rids.empty()
          ? "SELECT rid FROM resource WHERE rid >= $1 AND rid <= $2 AND " + condition.condition
          : condition.rids;
  return "SELECT " + what + " FROM (" + rids + ") AS found (rid)" + tail;
}

/// The rows of a part, for one scan or count of a session. They come a few hundred at a time, each
/// time from where the last ones ended.
class directory_rows final : public row_source {
 public:
  directory_rows(directory_channel& to, directory_part const& part) : channel_(to), part_(part) {}

  [[nodiscard]] auto read(row_range const& range, row_visitor& to) -> outcome<void> override;
  [[nodiscard]] auto count(row_range const& range, std::function<bool()> const& spent)
      -> outcome<std::optional<std::uint64_t>> override;
  [[nodiscard]] auto find_rids(scim::filter_sql const& condition, std::size_t rids_max)
      -> outcome<std::optional<std::vector<std::int64_t>>> override;
  [[nodiscard]] auto count_matches(scim::filter_sql const& condition, std::int64_t rid_max,
                                   std::function<bool()> const& spent)
      -> outcome<std::optional<std::uint64_t>> override;
  [[nodiscard]] auto read_blocks(std::int64_t first, std::int64_t last, bool up,
                                 std::function<bool(std::int64_t, std::int64_t)> const& each)
      -> outcome<void> override;
  [[nodiscard]] auto size() -> outcome<part_size> override { return part_.size; }

 private:
  /// Rows and, where the path has keys, their keys, from the start of `range`.
  [[nodiscard]] auto ask(row_range const& range, std::int64_t most) -> outcome<rows>;
  [[nodiscard]] auto read_rids(row_range const& range, row_visitor& to) -> outcome<void>;
  [[nodiscard]] auto read_among(row_range range, row_visitor& to) -> outcome<void>;
  /// Asks for what may take long: nothing when it took longer than `most`.
  [[nodiscard]] auto ask_within(std::chrono::milliseconds most, std::string const& text,
                                parameters const& values) -> outcome<std::optional<rows>>;
  /// The number that a statement gives; nothing when `spent` said so before.
  [[nodiscard]] auto ask_until_spent(std::string const& text, parameters const& values,
                                     std::function<bool()> const& spent)
      -> outcome<std::optional<std::uint64_t>>;
  [[nodiscard]] auto condition_values(scim::filter_sql const& condition) const -> parameters;

  directory_channel& channel_;
  directory_part const& part_;
};

// ---- rows ----

auto directory_rows::ask(row_range const& range, std::int64_t most) -> outcome<rows> {
  switch (range.path) {
    case access_path::by_rid:
      return channel_.ask(range.up ? sql.rids_up : sql.rids_down,
                          parameters(range.rid_min, range.rid_max, most, clamped(range.skip)));
    case access_path::by_equal_key:
      return channel_.ask(
          range.up ? sql.equal_up : sql.equal_down,
          parameters(range.index_id, range.key, range.rid_min, range.rid_max, most));
    case access_path::by_key_among:
      return channel_.ask(range.up ? sql.keys_up : sql.keys_down,
                          parameters(range.index_id, range.key, range.rid_from, range.rid_max, most,
                                     clamped(range.skip)));
    default:
      return channel_.ask(range.up ? sql.sorted_up : sql.sorted_down,
                          parameters(range.index_id, range.key, range.rid_from, most));
  }
}

auto directory_rows::read(row_range const& asked, row_visitor& to) -> outcome<void> {
  if (asked.path == access_path::by_rids) {
    return read_rids(asked, to);
  }
  if (asked.path == access_path::by_key_among) {
    return read_among(asked, to);
  }
  auto range = asked;
  bool const has_keys = range.path == access_path::by_key;
  if (has_keys && range.skip > 0) {
    // Along the entries, without their resources.
    range.path = access_path::by_key_among;
    TIDEGATE_TRY(auto const first, ask(range, 1));
    if (first.size() == 0) {
      return {};
    }
    range.path = access_path::by_key;
    range.rid_from = first.number(0, 0);
    range.key = first.octets(0, 1);
  }
  for (batch_size batch(range);;) {
    auto const most = batch.take();
    TIDEGATE_TRY(auto const found, ask(range, most));
    for (int i = 0; i < found.size(); ++i) {
      auto const key = has_keys ? found.octets(i, 4) : std::string_view();
      TIDEGATE_TRY(auto const then, to.show(view_of(found, i, key)));
      if (then == next::stop) {
        return {};
      }
    }
    if (found.size() < most) {
      return {};
    }
    auto const last = found.size() - 1;
    auto const behind = found.number(last, 0) + (range.up ? 1 : -1);
    range.skip = 0;
    if (has_keys) {
      range.key = found.octets(last, 4);
      range.rid_from = behind;
    } else {
      (range.up ? range.rid_min : range.rid_max) = behind;
    }
  }
}

auto directory_rows::read_rids(row_range const& range, row_visitor& to) -> outcome<void> {
  batch_size batch(range);
  for (auto left = range.rids; !left.empty();) {
    auto const some = left.first(std::min(static_cast<std::size_t>(batch.take()), left.size()));
    left = left.subspan(some.size());
    TIDEGATE_TRY(auto const found,
                 channel_.ask(sql.find_by_rids,
                              parameters(std::vector<std::int64_t>(some.begin(), some.end()))));
    auto const rows = by_rid(found);
    for (auto const rid : some) {
      auto const row = rows.find(rid);
      if (row == rows.end()) {
        continue;
      }
      TIDEGATE_TRY(auto const then, to.show(view_of(found, row->second, {})));
      if (then == next::stop) {
        return {};
      }
    }
  }
  return {};
}

auto directory_rows::read_among(row_range range, row_visitor& to) -> outcome<void> {
  for (;;) {
    TIDEGATE_TRY(auto const keys, ask(range, rows_most));
    std::vector<std::int64_t> met;
    for (int i = 0; i < keys.size(); ++i) {
      if (std::ranges::binary_search(range.rids, keys.number(i, 0))) {
        met.push_back(keys.number(i, 0));
      }
    }
    TIDEGATE_TRY(auto const found, channel_.ask(sql.find_by_rids, parameters(met)));
    auto const rows = by_rid(found);
    for (int i = 0; i < keys.size(); ++i) {
      auto const rid = keys.number(i, 0);
      auto const key = keys.octets(i, 1);
      auto const row = rows.find(rid);
      auto then = next::more;
      if (row == rows.end()) {
        then = to.pass(rid, key);
      } else {
        TIDEGATE_TRY(then, to.show(view_of(found, row->second, key)));
      }
      if (then == next::stop) {
        return {};
      }
    }
    if (keys.size() < rows_most) {
      return {};
    }
    auto const last = keys.size() - 1;
    range.key = keys.octets(last, 1);
    range.rid_from = keys.number(last, 0) + (range.up ? 1 : -1);
  }
}

auto directory_rows::read_blocks(std::int64_t first, std::int64_t last, bool up,
                                 std::function<bool(std::int64_t, std::int64_t)> const& each)
    -> outcome<void> {
  TIDEGATE_TRY(auto const blocks,
               channel_.ask(up ? sql.blocks_up : sql.blocks_down, parameters(first, last)));
  for (int i = 0; i < blocks.size() && each(blocks.number(i, 0), blocks.number(i, 1)); ++i) {
  }
  return {};
}

// ---- what indexes say ----

auto directory_rows::condition_values(scim::filter_sql const& condition) const -> parameters {
  parameters values(rid_base(part_.id) + 1, rid_end(part_.id));
  for (auto const& value : condition.values) {
    std::visit([&](auto const& v) { values.add(v); }, value);
  }
  return values;
}

auto directory_rows::ask_within(std::chrono::milliseconds most, std::string const& text,
                                parameters const& values) -> outcome<std::optional<rows>> {
  TIDEGATE_TRY_VOID(channel_.send_members());
  TIDEGATE_TRY_VOID(channel_.send(sql.begin_look));
  TIDEGATE_TRY_VOID(
      channel_.server().send("SET LOCAL statement_timeout TO " + std::to_string(most.count())));
  channel_.server().forget_error();
  auto found = channel_.ask(text, values);
  // 57014: the time is over.
  bool const is_over = !found && channel_.server().sqlstate() == "57014";
  if (!found && !is_over) {
    return failure(std::move(found).error());
  }
  channel_.server().forget_error();
  TIDEGATE_TRY_VOID(channel_.send(sql.end_look));  // the limit is what it was
  TIDEGATE_TRY_VOID(channel_.send(sql.release_look));
  if (is_over) {
    return std::nullopt;
  }
  return std::move(*found);
}

auto directory_rows::ask_until_spent(std::string const& text, parameters const& values,
                                     std::function<bool()> const& spent)
    -> outcome<std::optional<std::uint64_t>> {
  // The server cannot ask our budget. It is given more time again and again, in which no more than
  // a third is lost.
  auto const limit = channel_.server().timeout();
  for (auto most = std::min(count_time, limit);; most = std::min(4 * most, limit)) {
    TIDEGATE_TRY(auto const found, ask_within(most, text, values));
    if (found) {
      return unsigned_of(found->number(0, 0));
    }
    if (most == limit || (spent && spent())) {
      return std::nullopt;
    }
  }
}

auto directory_rows::find_rids(scim::filter_sql const& condition, std::size_t rids_max)
    -> outcome<std::optional<std::vector<std::int64_t>>> {
  auto const text = rids_query(condition, "rid", " LIMIT " + std::to_string(rids_max + 1));
  TIDEGATE_TRY(auto const found, ask_within(candidates_time, text, condition_values(condition)));
  if (!found || static_cast<std::size_t>(found->size()) > rids_max) {
    return std::nullopt;
  }
  std::vector<std::int64_t> all;
  all.reserve(static_cast<std::size_t>(found->size()));
  for (int i = 0; i < found->size(); ++i) {
    all.push_back(found->number(i, 0));
  }
  return all;
}

auto directory_rows::count_matches(scim::filter_sql const& condition, std::int64_t rid_max,
                                   std::function<bool()> const& spent)
    -> outcome<std::optional<std::uint64_t>> {
  auto values = condition_values(condition);
  values.add(rid_base(part_.id) + 1);
  values.add(rid_max);
  auto const last = values.size();
  auto const text = rids_query(
      condition, "count(DISTINCT rid)",
      " WHERE rid BETWEEN $" + std::to_string(last - 1) + " AND $" + std::to_string(last));
  return ask_until_spent(text, values, spent);
}

auto directory_rows::count(row_range const& range, std::function<bool()> const& spent)
    -> outcome<std::optional<std::uint64_t>> {
  if (range.path == access_path::by_equal_key) {
    return ask_until_spent(std::string(sql.count_equal.text),
                           parameters(range.index_id, range.key, range.rid_max), spent);
  }
  TIDEGATE_TRY(auto const found,
               channel_.ask(sql.count_rids, parameters(range.rid_min, range.rid_max)));
  return unsigned_of(found.number(0, 0));
}

}  // namespace

// ---- of the session ----

auto directory_session::with_part(store::directory_query const& query, part_use use)
    -> outcome<void> {
  auto const* const part = parts_.find(*query.type);
  if (part == nullptr) {
    return {};
  }
  auto const ids = parts_.ids_of(*query.type, *part);
  directory_rows rows(channel_, *part);
  return use(rows, {.id = part->id,
                    .index_ids = ids.values,
                    .sort_ids = ids.sorted,
                    .id_index_ids = parts_.id_index_ids(),
                    .dialect = scim::sql_dialect::postgresql,
                    .has_blocks = !writing_,
                    .shows_at_end = true,  // what they are shown to may ask the server for more
                    .store = channel_.server().name()});
}

}  // namespace tidegate::store_postgres
