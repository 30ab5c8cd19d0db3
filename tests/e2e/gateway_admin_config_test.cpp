// SPDX-License-Identifier: Apache-2.0
//
// The configuration as the admin address shows it, and reloads that it is asked for.
#include "gateway.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>

namespace tidegate::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

auto limited(int quota, std::string_view more = "") -> std::string {
  return "policies: {p: {quota: " + std::to_string(quota) +
         ", window: 1h}}\nroutes: [{match: {path: /**}, service: echo, limits: [p]}]\n" +
         std::string(more);
}

auto reload_now(gateway const& with) -> message {
  auto client = with.connect_admin();
  client.send("POST /api/v1/config/reload HTTP/1.1\r\nHost: localhost\r\n\r\n");
  return client.read_response();
}

TEST(gateway_admin_config, shows_every_option_and_where_it_comes_from) {
  gateway const with(limited(5, "stores: {quota: memory}\n"));
  auto const shown = with.admin("/api/v1/config");
  EXPECT_EQ(shown.status(), 200);
  EXPECT_EQ(shown.field("Content-Type"), "application/json");
  EXPECT_THAT(shown.body,
              AllOf(HasSubstr(R"({"path":"policies.p.quota","value":"5","origin":")" + with.file() +
                              R"(:4:23"})"),
                    HasSubstr(R"({"path":"http.max-uri","value":"8KiB","origin":"default"})"),
                    testing::EndsWith("],\"truncated\":false}\n")));
  EXPECT_EQ(with.admin("/api/v1/config?x").status(), 200);
  EXPECT_EQ(with.admin("/api/v1/config/").status(), 404);
}

TEST(gateway_admin_config, says_what_a_reload_would_change_and_changes_nothing) {
  gateway const with(limited(5));
  EXPECT_EQ(with.admin("/api/v1/config/reload").body, "{\"possible\":true,\"changes\":[]}\n");
  with.write_config(limited(7, "stores: {quota-partitions: 5000}\n"));
  EXPECT_EQ(
      with.admin("/api/v1/config/reload").body,
      R"({"possible":true,"changes":[)"
      R"({"path":"stores.quota-partitions","from":"1000000","to":"5000","takes-effect":"on restart"},)"
      R"({"path":"policies.p.quota","from":"5","to":"7","takes-effect":"on reload"}]})"
      "\n");
  EXPECT_THAT(with.admin("/api/v1/config").body, HasSubstr(R"("policies.p.quota","value":"5")"));
  EXPECT_THAT(with.get("/").field("RateLimit-Policy"), StartsWith("\"p\";q=5;"));
}

TEST(gateway_admin_config, says_which_faults_keep_it_from_being_taken_over) {
  gateway with(limited(5));
  with.write_config(limited(0));
  auto const seen = with.admin("/api/v1/config/reload");
  EXPECT_EQ(seen.status(), 200);
  EXPECT_THAT(seen.body, AllOf(StartsWith(R"({"possible":false,"faults":[{"place":")" +
                                          with.file() + R"(:4:23","message":"quota: )"),
                               HasSubstr(R"("reason":null)")));
  auto const refused = reload_now(with);
  EXPECT_EQ(refused.status(), 422);
  EXPECT_EQ(refused.field("Content-Type"), "application/problem+json");
  EXPECT_THAT(refused.body, HasSubstr(R"("faults":[")" + with.file() + ":4:23: quota: "));
  with.write_config(limited(5, "stores: {quota: 'redis://:p4ss@127.0.0.1:1'}\n"));
  auto const other_store = with.admin("/api/v1/config/reload").body;
  EXPECT_THAT(other_store, HasSubstr(R"("reason":"a change of stores.quota needs a restart")"));
  EXPECT_THAT(reload_now(with).body, HasSubstr("a change of stores.quota needs a restart."));
  EXPECT_THAT(with.get("/").field("RateLimit-Policy"), StartsWith("\"p\";q=5;"));
  auto said = with.errors_until(" to POST /api/v1/config/reload: answered 422");
  said += with.errors_until(" to POST /api/v1/config/reload: answered 422");
  EXPECT_THAT(said, AllOf(HasSubstr(with.file() + ":4:23: quota: "),
                          HasSubstr("the configuration was not applied: it has faults\n"),
                          HasSubstr(" to POST /api/v1/config/reload: answered 422\n"),
                          Not(HasSubstr("p4ss"))));
}

TEST(gateway_admin_config, reloads_as_a_signal_does) {
  gateway with(limited(5, "http: {max-uri: 4KiB}\n"));
  EXPECT_THAT(with.get("/").field("RateLimit"), StartsWith("\"p\";r=4;"));
  with.write_config(limited(9, "stores: {quota-partitions: 5000}\n"));
  auto const taken = reload_now(with);
  EXPECT_EQ(taken.status(), 200);
  EXPECT_THAT(
      taken.body,
      AllOf(
          StartsWith("{\"changes\":["),
          HasSubstr(
              R"({"path":"http.max-uri","from":"4KiB","to":"8KiB","takes-effect":"on reload"})")));
  expect_eventually(
      [&] { return with.get("/").field("RateLimit-Policy").starts_with("\"p\";q=9;"); },
      "the new quota holds");
  // What waits for a start is still what it was, and still to come.
  auto const after = with.admin("/api/v1/config").body;
  EXPECT_THAT(after, AllOf(HasSubstr(R"("policies.p.quota","value":"9")"),
                           HasSubstr(R"("stores.quota-partitions","value":"1000000")")));
  EXPECT_EQ(
      with.admin("/api/v1/config/reload").body,
      R"({"possible":true,"changes":[{"path":"stores.quota-partitions","from":"1000000","to":"5000","takes-effect":"on restart"}]})"
      "\n");
  EXPECT_THAT(
      with.errors_until("Z info: the admin address was asked by "),
      AllOf(HasSubstr("Z warning: stores.quota-partitions changed: takes effect on restart\n"),
            HasSubstr("Z info: the configuration was applied\n"),
            HasSubstr(" to POST /api/v1/config/reload: answered 200\n")));
  EXPECT_EQ(with.reload(limited(3)), "the configuration was applied");
}

TEST(gateway_admin_config, says_which_listeners_need_a_start) {
  gateway with(limited(5));
  with.options().listen = "[{address: \"127.0.0.1:0\", http2: false}, \"127.0.0.2:0\"]";
  with.write_config(limited(5));
  auto const seen = with.admin("/api/v1/config/reload").body;
  EXPECT_THAT(
      seen,
      AllOf(
          HasSubstr(
              R"({"path":"listen","from":"[127.0.0.1:0]","to":"[127.0.0.1:0, 127.0.0.2:0]","takes-effect":"on restart"})"),
          HasSubstr(
              R"({"path":"listen[127.0.0.1:0].http2","from":"true","to":"false","takes-effect":"on reload"})"),
          HasSubstr(
              R"({"path":"listen[127.0.0.2:0].http2","from":null,"to":"true","takes-effect":"on restart"})")));
}

TEST(gateway_admin_config, reads_no_more_than_a_configuration_may_have_and_nothing_that_waits) {
  gateway const with(limited(5));
  with.write_config(limited(5) + "#" + std::string(65 * 1024 * 1024, 'x'));
  EXPECT_THAT(with.admin("/api/v1/config/reload").body, HasSubstr("the file is larger than 64MiB"));
  std::filesystem::remove(with.file());
  EXPECT_THAT(with.admin("/api/v1/config/reload").body,
              HasSubstr("cannot read the file: No such file"));
  ASSERT_EQ(::mkfifo(with.file().c_str(), 0600), 0);
  EXPECT_THAT(with.admin("/api/v1/config/reload").body, HasSubstr("not a regular file"));
  std::filesystem::remove(with.file());
  std::filesystem::create_directory(with.file());
  EXPECT_THAT(with.admin("/api/v1/config/reload").body, HasSubstr("Is a directory"));
}

TEST(gateway_admin_config, has_these_methods) {
  gateway const with(limited(5));
  auto const status_of = [&](std::string_view request_line) {
    auto client = with.connect_admin();
    client.send(std::string(request_line) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    auto const answer = client.read_response(request_line.starts_with("HEAD"));
    return std::to_string(answer.status()) + " " + answer.field("Allow");
  };
  EXPECT_EQ(status_of("POST /api/v1/config"), "405 GET, HEAD");
  EXPECT_EQ(status_of("PUT /api/v1/config/reload"), "405 GET, HEAD, POST");
  EXPECT_EQ(status_of("HEAD /api/v1/config"), "200 (none)");
  EXPECT_EQ(status_of("HEAD /api/v1/config/reload"), "200 (none)");
}

TEST(gateway_admin_config, ends_in_good_order_while_a_client_asks) {
  gateway with(limited(5));
  auto client = with.connect_admin();
  client.send("POST /api/v1/config/reload HTTP/1.1\r\nHost: localhost\r\n\r\n");
  with.signal(SIGTERM);
  EXPECT_EQ(with.wait(), 0);
}

}  // namespace
}  // namespace tidegate::e2e
