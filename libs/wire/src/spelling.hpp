// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include "grammar.hpp"

#include <cstddef>
#include <string_view>

/// Names of fields as CGI and what follows it read them: what is not a letter or digit becomes "_",
/// and some take several of these for one.
namespace tidegate::TIDEGATE_ABI::wire::spelling {

[[nodiscard]] constexpr auto is_in_word(char c) noexcept -> bool {
  return grammar::is(c, grammar::letter_or_digit);
}

/// Whether a name consists of words with one "-" between two, as nearly all do: then it has no
/// other spelling.
[[nodiscard]] constexpr auto is_plain(std::string_view name) noexcept -> bool {
  bool between = true;
  for (char const c : name) {
    bool const in_word = is_in_word(c);
    if (!in_word && (between || c != '-')) {
      return false;
    }
    between = !in_word;
  }
  return !between;
}

/// Whether two names are read as one.
[[nodiscard]] constexpr auto are_one(std::string_view a, std::string_view b) noexcept -> bool {
  std::size_t i = 0;
  std::size_t j = 0;
  while (true) {
    while (i < a.size() && !is_in_word(a[i])) {
      ++i;
    }
    while (j < b.size() && !is_in_word(b[j])) {
      ++j;
    }
    if (i == a.size() || j == b.size()) {
      return i == a.size() && j == b.size();
    }
    while (i < a.size() && j < b.size() && is_in_word(a[i]) && is_in_word(b[j])) {
      if (to_lower(a[i++]) != to_lower(b[j++])) {
        return false;
      }
    }
    if ((i < a.size() && is_in_word(a[i])) || (j < b.size() && is_in_word(b[j]))) {
      return false;
    }
  }
}

}  // namespace tidegate::TIDEGATE_ABI::wire::spelling
