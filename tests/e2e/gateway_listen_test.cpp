// SPDX-License-Identifier: Apache-2.0
//
// How connections come to the gateway: PROXY protocol, sockets that are passed, paths, the bound on
// all connections, and what a service manager is told.
#include "gateway.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::e2e {
namespace {

using namespace std::string_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

constexpr std::string_view get_request = "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n";
std::string const echo = "routes: [{name: all, match: {path: /**}, service: echo}]\n";

/// A folder that goes with the test.
class folder {
 public:
  folder() {
    auto pattern = (std::filesystem::temp_directory_path() / "tidegate_listen_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("mkdtemp failed");
    }
    path_ = pattern;
  }
  folder(folder const&) = delete;
  auto operator=(folder const&) -> folder& = delete;
  ~folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] auto file(std::string const& name) const -> std::string {
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

auto path_address(std::string const& path) -> sockaddr_un {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  std::memcpy(out.sun_path, path.c_str(), path.size() + 1);
  return out;
}

auto connect_to_path(std::string const& path) -> connection {
  descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto const address = path_address(path);
  if (::connect(socket.get(), reinterpret_cast<sockaddr const*>(&address), sizeof address) != 0) {
    throw std::runtime_error("cannot connect to " + path);
  }
  return connection(std::move(socket));
}

// ---- PROXY protocol ----

std::string const trusting = "trusted-proxies: [127.0.0.1/32]\n";
gateway_options const behind_proxy{.listen = "{address: \"127.0.0.1:0\", proxy-protocol: true}"};
std::string const signature = "\r\n\r\n\0\r\nQUIT\n"s;
/// Version 2, PROXY, TCP over IPv4: 203.0.113.7:40000 to 192.0.2.1:443.
std::string const version_2 =
    signature + "\x21\x11\x00\x0c\xcb\x00\x71\x07\xc0\x00\x02\x01\x9c\x40\x01\xbb"s;
/// Version 2, LOCAL.
std::string const local_2 = signature + "\x20\x00\x00\x00"s;

/// The client address that the upstream gets when a connection begins with `bytes`.
auto client_behind(gateway const& with, origin& api, std::string_view bytes) -> std::string {
  auto client = with.connect();
  client.send(bytes);
  client.send("GET /a HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
  auto server = api.accept();
  auto const request = server.read_request();
  server.send(response("200 OK", "", "Connection: close\r\n"));
  EXPECT_EQ(client.read_response().status(), 200);
  return request.field("X-Forwarded-For");
}

TEST(gateway_proxy_protocol, tells_the_upstream_who_is_behind_the_proxy) {
  origin api;
  gateway const with(proxy_config(api.url(), trusting), behind_proxy);
  EXPECT_EQ(client_behind(with, api, "PROXY TCP4 203.0.113.9 192.0.2.1 40000 443\r\n"),
            "203.0.113.9");
  EXPECT_EQ(client_behind(with, api, "PROXY TCP6 2001:db8::9 2001:db8::1 40000 443\r\n"),
            "2001:db8::9");
  EXPECT_EQ(client_behind(with, api, version_2), "203.0.113.7");
}

TEST(gateway_proxy_protocol, keeps_the_address_of_the_socket_when_the_proxy_speaks_for_itself) {
  origin api;
  gateway const with(proxy_config(api.url(), trusting), behind_proxy);
  EXPECT_EQ(client_behind(with, api, "PROXY UNKNOWN\r\n"), "127.0.0.1");
  EXPECT_EQ(client_behind(with, api, local_2), "127.0.0.1");
}

TEST(gateway_proxy_protocol, takes_a_header_that_comes_byte_by_byte) {
  origin api;
  gateway const with(proxy_config(api.url(), trusting), behind_proxy);
  auto client = with.connect();
  for (char const c : version_2 + std::string(get_request)) {
    client.send(std::string_view(&c, 1));
  }
  auto server = api.accept();
  EXPECT_EQ(server.read_request().field("X-Forwarded-For"), "203.0.113.7");
}

TEST(gateway_proxy_protocol, has_a_quota_for_each_client_behind_the_proxy) {
  gateway const with(trusting +
                         "policies: {p: {quota: 1, window: 1h, partition: [client-ip]}}\n"
                         "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n",
                     behind_proxy);
  auto const ask = [&](std::string_view header) {
    auto client = with.connect();
    client.send(header);
    client.send(get_request);
    return client.read_response().status();
  };
  EXPECT_EQ(ask("PROXY TCP4 203.0.113.1 192.0.2.1 1 2\r\n"), 200);
  EXPECT_EQ(ask("PROXY TCP4 203.0.113.1 192.0.2.1 3 2\r\n"), 429);
  EXPECT_EQ(ask("PROXY TCP4 203.0.113.2 192.0.2.1 1 2\r\n"), 200);
}

TEST(gateway_proxy_protocol, serves_all_requests_of_a_connection_by_one_header) {
  gateway const with(trusting + echo, behind_proxy);
  auto client = with.connect();
  client.send(version_2 + std::string(get_request) + std::string(get_request));
  EXPECT_EQ(client.read_response().status(), 200);
  EXPECT_EQ(client.read_response().status(), 200);
}

TEST(gateway_proxy_protocol, refuses_whom_it_does_not_trust) {
  gateway const with(trusting + echo, behind_proxy);
  auto client = with.connect("127.0.0.2");
  (void)client.send_until_blocked(version_2 + std::string(get_request));
  EXPECT_TRUE(client.is_closed());
  auto plain = with.connect("127.0.0.2");
  EXPECT_TRUE(plain.is_closed());
  EXPECT_EQ(with.metric("tidegate_connections_refused_total{reason=\"untrusted-proxy\"}"), 2);
}

TEST(gateway_proxy_protocol, closes_without_an_answer_what_begins_otherwise) {
  gateway const with(trusting + echo, behind_proxy);
  std::vector<std::string> const wrong{
      std::string(get_request),
      "PROXY TCP4 203.0.113.999 192.0.2.1 1 2\r\n",
      "PROXY TCP4 203.0.113.1 192.0.2.1 1\r\n",
      "PROXY UNKNOWN " + std::string(200, 'x'),
      signature + "\x11\x11\x00\x0c"s,
      signature + "\x21\x11\xff\xff"s,
      "\x16\x03\x01\x02\x00\x01",
  };
  for (auto const& bytes : wrong) {
    auto client = with.connect();
    client.send(bytes);
    EXPECT_TRUE(client.is_closed()) << bytes;
  }
  EXPECT_EQ(with.metric("tidegate_connections_refused_total{reason=\"proxy-header\"}"),
            static_cast<double>(wrong.size()));
  EXPECT_EQ(with.metric("tidegate_connections_open"), 0);
}

TEST(gateway_proxy_protocol, closes_when_the_header_is_late_or_cut) {
  gateway const with("http: {header-timeout: 100ms}\n" + trusting + echo, behind_proxy);
  auto silent = with.connect();
  EXPECT_TRUE(silent.is_closed());
  auto slow = with.connect();
  slow.send("PROXY TCP4 203");
  EXPECT_TRUE(slow.is_closed());
  auto cut = with.connect();
  cut.send("PROXY TCP4 203");
  cut.shut_down_sending();
  EXPECT_TRUE(cut.is_closed());
  EXPECT_EQ(with.metric("tidegate_connections_refused_total{reason=\"proxy-header\"}"), 3);
}

TEST(gateway_proxy_protocol, counts_who_has_not_said_its_header_among_the_connections) {
  gateway const with("http: {max-connections: 1}\n" + trusting + echo, behind_proxy);
  auto waiting = with.connect();
  waiting.send("PROXY ");
  expect_eventually([&] { return with.metric("tidegate_connections_open") == 1; }, "it is there");
  auto other = with.connect();
  EXPECT_TRUE(other.is_closed());
  waiting.send("UNKNOWN\r\n" + std::string(get_request));
  EXPECT_EQ(waiting.read_response().status(), 200);
  EXPECT_EQ(with.metric("tidegate_connections_open"), 1);
}

TEST(gateway_proxy_protocol, believes_the_fields_of_a_client_that_is_itself_a_trusted_proxy) {
  origin api;
  gateway const with(proxy_config(api.url(), "trusted-proxies: [127.0.0.1/32, 10.0.0.0/8]\n"),
                     behind_proxy);
  auto client = with.connect();
  client.send(
      "PROXY TCP4 10.0.0.1 192.0.2.1 1 2\r\n"
      "GET /a HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n");
  auto server = api.accept();
  EXPECT_EQ(server.read_request().field("X-Forwarded-For"), "198.51.100.1, 10.0.0.1");
}

TEST(gateway_proxy_protocol, comes_before_tls_and_http2) {
  folder const files;
  auto const made =
      run({"/usr/bin/env", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
           "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
           "-keyout", files.file("key.pem"), "-out", files.file("cert.pem")});
  ASSERT_EQ(made.status, 0) << made.err;
  gateway const secure(
      trusting + echo,
      {.listen = "{address: \"127.0.0.1:0\", proxy-protocol: true, tls: {certificate: \"" +
                 files.file("cert.pem") + "\", key: \"" + files.file("key.pem") + "\"}}"});
  gateway const clear(trusting + echo, behind_proxy);
  auto const curl = [](std::vector<std::string> const& arguments) {
    std::vector<std::string> all{"/usr/bin/env", "curl", "-sSik",
                                 "--max-time",   "10",   "--haproxy-protocol"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run(all).out;
  };
  auto const https = "https://" + secure.authority() + "/";
  EXPECT_THAT(curl({"--http1.1", https}), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(curl({"--http2", https}), StartsWith("HTTP/2 200"));
  auto const http = "http://" + clear.authority() + "/";
  EXPECT_THAT(curl({http}), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(curl({"--http2-prior-knowledge", http}), StartsWith("HTTP/2 200"));
}

// ---- the bound on all connections ----

TEST(gateway_connections, are_bounded_over_all_workers_together) {
  constexpr int bound = 8;
  gateway const with("http: {max-connections: " + std::to_string(bound) + "}\n" + echo,
                     {.workers = 4});
  std::vector<connection> open;
  int refused = 0;
  for (int i = 0; i < bound + 12; ++i) {
    auto client = with.connect();
    try {
      client.send(get_request);
      EXPECT_EQ(client.read_response().status(), 200);
      open.push_back(std::move(client));
    } catch (std::runtime_error const&) {
      ++refused;
    }
  }
  EXPECT_EQ(open.size(), bound);
  EXPECT_EQ(refused, 12);
  EXPECT_EQ(with.metric("tidegate_connections_refused_total{reason=\"max-connections\"}"), 12);
  open.clear();
  expect_eventually([&] { return with.metric("tidegate_connections_open") == 0; }, "all are gone");
  EXPECT_EQ(with.get("/a").status(), 200);
}

// ---- sockets that are passed ----

TEST(gateway_activation, serves_through_a_socket_that_it_was_passed) {
  origin const bound;
  gateway const with(
      echo, {.workers = 4, .listen = "\"" + bound.authority() + "\"", .passed = {bound.socket()}});
  EXPECT_EQ(with.authority(), bound.authority());
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(with.get("/a").status(), 200);
  }
}

TEST(gateway_activation, loses_no_connection_while_none_is_accepted) {
  origin const bound;
  auto const early = bound.begin_to_connect();
  for (int i = 0; i < 2; ++i) {
    gateway const with(
        echo,
        {.workers = 2, .listen = "\"" + bound.authority() + "\"", .passed = {bound.socket()}});
    EXPECT_EQ(with.get("/a").status(), 200);
  }
  auto const between = bound.begin_to_connect();
  gateway const with(echo, {.listen = "\"" + bound.authority() + "\"", .passed = {bound.socket()}});
  expect_eventually([&] { return with.metric("tidegate_connections_accepted_total") == 1; },
                    "what came between two gateways is served by the second");
}

TEST(gateway_activation, binds_the_addresses_that_it_was_passed_nothing_for) {
  origin const bound;
  gateway const with(echo, {.listen = "[\"127.0.0.1:0\", \"" + bound.authority() + "\"]",
                            .passed = {bound.socket()}});
  EXPECT_NE(with.authority(), bound.authority());
  EXPECT_EQ(with.get("/a").status(), 200);
  auto client = connection(bound.begin_to_connect());
  client.send(get_request);
  EXPECT_EQ(client.read_response().status(), 200);
}

/// What the gateway says when it does not start.
auto fault_of(gateway_options const& options) -> std::string {
  try {
    gateway const with(echo, options);
  } catch (std::runtime_error const& error) {
    return error.what();
  }
  return "it started";
}

TEST(gateway_activation, does_not_start_with_a_socket_that_no_address_is_found_for) {
  origin const bound;
  EXPECT_THAT(fault_of({.passed = {bound.socket()}}),
              HasSubstr("a socket (first) was passed that is bound to " + bound.authority() +
                        ", which is neither an address of listen nor admin"));
  origin const other;
  EXPECT_THAT(fault_of({.listen = "\"" + bound.authority() + "\"",
                        .passed = {bound.socket(), other.socket()}}),
              HasSubstr("a socket (second) was passed that is bound to " + other.authority()));
}

TEST(gateway_activation, does_not_start_with_something_that_does_not_listen) {
  descriptor const datagrams(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  EXPECT_THAT(fault_of({.passed = {datagrams.get()}}),
              HasSubstr("descriptor 3 (first) of LISTEN_FDS is not a listening stream socket"));
  auto const silent = origin::refusing();
  EXPECT_THAT(fault_of({.passed = {silent.socket()}}), HasSubstr("not a listening stream socket"));
}

TEST(gateway_activation, ignores_sockets_that_were_passed_to_another_process) {
  gateway const with(echo, {.environment = {"LISTEN_PID=1", "LISTEN_FDS=1"}});
  EXPECT_EQ(with.get("/a").status(), 200);
}

// ---- paths ----

TEST(gateway_paths, are_served_by_all_workers_and_found_free_after_a_crash) {
  folder const files;
  auto const path = files.file("socket");
  gateway_options const options{.workers = 4, .listen = "[\"127.0.0.1:0\", \"unix:" + path + "\"]"};
  for (int i = 0; i < 2; ++i) {
    gateway with(echo, options);
    for (int j = 0; j < 8; ++j) {
      auto client = connect_to_path(path);
      client.send(get_request);
      EXPECT_EQ(client.read_response().status(), 200);
    }
    EXPECT_THAT(fault_of(options), HasSubstr("cannot listen on unix:" + path));
    with.signal(SIGKILL);
    EXPECT_EQ(with.wait(), 128 + SIGKILL);
  }
}

// ---- what a service manager is told ----

TEST(gateway_service, says_when_it_is_ready_reloads_and_stops) {
  folder const files;
  descriptor const manager(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  auto const address = path_address(files.file("notify"));
  ASSERT_EQ(::bind(manager.get(), reinterpret_cast<sockaddr const*>(&address), sizeof address), 0);
  timeval const bound{patience.count() / 1000, 0};
  ::setsockopt(manager.get(), SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
  auto const told = [&] {
    std::array<char, 256> text{};
    auto const size = ::recv(manager.get(), text.data(), text.size(), 0);
    return std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  };
  gateway with(echo, {.environment = {"NOTIFY_SOCKET=" + files.file("notify")}});
  EXPECT_EQ(told(), "READY=1");
  EXPECT_EQ(with.reload(echo), "the configuration was applied");
  EXPECT_THAT(told(), MatchesRegex("RELOADING=1\nMONOTONIC_USEC=[0-9]+"));
  EXPECT_EQ(told(), "READY=1");
  EXPECT_EQ(with.reload("routes: ["), "the configuration was not applied: it has faults");
  EXPECT_THAT(told(), StartsWith("RELOADING=1\n"));
  EXPECT_EQ(told(), "READY=1");
  with.signal(SIGTERM);
  EXPECT_EQ(told(), "STOPPING=1");
  EXPECT_EQ(with.wait(), 0);
}

}  // namespace
}  // namespace tidegate::e2e
