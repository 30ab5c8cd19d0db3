// SPDX-License-Identifier: Apache-2.0
#include "reader/cover_index.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace tidegate::gateway {
namespace {

/// Made of few parts, so that many matches cover others.
class random_matches {
 public:
  explicit random_matches(unsigned seed) : random_(seed) {}

  auto next() -> request_match {
    request_match made{path()};
    for (auto const* const method : {"GET", "POST"}) {
      if (below(3) == 0) {
        made.methods.emplace_back(method);
      }
    }
    made.host = std::array<std::string, 8>{"",
                                           "",
                                           "",
                                           "a.example.com",
                                           "*.example.com",
                                           "*.com",
                                           "127.0.0.1",
                                           "*.a.example.com"}[below(8)];
    add_values(made.headers);
    add_values(made.query);
    return made;
  }

 private:
  auto below(std::size_t bound) -> std::size_t { return random_() % bound; }

  auto path() -> std::string {
    std::string made;
    auto const segments = 1 + below(4);
    for (std::size_t i = 0; i < segments; ++i) {
      made += '/';
      made += std::array<char const*, 5>{"a", "b", "*", "", "a"}[below(5)];
    }
    return below(3) == 0 ? made + "/**" : made;
  }

  void add_values(std::vector<value_match>& values) {
    for (auto const* const name : {"x", "y"}) {
      if (below(5) == 0) {
        values.push_back(
            {name, below(2) == 0 ? std::nullopt : std::optional(std::string(below(2), '1'))});
      }
    }
    if (below(2) == 0) {
      std::ranges::reverse(values);
    }
  }

  std::mt19937 random_;
};

TEST(cover_index, finds_the_first_that_covers_as_a_look_at_all_does) {
  std::size_t found = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    random_matches matches(seed);
    std::vector<route_config> routes;
    cover_index index(routes);
    for (std::size_t i = 0; i < 150; ++i) {
      auto const match = matches.next();
      auto const first = std::ranges::find_if(
          routes, [&](route_config const& wide) { return covers(wide.match, match); });
      auto const wanted = first == routes.end()
                              ? std::nullopt
                              : std::optional(static_cast<std::size_t>(first - routes.begin()));
      index.update();
      ASSERT_EQ(index.find(match), wanted) << "seed " << seed << ", " << match.path;
      found += wanted ? 1U : 0U;
      routes.emplace_back().match = match;
    }
  }
  EXPECT_GT(found, 1000U);
}

TEST(cover_index, takes_a_path_of_very_many_segments) {
  std::vector<route_config> routes(1);
  for (int i = 0; i < 100'000; ++i) {
    routes[0].match.path += "/*";
  }
  cover_index index(routes);
  index.update();
  EXPECT_EQ(index.find(routes[0].match), 0U);
}

}  // namespace
}  // namespace tidegate::gateway
