// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/sf/error.hpp>
#include <tidegate/sf/values.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What the RateLimit and RateLimit-Policy fields say, whichever draft they were written by.
namespace tidegate::TIDEGATE_ABI::ratelimit {

/// Which draft-ietf-httpapi-ratelimit-headers a field follows.
enum class draft : std::uint8_t {
  draft_09,  ///< Lists of named items; what is read so may be draft-10's
  draft_07,  ///< a List of quotas, and the Dictionary limit, remaining, reset
  draft_10,  ///< written as draft-09; `t` is the time until more is there
};

/// In what a draft differs from the others, for those who write by it.
struct draft_rules {
  std::string_view name;           ///< `draft-09`
  bool has_names = true;           ///< Lists of named items, each with what it counts
  bool reset_is_for_more = false;  ///< `t` is until more is there, else until a request fits
  bool omits_full_reset = false;   ///< there is no `t` while the quota is full
};

/// The row of a draft.
[[nodiscard]] constexpr auto rules_of(draft version) noexcept -> draft_rules {
  switch (version) {
    case draft::draft_07: return {.name = "draft-07", .has_names = false};
    case draft::draft_10:
      return {.name = "draft-10", .reset_is_for_more = true, .omits_full_reset = true};
    case draft::draft_09: break;
  }
  return {.name = "draft-09"};
}

/// `draft-10`, `draft-09`, `draft-07`.
[[nodiscard]] auto name_of(draft version) noexcept -> std::string_view;

/// The two fields. Neither may stand in a trailer section.
enum class field_kind : std::uint8_t {
  policy,  ///< RateLimit-Policy
  limit,   ///< RateLimit
};

/// `RateLimit-Policy`, `RateLimit`.
[[nodiscard]] auto name_of(field_kind kind) noexcept -> std::string_view;

/// The quota units that draft-09 defines (section 3.1.2); others may be registered later.
enum class quota_unit : std::uint8_t { requests, content_bytes, concurrent_requests, other };

/// `requests`, `content-bytes`, `concurrent-requests`; of `other` nothing.
[[nodiscard]] auto name_of(quota_unit unit) noexcept -> std::string_view;
/// The unit that `qu` names. The table of section 10.3 spells the first one `request`, which is
/// taken too.
[[nodiscard]] auto quota_unit_named(std::string_view name) noexcept -> quota_unit;

/// Both drafts stand on RFC 8941: a Date or Display String, which came later, makes a field
/// malformed.
inline constexpr auto field_dialect = sf::dialect::rfc8941;

/// Parameters that the draft does not define: comments, kept as they stand.
using comment_parameters = sf::basic_parameters<field_dialect>;

/// One item of RateLimit-Policy. In draft-07 there is no name, unit or partition key.
struct quota_policy {
  std::string name;                          ///< empty in draft-07
  std::int64_t quota = 0;                    ///< q
  quota_unit unit = quota_unit::requests;    ///< qu
  std::string unit_name = "requests";        ///< qu as it stands
  std::optional<std::int64_t> window;        ///< w, in seconds; always there in draft-07
  std::optional<std::string> partition_key;  ///< pk, decoded
  comment_parameters comments;
  auto operator==(quota_policy const&) const -> bool = default;
};

/// One item of RateLimit; in draft-07 the one Dictionary.
struct service_limit {
  std::string name;                          ///< empty in draft-07
  std::optional<std::int64_t> remaining;     ///< r; optional in draft-07 only
  std::optional<std::int64_t> reset;         ///< t, in seconds; always there in draft-07
  std::optional<std::int64_t> limit;         ///< draft-07 only: the expiring limit
  std::optional<std::string> partition_key;  ///< pk, decoded
  comment_parameters
      comments;  ///< in draft-07 the members that it does not define, where they are Items
  auto operator==(service_limit const&) const -> bool = default;
};

/// RateLimit-Policy as a whole; without policies it was not there.
struct policy_field {
  draft version = draft::draft_09;
  std::vector<quota_policy> policies;
  auto operator==(policy_field const&) const -> bool = default;
};

/// RateLimit as a whole; without limits it was not there or said nothing. In draft-07 there is one.
struct limit_field {
  draft version = draft::draft_09;
  std::vector<service_limit> limits;
  auto operator==(limit_field const&) const -> bool = default;
};

/// The rules that make a field malformed when they are broken.
enum class field_rule : std::uint8_t {
  syntax,              ///< not what RFC 8941 can parse
  no_items,            ///< RateLimit-Policy is not empty
  inner_list,          ///< a member is an Item; in draft-07's Dictionary a defined one
  name_type,           ///< draft-09: an item is a String
  quota_missing,       ///< draft-09: q is required
  quota_value,         ///< q, or the item in draft-07, is a non-negative Integer
  quota_repeated,      ///< draft-07: no two policies have the same quota
  unit_type,           ///< qu is a String
  window_missing,      ///< draft-07: w is required
  window_value,        ///< w is an Integer: positive in draft-09, non-negative in draft-07
  partition_key_type,  ///< pk is a Byte Sequence
  limit_missing,       ///< draft-07: limit is required
  limit_value,         ///< it is a non-negative Integer
  remaining_missing,   ///< draft-09: r is required
  remaining_value,     ///< r or remaining is a non-negative Integer
  reset_missing,       ///< draft-07: reset is required
  reset_value,         ///< t or reset is a non-negative Integer
};

/// Why a field is malformed. The whole field is to be ignored (draft-09, section 7).
struct field_error {
  field_rule rule{};
  field_kind field{};
  draft version{};           ///< the draft by which it was judged
  std::size_t item{};        ///< which item of the List or member of the Dictionary, from 0
  sf::parse_error syntax{};  ///< for `syntax`: what is wrong at which byte of the combined value
  auto operator==(field_error const&) const -> bool = default;
};

/// The section of the draft that has the rule, such as `3.1.1`; for `syntax` the one of RFC 8941.
[[nodiscard]] auto section_of(field_error const& error) noexcept -> std::string_view;
/// One line for people: field, item, rule and section.
[[nodiscard]] auto to_string(field_error const& error) -> std::string;

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
