// SPDX-License-Identifier: Apache-2.0
#include "protocol/command_queue.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

namespace tidegate::store_redis {
namespace {

using namespace std::chrono_literals;

auto octets_of(command const& request) -> std::string {
  std::string octets;
  request.append_to(octets);
  return octets;
}

auto text(std::string value) -> resp_value {
  return {.kind = resp_kind::blob, .text = std::move(value)};
}

void push(command_queue& to, command const& request) {
  to.push(request, [](answer const&) {});
}

TEST(store_redis_command_queue, takes_replies_once_something_of_a_command_was_sent) {
  command_queue queue;
  push(queue, {"PING"});
  EXPECT_EQ(queue.unsent(), octets_of({"PING"}));
  EXPECT_FALSE(queue.is_answer_due());
  queue.note_sent(1);
  EXPECT_TRUE(queue.is_answer_due());
  auto const done = queue.take_reply(text("PONG"));
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->value.text, "PONG");
  EXPECT_EQ(done->first_reply().text, "PONG");
  EXPECT_TRUE(queue.is_empty());
}

TEST(store_redis_command_queue, collects_the_replies_of_commands_that_are_sent_together) {
  command_queue queue;
  push(queue, command{"GET", "a"}.then({"GET", "b"}));
  queue.note_sent(queue.unsent().size());
  EXPECT_FALSE(queue.take_reply(text("1")).has_value());
  auto const done = queue.take_reply(text("2"));
  ASSERT_TRUE(done.has_value());
  ASSERT_EQ(done->value.items.size(), 2U);
  EXPECT_EQ(done->value.items[1].text, "2");
  EXPECT_EQ(done->first_reply().text, "1");
}

TEST(store_redis_command_queue, keeps_for_the_next_connection_what_was_not_sent) {
  command_queue queue;
  push(queue, {"GET", "a"});
  push(queue, {"GET", "b"});
  push(queue, {"GET", "c"});
  queue.note_sent(octets_of({"GET", "a"}).size() + 3);
  auto const failed = queue.take_sent();
  EXPECT_EQ(failed.size(), 2U) << "a part of the second was sent";
  EXPECT_EQ(queue.size(), 1U);
  EXPECT_EQ(queue.unsent(), octets_of({"GET", "c"}));
  EXPECT_FALSE(queue.is_answer_due());
}

TEST(store_redis_command_queue, gives_deadlines_to_those_that_have_none) {
  command_queue queue;
  EXPECT_FALSE(queue.set_deadlines(instant(1s)));
  EXPECT_EQ(queue.first_deadline(), instant::max());
  push(queue, {"GET", "a"});
  EXPECT_TRUE(queue.set_deadlines(instant(1s)));
  push(queue, {"GET", "b"});
  EXPECT_TRUE(queue.set_deadlines(instant(2s)));
  EXPECT_EQ(queue.first_deadline(), instant(1s));
  EXPECT_EQ(queue.take_expired(instant(1s)).size(), 1U);
  EXPECT_EQ(queue.first_deadline(), instant(2s));
  EXPECT_EQ(queue.unsent(), octets_of({"GET", "b"}));
  EXPECT_EQ(queue.take_all().size(), 1U);
  EXPECT_EQ(queue.unsent(), "");
}

}  // namespace
}  // namespace tidegate::store_redis
