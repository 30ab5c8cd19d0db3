// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/unresolved_names.hpp>

#include <gtest/gtest.h>

namespace tidegate::gateway {
namespace {

TEST(proxy_unresolved_names, has_names_without_an_address_and_nothing_else) {
  auto const settings = parse_config(
      "upstreams:\n"
      "  a: {servers: ['http://localhost:80', 'http://nowhere.invalid:80', "
      "'http://127.0.0.1:80']}\n"
      "  b: 'unix:/run/b.sock'\n"
      "  c: 'http://[::1]:80'\n"
      "routes: [{match: {path: /**}, upstream: a}, {match: {path: /b}, upstream: b},"
      " {match: {path: /c}, upstream: c}]\n",
      "file");
  ASSERT_TRUE(settings);
  auto const found = unresolved_names(*settings);
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].upstream, "a");
  EXPECT_EQ(found[0].name, "nowhere.invalid");
  EXPECT_FALSE(found[0].why.empty());
}

}  // namespace
}  // namespace tidegate::gateway
