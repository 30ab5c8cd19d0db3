// SPDX-License-Identifier: Apache-2.0
#include "keys/stored_record.hpp"

#include <tidegate/base/number.hpp>

#include <algorithm>
#include <limits>
#include <optional>

namespace tidegate::store_redis {

namespace {

using idempotency::record;
using idempotency::record_state;
using idempotency::wall_time;
using std::chrono::milliseconds;

constexpr std::int64_t time_max = 999'999'999'999'999;  // fifteen digits: the year 33658

auto prefix(std::size_t bucket) -> std::string {
  return "tidegate:idempotency:{i" + std::to_string(bucket) + "}:";
}

void append_number(std::string& out, std::uint64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8) {
    out += static_cast<char>(number >> shift & 0xff);
  }
}

auto number_at(std::string_view octets) -> std::uint64_t {
  std::uint64_t number = 0;
  for (auto const octet : octets.substr(0, 8)) {
    number = number << 8 | static_cast<unsigned char>(octet);
  }
  return number;
}

void append_time(std::string& out, wall_time at) {
  auto const digits =
      std::to_string(std::clamp<std::int64_t>(at.time_since_epoch().count(), 0, time_max));
  out.append(time_digits - digits.size(), '0');
  out += digits;
}

auto time_at(std::string_view text) -> std::optional<milliseconds> {
  auto const count = parse_number<std::int64_t>(text).value_or(-1);
  return count >= 0 ? std::optional(milliseconds(count)) : std::nullopt;
}

/// Never before 1970, and never beyond what there is.
void move(wall_time& at, milliseconds by) {
  constexpr auto max = std::numeric_limits<std::int64_t>::max();
  auto const from = std::max<std::int64_t>(at.time_since_epoch().count(), 0);
  auto const to = by.count() > 0 && from > max - by.count() ? max : from + by.count();
  at = wall_time(milliseconds(std::max<std::int64_t>(to, 0)));
}

}  // namespace

auto bucket_of(idempotency::lookup_key const& key) noexcept -> std::size_t {
  return key.scope() % buckets;
}

auto due_key(std::size_t bucket) -> std::string {
  return prefix(bucket) + "due";
}
auto scopes_key(std::size_t bucket) -> std::string {
  return prefix(bucket) + "scopes";
}
auto unknown_key(std::size_t bucket) -> std::string {
  return prefix(bucket) + "unknown";
}
auto secret_key(std::size_t bucket) -> std::string {
  return prefix(bucket) + "secret";
}
auto record_key_prefix(std::size_t bucket) -> std::string {
  return prefix(bucket) + "record:";
}
auto response_key_prefix(std::size_t bucket) -> std::string {
  return prefix(bucket) + "response:";
}

auto stored_token(idempotency::fencing_token token) -> std::string {
  std::string out;
  append_number(out, token);
  return out;
}

auto stored_head(record const& record, written const& when) -> std::string {
  std::string out;
  out.reserve(head_octets);
  append_number(out, record.token);
  out += static_cast<char>('0' + static_cast<int>(record.state));
  append_number(out, when.by);
  append_time(out, when.at);
  return out;
}

auto read_stored(std::string_view octets, reader const& by) -> result<record, std::string> {
  auto const writer_at = token_octets + 1;
  auto const times_at = writer_at + 8;
  if (octets.size() < head_octets + time_digits) {
    return failure(std::string("a record is too short"));
  }
  auto const written_at = time_at(octets.substr(times_at, time_digits));
  auto const stored_at = time_at(octets.substr(head_octets, time_digits));
  if (!written_at || !stored_at) {
    return failure(std::string("a record does not say when it was written"));
  }
  auto read = idempotency::read_record(octets.substr(head_octets + time_digits));
  if (!read) {
    return failure("a record " + to_string(read.error()));
  }
  if (number_at(octets) != read->token ||
      octets[token_octets] != static_cast<char>('0' + static_cast<int>(read->state))) {
    return failure(std::string("a record is not what it says it is"));
  }
  if (number_at(octets.substr(writer_at)) == by.id) {
    return *std::move(read);
  }
  // How far the reader's clock is ahead of that of Redis, less how far the writer's was.
  auto const shift = (by.now.time_since_epoch() - by.store) - (*written_at - *stored_at);
  move(read->created, shift);
  move(read->changed, shift);
  if (read->state == record_state::dispatched) {
    move(read->lease_until, shift);
  }
  return *std::move(read);
}

auto due(record const& record) noexcept -> wall_time {
  switch (record.state) {
    case record_state::dispatched: return record.lease_until;
    case record_state::completed: return std::min(expires(record), forgotten(record));
    case record_state::unknown:
    case record_state::tombstone: break;
  }
  return forgotten(record);
}

auto change_script() -> std::string_view {
  return R"lua(
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = redis.call('GET', KEYS[1])
local holds = not found and ARGV[1] == ''
if found and ARGV[1] ~= '' then
  holds = string.sub(found, 1, 8) == ARGV[1] and
    string.find(ARGV[2], string.sub(found, 9, 9), 1, true) ~= nil
end
local records = redis.call('ZCARD', KEYS[3])
if not holds then
  return {'found', now, records, found, redis.call('GET', KEYS[2])}
end
local function is_unknown(head)
  return string.sub(head, 9, 9) == '2'
end
if found and is_unknown(found) and not is_unknown(ARGV[3]) then
  redis.call('ZREM', KEYS[5], ARGV[7])
end
if ARGV[3] == '' then
  redis.call('ZREM', KEYS[3], ARGV[7])
  if found then
    redis.call('DEL', KEYS[1], KEYS[2])
    if redis.call('HINCRBY', KEYS[4], ARGV[8], -1) < 1 then
      redis.call('HDEL', KEYS[4], ARGV[8])
    end
  end
else
  if not found then
    local secret = ARGV[13] ~= '' and redis.call('GET', KEYS[6])
    if secret and secret ~= ARGV[13] then
      return {'other_secret', now, records}
    end
    if records >= tonumber(ARGV[10]) then
      return {'full', now, records}
    end
    local max = tonumber(ARGV[9])
    if max > 0 and tonumber(redis.call('HGET', KEYS[4], ARGV[8]) or '0') >= max then
      return {'scope_full', now, records}
    end
    if ARGV[13] ~= '' and not secret then
      redis.call('SET', KEYS[6], ARGV[13])
    end
    redis.call('HINCRBY', KEYS[4], ARGV[8], 1)
  end
  redis.call('SET', KEYS[1], ARGV[3] .. string.format('%015.0f', now) .. ARGV[4])
  if ARGV[5] == '1' then
    redis.call('SET', KEYS[2], ARGV[6])
  elseif found then
    redis.call('DEL', KEYS[2])
  end
  redis.call('ZADD', KEYS[3], now + tonumber(ARGV[11]), ARGV[7])
  if is_unknown(ARGV[3]) then
    redis.call('ZADD', KEYS[5], now + tonumber(ARGV[12]), ARGV[7])
  end
end
return {'made', now, redis.call('ZCARD', KEYS[3]), redis.call('ZCARD', KEYS[5])}
)lua";
}

auto due_script() -> std::string_view {
  return R"lua(
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local answer = {now, redis.call('ZCARD', KEYS[1]), redis.call('ZCARD', KEYS[2])}
local names = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now + tonumber(ARGV[2]),
  'LIMIT', 0, ARGV[3])
for _, name in ipairs(names) do
  answer[#answer + 1] = name
  answer[#answer + 1] = redis.call('GET', ARGV[1] .. name)
end
return answer
)lua";
}

auto unknown_script() -> std::string_view {
  return R"lua(
local time = redis.call('TIME')
local answer = {time[1] * 1000 + math.floor(time[2] / 1000)}
for _, name in ipairs(redis.call('ZREVRANGE', KEYS[1], 0, tonumber(ARGV[2]) - 1)) do
  local record = redis.call('GET', ARGV[1] .. name)
  if record then
    answer[#answer + 1] = name
    answer[#answer + 1] = record
  else
    redis.call('ZREM', KEYS[1], name)
  end
end
return answer
)lua";
}

}  // namespace tidegate::store_redis
