// SPDX-License-Identifier: Apache-2.0
#include "on_a_terminal.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace tidegate::e2e {
namespace {

/// A file of its own for each test, gone at its end.
class config_command : public testing::Test {
 protected:
  config_command()
      : file_(std::filesystem::temp_directory_path() /
              ("tidegate_" + std::string(test_name()) + "_" + std::to_string(seed()) + ".yaml")) {}
  ~config_command() override { std::filesystem::remove(file_); }

  auto check(std::string_view text) -> outcome {
    std::ofstream(file_) << text;
    return run({TIDEGATE_BINARY, "check", "-c", file_.string()});
  }

  std::filesystem::path file_;

 private:
  static auto test_name() -> char const* {
    return testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  static auto seed() -> std::int64_t {
    return std::filesystem::file_time_type::clock::now().time_since_epoch().count();
  }
};

TEST_F(config_command, says_ok_and_exits_with_0_when_nothing_is_wrong) {
  auto const answer = check("routes: [{match: {path: /**}, service: echo}]\n");
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.out, file_.string() + ": ok\n");
  EXPECT_EQ(answer.err, "");
}

TEST_F(config_command, says_every_fault_with_its_place_and_exits_with_2) {
  auto const answer = check(
      "lisen: ':80'\n"
      "policies: {p: {quota: 10, window: 1 minute}}\n"
      "routes: [{match: {path: /**}, upstream: orders, limits: [q]}]\n");
  EXPECT_EQ(answer.status, 2);
  EXPECT_EQ(answer.out, "");
  auto const file = file_.string();
  EXPECT_THAT(answer.err, testing::StartsWith(file + ":1:1: unknown key \"lisen\"; did you mean "));
  EXPECT_THAT(answer.err,
              testing::HasSubstr("\n" + file + ":2:35: window: invalid duration \"1 minute\""));
  EXPECT_THAT(answer.err, testing::HasSubstr("\n" + file + ":3:41: unknown upstream \"orders\""));
  EXPECT_THAT(answer.err, testing::HasSubstr("\n" + file + ":3:58: unknown policy \"q\""));
}

TEST_F(config_command, takes_units_that_can_be_counted_and_windows_of_whole_seconds_only) {
  auto const checked = [&](std::string const& policy) {
    return check("policies: {p: {quota: 1, " + policy +
                 "}}\nroutes: [{match: {path: /**}, service: echo, limits: [p]}]\n");
  };
  for (auto const* const fine : {"window: 1s", "window: 1m, unit: content-bytes",
                                 "window: 1m, unit: requests", "unit: concurrent-requests"}) {
    EXPECT_EQ(checked(fine).status, 0) << fine;
  }
  EXPECT_THAT(checked("window: 1m, unit: tokens").err,
              testing::HasSubstr("unit: unknown value \"tokens\""));
  for (auto const* const window : {"window: 0s", "window: 500ms", "window: 1500ms"}) {
    auto const answer = checked(window);
    EXPECT_EQ(answer.status, 2) << window;
    EXPECT_THAT(answer.err, testing::HasSubstr(": window: ")) << window;
  }
}

TEST_F(config_command, refuses_a_plain_partition_key_of_a_credential) {
  for (auto const* const source :
       {"header:authorization", "header:Proxy-Authorization", "header:x-api-key", "header:api-key",
        "header:x-auth-token", "query:api_key", "query:access_token", "cookie:id"}) {
    auto const answer = check(
        "policies: {p: {quota: 1, window: 1s, partition-key: plain, partition: [path, " +
        std::string(source) + "]}}\nroutes: [{match: {path: /**}, service: echo, limits: [p]}]\n");
    EXPECT_EQ(answer.status, 2) << source;
    EXPECT_THAT(answer.err,
                testing::HasSubstr(":1:53: partition-key: \"plain\" would show the credential \""))
        << source;
  }
  auto const fine = check(
      "policies: {p: {quota: 1, window: 1s, partition-key: plain, partition: [path, "
      "header:x-tenant]}}\n"
      "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n");
  EXPECT_EQ(fine.status, 0) << fine.err;
}

TEST_F(config_command, exits_with_2_when_there_is_nothing_to_read) {
  EXPECT_EQ(run({TIDEGATE_BINARY, "check"}).status, 2);
  auto const missing = run({TIDEGATE_BINARY, "check", "-c", "/nonexistent/t.yaml"});
  EXPECT_EQ(missing.status, 2);
  EXPECT_EQ(missing.err, "error: cannot read /nonexistent/t.yaml: No such file or directory\n");
  EXPECT_EQ(run({TIDEGATE_BINARY, "check", "-c", "/"}).status, 2);
  EXPECT_THAT(check("").err, testing::HasSubstr(":1:1: \"routes\" is missing"));
}

TEST_F(config_command, warns_of_what_is_most_likely_not_meant_and_exits_with_0) {
  auto const answer = check(
      "policies: {p: {quota: 1, window: 1h}}\n"
      "routes:\n"
      "  - {match: {path: /**}, service: echo}\n"
      "  - {match: {path: /v1/**, methods: [GET]}, service: echo}\n");
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.out, file_.string() + ": ok\n");
  EXPECT_EQ(answer.err,
            file_.string() + ":1:12: warning: policy \"p\" is not used by any route\n" +
                file_.string() +
                ":4:5: warning: never reached: the route \"/**\" in line 3 takes all of its "
                "requests; the first match wins, so put the narrower one first\n");
}

TEST_F(config_command, shows_the_line_of_a_fault_on_a_terminal) {
  std::ofstream(file_) << "routes:\n  - {match: {path: /**}, servce: echo}\n";
  on_a_terminal shown({TIDEGATE_BINARY, "check", file_.string()}, 80, 24);
  shown.see(file_.string() + ":2:5: ");
  shown.see(R"(:2:26: unknown key "servce"; did you mean "service"?)");
  shown.see("  - {match: {path: /**}, servce: echo}\r\n");
  shown.see("| \x1b[0m" + std::string(25, ' ') + "\x1b[1;31m^");
  EXPECT_EQ(shown.wait(), 2);
}

/// As JSON writes it; names of files here need no escapes.
auto place_in_json(std::string const& file, int line, int column) -> std::string {
  return R"({"file":")" + file + R"(","line":)" + std::to_string(line) + R"(,"column":)" +
         std::to_string(column) + R"(,"message":")";
}

TEST_F(config_command, says_the_same_in_json_for_programs) {
  auto const in_json = [&](std::string_view text) {
    std::ofstream(file_) << text;
    return run({TIDEGATE_BINARY, "check", "--json", "-c", file_.string()});
  };
  auto const file = file_.string();

  auto const fine = in_json("routes: [{match: {path: /**}, service: echo}]\n");
  EXPECT_EQ(fine.status, 0);
  EXPECT_EQ(fine.out, R"({"file":")" + file + R"(","ok":true,"errors":[],"warnings":[]})" + "\n");
  EXPECT_EQ(fine.err, "");

  auto const warned = in_json(
      "policies: {p: {quota: 1, window: 1h}}\nroutes: [{match: {path: /**}, service: echo}]\n");
  EXPECT_EQ(warned.status, 0);
  EXPECT_EQ(warned.out, R"({"file":")" + file + R"(","ok":true,"errors":[],"warnings":[)" +
                            place_in_json(file, 1, 12) +
                            R"(policy \"p\" is not used by any route"}]})" + "\n");
  EXPECT_EQ(warned.err, "");

  auto const wrong =
      in_json("lisen: ':80'\nroutes: [{match: {path: /**}, upstream: \"o\\tx\", limits: [q]}]\n");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_EQ(wrong.err, "");
  EXPECT_THAT(wrong.out, testing::StartsWith(R"({"file":")" + file + R"(","ok":false,"errors":[)" +
                                             place_in_json(file, 1, 1) +
                                             R"(unknown key \"lisen\"; did you mean )"));
  EXPECT_THAT(wrong.out, testing::HasSubstr("," + place_in_json(file, 2, 41) +
                                            R"(upstream: invalid name \"o\tx\" (expected )"));
  EXPECT_THAT(wrong.out, testing::EndsWith("],\"warnings\":[]}\n"));

  auto const missing = run({TIDEGATE_BINARY, "check", "--json", "/nonexistent/t.yaml"});
  EXPECT_EQ(missing.status, 2);
  EXPECT_EQ(missing.out,
            R"({"file":"/nonexistent/t.yaml","ok":false,"errors":[)" +
                place_in_json("/nonexistent/t.yaml", 1, 1) +
                R"(cannot read the file: No such file or directory"}],"warnings":[]})" + "\n");
  EXPECT_EQ(missing.err, "");
}

/// A folder for files that configurations name, gone at its end.
class config_command_files : public config_command {
 protected:
  config_command_files() : folder_(file_.string() + ".d") {
    std::filesystem::create_directory(folder_);
  }
  ~config_command_files() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] auto in(std::string const& name) const -> std::string {
    return (folder_ / name).string();
  }
  void make_certificate(std::string const& name) const {
    auto const made =
        run({"/usr/bin/env", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
             "-keyout", in(name + ".key"), "-out", in(name + ".pem")});
    ASSERT_EQ(made.status, 0) << made.err;
  }
  /// Refused with this, at that place; and taken when files are not looked at.
  void expect_refused(std::string const& text, std::string const& place_and_message) {
    auto const answer = check(text);
    EXPECT_EQ(answer.status, 2) << text;
    EXPECT_EQ(answer.out, "");
    EXPECT_THAT(answer.err, testing::StartsWith(file_.string() + place_and_message));
    EXPECT_THAT(answer.err, testing::EndsWith("\n"));
    auto const without = run({TIDEGATE_BINARY, "check", "--no-files", "-c", file_.string()});
    EXPECT_EQ(without.status, 0) << without.err;
    EXPECT_EQ(without.out, file_.string() + ": ok\n");
  }

  std::filesystem::path folder_;
  std::string const echo_ = "routes: [{match: {path: /**}, service: echo}]\n";
};

TEST_F(config_command_files, refuses_certificates_that_cannot_be_used) {
  auto const listen = [&](std::string const& certificate, std::string const& key) {
    return "listen: {address: ':8443', tls: {certificate: " + in(certificate) +
           ", key: " + in(key) + "}}\n" + echo_;
  };
  expect_refused(listen("none.pem", "none.key"), ":1:47: cannot use the certificate ");
  make_certificate("a");
  make_certificate("b");
  auto const column = std::to_string(listen("a.pem", "b.key").find(in("b.key")) + 1);
  expect_refused(listen("a.pem", "b.key"), ":1:" + column + ": cannot use the key ");
  EXPECT_EQ(check(listen("a.pem", "a.key")).status, 0);
}

TEST_F(config_command_files, refuses_an_access_log_that_cannot_be_written) {
  expect_refused("access-log: " + in("none/access.log") + "\n" + echo_,
                 ":1:13: access-log: cannot write " + in("none/access.log"));
  EXPECT_EQ(check("access-log: " + in("access.log") + "\n" + echo_).status, 0);
  EXPECT_FALSE(std::filesystem::exists(in("access.log"))) << "to look changes nothing";
}

TEST_F(config_command_files, refuses_secrets_that_others_may_read_and_folders_that_are_none) {
  auto const keyed = [&](std::string const& more) {
    return more +
           "\nupstreams: {a: 'http://127.0.0.1:1'}\n"
           "routes: [{match: {path: /**}, upstream: a,"
           " idempotency: {mode: required, scope: [header:x-customer]}}]\n";
  };
  std::ofstream(in("secret")) << std::string(32, 'x');
  std::filesystem::permissions(in("secret"), std::filesystem::perms(0644));
  expect_refused(keyed("data: " + in("data") + "\nsecrets: " + in("secret")),
                 ":2:10: secrets: " + in("secret") + " holds secrets, and others may read it");
  expect_refused(keyed("data: " + in("secret")), ":1:7: data: " + in("secret"));
  EXPECT_EQ(check(keyed("data: " + in("data"))).status, 0);
  EXPECT_FALSE(std::filesystem::exists(in("data"))) << "to look changes nothing";
}

TEST_F(config_command_files, refuses_addresses_that_serve_cannot_listen_on) {
  auto const none = in("none/a.sock");
  auto const why = ": cannot listen on unix:" + none + ": bind: No such file or directory";
  expect_refused("admin: \"unix:" + none + "\"\n" + echo_, ":1:8" + why);
  expect_refused("listen: [\"unix:" + none + "\"]\n" + echo_, ":1:10" + why);
  expect_refused("listen: {address: \"unix:" + none + "\"}\n" + echo_, ":1:19" + why);
  std::ofstream(in("file")) << "x";
  expect_refused("admin: \"unix:" + in("file") + "\"\n" + echo_,
                 ":1:8: cannot listen on unix:" + in("file") + ": bind: Address already in use");
  // Of a block for documentation (RFC 5737).
  expect_refused("listen: 192.0.2.1:8080\n" + echo_,
                 ":1:9: cannot listen on 192.0.2.1:8080: bind: Cannot assign requested address");
  EXPECT_EQ(check("listen: \"unix:" + in("a.sock") + "\"\n" + echo_).status, 0);
  EXPECT_FALSE(std::filesystem::exists(in("a.sock"))) << "to look changes nothing";
}

TEST_F(config_command_files, refuses_secrets_and_stores_that_cannot_be_made) {
  auto const keyed = [&](std::string const& more) {
    return "data: " + in("data") + "\n" + more +
           "\nupstreams: {a: 'http://127.0.0.1:1'}\n"
           "routes: [{match: {path: /**}, upstream: a,"
           " idempotency: {mode: required, scope: [header:x-customer]}}]\n";
  };
  expect_refused(keyed("secrets: " + in("none/s.key")), ":2:10: secrets: cannot make " +
                                                            in("none/s.key") + ": the folder " +
                                                            in("none") + " is not there");
  expect_refused(keyed("stores: {idempotency: sqlite:" + in("none/k.db") + "}"),
                 ":2:23: idempotency: the folder " + in("none") + " is not there");
  expect_refused(keyed("stores: {idempotency: sqlite:" + folder_.string() + "}"),
                 ":2:23: idempotency: " + folder_.string() + " is a folder");
  expect_refused("stores: {quota: \"rediss://127.0.0.1?ca=" + in("none.pem") + "\"}\n" + echo_,
                 ":1:17: quota: cannot read " + in("none.pem"));
  std::filesystem::create_directory(in("data"));
  std::ofstream(in("data/idempotency.db.commits")) << "x";
  EXPECT_THAT(check(keyed("")).err, testing::HasSubstr("idempotency: " + in("data/idempotency.db") +
                                                       " is missing, and its mark "));
  EXPECT_EQ(
      check(keyed("secrets: " + in("s.key") + "\nstores: {idempotency: sqlite:" + in("k.db") + "}"))
          .status,
      0);
  EXPECT_FALSE(std::filesystem::exists(in("s.key"))) << "to look changes nothing";
}

TEST_F(config_command_files, warns_of_names_that_do_not_resolve) {
  auto const with_name = "upstreams: {a: 'http://nowhere.invalid:80'}\n" + echo_;
  auto const checked = check(with_name);
  EXPECT_EQ(checked.status, 0) << "a gateway starts with it";
  EXPECT_THAT(checked.err,
              testing::HasSubstr(":1:16: warning: cannot resolve \"nowhere.invalid\": "));
  auto const without = run({TIDEGATE_BINARY, "check", "--no-files", "-c", file_.string()});
  EXPECT_THAT(without.err, testing::Not(testing::HasSubstr("resolve")));
}

TEST_F(config_command, prints_the_schema_and_the_reference) {
  auto const schema = run({TIDEGATE_BINARY, "schema"});
  EXPECT_EQ(schema.status, 0);
  EXPECT_THAT(schema.out, testing::StartsWith("{\"$schema\":"));
  auto const reference = run({TIDEGATE_BINARY, "schema", "--markdown"});
  EXPECT_EQ(reference.status, 0);
  EXPECT_THAT(reference.out, testing::StartsWith("# Configuration\n"));
  EXPECT_EQ(run({TIDEGATE_BINARY, "schema", "x"}).status, 2);
}

}  // namespace
}  // namespace tidegate::e2e
