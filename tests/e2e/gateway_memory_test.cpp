// SPDX-License-Identifier: Apache-2.0
//
// Clients that ask for much and read nothing, and upstreams that send what no client reads:
// neither takes the memory that others need.
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
#include <map>
#include <stdexcept>
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

/// A connection with a window of 0 that asks on so many streams, or on as many as it may.
auto without_window(std::string const& block, std::string_view content, std::uint32_t streams = 128)
    -> std::string {
  std::string out = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  out += frame_of(settings, 0, 0, std::string_view("\0\4\0\0\0\0", 6));
  for (std::uint32_t stream = 1; stream < 2 * streams; stream += 2) {
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

    // An upstream that says 103 for as long as it is listened to, for a client that reads nothing
    // of it.
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

TEST(gateway_memory, serves_others_while_clients_that_read_nothing_ask_for_large_pages) {
  data_folder const data;
  gateway const with(scim_config(data, "    scim: {max-page-size: 1000}\n"), little_memory());
  add_users(scim_client(with));
  serve_among_greedy(with, repeated(page_request(), 4000), without_window(page_block(), ""),
                     {"GET /scim/v2/Users?count=10 HTTP/1.1\r\nHost: a\r\n"
                      "Authorization: Bearer alpha\r\n\r\n",
                      page_request()});
}

TEST(gateway_memory, serves_others_while_an_upstream_takes_nothing_of_what_clients_send) {
  serving_origin const api(response("200 OK", "hello"));
  origin stuck;
  int const little = 4096;  // for the system to keep of what it does not read
  ASSERT_EQ(::setsockopt(stuck.socket(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
  gateway const with("upstreams: {api: " + api.url() + ", stuck: " + stuck.url() +
                         "}\nroutes:\n  - {match: {path: /stuck}, upstream: stuck}\n"
                         "  - {match: {path: /open}, upstream: api}\n",
                     little_memory());
  EXPECT_EQ(with.get("/open").status(), 200);
  auto const before = with.memory();
  constexpr std::size_t clients = sanitized ? 10 : 200;
  auto const upload = "POST /stuck HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n" +
                      std::string(9 * mib, 'x');
  std::vector<std::pair<connection, std::size_t>> uploads;
  std::vector<connection> taken;
  for (std::size_t i = 0; i < clients; ++i) {
    uploads.emplace_back(with.connect(), 0);
    push(uploads.back().first, upload, uploads.back().second);
    taken.push_back(stuck.accept());
  }
  std::size_t most = 0;
  auto honest = with.connect();
  for (int round = 0; round < 50; ++round) {
    for (auto& [by, sent] : uploads) {
      push(by, upload, sent);
    }
    honest.send("GET /open HTTP/1.1\r\nHost: a\r\n\r\n");
    ASSERT_EQ(honest.read_response().status(), 200);
    most = std::max(most, with.memory());
    EXPECT_LE(with.metric("tidegate_buffered_bytes"), 64.0 * mib);
  }
  std::cout << "resident: " << before / mib << " MiB before, at most " << most / mib << " MiB, "
            << with.metric("tidegate_buffered_bytes") / mib << " MiB buffered\n";
  EXPECT_GT(with.metric("tidegate_buffered_bytes"), 1.0 * mib);
  if (!sanitized) {
    EXPECT_LE(most, memory_max);
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
  serving_origin const api(response("200 OK", std::string(64 * 1024, 'x')));
  // So much may wait that there is no memory for it.
  gateway const with(
      scim_config(data, "    scim: {max-page-size: 1000}\n",
                  "http: {max-buffered: 100GiB}\nupstreams: {api: " + api.url() + "}\n") +
          "  - {match: {path: /large}, upstream: api}\n",
      2);
  scim_client const client(with);
  add_users(client);
  EXPECT_EQ(with.ask(page_request()).status(), 200);
  EXPECT_EQ(with.get("/large").status(), 200);
  auto const before = with.memory();
  rlimit limit{};
  ASSERT_EQ(::prlimit(with.process(), RLIMIT_AS, nullptr, &limit), 0);
  limit.rlim_cur = with.address_space() + 4 * mib;
  ASSERT_EQ(::prlimit(with.process(), RLIMIT_AS, &limit, nullptr), 0);
  {
    greedy_clients const pages(with, repeated(page_request(), 4000),
                               without_window(page_block(), ""));
    greedy_clients const more_pages(with, repeated(page_request(), 4000),
                                    without_window(page_block(), ""));
    greedy_clients const forwarded(with, repeated("GET /large HTTP/1.1\r\nHost: a\r\n\r\n", 4000),
                                   without_window(std::string("\x82\x86\x01\x01"
                                                              "a\x04\x06/large"),
                                                  ""));
    // A connection to the admin address may be one of those that end.
    expect_eventually(
        [&] {
          try {
            return with.metric("tidegate_out_of_memory_total") > 0;
          } catch (std::runtime_error const&) {
            return false;
          }
        },
        "there is no memory");
  }
  // Each thread keeps some exchanges, buffers and up to 4 MiB of its heap for the next requests.
  expect_eventually([&] { return with.memory() < before + 24 * mib; }, "it is given back");
  EXPECT_EQ(with.ask(page_request()).status(), 200);
  EXPECT_EQ(with.get("/large").status(), 200);
  EXPECT_EQ(with.admin("/healthz").status(), 200);
}

TEST(gateway_memory, closes_those_for_which_most_waits_and_says_so) {
  data_folder const data;
  gateway with(
      scim_config(data, "    scim: {max-page-size: 1000}\n", "http: {max-buffered: 1MiB}\n"));
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

TEST(gateway_memory, keeps_descriptors_for_the_admin_address_when_streams_take_all_of_upstreams) {
  origin slow;
  gateway with(proxy_config(slow.url()), gateway_options{.shell = "ulimit -n 256"});
  std::vector<connection> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(with.connect());
    clients.back().send(without_window(std::string("\x82\x86\x84\x01\x01"
                                                   "a"),
                                       ""));
  }
  expect_eventually(
      [&] { return with.metric("tidegate_requests_total{route=\"all\",status=\"503\"}") > 100; },
      "those that are too many are refused");
  EXPECT_EQ(with.admin("/healthz").status(), 200);
  EXPECT_THAT(with.errors_until("the most that the limit of open files allows"),
              testing::HasSubstr("requests that need another one get 503"));
  auto const refused = with.get("/");
  EXPECT_EQ(refused.status(), 503);
  EXPECT_EQ(refused.field("Retry-After"), "1");
  clients.clear();
  auto honest = with.connect();
  honest.send("GET /honest HTTP/1.1\r\nHost: a\r\n\r\n");
  for (;;) {
    auto taken = slow.accept();
    std::string first;
    try {
      first = taken.read_request().start_line;
    } catch (std::exception const&) {
      continue;  // one that was given up
    }
    if (first.starts_with("GET /honest")) {
      taken.send(response("200 OK", "hello"));
      break;
    }
  }
  EXPECT_EQ(honest.read_response().status(), 200);
}

/// Reads answers to several requests at once, a frame at a time, and asks again for each that is
/// complete.
class slow_reader {
 public:
  slow_reader(gateway const& with, std::size_t answer_octets)
      : client_(with.connect()), answer_octets_(answer_octets) {
    for (int i = 0; i < 7; ++i) {
      ask();
    }
  }

  /// Throws when the connection was closed.
  void read_frame() {
    auto const got = client_.read(data_frame);
    auto const octets = static_cast<std::uint32_t>(got.payload.size());
    if (octets == 0) {
      return;
    }
    std::string update;
    for (auto const shift : {24U, 16U, 8U, 0U}) {
      update.push_back(static_cast<char>(octets >> shift));
    }
    client_.send(window_update, 0, 0, update);
    if ((received_[got.stream] += octets) < answer_octets_) {
      client_.send(window_update, 0, got.stream, update);
    } else {
      ++answers_;
      ask();
    }
  }
  [[nodiscard]] auto answers() const -> int { return answers_; }

 private:
  void ask() { client_.get(std::exchange(next_stream_, next_stream_ + 2)); }

  raw_client client_;
  std::size_t answer_octets_;
  std::map<std::uint32_t, std::size_t> received_;
  std::uint32_t next_stream_ = 1;
  int answers_ = 0;
};

TEST(gateway_memory, closes_no_client_that_reads_while_there_are_others_that_do_not) {
  constexpr std::size_t answer_octets = 60'000;
  constexpr double buffered_max = 4.0 * mib;
  serving_origin const api(response("200 OK", std::string(answer_octets, 'x')));
  gateway const with(proxy_config(api.url(), "http: {max-buffered: 4MiB}\n"), 2);
  auto const block = std::string(
      "\x82\x86\x84\x41\x01"
      "a");
  std::vector<connection> greedy;
  auto const add_greedy = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      greedy.push_back(with.connect());
      greedy.back().send(without_window(block, "", 4));
    }
  };
  auto const buffered = [&] { return with.metric("tidegate_buffered_bytes"); };
  add_greedy(10);
  expect_eventually([&] { return buffered() >= 40.0 * answer_octets; }, "all wait");
  // More waits for each of these than for one of those that read nothing.
  std::vector<slow_reader> honest;
  for (int i = 0; i < 3; ++i) {
    honest.emplace_back(with, answer_octets);
  }
  auto const read_frames = [&] {
    for (auto& each : honest) {
      each.read_frame();
    }
  };
  auto const begun = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begun < 2s) {
    read_frames();
  }
  EXPECT_EQ(with.metric("tidegate_connections_shed_total"), 0);
  for (int i = 0; i < 10; ++i) {
    add_greedy(1);
    read_frames();
  }
  expect_eventually(
      [&] {
        read_frames();
        return with.metric("tidegate_connections_shed_total") >= 6 && buffered() <= buffered_max;
      },
      "those that read nothing are closed, and the budget holds");
  for (auto& each : honest) {
    auto const before = each.answers();
    while (each.answers() < before + 10) {
      each.read_frame();
    }
  }
  EXPECT_LE(buffered(), buffered_max);
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
  EXPECT_THAT(with.errors_until("http.max-connections is 20000"),
              testing::HasSubstr("but the limit of open files allows only "));
}

}  // namespace
}  // namespace tidegate::e2e
