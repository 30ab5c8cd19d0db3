// SPDX-License-Identifier: Apache-2.0
#include "pending_entries.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

namespace tidegate::store_sqlite {
namespace {

TEST(store_sqlite_pending_entries, are_the_difference_between_the_table_and_what_it_should_be) {
  using stored = std::tuple<std::int64_t, std::string, std::int64_t>;
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    std::set<stored> table;
    std::set<stored> wanted;
    pending_entries pending;
    std::int64_t last = 100;
    auto const any = [&] {
      return stored(random() % 3, std::string(random() % 40, static_cast<char>('a' + random() % 2)),
                    random() % 20);
    };
    for (int i = 0; i < 200; ++i) {
      table.insert(any());
    }
    wanted = table;
    for (int work = 0; work < 200; ++work) {
      auto const before = wanted;
      for (int i = 0; i < 20; ++i) {
        auto const one = any();
        auto const& [index_id, key, rid] = one;
        if (wanted.erase(one) == 1) {
          pending.remove({index_id, key, rid});
        } else {
          wanted.insert(one);
          pending.add({index_id, key, rid});
        }
      }
      // A rid that nobody has had, or somebody whose work was undone.
      for (auto const* const key : {"a", "b", "new"}) {
        wanted.insert({1, key, last + 1});
        pending.add_new({1, key, last + 1});
      }
      if (random() % 3 == 0) {
        pending.undo();
        wanted = before;
      } else {
        pending.keep();
        ++last;
      }
      auto const [index_id, key, rid] = any();
      auto const is_new = [&](std::int64_t r) {
        return wanted.contains({index_id, key, r}) && !table.contains({index_id, key, r});
      };
      std::vector<std::int64_t> expected;
      for (std::int64_t r = 0; r <= last; ++r) {
        if (is_new(r)) {
          expected.push_back(r);
        }
      }
      auto added = pending.added(index_id, key);
      std::sort(added.begin(), added.end());
      EXPECT_EQ(added, expected);
      EXPECT_EQ(pending.is_removed({index_id, key, rid}),
                table.contains({index_id, key, rid}) && !wanted.contains({index_id, key, rid}));
      if (random() % 10 == 0) {
        auto const changes = pending.in_order();
        EXPECT_TRUE(std::is_sorted(changes.begin(), changes.end(),
                                   [](auto const& a, auto const& b) { return a.what < b.what; }));
        for (auto const& [what, adds] : changes) {
          stored const row(what.index_id, what.key, what.rid);
          EXPECT_EQ(adds ? table.insert(row).second : table.erase(row) == 1, true);
        }
        EXPECT_EQ(table, wanted);
        pending.clear();
        EXPECT_TRUE(pending.empty());
      }
    }
  }
}

}  // namespace
}  // namespace tidegate::store_sqlite
