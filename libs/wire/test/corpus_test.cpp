// SPDX-License-Identifier: Apache-2.0
#include "corpus.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

namespace tidegate::TIDEGATE_ABI::wire::test {
namespace {

TEST(wire_corpus, has_at_least_150_refusals_and_no_name_twice) {
  auto const rows = read_corpus();
  std::set<std::string> names;
  for (auto const& row : rows) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
  EXPECT_GE(
      std::ranges::count_if(rows, [](auto const& row) { return row.expected != "forwarded"; }),
      150);
}

TEST(wire_corpus, is_answered_as_expected) {
  for (auto const& row : read_corpus()) {
    EXPECT_EQ(serve(row.bytes, std::array{row.bytes.size()}), row.expected) << row.name;
  }
}

TEST(wire_corpus, is_answered_the_same_wherever_the_bytes_are_split) {
  for (auto const& row : read_corpus()) {
    auto const size = row.bytes.size();
    // The long ones are long runs of one character.
    auto const step = size < 2'000 ? std::size_t{1} : std::size_t{211};
    for (std::size_t split = 0; split <= size; split += step) {
      ASSERT_EQ(serve(row.bytes, std::array{split, size}), row.expected)
          << row.name << ", split at " << split;
    }
  }
}

TEST(wire_corpus, is_answered_the_same_byte_by_byte) {
  for (auto const& row : read_corpus()) {
    if (row.bytes.size() >= 2'000) {
      continue;
    }
    std::vector<std::size_t> ends(row.bytes.size());
    std::iota(ends.begin(), ends.end(), 1);
    ASSERT_EQ(serve(row.bytes, ends), row.expected) << row.name;
  }
}

TEST(wire_corpus, is_answered_the_same_when_only_a_part_is_there) {
  // What was refused once stays refused, and what is forwarded was never refused before.
  for (auto const& row : read_corpus()) {
    if (row.bytes.size() >= 2'000) {
      continue;
    }
    bool refused = false;
    for (std::size_t end = 1; end <= row.bytes.size(); ++end) {
      auto const answer = serve(row.bytes.substr(0, end), std::array{end});
      bool const is_refused = answer != "incomplete" && answer != "forwarded";
      if (refused || (is_refused && answer != "preface")) {
        ASSERT_EQ(answer, row.expected) << row.name << ", " << end << " bytes";
        refused = true;
      }
    }
  }
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::wire::test
