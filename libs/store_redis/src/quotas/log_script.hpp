// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tidegate::store_redis {

/// What `ratelimit::spent_log` does, in Lua, for the scripts of `quota_script.hpp`.
///
/// A log is a list: first the sum of all units, then each time, oldest first, with its units unless
/// it is one. A number takes seven octets.
extern std::string_view const log_functions;

}  // namespace tidegate::store_redis
