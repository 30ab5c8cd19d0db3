// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "access.hpp"
#include "http.hpp"

#include <tidegate/base/instant.hpp>

#include <string>

namespace tidegate::gateway {

/// The cookie that a session is in.
struct session_cookie {
  std::string name;
  bool secure = false;  ///< the browser speaks TLS, which ends in front of the gateway
};

/// `{"token":"ops","read-only":false,"session":true}`; the token is null where none is needed.
[[nodiscard]] auto caller_json(admin_caller const& caller) -> std::string;

/// The admin API for sessions of browsers, by which a token becomes a cookie that no script of a
/// page can read:
///
///     GET    /api/v1/session    who asks
///     POST   /api/v1/session    logs in
///     DELETE /api/v1/session    logs out
///
/// Other methods are not for this. After a log-in `caller` has the session.
[[nodiscard]] auto answer_session(admin_access& access, admin_caller& caller,
                                  session_cookie const& cookie, wire::method method, instant now)
    -> admin_answer;

}  // namespace tidegate::gateway
