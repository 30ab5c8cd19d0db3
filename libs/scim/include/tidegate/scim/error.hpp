// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/json/value.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// Error responses (RFC 7644, section 3.12; RFC 9865, section 2.1).
namespace tidegate::TIDEGATE_ABI::scim {

/// The media type of every message (RFC 7644, section 8.1).
inline constexpr std::string_view scim_json = "application/scim+json";

/// Whether a Content-Type is that of a message: also JSON without a name of its own.
[[nodiscard]] inline auto is_json(std::string_view content_type) noexcept -> bool {
  return equal_ignoring_case(http::media_type(content_type), scim_json) ||
         http::is_json(content_type);
}

/// The schema of error responses.
inline constexpr std::string_view error_schema = "urn:ietf:params:scim:api:messages:2.0:Error";

/// Whether `schemas` of a message name `schema`.
[[nodiscard]] auto has_schema(json::value const& message, std::string_view schema) -> bool;

/// The detail error keywords.
enum class scim_type : std::uint8_t {
  none,  ///< left out of the response
  invalid_filter,
  too_many,
  uniqueness,
  mutability,
  invalid_syntax,
  invalid_path,
  no_target,
  invalid_value,
  invalid_vers,
  sensitive,
  invalid_cursor,
  expired_cursor,
  invalid_count,
};

/// As it is written; empty for `none`.
[[nodiscard]] auto to_string(scim_type type) noexcept -> std::string_view;

/// What a request is answered with when it fails.
struct error {
  int status = 400;
  scim_type type = scim_type::none;
  std::string detail{};  ///< for people; left out when empty
  auto operator==(error const&) const -> bool = default;
};

/// Appends the body of the response.
void append_error(std::string& out, error const& e);

/// Reads the body of an error response of any server: `status` may be a number, and a `scimType`
/// that is not known is `none`. An error says what is wrong with it.
[[nodiscard]] auto parse_error(std::string_view body) -> result<error, error>;

}  // namespace tidegate::TIDEGATE_ABI::scim
