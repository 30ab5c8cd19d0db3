// SPDX-License-Identifier: Apache-2.0
//
// The admin API for idempotency keys, with each store.
#include "gateway.hpp"
#include "keyed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view scope = "scope=Bearer+x";
constexpr std::string_view unknown_key =
    "/api/v1/idempotency/0000000000000000000000000000000000000000000000000000000000000000";

auto admin_ask(gateway const& with, std::string_view method, std::string_view target,
               std::string_view content = "",
               std::string_view lines = "Content-Type: application/json\r\n") -> message {
  auto client = with.connect_admin();
  client.send(std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n" +
              std::string(lines) + "Content-Length: " + std::to_string(content.size()) +
              "\r\n\r\n" + std::string(content));
  return client.read_response(method == "HEAD");
}

auto look_up(gateway const& with, std::string_view key) -> message {
  return with.admin("/api/v1/idempotency?" + std::string(scope) + "&key=" + std::string(key));
}

auto id_in(message const& answer) -> std::string {
  constexpr std::string_view before = R"({"id":")";
  EXPECT_TRUE(answer.body.starts_with(before)) << answer.body;
  return answer.body.substr(before.size(), 64);
}

auto path_of(gateway const& with, std::string_view key) -> std::string {
  return "/api/v1/idempotency/" + id_in(look_up(with, key));
}

auto resolve(gateway const& with, std::string_view path, std::string_view outcome) -> message {
  return admin_ask(with, "POST", std::string(path) + "/resolve",
                   R"({ "outcome" : ")" + std::string(outcome) + R"("})");
}

void expect_problem(message const& answer, int status) {
  EXPECT_EQ(answer.status(), status) << answer.body;
  EXPECT_EQ(answer.field("Content-Type"), "application/problem+json");
  EXPECT_THAT(answer.body, HasSubstr("\"status\":" + std::to_string(status)));
  EXPECT_THAT(answer.body, HasSubstr("\"detail\":"));
}

class gateway_idempotency_admin : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] auto config(std::string const& url, std::string const& options = "") const
      -> std::string {
    return keyed_config(url, data_, options,
                        GetParam() == "memory" ? "stores: {idempotency: memory}\n" : "");
  }
  /// Sends a request whose connection the upstream closes without an answer.
  static void leave_unanswered(gateway const& with, origin& api, std::string_view key) {
    auto client = with.connect();
    client.send(post(key));
    auto server = api.accept();
    (void)server.read_request();
    server.close();
    EXPECT_EQ(client.read_response().status(), 502);
  }

  data_folder data_;
};

INSTANTIATE_TEST_SUITE_P(stores, gateway_idempotency_admin, testing::Values("memory", "sqlite"),
                         [](auto const& one) { return one.param; });

TEST_P(gateway_idempotency_admin, looks_a_key_up_by_scope_and_key) {
  serving_origin const api(response("201 Created", "a-secret-answer"));
  gateway const with(config(api.url()));
  EXPECT_EQ(with.ask(post("\"a-key\"", "a-secret-body")).status(), 201);
  auto const found = look_up(with, "a-key");
  EXPECT_EQ(found.status(), 200);
  EXPECT_EQ(found.field("Content-Type"), "application/json");
  EXPECT_EQ(found.field("Cache-Control"), "no-store");
  EXPECT_THAT(
      found.body,
      ContainsRegex(
          R"(^\{"id":"[0-9a-f]+","scope":"[0-9a-f]+","state":"completed","attempt":1,"status":201,)"
          R"("replayable":true,"created":"[-0-9T:]+Z","changed":"[-0-9T:]+Z",)"
          R"("replayed-until":"[-0-9T:]+Z","remembered-until":"[-0-9T:]+Z"\})"));
  EXPECT_THAT(found.body, Not(HasSubstr("a-secret")));
  EXPECT_THAT(found.body, Not(HasSubstr("a-key")));
  // As the field says it, and by its id.
  EXPECT_EQ(look_up(with, "%22a-key%22").body, found.body);
  EXPECT_EQ(with.admin("/api/v1/idempotency/" + id_in(found)).body, found.body);
  EXPECT_EQ(admin_ask(with, "HEAD", "/api/v1/idempotency/" + id_in(found)).status(), 200);
  expect_problem(look_up(with, "other"), 404);
  expect_problem(with.admin("/api/v1/idempotency?scope=Bearer+y&key=a-key"), 404);
  expect_problem(with.admin(unknown_key), 404);
}

TEST_P(gateway_idempotency_admin, takes_one_value_for_each_source_of_the_scope) {
  serving_origin const api(response("200 OK", "done"));
  gateway const with(
      config(api.url(), "scope: [header:x-tenant, header:x-user], key-format: uuid"));
  constexpr std::string_view key = "8E03978E-40D5-43E8-BC93-6894A57F9324";
  EXPECT_EQ(with.ask(post("\"" + std::string(key) + "\"", "", "/a", "X-Tenant: 1:2\r\n")).status(),
            200);
  auto const asked = "&key=" + std::string(key);
  EXPECT_EQ(with.admin("/api/v1/idempotency?scope=1%3a2&scope=" + asked).status(), 200);
  expect_problem(with.admin("/api/v1/idempotency?scope=1%3a2" + asked), 404);
  expect_problem(with.admin("/api/v1/idempotency?scope=&scope=1%3a2" + asked), 404);
}

TEST_P(gateway_idempotency_admin, looks_a_key_up_without_a_word_of_it_in_the_url) {
  serving_origin const api(response("201 Created", "done"));
  gateway with(config(api.url()));
  EXPECT_EQ(with.ask(post("\"a-key\"")).status(), 201);
  auto const found = look_up(with, "a-key");
  auto const asked = [&](std::string_view content) {
    return admin_ask(with, "POST", "/api/v1/idempotency/lookup", content);
  };
  EXPECT_EQ(asked(R"({"scope":["Bearer x"],"key":"a-key"})").body, found.body);
  EXPECT_EQ(asked(R"({"scope":"Bearer x","key":"\"a-key\""})").body, found.body);
  expect_problem(asked(R"({"scope":["Bearer y"],"key":"a-key"})"), 404);
  expect_problem(asked(R"({"scope":[],"key":"a-key"})"), 400);
  expect_problem(asked(R"({"key":"a-key"})"), 400);
  expect_problem(asked(R"({"scope":["Bearer x"]})"), 400);
  expect_problem(asked(R"({"scope":["Bearer x"],"key":["a-key"]})"), 400);
  expect_problem(asked(R"({"scope":[1],"key":"a-key"})"), 400);
  expect_problem(asked(R"({"scope":"Bearer x","key":"a-key","more":1})"), 400);
  expect_problem(asked("{"), 400);
  EXPECT_EQ(admin_ask(with, "GET", "/api/v1/idempotency/lookup").field("Allow"), "POST");
  expect_problem(
      admin_ask(with, "POST", "/api/v1/idempotency/lookup", "{}", "Content-Type: text/plain\r\n"),
      415);
  // A lookup changes nothing, and its content is in no log.
  EXPECT_THAT(with.errors(), testing::Not(testing::HasSubstr("a-key")));
}

TEST_P(gateway_idempotency_admin, lists_unknown_outcomes_until_they_are_settled) {
  origin api;
  gateway with(config(api.url()));
  constexpr std::string_view list = "/api/v1/idempotency/unknown";
  EXPECT_EQ(with.admin(list).body, "{\"unknown\":[],\"more\":false}\n");
  for (auto const* const key : {"\"k1\"", "\"k2\"", "\"k3\""}) {
    leave_unanswered(with, api, key);
  }
  auto const all = with.admin(list);
  EXPECT_EQ(all.status(), 200);
  auto const shown = [&](std::string_view key) {
    auto body = look_up(with, key).body;
    body.pop_back();  // the end of line
    return body;
  };
  EXPECT_THAT(all.body, HasSubstr(shown("k1")));
  EXPECT_THAT(all.body, HasSubstr(shown("k2")));
  EXPECT_THAT(all.body, HasSubstr(shown("k3")));
  EXPECT_THAT(all.body, HasSubstr(R"("state":"unknown","reason":"no-answer","attempt":1,)"));
  EXPECT_THAT(all.body, HasSubstr("],\"more\":false}"));
  EXPECT_THAT(all.body, Not(HasSubstr("Bearer")));
  EXPECT_THAT(with.admin(std::string(list) + "?limit=2").body, HasSubstr("],\"more\":true}"));
  EXPECT_EQ(resolve(with, path_of(with, "k1"), "executed").status(), 200);
  EXPECT_EQ(resolve(with, path_of(with, "k2"), "not-executed").status(), 200);
  EXPECT_EQ(admin_ask(with, "DELETE", path_of(with, "k3")).status(), 204);
  EXPECT_EQ(with.admin(list).body, "{\"unknown\":[],\"more\":false}\n");
  for (std::string const wrong : {"0", "501", "x", ""}) {
    expect_problem(with.admin(std::string(list) + "?limit=" + wrong), 400);
  }
  EXPECT_EQ(admin_ask(with, "POST", list).field("Allow"), "GET, HEAD");
}

TEST_P(gateway_idempotency_admin, shows_a_request_that_runs_and_refuses_to_change_it) {
  origin api;
  gateway const with(config(api.url()));
  auto client = with.connect();
  client.send(post("\"k\""));
  auto server = api.accept();
  (void)server.read_request();
  auto const found = look_up(with, "k");
  EXPECT_THAT(found.body, ContainsRegex(R"("state":"dispatched".*"lease-until":"[-0-9T:]+Z"\})"));
  auto const path = "/api/v1/idempotency/" + id_in(found);
  expect_problem(resolve(with, path, "executed"), 409);
  expect_problem(resolve(with, path, "not-executed"), 409);
  expect_problem(admin_ask(with, "DELETE", path), 409);
  server.send(response("200 OK", "done"));
  EXPECT_EQ(client.read_response().body, "done");
  expect_problem(resolve(with, path, "not-executed"), 409);  // it is known what became of it
  EXPECT_EQ(with.ask(post("\"k\"")).field("Idempotent-Replayed"), "true");
}

TEST_P(gateway_idempotency_admin, resolves_what_was_carried_out) {
  origin api;
  gateway const with(config(api.url()));
  leave_unanswered(with, api, "\"k\"");
  expect_code(with.ask(post("\"k\"")), 409, "outcome-unknown");
  auto const found = look_up(with, "k");
  EXPECT_THAT(found.body, HasSubstr(R"("state":"unknown","reason":"no-answer")"));
  auto const path = path_of(with, "k");
  auto const resolved = resolve(with, path, "executed");
  EXPECT_EQ(resolved.status(), 200);
  EXPECT_THAT(resolved.body, HasSubstr(R"("state":"completed","attempt":1,"replayable":false)"));
  expect_code(with.ask(post("\"k\"")), 409, "response-not-replayable");
  expect_code(with.ask(post("\"k\"", "other")), 422, "key-reused");
  expect_problem(resolve(with, path, "not-executed"), 409);
  EXPECT_TRUE(api.is_untouched());
}

TEST_P(gateway_idempotency_admin, resolves_what_was_not_carried_out_so_that_it_runs) {
  origin api;
  gateway const with(config(api.url()));
  leave_unanswered(with, api, "\"k\"");
  auto const path = path_of(with, "k");
  auto const resolved = resolve(with, path, "not-executed");
  EXPECT_EQ(resolved.status(), 200);
  EXPECT_THAT(resolved.body, HasSubstr(R"(,"state":"absent"})"));
  expect_problem(with.admin(path), 404);
  expect_problem(resolve(with, path, "not-executed"), 404);
  auto client = with.connect();
  client.send(post("\"k\""));
  auto server = api.accept();
  EXPECT_EQ(server.read_request().field("Idempotency-Attempt"), "1");
  server.send(response("200 OK", "done"));
  EXPECT_EQ(client.read_response().body, "done");
}

TEST_P(gateway_idempotency_admin, purges_a_key) {
  serving_origin const api(response("200 OK", "done"));
  gateway const with(config(api.url()));
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 200);
  auto const path = path_of(with, "k");
  auto const purged = admin_ask(with, "DELETE", path);
  EXPECT_EQ(purged.status(), 204);
  EXPECT_EQ(purged.count("Content-Length"), 0U);
  expect_problem(admin_ask(with, "DELETE", path), 404);
  EXPECT_EQ(with.ask(post("\"k\"")).count("Idempotent-Replayed"), 0U);
  EXPECT_EQ(api.requests(), 2U);
}

TEST_P(gateway_idempotency_admin, answers_malformed_requests_with_problems) {
  origin api;
  gateway const with(config(api.url()));
  auto const path = std::string(unknown_key);
  for (auto const* const query : {"", "?key=k", "?scope=s", "?scope=s&key=", "?scope=s&key=a&key=b",
                                  "?scope=s&key=%22a", "?scope=s&key=%22%22", "?Scope=s&key=k"}) {
    expect_problem(with.admin("/api/v1/idempotency" + std::string(query)), 400);
  }
  for (auto const* const missing :
       {"/api/v1/idempotency/", "/api/v1/idempotency/1", "/api/v1/idempotencyx", "/api/v1/",
        "/api/v1/idempotency/00/resolve"}) {
    expect_problem(with.admin(missing), 404);
  }
  expect_problem(with.admin(path + "/"), 404);
  expect_problem(with.admin(path + "/resolve/x"), 404);
  expect_problem(with.admin(path.substr(0, path.size() - 1) + "A"), 404);  // in lower case only
  auto const wrong = admin_ask(with, "PUT", path);
  expect_problem(wrong, 405);
  EXPECT_EQ(wrong.field("Allow"), "GET, HEAD, DELETE");
  EXPECT_EQ(with.admin(path + "/resolve").field("Allow"), "POST");
  EXPECT_EQ(admin_ask(with, "POST", "/api/v1/idempotency").field("Allow"), "GET, HEAD");
  EXPECT_EQ(admin_ask(with, "POST", "/metrics").field("Allow"), "GET, HEAD");
  for (auto const* const content :
       {"", "{", "[]", R"({"outcome":"perhaps"})", R"({"outcome":true})",
        R"({"Outcome":"executed"})", R"({"outcome":"executed","outcome":"executed"})",
        R"({"outcome":"executed","more":1})", R"({"outcome":"executed"}x)", "\xff"}) {
    expect_problem(admin_ask(with, "POST", path + "/resolve", content), 400);
  }
  constexpr std::string_view good = R"({"outcome":"executed"})";
  for (auto const* const type : {"text/plain", "application/x-www-form-urlencoded",
                                 "application/jsonx", "application/problem+json"}) {
    expect_problem(admin_ask(with, "POST", path + "/resolve", good,
                             "Content-Type: " + std::string(type) + "\r\n"),
                   415);
  }
  for (auto const* const type : {"", "Content-Type: Application/JSON ; charset=utf-8\r\n"}) {
    expect_problem(admin_ask(with, "POST", path + "/resolve", good, type), 404);
  }
  EXPECT_TRUE(api.is_untouched());
}

TEST_P(gateway_idempotency_admin, bounds_what_it_reads) {
  origin api;
  gateway const with(config(api.url()));
  auto const large = std::string(100'000, ' ');
  auto const path = std::string(unknown_key) + "/resolve";
  auto client = with.connect_admin();
  (void)client.send_until_blocked(
      "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" + large);
  expect_problem(client.read_response(), 413);
  auto chunked = with.connect_admin();
  (void)chunked.send_until_blocked(
      "POST " + path +
      " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n" + large);
  expect_problem(chunked.read_response(), 413);
  auto broken = with.connect_admin();
  broken.send("POST " + path +
              " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n");
  expect_problem(broken.read_response(), 400);
  auto long_line = with.connect_admin();
  (void)long_line.send_until_blocked("GET /" + large);
  expect_problem(long_line.read_response(), 414);
  auto many_fields = with.connect_admin();
  (void)many_fields.send_until_blocked("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + large);
  expect_problem(many_fields.read_response(), 431);
  auto http2 = with.connect_admin();
  http2.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  expect_problem(http2.read_response(), 400);
  // In pieces, and after a 100.
  auto slow = with.connect_admin();
  slow.send("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nExpect: 100-cont");
  slow.send("inue\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(slow.read_response().status(), 100);
  for (auto const c :
       std::string_view("5;x\r\n{\"out\r\n11\r\ncome\":\"executed\"}\r\n0\r\n\r\n")) {
    slow.send(std::string_view(&c, 1));
  }
  expect_problem(slow.read_response(), 404);
  EXPECT_EQ(with.admin("/healthz").status(), 200);
}

TEST_P(gateway_idempotency_admin, lets_no_page_of_another_origin_change_anything) {
  origin api;
  gateway with(config(api.url()));
  leave_unanswered(with, api, "\"k\"");
  auto const path = path_of(with, "k");
  for (auto const* const origin :
       {"https://evil.example", "null", "http://localhost.evil.example"}) {
    expect_problem(admin_ask(with, "DELETE", path, "", "Origin: " + std::string(origin) + "\r\n"),
                   403);
  }
  EXPECT_EQ(admin_ask(with, "DELETE", path, "", "Origin: http://LocalHost\r\n").status(), 204);
  std::string said;
  while (said.find(": answered 204") == std::string::npos) {
    said += with.errors();
  }
  EXPECT_THAT(said, HasSubstr("the admin address was asked by 127.0.0.1:"));
  EXPECT_THAT(said, HasSubstr("to DELETE " + path));
  EXPECT_THAT(said, HasSubstr("answered 403")) << "an operator should look at what that page is";
}

TEST_P(gateway_idempotency_admin, makes_a_change_whose_client_is_gone) {
  serving_origin const api(response("200 OK", "done"));
  gateway const with(config(api.url()));
  for (int i = 0; i < 50; ++i) {
    auto const key = "k" + std::to_string(i);
    EXPECT_EQ(with.ask(post("\"" + key + "\"")).status(), 200);
    auto const path = path_of(with, key);
    auto client = with.connect_admin();
    client.send("DELETE " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    if (i % 2 == 0) {
      client.abort();
    } else {
      client.close();
    }
    // It was read or not before the client went; whatever is there is whole.
    auto const after = with.admin(path).status();
    EXPECT_TRUE(after == 200 || after == 404) << after;
  }
  EXPECT_EQ(with.admin("/healthz").status(), 200);
}

TEST_P(gateway_idempotency_admin, lets_one_of_many_resolve) {
  origin api;
  gateway const with(config(api.url()), 2);
  leave_unanswered(with, api, "\"k\"");
  auto const path = path_of(with, "k");
  std::vector<connection> clients;
  for (int i = 0; i < 16; ++i) {
    constexpr std::string_view content = R"({"outcome":"executed"})";
    clients.push_back(with.connect_admin());
    clients.back().send("POST " + path +
                        "/resolve HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                        std::to_string(content.size()) + "\r\n\r\n" + std::string(content));
  }
  int resolved = 0;
  for (auto& each : clients) {
    auto const status = each.read_response().status();
    EXPECT_TRUE(status == 200 || status == 409) << status;
    resolved += status == 200 ? 1 : 0;
  }
  EXPECT_EQ(resolved, 1);
}

TEST_P(gateway_idempotency_admin, bounds_its_connections) {
  origin api;
  gateway const with(config(api.url()));
  auto const asks = [&](std::string_view request) {
    std::vector<connection> made;
    for (int i = 0; i < 256; ++i) {
      made.push_back(with.connect_admin());
      made.back().send(request);
    }
    return made;
  };
  constexpr std::string_view health = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  {
    // Those that ask nothing make room for a client that does, the oldest first.
    auto idle = asks("");
    for (int i = 0; i < 3; ++i) {
      auto client = with.connect_admin();
      client.send(health);
      EXPECT_THAT(client.read_to_end(), StartsWith("HTTP/1.1 200"));
      // It is closed now, so there is a place; the next one of the idle goes when that is taken.
      idle.push_back(with.connect_admin());
    }
    EXPECT_TRUE(idle.front().is_closed());
    idle.back().send(health);
    EXPECT_THAT(idle.back().read_to_end(), StartsWith("HTTP/1.1 200"));
  }
  {
    // Those that are in the middle of something do not.
    auto const busy =
        asks("POST /api/v1/quota HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n");
    expect_eventually([&] { return with.connect_admin().is_closed(); }, "all places are taken");
  }
  expect_eventually(
      [&] {
        auto client = with.connect_admin();
        client.send(health);
        return client.read_to_end().starts_with("HTTP/1.1 200");
      },
      "there is room again");
}

class gateway_idempotency_admin_restart : public testing::Test {
 protected:
  data_folder data_;
};

TEST_F(gateway_idempotency_admin_restart, resolves_what_was_sent_before_a_kill) {
  origin api;
  {
    gateway with(keyed_config(api.url(), data_));
    for (auto const* const key : {"\"a\"", "\"b\""}) {
      auto client = with.connect();
      client.send(post(key));
      auto server = api.accept();
      (void)server.read_request();
    }
    with.signal(SIGKILL);
    (void)with.wait();
  }
  std::string path_of_b;
  {
    gateway const with(keyed_config(api.url(), data_));
    EXPECT_THAT(look_up(with, "a").body, HasSubstr(R"("state":"unknown","reason":)"));
    path_of_b = path_of(with, "b");
    EXPECT_EQ(resolve(with, path_of(with, "a"), "executed").status(), 200);
    EXPECT_EQ(resolve(with, path_of_b, "not-executed").status(), 200);
  }
  gateway const with(keyed_config(api.url(), data_));
  EXPECT_THAT(look_up(with, "a&host=a.example").body, HasSubstr(R"("state":"completed")"));
  expect_code(with.ask(post("\"a\"")), 409, "response-not-replayable");
  expect_problem(with.admin(path_of_b), 404);
  auto client = with.connect();
  client.send(post("\"b\""));
  auto server = api.accept();
  (void)server.read_request();
  server.send(response("200 OK", "done"));
  EXPECT_EQ(client.read_response().body, "done");
}

TEST_F(gateway_idempotency_admin_restart, has_nothing_to_show_until_a_route_has_keys) {
  origin const api;
  gateway with(proxy_config(api.url()));
  expect_problem(with.admin("/api/v1/idempotency?scope=s&key=k"), 404);
  expect_problem(with.admin(unknown_key), 404);
  EXPECT_EQ(with.reload(keyed_config(api.url(), data_)), "the configuration was applied");
  expect_problem(with.admin("/api/v1/idempotency?scope=s"), 400);
}

}  // namespace
}  // namespace tidegate::e2e
