// SPDX-License-Identifier: Apache-2.0
#include "phases/grpc_call.hpp"

#include "phases/exchange_fixture.hpp"

#include <gmock/gmock.h>

namespace tidegate::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class proxy_grpc_call : public testing::Test {
 protected:
  static auto call(std::string_view lines = "", std::string_view path = "/a") -> std::string {
    return "POST " + std::string(path) +
           " HTTP/1.1\r\nHost: h\r\nContent-Type: application/grpc\r\nContent-Length: 5\r\n" +
           std::string(lines) + "\r\n";
  }

  scripted_upstream upstream_;
  exchange_fixture with_{upstream_.config() +
                         "policies: {p: {quota: 2, window: 1h}}\n"
                         "routes: [{match: {path: /a}, upstream: api, limits: [p]}]\n"};
};

TEST_F(proxy_grpc_call, is_refused_by_a_status_of_its_own) {
  for (int i = 0; i < 2; ++i) {
    one_request const spent(with_, call(), "hello");
  }
  one_request refused(with_, call(), "hello");
  EXPECT_THAT(refused.client.trace, ElementsAre("whole 200"));
  EXPECT_EQ(refused.client.content, "");
  EXPECT_THAT(refused.client.lines, HasSubstr("grpc-status: 8\r\n"));
  EXPECT_THAT(refused.client.lines, HasSubstr("RateLimit: \"p\";r=0;"));
  EXPECT_THAT(refused.client.lines, HasSubstr("Retry-After: "));
  EXPECT_THAT(refused.client.lines, HasSubstr("grpc-retry-pushback-ms: "));
  one_request lost(with_, call("", "/none"), "hello");
  EXPECT_THAT(lost.client.lines, HasSubstr("grpc-status: 12\r\n"));
}

TEST_F(proxy_grpc_call, that_says_no_time_is_refused) {
  for (auto const* const line :
       {"grpc-timeout: soon\r\n", "grpc-timeout: 1S\r\ngrpc-timeout: 1S\r\n"}) {
    one_request refused(with_, call(line), "hello");
    EXPECT_EQ(refused.client.status, 200);
    EXPECT_THAT(refused.client.lines, HasSubstr("grpc-status: 3\r\n")) << line;
    EXPECT_THAT(refused.client.lines, HasSubstr("RateLimit: \"p\";r=2"));
  }
}

TEST_F(proxy_grpc_call, ends_when_its_time_is_over) {
  one_request asked(with_, call("grpc-timeout: 50m\r\n"), "hello");
  ASSERT_TRUE(with_.turn_until([&] { return upstream_.has("hello"); }));
  EXPECT_THAT(upstream_.received(), HasSubstr("grpc-timeout: 50m\r\n")) << "the server knows it";
  EXPECT_TRUE(asked.is_answered());
  EXPECT_THAT(asked.client.lines, HasSubstr("grpc-status: 4\r\n"));
  EXPECT_TRUE(with_.turn_until([&] { return upstream_.is_left(); })) << "it is cancelled";
  one_request over(with_, call("grpc-timeout: 0S\r\n"), "hello");
  EXPECT_THAT(over.client.lines, HasSubstr("grpc-status: 4\r\n"));
}

TEST_F(proxy_grpc_call, is_cut_when_its_time_is_over_behind_the_head) {
  one_request asked(with_, call("grpc-timeout: 100m\r\n"), "hello");
  ASSERT_TRUE(with_.turn_until([&] { return upstream_.has("hello"); }));
  upstream_.answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
  EXPECT_TRUE(asked.is_answered());
  EXPECT_THAT(asked.client.trace, ElementsAre("head 200", "cut"));
}

TEST_F(proxy_grpc_call, in_time_is_answered) {
  one_request asked(with_, call("grpc-timeout: 1H\r\n"), "hello");
  ASSERT_TRUE(with_.turn_until([&] { return upstream_.has("hello"); }));
  upstream_.answer(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\ngrpc-status: "
      "0\r\n\r\n");
  EXPECT_TRUE(asked.is_answered());
  EXPECT_EQ(asked.client.trailers, "grpc-status: 0\r\n");
}

}  // namespace
}  // namespace tidegate::gateway
