// SPDX-License-Identifier: Apache-2.0
#include "counting_api.hpp"
#include "faulty_way.hpp"
#include "keyed.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tidegate::e2e {
namespace {

TEST(beast_example, obeys_a_quota_and_has_every_request_executed_once_whatever_happens_on_the_way) {
  std::string const program = TIDEGATE_BEAST_CLIENT;
  if (program.empty()) {
    GTEST_SKIP() << "Boost is missing";
  }
  data_folder const data;
  counting_api const api;
  gateway const with("policies: {p: {quota: 1000, window: 1s, algorithm: fixed}}\n" +
                     keyed_config(api.url(), data, "anonymous: allow", "    limits: [p]\n"));
  faulty_way const way(with);
  auto const got = run({program, "127.0.0.1", std::to_string(way.port()), "/final", "8"});
  EXPECT_EQ(got.status, 0) << got.out << got.err;
  EXPECT_THAT(got.out, testing::MatchesRegex("(. 201 done [0-9]+\n)+"));
  EXPECT_EQ(api.counts(), (std::map<std::size_t, std::size_t>{{1, 8}}));
  EXPECT_GT(way.requests(), 10U) << "there were retries";
}

}  // namespace
}  // namespace tidegate::e2e
