// SPDX-License-Identifier: Apache-2.0
//
// Lists of resources (RFC 7644, sections 3.4.2 and 3.4.3; RFC 9865): of one type, or of all types one after the
// other.
#include "scim_job.hpp"

#include <tidegate/scim/list_request.hpp>
#include <tidegate/scim/list_response.hpp>
#include <tidegate/scim/walk.hpp>

#include <sys/random.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace tidegate::gateway {

namespace {

using scim::direction;
using scim::error;
using scim::page_place;
using scim::pagination_method;
using scim::position;
using scim::scim_type;
using store::directory_row;
using rows_answer = scim::scan_answer<directory_row>;

/// So many resources are sorted by an attribute without an index.
constexpr std::uint32_t sorted_rows_max = 100'000;
/// So many of them are in memory at once, besides those of the page.
constexpr std::uint32_t sorted_rows_at_once = 500;
/// Pages by index need a count, however long it takes to look at everything, up to this.
constexpr std::chrono::nanoseconds index_time_max = std::chrono::seconds(2);

/// The resources of one type in a list.
struct list_part {
  resource_view view;
  std::optional<scim::filter> where;
};

/// What a request asks for, resolved.
struct list_plan {
  std::shared_ptr<scim_job const> job;
  scim::list_request asked;
  std::vector<list_part>
      parts;  ///< in the order of the list; with several, a sort key is the number of one
  std::string canonical_filter;
  std::optional<scim::cursor> from;
  std::uint32_t count = 0;
  std::optional<std::size_t> sort_index;
  /// With one index only, that of an attribute which the directory has none for.
  std::optional<scim::model_type> sorted_by;

  [[nodiscard]] auto is_walk() const -> bool { return asked.method == pagination_method::cursor; }
  [[nodiscard]] auto binding() const -> scim::cursor_binding {
    return {.tenant = job->request.tenant,
            .principal = job->request.principal,
            .endpoint = job->target.type != nullptr
                            ? std::string_view(job->target.type->definition.type().endpoint)
                            : "/",
            .filter = canonical_filter,
            .sort_by = asked.sort_by,
            .descending = asked.descending,
            .attributes = asked.attributes,
            .excluded_attributes = asked.excluded_attributes};
  }
};

auto in_order(position const& a, position const& b, bool descending) -> bool {
  return descending ? b < a : a < b;
}

/// One list, in one state of the directory.
class list_reader {
 public:
  list_reader(list_plan const& plan, store::directory_reader& from)
      : plan_(plan), how_(*plan.job->request.how), from_(from) {}

  auto answer() -> result<scim_answer, error> {
    if (plan_.from) {
      rid_max_ = plan_.from->rid_max;
      total_ = plan_.from->total_results;
    } else if (plan_.is_walk()) {
      rid_max_ = 0;
      for (auto const& part : plan_.parts) {
        TIDEGATE_TRY(auto const newest, told(from_.newest(*part.view.type)));
        rid_max_ = std::max(rid_max_, newest);
      }
    }
    if (plan_.count == 0) {
      TIDEGATE_TRY_VOID(count_all());
      return list_answer({}, {});
    }
    return plan_.is_walk() ? walk() : index_page();
  }

 private:
  // ---- pages ----

  auto walk() -> result<scim_answer, error> {
    auto const place = plan_.from ? plan_.from->place : page_place{};
    std::optional<error> failed;
    auto page = scim::read_page<directory_row>(
        place, plan_.count,
        [&](scim::scan const& wanted) { return failed ? rows_answer() : scan(wanted, failed); },
        [](directory_row const& row) { return row.at; });
    if (failed) {
      return failure(*std::move(failed));
    }
    if (!plan_.from) {
      if (!page.next) {
        total_ = page.rows.size();
      } else {
        TIDEGATE_TRY_VOID(count_all());
      }
    }
    scim::list_head head;
    TIDEGATE_TRY(head.next_cursor, cursor_to(page.next));
    TIDEGATE_TRY(head.previous_cursor, cursor_to(page.previous));
    return list_answer(std::move(head), page.rows);
  }

  auto index_page() -> result<scim_answer, error> {
    std::vector<directory_row> rows;
    if (plan_.sorted_by) {
      TIDEGATE_TRY(rows, sorted_index_rows());
    } else {
      TIDEGATE_TRY(rows, index_rows());
    }
    if (!total_) {
      auto const skipped = plan_.asked.start_index - 1;
      if (rows.size() < plan_.count && (skipped == 0 || !rows.empty())) {
        total_ = skipped + rows.size();
      } else {
        TIDEGATE_TRY(total_, count_part(plan_.parts.front(), index_time_max));
      }
    }
    return list_answer({}, rows);
  }

  auto index_rows() -> result<std::vector<directory_row>, error> {
    std::vector<directory_row> rows;
    std::optional<error> failed;
    auto skip = plan_.asked.start_index - 1;
    bool const has_types = plan_.parts.size() > 1;
    for (std::size_t i = 0; i < plan_.parts.size(); ++i) {
      if (has_types) {  // what is skipped may go over several
        TIDEGATE_TRY(auto const of_part, count_part(plan_.parts[i], index_time_max));
        total_ = total_.value_or(0) + of_part;
        if (skip >= of_part) {
          skip -= of_part;
          continue;
        }
      }
      if (rows.size() == plan_.count) {
        continue;
      }
      auto query = query_of(plan_.parts[i], index_time_max);
      query.scan = {page_place{}, plan_.count - static_cast<std::uint32_t>(rows.size())};
      query.skip = std::exchange(skip, 0);
      auto found = take(from_.scan(query), failed);
      if (found.stopped) {
        failed = too_dear();
      }
      if (failed) {
        return failure(*std::move(failed));
      }
      for (auto& row : found.rows) {
        if (has_types) {
          row.at.sort_key = key_of_part(i);
        }
        rows.push_back(std::move(row));
      }
    }
    return rows;
  }

  auto sorted_index_rows() -> result<std::vector<directory_row>, error> {
    auto const skip = std::min<std::uint64_t>(plan_.asked.start_index - 1, sorted_rows_max);
    std::optional<error> failed;
    auto found =
        sorted_scan({page_place{}, static_cast<std::uint32_t>(skip) + plan_.count}, failed);
    if (failed) {
      return failure(*std::move(failed));
    }
    total_ = sorted_rows_;
    auto const left_out =
        static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(skip, found.rows.size()));
    found.rows.erase(found.rows.begin(), found.rows.begin() + left_out);
    return std::move(found.rows);
  }

  // ---- scans ----

  auto scan(scim::scan const& wanted, std::optional<error>& failed) -> rows_answer {
    if (plan_.sorted_by) {
      return sorted_scan(wanted, failed);
    }
    if (plan_.parts.size() > 1) {
      return scan_types(wanted, failed);
    }
    auto query = query_of(plan_.parts.front(), how_.scan_budget);
    query.scan = wanted;
    return take(from_.scan(query), failed);
  }

  /// Type after type: a position has the number of its type as its sort key.
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
      auto query = query_of(plan_.parts[at], how_.scan_budget);
      query.scan = {place, wanted.rows_max - static_cast<std::uint32_t>(all.rows.size())};
      auto found = take(from_.scan(query), failed);
      auto const key = key_of_part(at);
      for (auto& row : found.rows) {
        row.at.sort_key = key;
        all.rows.push_back(std::move(row));
      }
      if (found.stopped) {
        all.stopped = std::move(found.stopped);
        all.stopped->sort_key = key;
        break;
      }
      if (all.rows.size() >= wanted.rows_max || at == (forward ? count - 1 : 0)) {
        break;
      }
      at = forward ? at + 1 : at - 1;
      place = {wanted.place.towards, std::nullopt};
    }
    return all;
  }

  /// Without an index for it: the best rows of all, kept in a heap while every row is looked at.
  auto sorted_scan(scim::scan const& wanted, std::optional<error>& failed) -> rows_answer {
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
      auto found = take(from_.scan(query), failed);
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
    return {std::move(best), std::nullopt};
  }

  /// Whether a position is one that a scan from `place` meets. `descending` is how it goes.
  static auto is_ahead(position const& at, page_place const& place, bool descending) -> bool {
    if (!place.from || at == place.from->at) {
      // Going backward, what is behind the gap in the order of the walk was met before.
      return !place.from || place.from->behind != (place.towards == direction::forward);
    }
    return in_order(place.from->at, at, descending);
  }

  auto sort_key_of(std::string_view text) const -> std::string {
    auto const resource = scim::parse_json(text, {.octets_max = text.size()});
    if (resource) {
      for (auto& entry : scim::index_entries(*plan_.sorted_by, *resource)) {
        if (entry.sorts) {
          return std::move(entry.key);
        }
      }
    }
    return std::string(scim::missing_key);
  }

  [[nodiscard]] auto query_of(list_part const& part, std::chrono::nanoseconds time) const
      -> store::directory_query {
    store::directory_query query;
    query.type = part.view.type;
    query.filter = part.where ? &*part.where : nullptr;
    query.sort_index = plan_.sort_index;
    query.descending = plan_.sort_index && plan_.asked.descending;
    query.rid_max = rid_max_;
    query.spent = [until = std::chrono::steady_clock::now() + time] {
      return std::chrono::steady_clock::now() >= until;
    };
    return query;
  }

  static auto take(store::directory_outcome<rows_answer> found, std::optional<error>& failed)
      -> rows_answer {
    if (!found) {
      failed = unavailable(found.error());
      return {};
    }
    return *std::move(found);
  }

  // ---- totalResults ----

  static auto too_dear() -> error {
    return bad_request(
        scim_type::too_many,
        "The filter needs an index for pages by startIndex; pages by cursor do not.");
  }

  auto count_part(list_part const& part, std::chrono::nanoseconds time)
      -> result<std::uint64_t, error> {
    TIDEGATE_TRY(auto const counted, told(from_.count(query_of(part, time))));
    if (!counted.total) {
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
      TIDEGATE_TRY(auto const counted, told(from_.count(query_of(part, how_.scan_budget))));
      if (!counted.total) {
        return {};
      }
      all += *counted.total;
    }
    total_ = all;
    return {};
  }

  // ---- the answer ----

  auto cursor_to(std::optional<page_place> const& place) const -> result<std::string, error> {
    if (!place) {
      return std::string();
    }
    auto const& job = *plan_.job;
    scim::cursor const made{.place = *place,
                            .count = plan_.count,
                            .rid_max = rid_max_,
                            .total_results = total_,
                            .expires = job.now + how_.pagination.cursor_timeout};
    scim::cursor_sealer::nonce random{};
    bool const is_random =
        ::getrandom(random.data(), random.size(), 0) == static_cast<ssize_t>(random.size());
    auto sealed = is_random ? job.parts->cursors.seal(made, plan_.binding(), random) : std::nullopt;
    if (!sealed) {
      return failure(error{500, scim_type::none, "The cursor could not be made."});
    }
    return *std::move(sealed);
  }

  auto list_answer(scim::list_head head, std::span<directory_row const> rows)
      -> result<scim_answer, error> {
    head.total_results = total_;
    if (!plan_.is_walk()) {
      head.start_index = plan_.asked.start_index;
    }
    constexpr std::size_t added_octets = 256;  // to each text, about
    auto octets = added_octets;
    for (auto const& row : rows) {
      octets += row.text.size() + added_octets;
    }
    std::string content;
    content.reserve(octets);
    scim::append_list_begin(content, head, rows.size());
    for (bool is_first = true; auto const& row : rows) {
      content.append(std::exchange(is_first, false) ? "" : ",");
      auto const& part = plan_.parts.size() == 1 ? plan_.parts.front() : plan_.parts[part_of(row)];
      TIDEGATE_TRY_VOID(append_shown(content, from_, part.view,
                                     {row.at.rid, row.id, row.text, row.maybe_in_groups}));
    }
    content.append("]}");
    return json_answer(200, std::move(content));
  }

  static auto key_of_part(std::size_t number) -> std::string {
    return std::string(1, static_cast<char>(number));
  }
  static auto part_of(directory_row const& row) -> std::size_t {
    return static_cast<unsigned char>(row.at.sort_key.front());
  }

  list_plan const& plan_;
  scim_config const& how_;
  store::directory_reader& from_;
  std::uint64_t rid_max_ = UINT64_MAX;
  std::optional<std::uint64_t> total_;
  std::uint64_t sorted_rows_ = 0;  // that the last scan looked at
};

// ---- plans ----

auto asked_for(scim_job const& job) -> result<scim::list_request, error> {
  auto const& how = job.request.how->pagination;
  return job.target.place == scim_place::search
             ? scim::parse_search_request(job.request.content, how)
             : scim::parse_list_query(job.request.query, how);
}

/// One part for each type that may have what is asked for, and at least one.
auto find_parts(list_plan& plan, std::span<scim::model_type const> types) -> result<void, error> {
  for (auto const& type : types) {
    std::optional<scim::filter> where;
    if (plan.asked.filter) {
      auto read = types.size() == 1
                      ? scim::parse_filter(*plan.asked.filter, type.definition)
                      : scim::parse_filter_among_types(*plan.asked.filter, type.definition);
      if (!read) {
        return failure(error{400, scim_type::invalid_filter, to_string(read.error())});
      }
      plan.canonical_filter.append(type.definition.type().name).append(" ");
      plan.canonical_filter.append(canonical_text(*read)).append("\n");
      bool const is_last = &type == &types.back();
      if (never_matches(*read) && !(is_last && plan.parts.empty())) {
        continue;
      }
      where = *std::move(read);
    }
    TIDEGATE_TRY(auto shows,
                 scim::projection::make(plan.asked.attributes, plan.asked.excluded_attributes,
                                        type.definition));
    plan.parts.push_back(
        {{&plan.job->model(), &type, std::move(shows), json_escaped(plan.job->request.base)},
         std::move(where)});
  }
  return {};
}

auto find_order(list_plan& plan) -> result<void, error> {
  auto const& asked = plan.asked.sort_by;
  if (asked.empty()) {
    return {};
  }
  auto const wrong = [&](std::string_view why) {
    return failure(bad_request(scim_type::invalid_value, "sortBy: " + std::string(why)));
  };
  if (plan.job->target.type == nullptr) {
    return wrong("resources of several types have no common order; ask at one endpoint");
  }
  auto const& type = *plan.job->target.type;
  auto path = type.definition.resolve(asked);
  if (!path || path->leaf() == nullptr ||
      path->leaf()->returned == scim::attribute_returned::never) {
    return wrong("there is no such attribute");
  }
  if (path->leaf()->type == scim::attribute_type::complex) {
    path->sub = path->parent->find("value");
    if (path->sub == nullptr) {
      return wrong("a sub-attribute of \"" + path->parent->name + "\" is needed");
    }
  }
  plan.sort_index = type.find_index(*path);
  if (!plan.sort_index) {
    plan.sorted_by = type;
    plan.sorted_by->indexes = {{canonical_name(*path), *path, false}};
  }
  return {};
}

}  // namespace

auto plan_list(std::shared_ptr<scim_job const> job) -> result<scim_read, error> {
  auto const plan = std::make_shared<list_plan>();
  plan->job = std::move(job);
  auto const& model = plan->job->model();
  auto const& request = plan->job->request;
  TIDEGATE_TRY(plan->asked, asked_for(*plan->job));
  auto const* const type = plan->job->target.type;
  TIDEGATE_TRY_VOID(find_parts(*plan, type != nullptr ? std::span(type, 1) : model.types()));
  TIDEGATE_TRY_VOID(find_order(*plan));
  if (!plan->asked.cursor.empty()) {
    auto opened =
        plan->job->parts->cursors.open(plan->asked.cursor, plan->binding(), plan->job->now);
    if (!opened) {
      return failure(scim::error_of(opened.error()));
    }
    plan->from = *std::move(opened);
  }
  TIDEGATE_TRY(plan->count, scim::page_size(plan->asked, plan->from ? &*plan->from : nullptr,
                                            request.how->pagination));
  return [plan](store::directory_reader& from) { return list_reader(*plan, from).answer(); };
}

}  // namespace tidegate::gateway
