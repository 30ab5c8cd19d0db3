// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_directory/scan.hpp>

#include <tidegate/scim/index_key.hpp>
#include <tidegate/store_directory/row_texts.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>
#include <utility>

namespace tidegate::store_directory {

using scim::filter;
using store::directory_count;
using store::directory_query;
using store::directory_row;

namespace {

using rids = std::vector<std::int64_t>;

/// `spent` is asked each time that so many rows did not match.
constexpr std::uint32_t rows_between = 64;

/// Whether the filter asks for an attribute of the base schema.
[[nodiscard]] auto asks_for(filter const& f, scim::attribute const* attribute) -> bool {
  return f.path.parent == attribute ||
         std::any_of(f.operands.begin(), f.operands.end(),
                     [&](filter const& operand) { return asks_for(operand, attribute); });
}

/// Rows that are read before their order is known.
class row_collector final : public row_visitor {
 public:
  struct place {
    std::string key;
    std::int64_t rid;
    std::size_t row;
    auto operator<=>(place const&) const = default;
  };

  row_collector(scanned_part const& part, directory_query const& query)
      : part_(part), query_(query) {}

  [[nodiscard]] auto show(row_view const& row) -> outcome<next> override {
    TIDEGATE_TRY(auto const resource, parse_stored(part_.store, row.rid, row.text));
    for (auto& entry : index_entries(*query_.type, resource)) {
      if (entry.index == *query_.sort_index && entry.sorts) {
        places.push_back({std::move(entry.key), row.rid, rows.size()});
      }
    }
    rows.push_back({row.rid, {}, texts_.keep(row.id), row.in_groups, texts_.keep(row.text)});
    return next::more;
  }
  [[nodiscard]] auto pass(std::int64_t /*rid*/, std::string_view /*key*/) -> next override {
    return next::more;
  }

  std::vector<place> places;
  std::vector<row_view> rows;

 private:
  scanned_part const& part_;
  directory_query const& query_;
  row_texts texts_;
};

/// One scan or count.
class scan final : public row_visitor {
 public:
  scan(row_source& source, store::directory_relations& relations, scanned_part const& part,
       directory_query const& query)
      : source_(source),
        relations_(relations),
        part_(part),
        query_(query),
        range_(range_of(query, part.id)),
        skip_(query.skip) {
    if (query.sort_index) {
      range_.index_id = part.sort_ids[*query.sort_index];
    }
    range_.rows_max = query.scan.rows_max;
    if (query.filter == nullptr) {
      return;
    }
    condition_ = compile_filter(*query.filter, *query.type, part.index_ids, part.dialect, 3,
                                part.id_index_ids, part.sorts_apart ? part.sort_ids : rids());
    auto const& base = query.type->definition.base();
    needs_members_ = query.type->has_members && asks_for(*query.filter, base.find("members"));
    needs_groups_ = query.type->has_groups && asks_for(*query.filter, base.find("groups"));
  }

  [[nodiscard]] auto rows() -> outcome<scim::scan_answer<directory_row>>;
  [[nodiscard]] auto count() -> outcome<directory_count>;

  [[nodiscard]] auto show(row_view const& row) -> outcome<next> override;
  [[nodiscard]] auto pass(std::int64_t rid, std::string_view key) -> next override;

 private:
  [[nodiscard]] auto read(access_path path, std::span<std::int64_t const> only = {})
      -> outcome<void>;
  [[nodiscard]] auto read_in_order() -> outcome<void> {
    return read(query_.sort_index ? access_path::by_key : access_path::by_rid);
  }
  [[nodiscard]] auto read_equal(equal_key equal) -> outcome<void>;
  [[nodiscard]] auto read_candidates(rids candidates) -> outcome<void>;
  [[nodiscard]] auto read_and_sort(rids const& candidates) -> outcome<void>;
  [[nodiscard]] auto is_match(row_view const& row) -> outcome<bool>;
  [[nodiscard]] auto add_members(json::value& resource, std::int64_t rid) -> outcome<void>;

  /// The rids for which the condition holds, in order; nothing when there are too many.
  [[nodiscard]] auto candidates() -> outcome<std::optional<rids>>;
  [[nodiscard]] auto find_equal() const -> std::optional<equal_key>;
  [[nodiscard]] auto skip_blocks() -> outcome<void>;
  [[nodiscard]] auto count_all() -> outcome<std::uint64_t>;
  [[nodiscard]] auto count_between(std::int64_t rid_min, std::int64_t rid_max)
      -> outcome<std::uint64_t>;

  row_source& source_;
  store::directory_relations& relations_;
  scanned_part const& part_;
  directory_query const& query_;
  scim::filter_sql condition_;
  bool needs_members_ = false;
  bool needs_groups_ = false;

  row_range range_;
  std::uint64_t skip_ = 0;

  bool counting_ = false;
  std::uint64_t matched_ = 0;
  std::uint32_t passed_ = 0;  // that did not match
  scim::scan_answer<directory_row> answer_;
  std::uint32_t given_ = 0;           // rows, in the answer or to `each`
  std::shared_ptr<row_texts> texts_;  // of the rows of the answer
};

auto scan::rows() -> outcome<scim::scan_answer<directory_row>> {
  if (range_.rows_max == 0) {
    return std::move(answer_);
  }
  if (!query_.each) {
    answer_.rows.reserve(std::min<std::uint32_t>(range_.rows_max, 1024));
  }
  if (query_.filter == nullptr) {
    if (!query_.sort_index) {
      TIDEGATE_TRY_VOID(skip_blocks());
    }
    range_.skip = std::exchange(skip_, 0);
    TIDEGATE_TRY_VOID(read_in_order());
    return std::move(answer_);
  }
  if (auto equal = query_.sort_index ? std::nullopt : find_equal()) {
    TIDEGATE_TRY_VOID(read_equal(*std::move(equal)));
    return std::move(answer_);
  }
  TIDEGATE_TRY(auto found, candidates());
  if (!found) {
    condition_.exact = false;  // each resource is asked, as the indexes were not
    TIDEGATE_TRY_VOID(read_in_order());
  } else if (!query_.sort_index) {
    TIDEGATE_TRY_VOID(read_candidates(*std::move(found)));
  } else {
    TIDEGATE_TRY(auto const size, source_.size());
    TIDEGATE_TRY_VOID(are_few(found->size(), size.count) ? read_and_sort(*found)
                                                         : read(access_path::by_key_among, *found));
  }
  return std::move(answer_);
}

// ---- ways through resources ----

auto scan::read(access_path path, std::span<std::int64_t const> only) -> outcome<void> {
  range_.path = path;
  range_.rids = only;
  range_.all_match = !counting_ && skip_ == 0 && (query_.filter == nullptr || condition_.exact);
  return source_.read(range_, *this);
}

auto scan::read_equal(equal_key equal) -> outcome<void> {
  range_.index_id = part_.index_ids[equal.index];
  range_.key = std::move(equal.key);
  return read(access_path::by_equal_key);
}

auto scan::read_candidates(rids candidates) -> outcome<void> {
  auto const first = std::ranges::lower_bound(candidates, range_.rid_min);
  auto const last = std::upper_bound(first, candidates.end(), range_.rid_max);
  std::span left(first, last);
  if (!range_.up) {
    std::ranges::reverse(left);
  }
  if (condition_.exact && !counting_) {
    auto const over = std::min<std::uint64_t>(skip_, left.size());
    skip_ -= over;
    left = left.subspan(over);
  }
  return read(access_path::by_rids, left);
}

auto scan::read_and_sort(rids const& candidates) -> outcome<void> {
  row_collector found(part_, query_);
  row_range all{.path = access_path::by_rids, .rids = candidates};
  all.rows_max = static_cast<std::uint32_t>(candidates.size());
  all.all_match = true;
  TIDEGATE_TRY_VOID(source_.read(all, found));
  std::ranges::sort(found.places);
  if (!range_.up) {
    std::ranges::reverse(found.places);
  }
  auto const from = std::tie(range_.key, range_.rid_from);
  for (auto const& place : found.places) {
    auto const at = std::tie(place.key, place.rid);
    if (range_.up ? at < from : from < at) {
      continue;
    }
    auto row = found.rows[place.row];
    row.key = place.key;
    TIDEGATE_TRY(auto const then, show(row));
    if (then == next::stop) {
      return {};
    }
  }
  return {};
}

// ---- one resource ----

auto scan::show(row_view const& row) -> outcome<next> {
  bool match = row.rid <= range_.rid_max;
  if (match && query_.filter != nullptr && !condition_.exact) {
    TIDEGATE_TRY(match, is_match(row));
  }
  if (!match) {
    return pass(row.rid, row.key);
  }
  ++matched_;
  if (counting_) {
    return pass(row.rid, row.key);
  }
  if (skip_ > 0) {
    --skip_;
    return pass(row.rid, row.key);
  }
  ++given_;
  auto const rid = unsigned_of(row.rid);
  if (query_.each) {
    bool const more = query_.each({rid, row.key, row.id, row.text, row.in_groups});
    return more && given_ < range_.rows_max ? next::more : next::stop;
  }
  if (texts_ == nullptr) {
    texts_ = std::make_shared<row_texts>();
  }
  answer_.rows.push_back({{std::string(row.key), rid},
                          texts_->keep(row.id),
                          texts_->keep(row.text),
                          row.in_groups,
                          texts_});
  return given_ < range_.rows_max ? next::more : next::stop;
}

auto scan::pass(std::int64_t rid, std::string_view key) -> next {
  if (++passed_ % rows_between != 0 || !query_.spent || !query_.spent()) {
    return next::more;
  }
  answer_.stopped = scim::position{std::string(key), unsigned_of(rid)};
  return next::stop;
}

auto scan::is_match(row_view const& row) -> outcome<bool> {
  TIDEGATE_TRY(auto resource, parse_stored(part_.store, row.rid, row.text));
  TIDEGATE_TRY_VOID(add_members(resource, row.rid));
  return matches(*query_.filter, resource);
}

/// What is kept beside the text of a resource and the filter asks for.
auto scan::add_members(json::value& resource, std::int64_t rid) -> outcome<void> {
  auto* const object = resource.if_object();
  if (object == nullptr) {
    return {};
  }
  auto const as_json = [](store::directory_member const& member, std::string_view type) {
    json::object value;
    value.append("value", member.id);
    if (!member.display.empty()) {
      value.append("display", member.display);
    }
    value.append("type", type);
    return value;
  };
  if (needs_members_) {
    json::array all;
    TIDEGATE_TRY_VOID(
        relations_.members(unsigned_of(rid), [&](store::directory_member const& member) {
          all.emplace_back(as_json(member, member.type));
          return true;
        }));
    if (!all.empty()) {
      object->set("members", std::move(all));
    }
  }
  if (needs_groups_) {
    json::array all;
    TIDEGATE_TRY(auto const groups, relations_.groups_of(unsigned_of(rid)));
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

auto scan::find_equal() const -> std::optional<equal_key> {
  auto equal =
      condition_.condition.empty() ? std::nullopt : find_equal_key(*query_.filter, *query_.type);
  if (equal && part_.sorts_apart && part_.index_ids[equal->index] != part_.sort_ids[equal->index]) {
    return std::nullopt;  // entries of several values are in two places
  }
  return equal;
}

auto scan::candidates() -> outcome<std::optional<rids>> {
  if (condition_.condition.empty()) {
    return std::nullopt;
  }
  TIDEGATE_TRY(auto const size, source_.size());
  TIDEGATE_TRY(auto found, source_.find_rids(condition_, candidates_max(size.count)));
  if (found) {
    keep_part(*found, part_.id);
  }
  return found;
}

// ---- index paging ----

/// Skips whole blocks while all of their resources are to be left out.
auto scan::skip_blocks() -> outcome<void> {
  if (!part_.has_blocks || skip_ < (1U << block_shift)) {
    return {};
  }
  // The blocks at both ends may be part of the scan in part only.
  bool const up = range_.up;
  auto const first = block_of(range_.rid_min - 1) + 1;
  auto const last = block_of(range_.rid_max + 1) - 1;
  if (first > last) {
    return {};
  }
  auto const edge = up ? block_begin(first) - 1 : block_begin(last + 1);
  TIDEGATE_TRY(auto const before,
               count_between(up ? range_.rid_min : edge, up ? edge : range_.rid_max));
  if (before > skip_) {
    return {};
  }
  skip_ -= before;
  auto& begin = up ? range_.rid_min : range_.rid_max;
  begin = edge + (up ? 1 : -1);
  return source_.read_blocks(first, last, up, [&](std::int64_t block, std::int64_t count) {
    if (unsigned_of(count) > skip_) {
      return false;
    }
    skip_ -= unsigned_of(count);
    begin = up ? block_begin(block + 1) : block_begin(block) - 1;
    return true;
  });
}

// ---- counting ----

auto scan::count_between(std::int64_t rid_min, std::int64_t rid_max) -> outcome<std::uint64_t> {
  TIDEGATE_TRY(
      auto const found,
      source_.count({.path = access_path::by_rid, .rid_min = rid_min, .rid_max = rid_max}, {}));
  return found.value_or(0);
}

auto scan::count_all() -> outcome<std::uint64_t> {
  TIDEGATE_TRY(auto const size, source_.size());
  if (range_.rid_max >= size.last_rid) {
    return unsigned_of(size.count);
  }
  std::uint64_t all = 0;
  auto from = range_.rid_min;
  if (part_.has_blocks) {
    auto const last = block_of(range_.rid_max + 1) - 1;
    TIDEGATE_TRY_VOID(source_.read_blocks(block_of(range_.rid_min), last, true,
                                          [&](std::int64_t /*block*/, std::int64_t count) {
                                            all += unsigned_of(count);
                                            return true;
                                          }));
    from = std::max(from, block_begin(last + 1));
  }
  TIDEGATE_TRY(auto const rest, count_between(from, range_.rid_max));
  return all + rest;
}

auto scan::count() -> outcome<directory_count> {
  counting_ = true;
  if (query_.filter == nullptr) {
    TIDEGATE_TRY(auto const all, count_all());
    return directory_count{all};
  }
  if (condition_.exact) {
    if (auto equal = find_equal()) {
      range_.path = access_path::by_equal_key;
      range_.index_id = part_.index_ids[equal->index];
      range_.key = std::move(equal->key);
      TIDEGATE_TRY(auto const all, source_.count(range_, query_.spent));
      return directory_count{all};
    }
    TIDEGATE_TRY(auto const all, source_.count_matches(condition_, range_.rid_max, query_.spent));
    return directory_count{all};
  }
  TIDEGATE_TRY(auto found, candidates());
  TIDEGATE_TRY_VOID(found ? read_candidates(*std::move(found)) : read(access_path::by_rid));
  return answer_.stopped ? directory_count{} : directory_count{matched_};
}

}  // namespace

auto scan_rows(row_source& source, store::directory_relations& relations, scanned_part const& part,
               directory_query const& query) -> outcome<scim::scan_answer<directory_row>> {
  if (!query.each || !part.shows_at_end) {
    return scan(source, relations, part, query).rows();
  }
  auto collecting = query;
  collecting.each = nullptr;
  TIDEGATE_TRY(auto found, scan(source, relations, part, collecting).rows());
  for (auto const& row : std::exchange(found.rows, {})) {
    if (!query.each({row.at.rid, row.at.sort_key, row.id, row.text, row.maybe_in_groups})) {
      break;
    }
  }
  return found;
}

auto count_rows(row_source& source, store::directory_relations& relations, scanned_part const& part,
                directory_query query) -> outcome<directory_count> {
  query.scan = {};
  query.sort_index = std::nullopt;
  query.descending = false;
  return scan(source, relations, part, query).count();
}

void keep_part(std::vector<std::int64_t>& rids, std::int64_t part) {
  std::erase_if(rids, [&](std::int64_t rid) { return part_of(rid) != part; });
  std::ranges::sort(rids);
  rids.erase(std::ranges::unique(rids).begin(), rids.end());
}

auto candidates_max(std::int64_t resources) noexcept -> std::size_t {
  return 512 + static_cast<std::size_t>(std::sqrt(4000.0 * static_cast<double>(resources)));
}

auto range_of(directory_query const& query, std::int64_t part) -> row_range {
  bool const forward = query.scan.place.towards == scim::direction::forward;
  row_range range;
  range.up = forward != query.descending;
  range.rid_min = rid_base(part) + 1;
  range.rid_max = std::min(clamped(query.rid_max), rid_end(part));
  range.key = range.up ? std::string_view() : last_key;
  if (auto const& from = query.scan.place.from) {
    // What is next to the gap on the far side belongs to the scan. Rids are whole numbers, so the
    // other one is left out by one more or less.
    bool const with_it = forward != from->behind;
    auto const rid = clamped(from->at.rid) + (with_it ? 0 : range.up ? 1 : -1);
    if (query.sort_index) {
      range.key = from->at.sort_key;
      range.rid_from = rid;
    } else if (range.up) {
      range.rid_min = std::max(range.rid_min, rid);
    } else {
      range.rid_max = std::min(range.rid_max, rid);
    }
  }
  return range;
}

auto find_equal_key(filter const& filter, scim::model_type const& type)
    -> std::optional<equal_key> {
  if (filter.kind != scim::filter_kind::compare || filter.op != scim::compare_op::eq ||
      std::holds_alternative<std::nullptr_t>(filter.value)) {
    return std::nullopt;
  }
  auto const index = type.find_index(filter.path);
  if (!index) {
    return std::nullopt;
  }
  return equal_key{*index, index_key(*filter.path.leaf(), filter.value)};
}

}  // namespace tidegate::store_directory
