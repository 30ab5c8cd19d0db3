// SPDX-License-Identifier: Apache-2.0
#include "options/tables.hpp"

namespace tidegate::gateway {

namespace {

using enum option_type;
using enum availability;
using form = option_form;

constexpr option table[] = {
    // NOLINT(modernize-avoid-c-arrays): its length is counted by the compiler
    {.path = "fields", .doc = "What responses say of quotas."},
    {.path = "fields.ratelimit",
     .type = choice,
     .initial = "draft-09",
     .words = "draft-09|draft-07|none",
     .doc = "The draft that RateLimit and RateLimit-Policy follow. draft-07 tells two policies of "
            "one route apart "
            "by their quotas, so these must differ."},
    {.path = "fields.legacy",
     .type = boolean,
     .initial = "false",
     .doc = "Add X-RateLimit-Limit, -Remaining and -Reset."},

    {.path = "drain-delay",
     .type = duration,
     .initial = "0s",
     .min = 0,
     .max = hour,
     .doc = "After SIGTERM `/readyz` says 503 for so long before listeners close, so that load "
            "balancers stop sending first."},

    {.path = "trusted-proxies",
     .type = network,
     .form = form::one_or_list,
     .doc = "Only from these is X-Forwarded-For, Forwarded or the PROXY protocol believed."},
    {.path = "client-address",
     .type = choice,
     .initial = "x-forwarded-for",
     .words = "x-forwarded-for|forwarded",
     .doc =
         "The field in which `trusted-proxies` say who asked them. The other one, which they pass "
         "on as it came, is neither believed nor passed on."},

    {.path = "http", .doc = "What a client may send, and how long it may take."},
    {.path = "http.header-timeout",
     .type = duration,
     .initial = "10s",
     .min = 1,
     .max = day,
     .doc = "For the head of a request."},
    {.path = "http.body-timeout",
     .type = duration,
     .initial = "30s",
     .min = 1,
     .max = day,
     .doc = "Between two reads of its content."},
    {.path = "http.idle-timeout",
     .type = duration,
     .initial = "60s",
     .min = 1,
     .max = day,
     .doc = "Between two requests of a connection."},
    {.path = "http.max-header-size",
     .type = size,
     .initial = "32KiB",
     .min = kib,
     .max = mib,
     .doc = "Octets of all fields; else 431."},
    {.path = "http.max-headers",
     .type = integer,
     .initial = "100",
     .min = 1,
     .max = 10'000,
     .doc = "Fields; else 431."},
    {.path = "http.max-uri",
     .type = size,
     .initial = "8KiB",
     .min = 64,
     .max = mib,
     .doc = "Octets; else 414."},
    {.path = "http.max-body",
     .type = size,
     .initial = "none",
     .words = "none",
     .doc = "Octets of content; else 413."},
    {.path = "http.max-connections",
     .type = integer,
     .initial = "20000",
     .min = 1,
     .max = 10'000'000,
     .doc = "Connections of clients at the same time, on all event loops together; one more is "
            "closed at once."},
    {.path = "http.ambiguous-paths",
     .type = choice,
     .initial = "refuse",
     .words = "refuse|allow",
     .doc = "A path with `//`, `;`, `%2F`, `%5C`, or an escape without need such as `%3A`, that a "
            "server could read as the path of another route, cost or partition: 400, or pass it "
            "on."},
    {.path = "http.max-buffered",
     .type = size,
     .initial = "64MiB",
     .min = mib,
     .doc = "Octets that may wait in memory for slow clients, of all connections together; when it "
            "is more, the connections for which most has waited for longest are closed."},

    {.path = "log-level",
     .type = choice,
     .initial = "info",
     .words = "error|warning|info|debug",
     .doc = "What the gateway says on standard error: lines of this level, and of those that are "
            "more important. `tidegate serve --log-level` takes its place."},

    {.path = "access-log",
     .type = file,
     .initial = "off",
     .words = "off|stdout",
     .doc = "A line of JSON for each request; SIGHUP opens the file again."},
    {.path = "access-log.file",
     .type = file,
     .available = required,
     .words = "stdout",
     .doc = "Where the lines go."},
    {.path = "access-log.query",
     .type = boolean,
     .initial = "false",
     .doc = "Log the query of the request, which may hold secrets."},
    {.path = "access-log.fields", .available = later, .doc = "Which members a line has."},

    {.path = "consumers", .available = later, .doc = "Who may ask, with keys and a plan for each."},
    {.path = "tracing", .available = later, .doc = "Traces by OpenTelemetry."},
    {.path = "request-id", .available = later, .doc = "A name for each request."},
    {.path = "include", .available = later, .doc = "More files."},
    {.path = "client-ip", .available = later, .doc = "How addresses of clients are grouped."},
    {.path = "drain-timeout",
     .available = later,
     .doc = "How long a stop waits for what is under way."},
};

}  // namespace

auto http_options() -> std::span<option const> {
  return table;
}

}  // namespace tidegate::gateway
