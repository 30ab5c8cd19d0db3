// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"

namespace tidegate::gateway {

/// Whether the token of a request on a route with `auth` allows it.
[[nodiscard]] auto is_authorized(request_context const& context) -> bool;

/// Why a request is not authorized.
struct auth_refusal {
  int status = 401;
  std::string_view reason;  ///< for the access log
  std::string_view title;
  std::string_view detail;
  std::string_view challenge{};  ///< of WWW-Authenticate; with 401
};
[[nodiscard]] auto auth_refusal_of(request_context const& context) -> auth_refusal;

/// The same as a problem.
[[nodiscard]] auto refuse_unauthorized(request_context const& context, reply_texts texts)
    -> local_reply;

}  // namespace tidegate::gateway
