// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>
#include <tidegate/json/writer.hpp>

#include <string>

namespace tidegate::gateway {

/// What /.well-known/tidegate says, for programs and for people: policies and partition keys
/// (draft-09, section 6.1), what requests cost and how much may come at once (draft-07, section
/// 2.2), and the rules of idempotency keys.
[[nodiscard]] auto describe_as_json(config const& settings) -> std::string;
[[nodiscard]] auto describe_as_html(config const& settings) -> std::string;

/// Appends what there is to say of one policy: the members of a JSON object, without its braces.
void append_policy_members(json::writer& out, policy_config const& policy);

}  // namespace tidegate::gateway
