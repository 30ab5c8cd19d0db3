// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/walk.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>
#include <set>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

/// Whether `p` comes behind the gap.
auto is_behind(position const& p, gap const& g) -> bool {
  return g.behind ? p > g.at : p >= g.at;
}

/// An index as slow and obvious as can be: every resource by its rid, looked at in order.
struct directory {
  std::map<std::uint64_t, std::string> keys;
  std::uint64_t last_rid = 0;
  std::uint64_t rid_max = std::numeric_limits<std::uint64_t>::max();
  std::size_t budget = std::numeric_limits<std::size_t>::max();  // positions that a scan looks at
  std::uint64_t match_every = 1;                                 // of the rids: what the filter is
  std::size_t scans = 0;

  auto create(std::string key) -> std::uint64_t {
    keys[++last_rid] = std::move(key);
    return last_rid;
  }
  [[nodiscard]] auto matches(std::uint64_t rid) const -> bool {
    return rid % match_every == 0 && rid <= rid_max;
  }

  auto make_scan(scan const& s) -> scan_answer<position> {
    ++scans;
    std::set<position> order;
    for (auto const& [rid, key] : keys) {
      position const p{key, rid};
      bool const behind = !s.place.from || is_behind(p, *s.place.from);
      if (s.place.towards == direction::forward ? behind : !s.place.from || !behind) {
        order.insert(p);
      }
    }
    std::vector<position> met(order.begin(), order.end());
    if (s.place.towards == direction::backward) {
      std::reverse(met.begin(), met.end());
    }
    scan_answer<position> answer;
    for (std::size_t looked_at = 0; looked_at < met.size(); ++looked_at) {
      if (looked_at == budget) {
        answer.stopped = met[looked_at - 1];
        return answer;
      }
      if (matches(met[looked_at].rid)) {
        answer.rows.push_back(met[looked_at]);
      }
      if (answer.rows.size() == s.rows_max) {
        return answer;
      }
    }
    return answer;
  }

  auto read(page_place const& place, std::uint32_t count) -> page<position> {
    return read_page<position>(
        place, count, [this](scan const& s) { return make_scan(s); },
        [](position const& p) { return p; });
  }
};

auto rids(page<position> const& p) -> std::vector<std::uint64_t> {
  std::vector<std::uint64_t> out;
  for (auto const& row : p.rows) {
    out.push_back(row.rid);
  }
  return out;
}

using list = std::vector<std::uint64_t>;

auto directory_of(std::size_t size) -> directory {
  directory d;
  for (std::size_t i = 0; i < size; ++i) {
    d.create("");
  }
  return d;
}

TEST(scim_walk, has_a_next_page_but_on_the_last_and_a_previous_one_but_on_the_first) {
  auto d = directory_of(5);
  auto const first = d.read({}, 2);
  EXPECT_EQ(rids(first), (list{1, 2}));
  EXPECT_FALSE(first.previous);
  auto const second = d.read(first.next.value(), 2);
  EXPECT_EQ(rids(second), (list{3, 4}));
  auto const third = d.read(second.next.value(), 2);
  EXPECT_EQ(rids(third), (list{5}));
  EXPECT_FALSE(third.next);
  auto const second_again = d.read(third.previous.value(), 2);
  EXPECT_EQ(rids(second_again), (list{3, 4}));
  EXPECT_EQ(rids(d.read(second_again.next.value(), 2)), (list{5}));
  auto const first_again = d.read(second_again.previous.value(), 2);
  EXPECT_EQ(rids(first_again), (list{1, 2}));
  EXPECT_FALSE(first_again.previous);
  EXPECT_EQ(rids(d.read(first_again.next.value(), 2)), (list{3, 4}));
}

TEST(scim_walk, looks_ahead_so_that_a_full_page_can_be_the_last) {
  auto d = directory_of(4);
  auto const second = d.read(d.read({}, 2).next.value(), 2);
  EXPECT_EQ(rids(second), (list{3, 4}));
  EXPECT_FALSE(second.next);
  EXPECT_EQ(d.scans, 2U);
}

TEST(scim_walk, is_one_empty_page_where_there_is_nothing) {
  auto const only = directory{}.read({}, 2);
  EXPECT_TRUE(only.rows.empty());
  EXPECT_FALSE(only.next);
  EXPECT_FALSE(only.previous);
}

TEST(scim_walk, finds_its_place_when_what_the_place_was_made_from_is_gone) {
  auto d = directory_of(6);
  auto const second = d.read(d.read({}, 2).next.value(), 2);
  d.keys.erase(2);
  d.keys.erase(4);
  EXPECT_EQ(rids(d.read(second.next.value(), 2)), (list{5, 6}));
  EXPECT_EQ(rids(d.read(second.previous.value(), 1)), (list{1}));
}

TEST(scim_walk, can_go_back_from_a_last_page_that_has_become_empty) {
  auto d = directory_of(3);
  auto const first = d.read({}, 2);
  d.keys.erase(3);
  auto const last = d.read(first.next.value(), 2);
  EXPECT_TRUE(last.rows.empty());
  EXPECT_FALSE(last.next);
  EXPECT_EQ(rids(d.read(last.previous.value(), 2)), (list{1, 2}));
}

TEST(scim_walk, fills_up_a_backward_page_that_reaches_the_start) {
  auto d = directory_of(9);
  auto const third = d.read(d.read(d.read({}, 3).next.value(), 3).next.value(), 3);
  d.keys.erase(5);
  auto const second = d.read(third.previous.value(), 3);
  EXPECT_EQ(rids(second), (list{3, 4, 6}));
  auto const first = d.read(second.previous.value(), 3);
  EXPECT_EQ(rids(first), (list{1, 2, 3}));
  EXPECT_FALSE(first.previous);
  EXPECT_EQ(rids(d.read(first.next.value(), 3)), (list{4, 6, 7}));
}

TEST(scim_walk, gives_short_pages_where_the_budget_is_spent) {
  auto d = directory_of(20);
  d.match_every = 5;
  d.budget = 7;
  auto const first = d.read({}, 10);
  EXPECT_EQ(rids(first), (list{5}));
  auto const second = d.read(first.next.value(), 10);
  EXPECT_EQ(rids(second), (list{10}));
  auto const third = d.read(second.next.value(), 10);
  EXPECT_EQ(rids(third), (list{15, 20}));
  EXPECT_FALSE(third.next);
}

TEST(scim_walk, spends_two_budgets_before_a_page_is_empty) {
  auto d = directory_of(50);
  d.match_every = 50;
  d.budget = 10;
  std::size_t pages = 1;
  auto page = d.read({}, 10);
  while (page.rows.empty()) {
    EXPECT_EQ(d.scans, 2 * pages);
    page = d.read(page.next.value(), 10);
    ++pages;
  }
  EXPECT_EQ(rids(page), (list{50}));
  EXPECT_EQ(pages, 3U);
}

/// What happens to a directory while it is walked.
class writers {
 public:
  writers(directory& d, std::mt19937& random) : d_(d), random_(random) {}

  auto any_key() -> std::string { return std::string(1, static_cast<char>('a' + random_() % 6)); }

  void write() {
    for (auto left = random_() % 4; left > 0; --left) {
      if (d_.keys.empty() || random_() % 3 == 0) {
        d_.create(any_key());
        continue;
      }
      auto const at = std::next(d_.keys.begin(), static_cast<long>(random_() % d_.keys.size()));
      touched.insert(at->first);
      if (random_() % 2 == 0) {
        d_.keys.erase(at);
      } else {
        at->second = any_key();
        ++edits;
      }
    }
  }

  std::set<std::uint64_t> touched;
  std::size_t edits = 0;

 private:
  directory& d_;
  std::mt19937& random_;
};

struct model_run {
  directory d;
  std::uint32_t count = 1;
  std::map<std::uint64_t, std::size_t> there;  // when it began
};

auto begin_run(std::mt19937& random) -> model_run {
  model_run run;
  directory empty;
  writers w(empty, random);
  for (auto left = random() % 40; left > 0; --left) {
    run.d.create(w.any_key());
  }
  run.d.rid_max = run.d.last_rid;
  run.d.match_every = 1 + random() % 3;
  run.d.budget = random() % 2 == 0 ? 1 + random() % 12 : run.d.budget;
  run.count = 1 + static_cast<std::uint32_t>(random() % 7);
  for (auto const& [rid, key] : run.d.keys) {
    if (run.d.matches(rid)) {
      run.there[rid] = 0;
    }
  }
  return run;
}

TEST(scim_walk_model, returns_exactly_once_what_stays_as_it_is_and_ends) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    auto run = begin_run(random);
    writers w(run.d, random);
    std::size_t returned = 0;
    std::optional<page_place> next = page_place{};
    for (bool first = true; next; first = false) {
      auto const page = run.d.read(*next, run.count);
      ASSERT_LE(page.rows.size(), run.count);
      ASSERT_EQ(page.previous.has_value(), !first);
      ASSERT_TRUE(std::is_sorted(page.rows.begin(), page.rows.end()));
      for (auto const& row : page.rows) {
        ASSERT_TRUE(run.there.contains(row.rid)) << "created later, or does not match";
        ++run.there[row.rid];
        ++returned;
      }
      ASSERT_LE(returned, run.there.size() + w.edits);
      next = page.next;
      w.write();
    }
    for (auto const& [rid, times] : run.there) {
      ASSERT_TRUE(times == 1 || w.touched.contains(rid)) << rid << " came " << times << " times";
    }
  }
}

TEST(scim_walk_model, returns_the_same_going_back_up_to_a_first_page_like_any) {
  std::mt19937 random(2);
  for (int round = 0; round < 3000; ++round) {
    auto run = begin_run(random);
    auto last = run.d.read({}, run.count);
    while (last.next) {
      last = run.d.read(*last.next, run.count);
    }
    writers w(run.d, random);
    for (auto const& row : last.rows) {
      ++run.there[row.rid];
    }
    std::size_t returned = last.rows.size();
    auto previous = last.previous;
    while (previous) {
      auto const page = run.d.read(*previous, run.count);
      ASSERT_LE(page.rows.size(), run.count);
      ASSERT_TRUE(std::is_sorted(page.rows.begin(), page.rows.end()));
      auto const begins_anew = !page.previous;
      if (begins_anew && page.rows.size() == run.count) {
        ASSERT_EQ(page.rows, run.d.read({}, run.count).rows);
      }
      for (auto const& row : page.rows) {
        ASSERT_TRUE(run.there.contains(row.rid));
        // What the first page was filled up with may have come before.
        bool const repeated = begins_anew && run.there[row.rid] > 0;
        run.there[row.rid] += repeated ? 0 : 1;
        returned += repeated ? 0 : 1;
      }
      ASSERT_LE(returned, run.there.size() + w.edits);
      previous = page.previous;
      w.write();
    }
    for (auto const& [rid, times] : run.there) {
      ASSERT_TRUE(times == 1 || w.touched.contains(rid)) << rid << " came " << times << " times";
    }
  }
}

TEST(scim_walk_model, returns_every_page_again_going_back_through_what_stays_as_it_is) {
  std::mt19937 random(3);
  for (int round = 0; round < 1000; ++round) {
    auto run = begin_run(random);
    run.d.budget = std::numeric_limits<std::size_t>::max();
    std::vector<page<position>> pages = {run.d.read({}, run.count)};
    while (pages.back().next) {
      pages.push_back(run.d.read(*pages.back().next, run.count));
    }
    for (auto at = pages.size() - 1; at > 0; --at) {
      auto const page = run.d.read(pages[at].previous.value(), run.count);
      ASSERT_EQ(page.rows, pages[at - 1].rows);
      ASSERT_EQ(page.previous.has_value(), at > 1);
      ASSERT_EQ(run.d.read(page.next.value(), run.count).rows, pages[at].rows);
    }
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
