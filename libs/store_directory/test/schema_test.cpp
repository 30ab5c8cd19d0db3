// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_directory/schema.hpp>

#include <tidegate/store_directory/row_texts.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::store_directory {
namespace {

auto make_model() -> scim::model {
  auto made = scim::model::make({}, {}, std::vector<std::string>{"title"});
  EXPECT_TRUE(made.has_value());
  return *std::move(made);
}

TEST(store_directory_schema, has_a_part_and_a_block_for_every_rid) {
  struct row {
    char const* name;
    std::int64_t rid;
    std::int64_t part;
    std::int64_t block;
  };
  constexpr std::int64_t blocks_of_part = std::int64_t{1} << (part_shift - block_shift);
  for (auto const& [name, rid, part, block] : {
           row{"the first of a part", rid_base(1) + 1, 1, blocks_of_part},
           row{"the last of the first block", rid_base(1) + 1023, 1, blocks_of_part},
           row{"the first of the second block", rid_base(1) + 1024, 1, blocks_of_part + 1},
           row{"the last of a part", rid_end(1), 1, 2 * blocks_of_part - 1},
           row{"the base of the next part", rid_end(1) + 1, 2, 2 * blocks_of_part},
           row{"the last of the last part", rid_end(part_max), part_max,
               (part_max + 1) * blocks_of_part - 1},
       }) {
    EXPECT_EQ(part_of(rid), part) << name;
    EXPECT_EQ(block_of(rid), block) << name;
    EXPECT_LE(block_begin(block), rid) << name;
    EXPECT_GT(block_begin(block + 1), rid) << name;
  }
  EXPECT_LT(rid_end(part_max), std::numeric_limits<std::int64_t>::max());
}

TEST(store_directory_schema, clamps_numbers_so_that_one_can_be_added) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max() - 1;
  EXPECT_EQ(clamped(0), 0);
  EXPECT_EQ(clamped(42), 42);
  EXPECT_EQ(clamped(static_cast<std::uint64_t>(most)), most);
  EXPECT_EQ(clamped(std::numeric_limits<std::uint64_t>::max()), most);
}

TEST(store_directory_schema, defines_an_index_by_what_its_keys_depend_on) {
  auto const model = make_model();
  auto const& users = *model.find("User");
  struct row {
    char const* path;
    bool multi_valued;
    char const* definition;
  };
  // These texts are in files: what they say must not change.
  for (auto const& [path, multi_valued, definition] : {
           row{"id", false, "1 value 0 exact"},
           row{"userName", false, "1 value 0 folded"},
           row{"title", false, "1 value 0 folded"},
           row{"emails.value", true, "1 other values 0 folded"},
           row{"meta.lastModified", false, "1 value 4 folded"},
       }) {
    auto const found = users.find_index(*users.definition.resolve(path));
    ASSERT_TRUE(found.has_value()) << path;
    EXPECT_EQ(is_multi_valued(users.indexes[*found]), multi_valued) << path;
    EXPECT_EQ(key_definition(users.indexes[*found], "other values"), definition) << path;
  }
  EXPECT_EQ(users.indexes[id_index(users)].name, "id");
}

TEST(store_directory_schema, stores_an_attribute_with_several_values_in_two_runs) {
  auto const model = make_model();
  auto const& users = *model.find("User");
  auto const runs = stored_runs(users);
  std::size_t several = 0;
  for (std::size_t i = 0; i < users.indexes.size(); ++i) {
    bool const is_several = is_multi_valued(users.indexes[i]);
    several += is_several ? 1 : 0;
    EXPECT_EQ(std::ranges::count(runs, stored_run{i, false}), 1) << users.indexes[i].name;
    EXPECT_EQ(std::ranges::count(runs, stored_run{i, true}), is_several ? 1 : 0)
        << users.indexes[i].name;
  }
  EXPECT_GT(several, 0U);
  EXPECT_EQ(runs.size(), users.indexes.size() + several);
}

TEST(store_directory_schema, says_which_stored_resource_is_damaged) {
  auto const read = parse_stored("file.db", 7, R"({"id":"a"})");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(*read->find("id")->if_string(), "a");
  auto const damaged = parse_stored("file.db", 7, R"({"id":)");
  ASSERT_FALSE(damaged.has_value());
  EXPECT_EQ(damaged.error().fault, store::store_fault::damaged);
  EXPECT_TRUE(damaged.error().text.starts_with("file.db: resource 7: ")) << damaged.error().text;
}

TEST(store_directory_schema, reads_a_group_with_its_display_name_or_without) {
  struct row {
    char const* name;
    char const* text;
    char const* display;
  };
  for (auto const& [name, text, display] : {
           row{"with one", R"({"displayName":"All"})", "All"},
           row{"without", R"({"id":"g"})", ""},
           row{"of another type", R"({"displayName":3})", ""},
       }) {
    auto const group = read_group("file.db", 9, "g", "Group", text);
    ASSERT_TRUE(group.has_value()) << name;
    EXPECT_EQ(group->rid, 9U) << name;
    EXPECT_EQ(group->id, "g") << name;
    EXPECT_EQ(group->type, "Group") << name;
    EXPECT_EQ(group->display, display) << name;
  }
  EXPECT_FALSE(read_group("file.db", 9, "g", "Group", "no JSON").has_value());
}

TEST(store_directory_row_texts, keeps_texts_of_any_size_where_they_are) {
  row_texts texts;
  std::vector<std::string> expected;
  std::vector<std::string_view> kept;
  for (std::size_t const size : {0U, 1U, 100U, 2'000U, 3'000U, 70'000U, 5U, 200'000U, 0U}) {
    for (char c = 'a'; c < 'f'; ++c) {
      expected.emplace_back(size, c);
      kept.push_back(texts.keep(expected.back()));
    }
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i], expected[i]) << i;
  }
}

}  // namespace
}  // namespace tidegate::store_directory
