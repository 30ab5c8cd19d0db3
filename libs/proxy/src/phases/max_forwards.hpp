// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"

namespace tidegate::gateway {

/// Max-Forwards of OPTIONS (RFC 9110, section 7.6.2): how often it may be forwarded after this, if
/// the request says so, or the answer of the gateway itself when it goes no further.
[[nodiscard]] auto max_forwards_of(request_context const& context, reply_texts texts)
    -> std::variant<std::optional<std::uint64_t>, local_reply>;

/// Puts another count into a head that is written already.
void replace_max_forwards(std::string& head, std::uint64_t count);

}  // namespace tidegate::gateway
