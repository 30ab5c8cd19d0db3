// SPDX-License-Identifier: Apache-2.0
#include "directory_scan.hpp"

#include <tidegate/scim/index_key.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace tidegate::store_postgres {

using scim::filter;
using scim::filter_kind;
using store::directory_count;
using store::directory_query;
using store::directory_row;

namespace {

/// `spent` is asked each time that so many rows did not match.
constexpr std::uint32_t rows_between = 64;
/// How many rows are asked for at once where it is not known how many match.
constexpr std::int64_t rows_first = 128;
constexpr std::int64_t rows_most = 1024;
/// Until a condition is given up and resources are looked at in order, and how long a count takes before the budget is asked.
constexpr std::chrono::milliseconds candidates_time{100};
constexpr std::chrono::milliseconds count_time{100};

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

}  // namespace

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

auto directory_scan::sort_id() const -> std::int64_t {
  return session_.sort_id(*query_.type, part_, *query_.sort_index);
}

void directory_scan::compile() {
  if (query_.filter == nullptr) {
    return;
  }
  condition_ = compile_filter(*query_.filter, *query_.type, session_.index_ids(*query_.type, part_),
                              scim::sql_dialect::postgresql, 3, session_.id_index_ids());
  auto const& base = query_.type->definition.base();
  needs_members_ = query_.type->has_members && asks_for(*query_.filter, base.find("members"));
  needs_groups_ = query_.type->has_groups && asks_for(*query_.filter, base.find("groups"));
}

auto directory_scan::rows() -> outcome<scim::scan_answer<directory_row>> {
  compile();
  auto const rows_max = query_.scan.rows_max;
  if (rows_max == 0) {
    return std::move(answer_);
  }
  answer_.rows.reserve(std::min<std::uint32_t>(rows_max, 1024));
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
    bool const few = found->size() * found->size() <= static_cast<std::size_t>(part_.count);
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

/// Just the page where every row is one of it; otherwise more and more.
auto directory_scan::rows_to_ask() -> std::int64_t {
  bool const all_match = !counting_ && skip_ == 0 && (query_.filter == nullptr || condition_.exact);
  if (asked_rows_ == 0) {
    auto const page = static_cast<std::int64_t>(query_.scan.rows_max);
    asked_rows_ = std::clamp<std::int64_t>(page, all_match ? 1 : rows_first, rows_most);
  } else {
    asked_rows_ = std::min(2 * asked_rows_, rows_most);
  }
  return asked_rows_;
}

auto directory_scan::walk_rids() -> outcome<void> {
  auto over =
      query_.filter != nullptr || counting_ ? std::int64_t{0} : clamped(std::exchange(skip_, 0));
  for (;;) {
    auto const most = rows_to_ask();
    TIDEGATE_TRY(auto const found,
                 session_.ask(up_ ? sql::rids_up : sql::rids_down,
                              parameters(rid_min_, rid_max_, most, std::exchange(over, 0))));
    TIDEGATE_TRY(auto const then, look_at_all(found, false));
    if (then == next::stop || found.size() < most) {
      return {};
    }
    auto const last = found.number(found.size() - 1, 0);
    (up_ ? rid_min_ : rid_max_) = last + (up_ ? 1 : -1);
  }
}

auto directory_scan::walk_keys() -> outcome<void> {
  for (;;) {
    auto const most = rows_to_ask();
    TIDEGATE_TRY(auto const found, session_.ask(up_ ? sql::sorted_up : sql::sorted_down,
                                                parameters(sort_id(), key_from_, rid_from_, most)));
    TIDEGATE_TRY(auto const then, look_at_all(found, true));
    if (then == next::stop || found.size() < most) {
      return {};
    }
    auto const last = found.size() - 1;
    key_from_ = found.octets(last, 4);
    rid_from_ = found.number(last, 0) + (up_ ? 1 : -1);
  }
}

auto directory_scan::walk_equal(std::string_view key) -> outcome<void> {
  auto const index =
      session_.index_id(*query_.type, part_, *query_.type->find_index(query_.filter->path));
  for (;;) {
    auto const most = rows_to_ask();
    TIDEGATE_TRY(auto const found, session_.ask(up_ ? sql::equal_up : sql::equal_down,
                                                parameters(index, key, rid_min_, rid_max_, most)));
    TIDEGATE_TRY(auto const then, look_at_all(found, false));
    if (then == next::stop || found.size() < most) {
      return {};
    }
    auto const last = found.number(found.size() - 1, 0);
    (up_ ? rid_min_ : rid_max_) = last + (up_ ? 1 : -1);
  }
}

auto directory_scan::look_at_all(store_postgres::rows const& found, bool with_key)
    -> outcome<next> {
  for (int i = 0; i < found.size(); ++i) {
    TIDEGATE_TRY(auto const then,
                 look_at({found.number(i, 0), with_key ? found.octets(i, 4) : std::string_view(),
                          found.octets(i, 1), found.boolean(i, 2), found.octets(i, 3)}));
    if (then == next::stop) {
      return then;
    }
  }
  return next::go_on;
}

auto directory_scan::walk_candidates(rids const& candidates) -> outcome<void> {
  auto const first = std::lower_bound(candidates.begin(), candidates.end(), rid_min_);
  auto const last = std::upper_bound(first, candidates.end(), rid_max_);
  rids left(first, last);
  if (!up_) {
    std::reverse(left.begin(), left.end());
  }
  if (condition_.exact && !counting_) {
    auto const over = std::min<std::uint64_t>(skip_, left.size());
    skip_ -= over;
    left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(over));
  }
  for (auto at = left.begin(); at != left.end();) {
    auto const end = at + std::min<std::ptrdiff_t>(rows_to_ask(), left.end() - at);
    TIDEGATE_TRY(auto const found, session_.ask(sql::find_by_rids, parameters(rids(at, end))));
    std::unordered_map<std::int64_t, int> rows;
    for (int i = 0; i < found.size(); ++i) {
      rows.emplace(found.number(i, 0), i);
    }
    for (; at != end; ++at) {
      auto const row = rows.find(*at);
      if (row == rows.end()) {
        continue;
      }
      auto const i = row->second;
      TIDEGATE_TRY(auto const then,
                   look_at({*at, {}, found.octets(i, 1), found.boolean(i, 2), found.octets(i, 3)}));
      if (then == next::stop) {
        return {};
      }
    }
  }
  return {};
}

auto directory_scan::walk_sorted_candidates(rids const& candidates) -> outcome<void> {
  struct place {
    std::string key;
    std::int64_t rid;
    int row;
    auto operator<=>(place const&) const = default;
  };
  TIDEGATE_TRY(auto const found, session_.ask(sql::find_by_rids, parameters(candidates)));
  std::vector<place> places;
  for (int i = 0; i < found.size(); ++i) {
    auto const rid = found.number(i, 0);
    TIDEGATE_TRY(auto const resource, parse_stored(session_.server_, rid, found.octets(i, 3)));
    for (auto& entry : index_entries(*query_.type, resource)) {
      if (entry.index == *query_.sort_index && entry.sorts) {
        places.push_back({std::move(entry.key), rid, i});
      }
    }
  }
  std::sort(places.begin(), places.end());
  if (!up_) {
    std::reverse(places.begin(), places.end());
  }
  auto const from = std::tie(key_from_, rid_from_);
  for (auto const& p : places) {
    auto const at = std::tie(p.key, p.rid);
    if (up_ ? at < from : from < at) {
      continue;
    }
    TIDEGATE_TRY(auto const then, look_at({p.rid, p.key, found.octets(p.row, 1),
                                           found.boolean(p.row, 2), found.octets(p.row, 3)}));
    if (then == next::stop) {
      return {};
    }
  }
  return {};
}

auto directory_scan::walk_keys_of(rids const& candidates) -> outcome<void> {
  for (;;) {
    TIDEGATE_TRY(auto const keys, session_.ask(up_ ? sql::keys_up : sql::keys_down,
                                               parameters(sort_id(), key_from_, rid_from_, rid_max_,
                                                          rows_most, std::int64_t{0})));
    rids met;
    for (int i = 0; i < keys.size(); ++i) {
      if (std::binary_search(candidates.begin(), candidates.end(), keys.number(i, 0))) {
        met.push_back(keys.number(i, 0));
      }
    }
    TIDEGATE_TRY(auto const found, session_.ask(sql::find_by_rids, parameters(met)));
    std::unordered_map<std::int64_t, int> rows;
    for (int i = 0; i < found.size(); ++i) {
      rows.emplace(found.number(i, 0), i);
    }
    for (int i = 0; i < keys.size(); ++i) {
      auto const rid = keys.number(i, 0);
      auto const key = keys.octets(i, 1);
      auto const row = rows.find(rid);
      auto then = next::go_on;
      if (row == rows.end()) {
        then = passed(rid, key);
      } else {
        TIDEGATE_TRY(then, look_at({rid, key, found.octets(row->second, 1),
                                    found.boolean(row->second, 2), found.octets(row->second, 3)}));
      }
      if (then == next::stop) {
        return {};
      }
    }
    if (keys.size() < rows_most) {
      return {};
    }
    auto const last = keys.size() - 1;
    key_from_ = keys.octets(last, 1);
    rid_from_ = keys.number(last, 0) + (up_ ? 1 : -1);
  }
}

// ---- one resource ----

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
  answer_.rows.push_back({{std::string(row.key), static_cast<std::uint64_t>(row.rid)},
                          texts_->keep(row.id),
                          texts_->keep(row.text),
                          row.in_groups,
                          texts_});
  return answer_.rows.size() < query_.scan.rows_max ? next::go_on : next::stop;
}

auto directory_scan::passed(std::int64_t rid, std::string_view key) -> next {
  if (++passed_ % rows_between != 0 || !query_.spent || !query_.spent()) {
    return next::go_on;
  }
  answer_.stopped = scim::position{std::string(key), static_cast<std::uint64_t>(rid)};
  return next::stop;
}

auto directory_scan::is_match(row_view const& row) -> outcome<bool> {
  TIDEGATE_TRY(auto resource, parse_stored(session_.server_, row.rid, row.text));
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
      condition_.condition.empty() || std::holds_alternative<std::nullptr_t>(f.value) ||
      !query_.type->find_index(f.path)) {
    return std::nullopt;
  }
  return index_key(*f.path.leaf(), f.value);
}

auto directory_scan::condition_values() const -> parameters {
  parameters values(rid_base(part_.id) + 1, rid_base(part_.id) + sequence_max);
  for (auto const& value : condition_.values) {
    std::visit([&](auto const& v) { values.add(v); }, value);
  }
  return values;
}

/// The query for the rids for which the condition holds, its placeholders from 3 on. Where it is not that of the
/// condition itself, the first and the second are the lowest and the highest rid.
auto directory_scan::rids_query(std::string const& what, std::string const& tail) const
    -> std::string {
  auto const rids =
      condition_.rids.empty()
          ? "SELECT rid FROM resource WHERE rid >= $1 AND rid <= $2 AND " + condition_.condition
          : condition_.rids;
  return "SELECT " + what + " FROM (" + rids + ") AS found (rid)" + tail;
}

auto directory_scan::ask_within(std::chrono::milliseconds most, std::string const& text,
                                parameters const& values)
    -> outcome<std::optional<store_postgres::rows>> {
  TIDEGATE_TRY_VOID(session_.send_added());
  TIDEGATE_TRY_VOID(session_.send(sql::begin_look));
  TIDEGATE_TRY_VOID(
      session_.server_.send("SET LOCAL statement_timeout TO " + std::to_string(most.count())));
  session_.server_.forget_error();
  auto found = session_.ask(text, values);
  // 57014: the time is over.
  bool const is_over = !found && session_.server_.sqlstate() == "57014";
  if (!found && !is_over) {
    return failure(std::move(found).error());
  }
  session_.server_.forget_error();
  TIDEGATE_TRY_VOID(session_.send(sql::end_look));  // the limit is what it was
  TIDEGATE_TRY_VOID(session_.send(sql::release_look));
  if (is_over) {
    return std::nullopt;
  }
  return std::move(*found);
}

auto directory_scan::ask_until_spent(std::string const& text, parameters const& values)
    -> outcome<std::optional<store_postgres::rows>> {
  // The server cannot ask our budget. It is given more time again and again, in which no more than a third is lost.
  auto const limit = session_.server_.timeout();
  for (auto most = std::min(count_time, limit);; most = std::min(4 * most, limit)) {
    TIDEGATE_TRY(auto found, ask_within(most, text, values));
    if (found || most == limit || (query_.spent && query_.spent())) {
      return found;
    }
  }
}

auto directory_scan::candidates() -> outcome<std::optional<rids>> {
  if (condition_.condition.empty()) {
    return std::nullopt;
  }
  // To take a rid costs a small part of what it costs to look at a resource. Where there are as many as this, a page of a
  // hundred is found by looking at resources in the same time.
  auto const most =
      512 + static_cast<std::size_t>(std::sqrt(4000.0 * static_cast<double>(part_.count)));
  auto const text = rids_query("rid", " LIMIT " + std::to_string(most + 1));
  TIDEGATE_TRY(auto const found, ask_within(candidates_time, text, condition_values()));
  if (!found || static_cast<std::size_t>(found->size()) > most) {
    return std::nullopt;
  }
  rids all;
  all.reserve(static_cast<std::size_t>(found->size()));
  for (int i = 0; i < found->size(); ++i) {
    if (auto const rid = found->number(i, 0); part_of(rid) == part_.id) {
      all.push_back(rid);  // members of a group may be of other types
    }
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// ---- index paging ----

/// Goes over whole blocks while all of them is to be left out.
auto directory_scan::skip_blocks() -> outcome<void> {
  if (session_.writing_ || skip_ < (1U << block_shift)) {
    return {};  // blocks are written at the end of a transaction
  }
  // The blocks at both ends may be part of the scan in part only.
  auto const first = block_of(rid_min_ - 1) + 1;
  auto const last = block_of(rid_max_ + 1) - 1;
  auto const edge = up_ ? (first << block_shift) - 1 : (last + 1) << block_shift;
  if (first > last) {
    return {};
  }
  TIDEGATE_TRY(auto const head, session_.ask(sql::count_rids, parameters(up_ ? rid_min_ : edge,
                                                                         up_ ? edge : rid_max_)));
  auto const before = static_cast<std::uint64_t>(head.number(0, 0));
  if (before > skip_) {
    return {};
  }
  skip_ -= before;
  (up_ ? rid_min_ : rid_max_) = up_ ? edge + 1 : edge - 1;
  TIDEGATE_TRY(auto const blocks,
               session_.ask(up_ ? sql::blocks_up : sql::blocks_down, parameters(first, last)));
  for (int i = 0; i < blocks.size(); ++i) {
    auto const count = static_cast<std::uint64_t>(blocks.number(i, 1));
    if (count > skip_) {
      return {};
    }
    skip_ -= count;
    auto const block = blocks.number(i, 0);
    (up_ ? rid_min_ : rid_max_) = up_ ? (block + 1) << block_shift : (block << block_shift) - 1;
  }
  return {};
}

/// Goes over entries without looking at what they are of.
auto directory_scan::skip_keys() -> outcome<void> {
  TIDEGATE_TRY(auto const found,
               session_.ask(up_ ? sql::keys_up : sql::keys_down,
                            parameters(sort_id(), key_from_, rid_from_, rid_max_, std::int64_t{1},
                                       clamped(std::exchange(skip_, 0)))));
  bool const there = found.size() > 0;
  rid_from_ = there ? found.number(0, 0) : 0;
  key_from_ = there ? found.octets(0, 1) : up_ ? last_key : std::string_view();
  return {};
}

// ---- counting ----

auto directory_scan::count_all() -> outcome<std::uint64_t> {
  if (rid_max_ >= part_.last_rid) {
    return static_cast<std::uint64_t>(part_.count);
  }
  std::int64_t all = 0;
  auto from = rid_min_;
  if (!session_.writing_) {
    auto const last = block_of(rid_max_ + 1) - 1;
    TIDEGATE_TRY(auto const blocks,
                 session_.ask(sql::blocks_up, parameters(block_of(rid_min_), last)));
    for (int i = 0; i < blocks.size(); ++i) {
      all += blocks.number(i, 1);
    }
    from = std::max(from, (last + 1) << block_shift);
  }
  TIDEGATE_TRY(auto const rest, session_.ask(sql::count_rids, parameters(from, rid_max_)));
  return static_cast<std::uint64_t>(all + rest.number(0, 0));
}

/// What the condition counts, which is exact. Nothing when it takes too long.
auto directory_scan::count_condition() -> outcome<std::optional<std::uint64_t>> {
  std::optional<store_postgres::rows> found;
  if (auto const key = equal_key()) {
    auto const index =
        session_.index_id(*query_.type, part_, *query_.type->find_index(query_.filter->path));
    TIDEGATE_TRY(found, ask_until_spent(std::string(statement_text(sql::count_equal)),
                                        parameters(index, *key, rid_max_)));
  } else {
    auto values = condition_values();
    values.add(rid_min_);
    values.add(rid_max_);
    auto const last = values.size();
    TIDEGATE_TRY(found,
                 ask_until_spent(rids_query("count(DISTINCT rid)",
                                            " WHERE rid BETWEEN $" + std::to_string(last - 1) +
                                                " AND $" + std::to_string(last)),
                                 values));
  }
  return found ? std::optional(static_cast<std::uint64_t>(found->number(0, 0))) : std::nullopt;
}

auto directory_scan::count() -> outcome<directory_count> {
  compile();
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
    auto const* const part = find_part(*query.type);
    if (part == nullptr) {
      return scim::scan_answer<directory_row>{};
    }
    TIDEGATE_TRY(auto found, directory_scan(*this, *part, query).rows());
    if (query.each) {
      // Not while they come: what they are shown to may ask the server for more.
      for (auto const& row : std::exchange(found.rows, {})) {
        if (!query.each({row.at.rid, row.at.sort_key, row.id, row.text, row.maybe_in_groups})) {
          break;
        }
      }
    }
    return found;
  });
}

auto directory_session::count(directory_query const& query) -> outcome<directory_count> {
  return noting([&]() -> outcome<directory_count> {
    auto const* const part = find_part(*query.type);
    if (part == nullptr) {
      return directory_count{0};
    }
    auto all = query;
    all.scan = {};
    all.sort_index = std::nullopt;
    all.descending = false;
    return directory_scan(*this, *part, all).count();
  });
}

auto directory_session::counts_cheaply(directory_query const& query) -> bool {
  if (query.filter == nullptr) {
    return true;
  }
  // Which numbers its indexes have makes no difference.
  std::vector<std::int64_t> const any(query.type->indexes.size(), 1);
  return compile_filter(*query.filter, *query.type, any, scim::sql_dialect::postgresql, 1, any)
      .exact;
}

}  // namespace tidegate::store_postgres
