// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_sqlite/directory.hpp>

#include "folder.hpp"
#include "support/directory_contract.hpp"

#include <gtest/gtest.h>

namespace tidegate::store_sqlite {
namespace {

using namespace store::directory_contract_support;

auto open(directory_options const& o, std::shared_ptr<scim::model const> model = make_model())
    -> std::unique_ptr<directory> {
  auto made = directory::open(o, std::move(model));
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().text);
  return made ? *std::move(made) : nullptr;
}

struct sqlite_maker {
  folder where;
  [[nodiscard]] auto make(std::shared_ptr<scim::model const> model)
      -> std::unique_ptr<store::directory> {
    return open({.file = where.file("directory.db")}, std::move(model));
  }
};

}  // namespace
}  // namespace tidegate::store_sqlite

namespace tidegate::store::directory_contract_support {
INSTANTIATE_TYPED_TEST_SUITE_P(sqlite, directory_contract, store_sqlite::sqlite_maker);
}  // namespace tidegate::store::directory_contract_support
