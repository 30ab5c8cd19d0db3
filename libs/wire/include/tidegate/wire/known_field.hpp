// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/enum_set.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::wire {

/// The field names that a proxy looks at or meets all the time. Every other name is `other`.
enum class known_field : std::uint8_t {
  other,
  // What the head readers judge themselves.
  host,
  content_length,
  transfer_encoding,
  connection,
  expect,
  upgrade,
  te,
  // What else belongs to one connection.
  keep_alive,
  proxy_connection,
  http2_settings,
  // What goes from end to end, though a proxy may have a say in it.
  trailer,
  proxy_authenticate,
  proxy_authorization,
  via,
  forwarded,
  x_forwarded_for,
  x_forwarded_proto,
  x_forwarded_host,
  x_forwarded_port,
  x_real_ip,
  x_request_id,
  traceparent,
  ratelimit,
  ratelimit_policy,
  ratelimit_limit,
  ratelimit_remaining,
  ratelimit_reset,
  x_ratelimit_limit,
  x_ratelimit_remaining,
  x_ratelimit_reset,
  retry_after,
  idempotency_key,
  idempotency_attempt,
  x_api_key,
  authorization,
  www_authenticate,
  cookie,
  set_cookie,
  date,
  age,
  server,
  location,
  content_type,
  content_encoding,
  cache_control,
  etag,
  last_modified,
  vary,
  link,
  range,
  accept,
  accept_encoding,
  accept_language,
  accept_ranges,
  user_agent,
  referer,
  origin,
  if_match,
  if_none_match,
  if_modified_since,
};

/// How many there are, `other` among them: their numbers are 0 to this less 1.
inline constexpr std::size_t known_fields_count =
    static_cast<std::size_t>(known_field::if_modified_since) + 1;
static_assert(known_fields_count <= 64, "a field_set has 64 bits");

/// What a field name means, in any case of its letters. `other` for what has no entry, and for what
/// is not a field name at all.
[[nodiscard]] auto find_known_field(std::string_view name) noexcept -> known_field;

/// The same, with every run of octets other than letters and digits counted as one "-", and none at
/// the ends: CGI, WSGI and PHP read `X_Forwarded_For` and `X.Forwarded.For` as `X-Forwarded-For`,
/// and some take several for one.
[[nodiscard]] auto find_known_field_by_any_spelling(std::string_view name) noexcept -> known_field;

/// The name in lower case, as HTTP/2 sends it; empty for `other`.
[[nodiscard]] auto name_of(known_field field) noexcept -> std::string_view;

/// `other` can be a member like the rest.
using field_set = enum_set<known_field, std::uint64_t>;

/// The fields that belong to one connection, whether `Connection` names them or not (RFC 9110,
/// section 7.6.1): none of them is sent on as it came.
inline constexpr field_set connection_specific_fields = {
    known_field::connection,     known_field::transfer_encoding,
    known_field::upgrade,        known_field::te,
    known_field::keep_alive,     known_field::proxy_connection,
    known_field::http2_settings,
};

}  // namespace tidegate::TIDEGATE_ABI::wire
