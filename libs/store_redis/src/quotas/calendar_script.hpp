// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tidegate::store_redis {

/// What `ratelimit` does with fixed windows of a calendar, in Lua, for the scripts of
/// `quota_script.hpp`. All times are those of the gateway, which knows the calendar.
extern std::string_view const calendar_functions;

}  // namespace tidegate::store_redis
