// SPDX-License-Identifier: Apache-2.0
#include "phases/quota_fields.hpp"

#include "phases/phase_fixture.hpp"

#include <gmock/gmock.h>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

/// The fields of one response, where 2 units of "p" are left, and "q" has none.
class gateway_quota_fields : public testing::Test {
 protected:
  [[nodiscard]] auto fields(std::string const& more, quota_fields::appended_to const& response,
                            double capacity = 1) -> std::string {
    with_.emplace(
        "policies: {p: {quota: 9, window: 1h}, q: {quota: 5, window: 1m}}\n"
        "routes: [{name: all, match: {path: /**}, service: echo, limits: [p, q]}]\n" +
        more);
    auto context = with_->get();
    context.capacity = capacity;
    std::array<store::charge, 2> charges;
    std::array<store::charged, 2> results{};
    for (std::size_t i = 0; i < charges.size(); ++i) {
      charges[i].policy = &context.route_settings().limits[i].policy->policy;
      results[i].decision = {true, {i == 0 ? 2 : 0, 30s}, {}};
    }
    quota_fields made;
    made.make(context, charges, results, true, false, 1);
    std::string out;
    made.append(out, context, response, with_->metrics, with_->lines);
    return out;
  }
  [[nodiscard]] auto upstream(std::string_view text) -> wire::response_head const* {
    EXPECT_EQ(wire::parse_response_head(text, 0, {}, wire::method::get, head_).state,
              wire::head_state::complete);
    return &head_;
  }

  std::optional<phase_fixture> with_;
  wire::response_head head_;
};

TEST_F(gateway_quota_fields, say_what_is_left_of_each_policy) {
  EXPECT_EQ(fields("", {}),
            "RateLimit-Policy: \"p\";q=9;w=3600, \"q\";q=5;w=60\r\n"
            "RateLimit: \"p\";r=2;t=30, \"q\";r=0;t=30\r\n");
}

TEST_F(gateway_quota_fields, have_no_times_where_no_quota_is_the_reason) {
  EXPECT_THAT(fields("", {.status = 503, .has_resets = false}),
              HasSubstr("RateLimit: \"p\";r=2, \"q\";r=0\r\n"));
}

TEST_F(gateway_quota_fields, leave_what_is_exhausted_out_of_a_redirection_that_is_followed) {
  for (auto const status : {301, 302, 303, 307, 308}) {
    auto const said = fields("", {.status = status});
    EXPECT_THAT(said, HasSubstr("RateLimit: \"p\";r=2;t=30\r\n")) << status;
    EXPECT_THAT(said, HasSubstr("\"q\";q=5;w=60")) << status;
  }
  EXPECT_THAT(fields("", {.status = 304}), HasSubstr("\"q\";r=0"));
}

TEST_F(gateway_quota_fields, are_merged_with_those_of_the_upstream) {
  auto const* const head = upstream(
      "HTTP/1.1 200 OK\r\nRateLimit-Policy: \"theirs\";q=7\r\nRateLimit: \"theirs\";r=1\r\n"
      "Content-Length: 0\r\n\r\n");
  auto const said = fields("", {.upstream = head});
  EXPECT_THAT(said,
              HasSubstr("RateLimit-Policy: \"p\";q=9;w=3600, \"q\";q=5;w=60, \"theirs\";q=7"));
  EXPECT_THAT(said, HasSubstr("\"theirs\";r=1\r\n"));
  EXPECT_EQ(with_->metrics.origin_fields_dropped.value(), 0U);
}

TEST_F(gateway_quota_fields, count_fields_of_the_upstream_that_cannot_be_read) {
  auto const* const head =
      upstream("HTTP/1.1 200 OK\r\nRateLimit: \"theirs;r=1\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(fields("", {.upstream = head}), Not(HasSubstr("theirs")));
  EXPECT_EQ(with_->metrics.origin_fields_dropped.value(), 1U);
}

TEST_F(gateway_quota_fields, tell_of_less_while_the_upstream_has_less_capacity) {
  EXPECT_THAT(fields("", {}, 0.5), HasSubstr("\"p\";r=1"));
}

TEST_F(gateway_quota_fields, have_the_old_names_beside_them_where_they_are_wanted) {
  EXPECT_THAT(fields("fields: {legacy: true}\n", {}),
              HasSubstr("X-RateLimit-Limit: 5\r\nX-RateLimit-Remaining: 0\r\n"));
  EXPECT_THAT(fields("fields: {legacy: triple}\n", {}),
              HasSubstr("\r\nRateLimit-Limit: 5\r\nRateLimit-Remaining: 0\r\n"));
  EXPECT_THAT(fields("fields: {legacy: [triple, x], ratelimit: none}\n", {}),
              AllOf(HasSubstr("X-RateLimit-Limit: 5\r\n"),
                    HasSubstr("\r\nRateLimit-Limit: 5\r\nRateLimit-Remaining: 0\r\n")));
  EXPECT_EQ(fields("fields: {ratelimit: none}\n", {}), "");
}

}  // namespace
}  // namespace tidegate::gateway
