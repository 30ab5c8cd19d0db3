-- SPDX-License-Identifier: Apache-2.0
-- wrk script for the directory. Usage: wrk ... -s scim.lua URL -- get TOKEN FILE | post TOKEN FIRST
-- get: the paths of FILE, a line each, one after the other and again. post: users from the number FIRST on.
local paths, fields, number = {}, nil, 0
local given = {"Ada", "Grace", "Edsger", "Barbara", "Donald", "Radia", "Ken", "Frances", "Dennis", "Lynn"}
local family = {"Lovelace", "Hopper", "Dijkstra", "Liskov", "Knuth", "Perlman", "Thompson", "Allen", "Ritchie", "Conway", "Hamilton"}

-- A user as identity providers send them. They come in no order of their names: 2654435761 is odd, so each number below 2^32 comes once.
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
  local what, token = args[1], args[2]
  fields = "Host: 127.0.0.1\r\nAuthorization: Bearer " .. token .. "\r\n"
  if what == "get" then
    for line in io.lines(args[3]) do
      paths[#paths + 1] = "GET " .. line .. " HTTP/1.1\r\n" .. fields .. "\r\n"
    end
  else
    number = tonumber(args[3])
    fields = "POST /scim/v2/Users HTTP/1.1\r\n" .. fields .. "Content-Type: application/scim+json\r\nContent-Length: "
  end
end

function request()
  number = number + 1
  if #paths > 0 then
    return paths[number % #paths + 1]
  end
  local content = user(number)
  return fields .. #content .. "\r\n\r\n" .. content
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('JSON {"requests":%d,"us":%d,"status_err":%d,"sock_err":%d,"p50":%d,"p99":%d}\n',
    summary.requests, summary.duration, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
