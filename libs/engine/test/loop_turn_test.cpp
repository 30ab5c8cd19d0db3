// SPDX-License-Identifier: Apache-2.0
#include <tidegate/engine/loop.hpp>

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>

namespace {

using namespace tidegate::engine;
using namespace std::chrono_literals;

class counting final : public watched {
 public:
  explicit counting(loop& on) : loop_(on) {}

  int told = 0;
  int ends = 0;
  bool asks_again = false;

 private:
  void ready(readiness /*what*/) override { ++told; }
  void turn_ends() override {
    ++ends;
    if (asks_again) {
      asks_again = false;
      loop_.at_end_of_turn(*this);
    }
  }

  loop& loop_;
};

TEST(engine_loop_turn, calls_at_the_end_of_a_turn_what_asked_for_it) {
  auto const made = loop::make();
  ASSERT_TRUE(made.has_value());
  auto& on = **made;
  counting who(on);
  on.at_end_of_turn(who);
  EXPECT_EQ(who.ends, 0);
  on.turn(60s);  // does not wait
  EXPECT_EQ(who.ends, 1);
  on.turn(0ms);
  EXPECT_EQ(who.ends, 1);
}

TEST(engine_loop_turn, does_what_is_asked_for_at_the_end_of_a_turn_in_the_next) {
  auto const made = loop::make();
  ASSERT_TRUE(made.has_value());
  auto& on = **made;
  counting who(on);
  who.asks_again = true;
  on.at_end_of_turn(who);
  on.turn(60s);
  EXPECT_EQ(who.ends, 1);
  on.turn(60s);
  EXPECT_EQ(who.ends, 2);
}

TEST(engine_loop_turn, calls_nothing_that_is_disposed_of) {
  auto const made = loop::make();
  ASSERT_TRUE(made.has_value());
  auto& on = **made;
  auto who = std::make_unique<counting>(on);
  on.at_end_of_turn(*who);
  on.dispose(std::move(who));
  on.turn(0ms);
  on.turn(0ms);
}

TEST(engine_loop_turn, calls_those_that_are_left_when_others_are_disposed_of) {
  // Each of three, and each two of them, before the turn ends.
  for (unsigned gone = 0; gone < 8; ++gone) {
    auto const made = loop::make();
    ASSERT_TRUE(made.has_value());
    auto& on = **made;
    std::array<std::unique_ptr<counting>, 3> all;
    for (auto& each : all) {
      each = std::make_unique<counting>(on);
      on.at_end_of_turn(*each);
      on.at_end_of_turn(*each);  // once is enough
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if ((gone >> i & 1U) != 0) {
        on.dispose(std::move(all[i]));
      }
    }
    counting last(on);
    on.at_end_of_turn(last);
    on.turn(60s);
    on.turn(0ms);
    EXPECT_EQ(last.ends, 1) << gone;
    for (auto const& each : all) {
      EXPECT_TRUE(each == nullptr || each->ends == 1) << gone;
    }
  }
}

TEST(engine_loop_turn, calls_nothing_that_another_disposes_of_at_the_end_of_the_turn) {
  auto const made = loop::make();
  ASSERT_TRUE(made.has_value());
  auto& on = **made;
  auto second = std::make_unique<counting>(on);
  class disposing final : public watched {
   public:
    disposing(loop& on, std::unique_ptr<counting>& of) : loop_(on), of_(of) {}

   private:
    void ready(readiness /*what*/) override {}
    void turn_ends() override { loop_.dispose(std::move(of_)); }
    loop& loop_;
    std::unique_ptr<counting>& of_;
  } first(on, second);
  counting third(on);
  on.at_end_of_turn(first);
  on.at_end_of_turn(*second);
  on.at_end_of_turn(third);
  on.turn(60s);
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(third.ends, 1);
}

TEST(engine_loop_turn, tells_the_one_that_has_taken_over) {
  auto const made = loop::make();
  ASSERT_TRUE(made.has_value());
  auto& on = **made;
  std::array<int, 2> sockets{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets.data()), 0);
  descriptor const here(sockets[0]);
  descriptor const there(sockets[1]);
  counting first(on);
  counting second(on);
  ASSERT_TRUE(on.watch(here, first).has_value());
  ASSERT_EQ(::write(there.get(), "x", 1), 1);
  on.turn(1s);
  EXPECT_EQ(first.told, 1);
  // What the first was told is told again: it may have left bytes.
  ASSERT_TRUE(on.watch_instead(here, second).has_value());
  on.turn(1s);
  EXPECT_EQ(first.told, 1);
  EXPECT_EQ(second.told, 1);
}

TEST(engine_loop_shared, tells_one_of_the_loops_that_share_a_listening_socket) {
  auto const address = socket_address::parse("127.0.0.1:0");
  auto const first = listen_on(*address, false);
  ASSERT_TRUE(first.has_value());
  auto second = share(*first);
  ASSERT_TRUE(second.has_value());
  auto const a = loop::make();
  auto const b = loop::make();
  counting who_a(**a);
  counting who_b(**b);
  ASSERT_TRUE((*a)->watch_listening(*first, who_a, true).has_value());
  ASSERT_TRUE((*b)->watch_listening(*second, who_b, true).has_value());
  auto const client = connect_to(*local_address(*first));
  ASSERT_TRUE(client.has_value());
  (*a)->turn(60s);
  EXPECT_EQ(who_a.told, 1);
  (*a)->turn(60s);
  EXPECT_EQ(who_a.told, 2);  // of what still waits

  // The socket lives on in the other descriptor: closing alone would not end what is told of it.
  (*b)->unwatch(*second);
  second->close();
  auto const other = connect_to(*local_address(*first));
  (*a)->turn(60s);
  EXPECT_EQ(who_a.told, 3);
  (*b)->turn(0ms);
  EXPECT_EQ(who_b.told, 0);
}

}  // namespace
