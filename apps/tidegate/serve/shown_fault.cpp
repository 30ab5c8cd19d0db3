// SPDX-License-Identifier: Apache-2.0
#include "serve/shown_fault.hpp"

#include <tidegate/base/ascii.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace tidegate::app {

namespace {

/// So much of a line is shown, around the place.
constexpr std::size_t line_octets_max = 100;

[[nodiscard]] auto line_of(std::string_view text, std::size_t number)
    -> std::optional<std::string_view> {
  for (std::size_t i = 1; !text.empty(); ++i) {
    auto line = take_until(text, '\n');
    if (i == number) {
      line.remove_suffix(line.ends_with('\r') ? 1 : 0);
      return line;
    }
  }
  return std::nullopt;
}

[[nodiscard]] auto begins_character(char c) noexcept -> bool {
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

/// As many columns as `text` has, with its tabs.
[[nodiscard]] auto blank_for(std::string_view text) -> std::string {
  std::string out;
  for (char const c : text) {
    out.append(begins_character(c) ? 1 : 0, c == '\t' ? '\t' : ' ');
  }
  return out;
}

/// `line` without what is too far from `column`, which is moved with it.
[[nodiscard]] auto cut_around(std::string_view line, std::size_t& column) -> std::string_view {
  constexpr std::size_t before_max = 60;
  auto begin = column > before_max && line.size() > line_octets_max ? column - before_max : 0;
  while (begin > 0 && begin < column && !begins_character(line[begin])) {
    ++begin;
  }
  column -= begin;
  auto end = std::min(line.size(), begin + line_octets_max);
  while (end < line.size() && end > begin && !begins_character(line[end])) {
    --end;
  }
  return line.substr(begin, end - begin);
}

/// The tabs of a line stay, since a tab may be what is wrong; else nothing controls the terminal.
[[nodiscard]] auto shown_line(std::string_view line) -> std::string {
  std::string out;
  while (!line.empty()) {
    auto const tab = std::min(line.find('\t'), line.size());
    out += explain::printable(line.substr(0, tab));
    out.append(tab < line.size() ? 1 : 0, '\t');
    line.remove_prefix(std::min(tab + 1, line.size()));
  }
  return out;
}

}  // namespace

auto shown_fault(gateway::config_fault const& fault, std::string_view text, explain::colours colour)
    -> std::string {
  auto const line = line_of(text, fault.line);
  if (!line || fault.column == 0 || fault.column > line->size() + 1) {
    return to_string(fault) + "\n";
  }
  // A fault of YAML has the line in its message.
  auto shown = fault;
  shown.message.resize(std::min(shown.message.find("; the line: \""), shown.message.size()));
  auto column = fault.column - 1;
  auto const part = cut_around(*line, column);
  auto const number = std::to_string(fault.line);
  bool const is_coloured = colour == explain::colours::on;
  auto const dim = [&](std::string const& words) {
    return is_coloured ? "\x1b[2m" + words + "\x1b[0m" : words;
  };
  return to_string(shown) + "\n" + dim("  " + number + " | ") + shown_line(part) + "\n" +
         dim("  " + std::string(number.size(), ' ') + " | ") + blank_for(part.substr(0, column)) +
         (is_coloured ? "\x1b[1;31m^\x1b[0m\n" : "^\n");
}

}  // namespace tidegate::app
