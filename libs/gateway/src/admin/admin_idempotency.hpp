// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker.hpp"

#include <tidegate/engine/loop.hpp>
#include <tidegate/wire/http1_head.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {

/// A request to the admin address.
struct admin_request {
  wire::method method = wire::method::other;
  std::string path;
  std::string query;         ///< without its "?"
  std::string content_type;  ///< empty: the field is missing
  std::string content;
};

/// What it is answered.
struct admin_answer {
  int status = 200;
  std::string_view content_type;
  std::string content;
  std::string_view allow{};       ///< with 405: the methods that there are
  std::string security_policy{};  ///< Content-Security-Policy, of a page
  std::vector<std::pair<std::string_view, std::string>> fields{};  ///< that only this answer has
};

/// A problem without a type of its own; the detail is for people.
[[nodiscard]] auto admin_problem(int status, std::string_view detail) -> admin_answer;

/// True for the content type of JSON, and where there is none.
[[nodiscard]] auto is_json(std::string_view content_type) -> bool;

/// True for the paths that `answer_idempotency` knows.
[[nodiscard]] auto is_idempotency_path(std::string_view path) -> bool;

/// The admin API for idempotency keys:
///
///     GET    /api/v1/idempotency?scope=S&key=K    looks a key up
///     POST   /api/v1/idempotency/lookup           the same, with scope and key in the content
///     GET    /api/v1/idempotency/unknown?limit=N  unknown outcomes, the newest first
///     GET    /api/v1/idempotency/ID               the same by its id
///     POST   /api/v1/idempotency/ID/resolve       settles an unknown outcome
///     DELETE /api/v1/idempotency/ID               forgets a key
///
/// `reply` is called once, on the thread of `on`, perhaps before this returns, and never when the gateway ends
/// before the store has answered. A change that was begun is made, and wakes who waits for it, also when
/// nobody waits for the reply any more. `keys` is null while no route has keys.
void answer_idempotency(engine::loop& on, std::shared_ptr<idempotency_state> const& keys,
                        admin_request const& request,
                        std::move_only_function<void(admin_answer)> reply);

}  // namespace tidegate::gateway
