// SPDX-License-Identifier: Apache-2.0
//
// Variables, secrets from files and included files, as the running gateway sees them.
#include "gateway.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace tidegate::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view in_variable = "secret-of-the-variable";
constexpr std::string_view in_file = "secret-of-the-file";

/// A folder beside the configuration, gone at the end.
class gateway_config_files : public testing::Test {
 protected:
  gateway_config_files()
      : folder_(std::filesystem::temp_directory_path() /
                ("tidegate_files_" +
                 std::to_string(
                     std::filesystem::file_time_type::clock::now().time_since_epoch().count()))) {
    std::filesystem::create_directories(folder_ / "routes.d");
    write("key", std::string(in_file) + "\n");
  }
  ~gateway_config_files() override { std::filesystem::remove_all(folder_); }

  void write(std::string const& name, std::string_view text) const {
    std::ofstream(folder_ / name) << text;
  }
  [[nodiscard]] auto path(std::string const& name) const -> std::string {
    return (folder_ / name).string();
  }
  [[nodiscard]] auto config() const -> std::string {
    return "include: ['" + path("routes.d") + "/*.yaml']\n";
  }
  /// Routes of a team that sends two secrets to `url`.
  void write_team(std::string const& url, std::string const& more = "") const {
    write(
        "routes.d/team.yaml",
        "upstreams: {team: '" + url + "'}\n" +
            "policies: {team: {quota: '${QUOTA}', window: 1h}}\n"
            "routes:\n  - match: {path: '/${PREFIX}/**'}\n    upstream: team\n    limits: [team]\n"
            "    request: {set: {X-One: '${ONE}', X-Two: \"k=${file:" +
            path("key") + "}\"}}\n" + more);
  }

  std::filesystem::path folder_;
};

auto hides_secrets() {
  return AllOf(Not(HasSubstr(std::string(in_variable))), Not(HasSubstr(std::string(in_file))));
}

TEST_F(gateway_config_files, are_put_together_and_show_no_secret) {
  std::string one;
  std::string two;
  serving_origin const upstream([&](message const& request) {
    one = request.field("X-One");
    two = request.field("X-Two");
    return std::string("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  });
  write_team(upstream.url());
  gateway with(
      config() + "access-log: " + path("access.log") + "\n",
      gateway_options{.environment = {"QUOTA=5", "PREFIX=v1", "ONE=" + std::string(in_variable)}});
  auto const answer = with.get("/v1/a");
  EXPECT_EQ(answer.status(), 200);
  EXPECT_THAT(answer.field("RateLimit-Policy"), HasSubstr("q=5"));
  EXPECT_EQ(one, in_variable);
  EXPECT_EQ(two, "k=" + std::string(in_file));

  auto const shown = with.admin("/api/v1/config").body;
  EXPECT_THAT(shown, hides_secrets());
  EXPECT_THAT(shown, HasSubstr(R"({"path":"policies.team.quota","value":"${QUOTA}","origin":")" +
                               path("routes.d/team.yaml") + R"(:2:26"})"));
  EXPECT_THAT(shown, HasSubstr(R"("value":"${ONE}")"));

  // A file that changes is read by a reload, which does not show it either.
  write("key", "another-secret");
  auto const preview = with.admin("/api/v1/config/reload").body;
  EXPECT_THAT(preview, AllOf(HasSubstr("request.set.X-Two"), Not(HasSubstr("another-secret"))));
  with.signal(SIGHUP);
  auto said = with.errors_until("configuration");
  EXPECT_EQ(with.get("/v1/b").status(), 200);
  EXPECT_EQ(two, "k=another-secret");

  // A fault is said with the file that has it, and the old configuration goes on.
  write_team(upstream.url(), "    cost: ${ONE}\n    limts: []\n");
  with.signal(SIGHUP);
  said += with.errors_until("was not applied");
  EXPECT_THAT(said,
              HasSubstr(path("routes.d/team.yaml") + ":8:11: cost: invalid value of \"${ONE}\""));
  EXPECT_THAT(said, HasSubstr(path("routes.d/team.yaml") + ":9:5: unknown key \"limts\""));
  write("routes.d/team.yaml", "routes: [\n");
  with.signal(SIGHUP);
  said += with.errors_until("was not applied");
  EXPECT_THAT(said, HasSubstr(path("routes.d/team.yaml") + ":2:1: this is not YAML"));
  EXPECT_THAT(said, hides_secrets());
  EXPECT_EQ(with.get("/v1/c").status(), 200);
  std::ifstream log(path("access.log"));
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(log), {}), hides_secrets());
}

TEST_F(gateway_config_files, are_checked_without_a_start) {
  write_team("http://127.0.0.1:1");
  write("main.yaml", "include: routes.d/*.yaml\ndata: ${ONE}/x\n");
  // Nothing is set.
  auto answer = run({TIDEGATE_BINARY, "check", path("main.yaml")});
  EXPECT_EQ(answer.status, 2);
  EXPECT_THAT(answer.err, HasSubstr(path("main.yaml") +
                                    ":2:7: \"${ONE}\": the environment variable is not set"));
  EXPECT_THAT(answer.err, HasSubstr(path("routes.d/team.yaml") +
                                    ":2:26: \"${QUOTA}\": the environment variable is not set"));
  write("main.yaml", "include: [routes.d/*.yaml, none.yaml]\n");
  answer = run({TIDEGATE_BINARY, "check", path("main.yaml")});
  EXPECT_THAT(answer.err, HasSubstr(path("main.yaml") + ":1:28: include: cannot read \"" +
                                    path("none.yaml") + "\": No such file or directory"));
  write("main.yaml", "include: none.d/*.yaml\nroutes: [{match: {path: /**}, service: echo}]\n");
  answer = run({TIDEGATE_BINARY, "check", path("main.yaml")});
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.err,
            path("main.yaml") + ":1:10: warning: include: no file matches \"none.d/*.yaml\"\n");
}

}  // namespace
}  // namespace tidegate::e2e
