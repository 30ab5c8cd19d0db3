// SPDX-License-Identifier: Apache-2.0
//
// Stores that can be read and take no change: what operators see.
#include "gateway.hpp"
#include "keyed.hpp"
#include "scim.hpp"

#include "support/postgres_server.hpp"
#include "support/redis_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace tidegate::e2e {
namespace {

using test::redis_server;
using test_support::postgres_server;
using testing::HasSubstr;
using testing::Not;

constexpr auto user =
    R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"ann"})";

/// What a gateway says of one of its stores.
class store_report {
 public:
  store_report(gateway& by, std::string const& store, std::string const& kind)
      : by_(by),
        metric_("tidegate_store_up{store=\"" + store + "\",kind=\"" + kind + "\"}"),
        line_("the store fails: " + store + " (" + kind + ")\n") {}

  void expect_well() {
    EXPECT_EQ(by_.metric(metric_), 1);
    auto const ready = by_.admin("/readyz");
    EXPECT_EQ(ready.status(), 200);
    EXPECT_EQ(ready.body, "ready\n");
  }
  /// A request has failed. Nothing else is asked, and it stays so.
  void expect_failing(int ready_status, std::string const& line) {
    EXPECT_EQ(by_.metric(metric_), 0);
    auto const ready = by_.admin("/readyz");
    EXPECT_EQ(ready.status(), ready_status);
    EXPECT_THAT(ready.body, HasSubstr(line_));
    EXPECT_EQ(by_.admin("/healthz").status(), 200) << "to restart it would not help";
    (void)by_.errors_until("warning: " + line);
  }
  /// Without a request of a client.
  void expect_well_again(std::string const& line) {
    expect_eventually([&] { return by_.metric(metric_) == 1; }, "it works again");
    EXPECT_EQ(by_.admin("/readyz").body, "ready\n");
    (void)by_.errors_until("info: " + line);
  }

 private:
  gateway& by_;
  std::string metric_;
  std::string line_;
};

/// Lets the gateway write no file any more, as if the disk took nothing, or lets it again.
void let_files_grow(gateway const& with, bool may) {
  rlimit const limit{may ? RLIM_INFINITY : 0, RLIM_INFINITY};
  ASSERT_EQ(::prlimit(with.process(), RLIMIT_FSIZE, &limit, nullptr), 0);
}

/// What gateways share, in a file of the folder.
[[nodiscard]] auto secret_in(data_folder const& data) -> std::string {
  auto const file = data.path() + "/secrets.key";
  std::ofstream(file) << std::string(32, 's');
  std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  return "secrets: " + file + "\n";
}

TEST(gateway_store_health, tells_that_keys_in_a_file_fail_while_the_disk_takes_nothing) {
  serving_origin const api(response("200 OK", "done"));
  data_folder const data;
  gateway with(keyed_config(api.url(), data));
  store_report keys(with, "idempotency", "sqlite");
  EXPECT_EQ(with.ask(post("\"before\"")).status(), 200);
  keys.expect_well();
  let_files_grow(with, false);
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 503);
  keys.expect_failing(503, "the store of idempotency keys fails (");
  let_files_grow(with, true);
  keys.expect_well_again("the store of idempotency keys works again");
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 200);
}

TEST(gateway_store_health, tells_that_a_file_of_keys_was_shortened_or_its_mark_deleted) {
  for (auto const* const damage :
       {"idempotency.db", "idempotency.db-wal", "idempotency.db.commits"}) {
    serving_origin const api(response("200 OK", "done"));
    data_folder const data;
    gateway with(keyed_config(api.url(), data));
    store_report keys(with, "idempotency", "sqlite");
    EXPECT_EQ(with.ask(post("\"before\"")).status(), 200);
    keys.expect_well();
    std::filesystem::path const file = data.path() + "/" + damage;
    if (file.extension() == ".commits") {
      std::filesystem::remove(file);
    } else {
      std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
    }
    EXPECT_EQ(with.ask(post("\"k\"")).status(), 503) << damage;
    keys.expect_failing(503, "the store of idempotency keys fails (" + file.string() + ": was ");
    EXPECT_EQ(api.requests(), 1U);
  }
}

TEST(gateway_store_health, tells_that_a_new_file_of_keys_was_made) {
  serving_origin const api(response("200 OK", "done"));
  data_folder const data;
  auto const config = keyed_config(api.url(), data);
  auto const line = data.path() + "/idempotency.db: a new store of idempotency keys was made";
  {
    gateway with(config);
    (void)with.errors_until("info: " + line);
  }
  gateway with(config);
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 200);
  EXPECT_THAT(with.errors(), Not(HasSubstr(line))) << "it was there";
}

/// Fills the store up to its limit, as any client can.
void expect_full_store_to_work(std::string const& kind) {
  serving_origin const api(response("201 Created", std::string(400'000, 'x')));
  data_folder const data;
  gateway with("stores: {idempotency-size: 1MiB" +
               std::string(kind == "memory" ? ", idempotency: memory" : "") + "}\n" +
               keyed_config(api.url(), data));
  store_report keys(with, "idempotency", kind);
  EXPECT_EQ(with.metric("tidegate_idempotency_store_full"), 0);
  for (auto const* const key : {"\"1\"", "\"2\"", "\"3\""}) {
    EXPECT_EQ(with.ask(post(key)).status(), 201);
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(with.ask(post("\"new " + std::to_string(i) + "\"")).status(), 503);
    EXPECT_EQ(with.metric("tidegate_idempotency_store_full"), 1);
    keys.expect_well();
  }
  EXPECT_EQ(with.ask(post("\"1\"")).status(), 201) << "it is replayed";
  EXPECT_EQ(with.metric("tidegate_idempotency_store_failures_total"), 0);
  EXPECT_THAT(with.errors_until("warning: the store of idempotency keys is full ("),
              Not(HasSubstr("fails")));
  auto const id = unquoted_id(with.admin("/api/v1/idempotency?scope=Bearer%20x&key=1"));
  auto admin = with.connect_admin();
  admin.send("DELETE /api/v1/idempotency/" + id + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_EQ(admin.read_response().status(), 204);
  expect_eventually([&] { return with.metric("tidegate_idempotency_store_full") == 0; },
                    "it is found to have room, without a request of a client");
  EXPECT_EQ(with.ask(post("\"new 1\"")).status(), 201);
  EXPECT_THAT(with.errors(), Not(HasSubstr("is full"))) << "not one line for each";
}

TEST(gateway_store_health, takes_a_file_of_keys_that_is_full_by_its_bound_for_one_that_works) {
  expect_full_store_to_work("sqlite");
}

TEST(gateway_store_health, takes_a_memory_of_keys_that_is_full_by_its_bound_for_one_that_works) {
  expect_full_store_to_work("memory");
}

TEST(gateway_store_health, tells_that_a_directory_in_a_file_fails_while_the_disk_takes_nothing) {
  data_folder const data;
  gateway with(scim_config(data));
  store_report directory(with, "directory", "sqlite");
  scim_client const client(with);
  directory.expect_well();
  let_files_grow(with, false);
  EXPECT_EQ(client.post("/Users", user).status(), 503);
  directory.expect_failing(503, "the SCIM directory fails (");
  let_files_grow(with, true);
  directory.expect_well_again("the SCIM directory works again");
  EXPECT_EQ(client.post("/Users", user).status(), 201);
  EXPECT_EQ(client.get("/Users").at("totalResults"), "1") << "nothing of the probe is left";
}

/// A user of PostgreSQL with a database, who can be kept from changing anything in it.
class limited_user {
 public:
  limited_user() {
    server_.run_sql("CREATE ROLE limited LOGIN; GRANT CREATE ON DATABASE " + database_ +
                    " TO limited");
    url_.replace(url_.find("tidegate@"), 8, "limited");
  }
  ~limited_user() {
    server_.run_sql("DROP OWNED BY limited CASCADE", database_);
    server_.run_sql("DROP ROLE limited");
  }
  limited_user(limited_user const&) = delete;
  auto operator=(limited_user const&) -> limited_user& = delete;
  [[nodiscard]] auto url() const -> std::string const& { return url_; }
  void let_write(bool may) {
    server_.run_sql((may ? "GRANT" : "REVOKE") +
                        std::string(" INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tidegate ") +
                        (may ? "TO" : "FROM") + " limited",
                    database_);
  }

 private:
  postgres_server& server_ = postgres_server::shared();
  std::string url_ = server_.fresh_database();
  std::string database_ = url_.substr(url_.rfind('/') + 1);
};

TEST(gateway_store_health, tells_that_postgresql_takes_no_changes_of_keys) {
  if (!postgres_server::is_installed()) {
    GTEST_SKIP() << postgres_server::missing;
  }
  limited_user database;
  serving_origin const api(response("200 OK", "done"));
  data_folder const data;
  gateway with(secret_in(data) + "stores: {idempotency: \"" + database.url() + "\"}\n" +
               keyed_config(api.url(), data));
  store_report keys(with, "idempotency", "postgres");
  EXPECT_EQ(with.ask(post("\"before\"")).status(), 200);
  keys.expect_well();
  database.let_write(false);
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 503);
  keys.expect_failing(200, "the store of idempotency keys fails (");
  database.let_write(true);
  keys.expect_well_again("the store of idempotency keys works again");
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 200);
}

TEST(gateway_store_health, tells_that_postgresql_takes_no_changes_of_the_directory) {
  if (!postgres_server::is_installed()) {
    GTEST_SKIP() << postgres_server::missing;
  }
  limited_user database;
  data_folder const data;
  gateway with(scim_config(
      data, "",
      secret_in(data) + "stores: {idempotency: memory, directory: \"" + database.url() + "\"}\n"));
  store_report directory(with, "directory", "postgres");
  scim_client const client(with);
  directory.expect_well();
  database.let_write(false);
  EXPECT_EQ(client.post("/Users", user).status(), 503);
  directory.expect_failing(200, "the SCIM directory fails (");
  database.let_write(true);
  directory.expect_well_again("the SCIM directory works again");
  EXPECT_EQ(client.post("/Users", user).status(), 201);
  EXPECT_EQ(client.get("/Users").at("totalResults"), "1") << "nothing of the probe is left";
}

TEST(gateway_store_health, tells_that_redis_takes_no_changes) {
  if (!redis_server::is_installed()) {
    GTEST_SKIP() << redis_server::missing;
  }
  redis_server const redis;
  auto const url = "\"redis://" + redis.address() + "\"";
  serving_origin const api(response("200 OK", "done"));
  data_folder const data;
  gateway with(secret_in(data) + "stores: {idempotency: " + url + ", quota: " + url + "}\n" +
               "policies: {p: {quota: 900, window: 1h, on-store-failure: deny}}\n" + "data: " +
               data.path() + "\nupstreams: {api: {servers: [" + api.url() + "]}}\nroutes:\n" +
               "  - {match: {path: /keyed}, upstream: api, idempotency: {mode: required}}\n" +
               "  - {match: {path: /**}, upstream: api, limits: [p]}\n");
  store_report keys(with, "idempotency", "redis");
  store_report quotas(with, "quota", "redis");
  EXPECT_EQ(with.ask(post("\"before\"", "{}", "/keyed")).status(), 200);
  EXPECT_EQ(with.get("/").status(), 200);
  keys.expect_well();
  quotas.expect_well();
  redis.cli("CONFIG SET min-replicas-to-write 1");
  EXPECT_EQ(with.ask(post("\"k\"", "{}", "/keyed")).status(), 503);
  keys.expect_failing(200, "the store of idempotency keys fails (");
  EXPECT_EQ(with.get("/").status(), 503);
  quotas.expect_failing(200, "the store of quotas does not answer (");
  redis.cli("CONFIG SET min-replicas-to-write 0");
  expect_eventually([&] { return with.admin("/readyz").body == "ready\n"; }, "both work again");
  std::string said;
  expect_eventually(
      [&] {
        said += with.errors();
        return said.contains("info: the store of idempotency keys works again") &&
               said.contains("info: the store of quotas answers again");
      },
      "both are said");
  EXPECT_EQ(with.get("/").status(), 200);
}

/// Another store has taken the place of this one, as after the wrong backup was restored.
void expect_no_key_with_another_secret(std::string const& kind, std::string const& url,
                                       std::function<void(bool)> const& set_another) {
  serving_origin const api(response("200 OK", "done"));
  data_folder const data;
  gateway with(secret_in(data) + "stores: {idempotency: \"" + url + "\"}\n" +
               keyed_config(api.url(), data, "on-store-failure: pass"));
  store_report keys(with, "idempotency", kind);
  EXPECT_EQ(with.ask(post("\"k\"")).status(), 200);
  keys.expect_well();
  set_another(true);
  auto const metric = "tidegate_store_up{store=\"idempotency\",kind=\"" + kind + "\"}";
  expect_eventually([&] { return with.metric(metric) == 0; }, "it is noticed without a request");
  for (auto const* const key : {"\"k\"", "\"other\""}) {
    expect_code(with.ask(post(key)), 503, "store-unavailable");
  }
  EXPECT_EQ(api.requests(), 1U);
  keys.expect_failing(200, "the store of idempotency keys fails (");
  set_another(false);
  keys.expect_well_again("the store of idempotency keys works again");
  EXPECT_EQ(with.ask(post("\"k\"")).field("Idempotent-Replayed"), "true");
}

TEST(gateway_store_health, tells_that_redis_has_keys_of_another_secret) {
  if (!redis_server::is_installed()) {
    GTEST_SKIP() << redis_server::missing;
  }
  redis_server const redis;
  expect_no_key_with_another_secret("redis", "redis://" + redis.address(), [&](bool is_another) {
    redis.cli(
        "EVAL \"for i = 0, 63 do local key = 'tidegate:idempotency:{i' .. i .. '}:secret' "
        "redis.call('COPY', key, 'kept' .. i) if ARGV[1] == '1' then "
        "redis.call('SET', key, 'another') else "
        "redis.call('COPY', 'kept' .. i, key, 'REPLACE') end end\" 0 " +
        std::string(is_another ? "1" : "0"));
  });
}

TEST(gateway_store_health, tells_that_postgresql_has_keys_of_another_secret) {
  if (!postgres_server::is_installed()) {
    GTEST_SKIP() << postgres_server::missing;
  }
  auto& server = postgres_server::shared();
  auto const url = server.fresh_database();
  expect_no_key_with_another_secret("postgres", url, [&](bool is_another) {
    server.run_sql(is_another ? "CREATE TABLE kept AS SELECT * FROM tidegate.idempotency_secret;"
                                "UPDATE tidegate.idempotency_secret SET digest = 'another'"
                              : "UPDATE tidegate.idempotency_secret AS s SET digest = k.digest"
                                " FROM kept AS k",
                   url.substr(url.rfind('/') + 1));
  });
}

}  // namespace
}  // namespace tidegate::e2e
