// SPDX-License-Identifier: Apache-2.0
//
// `${NAME}`, `${file:PATH}` and `include`, from sources in memory.
#include <tidegate/config/config.hpp>
#include <tidegate/config/effective.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fnmatch.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::string_view secret = "s3cr3t-Of-The-Test";

/// A process with variables and a disk.
struct world {
  std::map<std::string, std::string> variables;
  std::map<std::string, std::string> files;

  [[nodiscard]] auto sources() const -> config_sources {
    return {
        .variable = [this](std::string const& name) -> std::optional<std::string> {
          auto const found = variables.find(name);
          return found == variables.end() ? std::nullopt : std::optional(found->second);
        },
        .file = [this](std::string const& path,
                       std::size_t octets_max) -> result<std::string, std::string> {
          auto const found = files.find(path);
          if (found == files.end()) {
            return failure(std::string("No such file or directory"));
          }
          return found->second.substr(0, octets_max + 1);
        },
        .matching =
            [this](std::string const& pattern) -> result<std::vector<std::string>, std::string> {
          std::vector<std::string> found;
          for (auto const& [name, text] : files) {
            if (::fnmatch(pattern.c_str(), name.c_str(), FNM_PATHNAME) == 0) {
              found.insert(found.begin(), name);
            }
          }
          return found;
        }};
  }

  [[nodiscard]] auto read(std::string const& text) const
      -> result<config, std::vector<config_fault>> {
    return parse_config(text, "etc/gateway.yaml", sources());
  }

  [[nodiscard]] auto faults(std::string const& text) const -> std::vector<std::string> {
    auto const made = read(text);
    std::vector<std::string> out;
    for (auto const& fault : made ? made->warnings : made.error()) {
      out.push_back(to_string(fault));
    }
    return out;
  }
};

constexpr std::string_view route = "routes: [{match: {path: /**}, service: echo}]\n";

auto with(std::string_view text) -> std::string {
  return std::string(route) + std::string(text);
}

auto all_text(config const& made) -> std::string {
  std::string text;
  for (auto const& each : made.effective) {
    text += each.path + " = " + each.value + " (" + each.origin + ")\n";
  }
  for (auto const& each : made.warnings) {
    text += to_string(each) + "\n";
  }
  return text;
}

// ---- variables ----

TEST(config_variables, stand_for_values_of_each_type) {
  world const with_values{.variables = {{"PORT", "8080"},
                                        {"YES", "true"},
                                        {"QUOTA", "7"},
                                        {"WINDOW", "1m"},
                                        {"LEVEL", "debug"},
                                        {"ONE", "a"},
                                        {"TWO", "b"}},
                          .files = {{"etc/host.txt", "api.internal\n"}}};
  auto const made =
      with_values.read(with("listen: [{address: '127.0.0.1:${PORT}', http2: '${YES}'}]\n"
                            "policies: {p: {quota: '${QUOTA}', window: '${WINDOW}'}}\n"
                            "upstreams: {u: \"http://${file:host.txt}:${PORT}/${ONE}${TWO}\"}\n"
                            "log-level: ${LEVEL}\n"
                            "data: x$${PORT}$$y$\n"));
  ASSERT_TRUE(made) << to_string(made.error().front());
  EXPECT_EQ(made->listen[0].address, "127.0.0.1:8080");
  EXPECT_TRUE(made->listen[0].http2);
  EXPECT_EQ(made->policies[0].policy.quota(), 7);
  EXPECT_EQ(to_string(made->upstreams[0].servers[0]), "http://api.internal:8080/ab");
  EXPECT_EQ(made->log, log_level::debug);
  EXPECT_EQ(made->data, "etc/x${PORT}$$y$");
}

struct fault_row {
  std::string name;
  std::string text;
  std::vector<std::string> wanted;  ///< beginnings
};

class config_variable_faults : public testing::TestWithParam<fault_row> {};

TEST_P(config_variable_faults, are_said_with_their_place) {
  world const w{.variables = {{"WORD", "word"}, {"BAD", "\x01"}, {"LATIN", "\xe4 b"}},
                .files = {{"etc/large", std::string(variable_octets_max + 1, 'x')},
                          {"etc/fits", std::string(variable_octets_max, 'x') + "\n"}}};
  auto const found = w.faults(GetParam().text);
  ASSERT_EQ(found.size(), GetParam().wanted.size()) << testing::PrintToString(found);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_THAT(found[i], testing::StartsWith("etc/gateway.yaml:" + GetParam().wanted[i]));
  }
}

INSTANTIATE_TEST_SUITE_P(
    table, config_variable_faults,
    testing::ValuesIn(std::vector<fault_row>{
        {"not_set",
         with("data: a${NONE}\n"),
         {"2:7: \"${NONE}\": the environment variable is not"}},
        {"not_closed", with("data: a${NONE\n"), {"2:7: \"${\" is not closed (expected ${NAME}"}},
        {"no_name", with("data: ${}\n"), {"2:7: \"${}\": not a variable (expected ${NAME}"}},
        {"a_bad_name", with("data: ${1A}\n"), {"2:7: \"${1A}\": not a variable"}},
        {"a_default", with("data: ${A:-b}\n"), {"2:7: \"${A:-b}\": not a variable"}},
        {"nested", with("data: ${A${B}}\n"), {"2:7: \"${A${B}\": not a variable"}},
        {"no_path", with("data: '${file:}'\n"), {"2:7: \"${file:}\": not a variable"}},
        {"no_file",
         with("data: '${file:x/y}'\n"),
         {"2:7: \"${file:x/y}\": cannot read the file: No such file"}},
        {"a_large_file",
         with("data: ${file:large}\n"),
         {"2:7: \"${file:large}\": larger than 64KiB"}},
        {"a_file_that_fits", with("access-log: ${file:fits}\n"), {}},
        {"a_control_character", with("data: ${BAD}\n"), {"2:7: \"${BAD}\": a control character"}},
        {"not_utf_8", with("data: ${LATIN}\n"), {"2:7: \"${LATIN}\": a control character, or not"}},
        {"a_key", with("upstreams: {'${WORD}': 'http://a'}\n"), {"2:13: a key has no variables"}},
        {"no_number",
         with("workers: ${WORD}\n"),
         {"2:10: workers: invalid value of \"${WORD}\" (expec"}},
        {"a_number_in_quotes", with("workers: '${WORD}'\n"), {"2:10: workers: invalid value of"}},
        {"two", with("data: ${A}\nsecrets: ${B}\n"), {"2:7: \"${A}\"", "3:10: \"${B}\""}},
    }),
    [](auto const& row) { return row.param.name; });

TEST(config_variables, are_never_shown_where_a_value_is_wrong) {
  world const w{.variables = {{"S", std::string(secret)}}, .files = {}};
  // Each option that has a single value, with one that is not allowed for most of them.
  for (auto const* const text :
       {"listen: ${S}\n", "listen: [{address: '${S}'}]\n", "admin: ${S}\n", "workers: ${S}\n",
        "stores: {quota: '${S}', idempotency: 'redis://u:${S}@h:x', directory: '${S}'}\n",
        "upstreams: {a: '${S}', b: 'http://u:${S}@h', c: {servers: ['http://${S}', "
        "'http://${S}']}}\n",
        "policies: {a: {quota: '${S}', window: '${S}', unit: '${S}', partition: ['header:${S}', "
        "'header:${S}', '${S}']}}\n",
        "trusted-proxies: ['${S}']\n", "client-ip: {ipv6-prefix: '${S}'}\n", "log-level: ${S}\n",
        "http: {max-body: '${S}', header-timeout: '${S}', ambiguous-paths: '${S}'}\n",
        "access-log: {file: a, query: '${S}'}\n", "fields: {ratelimit: '${S}', legacy: '${S}'}\n",
        "include: '${S}'\n", "include: '${S}*'\n"}) {
    for (auto const& fault : w.faults(with(text))) {
      EXPECT_THAT(fault, Not(testing::ContainsRegex("[sS]3[cC][rR]3[tT]"))) << text;
    }
  }
  auto const in_routes = [&](std::string const& options) {
    return w.faults("upstreams: {u: 'http://a'}\nroutes:\n  - {" + options +
                    "}\n  - {match: {path: /b}, upstream: u}\n");
  };
  for (auto const* const options :
       {"match: {path: '${S}'}, upstream: '${S}'",
        "match: {path: '/${S}', host: '${S}:1'}, upstream: u",
        "match: {path: /a, methods: ['${S}', '${S}']}, upstream: u, limits: ['${S}']",
        "name: '${S}', match: {path: /a, query: {q: '${S}'}}, upstream: {u: '${S}'}",
        "match: {path: /a, headers: {x: '${S}\\n'}}, upstream: u, cost: '${S}'",
        "match: {path: /a}, service: '${S}'", "match: {path: /a}, redirect: {to: '${S}'}",
        "match: {path: /a}, upstream: u, rewrite: {path: '${S}'}",
        "match: {path: /a}, upstream: u, cors: {origins: ['${S}', '${S}']}",
        "match: {path: /a}, upstream: u, allow: ['${S}']",
        "match: {path: /a}, upstream: u, request: {set: {Host: '${S} '}, remove: ['${S}', '${S}']}",
        "match: {path: /a}, upstream: u, auth: {bearer-tokens: [{name: '${S}', sha256: '${S}'}]}",
        "match: {path: /a}, upstream: u, idempotency: {mode: '${S}', scope: ['${S}']}"}) {
    auto const found = in_routes(options);
    EXPECT_THAT(found, Not(IsEmpty())) << options;
    for (auto const& fault : found) {
      EXPECT_THAT(fault, Not(testing::ContainsRegex("[sS]3[cC][rR]3[tT]"))) << options;
    }
  }
}

TEST(config_variables, are_shown_as_they_are_written) {
  world w{.variables = {{"S", std::string(secret)}, {"N", "5"}},
          .files = {{"etc/s", "from-file\n"}}};
  std::string const text =
      "data: /${S}\n"
      "admin: {address: 'unix:/${S}'}\n"
      "listen: ['unix:/run/${S}']\n"
      "stores: {quota: 'redis://:${S}@h:1'}\n"
      "upstreams: {u: {servers: ['http://${S}.example', {url: 'http://b/${file:s}'}]}}\n"
      "policies: {p: {quota: '${N}', window: 1m, algorithm: gcra}}\n"
      "routes:\n"
      "  - {match: {path: '/${S}', host: '${S}', headers: {X-a: '${S}'}}, upstream: u, limits: "
      "[p]}\n"
      "  - {name: '${S}', match: {path: /b}, upstream: u, "
      "request: {set: {X-Note: '${S}', Authorization: 'Bearer ${S}'}}}\n";
  auto const made = w.read(text);
  ASSERT_TRUE(made) << to_string(made.error().front());
  EXPECT_EQ(made->routes[0].name, "${S}/${S} x-a:*");
  EXPECT_EQ(made->routes[1].request.set[0].value, secret);
  auto const shown = all_text(*made);
  EXPECT_THAT(shown, Not(HasSubstr(std::string(secret))));
  EXPECT_THAT(shown, Not(HasSubstr("from-file")));
  EXPECT_THAT(shown, HasSubstr("data = /${S} (etc/gateway.yaml:1:7)"));
  EXPECT_THAT(shown, HasSubstr("policies.p.quota = ${N} (etc/gateway.yaml:6:23)"));
  EXPECT_THAT(shown, HasSubstr("policies.p.burst = ${N} (default)"));
  EXPECT_THAT(shown, HasSubstr("routes[${S}].request.set.X-Note = ${S} "));
  EXPECT_THAT(shown, HasSubstr("secrets = /${S}/secrets.key (default)"));

  // Another value is a change all the same.
  w.variables["S"] = "another-secret";
  auto const again = w.read(text);
  ASSERT_TRUE(again);
  auto const changes = differences(made->effective, again->effective);
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes[0].to->value, "[unix:/run/${S}]");
  EXPECT_THAT(all_text(*again), Not(HasSubstr("another-secret")));
  EXPECT_EQ(all_text(*again), shown);
}

TEST(config_variables, are_bounded_together) {
  world const w{.variables = {{"L", std::string(variable_octets_max, 'x')}}, .files = {}};
  std::string text = "x: [";
  for (int i = 0; i < 1025; ++i) {
    text += "'${L}',";
  }
  auto const found = w.faults(with(text + "]\n"));
  EXPECT_THAT(found,
              testing::Contains(HasSubstr(": the values of all variables are larger than 64MiB")));
}

// ---- included files ----

TEST(config_include, puts_lists_behind_each_other_and_merges_mappings) {
  world const w{.variables = {},
                .files = {{"etc/routes.d/b.yaml", "routes: [{match: {path: /b}, upstream: two}]\n"},
                          {"etc/routes.d/a.yaml",
                           "upstreams: {two: http://two}\nroutes: [{match: {path: /a}, upstream: "
                           "one}]\npolicies: {p: {quota: 1, window: 1s}}\n"},
                          {"etc/routes.d/no.txt", "nonsense"},
                          {"etc/empty.yaml", "# nothing\n"},
                          {"etc/limits.yaml", "include: deep.yaml\nhttp: {max-headers: 7}\n"},
                          {"etc/deep.yaml", "routes: [{match: {path: /d}, service: echo}]\n"}}};
  auto const made = w.read(
      "include: [limits.yaml, routes.d/*.yaml, empty.yaml, none.d/*.yaml]\n"
      "upstreams: {one: http://one}\n"
      "routes: [{match: {path: /m}, upstream: one, limits: [p]}]\n");
  ASSERT_TRUE(made) << to_string(made.error().front());
  std::vector<std::string> names;
  for (auto const& each : made->routes) {
    names.push_back(each.name);
  }
  EXPECT_THAT(names, ElementsAre("/m", "/d", "/a", "/b"));
  EXPECT_EQ(made->upstreams.size(), 2U);
  EXPECT_EQ(made->http.max_headers, 7);
  ASSERT_EQ(made->warnings.size(), 1U);
  EXPECT_EQ(to_string(made->warnings[0]),
            "etc/gateway.yaml:1:53: include: no file matches \"none.d/*.yaml\"");
  auto const shown = all_text(*made);
  EXPECT_THAT(shown, HasSubstr("http.max-headers = 7 (etc/limits.yaml:2:21)"));
  EXPECT_THAT(shown, HasSubstr("routes[/b].upstream = two (etc/routes.d/b.yaml:1:40)"));
  EXPECT_THAT(shown, HasSubstr("policies.p.quota = 1 (etc/routes.d/a.yaml:3:23)"));
  EXPECT_EQ(place_of(*made, "upstreams.two.servers").file, "etc/routes.d/a.yaml");
}

TEST(config_include, says_the_true_place_of_a_fault) {
  world const w{
      .variables = {},
      .files = {{"etc/a.yaml", "\nroutes:\n  - {match: {path: /x}, upstream: u, limits: [no]}\n"},
                {"etc/b.yaml",
                 "upstreams: {u: http://b}\nroutes: [{match: {path: /**}, service: echo}, "
                 "{name: m, match: {path: /z}, service: echo}]\nlog-level: info\n"},
                {"etc/c.yaml", "a: [\n"}}};
  EXPECT_THAT(w.faults("include: [a.yaml, b.yaml]\nupstreams: {u: http://a}\nlog-level: info\n"
                       "routes: [{name: m, match: {path: /m}, service: echo}]\n"),
              ElementsAre(HasSubstr("etc/a.yaml:3:47: unknown policy \"no\""),
                          "etc/b.yaml:1:13: duplicate key \"u\"; it is already in "
                          "etc/gateway.yaml:2:13",
                          "etc/b.yaml:2:54: name: the route in line 4 of etc/gateway.yaml has the "
                          "same name, \"m\"",
                          "etc/b.yaml:3:1: duplicate key \"log-level\"; it is already in "
                          "etc/gateway.yaml:3:1"));
  // Nothing else is said while a file cannot be read.
  EXPECT_THAT(w.faults("include: c.yaml\n"),
              ElementsAre(testing::StartsWith("etc/c.yaml:2:1: this is not YAML: ")));
  EXPECT_THAT(w.faults("include: b.yaml\nroutes: [{match: {path: /b/**}, service: echo}, {match: "
                       "{path: /b/c}, service: echo}]\nupstreams: {x: http://x}\n"),
              ElementsAre(testing::StartsWith(
                              "etc/b.yaml:2:47: never reached: the route \"/**\" in line 2 takes"),
                          "etc/gateway.yaml:2:49: never reached: the route \"/b/**\" in line 2 "
                          "takes all of its requests; the first match wins, so put the narrower "
                          "one first"));
}

TEST(config_include, refuses_what_is_missing_a_circle_and_a_file_twice) {
  world const w{.variables = {},
                .files = {{"etc/self.yaml", "include: self.yaml\n"},
                          {"etc/one.yaml", "include: ./two.yaml\n"},
                          {"etc/two.yaml", "include: [one.yaml]\n"},
                          {"etc/main.yaml", "include: gateway.yaml\n"},
                          {"etc/list.yaml", "[a]\n"},
                          {"etc/twice.yaml", "data: a\ndata: b\n"},
                          {"etc/x.yaml", ""}}};
  auto const said = [&](std::string const& include) {
    auto found = w.faults(with("include: " + include + "\n"));
    return found.empty() ? std::string() : found.front();
  };
  EXPECT_EQ(said("none.yaml"),
            "etc/gateway.yaml:2:10: include: cannot read \"etc/none.yaml\": No such file or "
            "directory");
  EXPECT_EQ(said("self.yaml"), "etc/self.yaml:1:10: include: \"etc/self.yaml\" includes itself");
  EXPECT_EQ(said("one.yaml"),
            "etc/two.yaml:1:11: include: \"etc/one.yaml\" includes itself, by way of "
            "\"etc/two.yaml\"");
  EXPECT_EQ(said("main.yaml"),
            "etc/main.yaml:1:10: include: \"etc/gateway.yaml\" includes itself, by way of "
            "\"etc/main.yaml\"");
  EXPECT_EQ(said("[x.yaml, ./x.yaml]"),
            "etc/gateway.yaml:2:19: include: \"etc/x.yaml\" is included twice; first in "
            "etc/gateway.yaml:2:11");
  EXPECT_THAT(said("list.yaml"), HasSubstr("etc/list.yaml:1:1: expected a mapping"));
  EXPECT_THAT(said("twice.yaml"), HasSubstr("etc/twice.yaml:2:1: duplicate key \"data\"; it is"));
  EXPECT_THAT(said("{a: b}"), HasSubstr("2:10: include: invalid value (expected a path"));
  EXPECT_THAT(said("[[a]]"), HasSubstr("2:11: include: invalid value (expected a path"));
  EXPECT_THAT(said("''"), HasSubstr("2:10: include: invalid value (expected a path"));
  EXPECT_THAT(said("~"), HasSubstr("2:1: include: invalid value (expected a path"));
}

TEST(config_include, is_bounded_in_depth_files_and_octets) {
  world w{.variables = {}, .files = {}};
  for (int i = 0; i < 9; ++i) {
    w.files["etc/" + std::to_string(i)] = "include: '" + std::to_string(i + 1) + "'\n";
  }
  EXPECT_THAT(w.faults(with("include: '0'\n")),
              ElementsAre("etc/7:1:10: include: nested too deeply (expected at most 8 levels)"));
  w.files.clear();
  auto const part = "# " + std::string(9'000'000, 'x') + "\n";
  for (int i = 0; i < 8; ++i) {
    w.files["etc/" + std::to_string(i)] = part;
  }
  EXPECT_THAT(
      w.faults(with("include: '*'\n")),
      ElementsAre("etc/gateway.yaml:2:10: include: all files together are larger than 64MiB"));
  w.files.clear();
  for (std::size_t i = 0; i <= include_files_max; ++i) {
    w.files["etc/" + std::to_string(i)] = "";
  }
  EXPECT_THAT(
      w.faults(with("include: '*'\n")),
      ElementsAre("etc/gateway.yaml:2:10: include: too many files (expected at most 10000)"));
}

TEST(config_include, takes_variables_and_folders_with_odd_names) {
  world const w{.variables = {{"D", "routes.d"}, {"P", "/a"}},
                .files = {{"e[t]*/routes.d/a.yaml",
                           "routes: [{match: {path: '${P}'}, service: "
                           "echo}]\ndata: '${file:name}'\n"},
                          {"e[t]*/name", "here\r\n"},
                          {"et/routes.d/b.yaml", "x: 1"}}};
  auto const made = parse_config("include: ${D}/*.yaml\n", "e[t]*/gateway.yaml", w.sources());
  ASSERT_TRUE(made) << to_string(made.error().front());
  EXPECT_EQ(made->routes.at(0).match.path, "/a");
  EXPECT_EQ(made->data, "e[t]*/here");
}

TEST(config_include, leaves_what_aliases_share_as_it_is) {
  world const w{.variables = {}, .files = {{"etc/a.yaml", "trusted-proxies: [10.0.0.2]\n"}}};
  auto const made =
      w.read(with("include: a.yaml\ntrusted-proxies: &p [10.0.0.1]\n") + "admin: 127.0.0.1:1\n");
  ASSERT_TRUE(made) << to_string(made.error().front());
  EXPECT_EQ(made->trusted_proxies.size(), 2U);
}

}  // namespace
}  // namespace tidegate::gateway
