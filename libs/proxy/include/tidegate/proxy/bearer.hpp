// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>
#include <tidegate/wire/http1_head.hpp>

namespace tidegate::gateway {

/// The token that a request brings (RFC 6750, section 2.1); empty where it brings none, or more
/// than one Authorization field.
[[nodiscard]] auto bearer_token_of(wire::request_head const& request) -> std::string_view;

/// Whose token it is, or null. All of `tokens` are compared, each in constant time: how long it
/// takes tells nothing about any of them.
[[nodiscard]] auto find_token(std::span<bearer_token const> tokens, std::string_view given)
    -> bearer_token const*;

}  // namespace tidegate::gateway
