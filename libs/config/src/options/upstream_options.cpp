// SPDX-License-Identifier: Apache-2.0
#include "options/tables.hpp"

namespace tidegate::gateway {

namespace {

using enum option_type;
using enum availability;
using form = option_form;

constexpr option table[] = {
    // NOLINT(modernize-avoid-c-arrays): its length is counted by the compiler
    {.path = "upstreams",
     .type = url,
     .form = form::named,
     .doc = "Servers by name: a URL, or more settings."},
    {.path = "upstreams.servers",
     .type = url,
     .form = form::list,
     .available = required,
     .doc = "The servers; the one with the fewest requests is taken."},
    {.path = "upstreams.connect-timeout",
     .type = duration,
     .initial = "1s",
     .min = 1,
     .max = hour,
     .doc = "How long a connection may take."},
    {.path = "upstreams.timeout",
     .type = duration,
     .initial = "30s",
     .min = 1,
     .max = day,
     .doc = "How long the head of the response may take."},
    {.path = "upstreams.idle-timeout",
     .type = duration,
     .initial = "60s",
     .min = 1,
     .max = day,
     .doc = "How long nothing may come between two bytes."},
    {.path = "upstreams.retries",
     .type = integer,
     .initial = "1",
     .min = 0,
     .max = 10,
     .doc = "How often a request that is safe to repeat is sent again."},
    {.path = "upstreams.tls", .doc = "For servers with `https`."},
    {.path = "upstreams.tls.verify",
     .type = boolean,
     .initial = "true",
     .doc = "Check the certificate of the server."},
    {.path = "upstreams.tls.ca",
     .type = file,
     .doc = "Certificates to trust, PEM. Left out: the system's."},
    {.path = "upstreams.tls.server-name",
     .type = host,
     .doc = "Name to ask for and to verify. Left out: the host of the URL."},
    {.path = "upstreams.http2",
     .type = choice,
     .initial = "false",
     .words = "false",
     .later = "true",
     .doc = "Speak HTTP/2 to the servers."},
    {.path = "upstreams.tls.certificate",
     .available = later,
     .doc = "A certificate to show to the servers."},
    {.path = "upstreams.tls.key", .available = later, .doc = "Its key."},
    {.path = "upstreams.balance", .available = later, .doc = "How a server is chosen."},
    {.path = "upstreams.health", .available = later, .doc = "Ask servers how they are."},
    {.path = "upstreams.outlier",
     .available = later,
     .doc = "Take out servers that answer with errors."},
    {.path = "upstreams.resolve",
     .available = later,
     .doc = "How long the addresses of a name are used."},
    {.path = "upstreams.max-connections", .available = later, .doc = "Connections to the servers."},
    {.path = "upstreams.max-wait", .available = later, .doc = "How long a request waits for one."},
    {.path = "upstreams.retry", .available = later, .doc = "What is sent again, and how often."},
    {.path = "upstreams.overload",
     .doc =
         "Protect the servers: answers 503 and advertises less as their latency and errors grow. "
         "At least one of its two options is needed."},
    {.path = "upstreams.overload.max-in-flight",
     .type = integer,
     .min = 1,
     .max = 1'000'000,
     .doc = "Requests at the same time, at most."},
    {.path = "upstreams.overload.target-latency",
     .type = duration,
     .min = 1,
     .max = hour,
     .doc = "Latency to stay below."},
};

}  // namespace

auto upstream_options() -> std::span<option const> {
  return table;
}

}  // namespace tidegate::gateway
