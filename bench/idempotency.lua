-- SPDX-License-Identifier: Apache-2.0
-- wrk script: POST with an Idempotency-Key. Usage: wrk ... -s idempotency.lua URL -- PATH PREFIX KEYS
-- The keys are PREFIX-1, PREFIX-2 and so on, and begin anew after KEYS of them; 0: never.
local before, behind, prefix, keys
local number = 0

function init(args)
  prefix, keys = args[2], tonumber(args[3])
  local content = '{"currency":"EUR","amount":12990,"items":[{"sku":"A-1001","qty":2}],"customer":"cus_55d0e2"}'
  before = "POST " .. args[1] .. " HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: key-1\r\nAuthorization: Bearer key-1\r\n" ..
    "Content-Type: application/json\r\nContent-Length: " .. #content .. "\r\nIdempotency-Key: \"" .. prefix .. "-"
  behind = "\"\r\n\r\n" .. content
end

function request()
  number = number + 1
  if number > keys and keys > 0 then number = 1 end
  return before .. number .. behind
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('JSON {"requests":%d,"us":%d,"status_err":%d,"sock_err":%d,"p50":%d,"p99":%d}\n',
    summary.requests, summary.duration, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
