// SPDX-License-Identifier: Apache-2.0
#include "gateway.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

namespace tidegate::e2e {

namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// A folder with a certificate for `localhost` and its key, and what a test puts there.
class folder {
 public:
  folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tidegate_tls_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("mkdtemp failed");
    }
    path_ = pattern;
    make_certificate();
  }
  folder(folder const&) = delete;
  auto operator=(folder const&) -> folder& = delete;
  ~folder() { std::filesystem::remove_all(path_); }

  /// Makes both again: the old certificate does not vouch for the new one.
  void make_certificate() const {
    auto const made = run({"/usr/bin/env", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                           "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                           "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                           "-keyout", file("key.pem"), "-out", file("cert.pem")});
    if (made.status != 0) {
      throw std::runtime_error("openssl: " + made.err);
    }
  }
  [[nodiscard]] auto file(std::string const& name) const -> std::string {
    return (path_ / name).string();
  }
  /// Writes a configuration with one TLS listener on a free port; returns the flags for `serve`.
  [[nodiscard]] auto config(std::string const& rest, std::string const& listener = "",
                            std::string const& name = "config.yaml") const
      -> std::vector<std::string> {
    std::ofstream(file(name)) << "listen: {address: \"127.0.0.1:0\", tls: {certificate: cert.pem, "
                                 "key: key.pem}"
                              << listener << "}\nworkers: 1\n"
                              << rest;
    return {"-c", file(name)};
  }

 private:
  std::filesystem::path path_;
};

std::string const echo = "routes: [{match: {path: /**}, service: echo}]\n";

auto port_of(gateway const& at) -> std::string {
  auto const authority = at.authority();
  return authority.substr(authority.rfind(':') + 1);
}

auto url(gateway const& at) -> std::string {
  return "https://localhost:" + port_of(at) + "/";
}

/// Runs curl, which trusts the certificate of the folder only; it prints the head and the content.
auto curl(folder const& trusted, std::vector<std::string> const& arguments,
          std::string const& input = {}) -> outcome {
  std::vector<std::string> all{
      "/usr/bin/env", "curl", "-sSi", "--max-time", "10", "--cacert", trusted.file("cert.pem")};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run(all, input);
}

TEST(gateway_tls, speaks_http_1_1_and_http_2_as_the_client_chooses) {
  folder const files;
  gateway const under_test(files.config(echo));
  EXPECT_THAT(curl(files, {"--http1.1", url(under_test)}).out, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(curl(files, {"--http2", url(under_test)}).out, StartsWith("HTTP/2 200"));
  EXPECT_THAT(curl(files, {"--no-alpn", "--http1.1", url(under_test)}).out,
              StartsWith("HTTP/1.1 200"));
}

TEST(gateway_tls, holds_the_client_to_the_protocol_that_was_agreed_upon) {
  folder const files;
  gateway const under_test(files.config(echo));
  auto const say = [&](std::vector<std::string> const& options, std::string const& words) {
    std::vector<std::string> all{"/usr/bin/env", "openssl",  "s_client",
                                 "-ign_eof",     "-connect", under_test.authority()};
    all.insert(all.end(), options.begin(), options.end());
    return run(all, words).out;
  };
  std::string const request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  std::string const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  EXPECT_THAT(say({"-alpn", "http/1.1"}, request), HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(say({}, request), HasSubstr("HTTP/1.1 200"));
  // GOAWAY with PROTOCOL_ERROR, as to any client that begins otherwise (RFC 9113, section 3.4).
  auto const after_h2 = say({"-alpn", "h2"}, request);
  EXPECT_THAT(after_h2, testing::Not(HasSubstr("HTTP/1.1")));
  EXPECT_THAT(after_h2, HasSubstr(std::string("\7\0\0\0\0\0\0\0\0\0\0\0\0\1", 14)));
  EXPECT_THAT(say({"-alpn", "http/1.1"}, preface), HasSubstr("HTTP/1.1 505"));
  EXPECT_THAT(say({}, preface), HasSubstr("HTTP/1.1 505"));
}

TEST(gateway_tls, speaks_tls_1_2_and_1_3_and_nothing_older) {
  folder const files;
  gateway const under_test(files.config(echo));
  EXPECT_EQ(curl(files, {"--tlsv1.2", "--tls-max", "1.2", url(under_test)}).status, 0);
  EXPECT_EQ(curl(files, {"--tlsv1.3", url(under_test)}).status, 0);
  EXPECT_NE(curl(files, {"--tlsv1.0", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0",
                         url(under_test)})
                .status,
            0);
}

TEST(gateway_tls, offers_http_1_1_only_where_http_2_is_turned_off) {
  folder const files;
  gateway const under_test(files.config(echo, ", http2: false"));
  EXPECT_THAT(curl(files, {"--http2", url(under_test)}).out, StartsWith("HTTP/1.1 200"));
  auto const forced =
      run({"/usr/bin/env", "openssl", "s_client", "-ign_eof", "-connect", under_test.authority()},
          "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  EXPECT_THAT(forced.out, HasSubstr("HTTP/1.1 505"));
}

TEST(gateway_tls, tells_the_upstream_that_the_client_came_by_https) {
  folder const files;
  origin upstream;
  gateway const under_test(files.config(proxy_config(upstream.url())));
  auto asked = std::async(std::launch::async, [&] { return curl(files, {url(under_test)}); });
  auto to_gateway = upstream.accept();
  EXPECT_EQ(to_gateway.read_request().field("X-Forwarded-Proto"), "https");
  to_gateway.send(response("200 OK", "hello"));
  EXPECT_THAT(asked.get().out, HasSubstr("\r\n\r\nhello"));
}

TEST(gateway_tls, passes_large_bodies_both_ways) {
  folder const files;
  std::string content;
  for (int i = 0; content.size() < 3'000'000; ++i) {
    content.append(std::to_string(i)).append(",");
  }
  for (auto const* const version : {"--http1.1", "--http2"}) {
    SCOPED_TRACE(version);
    origin upstream;
    gateway const under_test(files.config(proxy_config(upstream.url())));
    auto asked = std::async(std::launch::async, [&] {
      return curl(files, {version, url(under_test), "-H", "Expect:", "--data-binary", "@-"},
                  content);
    });
    auto to_gateway = upstream.accept();
    EXPECT_TRUE(to_gateway.read_request().body == content);
    to_gateway.send(response("200 OK", content));
    EXPECT_TRUE(asked.get().out.ends_with("\r\n\r\n" + content));
  }
}

TEST(gateway_tls, serves_many_streams_of_many_connections) {
  folder const files;
  gateway const under_test(files.config(echo));
  auto const said = run({"/usr/bin/env", "h2load", "-T", "10", "-n", "2000", "-c", "8", "-m", "32",
                         "https://" + under_test.authority() + "/"});
  EXPECT_THAT(said.out, HasSubstr("Application protocol: h2"));
  EXPECT_THAT(said.out, HasSubstr("2000 succeeded, 0 failed"));
}

TEST(gateway_tls, resumes_a_session_by_its_ticket) {
  folder const files;
  gateway const under_test(files.config(echo));
  std::string const request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  auto const connect = [&](char const* option) {
    return run({"/usr/bin/env", "openssl", "s_client", "-ign_eof", "-connect",
                under_test.authority(), option, files.file("session")},
               request)
        .out;
  };
  EXPECT_THAT(connect("-sess_out"), HasSubstr("\nNew, TLSv1.3"));
  auto const again = connect("-sess_in");
  EXPECT_THAT(again, HasSubstr("\nReused, TLSv1.3"));
  // It says that it closes (close_notify); without that s_client would speak of an error.
  EXPECT_THAT(again, HasSubstr("closed"));
}

TEST(gateway_tls, closes_a_connection_whose_handshake_does_not_come) {
  folder const files;
  gateway const under_test(files.config("http: {header-timeout: 200ms}\n" + echo));
  auto client = under_test.connect();
  EXPECT_TRUE(client.is_closed());
}

TEST(gateway_tls, closes_a_connection_that_speaks_no_tls) {
  folder const files;
  gateway const under_test(files.config(echo));
  auto client = under_test.connect();
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  (void)client.read_to_end();
  EXPECT_THAT(curl(files, {url(under_test)}).out, HasSubstr(" 200"));
}

TEST(gateway_tls, takes_a_new_certificate_at_a_reload) {
  folder const files;
  gateway under_test(files.config(echo));
  files.make_certificate();
  EXPECT_NE(curl(files, {url(under_test)}).status, 0);
  under_test.signal(SIGHUP);
  expect_eventually([&] { return curl(files, {url(under_test)}).status == 0; },
                    "the new certificate is shown");
}

TEST(gateway_tls, tells_when_its_certificate_expires) {
  folder const files;
  gateway_options options;
  options.listen = "{address: \"127.0.0.1:0\", tls: {certificate: " + files.file("cert.pem") +
                   ", key: " + files.file("key.pem") + "}}";
  gateway const under_test(echo, options);
  auto const in_two_days = std::chrono::system_clock::now() + std::chrono::hours(48);
  EXPECT_NEAR(
      under_test.metric(R"(tidegate_certificate_expiry_timestamp_seconds{listener="127.0.0.1:0"})"),
      std::chrono::duration<double>(in_two_days.time_since_epoch()).count(), 600);
}

TEST(gateway_tls, does_not_start_without_a_key) {
  folder const files;
  auto const flags = files.config(echo);
  std::filesystem::remove(files.file("key.pem"));
  auto const ended = run({TIDEGATE_BINARY, "serve", flags[0], flags[1]});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.err, HasSubstr("cannot use the key " + files.file("key.pem")));
}

TEST(gateway_tls, talks_to_an_upstream_that_it_has_verified) {
  folder const files;
  gateway const upstream(files.config(echo, "", "upstream.yaml"));
  auto const servers = "{servers: [\"https://localhost:" + port_of(upstream) + "\"], tls: ";
  gateway under_test(
      files.config("upstreams:\n"
                   "  known: " +
                   servers +
                   "{ca: cert.pem}}\n"
                   "  by-address: {servers: [\"https://" +
                   upstream.authority() +
                   "\"], tls: {ca: cert.pem}}\n"
                   "  unknown: " +
                   servers +
                   "{}}\n"
                   "  other: " +
                   servers +
                   "{ca: cert.pem, server-name: other.example}}\n"
                   "  unverified: " +
                   servers +
                   "{verify: false}}\n"
                   "routes:\n"
                   "  - {match: {path: /known}, upstream: known}\n"
                   "  - {match: {path: /by-address}, upstream: by-address}\n"
                   "  - {match: {path: /unknown}, upstream: unknown}\n"
                   "  - {match: {path: /other}, upstream: other}\n"
                   "  - {match: {path: /unverified}, upstream: unverified}\n"));
  EXPECT_THAT(curl(files, {url(under_test) + "known"}).out, HasSubstr(" 200"));
  EXPECT_THAT(curl(files, {url(under_test) + "by-address"}).out, HasSubstr(" 200"));
  EXPECT_THAT(curl(files, {url(under_test) + "unknown"}).out, HasSubstr(" 502"));
  EXPECT_THAT(curl(files, {url(under_test) + "other"}).out, HasSubstr(" 502"));
  EXPECT_THAT(curl(files, {url(under_test) + "unverified"}).out, HasSubstr(" 200"));
  auto const said = under_test.errors_until("upstream \"other\"");
  EXPECT_THAT(said,
              testing::ContainsRegex(
                  "upstream \"unknown\": server https://localhost:[0-9]+#[0-9.:]+ failed: the "
                  "TLS handshake failed: self.signed certificate\n"));
  EXPECT_THAT(said, HasSubstr("the TLS handshake failed: hostname mismatch\n"));
}

TEST(gateway_tls, answers_502_when_an_upstream_speaks_no_tls) {
  folder const files;
  origin upstream;
  gateway const under_test(files.config("upstreams: {a: {servers: [\"https://" +
                                        upstream.authority() +
                                        "\"], retries: 0, tls: {verify: false}}}\n"
                                        "routes: [{match: {path: /**}, upstream: a}]\n"));
  auto asked = std::async(std::launch::async, [&] { return curl(files, {url(under_test)}); });
  auto to_gateway = upstream.accept();
  to_gateway.send("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_THAT(asked.get().out, HasSubstr(" 502"));
}

}  // namespace
}  // namespace tidegate::e2e
