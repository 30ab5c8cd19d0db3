// SPDX-License-Identifier: Apache-2.0
#include "api/api_session.hpp"

#include "random_hex.hpp"

#include <tidegate/json/writer.hpp>

#include <chrono>
#include <string_view>

namespace tidegate::gateway {

namespace {

[[nodiscard]] auto set_cookie(session_cookie const& cookie, std::string_view value,
                              std::chrono::seconds lifetime) -> std::string {
  return cookie.name + "=" + std::string(value) +
         "; Path=/; HttpOnly; SameSite=Strict; Max-Age=" + std::to_string(lifetime.count()) +
         (cookie.secure ? "; Secure" : "");
}

}  // namespace

auto caller_json(admin_caller const& caller) -> std::string {
  std::string out;
  json::writer(out)
      .begin_object()
      .member("token", caller.token.empty() ? std::nullopt : std::optional(caller.token))
      .member("read-only", caller.read_only)
      .member("session", caller.session.has_value())
      .end_object();
  return out;
}

auto answer_session(admin_access& access, admin_caller& caller, session_cookie const& cookie,
                    wire::method method, instant now) -> admin_answer {
  if (method == wire::method::delete_) {
    access.close_session(caller);
    admin_answer answer{204, {}, {}};
    answer.fields.emplace_back("Set-Cookie", set_cookie(cookie, "", {}));
    return answer;
  }
  admin_answer answer{200, "application/json", {}};
  if (method == wire::method::post) {
    if (caller.token.empty() || caller.session) {
      return admin_problem(409, caller.session ? "There is a session already."
                                               : "This address does not require a token.");
    }
    auto const id = random_hex();
    if (id.empty()) {
      return admin_problem(503, "The system has no random numbers.");
    }
    access.open_session(caller, id, now);
    answer.fields.emplace_back("Set-Cookie",
                               set_cookie(cookie, id, admin_access::session_lifetime));
    caller.session = sha256::of(id);
  }
  answer.content = caller_json(caller) + "\n";
  return answer;
}

}  // namespace tidegate::gateway
