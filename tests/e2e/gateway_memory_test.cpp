// SPDX-License-Identifier: Apache-2.0
//
// Clients that ask for much and read nothing, and upstreams that send what nobody waits for: neither takes the
// memory that others need.
#include "gateway.hpp"
#include "keyed.hpp"
#include "raw_http2.hpp"
#include "scim.hpp"

#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <iostream>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace tidegate::e2e {

namespace {

using namespace std::chrono_literals;
using test_support::sanitized;

constexpr auto data_frame = frame_type::data;  // folders are called `data` here
constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t greedy_count = sanitized ? 10 : 100;  // of each protocol
constexpr std::size_t honest_count = sanitized ? 10 : 50;
constexpr int honest_rounds = 5;
constexpr std::size_t memory_max = 192 * mib;

/// Half a gigabyte of addresses, which a sanitizer needs for itself.
auto little_memory(int workers = 2) -> gateway_options {
  return {.workers = workers, .shell = sanitized ? "" : "ulimit -v 524288"};
}

/// Sends what the socket takes at once.
void push(connection& to, std::string_view bytes, std::size_t& sent) {
  while (sent < bytes.size()) {
    auto const taken =
        ::send(to.socket(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (taken <= 0) {
      return;
    }
    sent += static_cast<std::size_t>(taken);
  }
}

auto literal(std::string_view name, std::string_view value) -> std::string {
  std::string out(1, '\0');
  for (auto const text : {name, value}) {
    out.push_back(static_cast<char>(text.size()));
    out.append(text);
  }
  return out;
}

auto frame_of(unsigned type, unsigned flags, std::uint32_t stream, std::string_view payload)
    -> std::string {
  std::string out;
  for (auto const shift : {16U, 8U, 0U}) {
    out.push_back(static_cast<char>(payload.size() >> shift));
  }
  out.push_back(static_cast<char>(type));
  out.push_back(static_cast<char>(flags));
  for (auto const shift : {24U, 16U, 8U, 0U}) {
    out.push_back(static_cast<char>(stream >> shift));
  }
  return out.append(payload);
}

/// A connection with a window of 0 that asks on as many streams as it may.
auto without_window(std::string const& block, std::string_view content) -> std::string {
  std::string out = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  out += frame_of(settings, 0, 0, std::string_view("\0\4\0\0\0\0", 6));
  for (std::uint32_t stream = 1; stream < 256; stream += 2) {
    out += frame_of(headers, content.empty() ? 5 : 4, stream, block);
    if (!content.empty()) {
      out += frame_of(data_frame, 1, stream, content);
    }
  }
  return out;
}

auto repeated(std::string const& text, std::size_t count) -> std::string {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    out += text;
  }
  return out;
}

/// Clients that send what they can and read nothing, until they are closed.
class greedy_clients {
 public:
  greedy_clients(gateway const& with, std::string by_http1, std::string by_http2)
      : by_http1_(std::move(by_http1)), by_http2_(std::move(by_http2)) {
    for (std::size_t i = 0; i < 2 * greedy_count; ++i) {
      clients_.push_back({with.connect("127.0.0." + std::to_string(2 + i % 8))});
    }
    thread_ = std::thread([this] { run(); });
  }
  ~greedy_clients() { close(); }
  greedy_clients(greedy_clients const&) = delete;
  auto operator=(greedy_clients const&) -> greedy_clients& = delete;

  void close() {
    stopping_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
    clients_.clear();
  }
  /// How often each has had its turn.
  [[nodiscard]] auto rounds() const -> int { return rounds_; }

 private:
  struct client {
    connection by;
    std::size_t sent = 0;
  };
  void run() {
    while (!stopping_) {
      for (std::size_t i = 0; i < clients_.size(); ++i) {
        push(clients_[i].by, i % 2 == 0 ? by_http1_ : by_http2_, clients_[i].sent);
      }
      ++rounds_;
      std::this_thread::yield();
    }
  }

  std::string by_http1_;
  std::string by_http2_;
  std::vector<client> clients_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> rounds_ = 0;
  std::thread thread_;
};

/// Serves honest clients while greedy ones do their worst, and says what that took.
void serve_among_greedy(gateway const& with, std::string const& by_http1,
                        std::string const& by_http2,
                        std::vector<std::string> const& honest_requests) {
  auto const ask_all = [&](connection& by) {
    for (auto const& request : honest_requests) {
      by.send(request);
      auto const answer = by.read_response();
      ASSERT_TRUE(answer.status() == 200 || answer.status() == 201) << answer.start_line;
    }
  };
  for (int i = 0; i < 20; ++i) {  // what is made once is not counted as theirs
    auto first = with.connect();
    ask_all(first);
  }
  auto const before = with.memory();
  std::size_t most = 0;
  {
    greedy_clients greedy(with, by_http1, by_http2);
    expect_eventually([&] { return greedy.rounds() > 3; }, "all have asked");
    std::vector<connection> honest;
    for (std::size_t i = 0; i < honest_count; ++i) {
      honest.push_back(with.connect());
    }
    for (int round = 0; round < honest_rounds; ++round) {
      for (auto& each : honest) {
        ask_all(each);
        most = std::max(most, with.memory());
      }
    }
  }
  std::cout << "resident: " << before / mib << " MiB before, at most " << most / mib << " MiB, "
            << with.metric("tidegate_connections_shed_total") << " connections shed\n";
  if (sanitized) {
    return;
  }
  EXPECT_LE(most, memory_max);
  auto const deadline = std::chrono::steady_clock::now() + 60s;
  while (with.memory() > before + before / 2 && std::chrono::steady_clock::now() < deadline) {
    ASSERT_EQ(with.get("/nowhere").status(), 404);
  }
  std::cout << "resident: " << with.memory() / mib << " MiB after\n";
  EXPECT_LE(with.memory(), before + before / 2);
}

/// Of which a page takes nearly a megabyte.
void add_users(scim_client const& client) {
  std::string operations;
  for (int i = 0; i < 400; ++i) {
    operations +=
        (i == 0 ? "" : ",") + std::string(R"({"method":"POST","path":"/Users","bulkId":"b)") +
        std::to_string(i) + R"(","data":)" +
        user("u" + std::to_string(i), R"("displayName":")" + std::string(2000, 'd') + "\"") + "}";
  }
  ASSERT_EQ(
      client
          .post("/Bulk", R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:BulkRequest"],)"
                         R"("Operations":[)" +
                             operations + "]}")
          .status(),
      200);
}

std::string const page = std::string(scim_base) + "/Users?count=1000";

auto page_request() -> std::string {
  return "GET " + page + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer alpha\r\n\r\n";
}

auto page_block() -> std::string {
  return std::string(
             "\x82\x86\x01\x01"
             "a\x04") +
         static_cast<char>(page.size()) + page + literal("authorization", "Bearer alpha");
}

TEST(gateway_memory, serves_others_while_clients_that_read_nothing_ask_for_replays_of_a_megabyte) {
  for (std::string const store : {"memory", "sqlite"}) {
    SCOPED_TRACE(store);
    data_folder const data;
    serving_origin const api([](message const& request) {
      return request.start_line.starts_with("POST")
                 ? response("201 Created", std::string(mib - 1024, 'x'))
                 : response("200 OK", "hello");
    });
    origin flooding;
    gateway const with(
        "data: " + data.path() + "\nstores: {idempotency: " +
            (store == "memory" ? store : "sqlite:" + data.path() + "/keys.db") +
            "}\nupstreams: {api: {servers: [" + api.url() + "]}, flood: {servers: [" +
            flooding.url() +
            "]}}\nroutes:\n  - {match: {path: /flood}, upstream: flood}\n"
            "  - {match: {path: /pay}, upstream: api, idempotency: {mode: required}}\n"
            "  - {match: {path: /open}, upstream: api}\n",
        little_memory());
    auto const replay = post("\"k\"", "{\"a\":1}", "/pay");
    ASSERT_EQ(with.ask(replay).status(), 201);
    auto const block = std::string(
                           "\x83\x86\x01\x09"
                           "a.example") +
                       std::string("\x04\x04/pay", 6) + literal("authorization", "Bearer x") +
                       literal("idempotency-key", "\"k\"");

    // An upstream that says 103 for as long as it is listened to, for a client that reads nothing of it.
    std::vector<connection> flooded;
    std::vector<connection> floods;
    auto const interim = repeated(
        "HTTP/1.1 103 Early Hints\r\nLink: </" + std::string(1000, 'a') + ">; rel=preload\r\n\r\n",
        64);
    for (int i = 0; i < 4; ++i) {
      flooded.push_back(with.connect());
      flooded.back().send("GET /flood HTTP/1.1\r\nHost: a\r\n\r\n");
      floods.push_back(flooding.accept());
    }
    std::atomic<std::size_t> flood_octets = 0;
    std::jthread flood([&](std::stop_token const& stop) {
      std::vector<std::size_t> sent(floods.size());
      while (!stop.stop_requested()) {
        for (std::size_t i = 0; i < floods.size(); ++i) {
          push(floods[i], interim, sent[i]);
          if (sent[i] == interim.size()) {
            flood_octets += std::exchange(sent[i], 0);
          }
        }
        std::this_thread::yield();
      }
    });
    serve_among_greedy(with, repeated(replay, 4000), without_window(block, "{\"a\":1}"),
                       {"GET /open HTTP/1.1\r\nHost: a\r\n\r\n", replay});
    flood.request_stop();
    flood.join();
    std::cout << "interim answers that were read: " << flood_octets / mib << " MiB\n";
    EXPECT_LT(flood_octets, 192 * mib);  // most of it waits in sockets
  }
}

TEST(gateway_memory, answers_all_that_was_asked_once_the_client_reads) {
  data_folder const data;
  serving_origin const api(response("201 Created", std::string(mib - 1024, 'x')));
  gateway const with(keyed_config(api.url(), data));
  auto const replay = post("\"k\"");
  ASSERT_EQ(with.ask(replay).status(), 201);

  auto by_http1 = with.connect();
  (void)by_http1.send_until_blocked(repeated(replay, 20));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(by_http1.read_response().body.size(), mib - 1024);
  }
  by_http1.send(replay);
  EXPECT_EQ(by_http1.read_response().status(), 201);

  auto by_http2 = raw_client(with.connect());
  by_http2.send(settings, 0, 0, std::string_view("\0\4\0\0\0\0", 6));
  auto const block = std::string(
                         "\x83\x86\x01\x09"
                         "a.example") +
                     std::string("\x04\x02/a", 4) + literal("authorization", "Bearer x") +
                     literal("idempotency-key", "\"k\"");
  for (std::uint32_t stream = 1; stream < 40; stream += 2) {
    by_http2.send(headers, 4, stream, block);
    by_http2.send(data_frame, 1, stream, "{\"a\":1}");
  }
  by_http2.send(ping, 0, 0, "12345678");
  (void)by_http2.read(ping);
  by_http2.send(window_update, 0, 0, std::string_view("\x40\0\0\0", 4));
  by_http2.send(settings, 0, 0, std::string_view("\0\4\x40\0\0\0", 6));
  std::size_t octets = 0;
  while (octets < 20 * (mib - 1024)) {
    octets += by_http2.read(data_frame).payload.size();
  }
  EXPECT_EQ(octets, 20 * (mib - 1024));
}

TEST(gateway_memory, ends_requests_and_not_the_process_when_there_is_no_memory) {
  if (sanitized) {
    GTEST_SKIP() << "a sanitizer needs the addresses";
  }
  data_folder const data;
  // So much may wait that there is no memory for it.
  gateway const with(
      scim_config(data, "    max-page-size: 1000\n", "http: {max-buffered: 100GiB}\n"), 2);
  scim_client const client(with);
  add_users(client);
  EXPECT_EQ(with.ask(page_request()).status(), 200);
  auto const before = with.memory();
  rlimit limit{};
  ASSERT_EQ(::prlimit(with.process(), RLIMIT_AS, nullptr, &limit), 0);
  limit.rlim_cur = with.address_space() + 32 * mib;
  ASSERT_EQ(::prlimit(with.process(), RLIMIT_AS, &limit, nullptr), 0);
  {
    greedy_clients const greedy(with, repeated(page_request(), 4000),
                                without_window(page_block(), ""));
    expect_eventually([&] { return greedy.rounds() > 200; }, "all have asked");
  }
  expect_eventually([&] { return with.memory() < 2 * before; }, "it is given back");
  EXPECT_EQ(with.ask(page_request()).status(), 200);
  EXPECT_EQ(with.admin("/healthz").status(), 200);
}

TEST(gateway_memory, closes_those_for_which_most_waits_and_says_so) {
  data_folder const data;
  gateway with(scim_config(data, "    max-page-size: 1000\n", "http: {max-buffered: 1MiB}\n"));
  scim_client const client(with);
  add_users(client);
  auto const little = repeated(
      "GET /scim/v2/Users?count=10 HTTP/1.1\r\nHost: a\r\n"
      "Authorization: Bearer alpha\r\n\r\n",
      1);
  auto honest = with.connect();
  honest.send(little);
  EXPECT_EQ(honest.read_response().status(), 200);
  std::vector<connection> greedy;
  for (int i = 0; i < 10; ++i) {
    greedy.push_back(with.connect());
    greedy.back().send(without_window(page_block(), ""));
  }
  expect_eventually([&] { return with.metric("tidegate_connections_shed_total") >= 8; },
                    "they are closed");
  EXPECT_LE(with.metric("tidegate_buffered_bytes"), 2.0 * mib);
  honest.send(little);
  EXPECT_EQ(honest.read_response().status(), 200);
  std::string said;
  expect_eventually([&] { return (said += with.errors()).contains("http.max-buffered"); },
                    "it is said");
}

TEST(gateway_memory, keeps_descriptors_for_upstreams_and_the_admin_address) {
  serving_origin const api(response("200 OK", "hello"));
  gateway with(proxy_config(api.url()), gateway_options{.shell = "ulimit -n 64"});
  std::vector<connection> idle;
  for (int i = 0; i < 120; ++i) {
    idle.push_back(with.connect());
  }
  expect_eventually(
      [&] {
        return with.metric("tidegate_connections_refused_total{reason=\"max-connections\"}") > 50;
      },
      "those that are too many are closed");
  EXPECT_EQ(with.admin("/healthz").status(), 200);
  // The first ones were taken.
  for (int i = 0; i < 5; ++i) {
    auto& each = idle[static_cast<std::size_t>(i)];
    each.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(each.read_response().status(), 200);
  }
  EXPECT_EQ(with.metric("tidegate_accept_failures_total"), 0);
  EXPECT_THAT(with.errors(), testing::HasSubstr("http.max-connections is 20000, but the limit of "
                                                "open files leaves room for "));
}

}  // namespace
}  // namespace tidegate::e2e
