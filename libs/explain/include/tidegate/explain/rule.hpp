// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::explain {

/// How much a finding matters, the least first.
enum class severity : std::uint8_t {
  info,     ///< what a field means; nothing is wrong
  advice,   ///< no specification is broken, but clients will stumble over it
  warning,  ///< a SHOULD is not met, or values contradict each other
  error,    ///< a MUST is broken, or recipients have to ignore the field
};

/// `info`, `advice`, `warning`, `error`.
[[nodiscard]] auto name_of(severity level) noexcept -> std::string_view;

/// The specifications that rules are taken from, by the names that findings have.
namespace specification {
/// The specifications that rules are of, as findings name them.
inline constexpr std::string_view ratelimit_09 = "draft-ietf-httpapi-ratelimit-headers-09";
inline constexpr std::string_view ratelimit_07 = "draft-ietf-httpapi-ratelimit-headers-07";
inline constexpr std::string_view idempotency_key = "draft-ietf-httpapi-idempotency-key-header-07";
inline constexpr std::string_view scim_cursor = "draft-ietf-scim-cursor-pagination-02";
inline constexpr std::string_view structured_fields = "RFC 8941";
inline constexpr std::string_view http = "RFC 9110";
inline constexpr std::string_view status_429 = "RFC 6585";
inline constexpr std::string_view problem_details = "RFC 9457";
inline constexpr std::string_view scim_protocol = "RFC 7644";
inline constexpr std::string_view scim_cursor_rfc = "RFC 9865";
}  // namespace specification

/// One thing that a message has to do, or had better do.
struct rule {
  std::string_view id;  ///< lower case with "-": it never changes, so that reports can be compared
  severity level{};
  std::string_view specification;
  std::string_view section;       ///< such as `4.1.1`, or `appendix D`
  std::string_view summary;       ///< one sentence that says what is right
  std::string_view section_07{};  ///< the one of the older RateLimit draft, where both have it
};

/// Every rule that `explain_fields` knows.
[[nodiscard]] auto field_rules() noexcept -> std::span<rule const>;

}  // namespace tidegate::TIDEGATE_ABI::explain
