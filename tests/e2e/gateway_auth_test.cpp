// SPDX-License-Identifier: Apache-2.0
//
// Routes with bearer tokens.
#include "keyed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;

// SHA-256 of "alpha" and of "beta".
constexpr auto tokens =
    "bearer-tokens: [{name: a, sha256: "
    "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8}, {name: b, sha256: "
    "f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753, read-only: true}]";

auto guarded(std::string const& more = "", std::string const& policies = "") -> std::string {
  return policies + "routes: [{match: {path: /**}, service: echo, auth: {" + tokens + "}" + more +
         "}]\n";
}

TEST(gateway_auth, lets_in_who_has_a_token) {
  gateway const with(guarded());
  EXPECT_EQ(with.get("/", "Authorization: Bearer alpha\r\n").status(), 200);
  EXPECT_EQ(with.get("/", "Authorization: bearer  beta\r\n").status(), 200);
}

TEST(gateway_auth, answers_401_with_a_challenge_without_a_valid_token) {
  gateway const with(guarded());
  auto const without = with.get("/");
  EXPECT_EQ(without.status(), 401);
  EXPECT_EQ(without.field("WWW-Authenticate"), "Bearer realm=\"tidegate\"");
  EXPECT_EQ(without.field("Content-Type"), "application/problem+json");
  auto const wrong = with.get("/", "Authorization: Bearer alphA\r\n");
  EXPECT_EQ(wrong.status(), 401);
  EXPECT_EQ(wrong.field("WWW-Authenticate"), "Bearer realm=\"tidegate\", error=\"invalid_token\"");
  // An empty token and one of another scheme are none (RFC 6750, section 3.1).
  for (auto const* const line : {"Authorization: Bearer \r\n", "Authorization: Basic alpha\r\n",
                                 "Authorization: alpha\r\n"}) {
    auto const answer = with.get("/", line);
    EXPECT_EQ(answer.status(), 401) << line;
    EXPECT_EQ(answer.field("WWW-Authenticate"), "Bearer realm=\"tidegate\"") << line;
  }
  auto const twice =
      with.get("/", "Authorization: Bearer alpha\r\nAuthorization: Bearer alpha\r\n");
  EXPECT_EQ(twice.status(), 400);
  EXPECT_THAT(twice.body, HasSubstr("header:authorization more than once"));
}

TEST(gateway_auth, lets_a_token_for_reading_do_nothing_else) {
  gateway const with(guarded());
  EXPECT_EQ(with.ask("POST / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer alpha\r\n"
                     "Content-Length: 0\r\n\r\n")
                .status(),
            200);
  EXPECT_EQ(with.ask("DELETE / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer beta\r\n\r\n").status(),
            403);
}

TEST(gateway_auth, counts_quotas_by_principal_and_those_without_one_together) {
  gateway const with(
      guarded(", limits: [p]", "policies: {p: {quota: 1, window: 1m, partition: [principal]}}\n"));
  auto const ask = [&](char const* token) {
    return with.get("/", "Authorization: Bearer " + std::string(token) + "\r\n");
  };
  EXPECT_EQ(ask("alpha").status(), 200);
  EXPECT_EQ(ask("alpha").status(), 429);
  EXPECT_EQ(ask("beta").status(), 200);
  auto const guess = ask("x");
  EXPECT_EQ(guess.status(), 401);
  EXPECT_THAT(guess.field("RateLimit"), HasSubstr("r=0"));
  EXPECT_EQ(ask("y").status(), 429);
}

TEST(gateway_auth, gives_each_principal_its_own_keys) {
  data_folder const data;
  serving_origin const api(response("201 Created", "made"));
  gateway const with("data: " + data.path() + "\nupstreams: {api: \"" + api.url() +
                     "\"}\nroutes: [{match: {path: /**}, upstream: api, idempotency: {mode: "
                     "required}, auth: {bearer-tokens: [{name: a, sha256: "
                     "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8}, {name: b, "
                     "sha256: f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753}]}}]"
                     "\n");
  auto const ask = [&](char const* token) {
    return with.ask(
        "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: \"k\"\r\nAuthorization: Bearer " +
        std::string(token) + "\r\nContent-Length: 0\r\n\r\n");
  };
  EXPECT_EQ(ask("alpha").status(), 201);
  EXPECT_EQ(ask("alpha").field("Idempotent-Replayed"), "true");
  EXPECT_EQ(ask("beta").count("Idempotent-Replayed"), 0U);
  EXPECT_EQ(ask("gamma").status(), 401);
  EXPECT_EQ(api.requests(), 2U);
}

}  // namespace
}  // namespace tidegate::e2e
