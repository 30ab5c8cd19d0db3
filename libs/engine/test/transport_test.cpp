// SPDX-License-Identifier: Apache-2.0
#include <tidegate/engine/transport.hpp>

#include <gtest/gtest.h>

#include <sys/socket.h>

#include <array>
#include <string>
#include <utility>

namespace {

using namespace tidegate::engine;

// TLS is tested over real sockets, in tests/e2e/gateway_tls_test.cpp.

struct pair {
  transport here;
  transport there;
};

auto connect() -> pair {
  std::array<int, 2> sockets{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets.data()), 0);
  return {transport(descriptor(sockets[0])), transport(descriptor(sockets[1]))};
}

TEST(engine_transport, passes_bytes_as_they_are) {
  auto [here, there] = connect();
  EXPECT_FALSE(here.is_secure());
  EXPECT_FALSE(here.is_handshaking());
  EXPECT_EQ(here.handshake(), io_state::done);
  auto const wrote = here.write("hello");
  EXPECT_EQ(wrote.state, io_state::done);
  EXPECT_EQ(wrote.size, 5U);
  std::array<char, 100> into{};
  auto const got = there.read(into);
  EXPECT_EQ(got.state, io_state::done);
  EXPECT_EQ(std::string(into.data(), got.size), "hello");
  EXPECT_EQ(there.read(into).state, io_state::again);
}

TEST(engine_transport, tells_the_end_from_a_pause) {
  auto [here, there] = connect();
  std::array<char, 100> into{};
  EXPECT_EQ(there.read(into).state, io_state::again);
  here.finish();
  EXPECT_EQ(there.read(into).state, io_state::closed);
  // The other direction goes on.
  EXPECT_EQ(there.write("x").state, io_state::done);
  EXPECT_EQ(here.read(into).size, 1U);
}

TEST(engine_transport, takes_what_there_is_room_for) {
  auto [here, there] = connect();
  std::string const much(10'000'000, 'x');
  auto const wrote = here.write(much);
  EXPECT_EQ(wrote.state, io_state::done);
  EXPECT_LT(wrote.size, much.size());
  EXPECT_EQ(here.write(much).state, io_state::again);
}

TEST(engine_transport, fails_without_a_signal_when_the_peer_is_gone) {
  auto [here, there] = connect();
  there.close();
  EXPECT_EQ(here.write("x").state, io_state::failed);
}

TEST(engine_tls, says_which_file_it_cannot_use) {
  auto const server = tls_context::for_server({"/no/certificate.pem", "/no/key.pem", true});
  ASSERT_FALSE(server.has_value());
  EXPECT_TRUE(server.error().starts_with("cannot use the certificate /no/certificate.pem: "));
  auto const client = tls_context::for_client({true, "/no/ca.pem"});
  ASSERT_FALSE(client.has_value());
  EXPECT_TRUE(client.error().starts_with("cannot use the certificates /no/ca.pem: "));
  EXPECT_TRUE(tls_context::for_client({false, std::nullopt}).has_value());
  auto const shown = tls_context::for_client(
      {.verify = false, .ca = {}, .certificate = "/no/certificate.pem", .key = "/no/key.pem"});
  ASSERT_FALSE(shown.has_value());
  EXPECT_TRUE(shown.error().starts_with("cannot use the certificate /no/certificate.pem: "));
}

}  // namespace
