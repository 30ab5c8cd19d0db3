// SPDX-License-Identifier: Apache-2.0
#include "protocol/greeting.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tidegate::store_redis {
namespace {

auto octets_of(command const& request) -> std::string {
  std::string octets;
  request.append_to(octets);
  return octets;
}

TEST(store_redis_greeting, says_what_the_options_ask_for) {
  connection_options options{};
  EXPECT_EQ(greeting(options).unsent(), octets_of(command{"HELLO", "3"}.then({"PING"})));
  options.login.password = "secret";
  options.database = 3;
  options.must_be_master = true;
  command all{"HELLO", "3", "AUTH", "default", "secret"};
  all.then({"SELECT", "3"}).then({"ROLE"}).then({"PING"});
  greeting made(options);
  EXPECT_EQ(made.unsent(), octets_of(all));
  made.note_sent(made.unsent().size());
  EXPECT_EQ(made.unsent(), "");
}

TEST(store_redis_greeting, is_complete_with_its_last_reply) {
  greeting made{connection_options{}};
  EXPECT_EQ(made.take_reply({.kind = resp_kind::map}), false);
  EXPECT_EQ(made.take_reply({.kind = resp_kind::simple_string, .text = "PONG"}), true);
}

TEST(store_redis_greeting, fails_by_an_error_and_by_a_replica_where_it_needs_a_master) {
  greeting refused{connection_options{}};
  auto const error = refused.take_reply({.kind = resp_kind::error, .text = "NOAUTH"});
  ASSERT_FALSE(error.has_value());
  EXPECT_EQ(error.error(), "NOAUTH");

  connection_options options{};
  options.must_be_master = true;
  greeting made(options);
  EXPECT_EQ(made.take_reply({.kind = resp_kind::map}), false);
  resp_value role{.kind = resp_kind::array};
  role.items.push_back({.kind = resp_kind::blob, .text = "slave"});
  auto const replica = made.take_reply(role);
  ASSERT_FALSE(replica.has_value());
  EXPECT_EQ(replica.error(), "it is not the master");
}

}  // namespace
}  // namespace tidegate::store_redis
