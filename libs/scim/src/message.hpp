// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/scim/error.hpp>

#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::scim {

/// A body that is not what its schema says (RFC 7644, section 3.12).
[[nodiscard]] auto invalid_syntax(std::string detail) -> error;

/// A message is a JSON object whose `schemas` name `schema`.
[[nodiscard]] auto check_message(json::value const& message, std::string_view schema)
    -> result<void, error>;

/// Reads a message: a JSON object whose `schemas` name `schema`.
[[nodiscard]] auto parse_message(std::string_view body, std::string_view schema,
                                 json::limits const& limits = {}) -> result<json::value, error>;

}  // namespace tidegate::TIDEGATE_ABI::scim
