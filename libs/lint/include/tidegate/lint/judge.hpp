// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/explain/finding.hpp>
#include <tidegate/explain/rule.hpp>
#include <tidegate/lint/exchange.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::lint {

/// What rules are about; a report has one part for each.
enum class area : std::uint8_t { ratelimit, problem_details, idempotency, scim };

/// `RateLimit and Retry-After`, `Problem details`, `Idempotency-Key`, `SCIM pagination`.
[[nodiscard]] auto title_of(area of) noexcept -> std::string_view;
/// The area of a rule, by its id.
[[nodiscard]] auto area_of(explain::rule const& of) noexcept -> area;

/// Every rule that an API is judged by: those about single fields, and those about how it behaves.
[[nodiscard]] auto rules() -> std::vector<explain::rule>;

/// What became of a rule.
enum class outcome : std::uint8_t {
  not_seen,  ///< nothing was recorded that it is about
  holds,
  broken,
};

/// `not-seen`, `holds`, `broken`.
[[nodiscard]] auto name_of(outcome what) noexcept -> std::string_view;

/// One way in which a rule is broken.
struct broken_rule {
  explain::finding finding;
  std::string where;      ///< `GET /orders: 200`, the first exchange that shows it
  std::size_t times = 1;  ///< how many exchanges show it
};

/// What became of one rule, with at most `broken_max` different findings.
struct judgement {
  explain::rule rule;
  outcome result = outcome::not_seen;
  std::vector<broken_rule> findings{};
};
/// How many breaches of one rule are listed.
inline constexpr std::size_t broken_max = 5;

/// Judges all rules, in the order of `rules`.
///
/// What is not JSON of at most `content_octets_max` counts as no JSON. Exchanges without an answer,
/// and probes that were refused by quota, are judged only by what their fields say.
[[nodiscard]] auto judge(std::span<exchange const> exchanges) -> std::vector<judgement>;
inline constexpr std::size_t content_octets_max = std::size_t{4} << 20;

/// How many judgements of that severity are broken.
[[nodiscard]] auto count_broken(std::span<judgement const> judgements,
                                explain::severity level) noexcept -> std::size_t;

}  // namespace tidegate::TIDEGATE_ABI::lint
