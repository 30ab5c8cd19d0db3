// SPDX-License-Identifier: Apache-2.0
//
// Servers that come and go: which one gets a request, and what becomes of one that fails.
#include "gateway.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <set>
#include <stdexcept>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr std::string_view get_request = "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n";

auto upstream(std::string const& servers, std::string const& more = "") -> std::string {
  return "upstreams: {api: {servers: [" + servers + "]" + more +
         "}}\nroutes: [{match: {path: /**}, upstream: api}]\n";
}

auto up_of(std::string const& server) -> std::string {
  return "tidegate_upstream_up{upstream=\"api\",server=\"" + server + "\"}";
}

// ---- which one ----

TEST(gateway_servers, get_requests_by_their_weight) {
  serving_origin const three(response("200 OK", "three"));
  serving_origin const one(response("200 OK", "one"));
  serving_origin const none(response("200 OK", "none"));
  gateway const with(upstream("{url: \"" + three.url() + "\", weight: 3}, \"" + one.url() +
                              "\", {url: \"" + none.url() + "\", weight: 0}"));
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(with.get("/").status(), 200);
  }
  EXPECT_EQ(three.requests(), 30U);
  EXPECT_EQ(one.requests(), 10U);
  EXPECT_EQ(none.requests(), 0U);
}

TEST(gateway_servers, get_requests_in_turn_where_that_is_wanted) {
  serving_origin const one(response("200 OK", "one"));
  serving_origin const two(response("200 OK", "two"));
  gateway const with(
      upstream("\"" + one.url() + "\", \"" + two.url() + "\"", ", balance: round-robin"));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(with.get("/").body, i % 2 == 0 ? "one" : "two");
  }
}

TEST(gateway_servers, get_the_same_value_of_a_header_always) {
  serving_origin const one(response("200 OK", "one"));
  serving_origin const two(response("200 OK", "two"));
  gateway const with(upstream("\"" + one.url() + "\", \"" + two.url() + "\"",
                              ", balance: \"hash:header:x-user\""));
  std::set<std::string> seen;
  for (int user = 0; user < 20; ++user) {
    auto const line = "X-User: " + std::to_string(user) + "\r\n";
    auto const first = with.get("/", line).body;
    seen.insert(first);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(with.get("/", line).body, first);
    }
  }
  EXPECT_EQ(seen.size(), 2U) << "both have users";
}

TEST(gateway_servers, are_asked_below_the_path_of_their_url) {
  serving_origin const api(
      [](message const& request) { return response("200 OK", request.start_line); });
  gateway const with(upstream("\"" + api.url() + "/base/v2/\""));
  EXPECT_EQ(with.get("/a?b=c").body, "GET /base/v2/a?b=c HTTP/1.1");
  EXPECT_EQ(with.get("/").body, "GET /base/v2/ HTTP/1.1");
}

TEST(gateway_servers, may_listen_on_a_path) {
  auto const path = std::filesystem::temp_directory_path() /
                    ("tidegate_servers_" + std::to_string(::getpid()) + ".sock");
  descriptor const listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ::unlink(path.c_str());
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listening.get(), 8), 0);
  gateway const with(upstream("\"unix:" + path.string() + "\""));
  auto client = with.connect();
  client.send(get_request);
  connection server(descriptor(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  EXPECT_EQ(server.read_request().start_line, "GET /a HTTP/1.1");
  server.send(response("200 OK", "by a path"));
  EXPECT_EQ(client.read_response().body, "by a path");
  EXPECT_EQ(with.metric(up_of("unix:" + path.string())), 1);
  ::unlink(path.c_str());
}

TEST(gateway_servers, of_several_upstreams_share_the_requests_of_a_route) {
  serving_origin const stable(response("200 OK", "stable"));
  serving_origin const canary(response("200 OK", "canary"));
  serving_origin const idle(response("200 OK", "idle"));
  gateway const with("upstreams: {stable: \"" + stable.url() + "\", canary: \"" + canary.url() +
                     "\", idle: \"" + idle.url() +
                     "\"}\nroutes: [{match: {path: /**}, upstream: {stable: 50, canary: 50, idle: "
                     "0}}]\n");
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(with.get("/").status(), 200);
  }
  EXPECT_EQ(stable.requests() + canary.requests(), 100U);
  EXPECT_GT(stable.requests(), 10U);
  EXPECT_GT(canary.requests(), 10U);
  EXPECT_EQ(idle.requests(), 0U);
}

/// Sends the last bytes and the end in one piece, so that neither is seen without the other.
void send_and_close(connection& server, std::string_view bytes) {
  int const yes = 1;
  ASSERT_EQ(::setsockopt(server.socket(), IPPROTO_TCP, TCP_CORK, &yes, sizeof yes), 0);
  server.send(bytes);
  server.close();
}

TEST(gateway_servers, that_break_a_response_off_at_once_are_answered_with_502) {
  origin api;
  gateway const with(upstream("\"" + api.url() + "\""));
  auto client = with.connect();
  for (std::string_view const broken :
       {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhel",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n"}) {
    client.send(get_request);
    auto server = api.accept();
    (void)server.read_request();
    send_and_close(server, broken);
    EXPECT_EQ(client.read_response().status(), 502) << broken;
  }
  client.send(get_request);
  auto server = api.accept();
  (void)server.read_request();
  send_and_close(server, "HTTP/1.1 200 OK\r\n\r\nall of it");
  EXPECT_EQ(client.read_response().body, "all of it") << "whose end is that of the connection";
}

/// `openssl s_server` on a free port, which asks for a certificate.
class asking_server {
 public:
  explicit asking_server(std::string const& folder) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) {
      throw std::runtime_error("no pipe");
    }
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(ends[1], 1);
      ::close(0);  // which it would read
      ::close(ends[0]);
      auto const certificate = folder + "/cert.pem";
      auto const key = folder + "/key.pem";
      ::execlp("openssl", "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert",
               certificate.c_str(), "-key", key.c_str(), "-CAfile", certificate.c_str(), "-Verify",
               "1", "-verify_return_error", "-www", nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    output_ = descriptor(ends[0]);
    std::string said;
    while (!said.ends_with('\n') || said.find("ACCEPT") == std::string::npos) {
      char c = 0;
      if (::read(output_.get(), &c, 1) != 1) {
        throw std::runtime_error("openssl says " + said);
      }
      said += c;
    }
    port_ = said.substr(said.rfind(':') + 1);
    port_.pop_back();
  }
  asking_server(asking_server const&) = delete;
  auto operator=(asking_server const&) -> asking_server& = delete;
  ~asking_server() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  [[nodiscard]] auto url() const -> std::string { return "https://127.0.0.1:" + port_; }

 private:
  descriptor output_{-1};
  std::string port_;
  pid_t process_ = -1;
};

TEST(gateway_servers, that_ask_for_a_certificate_are_shown_one) {
  auto pattern = (std::filesystem::temp_directory_path() / "tidegate_shown_XXXXXX").string();
  std::string const folder = ::mkdtemp(pattern.data());
  auto const made = run({"/usr/bin/env", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                         "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                         "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                         folder + "/key.pem", "-out", folder + "/cert.pem"});
  ASSERT_EQ(made.status, 0) << made.err;
  {
    asking_server const api(folder);
    auto const tls = [&](std::string const& more) {
      return upstream("\"" + api.url() + "\"", ", tls: {ca: " + folder + "/cert.pem" + more + "}");
    };
    gateway const without(tls(""));
    EXPECT_EQ(without.get("/").status(), 502);
    gateway const with(tls(", certificate: " + folder + "/cert.pem, key: " + folder + "/key.pem"));
    auto client = with.connect();
    client.send(get_request);
    EXPECT_EQ(client.read_head().status(), 200);
  }
  std::filesystem::remove_all(folder);
}

// ---- names ----

/// dnsmasq on a free port, whose names a test writes.
class name_server {
 public:
  /// They are good for so many seconds.
  explicit name_server(int time_to_live = 1) : time_to_live_(time_to_live), port_(free_port()) {
    auto folder = (std::filesystem::temp_directory_path() / "tidegate_names_XXXXXX").string();
    folder_ = ::mkdtemp(folder.data());
    write("");
    for (int i = 0; i < 10; ++i) {
      start();
      if (answers()) {  // before that SIGHUP would end it
        return;
      }
      stop();
      port_ = free_port();  // another program has it by now
    }
    throw std::runtime_error("dnsmasq does not start");
  }
  name_server(name_server const&) = delete;
  auto operator=(name_server const&) -> name_server& = delete;
  ~name_server() {
    stop();
    std::filesystem::remove_all(folder_);
  }
  [[nodiscard]] static auto is_installed() -> bool {
    return ::access("/usr/sbin/dnsmasq", X_OK) == 0;
  }
  /// `resolve` for an upstream.
  [[nodiscard]] auto resolve(std::string const& bounds = "min: 100ms") const -> std::string {
    return ", resolve: {" + bounds + ", server: \"127.0.0.1:" + std::to_string(port_) + "\"}";
  }
  void write(std::string const& hosts) {
    std::ofstream(file() + ".new") << hosts;
    std::filesystem::rename(file() + ".new", file());
    if (process_ > 0) {
      ::kill(process_, SIGHUP);
    }
  }
  void stop() {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(std::exchange(process_, -1), nullptr, 0);
    }
  }

 private:
  [[nodiscard]] auto file() const -> std::string { return folder_ + "/hosts"; }
  void start() {
    process_ = ::fork();
    if (process_ == 0) {
      auto const port = "--port=" + std::to_string(port_);
      auto const hosts = "--addn-hosts=" + file();
      auto const good_for = "--local-ttl=" + std::to_string(time_to_live_);
      ::execl("/usr/sbin/dnsmasq", "dnsmasq", "--keep-in-foreground", "--no-resolv", "--no-hosts",
              "--no-poll", ::geteuid() == 0 ? "--user=root" : "--no-daemon", "--local=/test/",
              good_for.c_str(), "--conf-file=/dev/null", "--listen-address=127.0.0.1",
              "--bind-interfaces", "--pid-file=", port.c_str(), hosts.c_str(), nullptr);
      ::_exit(127);
    }
  }
  /// Asks for `a` until there is an answer, or the program has ended.
  [[nodiscard]] auto answers() -> bool {
    descriptor const socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    timeval const pause{0, 20'000};
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &pause, sizeof pause);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = ::htons(port_);
    to.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    using namespace std::string_literals;
    auto const question = "\0\1\1\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\1"s;
    while (::waitpid(process_, nullptr, WNOHANG) == 0) {
      std::array<char, 512> answer{};
      if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 &&
          ::send(socket.get(), question.data(), question.size(), 0) > 0 &&
          ::recv(socket.get(), answer.data(), answer.size(), 0) > 0) {
        return true;
      }
    }
    process_ = -1;  // it was waited for
    return false;
  }
  /// For datagrams; it is given back, and no other test takes one of these.
  [[nodiscard]] static auto free_port() -> std::uint16_t {
    descriptor const socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket.get(), any, size) != 0 || ::getsockname(socket.get(), any, &size) != 0) {
      throw std::runtime_error("no port is free");
    }
    return ::ntohs(address.sin_port);
  }

  int time_to_live_;
  std::uint16_t port_;
  std::string folder_;
  pid_t process_ = -1;
};

TEST(gateway_names, are_looked_up_again_and_all_their_addresses_are_used) {
  if (!name_server::is_installed()) {
    GTEST_SKIP() << "there is no dnsmasq";
  }
  // One port on three addresses of the loop.
  serving_origin const api([](message const&) { return response("200 OK", "well"); });
  auto const port = api.url().substr(api.url().rfind(':'));
  name_server names;
  names.write("127.0.0.1 api.test\n127.0.0.2 api.test\n");
  auto const url = "http://api.test" + port;
  gateway with(upstream("\"" + url + "\"", names.resolve() + ", outlier: off"));
  expect_eventually([&] { return with.metric("tidegate_name_addresses{name=\"api.test\"}") == 2; },
                    "both are known");
  EXPECT_EQ(with.metric(up_of(url + "#127.0.0.1")), 1);
  EXPECT_EQ(with.metric(up_of(url + "#127.0.0.2")), 1);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(with.get("/").status(), 200) << "nothing listens on 127.0.0.2, so it is sent again";
  }
  names.write("127.0.0.1 api.test\n::1 api.test\n");
  expect_eventually([&] { return with.metric(up_of(url + "#::1")) == 1; }, "the new one is known");
  EXPECT_EQ(with.metric(up_of(url + "#127.0.0.2")), 0) << "the old one is not";
}

TEST(gateway_names, that_cannot_be_looked_up_keep_their_last_addresses) {
  if (!name_server::is_installed()) {
    GTEST_SKIP() << "there is no dnsmasq";
  }
  serving_origin const api(response("200 OK", "well"));
  auto const port = api.url().substr(api.url().rfind(':'));
  name_server names;
  names.write("127.0.0.1 api.test\n");
  gateway with(upstream("\"http://api.test" + port + "\"", names.resolve()));
  expect_eventually([&] { return with.get("/").status() == 200; }, "the name is known");
  names.write("");
  (void)with.errors_until("the name api.test cannot be looked up");
  EXPECT_EQ(with.get("/").status(), 200);
  // A thread of its own writes the log and then what metrics read.
  auto const is_up = [&] { return with.metric("tidegate_name_up{name=\"api.test\"}") == 1; };
  expect_eventually([&] { return !is_up(); }, "the metric says that it cannot be looked up");
  names.write("127.0.0.1 api.test\n");
  (void)with.errors_until("the name api.test can be looked up again");
  expect_eventually(is_up, "the metric says that it can be looked up");
}

TEST(gateway_names, that_never_were_looked_up_get_503_and_do_not_stop_the_start) {
  if (!name_server::is_installed()) {
    GTEST_SKIP() << "there is no dnsmasq";
  }
  serving_origin const api(response("200 OK", "well"));
  auto const port = api.url().substr(api.url().rfind(':'));
  name_server names;
  gateway with(upstream("\"http://late.test" + port + "\"", names.resolve()));
  (void)with.errors_until("requests get 503 until it can be");
  auto const answer = with.get("/");
  EXPECT_EQ(answer.status(), 503);
  EXPECT_EQ(answer.field("Retry-After"), "1");
  names.write("127.0.0.1 late.test\n");
  expect_eventually([&] { return with.get("/").status() == 200; }, "now the name is known");
}

TEST(gateway_names, are_looked_up_again_within_bounds_whatever_their_time_to_live) {
  if (!name_server::is_installed()) {
    GTEST_SKIP() << "there is no dnsmasq";
  }
  serving_origin const api(response("200 OK", "well"));
  auto const port = api.url().substr(api.url().rfind(':'));
  name_server names(3600);
  names.write("127.0.0.1 often.test\n127.0.0.1 seldom.test\n");
  auto const often = "http://often.test" + port;
  auto const seldom = "http://seldom.test" + port;
  gateway const with("upstreams: {often: {servers: [\"" + often + "\"]" +
                     names.resolve("min: 100ms, max: 200ms") + "}, seldom: {servers: [\"" + seldom +
                     "\"]" + names.resolve("min: 1h, max: 2h") +
                     "}}\nroutes: [{match: {path: /often/**}, upstream: often}, "
                     "{match: {path: /**}, upstream: seldom}]\n");
  auto const is_up = [&](std::string const& name, std::string const& server) {
    return with.metric("tidegate_upstream_up{upstream=\"" + name + "\",server=\"" + server +
                       "\"}") == 1;
  };
  expect_eventually(
      [&] {
        return is_up("often", often + "#127.0.0.1") && is_up("seldom", seldom + "#127.0.0.1");
      },
      "both names are known");
  names.write("127.0.0.3 often.test\n127.0.0.3 seldom.test\n");
  expect_eventually([&] { return is_up("often", often + "#127.0.0.3"); },
                    "it is asked for after 200ms, though the answer is good for an hour");
  EXPECT_TRUE(is_up("seldom", seldom + "#127.0.0.1")) << "it is not asked for within the hour";
}

TEST(gateway_names, of_the_hosts_file_need_no_name_server) {
  serving_origin const api(response("200 OK", "well"));
  auto const port = api.url().substr(api.url().rfind(':'));
  gateway const with(upstream("\"http://localhost" + port + "\""));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(with.get("/").status(), 200);
  }
  EXPECT_EQ(with.metric(up_of("http://localhost" + port + "#127.0.0.1")), 1);
}

// ---- failures ----

TEST(gateway_outlier, ejects_a_server_that_answers_500) {
  serving_origin const well(response("200 OK", "well"));
  serving_origin const sick(response("500 Internal Server Error", "sick"));
  gateway const with(upstream("\"" + sick.url() + "\", \"" + well.url() + "\"",
                              ", outlier: {failures: 3, eject: 1h}"));
  int failed = 0;
  for (int i = 0; i < 40; ++i) {
    failed += with.get("/").status() == 500 ? 1 : 0;
  }
  EXPECT_EQ(failed, 3);
  EXPECT_EQ(with.metric(up_of(sick.url())), 0);
  EXPECT_EQ(with.metric("tidegate_upstream_requests_total{upstream=\"api\",server=\"" + sick.url() +
                        "\",status=\"500\"}"),
            3);
  EXPECT_EQ(with.metric("tidegate_upstream_requests_total{upstream=\"api\",server=\"" + well.url() +
                        "\",status=\"200\"}"),
            37);
}

TEST(gateway_outlier, keeps_a_server_ejected_over_a_reload) {
  serving_origin const well(response("200 OK", "well"));
  serving_origin const sick(response("503 Service Unavailable", "sick"));
  auto const config = upstream("\"" + sick.url() + "\", \"" + well.url() + "\"",
                               ", outlier: {failures: 2, eject: 1h}");
  gateway with(config);
  for (int i = 0; i < 10; ++i) {
    (void)with.get("/");
  }
  EXPECT_EQ(with.metric(up_of(sick.url())), 0);
  EXPECT_THAT(with.reload(config + "drain-delay: 1s\n"), HasSubstr("was applied"));
  auto const before = sick.requests();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(with.get("/").body, "well");
  }
  EXPECT_EQ(sick.requests(), before);
  EXPECT_EQ(with.metric(up_of(sick.url())), 0);
}

TEST(gateway_outlier, never_ejects_the_last_server) {
  serving_origin const one(response("500 Internal Server Error", "one"));
  serving_origin const two(response("500 Internal Server Error", "two"));
  gateway const with(upstream("\"" + one.url() + "\", \"" + two.url() + "\"",
                              ", outlier: {failures: 2, eject: 1h}"));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(with.get("/").status(), 500);
  }
  EXPECT_EQ(with.metric(up_of(one.url())) + with.metric(up_of(two.url())), 0) << "both are down";
  EXPECT_GT(one.requests() + two.requests(), 19U) << "and one is used";
}

TEST(gateway_outlier, ejects_for_twice_as_long_each_time) {
  serving_origin const well(response("200 OK", "well"));
  std::vector<std::chrono::steady_clock::time_point> asked;  // read behind `requests()`
  asked.reserve(100);
  serving_origin const sick([&](message const&) {
    asked.push_back(std::chrono::steady_clock::now());
    return response("500 Internal Server Error", "sick");
  });
  gateway const with(upstream("\"" + sick.url() + "\", \"" + well.url() + "\"",
                              ", outlier: {failures: 1, eject: 100ms}"));
  expect_eventually(
      [&] {
        (void)with.get("/");
        return sick.requests() >= 4;
      },
      "it is asked again each time it comes back");
  EXPECT_GE(asked[1] - asked[0], 100ms);
  EXPECT_GE(asked[2] - asked[1], 200ms);
  EXPECT_GE(asked[3] - asked[2], 400ms);
}

TEST(gateway_outlier, gives_a_server_that_comes_back_little_at_first) {
  serving_origin const well(response("200 OK", "well"));
  std::atomic<bool> is_sick = true;
  serving_origin const back([&](message const&) {
    return is_sick.exchange(false) ? response("500 Internal Server Error", "sick")
                                   : response("200 OK", "back");
  });
  gateway const with(upstream("\"" + back.url() + "\", \"" + well.url() + "\"",
                              ", outlier: {failures: 1, eject: 100ms}"));
  expect_eventually(
      [&] {
        (void)with.get("/");
        return back.requests() >= 2;
      },
      "it comes back");
  auto const begun = std::chrono::steady_clock::now();
  auto const before = back.requests();
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(with.get("/").status(), 200);
  }
  // All of its share it has after ten seconds; a tenth of it in the first.
  if (std::chrono::steady_clock::now() - begun < 2s) {
    EXPECT_LE(back.requests() - before, 10U);
  }
  EXPECT_GE(back.requests() - before, 1U);
}

TEST(gateway_outlier, may_be_off) {
  serving_origin const one(response("500 Internal Server Error", "one"));
  serving_origin const two(response("500 Internal Server Error", "two"));
  gateway const with(upstream("\"" + one.url() + "\", \"" + two.url() + "\"", ", outlier: off"));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(with.get("/").status(), 500);
  }
  EXPECT_EQ(one.requests(), 10U);
  EXPECT_EQ(with.metric(up_of(one.url())), 1);
}

// ---- health ----

TEST(gateway_health_checks, take_a_server_out_and_bring_it_back) {
  std::atomic<bool> is_well = true;
  std::atomic<int> checks = 0;
  serving_origin const one([&](message const& request) {
    if (request.start_line == "GET /healthz HTTP/1.1") {
      ++checks;
      return is_well ? response("204 No Content", "") : response("500 Internal Server Error", "");
    }
    return response("200 OK", "one");
  });
  serving_origin const two(response("200 OK", "two"));
  gateway with(upstream("\"" + one.url() + "\", \"" + two.url() + "\"",
                        ", health: {path: /healthz, interval: 100ms, fall: 2, rise: 2}"));
  EXPECT_EQ(with.metric(up_of(one.url())), 1) << "before the first check";
  is_well = false;
  (void)with.errors_until("server " + one.url() + " is unhealthy: it answered 500");
  EXPECT_EQ(with.metric(up_of(one.url())), 0);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(with.get("/").body, "two");
  }
  is_well = true;
  (void)with.errors_until("server " + one.url() + " is healthy again");
  EXPECT_EQ(with.metric(up_of(one.url())), 1);
  EXPECT_GT(checks, 3);
  EXPECT_EQ(with.metric("tidegate_upstream_requests_total{upstream=\"api\",server=\"" + one.url() +
                        "\",status=\"500\"}"),
            0)
      << "checks do not count as requests";
}

TEST(gateway_health_checks, name_the_server_and_expect_what_is_configured) {
  serving_origin const api([](message const& request) {
    return request.start_line == "GET /up?deep=1 HTTP/1.1" &&
                   request.field("Host").starts_with("127.0.0.1:")
               ? response("304 Not Modified", "")
               : response("200 OK", "well");
  });
  auto const down = origin::refusing();
  gateway with(upstream("\"" + api.url() + "\", \"" + down.url() + "\"",
                        ", health: {path: \"/up?deep=1\", interval: 100ms, fall: 1, expect: "
                        "\"304\"}"));
  (void)with.errors_until("server " + down.url() + " is unhealthy: no connection");
  EXPECT_EQ(with.metric(up_of(api.url())), 1);
  EXPECT_EQ(with.get("/").body, "well");
}

// ---- again ----

TEST(gateway_retry, asks_another_server_after_a_status_that_is_named) {
  serving_origin const sick(response("503 Service Unavailable", "sick"));
  serving_origin const well(response("200 OK", "well"));
  gateway const with(upstream("\"" + sick.url() + "\", \"" + well.url() + "\"",
                              ", outlier: off, retry: {on: [503], backoff: 1ms, budget: 100%}"));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(with.get("/").body, "well");
  }
  EXPECT_EQ(sick.requests(), 10U) << "it is asked first every other time";
  auto client = with.connect();
  std::set<int> statuses;
  for (int i = 0; i < 2; ++i) {
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
    statuses.insert(client.read_response().status());
  }
  EXPECT_EQ(statuses, (std::set<int>{200, 503})) << "a POST is sent once";
}

TEST(gateway_retry, after_a_broken_connection_is_for_methods_that_may_be_repeated) {
  origin api;
  gateway const with(upstream("\"" + api.url() + "\"", ", retry: {on: [reset], backoff: 1ms}"));
  auto client = with.connect();
  client.send("PUT /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello");
  auto broken = api.accept();
  EXPECT_EQ(broken.read_request().body, "hello");
  broken.close();
  auto server = api.accept();
  EXPECT_EQ(server.read_request().body, "hello");
  server.send(response("200 OK", "again"));
  EXPECT_EQ(client.read_response().body, "again");
  client.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(server.read_request().body, "hello");
  server.close();
  EXPECT_EQ(client.read_response().status(), 502);
  EXPECT_TRUE(api.is_untouched());
}

TEST(gateway_retry, after_a_time_out_is_made_where_that_is_named) {
  origin api;
  gateway const with(
      upstream("\"" + api.url() + "\"", ", timeout: 100ms, retry: {on: [timeout], backoff: 1ms}"));
  auto client = with.connect();
  client.send(get_request);
  auto silent = api.accept();
  (void)silent.read_request();
  auto server = api.accept();
  (void)server.read_request();
  server.send(response("200 OK", "in time"));
  EXPECT_EQ(client.read_response().body, "in time");
}

TEST(gateway_retry, of_a_request_with_a_key_is_made_only_when_it_cannot_have_arrived) {
  origin api;
  auto const gone = origin::refusing();
  auto const keyed = [](std::string const& servers) {
    return "stores: {idempotency: memory}\nupstreams: {api: {servers: [" + servers +
           "], outlier: off, retry: {on: [connect, reset, timeout, 503], attempts: 2, backoff: "
           "1ms}}}\nroutes: [{match: {path: /**}, upstream: api, idempotency: {mode: required, "
           "anonymous: allow}}]\n";
  };
  auto const request = [](int key) {
    return "POST /a HTTP/1.1\r\nHost: a.example\r\nIdempotency-Key: \"k" + std::to_string(key) +
           "\"\r\nContent-Length: 5\r\n\r\nhello";
  };
  gateway const with(keyed("\"" + gone.url() + "\", \"" + api.url() + "\""));
  auto client = with.connect();
  client.send(request(1));
  auto server = api.accept();
  EXPECT_EQ(server.read_request().body, "hello");
  server.send(response("201 Created", "made"));
  EXPECT_EQ(client.read_response().status(), 201) << "the first one did not get it";
  client.send(request(2));
  EXPECT_EQ(server.read_request().body, "hello");
  server.close();
  EXPECT_EQ(client.read_response().status(), 502);
  EXPECT_TRUE(api.is_untouched()) << "it may have arrived";
}

TEST(gateway_retry, is_limited_by_a_budget) {
  serving_origin const sick(response("503 Service Unavailable", "sick"));
  gateway const with(
      upstream("\"" + sick.url() + "\"", ", retry: {on: [503], backoff: 0ms, budget: 0%}"));
  auto client = with.connect();
  for (int i = 0; i < 100; ++i) {
    client.send(get_request);
    EXPECT_EQ(client.read_response().status(), 503);
  }
  EXPECT_LE(sick.requests(), 160U) << "three a second besides";
  EXPECT_GT(sick.requests(), 100U);
}

// ---- max-connections ----

TEST(gateway_max_connections, answers_503_beyond_them) {
  origin api;
  gateway const with(upstream("\"" + api.url() + "\"", ", max-connections: 1"));
  auto first = with.connect();
  first.send(get_request);
  auto server = api.accept();
  (void)server.read_request();
  auto const refused = with.get("/");
  EXPECT_EQ(refused.status(), 503);
  EXPECT_EQ(refused.field("Retry-After"), "1");
  EXPECT_THAT(refused.body, HasSubstr("no free connection"));
  server.send(response("200 OK", "first"));
  EXPECT_EQ(first.read_response().body, "first");
  first.send(get_request);
  (void)server.read_request();
  server.send(response("200 OK", "again"));
  EXPECT_EQ(first.read_response().body, "again");
}

TEST(gateway_max_connections, are_waited_for_by_all_threads) {
  serving_origin const api(response("200 OK", "well"));
  gateway const with(upstream("\"" + api.url() + "\"", ", max-connections: 1, max-wait: 30s"), 3);
  std::vector<connection> clients;
  for (int i = 0; i < 30; ++i) {
    clients.push_back(with.connect());
    clients.back().send(get_request);
  }
  for (auto& client : clients) {
    EXPECT_EQ(client.read_response().body, "well");
  }
}

TEST(gateway_max_connections, are_waited_for_no_longer_than_allowed) {
  origin api;
  gateway const with(
      upstream("\"" + api.url() + "\"", ", max-connections: 1, max-wait: 50ms, timeout: 300ms"));
  auto first = with.connect();
  first.send(get_request);
  auto server = api.accept();
  (void)server.read_request();
  EXPECT_EQ(with.get("/").status(), 503);
  auto gone = with.connect();
  gone.send(get_request);
  gone.close();
  server.send(response("200 OK", "first"));
  EXPECT_EQ(first.read_response().body, "first");
}

}  // namespace
}  // namespace tidegate::e2e
