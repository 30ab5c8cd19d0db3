// SPDX-License-Identifier: Apache-2.0
#include "phases/edge/respond.hpp"

#include "phases/phase_fixture.hpp"

#include <string>

namespace tidegate::gateway {
namespace {

[[nodiscard]] auto fixture_for(std::string const& options) -> phase_fixture {
  return phase_fixture("routes: [{match: {path: /**}, respond: " + options + "}]\n");
}

TEST(proxy_respond, answers_what_is_configured) {
  auto with = fixture_for("{status: 200, content-type: text/plain, body: \"ok\\n\"}");
  auto const reply = respond_fixed(with.get(), with.config.active);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.content_type, "text/plain");
  EXPECT_EQ(reply.content, "ok\n");
  EXPECT_TRUE(reply.is_service);
  EXPECT_EQ(reply.owner, nullptr);
}

TEST(proxy_respond, says_nothing_of_content_where_there_is_none) {
  for (auto const* const status : {"204", "304"}) {
    auto with = fixture_for("{status: " + std::string(status) + "}");
    auto const reply = respond_fixed(with.get(), with.config.active);
    EXPECT_EQ(std::to_string(reply.status), status);
    EXPECT_EQ(reply.content_type, "");
    EXPECT_EQ(reply.content, "");
  }
}

TEST(proxy_respond, keeps_a_long_text_where_it_is) {
  auto with = fixture_for(
      "{status: 200, content-type: text/plain, body: " + std::string(20'000, 'a') + "}");
  auto const reply = respond_fixed(with.get(), with.config.active);
  EXPECT_EQ(reply.owner, with.config.active);
  EXPECT_EQ(reply.content.data(), with.settings().config.routes[0].respond->body.data());
}

TEST(proxy_respond, is_the_status_of_a_call_for_clients_of_grpc) {
  auto with = fixture_for("{status: 503, content-type: text/plain, body: \"closed\"}");
  auto context = with.get();
  context.grpc = grpc_kind::grpc;
  EXPECT_FALSE(respond_fixed(context, with.config.active).is_service);
}

}  // namespace
}  // namespace tidegate::gateway
