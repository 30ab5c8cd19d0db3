// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/store_sqlite/directory.hpp>

#include "folder.hpp"
#include "support/directory_contract.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::store_sqlite {

using namespace store::directory_contract_support;

using store::directory_reader;
using store::directory_writer;
using store::store_error;
using store::store_fault;

inline auto open(directory_options const& o,
                 std::shared_ptr<scim::model const> model = make_model())
    -> std::unique_ptr<store::directory> {
  auto made = open_directory(o, std::move(model));
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().text);
  return made ? *std::move(made) : nullptr;
}

inline auto error_of(directory_options const& o) -> store_error {
  auto const made = open_directory(o, make_model());
  return made ? store_error{} : made.error();
}

inline auto name_of(int number) -> std::string {
  return "user" + std::to_string(number);
}

inline void add_users(store::directory& where, scim::model_type const& users, int from, int to,
                      std::string const& title = {}) {
  ASSERT_TRUE(writing(where, "acme", [&](directory_writer& writer) {
    for (int i = from; i < to; ++i) {
      EXPECT_TRUE(insert(writer, users,
                         user_of({.id = name_of(i),
                                  .user_name = name_of(i * 7919 % 100'003),
                                  .title = title + std::to_string(i % 10)})));
    }
    return true;
  }));
}

/// The ids that a filter gives, in the order of creation or of an attribute.
inline auto found(store::directory& where, scim::model_type const& type, std::string_view filter,
                  std::string_view sort_by = {}) -> std::vector<std::string> {
  auto const parsed = parse_filter(filter, type.definition);
  EXPECT_TRUE(parsed.has_value());
  return reading(where, "acme", [&](directory_reader& reader) {
    store::directory_query query{.type = &type, .filter = &*parsed, .scan = {{}, 1000}};
    if (!sort_by.empty()) {
      query.sort_index = type.find_index(*type.definition.resolve(sort_by));
      EXPECT_TRUE(query.sort_index.has_value());
    }
    return ids_of(reader.scan(query)->rows);
  });
}

}  // namespace tidegate::store_sqlite
