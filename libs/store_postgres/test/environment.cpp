// SPDX-License-Identifier: Apache-2.0
#include "support/postgres_server.hpp"

#include <gtest/gtest.h>

namespace tidegate::store_postgres {
namespace {

/// Nothing here can be tested without a server.
class with_postgres : public testing::Environment {
  void SetUp() override {
    if (!test_support::postgres_server::is_installed()) {
      GTEST_SKIP() << test_support::postgres_server::missing;
    }
  }
};

auto const* const environment = testing::AddGlobalTestEnvironment(new with_postgres);

}  // namespace
}  // namespace tidegate::store_postgres
