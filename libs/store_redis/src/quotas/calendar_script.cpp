// SPDX-License-Identifier: Apache-2.0
#include "quotas/calendar_script.hpp"

namespace tidegate::store_redis {

constinit std::string_view const calendar_functions = R"lua(
-- What a bucket is in a window of the calendar, by the clock of the gateway: of the window whose end
-- is nearest to its own, or of a later one.
local function calendar_now(from, W, at, used)
  if at - from <= W / 2 then
    return 0, 0
  end
  return at - from - W <= W / 2 and from + W or at, used
end

local function calendar_left(from, W, wall, at)
  return min(max((at == 0 and from + W or at) - wall, 0), W)
end

local function calendar_write(key, wall, at, used)
  if at <= wall or used == 0 then
    call('DEL', key)
  else
    call('SET', key, pack('<ddd', at, used, 0), 'PX', string.format('%.0f', floor((at - wall) / 1000) + 1))
  end
end

local function calendar_decide(b, argument, cost, quota, W)
  local from, wall = unpack('<dd', argument, 35)
  local at, used = calendar_now(from, W, b.at, b.used)
  local left = max(quota - used, 0)
  if cost > quota - used then
    local reset = calendar_left(from, W, wall, at)
    return 0, left, reset, reset, 0
  end
  if at == 0 and cost > 0 then
    at = from + W
  end
  b.next_at, b.next_used, b.next_previous, b.next_more = at, used + cost, 0, 0
  return 1, left - cost, calendar_left(from, W, wall, at), 0, 0
end

local function calendar_settle(key, argument, units, W, admitted_at)
  local from, wall = unpack('<dd', argument, 35)
  local at, used = calendar_now(from, W, read(key))
  if units >= 0 then
    at, used = at == 0 and from + W or at, min(used + units, units_max)
  elseif admitted_at >= at - W then
    used = max(used + units, 0)
  end
  calendar_write(key, wall, at, used)
end
)lua";

}  // namespace tidegate::store_redis
