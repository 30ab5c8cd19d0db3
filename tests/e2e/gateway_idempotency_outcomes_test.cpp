// SPDX-License-Identifier: Apache-2.0
//
// What operators learn of requests with an Idempotency-Key, whose keys they are, and how much is
// kept of them.
#include "keyed.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace tidegate::e2e {
namespace {

using namespace std::string_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

auto outcomes(gateway const& of, std::string const& outcome) -> double {
  return of.metric("tidegate_idempotency_total{route=\"/**\",outcome=\"" + outcome + "\"}");
}

/// Sends a request that its API takes and does not answer.
auto leave_unanswered(gateway const& with, origin& api, std::string const& request) -> message {
  auto client = with.connect();
  client.send(request);
  auto server = api.accept();
  (void)server.read_request();
  server.close();
  return client.read_response();
}

auto resolve(gateway const& with, std::string const& id) -> message {
  auto admin = with.connect_admin();
  std::string const body = R"({"outcome": "executed"})";
  admin.send(
      "POST /api/v1/idempotency/" + id +
      "/resolve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body);
  return admin.read_response();
}

class gateway_idempotency_outcomes : public testing::Test {
 protected:
  data_folder data_;
};

TEST_F(gateway_idempotency_outcomes, are_there_from_0_on_and_count_when_they_happen) {
  origin api;
  gateway const with(keyed_config(api.url(), data_));
  auto const before = with.admin("/metrics").body;
  for (auto const* const outcome :
       {"first", "replayed", "conflict", "reused", "unknown", "unknown-refused", "expired",
        "not-replayable", "missing", "malformed", "too-many-keys", "store-failed", "bypassed",
        "not-sent", "refused"}) {
    EXPECT_THAT(before, HasSubstr("tidegate_idempotency_total{route=\"/**\",outcome=\"" +
                                  std::string(outcome) + "\"} 0\n"));
  }
  EXPECT_THAT(before, HasSubstr("\ntidegate_idempotency_unresolved 0\n"));

  expect_code(leave_unanswered(with, api, post("\"lost\"")), 502, "outcome-unknown");
  EXPECT_EQ(outcomes(with, "unknown"), 1) << "no client has asked again yet";
  EXPECT_EQ(outcomes(with, "first"), 0) << "a request has one outcome";
  EXPECT_EQ(with.metric("tidegate_idempotency_unresolved"), 1);

  expect_code(with.ask(post("\"lost\"")), 409, "outcome-unknown");
  EXPECT_EQ(outcomes(with, "unknown"), 1) << "no other payment is in doubt";
  EXPECT_EQ(outcomes(with, "unknown-refused"), 1);
}

TEST_F(gateway_idempotency_outcomes, are_unknown_when_the_client_is_told_so_after_a_time_out) {
  origin api;
  gateway const with(keyed_config(api.url(), data_));
  auto client = with.connect();
  client.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  expect_code(client.read_response(), 504, "outcome-unknown");
  EXPECT_EQ(outcomes(with, "unknown"), 1);
  server.send(response("201 Created", "late"));
  expect_eventually([&] { return with.ask(post("\"k\"")).status() == 201; },
                    "the late answer is replayed");
  EXPECT_EQ(outcomes(with, "unknown"), 1);
  EXPECT_EQ(outcomes(with, "first"), 0);
  EXPECT_EQ(with.metric("tidegate_idempotency_unresolved"), 0) << "it is known by now";
}

TEST_F(gateway_idempotency_outcomes, are_refused_where_a_quota_says_so) {
  serving_origin const api(response("201 Created", "made"));
  auto const log = data_.path() + "/access.log";
  gateway const with("access-log: " + log + "\npolicies: {p: {quota: 2, window: 1h}}\n" +
                     keyed_config(api.url(), data_, "replay-cost: 1", "    limits: [p]\n"));
  EXPECT_EQ(with.ask(post("\"k1\"")).status(), 201);
  EXPECT_EQ(with.ask(post("\"k1\"")).status(), 201) << "a replay";
  EXPECT_EQ(with.ask(post("\"k1\"")).status(), 429) << "a replay that is too much";
  EXPECT_EQ(with.ask(post("\"k2\"")).status(), 429);
  EXPECT_EQ(outcomes(with, "first"), 1);
  EXPECT_EQ(outcomes(with, "replayed"), 1);
  EXPECT_EQ(outcomes(with, "refused"), 2);
  EXPECT_EQ(api.requests(), 1U);
  std::string lines;
  expect_eventually(
      [&] {
        std::ifstream in(log);
        lines.assign(std::istreambuf_iterator<char>(in), {});
        return std::ranges::count(lines, '\n') == 4;
      },
      "the lines are written");
  auto const begin = lines.rfind("{\"time\"");
  EXPECT_THAT(lines.substr(begin),
              testing::ContainsRegex(
                  R"("idempotency":\{"id":"[0-9a-f]{64}","outcome":"refused"\},.*"status":429)"));
}

TEST_F(gateway_idempotency_outcomes, stay_unresolved_over_a_restart_until_an_operator_resolves) {
  origin api;
  std::string said;
  {
    gateway with(keyed_config(api.url(), data_));
    (void)leave_unanswered(with, api, post("\"one\""));
    (void)leave_unanswered(with, api, post("\"two\""));
    auto running = with.connect();
    running.send(post("\"three\""));
    auto server = api.accept();
    (void)server.read_request();
    with.signal(SIGKILL);
    (void)with.wait();
  }
  gateway with(keyed_config(api.url(), data_));
  EXPECT_EQ(with.metric("tidegate_idempotency_unresolved"), 3);
  (void)with.errors_until("the outcomes of 3 requests with keys are unknown");
  auto const listed = with.admin("/api/v1/idempotency/unknown").body;
  EXPECT_THAT(listed,
              AllOf(HasSubstr(R"("route":"/**","method":"POST","host":"a.example","path":"/a")"),
                    HasSubstr(R"("reason":"gateway-stopped")")));
  auto const record = with.admin("/api/v1/idempotency?scope=Bearer%20x&key=one");
  EXPECT_EQ(record.status(), 200) << record.body;
  EXPECT_EQ(resolve(with, unquoted_id(record)).status(), 200);
  EXPECT_EQ(with.metric("tidegate_idempotency_unresolved"), 2);
}

TEST_F(gateway_idempotency_outcomes, are_said_on_standard_error_once_in_a_while_when_unknown) {
  origin api;
  gateway with("data: " + data_.path() + "\nupstreams: {api: {servers: [" + api.url() +
               "]}}\nroutes:\n"
               "  - name: payments\n    match: {path: /**}\n    upstream: api\n"
               "    idempotency: {mode: required}\n"
               "    auth: {bearer-tokens: [{name: acme, sha256: "
               "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881}]}\n");
  (void)leave_unanswered(with, api, post("\"k1\"", "{}", "/payments/\"7\"?card=4711"));
  std::string said;
  expect_eventually(
      [&] { return (said += with.errors()).contains("the outcome of a request is unknown"); },
      "a line is written");
  auto const id = unquoted_id(with.admin("/api/v1/idempotency?scope=acme&key=k1"));
  EXPECT_EQ(id.size(), 64U);
  EXPECT_THAT(said, AllOf(HasSubstr("the outcome of a request is unknown: no-answer, POST "
                                    "\"/payments/%227%22\" on route \"payments\" by \"acme\""),
                          HasSubstr("/api/v1/idempotency/" + id), Not(HasSubstr("4711"))));
  for (auto const* const key : {"\"k2\"", "\"k3\"", "\"k4\""}) {
    (void)leave_unanswered(with, api, post(key));
  }
  EXPECT_EQ(with.metric("tidegate_idempotency_unresolved"), 4);
  EXPECT_THAT(with.errors(), Not(HasSubstr("is unknown"))) << "not one for each";
  with.signal(SIGTERM);  // as after the pause
  EXPECT_THAT(with.errors_until("more since the last such line"),
              HasSubstr("; 2 more since the last such line"));
}

TEST_F(gateway_idempotency_outcomes, show_a_digest_of_what_a_client_sent_and_never_the_value) {
  origin api;
  gateway with(keyed_config(api.url(), data_, "scope: [\"header:x-customer\", client-ip]"));
  (void)leave_unanswered(with, api, post("\"k1\"", "{}", "/a", "X-Customer: C-4711\r\n"));
  std::string said;
  expect_eventually(
      [&] { return (said += with.errors()).contains("the outcome of a request is unknown"); },
      "a line is written");
  // printf 'header:x-customer=%s\nclient-ip=%s\n' C-4711 127.0.0.1 | sha256sum | head -c 32
  constexpr auto digest = "0ad3ce01e457793827e0786bd95b0186";
  EXPECT_THAT(said, AllOf(HasSubstr("by \""s + digest + "\""), Not(HasSubstr("4711"))));
  auto const shown = with.admin("/api/v1/idempotency/unknown").body;
  EXPECT_THAT(shown, AllOf(HasSubstr(R"("principal":")"s + digest + "\""), Not(HasSubstr("4711"))));
}

TEST_F(gateway_idempotency_outcomes, need_an_owner_of_the_key_unless_the_route_says_otherwise) {
  serving_origin const api(response("201 Created", "made"));
  std::string const of_nobody =
      "POST /a HTTP/1.1\r\nHost: a.example\r\nCookie: user=1\r\nIdempotency-Key: "
      "\"k\"\r\nContent-Length: 0\r\n\r\n";
  {
    gateway const with(keyed_config(api.url(), data_));
    expect_code(with.ask(of_nobody), 400, "scope-missing");
    EXPECT_EQ(api.requests(), 0U);
  }
  {
    gateway const with(keyed_config(api.url(), data_, "anonymous: allow"));
    EXPECT_EQ(with.ask(of_nobody).status(), 201);
    EXPECT_EQ(with.ask(of_nobody).field("Idempotent-Replayed"), "true");
  }
}

TEST_F(gateway_idempotency_outcomes, have_no_owner_by_what_every_request_has) {
  serving_origin const api(response("201 Created", "made"));
  auto const ask = [&](gateway const& with, std::string const& lines) {
    return with.ask("POST /a HTTP/1.1\r\nHost: a.example\r\n" + lines +
                    "Idempotency-Key: \"k\"\r\nContent-Length: 0\r\n\r\n");
  };
  {
    gateway const with(keyed_config(api.url(), data_,
                                    "scope: [\"header:authorization\", client-ip, method, host, "
                                    "path, route]"));
    expect_code(ask(with, ""), 400, "scope-missing");
    expect_code(ask(with, "Authorization:\r\n"), 400, "scope-missing");
    EXPECT_EQ(api.requests(), 0U);
    EXPECT_EQ(ask(with, "Authorization: Bearer x\r\n").status(), 201);
  }
  gateway const with(keyed_config(api.url(), data_, "scope: [client-ip, path]"));
  EXPECT_EQ(ask(with, "").status(), 201);
  EXPECT_EQ(ask(with, "").field("Idempotent-Replayed"), "true");
}

TEST_F(gateway_idempotency_outcomes, are_shared_by_flags_alone_which_say_so) {
  serving_origin const api(response("201 Created", "made"));
  gateway with(std::vector<std::string>{"--upstream", api.url(), "--idempotency", "required",
                                        "--listen", "127.0.0.1:0"});
  (void)with.errors_until("share their keys (anonymous: allow)");
  EXPECT_EQ(with.ask("POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: \"k\"\r\nContent-Length: "
                     "0\r\n\r\n")
                .status(),
            201);
}

TEST_F(gateway_idempotency_outcomes, of_another_host_are_those_of_another_key) {
  serving_origin const api(response("201 Created", "made"));
  gateway const with(keyed_config(api.url(), data_));
  auto const ask = [&](std::string const& host) {
    return with.ask("POST /a HTTP/1.1\r\nHost: " + host +
                    "\r\nAuthorization: Bearer x\r\nIdempotency-Key: \"k\"\r\nContent-Length: "
                    "0\r\n\r\n");
  };
  EXPECT_EQ(ask("a.example").count("Idempotent-Replayed"), 0U);
  EXPECT_EQ(ask("other.example").count("Idempotent-Replayed"), 0U);
  EXPECT_EQ(api.requests(), 2U);
  for (auto const* const same : {"A.Example", "a.example:8080", "a.example"}) {
    EXPECT_EQ(ask(same).field("Idempotent-Replayed"), "true") << same;
  }
  EXPECT_EQ(ask("[::1]").count("Idempotent-Replayed"), 0U);
  for (auto const* const same : {"[0:0:0:0:0:0:0:1]", "[0::1]:80"}) {
    EXPECT_EQ(ask(same).field("Idempotent-Replayed"), "true") << same;
  }
  auto const of = [&](std::string const& host) {
    return unquoted_id(with.admin("/api/v1/idempotency?host=" + host + "&scope=Bearer%20x&key=k"));
  };
  EXPECT_EQ(of("a.example").size(), 64U);
  EXPECT_NE(of("a.example"), of("other.example"));
  EXPECT_EQ(of("[::1]"), of("[0:0:0:0:0:0:0:1]"));
  EXPECT_EQ(with.admin("/api/v1/idempotency?host=third.example&scope=Bearer%20x&key=k").status(),
            404);
  EXPECT_EQ(with.admin("/api/v1/idempotency?host=a.example:0&scope=Bearer%20x&key=k").status(),
            400);
}

TEST_F(gateway_idempotency_outcomes, belong_to_whom_a_token_names_and_not_to_the_token) {
  serving_origin const api(response("201 Created", "made"));
  auto const config = [&](std::string const& sha256) {
    return "data: " + data_.path() + "\nupstreams: {api: \"" + api.url() +
           "\"}\nroutes:\n  - match: {path: /**}\n    upstream: api\n    idempotency: {mode: "
           "required}\n    auth: {bearer-tokens: [{name: shop, sha256: " +
           sha256 + "}]}\n";
  };
  auto const request = [](std::string const& token) {
    return "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: \"rf1\"\r\nAuthorization: Bearer " +
           token + "\r\nContent-Length: 0\r\n\r\n";
  };
  gateway with(config("8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8"));
  EXPECT_EQ(with.ask(request("alpha")).status(), 201);
  (void)with.reload(config("f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753"));
  EXPECT_EQ(with.ask(request("beta")).field("Idempotent-Replayed"), "true");
  EXPECT_EQ(api.requests(), 1U);
}

TEST_F(gateway_idempotency_outcomes, of_a_renewed_credential_are_warned_of_by_check) {
  auto const file = std::filesystem::path(data_.path()) / "gateway.yaml";
  auto const check = [&](std::string const& options) {
    std::ofstream(file) << "upstreams: {api: \"http://127.0.0.1:1\"}\nroutes:\n"
                           "  - match: {path: /**}\n    upstream: api\n"
                           "    idempotency: {mode: required"
                        << options << "}\n";
    return run({TIDEGATE_BINARY, "check", "-c", file.string()});
  };
  for (auto const* const raw :
       {"", ", scope: [header:authorization]", ", scope: [client-ip, cookie:session]"}) {
    auto const outcome = check(raw);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr(file.string() + ":5:"), HasSubstr(": warning: scope: "),
                      HasSubstr("a retry with the same key runs a second time")));
  }
  auto const by_address = check(", scope: [client-ip, path]");
  EXPECT_EQ(by_address.status, 0) << by_address.err;
  EXPECT_THAT(by_address.err, HasSubstr("clients behind one address share their keys"));
  auto const named = check(", scope: [header:x-customer, client-ip]");
  EXPECT_EQ(named.status, 0);
  EXPECT_EQ(named.err, "");
}

TEST_F(gateway_idempotency_outcomes, are_400_for_a_key_of_another_form_or_too_old) {
  serving_origin const api(response("201 Created", "made"));
  gateway const with(keyed_config(api.url(), data_, "key-format: uuidv7, key-age-max: 1h"));
  // A UUID of version 7 begins with the milliseconds since 1970.
  auto const uuid_of = [](std::chrono::system_clock::time_point time) {
    auto const count =
        std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
    std::string digits(12, '0');
    std::snprintf(digits.data(), digits.size() + 1, "%012llx",
                  static_cast<unsigned long long>(count));
    return "\"" + digits.substr(0, 8) + "-" + digits.substr(8) + "-7000-8000-000000000001\"";
  };
  auto const now = std::chrono::system_clock::now();
  expect_code(with.ask(post("\"no-uuid\"")), 400, "key-malformed");
  expect_code(with.ask(post("\"8e03978e-40d5-43e8-bc93-6894a57f9324\"")), 400, "key-malformed");
  expect_code(with.ask(post(uuid_of(now - std::chrono::hours(2)))), 400, "key-too-old");
  EXPECT_EQ(api.requests(), 0U);
  EXPECT_EQ(with.ask(post(uuid_of(now))).status(), 201);
}

TEST_F(gateway_idempotency_outcomes, are_400_for_a_key_other_than_a_uuid_where_uuids_are_required) {
  serving_origin const api(response("201 Created", "made"));
  gateway const with(keyed_config(api.url(), data_, "key-format: uuid"));
  expect_code(with.ask(post("\"1\"")), 400, "key-malformed");
  EXPECT_EQ(with.ask(post("\"8e03978e-40d5-43e8-bc93-6894a57f9324\"")).status(), 201);
  EXPECT_EQ(with.ask(post("\"8E03978E-40D5-43E8-BC93-6894A57F9324\"")).field("Idempotent-Replayed"),
            "true");
}

TEST_F(gateway_idempotency_outcomes, are_replayed_without_seconds_that_have_passed_since) {
  serving_origin const api([](message const& request) {
    bool const by_date = request.start_line.contains("/date");
    return response("404 Not Found", "no",
                    by_date ? "Retry-After: Fri, 31 Dec 2100 23:59:59 GMT\r\n"
                            : "X-A: 1\r\nRetry-After: 30\r\nX-B: 2\r\n");
  });
  gateway const with(keyed_config(api.url(), data_));
  EXPECT_EQ(with.ask(post("\"k\"")).field("Retry-After"), "30");
  auto const again = with.ask(post("\"k\""));
  EXPECT_EQ(again.field("Idempotent-Replayed"), "true");
  EXPECT_EQ(again.count("Retry-After"), 0U);
  EXPECT_EQ(again.field("X-A") + again.field("X-B"), "12");
  (void)with.ask(post("\"d\"", "{}", "/date"));
  EXPECT_EQ(with.ask(post("\"d\"", "{}", "/date")).field("Retry-After"),
            "Fri, 31 Dec 2100 23:59:59 GMT");
}

TEST_F(gateway_idempotency_outcomes, are_the_same_for_a_key_with_parameters) {
  serving_origin const api(response("201 Created", "made"));
  gateway const with(keyed_config(api.url(), data_));
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 201);
  EXPECT_EQ(with.ask(post("\"k\";a=1;b")).field("Idempotent-Replayed"), "true");
  EXPECT_EQ(api.requests(), 1U);
}

TEST_F(gateway_idempotency_outcomes, are_those_of_what_the_fingerprint_of_the_route_looks_at) {
  struct row {
    std::string option;
    std::string_view retry;  // of {"a":1,"b":2}
    bool is_same;
  };
  for (auto const& [option, retry, is_same] : {
           row{"fingerprint: body", R"({"a":1,"b":2})", true},
           row{"fingerprint: body", R"({"b":2,"a":1})", false},
           row{"fingerprint: json", R"({ "b" : 2.0, "a":1})", true},
           row{"fingerprint: json", R"({"a":1,"b":3})", false},
           row{"fingerprint: {json: [/a]}", R"({"a":1,"b":3})", true},
           row{"fingerprint: {json: [/a]}", R"({"a":2,"b":2})", false},
           row{"fingerprint: none", "anything", true},
       }) {
    data_folder const data;
    serving_origin const api(response("201 Created", "made"));
    gateway const with(keyed_config(api.url(), data, option));
    auto const ask = [&](std::string_view body, std::string_view target) {
      return with.ask(post("\"k\"", body, target, "Content-Type: application/json\r\n"));
    };
    EXPECT_EQ(ask(R"({"a":1,"b":2})", "/a").status(), 201);
    auto const again = ask(retry, "/a");
    EXPECT_EQ(again.status(), is_same ? 201 : 422) << option << " " << retry;
    EXPECT_EQ(again.count("Idempotent-Replayed"), is_same ? 1U : 0U) << option << " " << retry;
    expect_code(ask(R"({"a":1,"b":2})", "/b"), 422, "key-reused");
    EXPECT_EQ(api.requests(), 1U) << option;
  }
}

TEST_F(gateway_idempotency_outcomes, are_none_on_a_route_without_keys_which_passes_any_key_on) {
  origin api;
  gateway const with(proxy_config(api.url()));
  auto client = with.connect();
  client.send(post("bad; ;key"));
  auto server = api.accept();
  EXPECT_EQ(server.read_request().field("Idempotency-Key"), "bad; ;key");
  server.send(response("201 Created", "made"));
  EXPECT_EQ(client.read_response().status(), 201);
  EXPECT_THAT(with.admin("/metrics").body, Not(HasSubstr("tidegate_idempotency_total{")));
}

TEST_F(gateway_idempotency_outcomes, are_503_for_new_keys_when_all_scopes_together_are_full) {
  for (auto const* const store : {"memory", "sqlite"}) {
    data_folder const data;
    std::string const megabyte(1'000'000, 'x');
    serving_origin const api(response("201 Created", megabyte));
    gateway const with(keyed_config(
        api.url(), data, "",
        "stores: {idempotency-size: 3MiB, idempotency: \"" +
            (store == std::string("memory") ? store : "sqlite:" + data.path() + "/keys.db") +
            "\"}\n"));
    auto const ask = [&](int scope) {
      return with.ask("POST /a HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer " +
                      std::to_string(scope) +
                      "\r\nIdempotency-Key: \"k\"\r\nContent-Length: 0\r\n\r\n");
    };
    int taken = 0;
    while (taken < 10 && ask(taken).status() == 201) {
      ++taken;
    }
    EXPECT_EQ(taken, 4) << "what is stored when the bound is reached";
    auto const refused = ask(100);
    expect_code(refused, 503, "store-unavailable");
    EXPECT_THAT(refused.body, HasSubstr("there is no room for another Idempotency-Key"));
    EXPECT_NE(refused.field("Retry-After"), "(none)");
    for (int i = 0; i < taken; ++i) {
      auto const again = ask(i);
      EXPECT_EQ(again.field("Idempotent-Replayed"), "true") << store << i;
      EXPECT_EQ(again.body, megabyte);
    }
    EXPECT_EQ(api.requests(), 4U);
    EXPECT_GE(with.metric("tidegate_idempotency_store_bytes"), 4'000'000) << store;
    EXPECT_LT(with.metric("tidegate_idempotency_store_bytes"), 4'100'000) << store;
    EXPECT_EQ(with.metric("tidegate_idempotency_store_bytes_max"), 3 << 20);
    EXPECT_EQ(outcomes(with, "store-failed"), 2);
  }
}

TEST_F(gateway_idempotency_outcomes, are_counted_against_the_size_after_a_restart_too) {
  serving_origin const api(response("201 Created", std::string(1'000'000, 'x')));
  auto const config = keyed_config(api.url(), data_, "", "stores: {idempotency-size: 1MiB}\n");
  {
    gateway const with(config);
    EXPECT_EQ(with.ask(post("\"one\"")).status(), 201);
    EXPECT_EQ(with.ask(post("\"two\"")).status(), 201);
  }
  gateway const with(config);
  expect_code(with.ask(post("\"three\"")), 503, "store-unavailable");
  EXPECT_EQ(with.ask(post("\"two\"")).field("Idempotent-Replayed"), "true");
  EXPECT_GE(with.metric("tidegate_idempotency_store_bytes"), 2'000'000);
}

}  // namespace
}  // namespace tidegate::e2e
