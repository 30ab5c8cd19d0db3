// SPDX-License-Identifier: Apache-2.0
#include "observe/exchange_log.hpp"

#include "phases/phase_fixture.hpp"

#include <gmock/gmock.h>

#include <string>
#include <string_view>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class proxy_exchange_log : public testing::Test {
 protected:
  /// Begins the line of a request with these field lines.
  [[nodiscard]] auto begin(std::string_view field_lines = "") -> request_context {
    auto context = with_.get(field_lines);
    context.begun = instant(std::chrono::steady_clock::now().time_since_epoch());
    context.status = 200;
    log_.reset();
    log_.begin(context, with_.from.peer, "HTTP/1.1");
    return context;
  }
  [[nodiscard]] auto finish(request_context const& context, early_answer const& early = {},
                            std::size_t local_octets = 0) -> std::string {
    quota_.append_decision(log_.line(), context);
    return log_.finish(context, early, local_octets);
  }

  phase_fixture with_{
      "policies: {p: {quota: 1, window: 1h}}\n"
      "routes: [{name: all, match: {path: /**}, service: echo, limits: [p]}]\n"};
  exchange_log log_;
  quota_phase quota_;
};

TEST_F(proxy_exchange_log, is_off_until_it_begins) {
  EXPECT_FALSE(log_.is_on());
  (void)begin();
  EXPECT_TRUE(log_.is_on());
  log_.reset();
  EXPECT_FALSE(log_.is_on());
}

TEST_F(proxy_exchange_log, is_one_line_of_json) {
  quota_.reset();
  auto const line = finish(begin("User-Agent: say \"x\"\r\n"));
  EXPECT_THAT(line, StartsWith("{\"time\":\""));
  EXPECT_THAT(line, EndsWith("}\n"));
  EXPECT_THAT(line, HasSubstr("\"client\":\"192.0.2.1\",\"protocol\":\"HTTP/1.1\","
                              "\"method\":\"GET\",\"host\":\"h\",\"path\":\"/a\","
                              "\"user_agent\":\"say \\\"x\\\"\""));
  EXPECT_THAT(line, HasSubstr("\"decision\":null,\"policies\":[],\"partitions\":[]"));
  EXPECT_THAT(line, HasSubstr("\"principal\":null,\"idempotency\":null,\"route\":\"all\","
                              "\"upstream\":null,\"server\":null,\"status\":200,\"reason\":null"));
  EXPECT_THAT(line, HasSubstr("\"upstream_ms\":null"));
}

TEST_F(proxy_exchange_log, says_how_much_was_sent) {
  quota_.reset();
  auto context = begin();
  context.request_octets = 11;
  context.response_octets = 22;
  EXPECT_THAT(finish(context, {}, 3),
              HasSubstr("\"request_bytes\":11,\"response_bytes\":25,\"duration_ms\":"));
  context = begin();
  context.method = wire::method::head;
  EXPECT_THAT(finish(context, {}, 3), HasSubstr("\"response_bytes\":0,"))
      << "a HEAD has no content";
}

TEST_F(proxy_exchange_log, says_what_was_told_before_the_end) {
  quota_.reset();
  auto context = begin();
  context.status = 201;
  context.reason = "later";
  context.response_octets = 100;
  auto const line = finish(context, {.status = 504, .octets = 7, .reason = "upstream-timeout"});
  EXPECT_THAT(line, HasSubstr("\"status\":504,\"reason\":\"upstream-timeout\""));
  EXPECT_THAT(line, HasSubstr("\"response_bytes\":7,"));
}

TEST_F(proxy_exchange_log, names_the_policies_that_refused) {
  auto context = begin();
  auto const enter = [&] {
    quota_.reset();
    EXPECT_TRUE(quota_.find_charges(context, with_.quotas, with_.now));
    return quota_.enter(context, with_.quotas, with_.now);
  };
  EXPECT_EQ(enter(), step::next);
  EXPECT_THAT(finish(context), HasSubstr("\"decision\":\"admitted\",\"policies\":[]"));
  context = begin();
  EXPECT_EQ(enter(), step::answered);
  auto const line = finish(context);
  EXPECT_THAT(line, HasSubstr("\"policies\":[\"p\"],\"partitions\":[\""));
  EXPECT_THAT(line, Not(HasSubstr("\"decision\":\"admitted\"")));
}

TEST_F(proxy_exchange_log, names_principal_key_and_server) {
  quota_.reset();
  auto context = begin();
  bearer_token const token{.name = "acme", .tenant = "default"};
  context.token = &token;
  log_.set_key("00ff", "replayed");
  log_.set_server("127.0.0.1:3000");
  auto const line = finish(context);
  EXPECT_THAT(line, HasSubstr("\"principal\":\"acme\",\"idempotency\":{\"id\":\"00ff\","
                              "\"outcome\":\"replayed\"}"));
  EXPECT_THAT(line, HasSubstr("\"server\":\"127.0.0.1:3000\""));
}

TEST_F(proxy_exchange_log, forgets_key_and_server_of_the_request_before) {
  quota_.reset();
  (void)begin();
  log_.set_key("00ff", "replayed");
  log_.set_server("127.0.0.1:3000");
  auto const line = finish(begin());
  EXPECT_THAT(line, HasSubstr("\"idempotency\":null"));
  EXPECT_THAT(line, HasSubstr("\"server\":null"));
}

TEST_F(proxy_exchange_log, keeps_no_key_while_it_is_off) {
  quota_.reset();
  log_.set_key("00ff", "replayed");
  EXPECT_FALSE(log_.is_on());
}

TEST_F(proxy_exchange_log, says_how_long_the_upstream_took) {
  quota_.reset();
  auto context = begin();
  context.answered_at = context.begun + 1500us;
  EXPECT_THAT(finish(context), HasSubstr("\"upstream_ms\":1.5"));
}

TEST_F(proxy_exchange_log, has_no_route_where_none_was_found) {
  quota_.reset();
  auto context = begin();
  context.route = nullptr;
  context.status = 404;
  EXPECT_THAT(finish(context), HasSubstr("\"route\":null,\"upstream\":null,\"server\":null,"
                                         "\"status\":404"));
}

}  // namespace
}  // namespace tidegate::gateway
