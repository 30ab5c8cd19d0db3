-- SPDX-License-Identifier: Apache-2.0
-- wrk script: GET with an API key. Usage: wrk ... -s shared.lua URL -- KEYS
-- The keys are key-1 to key-KEYS, one after the other.
local heads = {}
local number = 0

function init(args)
  for key = 1, tonumber(args[1]) do
    heads[key] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: key-" .. key .. "\r\n\r\n"
  end
end

function request()
  number = number % #heads + 1
  return heads[number]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('JSON {"requests":%d,"us":%d,"status_err":%d,"sock_err":%d,"p50":%d,"p99":%d}\n',
    summary.requests, summary.duration, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
