// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/local_reply.hpp"
#include "request/request_context.hpp"

namespace tidegate::gateway {

/// The answer of a route with `respond`, whose text is in `active`.
[[nodiscard]] auto respond_fixed(request_context const& context,
                                 std::shared_ptr<active_config const> const& active) -> local_reply;

}  // namespace tidegate::gateway
