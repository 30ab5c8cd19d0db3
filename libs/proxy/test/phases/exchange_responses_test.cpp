// SPDX-License-Identifier: Apache-2.0
#include "phases/exchange_fixture.hpp"

#include <gmock/gmock.h>

namespace tidegate::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class proxy_exchange_responses : public testing::Test {
 protected:
  /// What a client gets that an upstream answers so.
  void answer(one_request& asked, std::string_view text) {
    ASSERT_TRUE(with_.turn_until([&] { return upstream_.has(""); }));
    upstream_.answer(text);
    EXPECT_TRUE(asked.is_answered());
  }

  scripted_upstream upstream_;
  exchange_fixture with_{upstream_.config() +
                         "policies: {p: {quota: 9, window: 1h}}\n"
                         "routes: [{match: {path: /echo}, service: echo, limits: [p]},\n"
                         "         {match: {path: /**}, upstream: api, limits: [p]}]\n"};
};

TEST_F(proxy_exchange_responses, have_a_date_and_the_fields_of_quotas) {
  one_request own(with_, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(own.client.lines, StartsWith("Date: "));
  EXPECT_THAT(own.client.lines, HasSubstr("RateLimit: \"p\";r=8;"));
  one_request passed(with_, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  answer(passed, "HTTP/1.1 204 No Content\r\nDate: then\r\n\r\n");
  EXPECT_THAT(passed.client.lines, Not(HasSubstr("Date: "))) << "that of the upstream is sent on";
  EXPECT_THAT(passed.client.lines, HasSubstr("RateLimit: \"p\";r=7;"));
}

TEST_F(proxy_exchange_responses, name_only_the_trailers_that_go_on) {
  one_request asked(with_, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  answer(asked,
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, Host\r\n\r\n"
         "0\r\nX-Sum: 1\r\nHost: h\r\nRateLimit: \"a\";r=1\r\nX-B: 2\r\n\r\n");
  EXPECT_THAT(asked.client.lines, HasSubstr("Trailer: X-Sum\r\n"));
  EXPECT_EQ(asked.client.trailers, "X-Sum: 1\r\nX-B: 2\r\n");
  EXPECT_THAT(asked.client.trace, ElementsAre("head 200", "end"));
}

TEST_F(proxy_exchange_responses, are_counted_by_status) {
  one_request own(with_, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
  std::vector<std::size_t> counted;
  with_.on->current->routes.front().counts->by_status.for_each(
      [&](std::size_t status, std::uint64_t /*count*/) { counted.push_back(status); });
  EXPECT_THAT(counted, ElementsAre(200));
}

}  // namespace
}  // namespace tidegate::gateway
