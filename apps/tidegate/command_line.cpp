// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/nearest.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <functional>
#include <string_view>
#include <utility>

namespace tidegate::app {

namespace {

// ── help ──

/// Where the words of an entry begin.
constexpr std::size_t words_column = 28;

/// A space at which no line ends.
constexpr char unbreakable = '\x1f';

/// `text` in lines of the right half of the page, each but the first moved in.
[[nodiscard]] auto wrapped(std::string_view text) -> std::string {
  constexpr auto width = help_columns - words_column;
  std::string out;
  while (text.size() > width) {
    auto const space = text.rfind(' ', width);
    auto const end =
        space == std::string_view::npos ? std::min(text.find(' '), text.size()) : space;
    out.append(text.substr(0, end)).append("\n").append(words_column, ' ');
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  out.append(text);
  std::ranges::replace(out, unbreakable, ' ');
  return out;
}

/// One entry: a name, and what it is.
[[nodiscard]] auto help_entry(std::string const& name, std::string_view text) -> std::string {
  auto out = "  " + name;
  if (out.size() + 2 > words_column) {
    out += "\n" + std::string(words_column, ' ');
  } else {
    out.append(words_column - out.size(), ' ');
  }
  return out + wrapped(text) + "\n";
}

/// The value of an option as CLI11 has it: `LEVEL:{error,warning}`.
struct value_form {
  std::string name;
  std::string choices;  ///< `error, warning`
};

[[nodiscard]] auto form_of(CLI::Option const& option) -> value_form {
  auto const whole = option.get_type_size() == 0 ? std::string() : option.get_type_name();
  std::string_view type = whole;
  value_form form{.name = std::string(take_until(type, ':')), .choices = {}};
  if (type.starts_with('{') && type.ends_with('}')) {
    type.remove_prefix(1);
    type.remove_suffix(1);
    while (!type.empty()) {
      form.choices += (form.choices.empty() ? "" : ", ") + std::string(take_until(type, ','));
    }
  }
  if (option.get_expected_max() >= CLI::detail::expected_max_vector_size && !form.name.empty()) {
    form.name += "...";
  }
  return form;
}

/// What an option is, with what else there is to know of its value in parentheses.
[[nodiscard]] auto words_of(CLI::Option const& option, value_form const& form) -> std::string {
  std::string notes;
  auto const note = [&notes](std::string const& text) {
    notes += (notes.empty() ? "" : "; ") + text;
  };
  if (!form.choices.empty()) {
    note("one of: " + form.choices);
  }
  if (!option.get_default_str().empty()) {
    note("default:" + std::string(1, unbreakable) + option.get_default_str());
  }
  if (option.get_required() && option.nonpositional()) {
    note("required");
  }
  return option.get_description() + (notes.empty() ? "" : " (" + notes + ")");
}

/// `-c, --config FILE`
[[nodiscard]] auto names_of(CLI::Option const& option, value_form const& form) -> std::string {
  std::string out;
  for (auto const& name : option.get_snames()) {
    out += (out.empty() ? "-" : ", -") + name;
  }
  for (auto const& name : option.get_lnames()) {
    out += (out.empty() ? "    --" : ", --") + name;
  }
  return out + (form.name.empty() ? "" : " " + form.name);
}

[[nodiscard]] auto usage_of(CLI::App const& app, std::string const& path) -> std::string {
  auto out = "Usage: " + path;
  bool const has_commands = !app.get_subcommands({}).empty();
  out += has_commands ? " COMMAND [OPTIONS]" : " [OPTIONS]";
  for (auto const* const each :
       app.get_options([](CLI::Option const* option) { return option->get_positional(); })) {
    auto name = each->get_name(true, false);
    name += each->get_expected_max() >= CLI::detail::expected_max_vector_size ? "..." : "";
    out += each->get_required() ? " " + name : " [" + name + "]";
  }
  // What is not one of its options is a value, even if it begins with "-".
  return out + (app.get_allow_extras() ? " [VALUE...]" : "") + "\n";
}

[[nodiscard]] auto help_of(CLI::App const& app, std::string const& path) -> std::string {
  auto out = app.get_description() + "\n\n" + usage_of(app, path);
  auto const section = [&out](std::string_view title, std::string const& entries) {
    if (!entries.empty()) {
      out.append("\n").append(title).append(":\n").append(entries);
    }
  };
  std::string commands;
  for (auto const* const each : app.get_subcommands({})) {
    commands += help_entry(each->get_name(), each->get_description());
  }
  std::string operands;
  std::string options;
  for (auto const* const each : app.get_options({})) {
    auto const form = form_of(*each);
    if (each->get_positional()) {
      operands += help_entry(each->get_name(true, false), words_of(*each, {}));
    }
    if (each->nonpositional()) {
      options += help_entry(names_of(*each, form), words_of(*each, form));
    }
  }
  section("Commands", commands);
  section("Arguments", operands);
  section("Options", options);
  return out + (app.get_footer().empty() ? "" : "\n" + app.get_footer() + "\n");
}

// ── faults ──

/// `; did you mean "x"?`, or nothing.
[[nodiscard]] auto suggestion(std::string_view text, std::vector<std::string> const& known)
    -> std::string {
  std::vector<std::string_view> const candidates(known.begin(), known.end());
  auto const meant = nearest(text, candidates);
  return meant.empty() ? "" : "; did you mean \"" + std::string(meant) + "\"?";
}

/// `a, b or c`
[[nodiscard]] auto alternatives(std::vector<std::string> const& words) -> std::string {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    out += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  return out;
}

/// The command that the words so far have led to.
struct reached_command {
  CLI::App const* app;
  std::string path;  ///< without the name of the program
};

[[nodiscard]] auto reached(CLI::App const& app) -> reached_command {
  reached_command found{&app, {}};
  while (!found.app->get_subcommands().empty()) {
    found.app = found.app->get_subcommands().front();
    found.path += " " + found.app->get_name();
  }
  return found;
}

/// What is wrong with a word that no option or operand takes.
[[nodiscard]] auto unexpected_word(CLI::App const& command, std::vector<std::string> const& words)
    -> std::string {
  auto const is_long = [](std::string const& each) { return each.starts_with("--"); };
  auto const option = std::ranges::find_if(words, is_long);
  auto const& word = option == words.end() ? words.front() : *option;
  if (!word.starts_with('-') || word.size() == 1) {
    return command.get_subcommands({}).empty() ? "unexpected argument \"" + word + "\""
                                               : unknown_command(command, word);
  }
  std::vector<std::string> known;
  for (auto const* const each : command.get_options({})) {
    for (auto const& name : each->get_lnames()) {
      known.push_back("--" + name);
    }
  }
  auto const name = word.substr(0, word.find('='));
  return "unknown option \"" + name + "\"" + suggestion(name, known);
}

[[nodiscard]] auto is(CLI::Error const& error, CLI::ExitCodes kind) -> bool {
  return error.get_exit_code() == static_cast<int>(kind);
}

/// What CLI11 says, in the words of the other messages.
[[nodiscard]] auto reworded(CLI::Error const& error, CLI::App const& command) -> std::string {
  using enum CLI::ExitCodes;
  std::string const text = error.what();
  auto const before = [&text](std::string_view mark) { return text.substr(0, text.find(mark)); };
  auto const behind = [&text](std::string_view mark) {
    return text.substr(text.find(mark) + mark.size());
  };
  if (is(error, RequiresError)) {
    return before(" requires ") + " needs " + behind(" requires ");
  }
  if (is(error, ExcludesError)) {
    return before(" excludes ") + " and " + behind(" excludes ") + " cannot be given together";
  }
  if (is(error, RequiredError)) {
    return text == "A subcommand is required" ? unknown_command(command, "")
                                              : before(" is required") + " is missing";
  }
  if (is(error, ExtrasError)) {  // of words that a command has looked at itself
    return "unexpected argument \"" + behind("expected: ") + "\"";
  }
  if (is(error, ArgumentMismatch) && text.ends_with(" missing")) {
    return before(": ") + " needs a value";
  }
  if (is(error, ArgumentMismatch) && text.contains(": At Most ")) {
    return before(": ") + " is given more than once";
  }
  return text;
}

[[nodiscard]] auto fault_text(CLI::App const* app, CLI::Error const& error) -> std::string {
  auto const [command, path] = reached(*app);
  auto const words = command->remaining();
  // A word that was not understood explains more than what is missing without it.
  bool const is_about_words =
      !words.empty() &&
      (is(error, CLI::ExitCodes::ExtrasError) ||
       (is(error, CLI::ExitCodes::RequiredError) && !command->get_allow_extras()));
  return "error: " +
         (is_about_words ? unexpected_word(*command, words) : reworded(error, *command)) +
         "\nRun 'tidegate help" + path + "' for what it takes.\n";
}

}  // namespace

void use_common_texts(CLI::App& app) {
  app.formatter_fn([](CLI::App const* command, std::string const& path, CLI::AppFormatMode) {
    return help_of(*command, path);
  });
  app.failure_message(fault_text);
  app.set_help_flag("-h,--help", "Print this help");
}

auto unknown_command(CLI::App const& app, std::string const& word) -> std::string {
  std::vector<std::string> known;
  for (auto const* const each : app.get_subcommands({})) {
    known.push_back(each->get_name());
  }
  return (word.empty() ? "a command is missing" : "unknown command \"" + word + "\"") +
         suggestion(word, known) + " (expected " + alternatives(known) + ")";
}

auto one_of(std::vector<std::string> words) -> CLI::Validator {
  auto listed = "{" + CLI::detail::join(words, ",") + "}";
  return {[words = std::move(words)](std::string const& text) -> std::string {
            return std::ranges::find(words, text) != words.end()
                       ? ""
                       : "unknown value \"" + text + "\"" + suggestion(text, words) +
                             " (expected " + alternatives(words) + ")";
          },
          std::move(listed)};
}

auto number_within(std::uint64_t min, std::uint64_t max) -> CLI::Validator {
  return {[min, max](std::string const& text) -> std::string {
            std::uint64_t number = 0;
            auto const* const end = text.data() + text.size();
            auto const [stop, fault] = std::from_chars(text.data(), end, number);
            bool const is_within =
                fault == std::errc{} && stop == end && number >= min && number <= max;
            return is_within ? ""
                             : "invalid number \"" + text + "\" (expected " + std::to_string(min) +
                                   " to " + std::to_string(max) + ")";
          },
          ""};
}

}  // namespace tidegate::app
