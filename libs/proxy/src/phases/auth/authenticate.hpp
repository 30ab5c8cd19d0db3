// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"

#include <memory>
#include <string>

namespace tidegate::gateway {

/// Finds out who asks on a route with `auth`, and notes it in the context. `room` is for what a
/// query decodes to.
///
/// The first place that has a credential decides. Empty ones count as none.
[[nodiscard]] auto authenticate(request_context& context,
                                std::shared_ptr<consumer_index const> const& consumers,
                                reply_texts texts, std::string& room) -> step;

}  // namespace tidegate::gateway
