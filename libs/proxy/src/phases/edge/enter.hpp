// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/local_reply.hpp"
#include "request/request_context.hpp"

#include <vector>

namespace tidegate::gateway {

/// The answer to a request whose path would become another one than the operator wrote.
[[nodiscard]] auto path_refusal(reply_texts texts) -> local_reply;

/// Notes whether the client uses https, where responses of the route depend on it: answers of
/// `select_route` are some of them. `lines` is room for the lines of one field.
void note_scheme(request_context& context, std::vector<std::string_view>& lines);

/// Refuses a request on a route with rules before it costs anything: one of a network that may not
/// ask, and one whose path cannot be rewritten or could leave the path of a server. `lines` is room
/// as above.
[[nodiscard]] auto enter_edge(request_context& context, std::vector<std::string_view>& lines,
                              reply_texts texts) -> step;

}  // namespace tidegate::gateway
