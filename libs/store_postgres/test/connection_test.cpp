// SPDX-License-Identifier: Apache-2.0
#include "connection.hpp"

#include "support/postgres_server.hpp"

#include <gtest/gtest.h>

namespace tidegate::store_postgres {
namespace {

using namespace std::chrono_literals;

TEST(store_postgres_connection, waits_for_no_answer_longer_than_it_was_told_to) {
  auto const settings = read_url(test_support::postgres_server::shared().url());
  ASSERT_TRUE(settings.has_value());
  auto const handle = connect(*settings);
  ASSERT_TRUE(handle.has_value()) << handle.error().text;
  auto* const c = handle->get();
  auto const told = receive(c, PQsendQuery(c, "SELECT 1; SELECT 2"), 60s);
  ASSERT_TRUE(told.has_value()) << told.error();
  EXPECT_EQ(told->octets(0, 0), "2");
  auto const wrong = receive(c, PQsendQuery(c, "SELECT nothing"), 60s);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().find("nothing"), std::string::npos) << wrong.error();
  EXPECT_EQ(PQgetResult(c), nullptr);
  auto const late = receive(c, PQsendQuery(c, "SELECT pg_sleep(600)"), 50ms);
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error(), "no answer in time");
}

}  // namespace
}  // namespace tidegate::store_postgres
