// SPDX-License-Identifier: Apache-2.0
#include "api/api_about.hpp"

#include "control_fixture.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace tidegate::gateway {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

TEST(admin_api_about, says_which_gateway_it_is_and_where_clients_reach_it) {
  control_fixture with("routes: [{match: {path: /**}, service: echo}]\n");
  program_facts const about{
      .version = "1.2.3",
      .commit = "abc",
      .started = std::chrono::system_clock::time_point(std::chrono::hours(24))};
  auto const text = about_json(with.seen(), about);
  EXPECT_THAT(text, AllOf(StartsWith(R"({"version":"1.2.3","commit":"abc","instance":")"),
                          HasSubstr(R"(,"started":"1970-01-02T00:00:00Z","file":"t.yaml",)")));
  EXPECT_THAT(text, MatchesRegex(R"(.*,"listeners":\["http://127\.0\.0\.1:[0-9]+"\]\})"));
}

TEST(admin_api_about, says_which_file_the_configuration_was_read_from) {
  struct row {
    char const* origin;
    std::optional<std::string> file;
  };
  for (auto const& [origin, file] : {
           row{"/etc/tidegate/a.yaml:3:4", "/etc/tidegate/a.yaml"},
           row{"C:a:b.yaml:3:4", "C:a:b.yaml"},
           row{"command line", std::nullopt},
           row{"default", std::nullopt},
       }) {
    config settings;
    settings.effective = {{.path = "a", .value = "1", .origin = "default"},
                          {.path = "b", .value = "1", .origin = origin}};
    EXPECT_EQ(config_file_of(settings), file) << origin;
  }
}

}  // namespace
}  // namespace tidegate::gateway
