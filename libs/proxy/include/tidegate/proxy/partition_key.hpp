// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tidegate::gateway {

/// The key of a partition as a client would be told it if it were hashed, in hexadecimal.
[[nodiscard]] auto partition_key_of(std::string_view partition) -> std::string;

}  // namespace tidegate::gateway
