// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_directory/scan.hpp>

#include <tidegate/scim/index_key.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace tidegate::store_directory {
namespace {

using store::directory_query;
using rids = std::vector<std::int64_t>;

constexpr std::int64_t part = 3;

auto make_model() -> scim::model {
  auto made = scim::model::make({}, {}, {});
  EXPECT_TRUE(made.has_value());
  return *std::move(made);
}

/// A part in a map, which remembers how it was asked.
class map_source final : public row_source, public store::directory_relations {
 public:
  struct user {
    std::string id;
    std::string text;
  };

  scim::model model = make_model();
  scim::model_type const& type = *model.find("User");
  std::map<std::int64_t, user> users;
  rids index_ids;
  rids sort_ids;
  bool sorts_apart = false;
  bool shows_at_end = false;
  std::int64_t resources = -1;                          // how many it says there are
  std::optional<rids> candidates;                       // what indexes give for any condition
  std::vector<std::pair<access_path, int>> read_paths;  // and how many rows were taken
  std::size_t rids_max = 0;
  int counted_rids = 0;

  map_source() {
    for (std::size_t i = 0; i < type.indexes.size(); ++i) {
      index_ids.push_back(static_cast<std::int64_t>(i) + 1);
      sort_ids.push_back(is_multi_valued(type.indexes[i]) ? static_cast<std::int64_t>(i) + 100
                                                          : index_ids.back());
    }
  }

  void add(std::int64_t number, std::string const& name, std::string const& title = {}) {
    auto const id = std::to_string(number);
    users[rid_base(part) + number] = {
        id, R"({"id":")" + id + R"(","userName":")" + name + R"(","title":")" + title + R"("})"};
  }

  [[nodiscard]] auto query(scim::filter const* filter = nullptr) const -> directory_query {
    return {.type = &type, .filter = filter, .scan = {{}, 100}};
  }
  [[nodiscard]] auto by_user_name() const -> std::optional<std::size_t> {
    return type.find_index(*type.definition.resolve("userName"));
  }
  [[nodiscard]] auto scanned() const -> scanned_part {
    return {.id = part,
            .index_ids = index_ids,
            .sort_ids = sort_ids,
            .sorts_apart = sorts_apart,
            .dialect = scim::sql_dialect::sqlite,
            .shows_at_end = shows_at_end,
            .store = "map"};
  }

  // ---- row_source ----
  [[nodiscard]] auto read(row_range const& range, row_visitor& to) -> outcome<void> override {
    auto& taken = read_paths.emplace_back(range.path, 0).second;
    auto skip = range.skip;
    for (auto const& [key, rid] : places(range)) {
      if (skip > 0) {
        --skip;
        continue;
      }
      auto then = next::more;
      if (range.path == access_path::by_key_among && !std::ranges::count(range.rids, rid)) {
        then = to.pass(rid, key);
      } else {
        ++taken;
        TIDEGATE_TRY(then, to.show({rid, key, users.at(rid).id, false, users.at(rid).text}));
      }
      if (then == next::stop) {
        break;
      }
    }
    return {};
  }
  [[nodiscard]] auto count(row_range const& range, std::function<bool()> const& /*spent*/)
      -> outcome<std::optional<std::uint64_t>> override {
    ++counted_rids;
    return places(range).size();
  }
  [[nodiscard]] auto find_rids(scim::filter_sql const& /*condition*/, std::size_t most)
      -> outcome<std::optional<rids>> override {
    rids_max = most;
    return candidates;
  }
  [[nodiscard]] auto count_matches(scim::filter_sql const& /*condition*/, std::int64_t /*rid_max*/,
                                   std::function<bool()> const& /*spent*/)
      -> outcome<std::optional<std::uint64_t>> override {
    return candidates ? std::optional<std::uint64_t>(candidates->size()) : std::nullopt;
  }
  [[nodiscard]] auto read_blocks(std::int64_t first, std::int64_t last, bool up,
                                 std::function<bool(std::int64_t, std::int64_t)> const& each)
      -> outcome<void> override {
    std::map<std::int64_t, std::int64_t> blocks;
    for (auto const& [rid, user] : users) {
      if (block_of(rid) >= first && block_of(rid) <= last) {
        ++blocks[block_of(rid)];
      }
    }
    std::vector<std::pair<std::int64_t, std::int64_t>> all(blocks.begin(), blocks.end());
    if (!up) {
      std::ranges::reverse(all);
    }
    std::ranges::find_if(all, [&](auto const& b) { return !each(b.first, b.second); });
    return {};
  }
  [[nodiscard]] auto size() -> outcome<part_size> override {
    auto const count = static_cast<std::int64_t>(users.size());
    return part_size{users.empty() ? rid_base(part) : users.rbegin()->first,
                     resources >= 0 ? resources : count};
  }

  // ---- what is tested ----
  [[nodiscard]] auto scan(directory_query const& query)
      -> outcome<scim::scan_answer<store::directory_row>> {
    return scan_rows(*this, *this, scanned(), query);
  }
  [[nodiscard]] auto count(directory_query const& query) -> outcome<store::directory_count> {
    return count_rows(*this, *this, scanned(), query);
  }

  // ---- directory_relations: what a filter asks beside a text ----
  [[nodiscard]] auto members(std::uint64_t /*group_rid*/,
                             std::function<bool(store::directory_member const&)> const& /*each*/)
      -> outcome<void> override {
    return {};
  }
  [[nodiscard]] auto groups_of(std::uint64_t rid)
      -> outcome<std::vector<store::directory_member>> override {
    if (rid % 2 == 0) {
      return std::vector<store::directory_member>{};
    }
    return std::vector<store::directory_member>{{1, "odd", "Group", "Odd ones"}};
  }

 private:
  using place = std::pair<std::string, std::int64_t>;

  /// What a range has, in order.
  [[nodiscard]] auto places(row_range const& range) const -> std::vector<place> {
    std::vector<place> all;
    if (range.path == access_path::by_rids) {
      for (auto const rid : range.rids) {
        if (users.contains(rid)) {
          all.emplace_back("", rid);
        }
      }
      return all;
    }
    bool const has_keys =
        range.path == access_path::by_key || range.path == access_path::by_key_among;
    for (auto const& [rid, user] : users) {
      auto const entries = index_entries(type, *parse_stored("map", rid, user.text));
      for (auto const& entry : entries) {
        bool const is_it = range.index_id == (has_keys ? sort_ids : index_ids)[entry.index];
        if (has_keys && is_it && entry.sorts) {
          place const from(range.key, range.rid_from);
          place const here(entry.key, rid);
          if (range.up ? here >= from : here <= from) {
            all.push_back(here);
          }
        } else if (range.path == access_path::by_equal_key && is_it && entry.key == range.key &&
                   rid >= range.rid_min && rid <= range.rid_max) {
          all.emplace_back("", rid);
        }
      }
      if (range.path == access_path::by_rid && rid >= range.rid_min && rid <= range.rid_max) {
        all.emplace_back("", rid);
      }
    }
    std::ranges::sort(all);
    if (!range.up) {
      std::ranges::reverse(all);
    }
    return all;
  }
};

auto ids_of(outcome<scim::scan_answer<store::directory_row>> const& found) -> std::string {
  if (!found) {
    return found.error().text;
  }
  std::string ids;
  for (auto const& row : found->rows) {
    ids += (ids.empty() ? "" : " ") + std::string(row.id);
  }
  return ids;
}

auto rid(std::int64_t number) -> std::int64_t {
  return rid_base(part) + number;
}

TEST(store_directory_scan, begins_where_a_query_says) {
  auto const gap_at = [](std::int64_t number, bool behind) {
    return scim::gap{{"k", unsigned_of(rid(number))}, behind};
  };
  struct row {
    char const* name;
    bool sorted;
    bool descending;
    scim::page_place place;
    bool up;
    std::int64_t rid_min;
    std::int64_t rid_max;
    std::string key;
    std::int64_t rid_from;
  };
  using enum scim::direction;
  auto const first = rid(1);
  auto const last = rid_end(part);
  std::string const end(last_key);
  for (auto const& r : {
           row{"the start", false, false, {forward, {}}, true, first, last, "", 0},
           row{"the end", false, false, {backward, {}}, false, first, last, end, 0},
           row{"descending", false, true, {forward, {}}, false, first, last, end, 0},
           row{"behind", false, false, {forward, gap_at(7, true)}, true, rid(8), last, "", 0},
           row{"in front", false, false, {forward, gap_at(7, false)}, true, rid(7), last, "", 0},
           row{"back from behind",
               false,
               false,
               {backward, gap_at(7, true)},
               false,
               first,
               rid(7),
               end,
               0},
           row{"back from in front",
               false,
               false,
               {backward, gap_at(7, false)},
               false,
               first,
               rid(6),
               end,
               0},
           row{"descending, behind",
               false,
               true,
               {forward, gap_at(7, true)},
               false,
               first,
               rid(6),
               end,
               0},
           row{"sorted, the start", true, false, {forward, {}}, true, first, last, "", 0},
           row{"sorted, behind",
               true,
               false,
               {forward, gap_at(7, true)},
               true,
               first,
               last,
               "k",
               rid(8)},
           row{"sorted, back from behind",
               true,
               false,
               {backward, gap_at(7, true)},
               false,
               first,
               last,
               "k",
               rid(7)},
           row{"sorted and descending, behind",
               true,
               true,
               {forward, gap_at(7, true)},
               false,
               first,
               last,
               "k",
               rid(6)},
       }) {
    directory_query query;
    query.sort_index = r.sorted ? std::optional<std::size_t>(0) : std::nullopt;
    query.descending = r.descending;
    query.scan.place = r.place;
    auto const range = range_of(query, part);
    EXPECT_EQ(range.up, r.up) << r.name;
    EXPECT_EQ(range.rid_min, r.rid_min) << r.name;
    EXPECT_EQ(range.rid_max, r.rid_max) << r.name;
    EXPECT_EQ(range.key, r.key) << r.name;
    EXPECT_EQ(range.rid_from, r.rid_from) << r.name;
    EXPECT_EQ(range.is_from_start(), !r.sorted || !r.place.from) << r.name;
  }
  EXPECT_EQ(range_of({.rid_max = unsigned_of(rid(5))}, part).rid_max, rid(5));
}

TEST(store_directory_scan, takes_the_square_root_of_all_for_few) {
  struct row {
    std::size_t candidates;
    std::int64_t resources;
    bool few;
  };
  for (auto const& [candidates, resources, few] :
       {row{0, 0, true}, row{1, 0, false}, row{1, 1, true}, row{100, 10'000, true},
        row{101, 10'000, false}, row{1'000, 1'000'000, true}, row{1'001, 1'000'000, false}}) {
    EXPECT_EQ(are_few(candidates, resources), few) << candidates << " of " << resources;
  }
  EXPECT_EQ(candidates_max(0), 512U);
  EXPECT_EQ(candidates_max(1'000'000), 512U + 63'245U);
}

TEST(store_directory_scan, finds_the_one_key_that_a_filter_asks_for) {
  auto const model = make_model();
  auto const& users = *model.find("User");
  struct row {
    char const* filter;
    bool has_key;
  };
  for (auto const& [text, has_key] : {
           row{R"(userName eq "a")", true},
           row{R"(id eq "a")", true},
           row{R"(emails.value eq "a")", true},
           row{R"(userName eq null)", false},
           row{R"(userName ne "a")", false},
           row{R"(userName sw "a")", false},
           row{R"(userName pr)", false},
           row{R"(title eq "a")", false},  // has no index
           row{R"(userName eq "a" and title eq "a")", false},
           row{R"(not (userName eq "a"))", false},
       }) {
    auto const filter = parse_filter(text, users.definition);
    ASSERT_TRUE(filter.has_value()) << text;
    auto const found = find_equal_key(*filter, users);
    EXPECT_EQ(found.has_value(), has_key) << text;
    if (found) {
      EXPECT_EQ(found->index, users.find_index(filter->path)) << text;
      EXPECT_EQ(found->key, index_key(*filter->path.leaf(), filter->value)) << text;
    }
  }
}

TEST(store_directory_scan, keeps_the_rids_of_one_part_once_and_in_order) {
  rids all{rid(4), rid_base(2) + 1, rid(2), rid(4), rid_end(part), rid_end(part) + 2, rid(2)};
  keep_part(all, part);
  EXPECT_EQ(all, (rids{rid(2), rid(4), rid_end(part)}));
}

TEST(store_directory_scan, chooses_the_way_that_costs_least) {
  struct row {
    char const* name;
    char const* filter;
    bool sorted;
    bool descending;
    std::optional<rids> candidates;
    std::int64_t resources;
    access_path path;
    char const* ids;
  };
  using enum access_path;
  rids const some{rid(2), rid(5), rid(3), rid(9)};  // 9 is gone
  for (auto const& r : {
           row{"all", nullptr, false, false, {}, 5, by_rid, "1 2 3 4 5"},
           row{"all, backwards", nullptr, false, true, {}, 5, by_rid, "5 4 3 2 1"},
           row{"all, sorted", nullptr, true, false, {}, 5, by_key, "5 3 1 2 4"},
           row{"all, sorted backwards", nullptr, true, true, {}, 5, by_key, "4 2 1 3 5"},
           row{"one key", R"(userName eq "C")", false, false, some, 5, by_equal_key, "1"},
           row{"one key, sorted", R"(userName eq "c")", true, false, rids{rid(1)}, 5, by_rids, "1"},
           row{"candidates", R"(userName ge "a")", false, false, some, 5, by_rids, "2 3 5"},
           row{"candidates, backwards", R"(userName ge "a")", false, true, some, 5, by_rids,
               "5 3 2"},
           row{"candidates that are asked", R"(userName ge "a" and title eq "x")", false, false,
               some, 5, by_rids, "2 5"},
           row{"few candidates, sorted", R"(userName ge "a")", true, false, some, 16, by_rids,
               "5 3 2"},
           row{"few candidates, sorted backwards", R"(userName ge "a")", true, true, some, 16,
               by_rids, "2 3 5"},
           row{"many candidates, sorted", R"(userName ge "a")", true, false, some, 15, by_key_among,
               "5 3 2"},
           row{"too many candidates", R"(userName ge "b")", false, false, {}, 5, by_rid, "1 2 3 4"},
           row{"too many candidates, sorted",
               R"(userName ge "b")",
               true,
               false,
               {},
               5,
               by_key,
               "3 1 2 4"},
           row{"no index", R"(title eq "x")", false, false, some, 5, by_rid, "1 2 5"},
           row{"no index, sorted", R"(title eq "x")", true, false, some, 5, by_key, "5 1 2"},
       }) {
    map_source source;
    source.add(1, "c", "x");
    source.add(2, "d", "x");
    source.add(3, "b");
    source.add(4, "e");
    source.add(5, "a", "x");
    source.candidates = r.candidates;
    source.resources = r.resources;
    auto const filter = r.filter == nullptr
                            ? std::nullopt
                            : std::optional(*parse_filter(r.filter, source.type.definition));
    auto query = source.query(filter ? &*filter : nullptr);
    query.sort_index = r.sorted ? source.by_user_name() : std::nullopt;
    query.descending = r.descending;
    EXPECT_EQ(ids_of(source.scan(query)), r.ids) << r.name;
    ASSERT_EQ(source.read_paths.size(), 1U) << r.name;
    EXPECT_EQ(source.read_paths[0].first, r.path) << r.name;
  }
}

TEST(store_directory_scan, looks_for_one_key_only_where_all_entries_are_in_one_place) {
  for (bool const apart : {false, true}) {
    map_source source;
    source.sorts_apart = apart;
    source.users[rid(1)] = {"1", R"({"id":"1","userName":"a","emails":[{"value":"m"}]})"};
    source.candidates = rids{rid(1)};
    auto const filter = *parse_filter(R"(emails.value eq "m")", source.type.definition);
    EXPECT_EQ(ids_of(source.scan(source.query(&filter))), "1");
    EXPECT_EQ(source.read_paths[0].first, apart ? access_path::by_rids : access_path::by_equal_key);
  }
}

TEST(store_directory_scan, asks_for_as_many_candidates_as_are_worth_it) {
  map_source source;
  source.resources = 1'000'000;
  auto const filter = *parse_filter(R"(userName sw "a")", source.type.definition);
  EXPECT_EQ(ids_of(source.scan(source.query(&filter))), "");
  EXPECT_EQ(source.rids_max, candidates_max(1'000'000));
}

TEST(store_directory_scan, skips_blocks_without_reading_them) {
  map_source source;
  for (std::int64_t i = 1; i <= 5'000; i += 2) {
    source.add(i, "u");
  }
  struct row {
    char const* name;
    bool descending;
    std::uint64_t skip;
    std::optional<std::int64_t> from;
    char const* ids;
  };
  for (auto const& r : {
           row{"nothing", false, 0, {}, "1 3"},
           row{"less than a block", false, 1'000, {}, "2001 2003"},
           row{"a few blocks", false, 1'100, {}, "2201 2203"},
           row{"up to the edge of a block", false, 1'024, {}, "2049 2051"},
           row{"from within a block", false, 1'500, 11, "3011 3013"},
           row{"backwards", true, 1'100, {}, "2799 2797"},
           row{"backwards from within a block", true, 1'500, 4'001, "1001 999"},
           row{"all but one", false, 2'499, {}, "4999"},
           row{"all", false, 2'500, {}, ""},
           row{"more than all", false, 1'000'000, {}, ""},
       }) {
    auto query = source.query();
    query.scan.rows_max = 2;
    query.skip = r.skip;
    query.descending = r.descending;
    if (r.from) {
      query.scan.place.from = scim::gap{{"", unsigned_of(rid(*r.from))}, false};
    }
    source.read_paths.clear();
    EXPECT_EQ(ids_of(source.scan(query)), r.ids) << r.name;
    EXPECT_LE(source.read_paths.at(0).second, 2) << r.name;
  }
}

TEST(store_directory_scan, leaves_out_what_was_created_later) {
  map_source source;
  for (std::int64_t i = 1; i <= 3'000; ++i) {
    source.add(i, "u" + std::to_string(i % 7));
  }
  auto query = source.query();
  query.rid_max = unsigned_of(rid(2'500));
  EXPECT_EQ(source.count(query)->total, 2'500U);
  query.scan.rows_max = 3;
  query.descending = true;
  EXPECT_EQ(ids_of(source.scan(query)), "2500 2499 2498");
  query.sort_index = source.by_user_name();
  EXPECT_EQ(ids_of(source.scan(query)), "2498 2491 2484");
  query = source.query();
  EXPECT_EQ(source.count(query)->total, 3'000U);
}

TEST(store_directory_scan, counts_by_indexes_where_they_are_exact) {
  map_source source;
  source.add(1, "a", "x");
  source.add(2, "b");
  source.add(3, "c", "x");
  struct row {
    char const* filter;
    std::optional<rids> candidates;
    std::optional<std::uint64_t> total;
    std::size_t scans;
  };
  for (auto const& r : {
           row{R"(userName eq "b")", {}, 1, 0},
           row{R"(userName ge "b")", rids{rid(2), rid(3)}, 2, 0},
           row{R"(userName ge "b")", {}, {}, 0},  // the budget was spent
           row{R"(title eq "x")", {}, 2, 1},
           row{R"(userName ge "b" and title eq "x")", rids{rid(2), rid(3)}, 1, 1},
       }) {
    source.candidates = r.candidates;
    source.read_paths.clear();
    auto const filter = *parse_filter(r.filter, source.type.definition);
    auto query = source.query(&filter);
    query.sort_index = source.by_user_name();  // makes no difference
    EXPECT_EQ(source.count(query)->total, r.total) << r.filter;
    EXPECT_EQ(source.read_paths.size(), r.scans) << r.filter;
  }
}

TEST(store_directory_scan, stops_when_the_budget_is_spent_and_says_where) {
  map_source source;
  for (std::int64_t i = 1; i <= 1'000; ++i) {
    source.add(i, "u");
  }
  auto const filter = *parse_filter(R"(title eq "x")", source.type.definition);
  auto query = source.query(&filter);
  int asked = 0;
  query.spent = [&asked] { return ++asked == 3; };
  auto const found = source.scan(query);
  ASSERT_TRUE(found.has_value() && found->stopped.has_value());
  EXPECT_EQ(found->stopped->rid, unsigned_of(rid(3 * 64)));
  asked = 0;
  EXPECT_EQ(source.count(query)->total, std::nullopt);
}

TEST(store_directory_scan, asks_filters_of_groups_that_are_kept_beside_a_text) {
  map_source source;
  source.add(1, "a");
  source.add(2, "b");
  source.add(3, "c");
  auto const filter = *parse_filter(R"(groups.display eq "odd ones")", source.type.definition);
  EXPECT_EQ(ids_of(source.scan(source.query(&filter))), "1 3");
}

TEST(store_directory_scan, shows_rows_as_they_come_or_when_all_are_there) {
  for (bool const at_end : {false, true}) {
    map_source source;
    source.shows_at_end = at_end;
    for (std::int64_t i = 1; i <= 5; ++i) {
      source.add(i, "u");
    }
    auto query = source.query();
    std::string shown;
    query.each = [&](store::directory_row_view const& row) {
      shown += row.id;
      return shown.size() < 3;
    };
    auto const found = source.scan(query);
    ASSERT_TRUE(found.has_value());
    EXPECT_TRUE(found->rows.empty());
    EXPECT_EQ(shown, "123");
    EXPECT_EQ(source.read_paths[0].second, at_end ? 5 : 3);
  }
}

TEST(store_directory_scan, gives_no_rows_where_none_are_asked_for) {
  map_source source;
  source.add(1, "a");
  auto query = source.query();
  query.scan.rows_max = 0;
  EXPECT_EQ(ids_of(source.scan(query)), "");
  EXPECT_TRUE(source.read_paths.empty());
}

TEST(store_directory_scan, ends_with_the_error_of_a_text_that_is_damaged) {
  map_source source;
  source.add(1, "a");
  auto const filter = *parse_filter(R"(title eq "x")", source.type.definition);
  source.users[rid(2)] = {"2", "{"};
  source.users.erase(rid(1));
  // By rid, so that the map itself does not read it.
  auto query = source.query(&filter);
  query.sort_index = std::nullopt;
  source.candidates = rids{rid(2)};
  auto const two = *parse_filter(R"(userName ge "a" and title eq "x")", source.type.definition);
  query.filter = &two;
  EXPECT_TRUE(ids_of(source.scan(query)).starts_with("map: resource ")) << "by candidates";
  query.sort_index = source.by_user_name();
  EXPECT_TRUE(ids_of(source.scan(query)).starts_with("map: resource ")) << "sorted";
}

}  // namespace
}  // namespace tidegate::store_directory
