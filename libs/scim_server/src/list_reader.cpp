// SPDX-License-Identifier: Apache-2.0
#include "list_reader.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

namespace tidegate::gateway {

namespace {

using scim::direction;
using scim::error;
using scim::page_place;
using scim::position;
using scim::scim_type;
using store::directory_row;
using store::directory_row_view;

/// So many resources are sorted by an attribute without an index.
constexpr std::uint32_t sorted_rows_max = 100'000;
/// So many of them are in memory at once, besides those of the page.
constexpr std::uint32_t sorted_rows_at_once = 500;
/// A loop does not read more by itself.
constexpr std::size_t quick_octets_max = 256 * 1024;
/// Pages by index need a count, however long it takes to look at everything, up to this.
constexpr std::chrono::nanoseconds index_time_max = std::chrono::seconds(2);

auto in_order(position const& a, position const& b, bool descending) -> bool {
  return descending ? b < a : a < b;
}

/// Whether a position is one that a scan from `place` meets. `descending` is how it goes.
auto is_ahead(position const& at, page_place const& place, bool descending) -> bool {
  if (!place.from || at == place.from->at) {
    // Going backward, what is behind the gap in the order of the walk was met before.
    return !place.from || place.from->behind != (place.towards == direction::forward);
  }
  return in_order(place.from->at, at, descending);
}

auto too_dear() -> error {
  return bad_request(scim_type::too_many,
                     "The filter needs an index for pages by startIndex; pages by cursor do not.");
}

auto no_cursor() -> error {
  return {500, scim_type::none, "The cursor could not be created."};
}

/// A row of a list. Its text stands in that of the list already.
struct list_row {
  scim::position at;
  std::size_t begin = 0;
  std::size_t end = 0;
};
using rows_answer = scim::scan_answer<list_row>;

/// One list, in one state of the directory.
class list_reader {
 public:
  list_reader(list_plan const& plan, store::directory_reader& from, read_effort effort)
      : plan_(plan),
        options_(*plan.call->request.options),
        from_(from),
        is_quick_(effort == read_effort::quick) {}

  /// Nothing when it takes more than a quick read may.
  auto answer() -> std::optional<result<scim_answer, error>> {
    auto made = read();
    return is_long_ ? std::nullopt : std::optional(std::move(made));
  }

 private:
  auto read() -> result<scim_answer, error> {
    if (plan_.from) {
      rid_max_ = plan_.from->rid_max;
      total_ = plan_.from->total_results;
    } else if (plan_.is_walk()) {
      rid_max_ = 0;
      for (auto const& part : plan_.parts) {
        TIDEGATE_TRY(auto const newest, or_unavailable(from_.newest(*part.view.type)));
        rid_max_ = std::max(rid_max_, newest);
      }
    }
    if (plan_.count == 0) {
      TIDEGATE_TRY_VOID(count_all());
      return list_answer({}, {});
    }
    return plan_.is_walk() ? walk() : index_page();
  }

  // ---- pages ----

  auto walk() -> result<scim_answer, error> {
    auto const place = plan_.from ? plan_.from->place : page_place{};
    std::optional<error> failed;
    auto page = scim::read_page<list_row>(
        place, plan_.count,
        [&](scim::scan const& wanted) {
          return failed || is_long_ ? rows_answer() : scan(wanted, failed);
        },
        [](list_row const& row) { return row.at; });
    if (failed) {
      return failure(*std::move(failed));
    }
    if (is_long_) {
      return scim_answer{};  // which is dropped
    }
    if (!plan_.from) {
      if (!page.next) {
        total_ = page.rows.size();
      } else {
        TIDEGATE_TRY_VOID(count_all());
      }
    }
    scim::list_head head;
    std::array<scim::cursor_sealer::nonce, 2> random{};
    if (::getrandom(random.data(), sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
      return failure(no_cursor());
    }
    TIDEGATE_TRY(head.next_cursor, cursor_to(page.next, random[0]));
    TIDEGATE_TRY(head.previous_cursor, cursor_to(page.previous, random[1]));
    return list_answer(std::move(head), page.rows);
  }

  auto index_page() -> result<scim_answer, error> {
    std::vector<list_row> rows;
    if (plan_.sorted_by) {
      TIDEGATE_TRY(rows, sorted_index_rows());
    } else {
      TIDEGATE_TRY(rows, index_rows());
    }
    if (!total_) {
      auto const skipped = plan_.asked.start_index - 1;
      if (rows.size() < plan_.count && !is_full_ && (skipped == 0 || !rows.empty())) {
        total_ = skipped + rows.size();
      } else {
        TIDEGATE_TRY(total_, count_part(plan_.parts.front(), index_time_max));
      }
    }
    return list_answer({}, rows);
  }

  auto index_rows() -> result<std::vector<list_row>, error> {
    rows_answer found;
    auto& rows = found.rows;
    std::optional<error> failed;
    auto skip = plan_.asked.start_index - 1;
    bool const has_types = plan_.parts.size() > 1;
    for (auto const& part : plan_.parts) {
      if (has_types) {  // what is skipped may go over several
        TIDEGATE_TRY(auto const of_part, count_part(part, index_time_max));
        total_ = total_.value_or(0) + of_part;
        if (skip >= of_part) {
          skip -= of_part;
          continue;
        }
      }
      if (rows.size() == plan_.count || is_full_) {
        continue;
      }
      auto query = query_of(part, index_time_max);
      query.scan = {page_place{}, plan_.count - static_cast<std::uint32_t>(rows.size())};
      query.skip = std::exchange(skip, 0);
      scan_part(part, query, found, failed);
      if (found.stopped && !is_full_ && !failed) {
        failed = too_dear();
      }
      if (failed) {
        return failure(*std::move(failed));
      }
    }
    return std::move(rows);
  }

  auto sorted_index_rows() -> result<std::vector<list_row>, error> {
    auto const skip = std::min<std::uint64_t>(plan_.asked.start_index - 1, sorted_rows_max);
    std::optional<error> failed;
    auto found =
        sorted_scan({page_place{}, static_cast<std::uint32_t>(skip) + plan_.count}, failed);
    total_ = sorted_rows_;
    auto rows = show(std::span(found).subspan(std::min<std::size_t>(skip, found.size())), failed);
    if (failed) {
      return failure(*std::move(failed));
    }
    return rows;
  }

  // ---- scans ----

  auto scan(scim::scan const& wanted, std::optional<error>& failed) -> rows_answer {
    scan_begin_ = content_.size();
    is_full_ = false;
    if (plan_.sorted_by) {
      auto const found = sorted_scan(wanted, failed);
      rows_answer shown{show(found, failed), std::nullopt};
      if (is_full_) {
        shown.stopped = shown.rows.back().at;
      }
      return shown;
    }
    if (plan_.parts.size() > 1) {
      return scan_types(wanted, failed);
    }
    rows_answer found;
    auto query = query_of(plan_.parts.front(), options_.scan_budget);
    query.scan = wanted;
    scan_part(plan_.parts.front(), query, found, failed);
    return found;
  }

  /// Adds the rows of a scan to those of the list. The one behind the page, which says that there
  /// is another page, is not shown.
  void scan_part(list_part const& part, store::directory_query& query, rows_answer& into,
                 std::optional<error>& failed) {
    auto& rows = into.rows;
    rows.reserve(std::min<std::size_t>(rows.size() + query.scan.rows_max, 1024));
    bool const has_types = plan_.parts.size() > 1;
    query.each = [&](directory_row_view const& row) {
      if (is_quick_ && takes_long(part, row)) {
        is_long_ = true;
        return false;
      }
      // Of the rows of a scan only the last that is shown may become a place of a cursor.
      bool const is_last = rows.size() + 1 == plan_.count;
      auto shown = list_row{{has_types ? key_of_part(part)
                             : is_last ? std::string(row.sort_key)
                                       : std::string(),
                             row.rid}};
      if (rows.size() < plan_.count) {
        if (!show_if_it_fits(shown, part, row, !rows.empty(), failed)) {
          into.stopped = last_shown_;
          return false;
        }
        last_shown_.sort_key.assign(has_types ? std::string_view(shown.at.sort_key) : row.sort_key);
        last_shown_.rid = row.rid;
      }
      rows.push_back(std::move(shown));
      return !failed;
    };
    auto found = from_.scan(query);
    if (!found) {
      failed = unavailable(found.error());
    } else if (found->stopped && !is_full_) {
      is_long_ = is_quick_;
      into.stopped = std::move(found->stopped);
      if (has_types) {
        into.stopped->sort_key = key_of_part(part);
      }
    }
  }

  /// Whether to show a row may take longer than a quick read does.
  auto takes_long(list_part const& part, directory_row_view const& row) const -> bool {
    return (part.view.type->has_groups && row.maybe_in_groups) ||
           content_.size() + row.text.size() > quick_octets_max;
  }

  /// Shows a row, unless the page has rows and is full, or would be longer than any answer with
  /// this one. False then.
  auto show_if_it_fits(list_row& into, list_part const& part, directory_row_view const& row,
                       bool has_rows, std::optional<error>& failed) -> bool {
    auto const begin = content_.size();
    if (has_rows && begin - scan_begin_ >= plan_.call->request.page_octets) {
      is_full_ = true;
      return false;
    }
    show(into, part, row, failed);
    if (has_rows && failed && failed->type == scim_type::too_many) {
      failed.reset();
      content_.resize(begin);
      is_full_ = true;
      return false;
    }
    return true;
  }

  /// Writes what the client gets of a row.
  void show(list_row& into, list_part const& part, directory_row_view const& row,
            std::optional<error>& failed) {
    if (content_.empty()) {  // the others are likely to be as long
      constexpr std::size_t added_octets = 160;
      std::size_t const rows =
          part.where && asks_for_one(*part.where, *part.view.type) ? 1 : plan_.count;
      content_.reserve(std::min(rows * (row.text.size() + added_octets), quick_octets_max));
    } else {
      content_.push_back(',');
    }
    into.begin = content_.size();
    auto const shown =
        append_shown(content_, from_, part.view, {row.rid, row.id, row.text, row.maybe_in_groups});
    into.end = content_.size();
    if (!shown) {
      failed = shown.error();
    }
  }

  auto show(std::span<directory_row const> found, std::optional<error>& failed)
      -> std::vector<list_row> {
    std::vector<list_row> rows;
    for (auto const& row : found) {
      list_row shown{row.at};
      if (!failed && rows.size() < plan_.count &&
          !show_if_it_fits(shown, plan_.parts.front(),
                           {row.at.rid, row.at.sort_key, row.id, row.text, row.maybe_in_groups},
                           !rows.empty(), failed)) {
        break;
      }
      rows.push_back(std::move(shown));
    }
    return rows;
  }

  /// Type after type.
  auto scan_types(scim::scan const& wanted, std::optional<error>& failed) -> rows_answer {
    bool const forward = wanted.place.towards == direction::forward;
    auto const count = plan_.parts.size();
    auto at = forward ? std::size_t{0} : count - 1;
    auto place = wanted.place;
    if (place.from) {
      auto& key = place.from->at.sort_key;
      at = key.empty() ? at : std::min<std::size_t>(static_cast<unsigned char>(key[0]), count - 1);
      key.clear();
    }
    rows_answer all;
    while (!failed) {
      auto query = query_of(plan_.parts[at], options_.scan_budget);
      query.scan = {place, wanted.rows_max - static_cast<std::uint32_t>(all.rows.size())};
      scan_part(plan_.parts[at], query, all, failed);
      if (all.stopped || all.rows.size() >= wanted.rows_max || at == (forward ? count - 1 : 0)) {
        break;
      }
      at = forward ? at + 1 : at - 1;
      place = {wanted.place.towards, std::nullopt};
    }
    return all;
  }

  /// Without an index for it: the best rows of all, kept in a heap while every row is looked at.
  auto sorted_scan(scim::scan const& wanted, std::optional<error>& failed)
      -> std::vector<directory_row> {
    bool const forward = wanted.place.towards == direction::forward;
    // The order in which rows are met: that of the walk, or going backward the other way.
    bool const descending = plan_.asked.descending == forward;
    auto const comes_first = [&](directory_row const& a, directory_row const& b) {
      return in_order(a.at, b.at, descending);
    };
    std::vector<directory_row> best;  // a heap, with the last of them in front
    sorted_rows_ = 0;
    page_place place;
    for (bool more = true; more && !failed;) {
      auto query = query_of(plan_.parts.front(), index_time_max);
      query.scan = {place, sorted_rows_at_once};
      auto scanned = from_.scan(query);
      if (!scanned) {
        failed = unavailable(scanned.error());
        break;
      }
      auto& found = *scanned;
      more = found.rows.size() == sorted_rows_at_once;
      sorted_rows_ += found.rows.size();
      if (found.stopped || sorted_rows_ > sorted_rows_max) {
        failed = bad_request(scim_type::too_many,
                             "There are too many resources to sort them by an attribute without an "
                             "index; \"indexes\" of this service can have \"" +
                                 plan_.sorted_by->indexes.front().name + "\".");
        break;
      }
      if (more) {
        place.from = scim::gap{found.rows.back().at, true};
      }
      for (auto& row : found.rows) {
        row.at.sort_key = sort_key_of(row.text);
        if (!is_ahead(row.at, wanted.place, descending)) {
          continue;
        }
        best.push_back(std::move(row));
        std::ranges::push_heap(best, comes_first);
        if (best.size() > wanted.rows_max) {
          std::ranges::pop_heap(best, comes_first);
          best.pop_back();
        }
      }
    }
    std::ranges::sort_heap(best, comes_first);
    return best;
  }

  auto sort_key_of(std::string_view text) const -> std::string {
    auto const resource = json::parse(text, {.octets_max = text.size()});
    if (resource) {
      for (auto& entry : scim::index_entries(*plan_.sorted_by, *resource)) {
        if (entry.sorts) {
          return std::move(entry.key);
        }
      }
    }
    return std::string(scim::missing_key);
  }

  auto query_of(list_part const& part, std::chrono::nanoseconds time) const
      -> store::directory_query {
    store::directory_query query;
    query.type = part.view.type;
    query.filter = part.where ? &*part.where : nullptr;
    query.sort_index = plan_.sort_index;
    query.descending = plan_.sort_index && plan_.asked.descending;
    query.rid_max = rid_max_;
    if (is_quick_) {
      query.spent = [] { return true; };
    } else {
      query.spent = [until = std::chrono::steady_clock::now() + time] {
        return std::chrono::steady_clock::now() >= until;
      };
    }
    return query;
  }

  // ---- totalResults ----

  auto count_part(list_part const& part, std::chrono::nanoseconds time)
      -> result<std::uint64_t, error> {
    TIDEGATE_TRY(auto const counted, or_unavailable(from_.count(query_of(part, time))));
    if (!counted.total) {
      is_long_ = is_quick_;
      return failure(too_dear());
    }
    return *counted.total;
  }

  /// In a walk it is left out where it would take too long (RFC 9865, section 2).
  auto count_all() -> result<void, error> {
    std::uint64_t all = 0;
    for (auto const& part : plan_.parts) {
      if (!plan_.is_walk()) {
        TIDEGATE_TRY(auto const of_part, count_part(part, index_time_max));
        all += of_part;
        continue;
      }
      TIDEGATE_TRY(auto const counted,
                   or_unavailable(from_.count(query_of(part, options_.scan_budget))));
      if (!counted.total) {
        is_long_ = is_quick_;
        return {};
      }
      all += *counted.total;
    }
    total_ = all;
    return {};
  }

  // ---- the answer ----

  auto cursor_to(std::optional<page_place> const& place,
                 scim::cursor_sealer::nonce const& random) const -> result<std::string, error> {
    if (!place) {
      return std::string();
    }
    auto const& call = *plan_.call;
    scim::cursor const made{.place = *place,
                            .count = plan_.count,
                            .rid_max = rid_max_,
                            .total_results = total_,
                            .expires = call.now + options_.pagination.cursor_timeout};
    auto sealed = call.parts->cursors.seal(made, plan_.binding(), random);
    if (!sealed) {
      return failure(no_cursor());
    }
    return *std::move(sealed);
  }

  auto list_answer(scim::list_head head, std::span<list_row const> rows)
      -> result<scim_answer, error> {
    head.total_results = total_;
    if (!plan_.is_walk()) {
      head.start_index = plan_.asked.start_index;
    }
    take_in_order(rows);
    content_.append("]}");
    auto answer = json_answer(200, std::move(content_));
    scim::append_list_begin(answer.content_begin, head, rows.size());
    return answer;
  }

  /// Makes the text that of these rows, one after the other. That is what it is already, but for
  /// pages that go backward.
  void take_in_order(std::span<list_row const> rows) {
    std::size_t end = 0;
    bool in_order = true;
    for (auto const& row : rows) {
      in_order = in_order && row.begin == (end == 0 ? 0 : end + 1);
      end = row.end;
    }
    if (in_order) {
      content_.resize(end);
      return;
    }
    std::string ordered;
    ordered.reserve(content_.size() + 2);
    for (auto const& row : rows) {
      ordered.append(ordered.empty() ? "" : ",");
      ordered.append(content_, row.begin, row.end - row.begin);
    }
    content_ = std::move(ordered);
  }

  /// A position among several types has the number of its type as its sort key.
  auto key_of_part(list_part const& part) const -> std::string {
    return std::string(1, static_cast<char>(&part - plan_.parts.data()));
  }

  list_plan const& plan_;
  scim_config const& options_;
  store::directory_reader& from_;
  std::uint64_t rid_max_ = UINT64_MAX;
  std::optional<std::uint64_t> total_;
  std::uint64_t sorted_rows_ = 0;  // that the last scan looked at
  std::string content_;            // of the rows that were shown
  std::size_t scan_begin_ = 0;     // where those of the last scan begin in it
  scim::position last_shown_;      // the place of the last row in it
  bool is_full_ = false;           // the last scan ended since the page is long enough
  bool is_quick_ = false;
  bool is_long_ = false;  // too long for a quick read
};

}  // namespace

auto asks_for_one(scim::filter const& where, scim::model_type const& type) -> bool {
  if (where.kind != scim::filter_kind::compare || where.op != scim::compare_op::eq ||
      std::holds_alternative<std::nullptr_t>(where.value)) {
    return false;
  }
  auto const index = type.find_index(where.path);
  return index && type.indexes[*index].unique;
}

auto read_list(list_plan const& plan, store::directory_reader& from, read_effort effort)
    -> std::optional<result<scim_answer, error>> {
  return list_reader(plan, from, effort).answer();
}

}  // namespace tidegate::gateway
