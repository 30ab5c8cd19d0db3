// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"
#include "scim.hpp"

#include <tidegate/json/parse.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <set>
#include <sstream>

namespace tidegate::e2e {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

auto scim_run(std::vector<std::string> arguments, std::string const& input = "") -> outcome {
  arguments.insert(arguments.begin(), {TIDEGATE_BINARY, "scim"});
  return run(arguments, input);
}

auto read_all(std::string const& name) -> std::string {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_all(std::string const& name, std::string const& text) {
  std::ofstream(name, std::ios::binary) << text;
}

auto exists(std::string const& name) -> bool {
  return std::filesystem::exists(name);
}

auto lines_of(std::string const& text) -> std::vector<std::string> {
  std::vector<std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    out.push_back(line);
  }
  return out;
}

/// The values of an attribute, in the order of the lines.
auto values_of(std::string const& text, std::string_view name) -> std::vector<std::string> {
  std::vector<std::string> out;
  for (auto const& line : lines_of(text)) {
    auto const read = json::parse(line);
    auto const* const value = read ? read->find(name) : nullptr;
    out.push_back(value == nullptr ? "(none)" : *value->if_string());
  }
  return out;
}

/// A program that runs while the test goes on.
class background {
 public:
  /// With the descriptor `input` as its standard input, when there is one.
  explicit background(std::vector<std::string> arguments, int input = -1) {
    arguments.insert(arguments.begin(), {TIDEGATE_BINARY, "scim"});
    std::vector<char*> argv;
    for (auto& each : arguments) {
      argv.push_back(each.data());
    }
    argv.push_back(nullptr);
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (input >= 0) {
      posix_spawn_file_actions_adddup2(&quiet, input, STDIN_FILENO);
    }
    EXPECT_EQ(::posix_spawn(&child_, argv[0], &quiet, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&quiet);
  }
  background(background const&) = delete;
  auto operator=(background const&) -> background& = delete;
  ~background() {
    if (child_ > 0) {
      (void)end(SIGKILL);
    }
  }
  /// Sends a signal and waits; what it exited with, or 128 and the signal that ended it.
  auto end(int signal) -> int {
    ::kill(child_, signal);
    int status = 0;
    ::waitpid(std::exchange(child_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t child_ = -1;
};

/// A gateway with a directory, and a folder for files.
class scim_command : public scim_test {
 protected:
  scim_command() : scim_test("    idempotency: {mode: optional}\n") {}

  [[nodiscard]] auto url(std::string const& type = "Users") const -> std::string {
    return "http://" + with_.authority() + "/scim/v2/" + type;
  }
  [[nodiscard]] auto file(std::string const& name) const -> std::string {
    return folder_.path() + "/" + name;
  }
  /// Creates users `u0`, `u1` and so on.
  void make_users(int number) {
    std::string lines;
    for (int i = 0; i < number; ++i) {
      lines +=
          user("u" + std::to_string(i), R"("name":{"givenName":"a, \"b\""},"active":true)") + "\n";
    }
    auto const got = scim_run({"import", url(), "-", "--token", "alpha"}, lines);
    ASSERT_EQ(got.status, 0) << got.err;
  }
  [[nodiscard]] auto count(std::string const& type = "Users", std::string const& token = "alpha")
      -> std::string {
    return scim_client(with_, token).get("/" + type + "?count=0").at("totalResults");
  }

  void import_with_kills(bool is_bulk);

  data_folder folder_;
};

TEST_F(scim_command, exports_every_resource_once_by_cursor) {
  make_users(25);
  auto const got = scim_run({"export", url(), "--token", "alpha", "--page-size", "10"});
  EXPECT_EQ(got.status, 0) << got.err;
  auto const names = values_of(got.out, "userName");
  EXPECT_EQ(names.size(), 25U);
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), 25U);
  EXPECT_EQ(got.err, "25 resources, 4 requests, 0 retries\n");
}

TEST_F(scim_command, exports_what_a_filter_wants_to_a_file) {
  make_users(12);
  auto const got = scim_run({"export", url(), "--token", "alpha", "--filter", "userName sw \"u1\"",
                             "--attributes", "userName", "-o", file("out"), "--json"});
  EXPECT_EQ(got.status, 0) << got.err;
  EXPECT_THAT(values_of(read_all(file("out")), "userName"),
              testing::UnorderedElementsAre("u1", "u10", "u11"));
  EXPECT_THAT(read_all(file("out")), Not(HasSubstr("active")));
  auto const summary = json::parse(got.out);
  ASSERT_TRUE(summary) << got.out;
  EXPECT_EQ(*summary->find("ok"), json::value(true));
  EXPECT_EQ(*summary->find("resources"), json::value(3));
  EXPECT_FALSE(exists(file("out.state")));
  EXPECT_FALSE(exists(file("out.partial")));
}

TEST_F(scim_command, takes_the_token_from_a_file_or_the_environment) {
  write_all(file("token"), "alpha\n");
  EXPECT_EQ(scim_run({"export", url(), "--token-file", file("token")}).status, 0);
  EXPECT_EQ(run({"/usr/bin/env", "TIDEGATE_TOKEN=alpha", TIDEGATE_BINARY, "scim", "export", url()})
                .status,
            0);
  EXPECT_EQ(scim_run({"export", url(), "-H", "Authorization: Bearer alpha"}).status, 0);
  auto const none = scim_run({"export", url(), "-o", file("none")});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("the server answered 401"));
  EXPECT_FALSE(exists(file("none.state"))) << "there is nothing to resume";
}

TEST_F(scim_command, takes_a_table_to_another_tenant_as_it_is) {
  make_users(15);
  auto got =
      scim_run({"export", url(), "--token", "alpha", "--format", "csv", "-o", file("t.csv")});
  ASSERT_EQ(got.status, 0) << got.err;
  EXPECT_THAT(read_all(file("t.csv")), StartsWith("schemas.0,id,userName,name.givenName,active,"));
  got = scim_run({"import", url(), file("t.csv"), "--token", "gamma"});
  EXPECT_EQ(got.status, 0) << got.err;
  EXPECT_EQ(got.err, "15 created, 0 replaced, 0 skipped, 0 conflicts, 0 rejected, 0 retries\n");
  auto const a = scim_run({"export", url(), "--token", "alpha", "--excluded-attributes", "meta"});
  auto const b = scim_run({"export", url(), "--token", "gamma", "--excluded-attributes", "meta"});
  auto const without_ids = [](std::string const& text) {
    std::multiset<std::string> out;
    for (auto const& line : lines_of(text)) {
      auto value = *json::parse(line);
      value.if_object()->erase("id");
      out.insert(to_string(value));
    }
    return out;
  };
  EXPECT_EQ(without_ids(a.out), without_ids(b.out));
}

TEST_F(scim_command, says_line_by_line_what_was_not_taken) {
  write_all(file("in"), user("one") + "\n\n{\n" + user("one") + "\n" + R"({"userName":"two"})" +
                            "\n" + R"({"userName":7})");
  auto const got = scim_run({"import", url(), file("in"), "--token", "alpha", "--parallel", "1"});
  EXPECT_EQ(got.status, 1);
  EXPECT_THAT(got.err, HasSubstr("line 3: "));
  EXPECT_THAT(got.err, HasSubstr("line 4: the server answered 409 uniqueness"));
  EXPECT_THAT(got.err, HasSubstr("line 6: the server answered 400"));
  EXPECT_THAT(got.err,
              HasSubstr("2 created, 0 replaced, 0 skipped, 1 conflict, 2 rejected, 0 retries"));
  auto const rejects = lines_of(read_all(file("in.rejects")));
  ASSERT_EQ(rejects.size(), 3U);
  EXPECT_THAT(rejects[0], HasSubstr(R"("line":3,)"));
  EXPECT_THAT(rejects[0], HasSubstr(R"("text":"{")"));
  EXPECT_THAT(rejects[1], HasSubstr(R"("status":409,"scimType":"uniqueness")"));
  EXPECT_THAT(rejects[1], HasSubstr(R"("userName":"one")"));
  EXPECT_FALSE(exists(file("in.import")));
  EXPECT_EQ(count(), "2");
}

TEST_F(scim_command, skips_or_replaces_what_is_there) {
  make_users(3);
  write_all(file("in"), user("u1", R"("displayName":"new")") + "\n" + user("u9") + "\n");
  auto got = scim_run({"import", url(), file("in"), "--token", "alpha", "--on-conflict", "skip"});
  EXPECT_EQ(got.status, 0) << got.err;
  EXPECT_THAT(got.err, StartsWith("1 created, 0 replaced, 1 skipped"));
  got = scim_run({"import", url(), file("in"), "--token", "alpha", "--on-conflict", "replace"});
  EXPECT_EQ(got.status, 0) << got.err;
  EXPECT_THAT(got.err, StartsWith("0 created, 2 replaced, 0 skipped"));
  EXPECT_EQ(client_.get("/Users?filter=userName+eq+%22u1%22").at("Resources.0.displayName"), "new");
  EXPECT_EQ(count(), "4");
}

TEST_F(scim_command, stops_an_import_that_makes_no_sense_and_resumes_it) {
  write_all(file("in"), user("a") + "\n" + user("b") + "\n");
  auto got = scim_run({"import", url(), file("in"), "--token", "wrong", "--json"});
  EXPECT_EQ(got.status, 1);
  EXPECT_THAT(got.out, HasSubstr("the server answered 401"));
  EXPECT_FALSE(exists(file("in.import")));
  EXPECT_FALSE(exists(file("in.rejects")));
  EXPECT_EQ(scim_run({"import", url(), file("in"), "--resume", "--token", "alpha"}).status, 2);
  EXPECT_EQ(scim_run({"import", url(), file("missing"), "--token", "alpha"}).status, 2);
  EXPECT_EQ(scim_run({"import", url(), file("in"), "--token", "alpha"}).status, 0);
}

TEST_F(scim_command, loses_and_repeats_nothing_when_an_export_is_killed) {
  make_users(300);
  std::vector<std::string> const arguments = {"export",      url(), "--token", "alpha",
                                              "--page-size", "2",   "-o",      file("out")};
  for (std::uintmax_t const octets : {2'000U, 20'000U, 40'000U}) {
    auto again = arguments;
    again.insert(again.end(), {"--rate", "50/s"});  // so that it is not over before it is killed
    if (exists(file("out.state"))) {
      again.emplace_back("--resume");
    }
    background killed(again);
    expect_eventually(
        [&] {
          std::error_code none;
          auto const size = std::filesystem::file_size(file("out.partial"), none);
          return !none && size > octets;
        },
        "the export writes");
    EXPECT_EQ(killed.end(SIGKILL), 128 + SIGKILL);
    EXPECT_FALSE(exists(file("out")));
  }
  EXPECT_EQ(scim_run(arguments).status, 2) << "it is not begun again by mistake";
  auto again = arguments;
  again.emplace_back("--resume");
  auto const got = scim_run(again);
  EXPECT_EQ(got.status, 0) << got.err;
  auto const names = values_of(read_all(file("out")), "userName");
  EXPECT_EQ(names.size(), 300U);
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), 300U);
}

TEST_F(scim_command, makes_nothing_twice_when_an_import_is_killed) {
  for (bool const is_bulk : {false, true}) {
    SCOPED_TRACE(is_bulk ? "in bulk" : "line by line");
    import_with_kills(is_bulk);
  }
}

TEST_F(scim_command, says_of_each_line_of_a_bulk_request_what_became_of_it) {
  std::string lines;
  for (int i = 0; i < 20; ++i) {
    lines += user("u" + std::to_string(i == 7 ? 3 : i)) + "\n";
  }
  write_all(file("in"), lines + "{\"userName\": 5}\n");
  auto const got = scim_run({"import", url(), file("in"), "--token", "alpha", "--bulk", "8"});
  EXPECT_EQ(got.status, 1);
  EXPECT_THAT(got.err, HasSubstr("19 created, 0 replaced, 0 skipped, 1 conflict, 1 rejected"));
  EXPECT_THAT(got.err, HasSubstr("line 8: "));
  EXPECT_THAT(got.err, HasSubstr("line 21: "));
  EXPECT_EQ(count("Users"), "19");
}

void scim_command::import_with_kills(bool is_bulk) {
  // Groups of one name may be many, so nothing but the key keeps them apart.
  std::string const token = is_bulk ? "gamma" : "alpha";  // another tenant
  std::string lines;
  for (int i = 0; i < 400; ++i) {
    lines += group("g" + std::to_string(i)) + "\n";
  }
  write_all(file("in"), lines);
  std::vector<std::string> const arguments = {"import", url("Groups"), file("in"), "--token",
                                              token};
  for (std::uintmax_t const octets : {300U, 800U, 1'500U}) {
    auto again = arguments;
    again.insert(again.end(),
                 {"--rate", is_bulk ? "20/s" : "200/s", "--bulk", is_bulk ? "7" : "0"});
    if (exists(file("in.import"))) {
      again.emplace_back("--resume");
    }
    background killed(again);
    expect_eventually(
        [&] {
          std::error_code none;
          auto const size = std::filesystem::file_size(file("in.import"), none);
          return !none && size > octets;
        },
        "the import goes on");
    EXPECT_EQ(killed.end(SIGKILL), 128 + SIGKILL);
  }
  auto again = arguments;
  again.emplace_back("--resume");
  auto const got = scim_run(again);
  EXPECT_EQ(got.status, 0) << got.err;
  EXPECT_THAT(got.err, StartsWith("400 created, "));
  EXPECT_EQ(count("Groups", token), "400");
  auto const all = scim_run({"export", url("Groups"), "--token", token});
  auto const names = values_of(all.out, "displayName");
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), 400U);
}

TEST_F(scim_command, loses_no_page_when_it_cannot_be_written) {
  make_users(60);
  std::vector<std::string> const arguments = {"scim",        "export", url(), "--token",  "alpha",
                                              "--page-size", "10",     "-o",  file("out")};
  std::vector<std::string> limited = {
      "/bin/sh", "-c", "trap '' XFSZ; ulimit -f 20; exec \"$0\" \"$@\"", TIDEGATE_BINARY};
  limited.insert(limited.end(), arguments.begin(), arguments.end());
  auto got = run(limited);
  EXPECT_EQ(got.status, 1);
  EXPECT_THAT(got.err, HasSubstr("cannot write"));
  EXPECT_THAT(got.err, HasSubstr("use --resume to continue"));
  got = scim_run({"export", url(), "--token", "alpha", "--page-size", "10", "-o", file("out"),
                  "--resume", "--json"});
  EXPECT_EQ(got.status, 0) << got.err;
  EXPECT_THAT(got.out, HasSubstr(R"("resources":60,)"));
  auto const names = values_of(read_all(file("out")), "userName");
  EXPECT_EQ(names.size(), 60U);
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), 60U);
}

TEST_F(scim_command, writes_rejects_over_nothing) {
  auto const lines = user("a") + "\n";
  write_all(file("in"), lines);
  std::filesystem::create_symlink(file("in"), file("link"));
  for (auto const& name : {file("in"), file("link"), folder_.path() + "/./in", file("in.import")}) {
    auto const got = scim_run({"import", url(), file("in"), "--token", "alpha", "--rejects", name});
    EXPECT_EQ(got.status, 2) << name;
    EXPECT_THAT(got.err, HasSubstr("the import reads it"));
    EXPECT_FALSE(exists(file("in.import")));
  }
  EXPECT_EQ(read_all(file("in")), lines);
  write_all(file("in.rejects"), "of an import before");
  auto const got = scim_run({"import", url(), file("in"), "--token", "alpha"});
  EXPECT_EQ(got.status, 2);
  EXPECT_THAT(got.err, HasSubstr("would be overwritten"));
  EXPECT_EQ(read_all(file("in.rejects")), "of an import before");
  EXPECT_EQ(count(), "0");
  EXPECT_EQ(
      scim_run({"import", url(), file("in"), "--token", "alpha", "--rejects", file("new")}).status,
      0);
}

TEST_F(scim_command, has_keys_of_its_own) {
  write_all(file("in"), user("a") + "\n");
  auto const got = scim_run(
      {"import", url(), file("in"), "--token", "alpha", "-H", "IDEMPOTENCY-key: \"same\""});
  EXPECT_EQ(got.status, 2);
  EXPECT_THAT(got.err, HasSubstr("Idempotency-Key of its own"));
  EXPECT_EQ(count(), "0");
}

TEST_F(scim_command, says_what_cannot_be_read) {
  EXPECT_EQ(scim_run({"import", url(), folder_.path(), "--token", "alpha"}).status, 2);
}

TEST_F(scim_command, refuses_to_resume_something_else) {
  make_users(6);
  write_all(file("in"), user("a") + "\n");
  write_all(file("out.state"), "{}");
  auto got = scim_run({"export", url(), "--token", "alpha", "-o", file("out"), "--resume"});
  EXPECT_EQ(got.status, 2);
  EXPECT_THAT(got.err, HasSubstr("invalid state "));
  write_all(file("in.import"), R"({"url":"http://b","digest":"","seed":"x","began":1})"
                               "\n");
  got = scim_run({"import", url(), file("in"), "--token", "alpha", "--resume"});
  EXPECT_EQ(got.status, 2);
  EXPECT_THAT(got.err, HasSubstr("is of an import to http://b"));
  write_all(file("in.import"), R"({"url":")" + url() +
                                   R"(","digest":"","seed":"x","began":1})"
                                   "\n");
  got = scim_run({"import", url(), file("in"), "--token", "alpha", "--resume"});
  EXPECT_EQ(got.status, 2);
  EXPECT_THAT(got.err, HasSubstr("has changed since its import began"));
}

/// A server whose answers the test gives one after the other.
class scim_script : public testing::Test {
 protected:
  [[nodiscard]] static auto page(std::string const& ids, std::string const& next) -> std::string {
    std::string resources;
    for (auto const id : ids) {
      resources += (resources.empty() ? "" : ",") + std::string(R"({"id":")") + id + "\"}";
    }
    return response("200 OK",
                    R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],)" +
                        (next.empty() ? std::string() : R"("nextCursor":")" + next + "\",") +
                        R"("Resources":[)" + resources + "]}");
  }
  [[nodiscard]] auto arguments(bool resume) const -> std::vector<std::string> {
    std::vector<std::string> out = {"export", server_.url() + "/Users", "-o",
                                    folder_.path() + "/out"};
    if (resume) {
      out.emplace_back("--resume");
    }
    return out;
  }
  /// Reads a request, which must begin like this.
  static void expect(connection& client, std::string const& target) {
    EXPECT_THAT(client.read_request().start_line, StartsWith("GET " + target + " "));
  }
  [[nodiscard]] auto content(std::string const& name) const -> std::string {
    return read_all(folder_.path() + "/" + name);
  }

  origin server_;
  data_folder folder_;
};

TEST_F(scim_script, resumes_where_ctrl_c_or_a_kill_left_it_and_when_the_cursor_is_lost) {
  {
    background first(arguments(false));
    auto client = server_.accept();
    expect(client, "/ServiceProviderConfig");
    client.send(response("404 Not Found", ""));
    expect(client, "/Users?cursor&count=500");
    client.send(page("ab", "c1"));
    expect(client, "/Users?cursor=c1&count=500");
    EXPECT_EQ(first.end(SIGINT), 130);
  }
  EXPECT_EQ(content("out.partial"), "{\"id\":\"a\"}\n{\"id\":\"b\"}\n");
  {
    background second(arguments(true));
    auto client = server_.accept();
    expect(client, "/Users?cursor=c1&count=500");
    client.send(page("cd", "c2"));
    expect(client, "/Users?cursor=c2&count=500");
    EXPECT_EQ(second.end(SIGKILL), 128 + SIGKILL);
  }
  EXPECT_THAT(lines_of(content("out.partial")), testing::SizeIs(4)) << "more than the state says";
  {
    background third(arguments(true));
    auto client = server_.accept();
    expect(client, "/Users?cursor=c1&count=500");
    client.send(response("400 Bad Request",
                         R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],)"
                         R"("status":"400","scimType":"expiredCursor"})"));
    expect(client, "/Users?cursor&count=500");
    client.send(page("bac", "c9"));
    expect(client, "/Users?cursor=c9&count=500");
    client.send(page("cd", ""));
    EXPECT_EQ(third.end(0), 0);
  }
  EXPECT_THAT(values_of(content("out"), "id"), ElementsAre("a", "b", "c", "d"));
  EXPECT_FALSE(exists(folder_.path() + "/out.state"));
}

TEST_F(scim_script, ends_what_was_complete_when_it_was_killed) {
  write_all(folder_.path() + "/out", "{\"id\":\"a\"}\n");
  write_all(folder_.path() + "/out.state",
            R"({"query":{"url":")" + server_.url() +
                R"(/Users","filter":"","sort_by":"","attributes":[],"excluded_attributes":[],)"
                R"("page_size":500},"place":{"start_index":1},"octets":11,"resources":1,"total":1,)"
                R"("complete":true})");
  EXPECT_EQ(scim_run(arguments(true)).status, 0);
  EXPECT_EQ(content("out"), "{\"id\":\"a\"}\n");
  EXPECT_FALSE(exists(folder_.path() + "/out.state"));
  EXPECT_TRUE(server_.is_untouched());
}

TEST_F(scim_script, keeps_what_it_has_when_the_server_fails) {
  background failing(arguments(false));
  auto client = server_.accept();
  expect(client, "/ServiceProviderConfig");
  client.send(response("404 Not Found", ""));
  expect(client, "/Users?cursor&count=500");
  client.send(page("ab", "c1"));
  expect(client, "/Users?cursor=c1&count=500");
  client.send(response("403 Forbidden", ""));
  EXPECT_EQ(failing.end(0), 1);
  EXPECT_THAT(content("out.state"), HasSubstr(R"("cursor":"c1")"));
}

TEST_F(scim_script, sends_a_line_that_was_under_way_again_with_its_key) {
  auto const in = folder_.path() + "/in";
  write_all(in, user("a") + "\n" + user("b") + "\n");
  std::vector<std::string> arguments = {
      "import", server_.url() + "/Users", in, "--bulk", "0", "--parallel", "1"};
  std::string key;
  {
    background killed(arguments);
    auto client = server_.accept();
    (void)client.read_request();
    client.send(response("201 Created", "{}"));
    key = client.read_request().field("Idempotency-Key");
    EXPECT_EQ(killed.end(SIGKILL), 128 + SIGKILL);
  }
  arguments.emplace_back("--resume");
  background resumed(arguments);
  auto client = server_.accept();
  auto const again = client.read_request();
  EXPECT_THAT(again.body, HasSubstr(R"("userName":"b")"));
  EXPECT_EQ(again.field("Idempotency-Key"), key);
  client.send(response("201 Created", "{}"));
  EXPECT_EQ(resumed.end(0), 0);
}

TEST_F(scim_script, keeps_the_key_of_a_line_that_may_have_been_carried_out) {
  std::vector<std::string> const answers = {
      response("504 Gateway Timeout", ""),
      response("502 Bad Gateway", ""),
      response("503 Service Unavailable", ""),
      response("408 Request Timeout", ""),
      response("425 Too Early", ""),
      response("409 Conflict", R"({"status":409,"code":"outcome-unknown"})",
               "Content-Type: application/problem+json\r\n")};
  for (auto const& each : answers) {
    data_folder folder;
    auto const in = folder.path() + "/in";
    write_all(in, user("a") + "\n");
    std::vector<std::string> arguments = {
        "import", server_.url() + "/Users", in, "--bulk", "0", "--retries", "0"};
    std::string key;
    {
      background stopped(arguments);
      auto client = server_.accept();
      key = client.read_request().field("Idempotency-Key");
      client.send(each);
      EXPECT_EQ(stopped.end(0), 1) << each;
    }
    EXPECT_FALSE(exists(in + ".rejects")) << each;
    ASSERT_TRUE(exists(in + ".import")) << each;
    arguments.emplace_back("--resume");
    auto otherwise = arguments;
    otherwise.insert(otherwise.end(), {"--format", "csv"});
    auto const refused = scim_run(otherwise);
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.err, HasSubstr("with --format jsonl"));
    background resumed(arguments);
    auto client = server_.accept();
    EXPECT_EQ(client.read_request().field("Idempotency-Key"), key) << each;
    client.send(response("201 Created", "{}"));
    EXPECT_EQ(resumed.end(0), 0);
    EXPECT_FALSE(exists(in + ".import"));
  }
}

TEST_F(scim_script, rejects_a_line_whose_conflict_is_not_of_its_key) {
  auto const in = folder_.path() + "/in";
  write_all(in, user("a") + "\n");
  background rejected({"import", server_.url() + "/Users", in, "--bulk", "0"});
  auto client = server_.accept();
  (void)client.read_request();
  client.send(response("409 Conflict", "there is one"));
  EXPECT_EQ(rejected.end(0), 1);
  EXPECT_THAT(lines_of(read_all(in + ".rejects")), testing::SizeIs(1));
  EXPECT_FALSE(exists(in + ".import"));
}

TEST_F(scim_script, sends_lines_of_standard_input_as_they_come_and_hears_ctrl_c) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  descriptor const from(ends[0]);
  descriptor const to(ends[1]);
  background reading({"import", server_.url() + "/Users", "-"}, from.get());
  auto const write = [&](std::string const& text) {
    EXPECT_EQ(::write(to.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  write("\xef");
  write("\xbb\xbf" + user("a") + "\n{\"user");
  auto client = server_.accept();
  EXPECT_THAT(client.read_request().body, HasSubstr(R"("userName":"a")"));
  client.send(response("201 Created", "{}"));
  write("Name\":\"b\"}\n{\"half");
  EXPECT_THAT(client.read_request().body, HasSubstr(R"("userName":"b")"));
  client.send(response("201 Created", "{}"));
  EXPECT_EQ(reading.end(SIGINT), 130);
}

TEST_F(scim_script, stops_reading_standard_input_when_there_is_no_sense_in_it) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  descriptor const from(ends[0]);
  descriptor const to(ends[1]);
  background reading({"import", server_.url() + "/Users", "-"}, from.get());
  auto const line = user("a") + "\n";
  ASSERT_EQ(::write(to.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  auto client = server_.accept();
  (void)client.read_request();
  client.send(response("401 Unauthorized", ""));
  EXPECT_EQ(reading.end(0), 1);
}

TEST_F(scim_script, hears_ctrl_c_while_it_reads_what_it_wrote) {
  write_all(folder_.path() + "/out.partial", "{\"id\":\"a\"}\n");
  write_all(folder_.path() + "/out.state",
            R"({"query":{"url":")" + server_.url() +
                R"(/Users","filter":"","sort_by":"","attributes":[],"excluded_attributes":[],)"
                R"("page_size":500},"place":{"start_index":1},"octets":11,"resources":1,"total":1,)"
                R"("complete":true})");
  // The signal is there before the program begins.
  std::vector<std::string> interrupted = {"/usr/bin/env",
                                          "--block-signal=INT",
                                          "/bin/sh",
                                          "-c",
                                          "kill -INT $$; exec \"$0\" \"$@\"",
                                          TIDEGATE_BINARY,
                                          "scim"};
  auto const wanted = arguments(true);
  interrupted.insert(interrupted.end(), wanted.begin(), wanted.end());
  auto const got = run(interrupted);
  EXPECT_EQ(got.status, 130) << got.err;
  EXPECT_THAT(got.err, HasSubstr("use --resume to continue"));
  EXPECT_FALSE(exists(folder_.path() + "/out"));
  EXPECT_EQ(scim_run(wanted).status, 0);
  EXPECT_EQ(content("out"), "{\"id\":\"a\"}\n");
}

TEST_F(scim_script, does_not_say_that_all_is_there_when_the_server_speaks_of_more) {
  serving_origin const server(
      response("200 OK", R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],)"
                         R"("totalResults":6,"Resources":[{"id":"a"},{"id":"b"}]})"));
  auto const got =
      scim_run({"export", server.url() + "/Users", "-o", folder_.path() + "/out", "--json"});
  EXPECT_EQ(got.status, 1);
  EXPECT_THAT(got.out, HasSubstr("it says that there are 6 resources and gives 2"));
  EXPECT_THAT(got.out, HasSubstr(R"("fault":"stuck")"));
  EXPECT_THAT(got.out, HasSubstr(R"("resumable":true)"));
  EXPECT_FALSE(exists(folder_.path() + "/out"));
  EXPECT_THAT(lines_of(content("out.partial")), testing::SizeIs(2));
}

TEST_F(scim_script, ends_in_good_order_when_a_cursor_is_too_long_to_be_kept) {
  background failing(arguments(false));
  auto client = server_.accept();
  expect(client, "/ServiceProviderConfig");
  client.send(response("404 Not Found", ""));
  expect(client, "/Users?cursor&count=500");
  client.send(page("ab", "c1"));
  expect(client, "/Users?cursor=c1&count=500");
  client.send(page("cd", std::string(std::size_t{3} << 20, 'x')));
  EXPECT_EQ(failing.end(0), 1);
  EXPECT_THAT(content("out.state"), HasSubstr(R"("cursor":"c1")"));
}

TEST_F(scim_script, sends_lines_in_bulk_as_the_server_takes_them) {
  auto const in = folder_.path() + "/in";
  write_all(in, "{\"userName\":\"a\"}\n{\"userName\":\"b\"}\n{\"userName\":\"c\"}\n");
  background import({"import", server_.url() + "/Users", in, "--parallel", "1", "--json"});
  auto client = server_.accept();
  expect(client, "/ServiceProviderConfig");
  client.send(response("200 OK", R"({"bulk":{"supported":true,"maxOperations":2,)"
                                 R"("maxPayloadSize":100000}})"));
  auto const first = client.read_request();
  EXPECT_THAT(first.start_line, StartsWith("POST /Bulk "));
  EXPECT_THAT(first.body, HasSubstr(R"("bulkId":"1","data":{"userName":"a")"));
  EXPECT_THAT(first.body, HasSubstr(R"("bulkId":"2")"));
  EXPECT_THAT(first.body, Not(HasSubstr(R"("bulkId":"3")")));
  client.send(response("200 OK", R"({"Operations":[{"bulkId":"2","status":"201"},)"
                                 R"({"bulkId":"1","status":201}]})"));
  auto const second = client.read_request();
  EXPECT_THAT(second.body, HasSubstr(R"("bulkId":"3")"));
  client.send(response("200 OK", R"({"Operations":[]})"));
  EXPECT_EQ(import.end(0), 1) << "nothing was said of the last line";
}

TEST_F(scim_script, waits_for_answers_after_ctrl_c_so_that_lines_are_settled) {
  auto const in = folder_.path() + "/in";
  write_all(in, user("a") + "\n" + user("b") + "\n");
  background interrupted(
      {"import", server_.url() + "/Users", in, "--bulk", "0", "--parallel", "1"});
  auto client = server_.accept();
  (void)client.read_request();
  auto ended = std::async(std::launch::async, [&] { return interrupted.end(SIGINT); });
  client.send(response("201 Created", "{}"));
  EXPECT_EQ(ended.get(), 130);
  EXPECT_THAT(lines_of(read_all(in + ".import")), testing::SizeIs(2)) << "its first line, and one";
}

}  // namespace
}  // namespace tidegate::e2e
