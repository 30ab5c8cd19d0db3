// SPDX-License-Identifier: Apache-2.0
#include "worker/client_connection.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;

TEST(proxy_reading_pace, begins_when_something_begins_to_wait) {
  reading_pace pace;
  pace.note(0, 1000, instant(5s));
  EXPECT_EQ(pace.since(), instant(5s));
}

TEST(proxy_reading_pace, takes_an_eighth_for_progress) {
  struct step {
    std::size_t taken;
    std::size_t waiting;
    std::chrono::seconds at;
  };
  struct row {
    std::string_view name;
    std::vector<step> steps;
    std::chrono::seconds since;
  };
  for (auto const& each : {
           row{"a client that takes nothing", {{0, 800, 1s}, {0, 800, 9s}}, 1s},
           row{"an octet now and then", {{0, 800, 1s}, {1, 799, 2s}, {1, 798, 3s}}, 1s},
           row{"an eighth at once", {{0, 800, 1s}, {100, 700, 2s}}, 2s},
           row{"an eighth in small steps",
               {{0, 800, 1s}, {30, 770, 2s}, {30, 740, 3s}, {40, 700, 4s}},
               4s},
           row{"what was taken counts once", {{0, 800, 1s}, {100, 700, 2s}, {10, 690, 3s}}, 2s},
           row{"all is taken, and more begins to wait",
               {{0, 800, 1s}, {800, 0, 2s}, {0, 500, 7s}},
               7s},
       }) {
    reading_pace pace;
    for (auto const& step : each.steps) {
      pace.note(step.taken, step.waiting, instant(step.at));
    }
    EXPECT_EQ(pace.since(), instant(each.since)) << each.name;
  }
}

/// A connection for which nothing ever waits.
class idle_client final : public client_connection {
 public:
  void drain() override {}
  void drop() override {}
};

TEST(proxy_client_connection, waits_for_nothing_unless_it_says_so) {
  idle_client const client;
  EXPECT_EQ(client.waiting_octets(), 0U);
  EXPECT_EQ(client.waiting_since(instant(3s)), instant(3s));
}

}  // namespace
}  // namespace tidegate::gateway
