// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/explain/rule.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::explain {

/// One thing there is to say about a message.
struct finding {
  severity level = severity::info;
  std::string_view rule;  ///< the id of the rule that is broken; empty for `severity::info`
  std::string field;      ///< the name of the field it is about, or of what else it is
  std::string_view specification;  ///< one of `explain::specification`; empty where there is none
  std::string_view section;
  std::string text;  ///< one or two sentences, without a period at the end
  auto operator==(finding const&) const -> bool = default;
};

/// How many of them have that severity.
[[nodiscard]] auto count(std::span<finding const> findings, severity level) noexcept -> std::size_t;

/// Whether text is for a terminal that shows colours.
enum class colours : bool { off, on };

/// For people: findings grouped by the field they are about, in their order; advice, which callers
/// cannot follow, comes last, for the authors of the API. Characters that would control a
/// terminal are shown as "?".
[[nodiscard]] auto to_text(std::span<finding const> findings, colours colour = colours::off)
    -> std::string;

/// For programs, one line:
///
///     {"findings":[{"severity","rule","field","specification","section","text"}…],
///      "errors":N,"warnings":N}
///
/// `rule`, `specification` and `section` are left out where they are empty.
[[nodiscard]] auto to_json(std::span<finding const> findings) -> std::string;

/// Appends the members of one finding as they stand in `to_json`.
void append_json(std::string& out, finding const& one);

/// `text` with every character that controls a terminal replaced by "?".
[[nodiscard]] auto printable(std::string_view text) -> std::string;

}  // namespace tidegate::TIDEGATE_ABI::explain
