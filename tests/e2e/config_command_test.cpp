// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

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
  EXPECT_THAT(answer.err, testing::HasSubstr("\n" + file + ":2:35: window: \"1 minute\" is no "));
  EXPECT_THAT(answer.err,
              testing::HasSubstr("\n" + file + ":3:41: there is no upstream \"orders\""));
  EXPECT_THAT(answer.err, testing::HasSubstr("\n" + file + ":3:58: there is no policy \"q\""));
}

TEST_F(config_command, refuses_a_plain_partition_key_of_a_credential) {
  for (auto const* const source :
       {"header:authorization", "header:Proxy-Authorization", "header:x-api-key", "header:api-key",
        "header:x-auth-token", "query:api_key", "query:access_token", "cookie:id"}) {
    auto const answer = check(
        "policies: {p: {quota: 1, window: 1s, partition-key: plain, partition: [path, " +
        std::string(source) + "]}}\nroutes: [{match: {path: /**}, service: echo, limits: [p]}]\n");
    EXPECT_EQ(answer.status, 2) << source;
    EXPECT_THAT(answer.err, testing::HasSubstr(":1:53: partition-key: \"plain\" would tell \""))
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

TEST_F(config_command, prints_the_schema_and_the_reference) {
  auto const schema = run({TIDEGATE_BINARY, "schema"});
  EXPECT_EQ(schema.status, 0);
  EXPECT_THAT(schema.out, testing::StartsWith("{\"$schema\":"));
  auto const reference = run({TIDEGATE_BINARY, "schema", "--markdown"});
  EXPECT_EQ(reference.status, 0);
  EXPECT_THAT(reference.out, testing::StartsWith("# Configuration\n"));
  EXPECT_EQ(run({TIDEGATE_BINARY, "schema", "x"}).status, 2);
}

TEST(command_line, takes_the_words_that_people_try_first) {
  auto const tidegate = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), TIDEGATE_BINARY);
    return run(arguments);
  };
  for (auto const* const word : {"version", "--version", "-v"}) {
    auto const got = tidegate({word});
    EXPECT_EQ(got.status, 0) << word;
    EXPECT_THAT(got.out, testing::StartsWith("tidegate ")) << word;
  }
  EXPECT_EQ(tidegate({"help"}).out, tidegate({"--help"}).out);
  EXPECT_EQ(tidegate({"help"}).status, 0);
  EXPECT_EQ(tidegate({"help", "call"}).out, tidegate({"call", "--help"}).out);
  auto const wrong = tidegate({"serv", "-c", "x"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err,
              testing::StartsWith(
                  R"(error: "serv" is no command; did you mean "serve"? Commands: serve, )"));
  EXPECT_THAT(tidegate({"frobnicate"}).err, testing::Not(testing::HasSubstr("did you mean")));
}

TEST(command_line, takes_a_configuration_without_its_option) {
  auto const got = run({TIDEGATE_BINARY, "check", "/no/such/file"});
  EXPECT_EQ(got.status, 2);
  EXPECT_THAT(got.err, testing::HasSubstr("cannot read /no/such/file"));
  auto const serving = run({TIDEGATE_BINARY, "serve", "/no/such/file"});
  EXPECT_EQ(serving.status, 2);
  EXPECT_THAT(serving.err, testing::HasSubstr("/no/such/file"));
}

TEST(command_line, shows_a_number_as_a_number_in_the_help) {
  for (auto const* const command : {"call", "lint"}) {
    auto const help = run({TIDEGATE_BINARY, command, "--help"}).out;
    EXPECT_THAT(help, testing::Not(testing::HasSubstr("UINT"))) << help;
  }
}

}  // namespace
}  // namespace tidegate::e2e
