// SPDX-License-Identifier: Apache-2.0
#include "quotas/log_script.hpp"

namespace tidegate::store_redis {

constinit std::string_view const log_functions = R"lua(
local log_times_max = 10000

local function log_entry(text)
  if #text == 7 then
    return unpack('<I7', text), 1
  elseif #text == 14 then
    return unpack('<I7I7', text)
  end
  error('no log')
end

-- What counts: `used` in all; the first `ended` times do not. `added` is spent now, and not in the list yet.
local function log_read(key, now, W)
  local b = {used = 0, ended = 0, added = 0, size = 0, last = 0}
  b.size = max(call('LLEN', key) - 1, 0)
  if b.size == 0 then
    return b
  end
  b.used = tonumber(call('LINDEX', key, 0))
  b.last = log_entry(call('LINDEX', key, -1))
  if not b.used or not (b.used >= 0 and b.used <= units_max) then
    error('no log: ' .. key)
  end
  local chunk = 1
  while b.ended < b.size do
    local texts = call('LRANGE', key, b.ended + 1, b.ended + chunk)
    for i = 1, #texts do
      local at, units = log_entry(texts[i])
      if at + W > now then
        return b
      end
      b.used, b.ended = max(b.used - units, 0), b.ended + 1
    end
    chunk = min(chunk * 4, 256)
  end
  b.used = 0
  return b
end

-- How long until so many units of those that count have ended; what is added comes after all others.
local function log_wait(key, now, W, b, excess)
  local at, chunk = b.ended, 1
  while at < b.size do
    local texts = call('LRANGE', key, at + 1, at + chunk)
    for i = 1, #texts do
      local time, units = log_entry(texts[i])
      excess = excess - units
      if excess <= 0 then
        return time + W - now
      end
    end
    at = at + #texts
    chunk = min(chunk * 4, 256)
  end
  return max(now, b.size > b.ended and b.last or 0) + W - now
end

-- What remains, and reset, when so much is used.
local function log_left(key, quota, W, now, b, used)
  local remaining = max(quota - used, 0)
  if used == 0 or quota == 0 then
    return remaining, W
  end
  return remaining, min(log_wait(key, now, W, b, remaining > 0 and 1 or used + 1 - quota), W)
end

local function log_write(key, now, W, b)
  if b.used == 0 then
    call('DEL', key)
    return
  end
  local last = max(now, b.size > b.ended and b.last or 0)
  if b.size > 0 then
    call('LTRIM', key, b.ended + 1, -1)
  end
  local size = b.size - b.ended
  if b.added > 0 then
    call('RPUSH', key, b.added == 1 and pack('<I7', last) or pack('<I7I7', last, b.added))
    size = size + 1
  else
    last = b.last
  end
  if size > log_times_max then
    local _, units = log_entry(call('LPOP', key))
    local at, more = log_entry(call('LPOP', key))
    call('LPUSH', key, pack('<I7I7', at, min(units + more, units_max)))
  end
  call('LPUSH', key, string.format('%.0f', b.used))
  call('PEXPIREAT', key, string.format('%.0f', floor((last + W) / 1000) + 1))
end

-- Gives units back of what was spent at a time, or first after it.
local function log_give_back(key, b, admitted_at, units)
  local low, high = b.ended + 1, b.size + 1
  while low < high do
    local middle = floor((low + high) / 2)
    if log_entry(call('LINDEX', key, middle)) < admitted_at then
      low = middle + 1
    else
      high = middle
    end
  end
  local emptied = 0
  while units > 0 and low <= b.size do
    local at, there = log_entry(call('LINDEX', key, low))
    local given = min(units, there)
    units, b.used = units - given, max(b.used - given, 0)
    if given == there then
      call('LSET', key, low, '')
      emptied = emptied + 1
    else
      there = there - given
      call('LSET', key, low, there == 1 and pack('<I7', at) or pack('<I7I7', at, there))
    end
    low = low + 1
  end
  if emptied > 0 then
    call('LREM', key, 0, '')
    b.size = b.size - emptied
    b.last = b.size > b.ended and log_entry(call('LINDEX', key, -1)) or 0
  end
end
)lua";

}  // namespace tidegate::store_redis
