// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/lint/judge.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::lint {

/// How much a text has.
enum class detail : std::uint8_t {
  broken,      ///< what is wrong, and how many rules hold
  every_rule,  ///< the others one by one, too
};

/// For people, one part for each area.
[[nodiscard]] auto to_text(std::string_view url, std::span<exchange const> exchanges,
                           std::span<judgement const> judgements, detail shown,
                           explain::colours colour) -> std::string;

/// For programs, one line:
///
///     {"url","requests":N,"rules":[{"id","area","severity","specification","section","summary",
///      "outcome":"holds|broken|not-seen","findings":[{"text","where","times",…}]}…],
///      "errors":N,"warnings":N,"advice":N}
[[nodiscard]] auto to_json(std::string_view url, std::span<exchange const> exchanges,
                           std::span<judgement const> judgements) -> std::string;

/// The reference page of all rules, in Markdown: docs/reference/lint.md.
[[nodiscard]] auto rules_page() -> std::string;

}  // namespace tidegate::TIDEGATE_ABI::lint
