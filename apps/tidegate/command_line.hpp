// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
class Validator;
}  // namespace CLI

/// What all commands share: how help looks, what is said about a wrong command line, and values
/// that are checked before a command sees them.
namespace tidegate::app {

/// No line of help is longer.
inline constexpr std::size_t help_columns = 80;

/// Has `app`, and the commands that are added to it from now on, print help and faults in one form.
void use_common_texts(CLI::App& app);

/// The message for a word that is not a command below `app`.
[[nodiscard]] auto unknown_command(CLI::App const& app, std::string const& word) -> std::string;

/// One of these words. Help lists them.
[[nodiscard]] auto one_of(std::vector<std::string> words) -> CLI::Validator;

/// A whole number within these bounds.
[[nodiscard]] auto number_within(std::uint64_t min, std::uint64_t max) -> CLI::Validator;

}  // namespace tidegate::app
