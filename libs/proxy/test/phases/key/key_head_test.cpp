// SPDX-License-Identifier: Apache-2.0
#include "phases/key/key_head.hpp"

#include "phases/phase_fixture.hpp"

#include <tidegate/base/sha256.hpp>
#include <tidegate/store/memory_idempotency_store.hpp>

#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using idempotency::problem_code;
using testing::HasSubstr;
using testing::Not;
using read_head = std::variant<no_key, keyed_head, key_fault, repeated_scope>;

[[nodiscard]] auto keyed_route(std::string const& options, std::string const& more = "")
    -> std::string {
  return "upstreams: {api: \"http://127.0.0.1:1\"}\n"
         "routes: [{match: {path: /**}, upstream: api" +
         more + ", idempotency: {mode: required" + options + "}}]\n";
}

class proxy_key_head : public testing::Test {
 protected:
  [[nodiscard]] auto read(phase_fixture& with, std::string const& head) -> read_head {
    context_ = with.ask(head);
    if (token_ != 0) {
      context_.token = &with.settings().config.routes[0].auth->tokens[token_ - 1];
    }
    context_.handler = handler_;
    return read_keyed_head(context_, {.keys = keys_,
                                      .active = with.config.active,
                                      .protocol = "HTTP/1.1",
                                      .values = with.values,
                                      .texts = {lines_, value_, field_lines_},
                                      .last_host = last_host_,
                                      .now = now_});
  }
  [[nodiscard]] auto post(phase_fixture& with, std::string const& lines,
                          std::string const& target = "/orders", std::string const& host = "h")
      -> read_head {
    return read(with, "POST " + target + " HTTP/1.1\r\nHost: " + host + "\r\n" + lines + "\r\n");
  }
  /// The head of a request that must have a key.
  [[nodiscard]] auto keyed(phase_fixture& with, std::string const& lines,
                           std::string const& target = "/orders", std::string const& host = "h")
      -> keyed_head {
    auto said = post(with, "Idempotency-Key: \"k\"\r\n" + lines, target, host);
    auto* const head = std::get_if<keyed_head>(&said);
    EXPECT_NE(head, nullptr) << lines << target;
    return head != nullptr ? std::move(*head) : keyed_head{};
  }
  [[nodiscard]] static auto code_of(read_head const& said) -> std::optional<problem_code> {
    auto const* const fault = std::get_if<key_fault>(&said);
    return fault != nullptr ? std::optional(fault->code) : std::nullopt;
  }

  request_context context_;
  std::size_t token_ = 0;  // 0: none
  handler handler_ = handler::forward;
  std::string lines_;
  std::string value_;
  std::vector<std::string_view> field_lines_;
  std::string last_host_;
  idempotency::wall_time now_{std::chrono::hours(500'000)};
  idempotency_service keys_{
      std::make_unique<store::memory_idempotency_store>(store::memory_idempotency_store::options{}),
      std::span<std::byte const>(), "/tmp",
      std::make_shared<slewed_clock>(idempotency::wall_time(), instant())};
};

constexpr auto owner = "Authorization: Bearer x\r\n";

TEST_F(proxy_key_head, passes_requests_that_need_no_key) {
  phase_fixture required(keyed_route(""));
  phase_fixture optional(keyed_route("").replace(keyed_route("").find("required"), 8, "optional"));
  phase_fixture puts(keyed_route(", methods: [PUT]"));
  std::string const key = "Idempotency-Key: \"k\"\r\n";
  EXPECT_TRUE(std::holds_alternative<no_key>(
      read(required, "GET / HTTP/1.1\r\nHost: h\r\n" + key + "\r\n")));
  EXPECT_TRUE(std::holds_alternative<no_key>(
      read(required, "PUT / HTTP/1.1\r\nHost: h\r\n" + key + "\r\n")));
  EXPECT_TRUE(std::holds_alternative<no_key>(post(puts, key + owner)));
  EXPECT_TRUE(std::holds_alternative<no_key>(post(optional, owner)));
  EXPECT_TRUE(std::holds_alternative<keyed_head>(post(optional, key + owner)));
  EXPECT_TRUE(std::holds_alternative<keyed_head>(
      read(required, "PATCH / HTTP/1.1\r\nHost: h\r\n" + key + owner + "\r\n")));
}

TEST_F(proxy_key_head, says_what_is_wrong_with_a_key) {
  struct row {
    std::string_view name;
    std::string lines;
    problem_code code;
  };
  phase_fixture with(keyed_route(", key-length-max: 4, max-body: 10"));
  for (auto const& [name, lines, code] : std::vector<row>{
           {"none", owner, problem_code::key_missing},
           {"without quotes", "Idempotency-Key: k\r\n", problem_code::key_malformed},
           {"empty", "Idempotency-Key: \"\"\r\n", problem_code::key_malformed},
           {"too long", "Idempotency-Key: \"abcde\"\r\n", problem_code::key_malformed},
           {"two", "Idempotency-Key: \"a\"\r\nIdempotency-Key: \"b\"\r\n",
            problem_code::key_malformed},
           {"of no client", "Idempotency-Key: \"a\"\r\n", problem_code::scope_missing},
           {"content that is too long",
            "Idempotency-Key: \"a\"\r\nAuthorization: x\r\nContent-Length: 11\r\n",
            problem_code::body_too_large},
       }) {
    EXPECT_EQ(code_of(post(with, lines)), code) << name;
  }
  for (auto const* const lines :
       {"Content-Length: 10\r\n", "Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n"}) {
    EXPECT_EQ(code_of(post(
                  with, "Idempotency-Key: \"abcd\"\r\nAuthorization: x\r\n" + std::string(lines))),
              std::nullopt)
        << lines;
  }
}

TEST_F(proxy_key_head, takes_a_key_without_quotes_where_that_is_allowed) {
  phase_fixture with(keyed_route(", accept-unquoted: true"));
  auto const bare = post(with, "Idempotency-Key: k\r\n" + std::string(owner));
  ASSERT_TRUE(std::holds_alternative<keyed_head>(bare));
  EXPECT_EQ(std::get<keyed_head>(bare).key, keyed(with, owner).key) << "it is the same key";
}

TEST_F(proxy_key_head, tells_keys_of_different_owners_and_hosts_apart) {
  struct row {
    std::string_view name;
    std::string lines;
    std::string host;
    bool same;
  };
  phase_fixture with(keyed_route(""));
  auto const first = keyed(with, owner).key;
  for (auto const& [name, lines, host, same] : std::vector<row>{
           {"the same", owner, "h", true},
           {"another spelling of the host", owner, "H:80", true},
           {"other fields", std::string(owner) + "X: 1\r\n", "h", true},
           {"another owner", "Authorization: Bearer y\r\n", "h", false},
           {"another host", owner, "other", false},
       }) {
    EXPECT_EQ(keyed(with, lines, "/orders", host).key == first, same) << name;
  }
  EXPECT_EQ(keyed(with, owner, "/elsewhere").key, first) << "the path is of the fingerprint";
}

TEST_F(proxy_key_head, does_not_join_the_values_of_a_scope) {
  phase_fixture with(keyed_route(", scope: [header:a, header:b]"));
  EXPECT_NE(keyed(with, "A: xy\r\nB: z\r\n").key, keyed(with, "A: x\r\nB: yz\r\n").key);
  EXPECT_NE(keyed(with, "A: xy\r\n").key, keyed(with, "B: xy\r\n").key);
}

TEST_F(proxy_key_head, refuses_a_value_of_the_scope_that_comes_twice) {
  phase_fixture with(keyed_route(", scope: [header:x-client]"));
  auto const said = post(with, "Idempotency-Key: \"k\"\r\nX-Client: a\r\nX-Client: b\r\n");
  ASSERT_TRUE(std::holds_alternative<repeated_scope>(said));
  ASSERT_NE(with.values.repeated, nullptr);
  EXPECT_EQ(to_string(*with.values.repeated), "header:x-client");
}

TEST_F(proxy_key_head, lets_anonymous_clients_have_keys_where_that_is_allowed) {
  phase_fixture with(keyed_route(", anonymous: allow"));
  EXPECT_EQ(principal_of(keyed(with, "")), "");
  phase_fixture by_address(keyed_route(", scope: [client-ip]"));
  EXPECT_NE(principal_of(keyed(by_address, "")), "") << "an address owns its keys";
}

TEST_F(proxy_key_head, names_the_owner_without_its_secret) {
  phase_fixture with(keyed_route(""));
  auto const head = keyed(with, "Authorization: Bearer secret\r\n");
  EXPECT_NE(principal_of(head), "");
  EXPECT_THAT(principal_of(head), Not(HasSubstr("secret")));
  EXPECT_NE(principal_of(head), principal_of(keyed(with, "Authorization: Bearer other\r\n")));

  phase_fixture tokens(keyed_route("", ", " + std::string(auth_of_alpha_and_beta)));
  token_ = 1;
  EXPECT_EQ(principal_of(keyed(tokens, "Authorization: Bearer alpha\r\n")), "a");
}

TEST_F(proxy_key_head, reads_how_long_a_client_waits) {
  struct row {
    std::string lines;
    std::optional<std::chrono::seconds> wait;
  };
  phase_fixture with(keyed_route(""));
  for (auto const& [lines, wait] : std::vector<row>{
           {"", std::nullopt},
           {"Prefer: wait=10\r\n", 10s},
           {"Prefer: WAIT=0\r\n", 0s},
           {"Prefer: respond-async, wait=10\r\n", 10s},
           {"Prefer: respond-async\r\nPrefer: \twait=7\r\n", 7s},
           {"Prefer: wait=4294967295\r\n", 4294967295s},
           {"Prefer: wait=4294967296\r\n", std::nullopt},
           {"Prefer: wait=\r\n", std::nullopt},
           {"Prefer: wait=-1\r\n", std::nullopt},
           {"Prefer: wait=x, wait=3\r\n", 3s},
           {"Prefer: await=3\r\n", std::nullopt},
           {"Prefer: wait\r\n", std::nullopt},
           {"X-Prefer: wait=3\r\n", std::nullopt},
       }) {
    EXPECT_EQ(keyed(with, owner + lines).wait, wait) << lines;
  }
}

TEST_F(proxy_key_head, reads_the_digest_of_the_content) {
  auto const digest = sha256::of("hello");
  std::string const value = ":LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:";
  struct row {
    std::string lines;
    bool is_read;
  };
  phase_fixture with(keyed_route(""));
  for (auto const& [lines, is_read] : std::vector<row>{
           {"Content-Digest: sha-256=" + value + "\r\n", true},
           {"content-digest: md5=:AAAA:, sha-256=" + value + "\r\n", true},
           {"Content-Digest: md5=:AAAA:\r\nContent-Digest: sha-256=" + value + "\r\n", true},
           {"", false},
           {"Content-Digest: sha-512=" + value + "\r\n", false},
           {"Content-Digest: sha-256=:AAAA:\r\n", false},
           {"Content-Digest: sha-256=\"x\"\r\n", false},
           {"Content-Digest: sha-256=(" + value + ")\r\n", false},
           {"Content-Digest: sha-256=" + value + ",\r\n", false},
           {"Digest: sha-256=" + value + "\r\n", false},
       }) {
    auto const head = keyed(with, owner + lines);
    EXPECT_EQ(head.content_digest, is_read ? std::optional(digest) : std::nullopt) << lines;
  }
}

TEST_F(proxy_key_head, keeps_what_is_needed_of_the_request) {
  phase_fixture with(keyed_route(""));
  auto const head = keyed(with, std::string(owner) + "Content-Length: 5\r\n", "/orders?a=b&c");
  EXPECT_EQ(head.method, wire::method::post);
  EXPECT_EQ(head.method_text, "POST");
  EXPECT_EQ(head.host, "h");
  EXPECT_EQ(head.path, "/orders");
  EXPECT_EQ(head.query, "a=b&c");
  EXPECT_EQ(head.framing.kind, wire::body_kind::content_length);
  EXPECT_EQ(head.framing.length, 5U);
  EXPECT_FALSE(head.service);
}

TEST_F(proxy_key_head, writes_the_head_for_the_upstream_open_at_its_end) {
  phase_fixture with(keyed_route(""));
  auto const head =
      keyed(with, std::string(owner) + "Expect: 100-continue\r\nX-Id: 1\r\nContent-Length: 5\r\n");
  EXPECT_THAT(head.lines, testing::StartsWith("POST /orders HTTP/1.1\r\n"));
  EXPECT_THAT(head.lines, testing::EndsWith("\r\n"));
  EXPECT_THAT(head.lines, Not(testing::EndsWith("\r\n\r\n"))) << "Idempotency-Attempt follows";
  EXPECT_THAT(head.lines, HasSubstr("Idempotency-Key: \"k\"\r\n"));
  EXPECT_THAT(head.lines, HasSubstr("X-Id: 1\r\n"));
  EXPECT_THAT(head.lines, HasSubstr("Content-Length: 5\r\n"));
  EXPECT_THAT(head.lines, Not(HasSubstr("Expect"))) << "the content is there when it is sent";
}

TEST_F(proxy_key_head, makes_a_request_for_the_scim_service) {
  phase_fixture with(
      "data: /nowhere\nroutes: [{match: {path: /scim/**}, service: scim, "
      "idempotency: {mode: required}}]\n");
  handler_ = handler::scim;
  auto const head = keyed(with, owner, "/scim/Users?a=b");
  ASSERT_TRUE(head.service);
  EXPECT_EQ(head.service->method, "POST");
  EXPECT_EQ(head.service->path, "/Users");
  EXPECT_EQ(head.lines, "") << "no upstream is asked";
}

TEST_F(proxy_key_head, remembers_hosts_for_operators) {
  phase_fixture with(keyed_route(""));
  (void)keyed(with, owner, "/orders", "Shop.Example:8080");
  EXPECT_EQ(last_host_, "shop.example");
  EXPECT_THAT(keys_.hosts.all(), testing::Contains("shop.example"));
}

}  // namespace
}  // namespace tidegate::gateway
