// SPDX-License-Identifier: Apache-2.0
//
// What all commands have in common: help, and what is said about a wrong command line.
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

auto tidegate(std::vector<std::string> arguments) -> outcome {
  arguments.insert(arguments.begin(), TIDEGATE_BINARY);
  return run(arguments);
}

TEST(command_line, takes_the_words_that_people_try_first) {
  for (auto const* const word : {"version", "--version", "-v"}) {
    auto const got = tidegate({word});
    EXPECT_EQ(got.status, 0) << word;
    EXPECT_THAT(got.out, testing::MatchesRegex("tidegate [0-9.]+ \\([^)]+\\)\n")) << word;
  }
  auto const help = tidegate({"help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, StartsWith("Tidegate: "));
  EXPECT_EQ(help.out, tidegate({"--help"}).out);
  EXPECT_EQ(help.out, tidegate({"-h"}).out);
  EXPECT_EQ(help.out, tidegate({}).err) << "without any word it is an error";
  EXPECT_EQ(tidegate({}).status, 2);
  EXPECT_EQ(tidegate({"help", "call"}).out, tidegate({"call", "--help"}).out);
  EXPECT_EQ(tidegate({"help", "scim", "export"}).out, tidegate({"scim", "export", "-h"}).out);
  EXPECT_THAT(tidegate({"help", "version"}).out, StartsWith("Print the version\n"));
  EXPECT_THAT(tidegate({"help", "--help"}).out, StartsWith("Print what a command takes\n"));
}

TEST(command_line, takes_a_configuration_without_its_option) {
  auto const got = tidegate({"check", "/no/such/file"});
  EXPECT_EQ(got.status, 2);
  EXPECT_THAT(got.err, HasSubstr("cannot read /no/such/file"));
  auto const serving = tidegate({"serve", "/no/such/file"});
  EXPECT_EQ(serving.status, 2);
  EXPECT_THAT(serving.err, HasSubstr("/no/such/file"));
}

TEST(command_line, says_in_one_form_what_is_wrong_and_where_help_is) {
  struct row {
    std::vector<std::string> words;
    std::string_view error;
    std::string_view help;
  };
  for (
      auto const& [words, error, help] : std::vector<row>{
          {{"serve", "--upstrem", "x"},
           R"(unknown option "--upstrem"; did you mean "--upstream"?)",
           "serve"},
          {{"check", "--jsno", "a.yaml"},
           R"(unknown option "--jsno"; did you mean "--json"?)",
           "check"},
          {{"call", "--frobnicate=1", "u"}, R"(unknown option "--frobnicate")", "call"},
          {{"call", "-z", "u"}, R"(unknown option "-z")", "call"},
          {{"sf", "parse", "--type", "item", "--foo", "1"},
           R"(unknown option "--foo")",
           "sf parse"},
          {{"check", "a", "b"}, R"(unexpected argument "b")", "check"},
          {{"version", "now"}, R"(unexpected argument "now")", "version"},
          {{"sf", "format", "--type", "item", "--", "x"},
           R"(unexpected argument "x")",
           "sf format"},
          {{"check"}, "FILE is missing", "check"},
          {{"call"}, "URL is missing", "call"},
          {{"explain"}, "HEADER is missing", "explain"},
          {{"sf", "parse", "1"}, "--type is missing", "sf parse"},
          {{"scim"}, "a command is missing (expected export, import or backup)", "scim"},
          {{"scim", "exprot"},
           R"(unknown command "exprot"; did you mean "export"? (expected export, import or backup))",
           "scim"},
          {{"call", "--rate"}, "--rate needs a value", "call"},
          {{"call", "--rate", "1/s", "--rate", "2/s", "u"},
           "--rate is given more than once",
           "call"},
          {{"serve", "--limit", "1/s", "a.yaml"}, "--limit needs --upstream", "serve"},
          {{"serve", "--upstream", "http://a", "a.yaml"},
           "--config and --upstream cannot be given together",
           "serve"},
          {{"call", "--repeat", "x", "u"},
           R"(--repeat: invalid number "x" (expected 1 to 1000000000))",
           "call"},
          {{"call", "--repeat", "0", "u"},
           R"(--repeat: invalid number "0" (expected 1 to 1000000000))",
           "call"},
          {{"serve", "--log-level", "warn", "a.yaml"},
           R"(--log-level: unknown value "warn" (expected error, warning, info or debug))",
           "serve"},
          {{"sf", "parse", "--type", "itm", "1"},
           R"(--type: unknown value "itm"; did you mean "item"? (expected item, list or dictionary))",
           "sf parse"},
          {{"call", "gopher://a"},
           R"(URL: "gopher://a" does not begin with http:// or https://)",
           "call"},
      }) {
    auto const got = tidegate(words);
    EXPECT_EQ(got.status, 2) << error;
    EXPECT_EQ(got.out, "") << error;
    EXPECT_EQ(got.err, "error: " + std::string(error) + "\nRun 'tidegate help " +
                           std::string(help) + "' for what it takes.\n");
  }
}

TEST(command_line, says_which_command_was_meant) {
  for (auto const& words :
       {std::vector<std::string>{"serv", "-c", "x"}, {"serv", "--help"}, {"help", "serv"}}) {
    auto const wrong = tidegate(words);
    EXPECT_EQ(wrong.status, 2);
    EXPECT_THAT(wrong.err, StartsWith(R"(error: unknown command "serv"; did you mean "serve"? )"
                                      "(expected serve, check, "));
  }
  EXPECT_THAT(tidegate({"frobnicate"}).err, Not(HasSubstr("did you mean")));
}

/// What one command prints as its help, and the names of the commands below it.
struct shown_help {
  std::string text;
  std::vector<std::string> commands;
};

/// Reads the help of a command: each option, argument and command is described in words that begin
/// with a capital.
auto check_help(std::vector<std::string> command) -> shown_help {
  command.emplace_back("--help");
  shown_help shown{tidegate(command).out, {}};
  auto const begins_well = [](std::string_view words) {
    return !words.empty() && words.front() >= 'A' && words.front() <= 'Z';
  };
  EXPECT_TRUE(begins_well(shown.text)) << shown.text;
  std::istringstream lines(shown.text);
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
    if (!line.starts_with(' ')) {
      section = line;
    }
    bool const is_list = section == "Options:" || section == "Arguments:" || section == "Commands:";
    if (!is_list || !line.starts_with("  ")) {
      continue;
    }
    constexpr std::size_t column = 28;  // of the words; a long name has a line of its own
    bool const is_first = line.find_first_not_of(' ') < column;
    if (is_first && line.size() > column && line.substr(column - 2, 2) == "  ") {
      EXPECT_TRUE(begins_well(std::string_view(line).substr(column))) << line;
    }
    if (section == "Commands:" && is_first) {
      shown.commands.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return shown;
}

TEST(command_line, describes_every_command_in_the_same_way_in_the_help) {
  std::vector<std::vector<std::string>> commands{{}};
  std::size_t examples = 0;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    auto const command = commands[i];
    auto const shown = check_help(command);
    // A value has a name that says what it is; what is allowed is said in words.
    for (auto const* const raw : {"UINT", "INT in [", "TEXT", "REQUIRED", "Excludes:", "Needs:"}) {
      EXPECT_THAT(shown.text, Not(HasSubstr(raw)));
    }
    bool const has_examples = shown.text.contains("\nExamples:\n  tidegate ") ||
                              shown.text.contains("\nExamples:\n  echo ");
    examples += has_examples ? 1U : 0U;
    for (auto const& name : shown.commands) {
      commands.push_back(command);
      commands.back().push_back(name);
    }
  }
  EXPECT_GE(commands.size(), 16U) << "not all commands were found";
  EXPECT_GE(examples, 12U) << "every command that does something has examples";
}

}  // namespace
}  // namespace tidegate::e2e
