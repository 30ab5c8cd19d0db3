// SPDX-License-Identifier: Apache-2.0
#include "phases/auth/authenticate.hpp"

#include "phases/authorize.hpp"
#include "phases/phase_fixture.hpp"
#include "phases/select.hpp"
#include "request/caller.hpp"

#include "support/allocations.hpp"

#include <gmock/gmock.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::HasSubstr;

// SHA-256 of "alpha", "beta" and "gamma".
constexpr std::string_view alpha =
    "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8";
constexpr std::string_view beta =
    "f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753";
constexpr std::string_view gamma =
    "be9d587defa1f0c09ef49eb17e206983a5f8f8289e4281860bd0ee5a19592c67";

/// Acme has the keys `alpha`, and `beta` that has expired.
auto settings(std::string const& auth, std::string const& more = "") -> std::string {
  return "consumers: {acme: {plan: pro, keys: [{name: a, sha256: " + std::string(alpha) +
         "}, {name: b, sha256: " + std::string(beta) +
         ", expires: 2020-01-01T00:00:00Z}], attributes: {region: eu}}}\n"
         "routes: [{match: {path: /**}, service: echo, auth: {" +
         auth + "}" + more + "}]\n";
}

/// Who asks, what a repetition is answered with, or `wrong`, `none`, `anonymous`.
auto who_asks(phase_fixture& with, std::string const& target, std::string const& lines)
    -> std::string {
  auto context = with.ask("GET " + target + " HTTP/1.1\r\nHost: h\r\n" + lines + "\r\n");
  std::string room;
  if (authenticate(context, with.config.active->consumers, with.texts(), room) != step::next) {
    return std::to_string(context.reply->status) + " " + std::string(context.reply->reason);
  }
  switch (context.credential) {
    case shown_credential::none: return "none";
    case shown_credential::anonymous: return "anonymous " + std::string(plan_of(context));
    case shown_credential::wrong: return "wrong";
    case shown_credential::right: break;
  }
  return std::string(principal_of(context)) + " " + std::string(plan_of(context)) + " " +
         std::string(attribute_of(context, "region"));
}

TEST(proxy_authenticate, takes_the_first_place_that_has_a_key) {
  phase_fixture with(settings("api-keys: {in: [header:x-api-key, query:api_key, bearer]}"));
  struct row {
    std::string name, target, lines, wanted;
  };
  for (auto const& [name, target, lines, wanted] : std::vector<row>{
           {"a header", "/", "X-API-Key: alpha\r\n", "acme pro eu"},
           {"a parameter", "/?a=b&api_key=alpha", "", "acme pro eu"},
           {"one that is encoded", "/?%61pi_key=alph%61", "", "acme pro eu"},
           {"a bearer", "/", "Authorization: Bearer alpha\r\n", "acme pro eu"},
           {"nothing", "/?api_keys=alpha", "X-Api-Keys: alpha\r\n", "none"},
           {"a wrong one", "/", "X-API-Key: alph\r\n", "wrong"},
           {"one that has expired", "/", "X-API-Key: beta\r\n", "wrong"},
           {"a wrong one before a right one", "/?api_key=alpha", "X-API-Key: x\r\n", "wrong"},
           {"a right one before a wrong one", "/?api_key=x", "X-API-Key: alpha\r\n", "acme pro eu"},
           {"an empty one before a right one", "/?api_key=alpha", "X-API-Key:\r\n", "acme pro eu"},
           {"empty ones", "/?api_key=", "X-API-Key:\r\nAuthorization: Bearer\r\n", "none"},
           {"another scheme", "/", "Authorization: Basic alpha\r\n", "none"},
           {"the digest itself", "/", "X-API-Key: " + std::string(alpha) + "\r\n", "wrong"},
           {"a header twice", "/", "X-API-Key: alpha\r\nx-api-key: alpha\r\n",
            "400 credential-repeated"},
           {"an empty header twice", "/", "X-API-Key:\r\nx-api-key:\r\n",
            "400 credential-repeated"},
           {"a parameter twice", "/?api_key=alpha&api_key=alpha", "", "400 credential-repeated"},
           {"one behind another place", "/?api_key=a&api_key=b", "X-API-Key: alpha\r\n",
            "400 credential-repeated"},
           {"two bearers", "/", "Authorization: Bearer alpha\r\nAuthorization: Bearer alpha\r\n",
            "400 credential-repeated"},
       }) {
    EXPECT_EQ(who_asks(with, target, lines), wanted) << name;
  }
}

TEST(proxy_authenticate, lets_requests_without_credentials_pass_where_they_are_optional) {
  phase_fixture with(settings("api-keys: {in: [header:x-api-key, bearer]}, optional: true"));
  EXPECT_EQ(who_asks(with, "/", ""), "anonymous anonymous");
  EXPECT_EQ(who_asks(with, "/", "X-API-Key:\r\n"), "anonymous anonymous");
  EXPECT_EQ(who_asks(with, "/", "X-API-Key: x\r\n"), "wrong");
  EXPECT_EQ(who_asks(with, "/", "Authorization: Bearer x\r\n"), "wrong");
  EXPECT_EQ(who_asks(with, "/", "X-API-Key: alpha\r\n"), "acme pro eu");
}

TEST(proxy_authenticate, knows_tokens_before_keys_and_the_plan_of_a_consumer_of_that_name) {
  phase_fixture with(settings("bearer-tokens: [{name: acme, sha256: " + std::string(gamma) +
                              "}, {name: other, sha256: " + std::string(beta) +
                              "}], api-keys: {in: [bearer]}"));
  EXPECT_EQ(who_asks(with, "/", "Authorization: Bearer beta\r\n"), "other  ");
  EXPECT_EQ(who_asks(with, "/", "Authorization: Bearer alpha\r\n"), "acme pro eu");
  EXPECT_EQ(who_asks(with, "/", "Authorization: Bearer x\r\n"), "wrong");
}

TEST(proxy_authenticate, says_the_same_of_every_wrong_key) {
  phase_fixture with(settings("api-keys: {in: header:x-api-key}"));
  std::vector<std::string> answers;
  for (auto const* const key : {"beta", "x", "8ed3f6ad"}) {
    auto context = with.get("X-API-Key: " + std::string(key) + "\r\n");
    std::string room;
    (void)authenticate(context, with.config.active->consumers, with.texts(), room);
    EXPECT_FALSE(is_authorized(context));
    auto const reply = refuse_unauthorized(context, with.texts());
    EXPECT_EQ(reply.status, 401);
    answers.push_back(std::string(reply.field_lines) + std::string(reply.content));
    EXPECT_THAT(answers.back(), testing::Not(HasSubstr(key)));
  }
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_EQ(answers[0], answers[2]);
  EXPECT_THAT(answers[0],
              HasSubstr(R"(WWW-Authenticate: Bearer realm="tidegate", error="invalid_token")"));
}

TEST(proxy_authenticate, allocates_nothing_once_its_buffers_have_room) {
  phase_fixture with(settings("api-keys: {in: [header:x-api-key, query:api_key, bearer]}"));
  std::string room;
  auto const ask = [&](std::string const& target, std::string const& lines) {
    auto context = with.ask("GET " + target + " HTTP/1.1\r\nHost: h\r\n" + lines + "\r\n");
    auto const before = test::allocations();
    EXPECT_EQ(authenticate(context, with.config.active->consumers, with.texts(), room), step::next);
    auto const count = test::allocations() - before;
    EXPECT_EQ(context.credential, shown_credential::right);
    return count;
  };
  EXPECT_EQ(ask("/", "X-API-Key: alpha\r\n"), 0U);
  EXPECT_EQ(ask("/", "Authorization: Bearer alpha\r\n"), 0U);
  (void)ask("/?api_key=%61lpha", "");
  EXPECT_EQ(ask("/?api_key=%61lpha", ""), 0U);
}

// ---- the route of who asks ----

TEST(proxy_authenticate, gives_each_plan_a_route_of_its_own) {
  phase_fixture with(
      "policies: {p: {quota: {by: plan, pro: 50, anonymous: 3, default: 5}, window: 1m, partition: "
      "[client-ip]}, q: {quota: 7, window: 1m, partition: [principal]}}\n" +
      settings("api-keys: {in: header:x-api-key}, optional: true", ", limits: [p, q]"));
  auto const& route = with.settings().routes[0];
  ASSERT_EQ(route.by_plan.size(), 2U);
  EXPECT_EQ(route.limits[0].policy->policy.quota(), 5);
  EXPECT_EQ(route.by_plan[0].plan, "anonymous");
  EXPECT_EQ(route.by_plan[0].route.limits[0].policy->policy.quota(), 3);
  EXPECT_EQ(route.by_plan[1].plan, "pro");
  EXPECT_EQ(route.by_plan[1].route.limits[0].policy->policy.quota(), 50);
  EXPECT_EQ(route.by_plan[1].route.limits[1].policy->policy.quota(), 7);
  EXPECT_EQ(route.by_plan[1].route.limits[0].id, route.limits[0].id);
  // Before it is known who asks, only what needs no principal is charged.
  ASSERT_EQ(route.refused.size(), 1U);
  ASSERT_EQ(route.refused[0].route.limits.size(), 1U);
  EXPECT_EQ(route.refused[0].route.limits[0].policy->name, "p");
}

}  // namespace
}  // namespace tidegate::gateway
