// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "command_line.hpp"

#include <tidegate/sf.hpp>

#include <CLI/CLI.hpp>

#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::app {

namespace {

struct sf_options {
  std::string type;
  std::string dialect = "rfc9651";
};

/// Calls `f` with the dialect and the type as constants.
template <class F>
auto with_kind(sf_options const& options, F f) -> int {
  return sf::with_dialect(*sf::dialect_named(options.dialect), [&](auto dialect) {
    using enum sf::field_type;
    switch (*sf::field_type_named(options.type)) {
      case list: return f(dialect, std::integral_constant<sf::field_type, list>{});
      case dictionary: return f(dialect, std::integral_constant<sf::field_type, dictionary>{});
      case item: break;
    }
    return f(dialect, std::integral_constant<sf::field_type, item>{});
  });
}

auto fail(std::string_view what, std::size_t offset) -> int {
  std::cerr << "error: " << what << " at offset " << offset << '\n';
  return exit_failure;
}

/// Prints what `text` makes of a value, or why there is none.
template <class Value, class Text>
auto print_parsed(result<Value, sf::parse_error> const& value, Text text) -> int {
  if (!value.has_value()) {
    return fail(sf::message(value.error().fault), value.error().offset);
  }
  std::cout << text(*value) << '\n';
  return exit_success;
}

/// Prints a field value; nothing for an empty List or Dictionary, which a message leaves out.
template <class Value>
auto print_formatted(result<Value, sf::json_error> const& value) -> int {
  if (!value.has_value()) {
    return fail(value.error().message, value.error().offset);
  }
  if (auto const text = sf::serialized(*value); !text.empty()) {
    std::cout << text << '\n';
  }
  return exit_success;
}

auto parse_value(sf_options const& options, std::string_view field_value) -> int {
  return with_kind(options, [&](auto dialect, auto type) {
    constexpr auto D = decltype(dialect)::value;
    if constexpr (type == sf::field_type::item) {
      return print_parsed(sf::parse_item<D>(field_value), sf::item_to_json<D>);
    } else if constexpr (type == sf::field_type::list) {
      return print_parsed(sf::parse_list<D>(field_value), sf::list_to_json<D>);
    } else {
      return print_parsed(sf::parse_dictionary<D>(field_value), sf::dictionary_to_json<D>);
    }
  });
}

auto format_value(sf_options const& options, std::string_view json) -> int {
  return with_kind(options, [&](auto dialect, auto type) {
    constexpr auto D = decltype(dialect)::value;
    if constexpr (type == sf::field_type::item) {
      return print_formatted(sf::item_from_json<D>(json));
    } else if constexpr (type == sf::field_type::list) {
      return print_formatted(sf::list_from_json<D>(json));
    } else {
      return print_formatted(sf::dictionary_from_json<D>(json));
    }
  });
}

auto lines_of_stdin() -> std::vector<std::string> {
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) {
    lines.push_back(std::move(line));
  }
  return lines;
}

auto add_options(CLI::App& command) -> std::shared_ptr<sf_options> {
  auto options = std::make_shared<sf_options>();
  command.add_option("--type", options->type, "What the header is defined as")
      ->required()
      ->check(one_of({"item", "list", "dictionary"}))
      ->type_name("TYPE");
  command.add_option("--dialect", options->dialect, "The specification to go by")
      ->check(one_of({"rfc9651", "rfc8941", "draft11"}))
      ->type_name("NAME")
      ->capture_default_str();
  return options;
}

void add_parse(CLI::App& sf, std::vector<std::string> const& operands, int& status) {
  auto* const command = sf.add_subcommand("parse", "Print a header value as JSON");
  auto const options = add_options(*command);
  command->footer(
      R"(Each VALUE is one header line; they are combined as the specification says.
Without any, each line of standard input is one.

Examples:
  tidegate sf parse --type list '"burst";q=100;w=60, "daily";q=5000'
  tidegate sf parse --type item -- -42

Exit status: 0 it was printed; 1 the value is not valid; 2 the command line is
wrong.)");
  // Values may begin with "-", as negative numbers do: what is not an option of ours is one.
  command->allow_extras();
  command->callback([command, options, &operands, &status] {
    auto lines = command->remaining();
    for (auto const& line : lines) {
      if (line.starts_with("--")) {
        throw CLI::ExtrasError(command->get_name(), {line});
      }
    }
    lines.insert(lines.end(), operands.begin(), operands.end());
    if (lines.empty()) {
      lines = lines_of_stdin();
    }
    std::string scratch;
    std::vector<std::string_view> const views(lines.begin(), lines.end());
    status = parse_value(*options, sf::combine(views, scratch));
  });
}

void add_format(CLI::App& sf, std::vector<std::string> const& operands, int& status) {
  auto* const command =
      sf.add_subcommand("format", "Print JSON from standard input as a header value");
  auto const options = add_options(*command);
  command->footer(
      R"(Reads the JSON that 'tidegate sf parse' prints. An empty list or dictionary
prints nothing.

Examples:
  echo '["abc", [["q", 1]]]' | tidegate sf format --type item

Exit status: 0 it was printed; 1 there is no such value; 2 the command line is
wrong.)");
  command->callback([command, options, &operands, &status] {
    if (!operands.empty()) {
      throw CLI::ExtrasError(command->get_name(), operands);
    }
    std::string const json((std::istreambuf_iterator<char>(std::cin)),
                           std::istreambuf_iterator<char>());
    status = format_value(*options, json);
  });
}

}  // namespace

void add_sf_command(CLI::App& app, std::vector<std::string> const& operands, int& status) {
  auto* const sf = app.add_subcommand("sf", "Parse and format Structured Fields (RFC 9651)");
  sf->require_subcommand(1);
  add_parse(*sf, operands, status);
  add_format(*sf, operands, status);
}

}  // namespace tidegate::app
