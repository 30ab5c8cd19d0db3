// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"

namespace tidegate::gateway {

/// `service: echo`: says what came.
[[nodiscard]] auto echo(request_context const& context, reply_texts texts) -> local_reply;

}  // namespace tidegate::gateway
