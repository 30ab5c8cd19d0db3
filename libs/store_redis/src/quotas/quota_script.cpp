// SPDX-License-Identifier: Apache-2.0
#include "quotas/quota_script.hpp"

#include "quotas/calendar_script.hpp"
#include "quotas/log_script.hpp"

#include <initializer_list>

namespace tidegate::store_redis {

namespace {

/// Times are in microseconds.
constexpr std::string_view basics = R"lua(
local floor, min, max = math.floor, math.min, math.max
local pack, unpack, call = struct.pack, struct.unpack, redis.call
local exact, units_max = 2^53, 2^51
local fixed, sliding, gcra, concurrent, log, calendar = 0, 1, 2, 3, 4, 5

local function time(given)
  if given then
    return tonumber(given)
  end
  local t = call('TIME')
  return t[1] * 1000000 + t[2]
end

-- ---- concurrent requests ----

-- The hash has a field for each holder, with what it holds and until when that is believed, and one field
-- with the sum, when to look again at all of them, and the last time that one is believed.
local function held(key, now)
  local summary = call('HGET', key, '')
  if not summary then
    return 0, exact, 0
  end
  local sum, look, last = unpack('<ddd', summary)
  if now < look then
    return sum, look, last
  end
  local all = call('HGETALL', key)
  sum, look, last = 0, exact, 0
  for i = 1, #all, 2 do
    if all[i] ~= '' then
      local count, until_ = unpack('<dd', all[i + 1])
      if until_ <= now then
        call('HDEL', key, all[i])
      else
        sum, look, last = sum + count, min(look, until_), max(last, until_)
      end
    end
  end
  return sum, look, last
end

-- Sets what a holder holds to what `change` makes of it.
local function hold(key, now, holder, alive_for, sum, look, last, change)
  local mine = call('HGET', key, holder)
  local before = mine and unpack('<dd', mine) or 0
  local count = change(before)
  sum = max(sum + count - before, 0)
  if sum == 0 then
    call('DEL', key)
    return
  end
  local until_ = now + alive_for
  last = max(last, until_)
  if count == 0 then
    call('HDEL', key, holder)
    call('HSET', key, '', pack('<ddd', sum, look, last))
  else
    call('HSET', key, '', pack('<ddd', sum, min(look, until_), last), holder, pack('<dd', count, until_))
  end
  call('PEXPIREAT', key, string.format('%.0f', floor(last / 1000) + 1))
end

)lua";

/// The names are those of `ratelimit::decider`; a window W and all times are in microseconds.
constexpr std::string_view limiters = R"lua(
-- a * b / c rounded down, and the rest; c is at most 2^51, the quotient less than 2^53.
local function multiply_divide(a, b, c)
  local product = a * b
  if product < exact then
    local quotient = floor(product / c)
    return quotient, product - quotient * c
  end
  -- By the digits of b, in a base in which every step is exact.
  local base = floor(2^52 / c)
  local scale = 1
  while scale * base <= b do
    scale = scale * base
  end
  local above = floor(a / c) * b
  local rest_of_a = a % c
  local quotient, rest = 0, 0
  repeat
    local digit = floor(b / scale)
    b = b - digit * scale
    local sum = rest * base + digit * rest_of_a
    local part = floor(sum / c)
    quotient = quotient * base + part
    rest = sum - part * c
    scale = scale / base
  until scale < 1
  return above + quotient, rest
end

-- A reset is never longer than the window.
local function within(W, us, ns)
  if us >= W then
    return W, 0
  end
  return us, ns
end

-- ---- sliding ----

-- Of 1,000 * W - 1 - elapsed nanoseconds the 1,000ths go into the one rounding.
local function sliding_room(quota, W, left, used, previous)
  if previous == 0 then
    return quota - used
  end
  local quotient, rest = multiply_divide(previous, min(left, W), W)
  local less = floor((previous + 999) / 1000)
  if less > rest then
    quotient = quotient - floor((less - rest + W - 1) / W)
  end
  return quota - quotient - used
end

local function weighs_at_most(W, previous, room)
  if previous <= room then
    return 0, 0
  end
  local quotient, rest = multiply_divide(room + 1, W, previous)
  local ns, more = multiply_divide(rest, 1000, previous)
  if more > 0 then
    ns = ns + 1
  end
  if ns == 0 then
    return W - quotient, 0
  end
  return W - quotient - 1, 1000 - ns
end

local function sliding_wait(quota, W, left, used, previous, cost)
  if cost > quota then
    return W, 0
  end
  if used + cost <= quota then
    local us, ns = weighs_at_most(W, previous, quota - used - cost)
    us = us - max(W - left, 0)
    if us < 0 then
      return 0, 0
    end
    return us, ns
  end
  local us, ns = weighs_at_most(W, used, quota - cost)
  return left + us, ns
end

-- ---- gcra: the rest is in window-ths of a unit, by microseconds and nanoseconds ----

local function gcra_now(quota, W, now, at, used, rest, rest_ns)
  if rest >= W then
    rest, rest_ns = W - 1, 999
  end
  local since = now - at
  if since <= 0 or quota == 0 then
    return max(now, at), used, rest, rest_ns
  end
  if since / W * quota > used * 1.000001 + 2 then
    return now, 0, 0, 0
  end
  local whole, part = multiply_divide(since, quota, W)
  used = used - whole
  rest = rest - part
  if rest < 0 then
    used = used - 1
    rest = rest + W
  end
  if used < 0 then
    return now, 0, 0, 0
  end
  return now, used, rest, rest_ns
end

local function drains_to(quota, W, now, at, used, rest, rest_ns, units)
  local excess = used - units
  if excess < 0 or (excess == 0 and rest == 0 and rest_ns == 0) then
    return at - now, 0
  end
  local us, ns
  if quota == 0 then
    us, ns = W, 0
  elseif excess / quota * W > 2^52 then
    us, ns = exact, 0
  else
    us, excess = multiply_divide(excess, W, quota)
    excess = excess + rest
    us = us + floor(excess / quota)
    ns, excess = multiply_divide(excess % quota, 1000, quota)
    ns = ns + floor((excess + rest_ns + quota - 1) / quota)
    us = us + floor(ns / 1000)
    ns = ns % 1000
  end
  -- A quarter of what 63 bits hold.
  if us > 2305843009213693 or (us == 2305843009213693 and ns > 951) then
    us, ns = 2305843009213693, 951
  end
  return us + at - now, ns
end

-- ---- all ----

-- What a bucket of windows is at a time.
local function windows_now(kind, W, now, at, used, previous)
  if kind == fixed then
    if now >= at then
      return 0, 0, 0
    end
    return at, used, previous
  end
  if now >= at then
    if now - at >= W then
      at, used, previous = 0, 0, 0
    else
      at, used, previous = at + W, 0, used
    end
  end
  if used == 0 and previous == 0 then
    at = now + W
  end
  return at, used, previous
end

-- What remains, reset, and the nanoseconds of reset; and when a bucket of windows has `room`.
local function windows_left(kind, quota, W, now, at, used, previous, room)
  local remaining = max(room, 0)
  if kind == fixed then
    return remaining, at == 0 and W or min(at - now, W), 0
  end
  if remaining == 0 and quota > 0 then
    return remaining, within(W, sliding_wait(quota, W, at - now, used, previous, 1))
  end
  return remaining, min(max(at - now, 0), W), 0
end

local function write(key, now, expires, at, used, previous, more)
  if expires <= now then
    call('DEL', key)
    return
  end
  local state = more and more > 0 and pack('<dddd', at, used, previous, more)
    or pack('<ddd', at, used, previous)
  call('SET', key, state, 'PXAT', string.format('%.0f', floor(expires / 1000) + 1))
end

-- When it says nothing any more. Without a quota nothing drains: then a year has to be enough.
local function gcra_expires(quota, W, now, at, used, rest, rest_ns)
  if used == 0 and rest == 0 and rest_ns == 0 then
    return 0
  end
  if quota == 0 then
    return at + 31622400000000
  end
  local us = drains_to(quota, W, now, at, used, rest, rest_ns, 0)
  return now + us + 1
end

local function windows_expires(kind, W, at, used, previous)
  if kind == fixed then
    return at
  end
  return used == 0 and previous == 0 and 0 or at + W
end

-- Numbers that no script wrote could have a division go on for ever.
local function read(key)
  local state = call('GET', key)
  if not state then
    return 0, 0, 0, 0
  end
  local at, used, previous = unpack('<ddd', state)
  local more = #state >= 32 and unpack('<d', state, 25) or 0
  if at >= 0 and at < exact and used >= 0 and used <= units_max and previous >= 0
    and previous <= units_max and more >= 0 and more < 1000 then
    return at, used, previous, more
  end
  error('no bucket: ' .. key)
end
)lua";

/// A bucket is read once and written once, however many requests meet it.
constexpr std::string_view spend_text = R"lua(
local keys = #KEYS
local now = time(ARGV[keys + 2])
local answer, size = {now}, 1
local buckets, changed = {}, {}

-- Decides about one charge; what its bucket becomes is kept aside with it.
local function decide(b, argument, kind, cost, quota, W, burst)
  local at, used, previous, more = b.at, b.used, b.previous, b.more
  if kind == concurrent then
    local left = max(quota - used, 0)
    if cost > left then
      return 0, left, 0, 1000000, 0
    end
    b.next_used = used + cost
    return 1, left - cost, 0, 0, 0
  end
  if kind == calendar then
    return calendar_decide(b, argument, cost, quota, W)
  end
  if kind == log then
    local key = b.key
    if cost > quota - used then
      local remaining, reset = log_left(key, quota, W, now, b, used)
      return 0, remaining, reset, cost > quota and W or log_wait(key, now, W, b, used + cost - quota), 0
    end
    b.next_used, b.next_added = used + cost, b.added + cost
    local remaining, reset = log_left(key, quota, W, now, b, used + cost)
    return 1, remaining, reset, 0, 0
  end
  if kind == gcra then
    at, used, previous, more = gcra_now(quota, W, now, at, used, previous, more)
    local part = (previous > 0 or more > 0) and 1 or 0
    local admitted, retry, retry_ns = 1, 0, 0
    if cost > burst - used - part then
      admitted = 0
      if cost > burst then
        retry = W
      else
        retry, retry_ns = drains_to(quota, W, now, at, used, previous, more, burst - cost)
      end
    else
      used = used + cost
      b.next_at, b.next_used, b.next_previous, b.next_more = at, used, previous, more
    end
    local remaining = max(burst - used - part, 0)
    local reset, reset_ns = drains_to(quota, W, now, at, used, previous, more,
      remaining == 0 and burst - 1 or 0)
    reset, reset_ns = within(W, reset, reset_ns)
    return admitted, remaining, reset, retry, reset_ns * 1000 + retry_ns
  end
  at, used, previous = windows_now(kind, W, now, at, used, previous)
  local room = kind == fixed and quota - used or sliding_room(quota, W, at - now, used, previous)
  if cost > room then
    local remaining, reset, reset_ns = windows_left(kind, quota, W, now, at, used, previous, room)
    if kind == fixed then return 0, remaining, reset, reset, 0 end
    local retry, retry_ns = sliding_wait(quota, W, at - now, used, previous, cost)
    return 0, remaining, reset, retry, reset_ns * 1000 + retry_ns
  end
  if at == 0 and cost > 0 then
    at = now + W
  end
  used = used + cost
  b.next_at, b.next_used, b.next_previous, b.next_more = at, used, previous, 0
  local remaining, reset, reset_ns = windows_left(kind, quota, W, now, at, used, previous, room - cost)
  return 1, remaining, reset, 0, reset_ns * 1000
end

local first = 1
for request = 1, #ARGV[1] do
  local last = first + ARGV[1]:byte(request) - 1
  local verdict = size + 1
  local admitted = 1
  size = verdict
  for i = first, last do
    local kind, enforced, cost, quota, W, burst = unpack('<BBdddd', ARGV[i + 1])
    local b = buckets[KEYS[i]]
    if not b then
      b = {}
      if kind == concurrent then
        b.used, b.look, b.last = held(KEYS[i], now)
        b.before = b.used
      elseif kind == log then
        b = log_read(KEYS[i], now, W)
        b.key = KEYS[i]
      else
        b.at, b.used, b.previous, b.more = read(KEYS[i])
      end
      buckets[KEYS[i]] = b
    end
    local a, remaining, reset, retry, ns = decide(b, ARGV[i + 1], kind, cost, quota, W, burst)
    if a == 0 and enforced == 1 then
      admitted = 0
    end
    answer[size + 1], answer[size + 2], answer[size + 3] = a, remaining, reset
    answer[size + 4], answer[size + 5] = retry, ns
    size = size + 5
  end
  answer[verdict] = admitted
  for i = first, last do
    local n = verdict + (i - first) * 5
    local b = buckets[KEYS[i]]
    if answer[n + 1] == 0 then
      -- Neither charged nor enforced, or one that refuses.
    elseif admitted == 1 then
      b.at, b.used, b.previous, b.more = b.next_at, b.next_used, b.next_previous, b.next_more
      b.added = b.next_added
      changed[KEYS[i]] = ARGV[i + 1]
    else
      -- Not charged after all: say what is left as it stands.
      local kind, _, _, quota, W, burst = unpack('<BBdddd', ARGV[i + 1])
      local _, remaining, reset, _, ns = decide(b, ARGV[i + 1], kind, 0, quota, W, burst)
      answer[n + 2], answer[n + 3], answer[n + 5] = remaining, reset, ns - ns % 1000
    end
  end
  first = last + 1
end
for key, argument in pairs(changed) do
  local kind, _, _, quota, W = unpack('<BBdddd', argument)
  local b = buckets[key]
  if kind == concurrent then
    hold(key, now, argument:sub(35), W, b.before, b.look, b.last, function(count)
      return count + b.used - b.before
    end)
  elseif kind == log then
    log_write(key, now, W, b)
  elseif kind == calendar then
    calendar_write(key, (unpack('<d', argument, 43)), b.at, b.used)
  else
    local expires = kind == gcra and gcra_expires(quota, W, now, b.at, b.used, b.previous, b.more)
      or windows_expires(kind, W, b.at, b.used, b.previous)
    write(key, now, expires, b.at, b.used, b.previous, b.more)
  end
end
return answer
)lua";

constexpr std::string_view settle_text = R"lua(
local keys = #KEYS
local now = time(ARGV[2 * keys + 1])
for i = 1, keys do
  local key, argument, admitted_at = KEYS[i], ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  local kind, _, units, quota, W = unpack('<BBdddd', argument)
  if kind == concurrent then
    local sum, look, last = held(key, now)
    hold(key, now, argument:sub(35), W, sum, look, last, function(count)
      return min(max(count + units, 0), units_max)
    end)
  elseif kind == calendar then
    calendar_settle(key, argument, units, W, admitted_at)
  elseif kind == log then
    local b = log_read(key, now, W)
    if units >= 0 then
      b.added = min(units, units_max - b.used)
      b.used = b.used + b.added
    elseif admitted_at > now - W then
      log_give_back(key, b, admitted_at, -units)
    end
    log_write(key, now, W, b)
  elseif kind == gcra then
    local at, used, rest, rest_ns = gcra_now(quota, W, now, read(key))
    used = min(used + units, units_max)
    if used < 0 then
      used, rest, rest_ns = 0, 0, 0
    end
    write(key, now, gcra_expires(quota, W, now, at, used, rest, rest_ns), at, used, rest, rest_ns)
  else
    local at, used, previous = windows_now(kind, W, now, read(key))
    if units >= 0 then
      if at == 0 then
        at = now + W
      end
      used = min(used + units, units_max)
    elseif admitted_at >= at - W then
      used = max(used + units, 0)
    elseif kind == sliding and admitted_at >= at - W - W then
      previous = max(previous + units, 0)
    end
    write(key, now, windows_expires(kind, W, at, used, previous), at, used, previous)
  end
end
return now
)lua";

constexpr std::string_view take_text = R"lua(
local key = KEYS[1]
local kind, _, wanted, quota, W = unpack('<BBdddd', ARGV[1])
local least, parts = tonumber(ARGV[2]), tonumber(ARGV[3])
local now = time(ARGV[4])

local function grant(room)
  if room < least then
    return 0
  end
  return min(max(min(wanted, floor(room / parts)), least), room)
end

if kind == concurrent then
  local sum, look, last = held(key, now)
  local left = max(quota - sum, 0)
  local granted = grant(left)
  if granted > 0 then
    hold(key, now, ARGV[1]:sub(35), W, sum, look, last, function(count)
      return count + granted
    end)
  end
  return {now, granted, W, left - granted, 0, granted < least and 1000000 or 0, 0}
end
local at, used, previous = read(key)
at, used, previous = windows_now(kind, W, now, at, used, previous)
local room = kind == fixed and quota - used or sliding_room(quota, W, at - now, used, previous)
local granted = grant(room)
if granted > 0 then
  if at == 0 then
    at = now + W
  end
  used = used + granted
  write(key, now, windows_expires(kind, W, at, used, previous), at, used, previous)
end
local remaining, reset, reset_ns = windows_left(kind, quota, W, now, at, used, previous, room - granted)
local retry, retry_ns = 0, 0
if granted < least then
  if kind == fixed then
    retry = reset
  else
    retry, retry_ns = sliding_wait(quota, W, at - now, used, previous, least)
  end
end
return {now, granted, max(min(at - now, W), 0), remaining, reset, retry, reset_ns * 1000 + retry_ns}
)lua";

constexpr std::string_view hold_text = R"lua(
local keys = #KEYS
local now = time(ARGV[keys + 1])
for i = 1, keys do
  local key, argument = KEYS[i], ARGV[i]
  local _, _, number, _, alive_for = unpack('<BBdddd', argument)
  local sum, look, last = held(key, now)
  hold(key, now, argument:sub(35), alive_for, sum, look, last, function(count)
    return number < 0 and count or number
  end)
end
return now
)lua";

constexpr std::string_view gateways_text = R"lua(
local key, name, forget_after = KEYS[1], ARGV[1], tonumber(ARGV[2])
local t = ARGV[3] and {0, ARGV[3]} or redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local all = redis.call('HGETALL', key)
local count = 1
for i = 1, #all, 2 do
  if all[i] ~= name then
    local ago = now - (tonumber(all[i + 1]) or 0)
    if ago < 0 or ago >= forget_after then
      redis.call('HDEL', key, all[i])
    else
      count = count + 1
    end
  end
end
redis.call('HSET', key, name, string.format('%.0f', now))
redis.call('PEXPIRE', key, math.floor(forget_after / 1000) + 1)
return {now, count}
)lua";

auto joined(std::initializer_list<std::string_view> texts) -> std::string {
  std::string all;
  for (auto const text : texts) {
    all += text;
  }
  return all;
}

}  // namespace

auto spend_script() -> std::string const& {
  static std::string const script =
      joined({basics, limiters, log_functions, calendar_functions, spend_text});
  return script;
}

auto settle_script() -> std::string const& {
  static std::string const script =
      joined({basics, limiters, log_functions, calendar_functions, settle_text});
  return script;
}

auto take_script() -> std::string const& {
  static std::string const script = joined({basics, limiters, take_text});
  return script;
}

auto hold_script() -> std::string const& {
  static std::string const script = joined({basics, hold_text});
  return script;
}

auto gateways_script() -> std::string const& {
  static std::string const script(gateways_text);
  return script;
}

}  // namespace tidegate::store_redis
