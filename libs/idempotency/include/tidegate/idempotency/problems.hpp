// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/idempotency/fingerprint.hpp>
#include <tidegate/idempotency/wall_time.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What a client is told when its request does not run (draft-07, section 2.7): problem details
/// with a `code` for programs and a link to the documentation.
namespace tidegate::TIDEGATE_ABI::idempotency {

enum class problem_code : std::uint8_t {
  key_missing,      ///< 400: the route requires a key
  key_malformed,    ///< 400: the key is not what the route takes
  key_too_old,      ///< 400: the key was made longer ago than the route allows
  scope_missing,    ///< 400: nothing says whose key it is, and the route does not let that be
  digest_mismatch,  ///< 400: the content is not what Content-Digest says
  key_reused,       ///< 422: the key was used for another request
  in_flight,        ///< 409: the first request is still running
  outcome_unknown,  ///< 409: the first request may or may not have been carried out
  result_expired,   ///< 409: it was carried out, but the answer is not kept any more
  response_not_replayable,  ///< 409: it was carried out, but the answer could not be kept
  body_too_large,           ///< 413: the content is above what a request with a key may have
  too_many_keys,            ///< 429: the scope has as many keys as it may
  store_unavailable,        ///< 503: it cannot be said whether the key was used
};

/// `key-missing`, `key-malformed` and so on: the value of the member `code` and the fragment of
/// `type`.
[[nodiscard]] auto name_of(problem_code code) noexcept -> std::string_view;
/// The title, which is the same for every occurrence (RFC 9457, section 3.1.3).
[[nodiscard]] auto title_of(problem_code code) noexcept -> std::string_view;
/// The status code of the response.
[[nodiscard]] auto status_of(problem_code code) noexcept -> int;

/// One occurrence. Borrows its text.
struct problem_details {
  problem_code code{};
  /// Where people read what the code means: the URL of `type` and Link. Made of characters that a
  /// URI reference may have, without a fragment.
  std::string_view documentation = "/.well-known/tidegate";
  // NOLINTBEGIN(readability-redundant-member-init): so that they may be left out
  std::string_view detail{};  ///< empty: what there is to say of the code in general
  int status = 0;             ///< 0: `status_of(code)`; a first answer may be 502 or 504
  request_parts differs{};    ///< of `key_reused`: which parts of the request are not the same
  int first_status = 0;       ///< of `result_expired`: what the first request was answered with
  std::optional<wall_time> first_completed{};  ///< and when
  // NOLINTEND(readability-redundant-member-init)
};

/// Appends the content of the response, an `application/problem+json` object with `type`
/// (DOCUMENTATION#CODE), `title`, `status`, `detail` and `code`; where they are known also
/// `differs`, `first-status` and `first-completed`. Nothing in it comes from the request but what
/// `detail` says.
void append_problem(std::string& out, problem_details const& problem);

/// Appends the value of the Link field: `<DOCUMENTATION>; rel="describedby"; type="text/html"`.
void append_link(std::string& out, std::string_view documentation);

}  // namespace tidegate::TIDEGATE_ABI::idempotency
