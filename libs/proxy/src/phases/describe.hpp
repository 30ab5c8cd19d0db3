// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"

namespace tidegate::gateway {

/// Answers for /.well-known/tidegate: what is limited and how, as JSON or as a page. The answer
/// keeps `active`, whose texts it sends.
[[nodiscard]] auto describe(request_context const& context,
                            std::shared_ptr<active_config const> const& active, reply_texts texts)
    -> local_reply;

}  // namespace tidegate::gateway
