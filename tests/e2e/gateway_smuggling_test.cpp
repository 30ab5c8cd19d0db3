// SPDX-License-Identifier: Apache-2.0
//
// The corpus of requests that are read in more than one way, through a gateway that speaks either
// protocol to clients and to the server. The server is another gateway, which counts: whatever is
// sent, it sees no request that the first one did not mean, and what follows is not mixed up.
#include "../../libs/wire/test/corpus.hpp"
#include "gateway.hpp"
#include "raw_http2.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view echo_routes =
    "http: {ambiguous-paths: allow}\nroutes: [{name: all, match: {path: /**}, service: echo}]\n";

class gateway_smuggling : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] auto served() const -> double {
    double sum = 0;
    for (auto const* const status : {"200", "400", "408", "499"}) {
      sum += behind_.metric("tidegate_requests_total{route=\"all\",status=\"" +
                            std::string(status) + "\"}");
    }
    return sum;
  }
  /// A plain request gets the answer to itself.
  void expect_canary(std::string_view row) {
    auto const path = "/canary-" + std::to_string(++canaries_);
    auto const answer = with_.get(path);
    EXPECT_EQ(answer.status(), 200) << row;
    EXPECT_THAT(answer.body, HasSubstr(path)) << row;
  }

  gateway behind_{std::string(echo_routes)};
  gateway with_{"http: {ambiguous-paths: allow}\nupstreams: {api: {servers: [\"http://" +
                behind_.authority() + "\"], http2: " + (GetParam() ? "true" : "false") +
                "}}\nroutes: [{name: all, match: {path: /**}, upstream: api}]\n"};
  int canaries_ = 0;
};

/// How many requests a row means at most.
auto requests_in(std::string_view bytes) -> std::size_t {
  std::size_t count = 0;
  for (auto at = bytes.find(" HTTP/1."); at != bytes.npos; at = bytes.find(" HTTP/1.", at + 1)) {
    ++count;
  }
  return count;
}

TEST_P(gateway_smuggling, does_not_go_through_from_http_1) {
  auto before = served();
  for (auto const& row : wire::test::read_corpus()) {
    if (row.expected == "preface") {
      continue;
    }
    SCOPED_TRACE(row.name);
    auto client = with_.connect();
    client.send(row.bytes);
    auto answer = client.read_response(row.bytes.starts_with("HEAD"));
    while (answer.status() == 100) {
      answer = client.read_response();
    }
    bool const is_forwarded = row.expected == "forwarded";
    if (!is_forwarded && !row.expected.starts_with("414")) {  // it takes a little more
      EXPECT_EQ(std::to_string(answer.status()), row.expected.substr(0, 3));
    }
    client.close();
    expect_canary(row.name);
    auto const after = served();
    // The canary, and what the row means; of one with a bad body the head may have been sent on.
    EXPECT_LE(after - before, 1.0 + static_cast<double>(requests_in(row.bytes)));
    before = after;
  }
}

auto integer_of(std::size_t value) -> std::string {  // RFC 7541, section 5.1, with a prefix of 7
  std::string out;
  if (value < 127) {
    out.push_back(static_cast<char>(value));
    return out;
  }
  out.push_back('\x7f');
  for (value -= 127; value >= 128; value /= 128) {
    out.push_back(static_cast<char>(value % 128 + 128));
  }
  out.push_back(static_cast<char>(value));
  return out;
}

auto literal(std::string_view name, std::string_view value) -> std::string {
  return std::string(1, '\0') + integer_of(name.size()) + std::string(name) +
         integer_of(value.size()) + std::string(value);
}

/// The row as fields of HTTP/2, without asking whether they may be there.
auto block_of(std::string_view bytes, std::string& body) -> std::string {
  auto const end = bytes.find("\r\n\r\n");
  body = end == bytes.npos ? "" : bytes.substr(end + 4);
  auto head = bytes.substr(0, end);
  auto const line = head.substr(0, head.find('\n'));
  head.remove_prefix(std::min(line.size() + 1, head.size()));
  auto const method = line.substr(0, line.find(' '));
  auto target = line.substr(std::min(method.size() + 1, line.size()));
  target = target.substr(0, target.rfind(' '));
  auto out = literal(":method", method) + literal(":scheme", "http") + literal(":path", target);
  while (!head.empty()) {
    auto const field = head.substr(0, head.find('\n'));
    head.remove_prefix(std::min(field.size() + 1, head.size()));
    auto const colon = std::min(field.find(':'), field.size());
    std::string name(field.substr(0, colon));
    std::ranges::transform(name, name.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    });
    auto value = field.substr(std::min(colon + 1, field.size()));
    while (value.starts_with(' ')) {
      value.remove_prefix(1);
    }
    if (value.ends_with('\r')) {
      value.remove_suffix(1);
    }
    out += literal(name, value);
  }
  return out;
}

TEST_P(gateway_smuggling, does_not_go_through_from_http_2) {
  auto before = served();
  for (auto const& row : wire::test::read_corpus()) {
    SCOPED_TRACE(row.name);
    std::string body;
    auto const block = block_of(row.bytes, body);
    if (block.size() > 16'000 || body.size() > 16'000) {
      continue;  // needs more than a frame
    }
    raw_client client(with_.connect());
    client.send(headers, body.empty() ? 5 : 4, 1, block);
    if (!body.empty()) {
      client.send(data, 1, 1, body);
    }
    for (bool is_over = false; !is_over;) {
      auto const each = client.read();
      is_over = each.type == goaway || each.type == rst_stream ||
                (each.stream == 1 && (each.flags & 1U) != 0 &&
                 (each.type == data || each.type == headers));
    }
    client.socket().close();
    expect_canary(row.name);
    auto const after = served();
    EXPECT_LE(after - before, 2.0) << "the canary, and one request at most";
    before = after;
  }
}

INSTANTIATE_TEST_SUITE_P(to, gateway_smuggling, testing::Bool(),
                         [](auto const& of) { return of.param ? "http_2" : "http_1"; });

// The response has begun, so that a refusal of what still comes would be read as a part of it.
TEST(gateway_late_refusal, is_not_written_into_a_response) {
  for (auto const* const head : {"Content-Length: 1000", "Transfer-Encoding: chunked"}) {
    origin api;
    gateway const with("http: {body-timeout: 300ms}\nupstreams: {api: \"" + api.url() +
                       "\"}\nroutes: [{match: {path: /**}, upstream: api, max-body: 100}]\n");
    for (auto const& rest : {"ff\r\n" + std::string(255, 'x'), std::string("zz\r\n"),
                             std::string()}) {  // nothing more: too late
      auto client = with.connect();
      client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
      auto server = api.accept();
      (void)server.read_head();
      server.send("HTTP/1.1 200 OK\r\n" + std::string(head) + "\r\n\r\n");
      server.send(std::string(head).ends_with("chunked") ? "a\r\n0123456789\r\n" : "0123456789");
      EXPECT_EQ(client.read_head().status(), 200);
      (void)client.read(10);
      client.send(rest);
      auto const after = client.read_to_end();
      EXPECT_THAT(after, Not(HasSubstr("HTTP/1.1"))) << rest.substr(0, 4) << head;
      EXPECT_THAT(after, Not(HasSubstr("0\r\n\r\n"))) << "it is not whole";
    }
  }
}

}  // namespace
}  // namespace tidegate::e2e
