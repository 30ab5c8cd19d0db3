-- SPDX-License-Identifier: Apache-2.0
-- wrk script. Usage: wrk ... -s load.lua URL -- (turns | count | users) FILE [FIRST]
-- turns: the requests of FILE, with octet 30 between them, one after the other and again.
-- count: the request of FILE with the numbers from FIRST + 1 on in the place of @N@.
-- users: the same, with the user of that number as content and its length in the place of @N@.
local given = {"Ada", "Grace", "Edsger", "Barbara", "Donald", "Radia", "Ken", "Frances", "Dennis", "Lynn"}
local family = {"Lovelace", "Hopper", "Dijkstra", "Liskov", "Knuth", "Perlman", "Thompson", "Allen", "Ritchie", "Conway", "Hamilton"}
local requests, kind, number, before, behind = {}, nil, 0, nil, nil

-- A user as identity providers send them. They come in no order of their names: 2654435761 is odd,
-- so each number below 2^32 comes once.
local function user(n)
  local mixed = (n * 2654435761) % 4294967296
  local first, last = given[mixed % #given + 1], family[mixed % #family + 1]
  local name = string.format("%s.%s.%08x", first:lower(), last:lower(), mixed)
  return string.format('{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User",' ..
    '"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],"externalId":"%08x-5b1c-4d57-9a70-1f8b5ba7a001",' ..
    '"userName":"%s@example.com","name":{"formatted":"%s %s","familyName":"%s","givenName":"%s"},"displayName":"%s %s",' ..
    '"title":"Engineer","locale":"en-GB","active":true,' ..
    '"emails":[{"value":"%s@example.com","type":"work","primary":true}],' ..
    '"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"employeeNumber":"%d","department":"Research"}}',
    mixed, name, first, last, last, first, first, last, name, n)
end

function init(args)
  kind, number = args[1], tonumber(args[3] or 0)
  local text = assert(io.open(args[2], "rb")):read("*a")
  for request in text:gmatch("[^\30]+") do requests[#requests + 1] = request end
  before, behind = text:match("^(.-)@N@(.*)$")
end

function request()
  number = number + 1
  if kind == "turns" then return requests[number % #requests + 1] end
  if kind == "count" then return before .. number .. behind end
  local content = user(number)
  return before .. #content .. behind .. content
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('JSON {"requests":%d,"secs":%.6f,"refused":%d,"failed":%d,"p50":%d,"p99":%d,"p999":%d,"longest":%d}\n',
    summary.requests, summary.duration / 1e6, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), latency.max))
end
