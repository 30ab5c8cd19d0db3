// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/config.hpp>
#include <tidegate/config/values.hpp>

#include "options/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

/// The configuration, or one without anything after the faults were shown.
auto parsed(std::string_view text, std::string_view file = "dir/t.yaml") -> config {
  auto made = parse_config(text, file);
  if (!made) {
    for (auto const& fault : made.error()) {
      ADD_FAILURE() << to_string(fault);
    }
    return {};
  }
  return *std::move(made);
}

/// The faults as `LINE:COLUMN: MESSAGE`.
auto faults(std::string_view text) -> std::vector<std::string> {
  std::vector<std::string> found;
  auto const made = parse_config(text, "t");
  if (!made) {
    for (auto const& fault : made.error()) {
      found.push_back(to_string(fault).substr(2));
    }
  }
  return found;
}

/// A configuration with `more` at its end that is right but for that.
auto with(std::string_view more) -> std::string {
  return "routes: [{match: {path: /**}, service: echo}]\n" + std::string(more);
}

/// One with a route whose idempotency is `options`.
auto with_keys(std::string_view options) -> std::string {
  return "upstreams: {a: 'http://127.0.0.1:1'}\n"
         "routes: [{match: {path: /**}, upstream: a, idempotency: {" +
         std::string(options) + "}}]\n";
}

/// A route that lets in who has one of these tokens.
auto with_tokens(std::string const& tokens) -> std::string {
  return "routes: [{match: {path: /}, service: echo, auth: {bearer-tokens: [" + tokens + "]}}]\n";
}

auto server_of(std::string_view url) -> upstream_server {
  return *parse_server_url(url);
}

/// One with a SCIM service and its options.
auto with_scim(std::string const& options) -> std::string {
  return "routes: [{match: {path: /**}, service: scim, scim: {" + options + "}}]\n";
}

/// The same with a policy whose options are `options`.
auto with_policy(std::string_view options) -> std::string {
  return with("policies:\n  p: {" + std::string(options) + "}\n");
}

constexpr std::string_view whole_example = R"(
listen: ["127.0.0.1:8080", {address: "[::1]:8443", tls: {certificate: c.pem, key: /etc/k.pem}, http2: false, proxy-protocol: true}]
admin: "127.0.0.1:9901"
workers: auto
stores:
  quota: memory
upstreams:
  orders: http://127.0.0.1:3000
  secure:
    servers: ["https://a.example", "https://[2001:db8::1]:8443/"]
    connect-timeout: 500ms
    timeout: 5s
    idle-timeout: 5m
    retries: 0
    tls: {verify: false, ca: ca.pem, server-name: B.example, certificate: c.pem, key: k.pem}
    http2: auto
    overload: {max-in-flight: 200, target-latency: 250ms}
policies:
  burst: {quota: 100, window: 1m, algorithm: sliding, partition: [header:X-Api-Key]}
  daily: {quota: 10000, window: 1d, algorithm: fixed, partition: [header:x-api-key]}
  bytes: {quota: 50MiB, window: 1h, unit: content-bytes, partition: [client-ip]}
  slots: {quota: 20, unit: concurrent-requests, partition: [client-ip]}
  all:
    {quota: 10, window: 10s, algorithm: gcra, burst: 20, partition: [host, path], partition-key: hashed,
     enforce: shadow, count: successful, jitter: 2s, max-advertised-rate: 10/s,
     abuse: {refusals: 5, within: 30s, block: 1h}, on-store-failure: deny}
routes:
  - match: {path: /v1/**, methods: [GET, POST], host: API.example.com}
    upstream: orders
    limits: [burst, daily, slots]
    cost: {default: 1, "POST /v1/search": 5}
  - match: {path: /echo}
    name: mirror
    service: echo
    cost: 3
fields: {ratelimit: draft-07, legacy: true}
trusted-proxies: [10.0.0.0/8, "2001:db8::/32", 192.0.2.1]
http: {header-timeout: 5s, max-header-size: 16KiB, max-body: 10MiB, max-uri: 2048}
access-log: log/access.json
)";

/// The warnings as `LINE:COLUMN: MESSAGE`.
auto warnings(std::string_view text) -> std::vector<std::string> {
  std::vector<std::string> found;
  for (auto const& warning : parsed(text, "t").warnings) {
    found.push_back(to_string(warning).substr(2));
  }
  return found;
}

TEST(gateway_config_warnings, name_routes_that_no_request_reaches) {
  EXPECT_THAT(
      warnings("routes:\n"
               "- {match: {path: /a/**}, service: echo}\n"
               "- {match: {path: /a/b, methods: [GET]}, service: echo}\n"
               "- {match: {path: /b}, service: echo}\n"
               "- {match: {path: /b, host: x.example}, service: echo, name: named}\n"
               "- {match: {path: /**}, service: echo}\n"),
      ElementsAre(
          testing::StartsWith("3:3: never reached: the route \"/a/**\" in line 2 takes all"),
          testing::StartsWith("5:3: never reached: the route \"/b\" in line 4 takes all")));
}

TEST(gateway_config_warnings, name_routes_that_others_cover_together) {
  EXPECT_THAT(
      warnings("routes:\n"
               "- {match: {path: /v1/**, methods: [GET, HEAD]}, service: echo}\n"
               "- {match: {path: /v1/**, methods: [POST], host: a.example}, service: echo}\n"
               "- {match: {path: /v1/x, methods: [GET, POST]}, service: echo}\n"
               "- {match: {path: /v1/*, methods: [POST]}, service: echo}\n"
               "- {match: {path: /v1/y, methods: [HEAD, POST, GET]}, service: echo}\n"
               "- {match: {path: /v1/z}, service: echo}\n"),
      ElementsAre(testing::StartsWith(
          "6:3: never reached: the routes \"GET,HEAD /v1/**\" in line 2 and \"POST /v1/*\" "
          "in line 5 take all of its requests")));
}

TEST(gateway_config, reads_text_in_quotes) {
  EXPECT_THAT(warnings("routes: [{match: {path: '/it''s'}, name: \"a \\\"b\\\" \\\\\", service: "
                       "echo}] # it's \"\nlog-level: \"in\\\n  fo\"\n"),
              testing::IsEmpty());
}

TEST(gateway_config_warnings, name_policies_of_no_route) {
  EXPECT_THAT(warnings("policies: {a: {quota: 1, window: 1s}, b: {quota: 1, window: 1s}}\n"
                       "routes: [{match: {path: /**}, service: echo, limits: [b]}]\n"),
              ElementsAre("1:12: policy \"a\" is not used by any route"));
}

TEST(gateway_config_warnings, name_the_new_place_of_options_of_scim) {
  EXPECT_THAT(
      warnings(
          "routes:\n"
          "- {match: {path: /a/**}, service: scim, max-page-size: 9, bulk: {max-payload: 2KiB}}\n"
          "- {match: {path: /b/**}, service: scim, scim: {max-page-size: 9}}\n"),
      ElementsAre(
          "2:41: \"max-page-size\" is deprecated here (expected scim: {max-page-size: ...})",
          "2:59: \"bulk\" is deprecated here (expected scim: {bulk: ...})"));
}

TEST(gateway_config, reads_options_of_scim_in_their_former_place) {
  // One route is an alias of another and one shares its mapping: what is moved in one of them is
  // not in the other.
  auto const made = parsed(
      "upstreams: {u: 'http://x'}\n"
      "routes:\n"
      "- {match: {path: /a/**}, service: scim, scim: &s {max-page-size: 9}, default-page-size: 3}\n"
      "- {match: {path: /b/**}, service: scim, scim: *s}\n"
      "- {match: {path: /c/**}, upstream: u, bridge: scim-cursor, max-page-size: 7}\n"
      "- {match: {path: /d/**}, service: scim, bulk: {max-operations: 5}, public-url: "
      "'https://x'}\n");
  ASSERT_EQ(made.routes.size(), 4U);
  EXPECT_EQ(made.routes[0].scim->pagination.max_page_size, 9U);
  EXPECT_EQ(made.routes[0].scim->pagination.default_page_size, 3U);
  EXPECT_EQ(made.routes[1].scim->pagination.max_page_size, 9U);
  EXPECT_EQ(made.routes[1].scim->pagination.default_page_size, 9U);
  EXPECT_EQ(made.routes[2].bridge->max_page_size, 7U);
  EXPECT_EQ(made.routes[3].scim->bulk_max_operations, 5U);
  EXPECT_EQ(made.routes[3].scim->public_url, "https://x");
  EXPECT_EQ(place_of(made, "routes[/a/**].scim.default-page-size").line, 3U);
}

TEST(gateway_config_warnings, are_none_where_everything_is_used) {
  EXPECT_THAT(warnings(with("")), testing::IsEmpty());
}

TEST(gateway_config, tells_where_an_option_is_written) {
  auto const made = parsed(with("data: x\naccess-log: {file: log}\n"), "dir:1/t.yaml");
  auto const place = place_of(made, "access-log.file");
  EXPECT_EQ(place.file, "dir:1/t.yaml");
  EXPECT_EQ(place.line, 3U);
  EXPECT_EQ(place.column, 20U);
  EXPECT_EQ(place_of(made, "workers").line, 1U);
}

TEST(gateway_config, reads_every_part_of_an_example) {
  auto const made = parsed(whole_example);
  ASSERT_EQ(made.listen.size(), 2U);
  EXPECT_EQ(made.listen[0], (listener_config{"127.0.0.1:8080", std::nullopt, true, false}));
  EXPECT_EQ(made.listen[1],
            (listener_config{"[::1]:8443", tls_files{"dir/c.pem", "/etc/k.pem"}, false, true}));
  EXPECT_EQ(made.admin, (admin_config{"127.0.0.1:9901"}));
  EXPECT_EQ(made.workers, std::nullopt);
  EXPECT_EQ(made.data, "dir/data");
  EXPECT_EQ(made.secrets, "dir/data/secrets.key");

  ASSERT_EQ(made.upstreams.size(), 2U);
  EXPECT_EQ(made.upstreams[0], (upstream_config{.name = "orders",
                                                .servers = {server_of("http://127.0.0.1:3000")},
                                                .connect_timeout = 1s,
                                                .timeout = 30s,
                                                .idle_timeout = 60s,
                                                .retry = {},
                                                .tls = {},
                                                .overload = std::nullopt,
                                                .hash_by = {},
                                                .resolve = {},
                                                .outlier = balance::outlier_settings{},
                                                .health = {},
                                                .max_connections = {}}));
  EXPECT_EQ(made.upstreams[1],
            (upstream_config{.name = "secure",
                             .servers = {server_of("https://a.example"),
                                         server_of("https://[2001:db8::1]:8443/")},
                             .connect_timeout = 500ms,
                             .timeout = 5s,
                             .idle_timeout = 5min,
                             .retry = {.on = 7, .attempts = 0},
                             .http2 = upstream_http2::by_alpn,
                             .tls = {false, "dir/ca.pem", "b.example", "dir/c.pem", "dir/k.pem"},
                             .overload = overload_config{200, 250ms},
                             .hash_by = {},
                             .resolve = {},
                             .outlier = balance::outlier_settings{},
                             .health = {},
                             .max_connections = {}}));

  ASSERT_EQ(made.routes.size(), 2U);
  EXPECT_EQ(made.routes[0].name, "GET,POST api.example.com/v1/**");
  EXPECT_EQ(made.routes[0].match, (request_match{"/v1/**", {"GET", "POST"}, "api.example.com"}));
  EXPECT_EQ(made.routes[0].service, route_service::upstream);
  EXPECT_EQ(made.routes[0].upstream, 0U);
  EXPECT_THAT(made.routes[0].limits, ElementsAre(0, 1, 3));
  EXPECT_EQ(made.routes[0].cost, (cost_config{1, {{{"/v1/search", {"POST"}}, 5}}}));
  EXPECT_EQ(made.routes[1].name, "mirror");
  EXPECT_EQ(made.routes[1].service, route_service::echo);
  EXPECT_EQ(made.routes[1].cost, (cost_config{3, {}}));

  EXPECT_EQ(made.fields, (fields_config{ratelimit::draft::draft_07, true}));
  ASSERT_EQ(made.trusted_proxies.size(), 3U);
  EXPECT_EQ(to_string(made.trusted_proxies[0]), "10.0.0.0/8");
  EXPECT_EQ(to_string(made.trusted_proxies[1]), "2001:db8::/32");
  EXPECT_EQ(to_string(made.trusted_proxies[2]), "192.0.2.1/32");
  EXPECT_EQ(made.http, (http_config{5s, 30s, 60s, 16 * 1024, 100, 2048, 10 * 1024 * 1024, 20000,
                                    true, 64 << 20}));
  EXPECT_EQ(made.access_log,
            (access_log_config{access_log_config::destination::file, "dir/log/access.json"}));
}

TEST(gateway_config, reads_every_option_of_a_policy) {
  auto const made = parsed(whole_example);
  ASSERT_EQ(made.policies.size(), 5U);
  auto const& burst = made.policies[0];
  EXPECT_EQ(burst.name, "burst");
  EXPECT_EQ(burst.policy.quota(), 100);
  EXPECT_EQ(burst.policy.window(), 60s);
  EXPECT_EQ(burst.policy.algorithm(), ratelimit::algorithm::sliding);
  ASSERT_EQ(burst.partition.sources().size(), 1U);
  EXPECT_EQ(to_string(burst.partition.sources()[0]), "header:x-api-key");
  EXPECT_FALSE(burst.shadow);
  EXPECT_FALSE(burst.abuse.has_value());
  EXPECT_EQ(burst.advertisement.max_rate, std::nullopt);
  EXPECT_EQ(made.policies[2].policy.quota(), 50 * 1024 * 1024);
  EXPECT_EQ(made.policies[2].policy.unit(), ratelimit::quota_unit::content_bytes);
  EXPECT_EQ(made.policies[3].policy.unit(), ratelimit::quota_unit::concurrent_requests);

  auto const& all = made.policies[4];
  EXPECT_EQ(all.policy.algorithm(), ratelimit::algorithm::gcra);
  EXPECT_EQ(all.policy.burst(), 20);
  EXPECT_EQ(all.partition.form(), ratelimit::partition_key_form::hashed);
  EXPECT_TRUE(all.shadow);
  EXPECT_EQ(all.count, counted::successful);
  EXPECT_EQ(all.advertisement.jitter, 2s);
  EXPECT_EQ(all.advertisement.max_rate, *ratelimit::rate::make(10, 1s));
  ASSERT_TRUE(all.abuse.has_value());
  EXPECT_EQ(all.abuse->refusals, 5U);
  EXPECT_EQ(all.abuse->within, 30s);
  EXPECT_EQ(all.abuse->block, 1h);
  EXPECT_EQ(all.on_store_failure, store_failure::deny);
}

TEST(gateway_config, says_what_the_console_may_do_with_the_directory) {
  EXPECT_EQ(parsed(with("")).console_directory, directory_access::read);
  EXPECT_EQ(parsed(with("console: {}\n")).console_directory, directory_access::read);
  EXPECT_EQ(parsed(with("console: {directory: write}\n")).console_directory,
            directory_access::write);
  EXPECT_EQ(parsed(with("console: {directory: off}\n")).console_directory, directory_access::off);
}

TEST(gateway_config, fills_in_the_defaults) {
  auto const made = parsed(with_policy("quota: 1, window: 1s, abuse: {}"), "t.yaml");
  EXPECT_THAT(made.listen,
              ElementsAre(listener_config{"127.0.0.1:8080", std::nullopt, true, false}));
  EXPECT_EQ(made.admin, std::nullopt);
  EXPECT_EQ(made.data, "data");
  EXPECT_EQ(made.secrets, "data/secrets.key");
  EXPECT_EQ(made.stores.quota_partitions, 1'000'000);
  EXPECT_EQ(made.fields, fields_config{});
  EXPECT_EQ(made.http, (http_config{10s, 30s, 60s, 32 * 1024, 100, 8 * 1024, std::nullopt, 20000,
                                    true, 64 << 20}));
  EXPECT_EQ(made.access_log, access_log_config{});
  auto const& policy = made.policies.at(0);
  EXPECT_EQ(to_string(policy.partition.sources()[0]), "client-ip");
  EXPECT_EQ(policy.partition.form(), ratelimit::partition_key_form::none);
  EXPECT_EQ(policy.abuse->refusals, 50U);
  EXPECT_EQ(policy.on_store_failure, store_failure::local);
}

TEST(gateway_config, reads_every_option_of_idempotency) {
  auto const made = parsed(with_keys(
      "mode: required, methods: [PUT], scope: [header:x-tenant, client-ip], anonymous: refuse, "
      "accept-unquoted: true, key-format: uuidv7, key-length-max: 36, key-age-max: 2h, "
      "fingerprint: {json: [/a, /b/0]}, ttl: 1h, tombstone: 2d, in-flight: wait, "
      "waiters-max: 3, keys-max: 4, max-body: 2KiB, max-response: 3KiB, max-execution: 1m, "
      "store-5xx: true, "
      "upstream-deduplicates: true, on-unknown-outcome: retry, on-store-failure: pass, "
      "replay-cost: 2, seal: false, documentation: 'https://docs.example/keys'"));
  ASSERT_EQ(made.routes.size(), 1U);
  ASSERT_TRUE(made.routes[0].idempotency);
  auto const& keys = *made.routes[0].idempotency;
  EXPECT_TRUE(keys.required);
  EXPECT_THAT(keys.methods, ElementsAre("PUT"));
  EXPECT_EQ(keys.scope.size(), 2U);
  EXPECT_FALSE(keys.anonymous);
  EXPECT_TRUE(keys.key.accept_unquoted);
  EXPECT_EQ(keys.key.format, idempotency::key_format::uuidv7);
  EXPECT_EQ(keys.key.length_max, 36U);
  EXPECT_EQ(keys.key.age_max, 2h);
  EXPECT_FALSE(keys.fingerprint == idempotency::fingerprint_rule::json());
  EXPECT_FALSE(keys.fingerprint.streams());
  EXPECT_EQ(keys.policy.ttl, 1h);
  EXPECT_EQ(keys.policy.tombstone, 48h);
  EXPECT_TRUE(keys.policy.wait_in_flight);
  EXPECT_EQ(keys.policy.waiters_max, 3U);
  EXPECT_EQ(keys.policy.keys_max, 4U);
  EXPECT_EQ(keys.max_body, 2048);
  EXPECT_EQ(keys.max_response, 3072);
  EXPECT_EQ(keys.max_execution, 1min);
  EXPECT_TRUE(keys.policy.store_5xx);
  EXPECT_TRUE(keys.policy.upstream_deduplicates);
  EXPECT_TRUE(keys.policy.retry_unknown);
  EXPECT_TRUE(keys.pass_on_store_failure);
  EXPECT_EQ(keys.replay_cost, 2);
  EXPECT_FALSE(keys.seal);
  EXPECT_EQ(keys.documentation, "https://docs.example/keys");
}

TEST(gateway_config, refuses_keys_without_an_owner_unless_a_route_says_otherwise) {
  EXPECT_FALSE(parsed(with_keys("mode: required")).routes[0].idempotency->anonymous);
  EXPECT_TRUE(
      parsed(with_keys("mode: required, anonymous: allow")).routes[0].idempotency->anonymous);
  EXPECT_EQ(parsed(with_keys("mode: required")).stores.idempotency_size, std::int64_t{1} << 30);
  EXPECT_EQ(parsed(with_keys("mode: required") + "stores: {idempotency-size: 2MiB}\n")
                .stores.idempotency_size,
            2 << 20);
}

TEST(gateway_config, warns_of_keys_that_belong_to_a_credential) {
  auto const warnings =
      parsed(with_keys("mode: required, scope: [path, header:x-api-key]")).warnings;
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].line, 2U);
  EXPECT_THAT(warnings[0].message,
              testing::StartsWith("scope: \"header:x-api-key\" is a credential"));
  EXPECT_EQ(parsed(with_keys("mode: required")).warnings.size(), 1U);
  EXPECT_THAT(parsed(with_keys("mode: off")).warnings, testing::IsEmpty());
  EXPECT_THAT(parsed(with_keys("mode: required, scope: [header:x-customer]")).warnings,
              testing::IsEmpty());
}

TEST(gateway_config, has_no_idempotency_unless_a_route_says_so) {
  EXPECT_FALSE(parsed(with_keys("mode: off")).routes[0].idempotency);
  EXPECT_FALSE(parsed(with("")).routes[0].idempotency);
  EXPECT_EQ(parsed(with("")).stores.idempotency,
            (store_location{store_kind::sqlite, "dir/data/idempotency.db"}));
  EXPECT_EQ(parsed(with("stores: {idempotency: memory}\n")).stores.idempotency, store_location{});
  EXPECT_EQ(parsed(with("stores: {idempotency: 'sqlite:x/k.db'}\n")).stores.idempotency,
            (store_location{store_kind::sqlite, "dir/x/k.db"}));
}

TEST(gateway_config, takes_the_url_of_a_server_as_it_is) {
  auto const made = parsed(with(
      "stores: {quota: 'redis+cluster://a:1,b:2', idempotency: 'postgres://u:p@h/d', directory: "
      "'postgres://h:5432/d?sslmode=require'}\n"));
  EXPECT_EQ(made.stores.quota, (store_location{store_kind::redis, "redis+cluster://a:1,b:2"}));
  EXPECT_EQ(made.stores.idempotency, (store_location{store_kind::postgres, "postgres://u:p@h/d"}));
  EXPECT_EQ(made.stores.directory,
            (store_location{store_kind::postgres, "postgres://h:5432/d?sslmode=require"}));
  EXPECT_EQ(parsed(with("")).stores.quota, store_location{});
}

TEST(gateway_config, has_keys_as_the_draft_says_unless_a_route_says_otherwise) {
  auto const keys = *parsed(with_keys("mode: optional")).routes[0].idempotency;
  EXPECT_FALSE(keys.required);
  EXPECT_THAT(keys.methods, ElementsAre("POST", "PATCH"));
  EXPECT_EQ(keys.policy.ttl, 24h);
  EXPECT_EQ(keys.max_execution, 10min);
  EXPECT_EQ(keys.documentation, "/.well-known/tidegate");
}

TEST(gateway_config, takes_an_access_log_as_a_value_or_as_a_mapping) {
  using enum access_log_config::destination;
  auto const log = [](std::string const& written) {
    return parsed(with("access-log: " + written + "\n")).access_log;
  };
  EXPECT_EQ(log("off"), access_log_config{});
  EXPECT_EQ(log("a.log"), (access_log_config{file, "dir/a.log"}));
  EXPECT_EQ(log("{file: /a.log}"), (access_log_config{file, "/a.log"}));
  EXPECT_EQ(log("{file: stdout, query: true}"), (access_log_config{standard_output, "", true}));
}

TEST(gateway_config, takes_an_admin_address_with_tokens) {
  auto const digest = std::string(64, '0');
  EXPECT_EQ(parsed(with("admin: {address: '0.0.0.0:1', tokens: [{name: a, sha256: '" + digest +
                        "', read-only: true}]}\n"))
                .admin,
            (admin_config{"0.0.0.0:1", {{"a", sha256_digest{}, "", true}}}));
  for (auto const* const local : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1",
                                  "localhost:1", "unix:/run/a.sock"}) {
    EXPECT_TRUE(parsed(with("admin: '" + std::string(local) + "'\n")).admin) << local;
  }
}

TEST(gateway_config, takes_one_value_for_a_list_of_one_and_words_for_nothing) {
  auto const made = parsed(
      "listen: 'localhost:0'\nadmin: off\naccess-log: stdout\nworkers: 2\nsecrets: /s\ndata: d/\n"
      "policies: {p: {quota: 1, window: 1s, partition: [], abuse: off, max-advertised-rate: "
      "none}}\n"
      "routes: [{match: {methods: GET}, service: echo, limits: p}]\ntrusted-proxies: 10.0.0.1\n");
  EXPECT_EQ(made.listen.at(0).address, "127.0.0.1:0");
  EXPECT_EQ(made.admin, std::nullopt);
  EXPECT_EQ(made.workers, 2);
  EXPECT_EQ(made.secrets, "/s");
  EXPECT_EQ(made.access_log.to, access_log_config::destination::standard_output);
  EXPECT_FALSE(made.access_log.query);
  EXPECT_TRUE(made.policies.at(0).partition.sources().empty());
  EXPECT_EQ(made.routes.at(0).match.path, "/**");
  EXPECT_THAT(made.routes.at(0).limits, ElementsAre(0));
  EXPECT_EQ(made.trusted_proxies.size(), 1U);
}

TEST(gateway_config, takes_aliases_for_whole_values) {
  auto const made = parsed(
      "policies: {a: &p {quota: 1, window: 1s}, b: *p}\n"
      "routes: [{match: {path: /}, service: echo, limits: [a, b]}]\n");
  EXPECT_EQ(made.policies.at(1).policy.quota(), 1);
}

struct fault_row {
  char const* name;
  std::string text;
  std::vector<std::string> places_and_messages;  ///< beginnings
};

class gateway_config_faults : public testing::TestWithParam<fault_row> {};

TEST_P(gateway_config_faults, are_said_with_their_place) {
  auto const found = faults(GetParam().text);
  auto const& wanted = GetParam().places_and_messages;
  ASSERT_EQ(found.size(), wanted.size()) << testing::PrintToString(found);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_THAT(found[i], testing::StartsWith(wanted[i]));
  }
}

auto const fault_rows = std::vector<fault_row>{
    // ---- YAML ----
    {"an_empty_file", "", {"1:1: \"routes\" is missing (expected a list of mappings"}},
    {"a_list", "- a\n", {"1:1: expected a mapping (keys: listen, admin"}},
    {"a_word", "word", {"1:1: expected a mapping"}},
    {"no_yaml", "a: [\n", {"2:1: this is not YAML: a ] or a comma is missing; the line: \"a: [\""}},
    {"an_open_mapping", "a: {b: c\n", {"2:1: this is not YAML: a } or a comma is missing"}},
    {"a_quote_that_is_not_closed",
     "routes:\n- {match: {path: \"/**}, service: echo}\n",
     {"2:18: this is not YAML: a quote that begins here is not closed; the line: \"- {match: "
      "{path: "
      "\"/**}, service: echo}\""}},
    {"a_quote_that_is_not_closed_at_the_end",
     "routes: [{match: {path: /**}, service: echo}]\n# caf\xc3\xa9\nlisten: '127.0.0.1:1\n",
     {"3:9: this is not YAML: a quote that begins here is not closed; the line: \"listen: "
      "'127.0.0.1:1\""}},
    {"a_quote_that_the_next_one_closes",
     "listen: \"127.0.0.1:1\nroutes: [{match: {path: \"/**\"}, service: echo}]\n",
     {"1:9: this is not YAML: a quote that begins here is not closed in its line, but by the next "
      "one, in line 2; the line: \"listen: \"127.0.0.1:1\""}},
    {"what_closes_nothing", "a: }\n", {"1:4: this is not YAML: a ] or } that closes nothing"}},
    {"bad_indent", "a: b\n c: d\n", {"2:3: this is not YAML: a colon is not expected here"}},
    {"an_indentation_that_does_not_fit",
     "routes:\n  - match: {path: /}\n   service: echo\n",
     {"3:4: this is not YAML: the indentation does not fit the lines above: what belongs together "
      "begins in the same column; the line: \"   service: echo\""}},
    {"a_tab_before_a_list",
     "routes:\n\t- match: {path: /}\n",
     {"2:2: this is not YAML: tabs cannot indent; use spaces; the line: \""}},
    {"a_tab_before_a_key",
     "policies:\n  p:\n\tquota: 1\n",
     {"3:2: this is not YAML: tabs cannot indent; use spaces"}},
    {"a_tab_behind_spaces",
     "policies:\n  p:\n  \tquota: 1\n",
     {"3:9: this is not YAML: tabs cannot indent; use spaces"}},
    {"a_star",
     "routes: [{match: {path: *}}]\n",
     {"1:26: this is not YAML: a value that begins with * must be in quotes"}},
    {"an_ampersand", "a: &\n", {"1:5: this is not YAML: a value that begins with & must be in"}},
    {"an_at_sign", "a: @b\n", {"1:4: this is not YAML: a value that begins with @ must be in"}},
    {"a_backslash", "a: \"b\\q\"\n", {"1:8: this is not YAML: a backslash in double quotes must"}},
    {"two_documents", with("---\nx: 1\n"), {"2:1: a configuration is one document"}},
    {"a_tag", with("data: !!str 5\n"), {"2:7: tags such as !!str are not taken"}},
    {"a_merge_key", with("http: {<<: {}}\n"), {"2:8: merge keys are not taken"}},
    {"a_key_that_is_a_list", with("[a]: 1\n"), {"2:1: a key must be text"}},
    {"an_alias_inside_its_anchor", "a: &x [*x]\n", {"1:8: an alias cannot stand inside"}},
    {"no_anchor", "a: *x\n", {"1:4: this is not YAML: a value that begins with * must be in"}},
    {"a_variable",
     with("upstreams: {a: '${API_URL}'}\n"),
     {"2:16: \"${API_URL}\": the environment variable is not set"}},
    {"a_variable_of_a_file",
     with("data: x${file:secret}y\n"),
     {"2:7: \"${file:secret}\": cannot read the file: no files are read here"}},
    {"a_control_character", "a: b\nc: \x01\n", {"2:4: a control character"}},
    {"utf_16", std::string("\xff\xfe", 2), {"1:1: a control character, or not UTF-8"}},
    {"an_octet_of_zero", std::string("a: \0", 4), {"1:4: a control character"}},
    // ---- keys ----
    {"an_unknown_key",
     with("lisen: x\n"),
     {"2:1: unknown key \"lisen\"; did you mean \"listen\"?"}},
    {"an_underscore",
     with("access_log: off\n"),
     {"2:1: unknown key \"access_log\"; did you mean \"access-log\"? (expected listen"}},
    {"no_space_behind_a_colon",
     with("http:{}: x\nlog-level:debug: y\n"),
     {"2:1: unknown key \"http:{}\"; a space is missing behind its colon (expected listen",
      "3:1: unknown key \"log-level:debug\"; a space is missing behind its colon"}},
    {"no_colon_behind_a_key",
     with("policies {a: x\n"),
     {"2:1: unknown key \"policies {a\"; a colon is missing behind its first word (expected"}},
    {"nothing_like_it", with("zzzzzz: x\n"), {"2:1: unknown key \"zzzzzz\" (expected listen"}},
    {"what_comes_later",
     "routes: [{match: {path: /**}, service: echo, auth: {jwt: {}}, usage: {}}]\n",
     {"1:52: \"bearer-tokens\" or \"api-keys\" is missing (expected at least one of them)",
      "1:53: \"jwt\" is not available in this version (expected bearer-tokens, api-keys, optional",
      "1:63: \"usage\" is not available in this version (expected name, match, upstream, service, "
      "limits, cost, idempotency, auth, upgrade, tunnel-idle-timeout, bridge, scim"}},
    {"an_upgrade_of_a_service",
     "routes: [{match: {path: /**}, service: echo, upgrade: [websocket]}]\n",
     {"1:46: upgrade: only for a route with \"upstream\""}},
    {"an_upgrade_to_another_protocol",
     "routes: [{match: {path: /**}, service: echo, upgrade: [h2c]}]\n",
     {"1:46: upgrade: only for a route with \"upstream\"",
      "1:56: upgrade: unknown value \"h2c\" (expected websocket)"}},
    {"an_idle_timeout_without_an_upgrade",
     "routes: [{match: {path: /**}, service: echo, tunnel-idle-timeout: 1m}]\n",
     {"1:46: tunnel-idle-timeout: only with \"upgrade\""}},
    {"what_others_have",
     "routes: [{match: {path: /**}, service: echo, plugins: {}, jwt: {}}]\n",
     {"1:46: \"plugins\" is not available in this version",
      "1:59: \"jwt\" is not available in this version"}},
    {"what_others_call_health",
     with("upstreams: {a: {servers: ['http://x'], health-check: {path: /}}}\n"),
     {"2:40: \"health-check\" is not available in this version (expected servers"}},
    {"an_unknown_key_of_scim",
     "routes: [{match: {path: /a/**}, service: scim, scim: {max-page-sise: 1}}]\n",
     {"1:55: unknown key \"max-page-sise\"; did you mean \"max-page-size\"? (expected "
      "default-page-size, max-page-size"}},
    {"a_duplicate_key",
     with("data: a\ndata: b\n"),
     {"3:1: duplicate key \"data\"; it is already in line 2"}},
    {"a_duplicate_name",
     with("upstreams:\n  a: http://x\n  a: http://y\n"),
     {"4:3: duplicate name \"a\"; it is already in line 3"}},
    {"no_value", with("http:\n"), {"2:1: \"http\" has no value"}},
    {"no_value_inside", with_policy("quota: , window: 1s"), {"3:7: \"quota\" has no value"}},
    {"several_at_once",
     "workers: x\nhttp: {max-urii: 1}\nroutes: []\n",
     {"1:10: workers: invalid number \"x\"", "2:8: unknown key \"max-urii\"",
      "3:9: routes: empty list"}},
    // ---- values that YAML 1.1 would take for something else ----
    {"on",
     with("listen: {redirect-to-https: on, address: ':80'}\n"),
     {"2:29: redirect-to-https: invalid boolean \"on\" (expected true or false"}},
    {"yes",
     with("listen: {redirect-to-https: yes, address: ':80'}\n"),
     {"2:29: redirect-to-https: invalid boolean \"yes\""}},
    {"true_in_quotes",
     with("listen: {redirect-to-https: \"true\", address: ':80'}\n"),
     {"2:29: redirect-to-https: invalid boolean \"true\": it is in quotes (expected true or "
      "false"}},
    {"an_unknown_family_of_legacy_fields",
     with("fields: {legacy: [x, y]}\n"),
     {"2:22: legacy: unknown value \"y\" (expected false, true, x or triple"}},
    {"legacy_fields_and_none",
     with("fields: {legacy: [x, false]}\n"),
     {"2:22: legacy: \"false\" in a list (expected x and triple)"}},
    {"hexadecimal", with("workers: 0x10\n"), {"2:10: workers: invalid number \"0x10\""}},
    {"underscores", with("workers: 1_000\n"), {"2:10: workers: invalid number \"1_000\""}},
    {"octal", with("workers: 010\n"), {"2:10: workers: invalid number \"010\""}},
    {"a_sign", with("workers: +1\n"), {"2:10: workers: invalid number \"+1\""}},
    {"a_fraction", with("workers: 1.5\n"), {"2:10: workers: invalid number \"1.5\""}},
    {"an_exponent", with("workers: 1e3\n"), {"2:10: workers: invalid number \"1e3\""}},
    {"a_number_in_quotes",
     with("workers: '4'\n"),
     {"2:10: workers: invalid number \"4\": it is in quotes (expected auto or a number from 1 to "
      "1024"}},
    {"out_of_range",
     with("workers: 0\n"),
     {"2:10: workers: \"0\" is out of range (expected auto or a number from 1 to 1024"}},
    {"too_large_for_anything", with("workers: 99999999999999999999\n"), {"2:10: workers: "}},
    // ---- durations, sizes, rates ----
    {"a_duration_without_unit",
     with("http: {idle-timeout: 60}\n"),
     {"2:22: idle-timeout: invalid duration \"60\" (expected a duration, e.g. 500ms, 10s, 24h; "
      "from 1ms to 1d"}},
    {"a_fraction_of_a_second",
     with("http: {idle-timeout: 1.5s}\n"),
     {"2:22: idle-timeout: invalid duration \"1.5s\""}},
    {"a_negative_duration",
     with("http: {idle-timeout: -1s}\n"),
     {"2:22: idle-timeout: invalid duration \"-1s\""}},
    {"a_duration_of_nothing",
     with("http: {idle-timeout: 0s}\n"),
     {"2:22: idle-timeout: \"0s\" is out of range (expected a duration, e.g. 500ms, 10s, 24h; from "
      "1ms to 1d"}},
    {"an_endless_duration",
     with("http: {idle-timeout: 999999999999d}\n"),
     {"2:22: idle-timeout: "}},
    {"a_size_in_kilobytes",
     with("http: {max-uri: 8KB}\n"),
     {"2:17: max-uri: invalid size \"8KB\""}},
    {"a_rate_of_nothing",
     with_policy("quota: 1, window: 1s, max-advertised-rate: 0/s"),
     {"3:50: max-advertised-rate: invalid rate \"0/s\""}},
    {"a_rate_without_time",
     with_policy("quota: 1, window: 1s, max-advertised-rate: 10"),
     {"3:50: max-advertised-rate: invalid rate \"10\""}},
    // ---- listening ----
    {"an_address_without_port",
     with("listen: 127.0.0.1\n"),
     {"2:9: listen: invalid address \"127.0.0.1\": the port is missing"}},
    {"a_name_to_listen_on",
     with("listen: example.com:80\n"),
     {"2:9: listen: invalid address \"example.com:80\": the host is not an IPv4 address or an IPv6 "
      "address in brackets"}},
    {"ipv6_without_brackets",
     with("listen: '::1:80'\n"),
     {"2:9: listen: invalid address \"::1:80\": the host is not an IPv4 address or an IPv6 address "
      "in brackets"}},
    {"a_port_out_of_range",
     with("listen: ':65536'\n"),
     {"2:9: listen: invalid address \":65536\": the port is missing or not from 0 to 65535"}},
    {"the_same_address_twice",
     with("listen: [':80', ':80']\n"),
     {"2:17: listen: duplicate \":80\""}},
    {"admin_where_clients_are",
     with("listen: ':80'\nadmin: ':80'\n"),
     {"3:8: admin: \":80\" is also in \"listen\" (expected another address"}},
    {"a_console_that_may_do_anything",
     with("console: {directory: all}\n"),
     {"2:22: directory: unknown value \"all\" (expected read, write or off"}},
    {"admin_without_tokens_where_others_reach_it",
     with("admin: '0.0.0.0:9901'\n"),
     {"2:8: admin: other machines can reach \"0.0.0.0:9901\", so it needs tokens (expected "
      "{address: "
      "\"0.0.0.0:9901\", tokens: [{name: NAME, sha256: DIGEST}]}"}},
    {"admin_of_ipv6_without_tokens",
     with("admin: {address: '[::]:9901'}\n"),
     {"2:18: admin: other machines can reach \"[::]:9901\", so it needs tokens"}},
    {"admin_without_an_address",
     with("admin: {tokens: [{name: a, sha256: " + std::string(64, 'a') + "}]}\n"),
     {"2:8: \"address\" is missing"}},
    {"admin_with_no_tokens_in_its_list",
     with("admin: {address: '127.0.0.1:1', tokens: []}\n"),
     {"2:41: tokens: empty list: every request would be refused"}},
    {"admin_with_a_token_twice",
     with("admin: {address: ':1', tokens: [{name: a, sha256: " + std::string(64, 'a') +
          "}, {name: a, sha256: " + std::string(64, 'b') + "}]}\n"),
     {"2:125: name: duplicate \"a\""}},
    {"admin_with_a_tenant",
     with("admin: {address: ':1', tokens: [{name: a, tenant: t, sha256: " + std::string(64, 'a') +
          "}]}\n"),
     {"2:43: unknown key \"tenant\""}},
    {"nowhere_to_listen", with("listen: []\n"), {"2:9: listen: empty list"}},
    {"tls_without_key",
     with("listen: {address: ':80', tls: {certificate: a}}\n"),
     {"2:31: \"key\" is missing"}},
    {"proxy_protocol_from_nobody",
     with("listen: {address: ':80', proxy-protocol: true}\n"),
     {"2:42: proxy-protocol: needs \"trusted-proxies\", which is missing or empty"}},
    {"proxy_protocol_through_a_path",
     with("trusted-proxies: [10.0.0.0/8]\nlisten: {address: 'unix:/s', proxy-protocol: true}\n"),
     {"3:46: proxy-protocol: not for Unix sockets, whose clients have no address"}},
    {"an_access_log_without_a_file",
     with("access-log: {query: true}\n"),
     {"2:13: \"file\" is missing"}},
    {"http2_towards_upstreams",
     with("upstreams: {u: {servers: ['http://a'], http2: yes}}\n"),
     {"2:47: http2: unknown value \"yes\" (expected false, true or auto"}},
    {"a_relative_socket",
     with("listen: unix:x\n"),
     {"2:9: listen: invalid address \"unix:x\": the path must begin with / and have at most 107 "
      "bytes"}},
    // ---- upstreams ----
    {"no_url",
     with("upstreams: {a: localhost:3000}\n"),
     {"2:16: upstreams: invalid URL \"localhost:3000\": it does not begin"}},
    {"a_url_with_a_query",
     with("upstreams: {a: 'http://x/y?z'}\n"),
     {"2:16: upstreams: invalid URL \"http://x/y?z\": a query or a fragment is not allowed"}},
    {"a_url_with_an_ambiguous_path",
     with("upstreams: {a: http://x/a//b}\n"),
     {"2:16: upstreams: invalid URL \"http://x/a//b\": not all servers read its path the same"}},
    {"a_relative_socket_of_a_server",
     with("upstreams: {a: 'unix:x'}\n"),
     {"2:16: upstreams: invalid URL \"unix:x\": the path must begin with /"}},
    {"a_server_without_url",
     with("upstreams: {a: {servers: [{weight: 1}]}}\n"),
     {"2:27: \"url\" is missing"}},
    {"a_weight_that_is_too_large",
     with("upstreams: {a: {servers: [{url: http://x, weight: 1001}, http://y]}}\n"),
     {"2:51: weight: \"1001\" is out of range"}},
    {"servers_that_take_nothing",
     with("upstreams: {a: {servers: [{url: http://x, weight: 0}]}}\n"),
     {"2:26: servers: all have weight 0"}},
    {"an_unknown_balance",
     with("upstreams: {a: {servers: [http://x], balance: random}}\n"),
     {"2:47: balance: invalid balance \"random\" (expected a method, e.g. least"}},
    {"a_hash_of_nothing",
     with("upstreams: {a: {servers: [http://x], balance: 'hash:'}}\n"),
     {"2:47: balance: invalid balance"}},
    {"health_without_a_path",
     with("upstreams: {a: {servers: [http://x], health: {interval: 1s}}}\n"),
     {"2:46: \"path\" is missing"}},
    {"statuses_that_are_none",
     with("upstreams: {a: {servers: [http://x], health: {path: /, expect: 299-200}}}\n"),
     {"2:64: expect: invalid statuses \"299-200\""}},
    {"an_outlier_without_failures",
     with("upstreams: {a: {servers: [http://x], outlier: {failures: 0}}}\n"),
     {"2:58: failures: \"0\" is out of range"}},
    {"bounds_of_names_the_wrong_way_round",
     with("upstreams: {a: {servers: [http://x], resolve: {min: 2s, max: 1s}}}\n"),
     {"2:47: resolve: min is longer than max"}},
    {"a_dns_server_that_is_a_name",
     with("upstreams: {a: {servers: [http://x], resolve: {server: dns.example}}}\n"),
     {"2:56: server: invalid server \"dns.example\""}},
    {"a_wait_for_nothing",
     with("upstreams: {a: {servers: [http://x], max-wait: 1s}}\n"),
     {"2:48: max-wait: nothing to wait for without max-connections"}},
    {"two_kinds_of_retries",
     with("upstreams: {a: {servers: [http://x], retries: 1, retry: {attempts: 2}}}\n"),
     {"2:38: an upstream has either \"retry\" or \"retries\""}},
    {"a_reason_for_retries_that_is_none",
     with("upstreams: {a: {servers: [http://x], retry: {on: [500]}}}\n"),
     {"2:51: on: unknown value \"500\""}},
    {"a_budget_without_a_percent_sign",
     with("upstreams: {a: {servers: [http://x], retry: {budget: 20}}}\n"),
     {"2:54: budget: invalid percentage \"20\""}},
    {"a_url_with_a_password",
     with("upstreams: {a: 'http://u:p@x'}\n"),
     {"2:16: upstreams: invalid URL \"http://u:***@x\": a user name or password is not allowed"}},
    {"a_url_without_host", with("upstreams: {a: 'http://'}\n"), {"2:16: upstreams: "}},
    {"a_url_with_port_0", with("upstreams: {a: 'http://x:0'}\n"), {"2:16: upstreams: "}},
    {"servers_missing", with("upstreams: {a: {retries: 1}}\n"), {"2:16: \"servers\" is missing"}},
    {"no_servers", with("upstreams: {a: {servers: []}}\n"), {"2:26: servers: empty list"}},
    {"servers_no_list",
     with("upstreams: {a: {servers: http://x}}\n"),
     {"2:26: servers: expected a list"}},
    {"a_server_twice",
     with("upstreams: {a: {servers: [http://x, 'http://x:80']}}\n"),
     {"2:37: servers: duplicate \"http://x:80\""}},
    {"tls_for_http",
     with("upstreams: {a: {servers: [http://x], tls: {verify: false}}}\n"),
     {"2:43: tls: only for servers with https://"}},
    {"too_many_sources",
     with(
         "policies: {p: {quota: 1, window: 1s, partition: [header:a, header:b, header:c, header:d, "
         "header:e, header:f, header:g, header:h, header:i, header:j, header:k, header:l, "
         "header:m, "
         "header:n, header:o, header:p, header:q]}}\n"),
     {"2:210: partition: too many sources (expected at most 16"}},
    {"a_certificate_without_its_key",
     with("upstreams: {a: {servers: ['https://x'], tls: {certificate: a.pem}}}\n"),
     {"2:46: tls: \"certificate\" and \"key\" go together"}},
    {"overload_of_nothing",
     with("upstreams: {a: {servers: [http://x], overload: {}}}\n"),
     {"2:48: overload: no option is set (expected max-in-flight, target-latency"}},
    {"a_share_that_is_no_number",
     "upstreams: {a: http://x, b: http://y}\n"
     "routes: [{match: {path: /}, upstream: {a: most, b: 2}}]\n",
     {"2:43: upstream: invalid share \"most\""}},
    {"shares_of_nothing",
     "upstreams: {a: http://x}\nroutes: [{match: {path: /}, upstream: {a: 0}}]\n",
     {"2:39: upstream: no upstream has a share"}},
    {"a_share_of_an_unknown_upstream",
     "upstreams: {a: http://x}\nroutes: [{match: {path: /}, upstream: {a: 1, c: 1}}]\n",
     {"2:46: unknown upstream \"c\""}},
    {"a_name_that_is_no_name",
     with("upstreams: {'caf\xc3\xa9': http://x}\n"),
     {"2:13: invalid name \"caf\xc3\xa9\" (expected printable ASCII"}},
    // ---- policies ----
    {"a_policy_name_with_a_tab",
     with("policies: {\"a\\tb\": {quota: 1, window: 1s}}\n"),
     {"2:12: invalid name \"a\tb\""}},
    {"an_empty_policy_name",
     with("policies: {'': {quota: 1, window: 1s}}\n"),
     {"2:12: invalid name \"\""}},
    {"a_policy_that_is_a_word",
     with("policies: {p: x}\n"),
     {"2:15: expected a mapping for \"policies\" (keys: quota"}},
    {"quota_and_window_missing",
     with_policy("unit: requests"),
     {"3:6: \"quota\" is missing", "3:6: \"window\" is missing"}},
    {"a_quota_of_nothing",
     with_policy("quota: 0, window: 1s"),
     {"3:14: quota: \"0\" is out of range"}},
    {"a_quota_of_16_digits",
     with_policy("quota: 1000000000000000, window: 1s"),
     {"3:14: quota: \"1000000000000000\" is out of range (expected a number from 1 to "
      "999999999999999; for content-bytes a size, e.g. 10MiB"}},
    {"a_size_of_requests",
     with_policy("quota: 1MiB, window: 1s"),
     {"3:14: quota: \"1MiB\" is a size, which is only for unit: content-bytes (expected a number"}},
    {"half_a_second",
     with_policy("quota: 1, window: 500ms"),
     {"3:25: window: \"500ms\" is out of range (expected a duration, e.g. 10s, 24h; from 1s to "
      "366d"}},
    {"one_and_a_half_seconds",
     with_policy("quota: 1, window: 1500ms"),
     {"3:25: window: must be whole seconds"}},
    {"a_window_of_two_years",
     with_policy("quota: 1, window: 730d"),
     {"3:25: window: \"730d\" is out of range (expected a duration, e.g. 10s, 24h; from 1s to "
      "366d"}},
    {"a_bearer_token_in_every_response",
     with_policy("quota: 1, window: 1s, partition: [path, header:authorization], partition-key: "
                 "plain"),
     {"3:85: partition-key: \"plain\" would show the credential \"header:authorization\" in every "
      "response (expected none or hashed"}},
    {"a_cookie_in_every_response",
     with_policy("quota: 1, window: 1s, partition: [cookie:user], partition-key: plain"),
     {"3:70: partition-key: \"plain\" would show the credential \"cookie:user\" in every response "
      "(expected none or hashed"}},
    {"an_api_key_of_the_query_in_every_response",
     with_policy("quota: 1, window: 1s, partition: [query:api_key], partition-key: plain"),
     {"3:72: partition-key: \"plain\" would show the credential \"query:api_key\" in every "
      "response (expected none or hashed"}},
    {"a_window_for_slots",
     with_policy("quota: 1, unit: concurrent-requests, window: 1s"),
     {"3:44: window: not with unit: concurrent-requests"}},
    {"an_algorithm_for_slots",
     with_policy("quota: 1, unit: concurrent-requests, algorithm: gcra"),
     {"3:44: algorithm: not with unit: concurrent-requests"}},
    {"an_unknown_unit",
     with_policy("quota: 1, window: 1s, unit: request"),
     {"3:35: unit: unknown value \"request\"; did you mean \"requests\"? (expected requests, "
      "content-bytes "
      "or concurrent-requests"}},
    {"an_unknown_algorithm",
     with_policy("quota: 1, window: 1s, algorithm: leaky"),
     {"3:40: algorithm: unknown value \"leaky\" (expected fixed, sliding, gcra or log"}},
    {"a_burst_that_nothing_uses",
     with_policy("quota: 1, window: 1s, burst: 5"),
     {"3:29: burst: only with algorithm: gcra"}},
    {"a_log_of_more_than_it_keeps",
     with_policy("quota: 10001, window: 1m, algorithm: log"),
     {"3:14: with algorithm: log the quota must be at most 10000"}},
    {"a_calendar_that_slides",
     with_policy("quota: 1, window: {calendar: day}"),
     {"3:25: window: a calendar is only for algorithm: fixed"}},
    {"an_unknown_calendar",
     with_policy("quota: 1, window: {calendar: year}, algorithm: fixed"),
     {"3:36: calendar: unknown value \"year\" (expected hour, day, week or month"}},
    {"a_calendar_without_a_unit",
     with_policy("quota: 1, window: {time-zone: UTC}, algorithm: fixed"),
     {"3:25: \"calendar\" is missing"}},
    {"an_unknown_time_zone",
     with_policy("quota: 1, window: {calendar: day, time-zone: Europe/Nowhere}, algorithm: fixed"),
     {"3:52: time-zone: unknown time zone \"Europe/Nowhere\""}},
    {"a_time_zone_outside_of_its_folder",
     with_policy(
         "quota: 1, window: {calendar: day, time-zone: ../../etc/passwd}, algorithm: fixed"),
     {"3:52: time-zone: unknown time zone \"../../etc/passwd\""}},
    {"a_folder_of_time_zones",
     with_policy("quota: 1, window: {calendar: day, time-zone: Europe}, algorithm: fixed"),
     {"3:52: time-zone: unknown time zone \"Europe\""}},
    {"a_lease_of_a_calendar",
     with_policy("quota: 1, window: {calendar: day}, algorithm: fixed, counting: lease"),
     {"3:70: counting: \"lease\" does not work with a calendar (expected exact"}},
    {"a_burst_for_centuries",
     with_policy("quota: 1, window: 366d, algorithm: gcra, burst: 1000"),
     {"3:55: the burst must be at least 1 and drain within ten years"}},
    {"an_unknown_source",
     with_policy("quota: 1, window: 1s, partition: [ip]"),
     {"3:41: partition: invalid source \"ip\" (expected client-ip, header:NAME"}},
    {"a_source_twice",
     with_policy("quota: 1, window: 1s, partition: [host, host]"),
     {"3:47: partition: duplicate \"host\""}},
    {"the_principal_of_a_route_without_tokens",
     "policies: {p: {quota: 1, window: 1s, partition: [principal]}}\n"
     "routes: [{match: {path: /}, service: echo, limits: [p]}]\n",
     {"2:53: limits: \"principal\" needs \"auth\" on the route"}},
    {"enforce_false",
     with_policy("quota: 1, window: 1s, enforce: false"),
     {"3:38: enforce: unknown value \"false\" (expected true or shadow"}},
    {"abuse_true",
     with_policy("quota: 1, window: 1s, abuse: true"),
     {"3:36: expected a mapping for \"abuse\" (keys: refusals, within, block"}},
    // ---- routes ----
    {"no_routes", "routes: []\n", {"1:9: routes: empty list"}},
    {"routes_no_list", "routes: {}\n", {"1:9: routes: expected a list"}},
    {"a_route_without_match", "routes: [{service: echo}]\n", {"1:10: \"match\" is missing"}},
    {"nothing_answers",
     "routes: [{match: {path: /}}]\n",
     {"1:10: \"upstream\" is missing (expected \"upstream\", \"service\""}},
    {"two_answer",
     "upstreams: {a: http://x}\nroutes: [{match: {path: /}, upstream: a, service: echo}]\n",
     {"2:42: \"service\" and \"upstream\" cannot be combined (expected one of them"}},
    {"an_unknown_upstream",
     "upstreams: {orders: http://x}\nroutes: [{match: {path: /}, upstream: order}]\n",
     {"2:39: unknown upstream \"order\"; did you mean \"orders\"? (expected orders"}},
    {"no_upstreams",
     "routes: [{match: {path: /}, upstream: x}]\n",
     {"1:39: unknown upstream \"x\"; the file defines none"}},
    {"an_unknown_policy",
     "routes: [{match: {path: /}, service: echo, limits: [p]}]\n",
     {"1:53: unknown policy \"p\""}},
    {"a_policy_with_faults_is_known",
     "policies: {p: {quota: x, window: 1s}}\n"
     "routes: [{match: {path: /}, service: echo, limits: [p]}]\n",
     {"1:23: quota: invalid quota \"x\""}},
    {"a_limit_twice",
     "policies: {p: {quota: 1, window: 1s}}\n"
     "routes: [{match: {path: /}, service: echo, limits: [p, p]}]\n",
     {"2:56: limits: duplicate \"p\""}},
    {"a_path_without_slash",
     "routes: [{match: {path: v1}, service: echo}]\n",
     {"1:25: path: invalid path pattern \"v1\": a path begins with /"}},
    {"a_path_with_a_query", "routes: [{match: {path: '/a?b'}, service: echo}]\n", {"1:25: path: "}},
    {"a_method_in_lower_case",
     "routes: [{match: {methods: [get]}, service: echo}]\n",
     {"1:29: methods: invalid method \"get\" (expected a method in upper case"}},
    {"no_methods",
     "routes: [{match: {methods: []}, service: echo}]\n",
     {"1:28: methods: empty list (expected at least one method"}},
    {"a_host_with_a_port",
     "routes: [{match: {host: 'a:80'}, service: echo}]\n",
     {"1:25: host: \"a:80\" has a port"}},
    {"the_same_match",
     "routes:\n- {match: {path: /}, service: echo}\n- {match: {path: /}, service: echo}\n",
     {"3:3: never reached: the route in line 2 has the same match"}},
    {"the_same_name",
     "routes:\n- {match: {path: /}, name: a, service: echo}\n"
     "- {match: {path: /b}, name: a, service: echo}\n",
     {"3:29: name: the route in line 2 has the same name, \"a\""}},
    {"a_cost_above_a_quota",
     "policies: {p: {quota: 4, window: 1s}}\n"
     "routes: [{match: {path: /}, service: echo, limits: p, cost: 5}]\n",
     {"2:61: cost: 5 is more than policy \"p\" can ever admit (expected at most 4"}},
    {"a_cost_of_a_pattern_above_a_quota",
     "policies: {p: {quota: 4, window: 1s}}\n"
     "routes: [{match: {path: /}, service: echo, limits: p, cost: {default: 1, POST /: 5}}]\n",
     {"2:82: cost: 5 is more than"}},
    {"a_cost_pattern_without_path",
     "routes: [{match: {path: /}, service: echo, cost: {POST: 2, defalt: 1, GET /a*: 1}}]\n",
     {"1:51: cost: invalid pattern \"POST\"",
      "1:60: cost: invalid pattern \"defalt\"; did you mean \"default\"?",
      "1:71: cost: invalid pattern \"GET /a*\": * stands for a whole segment"}},
    {"a_negative_cost",
     "routes: [{match: {path: /}, service: echo, cost: -1}]\n",
     {"1:50: cost: invalid number \"-1\""}},
    {"equal_quotas_in_draft_07",
     "fields: {ratelimit: draft-07}\n"
     "policies: {a: {quota: 4, window: 1s}, b: {quota: 4, window: 1m}}\n"
     "routes: [{match: {path: /}, service: echo, limits: [a, b]}]\n",
     {"3:56: limits: \"b\" has the same quota as \"a\", which clients cannot tell apart in "
      "draft-07 (expected different quotas, or fields: {ratelimit: draft-09}"}},
    // ---- the rest ----
    {"an_unknown_draft",
     with("fields: {ratelimit: draft-08}\n"),
     {"2:21: ratelimit: unknown value \"draft-08\"; did you mean \"draft-09\"?"}},
    {"no_network",
     with("trusted-proxies: [10.0.0.0/33]\n"),
     {"2:19: trusted-proxies: invalid network \"10.0.0.0/33\""}},
    {"bits_behind_the_prefix",
     with("trusted-proxies: [10.0.0.1/8]\n"),
     {"2:19: trusted-proxies: \"10.0.0.1/8\" has bits after its prefix; did you mean "
      "\"10.0.0.0/8\"?"}},
    {"an_empty_path", with("data: ''\n"), {"2:7: data: invalid path \"\""}},
    // ---- stores ----
    {"quotas_where_they_cannot_be",
     with("stores: {quota: 'postgres://h/d'}\n"),
     {"2:17: quota: invalid store \"postgres://h/d\" (expected memory, redis://HOST:PORT, "
      "rediss://HOST:PORT, redis+cluster://HOST:PORT,..., rediss+cluster://HOST:PORT,..., "
      "redis+sentinel://HOST:PORT,.../NAME or rediss+sentinel://HOST:PORT,.../NAME"}},
    {"a_directory_where_it_cannot_be",
     with("stores: {directory: 'redis://h:1'}\n"),
     {"2:21: directory: invalid store \"redis://h:1\" (expected sqlite:FILE or "
      "postgres://HOST:PORT/DATABASE"}},
    {"a_store_as_libraries_want_it",
     with("stores: {directory: 'host=db user=u password=s3cret'}\n"),
     {"2:21: directory: invalid store \"host\""}},
    {"a_store_with_a_slash_too_few",
     with("stores: {quota: 'redis:/:s3cret@db'}\n"),
     {"2:17: quota: invalid store \"redis\""}},
    {"a_server_without_a_host",
     with("stores: {idempotency: 'redis://'}\n"),
     {"2:23: idempotency: invalid store \"redis://\""}},
    {"a_size_of_keys_that_their_server_bounds",
     with("stores: {idempotency: 'redis://a:1', idempotency-size: 1MiB}\n"),
     {"2:56: idempotency-size: only for keys in memory or in SQLite; Redis has its maxmemory, "
      "PostgreSQL its disk"}},
    {"replicas_of_a_file",
     with("stores: {idempotency-replicas: 1}\n"),
     {"2:32: idempotency-replicas: only for keys in Redis"}},
    {"a_lease_of_what_drains",
     with_policy("quota: 1, window: 1s, algorithm: gcra, counting: lease"),
     {"3:56: counting: \"lease\" does not work with algorithm: gcra (expected exact"}},
    {"a_lease_of_a_log",
     with_policy("quota: 1, window: 1s, algorithm: log, counting: lease"),
     {"3:55: counting: \"lease\" does not work with algorithm: log (expected exact"}},
    // ---- scim ----
    {"scim_at_one_path",
     "routes: [{match: {path: /scim}, service: scim}]\n",
     {"1:18: match: invalid path for \"service: scim\" (expected one that ends with /**"}},
    {"options_of_scim_without_it",
     "routes: [{match: {path: /}, service: echo, scim: {max-page-size: 9, bulk: {}}}]\n",
     {"1:51: max-page-size: only for \"service: scim\"", "1:69: bulk: only for \"service: scim\""}},
    {"no_options_of_scim_without_it",
     "routes: [{match: {path: /}, service: echo, scim: {}}]\n",
     {"1:50: scim: only for \"service: scim\" or \"bridge: scim-cursor\""}},
    {"scim_that_is_no_mapping",
     "routes: [{match: {path: /**}, service: scim, scim: 5, max-page-size: 9}]\n",
     {"1:52: expected a mapping for \"scim\" (keys: default-page-size"}},
    {"an_option_of_scim_in_both_places",
     "routes: [{match: {path: /**}, service: scim, max-page-size: 9,\n  scim: {max-page-size: "
     "9}}]\n",
     {"1:46: duplicate key \"max-page-size\"; it is already in \"scim\" in line 2"}},
    {"an_option_of_scim_twice_in_its_former_place",
     "routes: [{match: {path: /**}, service: scim, max-page-size: 9, max-page-size: 9}]\n",
     {"1:64: duplicate key \"max-page-size\"; it is already in line 1"}},
    {"a_wrong_option_of_scim_in_its_former_place",
     "routes: [{match: {path: /**}, service: scim, max-page-size: x}]\n",
     {"1:61: max-page-size: invalid number \"x\" (expected a number from 1 to 10000"}},
    {"an_option_of_the_directory_for_a_bridge",
     "upstreams: {u: 'http://x'}\n"
     "routes: [{match: {path: /**}, upstream: u, bridge: scim-cursor, scim: {indexes: title}}]\n",
     {"2:72: indexes: only for \"service: scim\""}},
    {"a_tenant_without_scim",
     with_tokens("{name: a, tenant: t, sha256: " + std::string(64, 'a') + "}"),
     {"1:77: tenant: only for \"service: scim\""}},
    {"a_page_larger_than_the_largest",
     with_scim("default-page-size: 200, max-page-size: 100"),
     {"1:72: default-page-size: more than \"max-page-size\""}},
    {"a_method_of_paging_that_is_off",
     with_scim("pagination: index, default-method: cursor"),
     {"1:88: default-method: \"cursor\" is not allowed by \"pagination\""}},
    {"a_fraction_of_a_second_for_cursors",
     with_scim("cursor-timeout: 1500ms"),
     {"1:69: cursor-timeout: must be whole seconds"}},
    {"a_public_url_without_a_host",
     with_scim("public-url: /scim"),
     {"1:65: public-url: invalid URL \"/scim\" (expected e.g. https://id.example.com"}},
    {"two_views_of_one_directory",
     "routes: [{match: {path: /a/**}, service: scim}, {match: {path: /b/**}, service: scim, "
     "scim: {indexes: title}}]\n",
     {"1:81: service: the route \"/a/**\" has the same directory"}},
    {"a_directory_in_the_file_of_keys",
     with("stores: {idempotency: 'sqlite:f', directory: 'sqlite:f'}\n"),
     {"2:46: directory: same file as \"idempotency\" (expected another file"}},
    // ---- auth ----
    {"auth_without_tokens",
     "routes: [{match: {path: /}, service: echo, auth: {}}]\n",
     {"1:50: \"bearer-tokens\" or \"api-keys\" is missing"}},
    {"auth_that_lets_nobody_in", with_tokens(""), {"1:66: bearer-tokens: empty list"}},
    {"a_token_without_a_digest",
     with_tokens("{name: a}"),
     {"1:67: \"sha256\" is missing (expected 64 lower-case hexadecimal digits"}},
    {"a_digest_in_upper_case",
     with_tokens("{name: a, sha256: " + std::string(64, 'A') + "}"),
     {"1:85: sha256: invalid SHA-256 digest"}},
    {"a_token_twice",
     with_tokens("{name: a, sha256: " + std::string(64, 'a') +
                 "}, {name: a, sha256: " + std::string(64, 'a') + "}"),
     {"1:159: name: duplicate \"a\"", "1:170: sha256: same token as \"a\""}},
    // ---- idempotency ----
    {"a_store_without_a_file",
     with("stores: {idempotency: 'sqlite:'}\n"),
     {"2:23: idempotency: invalid store \"sqlite:\""}},
    {"keys_without_an_upstream",
     "routes: [{match: {path: /}, service: echo, idempotency: {mode: required}}]\n",
     {"1:57: idempotency: not for \"service: echo\""}},
    {"a_safe_method_with_keys",
     with_keys("mode: optional, methods: [GET]"),
     {"2:83: methods: GET is safe and needs no key"}},
    {"a_scope_of_what_every_request_has",
     with_keys("mode: optional, scope: [method, host, path, route]"),
     {"2:81: scope: does not name a client (expected at least one of principal, header:NAME"}},
    {"a_scope_of_nothing",
     with_keys("mode: optional, anonymous: allow, scope: []"),
     {"2:99: scope: does not name a client"}},
    {"no_method_with_keys",
     with_keys("mode: optional, methods: []"),
     {"2:83: methods: empty list (expected at least one method, or mode: off"}},
    {"an_age_of_keys_that_do_not_say_it",
     with_keys("mode: required, key-age-max: 1h"),
     {"2:87: key-age-max: only with key-format: uuidv7"}},
    {"a_retry_that_could_do_a_thing_twice",
     with_keys("mode: required, on-unknown-outcome: retry"),
     {"2:94: on-unknown-outcome: \"retry\" could run a request twice (expected conflict, or "
      "upstream-deduplicates: true"}},
    {"a_pointer_without_a_slash",
     with_keys("mode: required, fingerprint: {json: [a]}"),
     {"2:95: json: invalid JSON pointer \"a\""}},
    {"no_pointers",
     with_keys("mode: required, fingerprint: {json: []}"),
     {"2:87: fingerprint: too few or too many JSON pointers (expected 1 to 32"}},
    {"half_seconds_of_memory",
     with_keys("mode: required, ttl: 1500ms"),
     {"2:79: ttl: must be whole seconds"}},
    {"a_documentation_with_a_fragment",
     with_keys("mode: required, documentation: '/a#b'"),
     {"2:89: documentation: invalid URL or absolute path \"/a#b\""}},
};

INSTANTIATE_TEST_SUITE_P(table, gateway_config_faults, testing::ValuesIn(fault_rows),
                         [](auto const& row) { return std::string(row.param.name); });

TEST(gateway_config, writes_a_fault_as_compilers_do) {
  EXPECT_EQ(to_string(config_fault{"a/b.yaml", 3, 7, "wrong"}), "a/b.yaml:3:7: wrong");
}

TEST(gateway_config, is_equal_in_draft_07_only_where_clients_would_see_it) {
  EXPECT_THAT(
      faults("fields: {ratelimit: draft-07}\n"
             "policies: {a: {quota: 4, window: 1s}, b: {quota: 4, window: 1m, enforce: shadow}, c: "
             "{quota: 4, unit: concurrent-requests}}\n"
             "routes: [{match: {path: /}, service: echo, limits: [a, b, c]}]\n"),
      ElementsAre());
}

TEST(gateway_config, checks_costs_against_the_burst_and_only_for_requests) {
  EXPECT_THAT(
      faults("policies: {a: {quota: 4, window: 1s, algorithm: gcra, burst: 9}, b: {quota: 1, "
             "unit: concurrent-requests}}\n"
             "routes: [{match: {path: /}, service: echo, limits: [a, b], cost: 9}]\n"),
      ElementsAre());
}

TEST(gateway_config, is_bounded_in_size_depth_and_aliases) {
  EXPECT_THAT(faults(std::string(config_octets_max + 1, ' ')),
              ElementsAre("1:1: the file is larger than 64MiB"));
  EXPECT_THAT(faults(std::string(40, '[') + std::string(40, ']')),
              ElementsAre(HasSubstr("1:33: nested too deeply")));
  EXPECT_EQ(faults(std::string(100'000, '[')).size(), 1U);
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    auto const last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int j = 0; j < 9; ++j) {
      bomb += ", " + last;
    }
    bomb += "]\n";
  }
  EXPECT_THAT(faults(bomb), ElementsAre(HasSubstr("too much: at most 2000000 values")));
}

TEST(gateway_config, reads_how_servers_are_chosen_and_looked_after) {
  auto const made = parse_config(R"(
upstreams:
  api:
    servers: [{url: http://a/base/, weight: 3}, "unix:/run/b.sock", {url: https://c, weight: 0}]
    balance: hash:header:X-User
    health: {path: "/healthz?deep=1", interval: 1s, timeout: 200ms, rise: 1, fall: 4, expect: "200-299,304"}
    outlier: {failures: 2, eject: 1m}
    resolve: {min: 5s, max: 10s, server: 127.0.0.1:5353}
    max-connections: 10
    max-wait: 2s
    retry: {on: [reset, 503], attempts: 3, backoff: 1ms, budget: 50%}
  other: {servers: [http://b], outlier: off, balance: round-robin, retries: 2}
routes: [{match: {path: /**}, upstream: {api: 95, other: 5}}]
)",
                                 "t.yaml");
  ASSERT_TRUE(made) << made.error().front().message;
  auto const& api = made->upstreams[0];
  EXPECT_EQ(api.servers[0].path, "/base");
  EXPECT_EQ(api.servers[0].weight, 3);
  EXPECT_EQ(api.servers[0].written, "http://a/base/");
  EXPECT_EQ(api.servers[1].socket, "/run/b.sock");
  EXPECT_EQ(api.servers[1].weight, 1);
  EXPECT_EQ(api.servers[2].weight, 0);
  EXPECT_EQ(api.balance, balance::method::hash);
  ASSERT_TRUE(api.hash_by);
  EXPECT_EQ(api.hash_by->name, "x-user");
  EXPECT_EQ(api.health,
            (health_config{"/healthz?deep=1", 1s, 200ms, {1, 4}, {{200, 299}, {304, 304}}}));
  EXPECT_EQ(api.outlier, (balance::outlier_settings{2, 10s, 1min}));
  EXPECT_EQ(api.resolve, (resolve_config{{5s, 10s}, "127.0.0.1:5353"}));
  EXPECT_EQ(api.max_connections, 10);
  EXPECT_EQ(api.max_wait, 2s);
  EXPECT_EQ(api.retry, (balance::retry_settings{0x24, 3, 1ms, 50}));
  auto const& other = made->upstreams[1];
  EXPECT_EQ(other.outlier, std::nullopt);
  EXPECT_EQ(other.balance, balance::method::round_robin);
  EXPECT_EQ(other.retry, (balance::retry_settings{.on = 7, .attempts = 2}));
  EXPECT_EQ(made->routes[0].split, (std::vector<upstream_share>{{0, 95}, {1, 5}}));
}

TEST(gateway_config, stops_after_a_hundred_faults) {
  std::string text = "routes: []\n";
  for (int i = 0; i < 500; ++i) {
    text += "k" + std::to_string(i) + ": 1\n";
  }
  EXPECT_EQ(faults(text).size(), 100U);
}

/// Puts a mapping, which is never right for a value, where `rule` stands; else a number.
auto text_with_nonsense(option const& rule) -> std::string {
  auto const nonsense = options_under(rule.path).empty() && rule.form != option_form::patterns &&
                                rule.form != option_form::one_or_shares &&
                                rule.form != option_form::named
                            ? std::string("{nonsense: 1}")
                            : std::string("[[1]]");
  std::string text = nonsense;
  auto path = rule.path;
  while (!path.empty()) {
    auto const dot = path.rfind('.');
    auto const parent = dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
    auto const key = path.substr(dot == std::string_view::npos ? 0 : dot + 1);
    text = "{" + std::string(key) + ": " + text + "}";
    if (!parent.empty() && (option_at(parent).form == option_form::named ||
                            option_at(parent).form == option_form::named_or_file)) {
      text = "{name: " + text + "}";
    } else if (!parent.empty() && option_at(parent).form == option_form::list) {
      text = "[" + text + "]";
    }
    path = parent;
  }
  return text;
}

TEST(gateway_config, looks_at_every_option_of_the_table) {
  for (auto const& rule : options()) {
    auto const text = text_with_nonsense(rule);
    bool seen = false;
    for (auto const& fault : faults(text)) {
      seen = seen ||
             fault.find(rule.available == availability::later ? "not available" : "expected") !=
                 std::string::npos;
    }
    EXPECT_TRUE(seen) << rule.path << " in " << text << testing::PrintToString(faults(text));
  }
}

TEST(gateway_config, has_a_reference_that_says_what_the_table_says) {
  std::ifstream file(TIDEGATE_SOURCE_DIR "/docs/reference/config.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), config_reference())
      << "run: tidegate schema --markdown > docs/reference/config.md";
}

TEST(gateway_config, has_a_schema_with_every_option) {
  auto const schema = config_json_schema();
  EXPECT_THAT(schema,
              testing::StartsWith(R"({"$schema":"https://json-schema.org/draft/2020-12/schema",)"));
  for (auto const& rule : options()) {
    EXPECT_THAT(schema, HasSubstr("\"" + std::string(rule.key()) + "\":{")) << rule.path;
  }
  EXPECT_THAT(schema, HasSubstr(R"("max-page-size":{"deprecated":true,"description":)"));
  EXPECT_EQ(std::count(schema.begin(), schema.end(), '{'),
            std::count(schema.begin(), schema.end(), '}'));
}

}  // namespace
}  // namespace tidegate::gateway
