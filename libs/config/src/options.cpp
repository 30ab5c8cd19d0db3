// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <tidegate/config/values.hpp>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>
#include <vector>

namespace tidegate::gateway {

namespace {

using enum option_type;
using enum availability;
using form = option_form;

constexpr std::int64_t second = 1000;
constexpr std::int64_t minute = 60 * second;
constexpr std::int64_t hour = 60 * minute;
constexpr std::int64_t day = 24 * hour;
constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;
constexpr std::int64_t fifteen_digits = 999'999'999'999'999;

constexpr option table[] = {
    // NOLINT(modernize-avoid-c-arrays): its length is counted by the compiler
    {.path = "listen",
     .type = address,
     .form = form::one_or_list,
     .initial = "127.0.0.1:8080",
     .doc = "Where clients connect. Several addresses are a list.",
     .at_start = true},
    {.path = "listen.address",
     .type = address,
     .available = required,
     .doc = "The address.",
     .at_start = true},
    {.path = "listen.tls", .doc = "Speak TLS."},
    {.path = "listen.tls.certificate",
     .type = file,
     .available = required,
     .doc = "The certificate and its chain, PEM."},
    {.path = "listen.tls.key", .type = file, .available = required, .doc = "The private key, PEM."},
    {.path = "listen.tls.certificates",
     .available = later,
     .doc = "Several certificates, chosen by the name that the client asks for."},
    {.path = "listen.tls.min-version", .available = later, .doc = "The lowest version of TLS."},
    {.path = "listen.tls.client-ca",
     .available = later,
     .doc = "Who signs certificates of clients."},
    {.path = "listen.tls.client-auth",
     .available = later,
     .doc = "Whether clients need a certificate."},
    {.path = "listen.tls.acme", .available = later, .doc = "Certificates by ACME."},
    {.path = "listen.redirect-to-https", .available = later, .doc = "Send clients to `https`."},
    {.path = "listen.http2",
     .type = boolean,
     .initial = "true",
     .doc = "Offer HTTP/2: by ALPN with TLS, by prior knowledge without."},
    {.path = "listen.proxy-protocol",
     .type = boolean,
     .initial = "false",
     .doc = "Connections begin with the PROXY protocol, version 1 or 2. Only `trusted-proxies` may "
            "connect."},

    {.path = "admin",
     .type = address,
     .words = "off",
     .doc = "Console, metrics and health. Left out: off. Without `tokens` only an address of the "
            "loopback interface, or a path.",
     .at_start = true},
    {.path = "admin.address",
     .type = address,
     .available = required,
     .doc = "The address.",
     .at_start = true},
    {.path = "admin.tokens",
     .form = form::list,
     .doc = "Who may use it, but for `/healthz` and `/readyz`. Left out: whoever reaches it."},
    {.path = "admin.tokens.name",
     .type = name,
     .available = required,
     .doc = "For the log of what was changed."},
    {.path = "admin.tokens.sha256",
     .type = digest,
     .available = required,
     .doc = "Of the bytes of the token: `printf %s TOKEN | sha256sum`."},
    {.path = "admin.tokens.read-only",
     .type = boolean,
     .initial = "false",
     .doc = "Sees everything and changes nothing: what would gets 403."},
    {.path = "console", .doc = "What the console at the admin address may do."},
    {.path = "console.directory",
     .type = choice,
     .initial = "read",
     .words = "read|write|off",
     .doc = "The resources of `service: scim`, of every tenant: look at them, change and delete "
            "them too, or not even look."},
    {.path = "workers",
     .type = integer,
     .initial = "auto",
     .words = "auto",
     .min = 1,
     .max = 1024,
     .doc = "Event loops; `auto` is one for each core.",
     .at_start = true},
    {.path = "data",
     .type = file,
     .initial = "data",
     .doc = "Folder of what outlives a request; created with mode 0700.",
     .at_start = true},
    {.path = "secrets",
     .type = file,
     .doc = "File that keys are derived from; created with mode 0600. Left out: `secrets.key` in "
            "`data`. "
            "Gateways that share a store share it.",
     .at_start = true},

    {.path = "stores", .doc = "Where state is kept."},
    {.path = "stores.quota",
     .type = option_type::store,
     .initial = "memory",
     .words = "memory",
     .forms = "redis://HOST:PORT|rediss://HOST:PORT|redis+cluster://HOST:PORT,...|"
              "rediss+cluster://HOST:PORT,...|redis+sentinel://HOST:PORT,.../NAME|"
              "rediss+sentinel://HOST:PORT,.../NAME",
     .doc = "What is left of quotas: in this process, or where several gateways share it.",
     .at_start = true},
    {.path = "stores.quota-partitions",
     .type = integer,
     .initial = "1000000",
     .min = 1000,
     .max = 1'000'000'000,
     .doc = "How many partitions are kept in memory at once; beyond, new ones share a quota.",
     .at_start = true},
    {.path = "stores.idempotency",
     .type = option_type::store,
     .words = "memory",
     .forms = "sqlite:FILE|redis://HOST:PORT|rediss://HOST:PORT|redis+cluster://HOST:PORT,...|"
              "rediss+cluster://HOST:PORT,...|redis+sentinel://HOST:PORT,.../NAME|"
              "rediss+sentinel://HOST:PORT,.../NAME|postgres://HOST:PORT/DATABASE",
     .doc = "Idempotency keys and responses. `memory` forgets them at the end of the process. Left "
            "out: `idempotency.db` in `data`.",
     .at_start = true},
    {.path = "stores.idempotency-size",
     .type = option_type::size,
     .initial = "1GiB",
     .min = 1024 * 1024,
     .max = std::int64_t{1} << 46,
     .doc = "How much idempotency keys and responses may take together, in memory or in SQLite; "
            "beyond, new keys get 503. Not where they are in Redis (its `maxmemory`) or "
            "PostgreSQL.",
     .at_start = true},
    {.path = "stores.idempotency-replicas",
     .type = integer,
     .initial = "0",
     .min = 0,
     .max = 16,
     .doc =
         "Where idempotency keys are in Redis: how many replicas have to have a change before it "
         "counts.",
     .at_start = true},
    {.path = "stores.directory",
     .type = option_type::store,
     .forms = "sqlite:FILE|postgres://HOST:PORT/DATABASE",
     .doc = "The resources of `service: scim`. Left out: `directory.db` in `data`.",
     .at_start = true},

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

    {.path = "policies",
     .form = form::named,
     .doc = "Quotas by name. Clients see the name: printable ASCII."},
    {.path = "policies.quota",
     .type = quota,
     .available = required,
     .min = 1,
     .max = fifteen_digits,
     .doc = "Units in a window, or held at the same time. A size for `content-bytes`."},
    {.path = "policies.window",
     .type = duration,
     .min = second,
     .max = 366 * day,
     .doc = "In whole seconds. Required, but for `concurrent-requests`, which has none."},
    {.path = "policies.unit",
     .type = choice,
     .initial = "requests",
     .words = "requests|content-bytes|concurrent-requests",
     .doc = "What is counted: requests, bytes of request and response content, or requests at the "
            "same time."},
    {.path = "policies.algorithm",
     .type = choice,
     .initial = "sliding",
     .words = "fixed|sliding|gcra",
     .doc = "`fixed`: a window begins with the first request. `sliding`: two windows, weighted. "
            "`gcra`: evenly, "
            "with bursts. Not for `concurrent-requests`."},
    {.path = "policies.burst",
     .type = quota,
     .min = 1,
     .max = fifteen_digits,
     .doc = "For `gcra`: units at once, at most. Left out: the quota."},
    {.path = "policies.partition",
     .type = source,
     .form = form::one_or_list,
     .initial = "client-ip",
     .doc = "Requests with the same values of these share the quota. What a request has not is the "
            "empty value; what it has more than once of a header, query parameter or cookie gets "
            "400."},
    {.path = "policies.partition-key",
     .type = choice,
     .initial = "none",
     .words = "none|hashed|plain",
     .doc = "What clients are told of their partition in `pk`. `plain` is refused for credentials: "
            "cookies, and fields and parameters with names such as `authorization`, `x-api-key`, "
            "`access_token`."},
    {.path = "policies.enforce",
     .type = choice,
     .initial = "true",
     .words = "true|shadow",
     .doc = "`shadow`: counted and shown to the operator, never refuses and not in the fields."},
    {.path = "policies.count",
     .type = choice,
     .initial = "all",
     .words = "all|successful",
     .doc = "`successful`: responses from 400 on are given back."},
    {.path = "policies.jitter",
     .type = duration,
     .initial = "0s",
     .min = 0,
     .max = day,
     .doc = "Up to this much is added to `t` and Retry-After, so that clients do not come back "
            "together."},
    {.path = "policies.max-advertised-rate",
     .type = rate,
     .words = "none",
     .doc = "`r` never invites to more than this over `t`."},
    {.path = "policies.abuse",
     .words = "off",
     .doc = "Block a partition that does not stop when it is refused. Left out: off."},
    {.path = "policies.abuse.refusals",
     .type = integer,
     .initial = "50",
     .min = 1,
     .max = 1'000'000'000,
     .doc = "So many refusals..."},
    {.path = "policies.abuse.within",
     .type = duration,
     .initial = "1m",
     .min = 1,
     .max = 366 * day,
     .doc = "...within this time..."},
    {.path = "policies.abuse.block",
     .type = duration,
     .initial = "10m",
     .min = 1,
     .max = 366 * day,
     .doc = "...block the partition for so long."},
    {.path = "policies.counting",
     .type = choice,
     .initial = "exact",
     .words = "exact|lease",
     .doc =
         "Where gateways share quotas: ask for every request, or take slices of the quota ahead. "
         "Both never admit more than the quota."},
    {.path = "policies.on-store-failure",
     .type = choice,
     .initial = "local",
     .words = "local|allow|deny",
     .doc = "While the store does not answer: count in this process, admit, or refuse."},

    {.path = "policies.unit-name", .available = later, .doc = "What a unit is called."},
    {.path = "policies.max-wait",
     .available = later,
     .doc = "Hold a request for a while that would be refused."},
    {.path = "routes",
     .form = form::list,
     .available = required,
     .doc = "The first that matches a request takes it."},
    {.path = "routes.name",
     .type = name,
     .doc = "For logs and metrics. Left out: the match as it is written."},
    {.path = "routes.match", .available = required, .doc = "Which requests."},
    {.path = "routes.match.path",
     .type = path,
     .initial = "/**",
     .doc = "`*` stands for one segment, a last `**` for any number: `/v1/**` matches `/v1` and "
            "all below."},
    {.path = "routes.match.methods",
     .type = method,
     .form = form::one_or_list,
     .doc = "One of these; GET does not imply HEAD. Left out: any. TRACE always gets 405."},
    {.path = "routes.match.host",
     .type = host,
     .doc = "In any case; the port and a dot at the end are ignored. Left out: any."},
    {.path = "routes.match.headers",
     .available = later,
     .doc = "Header fields that a request has."},
    {.path = "routes.match.query",
     .available = later,
     .doc = "Query parameters that a request has."},
    {.path = "routes.upstream",
     .type = upstream_name,
     .doc = "Where the requests go. This or `service`."},
    {.path = "routes.service",
     .type = choice,
     .words = "echo|scim",
     .doc = "A built-in service. `echo` answers with the request; `scim` is a directory of users "
            "and groups (SCIM 2.0), below a path that ends with `/**`."},
    {.path = "routes.limits",
     .type = policy_name,
     .form = form::one_or_list,
     .doc = "Policies that all must admit a request, in the order of the fields."},
    {.path = "routes.cost",
     .type = integer,
     .form = form::patterns,
     .initial = "1",
     .min = 0,
     .max = fifteen_digits,
     .doc = "Units that a request spends of policies that count requests: a number, or `default` "
            "and patterns such as "
            "`POST /v1/search`, of which the first match wins."},
    {.path = "routes.idempotency",
     .doc = "Makes requests with an Idempotency-Key safe to send again. Not for `service: echo`."},
    {.path = "routes.idempotency.mode",
     .type = choice,
     .initial = "off",
     .words = "required|optional|off",
     .doc = "`required`: a request without a key gets 400. `optional`: it passes."},
    {.path = "routes.idempotency.methods",
     .type = method,
     .form = form::one_or_list,
     .doc = "Requests with these methods. Left out: POST and PATCH. Never GET, HEAD, OPTIONS or "
            "TRACE."},
    {.path = "routes.idempotency.scope",
     .type = source,
     .form = form::one_or_list,
     .initial = "header:authorization",
     .doc = "Who owns a key: the same key with other values of these is another key, and so is the "
            "same key for another host. On a route with `auth` the default is `principal`. A "
            "credential that is renewed makes a retry a new request, and an address may be that of "
            "several clients: `check` warns of both. What every request has (`method`, `host`, "
            "`path`, `route`) may only be there besides. A header, query parameter or cookie that "
            "comes more than once gets 400."},
    {.path = "routes.idempotency.anonymous",
     .type = choice,
     .initial = "refuse",
     .words = "allow|refuse",
     .doc =
         "Requests that have nothing of `scope` but what every request has: they get 400, or own "
         "their keys together, so that each may be told the answer to another."},
    {.path = "routes.idempotency.accept-unquoted",
     .type = boolean,
     .initial = "false",
     .doc = "Also take a key without quotes; `\"abc\"` and `abc` are one key."},
    {.path = "routes.idempotency.key-format",
     .type = choice,
     .initial = "any",
     .words = "any|uuid|uuidv7",
     .doc = "What a key must be."},
    {.path = "routes.idempotency.key-length-max",
     .type = integer,
     .initial = "255",
     .min = 1,
     .max = 4096,
     .doc = "Characters of a key."},
    {.path = "routes.idempotency.key-age-max",
     .type = duration,
     .min = 1,
     .max = 3660 * day,
     .doc = "How long ago a key may have been made. For `key-format: uuidv7`."},
    {.path = "routes.idempotency.fingerprint",
     .type = choice,
     .initial = "body",
     .words = "body|json|none",
     .doc = "What of the content tells a retry from another request: its exact bytes, its "
            "canonical JSON, chosen values, or nothing. Method, path and query always count."},
    {.path = "routes.idempotency.fingerprint.json",
     .type = pointer,
     .form = form::list,
     .available = required,
     .doc = "Only the values that these name."},
    {.path = "routes.idempotency.ttl",
     .type = duration,
     .initial = "24h",
     .min = second,
     .max = 3660 * day,
     .doc = "How long an answer is replayed, in whole seconds."},
    {.path = "routes.idempotency.tombstone",
     .type = duration,
     .initial = "7d",
     .min = 0,
     .max = 3660 * day,
     .doc = "How long the key is remembered after that, in whole seconds."},
    {.path = "routes.idempotency.in-flight",
     .type = choice,
     .initial = "conflict",
     .words = "conflict|wait",
     .doc = "What a retry gets while the first request runs: 409, or its answer when it is there."},
    {.path = "routes.idempotency.waiters-max",
     .type = integer,
     .initial = "64",
     .min = 0,
     .max = 10'000,
     .doc = "How many may wait for one key; the others get 409."},
    {.path = "routes.idempotency.keys-max",
     .type = integer,
     .initial = "500000",
     .min = 1,
     .max = 1'000'000'000,
     .doc = "How many keys of one scope are remembered at once; more get 429."},
    {.path = "routes.idempotency.max-body",
     .type = size,
     .initial = "1MiB",
     .min = 0,
     .max = 1024 * mib,
     .doc = "Content of a request with a key; else 413."},
    {.path = "routes.idempotency.max-response",
     .type = size,
     .initial = "1MiB",
     .min = 0,
     .max = 1024 * mib,
     .doc = "Content of an answer that can be replayed. A larger one is sent on, and a retry gets "
            "409."},
    {.path = "routes.idempotency.max-execution",
     .type = duration,
     .initial = "10m",
     .min = second,
     .max = day,
     .doc = "How long a late answer is still recorded after the client got 504."},
    {.path = "routes.idempotency.lease",
     .type = duration,
     .initial = "30s",
     .min = second,
     .max = hour,
     .doc =
         "Where gateways share the store: how long one that is not heard of counts as alive. Then "
         "the outcome of what it had under way is unknown."},
    {.path = "routes.idempotency.store-5xx",
     .type = boolean,
     .initial = "false",
     .doc = "502, 503 and 504 of the upstream are final answers."},
    {.path = "routes.idempotency.upstream-deduplicates",
     .type = boolean,
     .initial = "false",
     .doc = "The upstream does nothing twice for one key."},
    {.path = "routes.idempotency.on-unknown-outcome",
     .type = choice,
     .initial = "conflict",
     .words = "conflict|retry",
     .doc = "`retry`: send the request again when nobody knows what became of it. Only with "
            "`upstream-deduplicates: true`."},
    {.path = "routes.idempotency.on-store-failure",
     .type = choice,
     .initial = "refuse",
     .words = "refuse|pass",
     .doc = "`pass`: forward without protection, and say so with `Idempotency-Status: bypassed`."},
    {.path = "routes.idempotency.replay-cost",
     .type = integer,
     .initial = "0",
     .min = 0,
     .max = fifteen_digits,
     .doc = "Units that a replay spends of policies that count requests. At 0 it is answered even "
            "when the quota is gone."},
    {.path = "routes.idempotency.seal",
     .type = boolean,
     .initial = "true",
     .doc = "Encrypt what is stored of answers."},
    {.path = "routes.idempotency.documentation",
     .type = reference,
     .initial = "/.well-known/tidegate",
     .doc = "Where people read what the errors mean: in `type` and Link."},
    {.path = "routes.auth",
     .doc = "Who may ask. Anybody else gets 401; whose token it was is the `principal`."},
    {.path = "routes.auth.bearer-tokens",
     .form = form::list,
     .available = required,
     .doc = "The tokens, as digests."},
    {.path = "routes.auth.bearer-tokens.name",
     .type = name,
     .available = required,
     .doc = "The principal: for `partition`, `scope` and logs."},
    {.path = "routes.auth.bearer-tokens.sha256",
     .type = digest,
     .available = required,
     .doc = "Of the bytes of the token: `printf %s TOKEN | sha256sum`."},
    {.path = "routes.auth.bearer-tokens.tenant",
     .type = name,
     .initial = "default",
     .doc = "Whose data it sees. For `service: scim`."},
    {.path = "routes.auth.bearer-tokens.read-only",
     .type = boolean,
     .initial = "false",
     .doc = "Only for reading: other methods get 403."},
    {.path = "routes.bridge",
     .type = choice,
     .words = "scim-cursor",
     .doc =
         "For a route to an upstream. `scim-cursor`: SCIM by cursor before a server that has pages "
         "by index only; `default-page-size`, `max-page-size`, `pagination`, `default-method`, "
         "`cursor-timeout` and `count-over-max` say how."},
    {.path = "routes.default-page-size",
     .type = integer,
     .initial = "100",
     .min = 1,
     .max = 10'000,
     .doc = "SCIM: resources on a page when the client does not say; never more than "
            "`max-page-size`.",
     .of_scim = true},
    {.path = "routes.max-page-size",
     .type = integer,
     .initial = "500",
     .min = 1,
     .max = 10'000,
     .doc = "SCIM: resources on a page, at most.",
     .of_scim = true},
    {.path = "routes.pagination",
     .type = choice,
     .initial = "both",
     .words = "both|cursor|index",
     .doc = "SCIM: how clients may page: by `cursor` (RFC 9865), by `startIndex`, or both.",
     .of_scim = true},
    {.path = "routes.default-method",
     .type = choice,
     .initial = "index",
     .words = "index|cursor",
     .doc =
         "SCIM: for a query with neither `cursor` nor `startIndex`. With `pagination: cursor` it "
         "is `cursor`.",
     .of_scim = true},
    {.path = "routes.cursor-timeout",
     .type = duration,
     .initial = "10m",
     .min = second,
     .max = 366 * day,
     .doc = "SCIM: how long a cursor is good, in whole seconds; each page gives new ones.",
     .of_scim = true},
    {.path = "routes.count-over-max",
     .type = choice,
     .initial = "clamp",
     .words = "clamp|error",
     .doc = "SCIM: a `count` above `max-page-size` is lowered, or refused with `invalidCount`.",
     .of_scim = true},
    {.path = "routes.schemas",
     .type = file,
     .form = form::one_or_list,
     .doc = "SCIM: files in JSON, each with a schema, a resource type, or an array of them. One "
            "with the id of a built-in one takes its place.",
     .of_scim = true},
    {.path = "routes.indexes",
     .type = name,
     .form = form::one_or_list,
     .doc = "SCIM: attributes to index besides userName, externalId, displayName, emails and what "
            "is unique: `title`, `User:name.familyName`, "
            "`urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department`.",
     .of_scim = true},
    {.path = "routes.scan-budget",
     .type = duration,
     .initial = "50ms",
     .min = 1,
     .max = 10 * second,
     .doc = "SCIM: how long a page may take whose filter has no index. Then it is shorter, with a "
            "`nextCursor`.",
     .of_scim = true},
    {.path = "routes.max-body",
     .type = size,
     .initial = "1MiB",
     .min = kib,
     .max = 64 * mib,
     .doc = "SCIM: octets of content; else 413.",
     .of_scim = true},
    {.path = "routes.bulk",
     .doc = "SCIM: what a bulk request may have; else 413.",
     .of_scim = true},
    {.path = "routes.bulk.max-operations",
     .type = integer,
     .initial = "1000",
     .min = 1,
     .max = 100'000,
     .doc = "Operations."},
    {.path = "routes.bulk.max-payload",
     .type = size,
     .initial = "1MiB",
     .min = kib,
     .max = 64 * mib,
     .doc = "Octets."},
    {.path = "routes.public-url",
     .type = reference,
     .doc =
         "SCIM: what URIs of resources begin with, as clients see it. Without a path, that of the "
         "route follows. Left out: scheme and host of the request.",
     .of_scim = true},
    {.path = "routes.unique-group-names",
     .type = boolean,
     .initial = "false",
     .doc = "SCIM: no two groups of a tenant have the same displayName; else 409.",
     .of_scim = true},
    {.path = "routes.unknown-attributes",
     .type = choice,
     .initial = "ignore",
     .words = "ignore|refuse",
     .doc = "SCIM: what becomes of attributes and schema URNs that no schema has, in POST, PUT and "
            "values of PATCH. Paths and filters that name one are refused in any case.",
     .of_scim = true},

    {.path = "routes.auth.api-keys",
     .available = later,
     .doc = "API keys in header fields or the query."},
    {.path = "routes.auth.jwt", .available = later, .doc = "JSON Web Tokens."},
    {.path = "routes.auth.forward", .available = later, .doc = "Ask another service who may pass."},
    {.path = "routes.auth.optional",
     .available = later,
     .doc = "Let requests without credentials pass."},
    {.path = "routes.auth.pass", .available = later, .doc = "Tell the upstream who asks."},
    {.path = "routes.auth.forward-credentials",
     .available = later,
     .doc = "Send credentials to the upstream."},
    {.path = "routes.upgrade", .available = later, .doc = "WebSocket and other upgrades."},
    {.path = "routes.tunnel-idle-timeout",
     .available = later,
     .doc = "How long a tunnel may be silent."},
    {.path = "routes.cors", .available = later, .doc = "Cross-origin requests of browsers."},
    {.path = "routes.request",
     .available = later,
     .doc = "Set, add or remove header fields of requests."},
    {.path = "routes.response",
     .available = later,
     .doc = "Set, add or remove header fields of responses."},
    {.path = "routes.rewrite", .available = later, .doc = "Change the path for the upstream."},
    {.path = "routes.redirect", .available = later, .doc = "Answer with a redirect."},
    {.path = "routes.respond", .available = later, .doc = "Answer with a fixed response."},
    {.path = "routes.allow", .available = later, .doc = "Addresses of clients that may ask."},
    {.path = "routes.deny", .available = later, .doc = "Addresses of clients that may not."},
    {.path = "routes.timeout",
     .available = later,
     .doc = "The timeout of the upstream, for this route."},
    {.path = "routes.usage", .available = later, .doc = "Count units that responses tell."},

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
     .doc = "A line of JSON for each request; SIGHUP opens the file anew."},
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

auto range(option const& option, std::string (*text)(std::int64_t)) -> std::string {
  bool const bounded = option.max != std::numeric_limits<std::int64_t>::max();
  return bounded ? ", " + text(option.min) + " to " + text(option.max) : std::string();
}

auto milliseconds_text(std::int64_t value) -> std::string {
  return format_duration(std::chrono::milliseconds(value));
}

/// Examples that the bounds of the option allow.
auto durations_within(option const& option) -> std::string {
  std::vector<std::string_view> examples = {"500ms", "10s", "5m", "24h", "7d"};
  std::erase_if(examples, [&](std::string_view each) {
    auto const value = *parse_duration(each) / std::chrono::milliseconds(1);
    return value < option.min || value > option.max;
  });
  std::string out;
  for (auto const& each : examples) {
    out += each == examples.front() ? "" : each == examples.back() ? " or " : ", ";
    out += each;
  }
  return out;
}

auto number_text(std::int64_t value) -> std::string {
  return std::to_string(value);
}

auto allowed_besides_words(option const& option) -> std::string {
  switch (option.type) {
    case section: return option.form == form::list ? "mappings" : "a mapping";
    case boolean: return "true or false";
    case integer: return "a number" + range(option, number_text);
    case duration:
      return "a duration such as " + durations_within(option) + range(option, milliseconds_text);
    case size: return "a size such as 512, 64KiB or 10MiB" + range(option, format_size);
    case quota:
      return "a number" + range(option, number_text) + "; a size such as 10MiB for content-bytes";
    case option_type::rate: return "a rate such as 10/s or 100/m";
    case choice: return "";
    case file: return "the path of a file or folder, relative to the folder of the configuration";
    case address:
      return "HOST:PORT with an IPv4 address, an IPv6 address in brackets, localhost or nothing as "
             "HOST; unix:/PATH";
    case url: return "http://HOST[:PORT] or https://HOST[:PORT]";
    case network: return "a network such as 10.0.0.0/8 or 2001:db8::/32, or an address";
    case path: return "a path such as /v1/orders, /v1/*/items or /v1/**";
    case method: return "a method in upper case, such as GET";
    case host: return "a host such as api.example.com, without a port";
    case source:
      return "client-ip, header:NAME, query:NAME, cookie:NAME, method, host, path, route or "
             "principal";
    case name: return "printable ASCII without spaces at its ends";
    case pointer: return "a JSON pointer such as /order/id";
    case reference: return "a URL or an absolute path, without a fragment";
    case option_type::store: return "";
    case digest: return "64 hexadecimal digits in lower case";
    case policy_name: return "the name of a policy";
    case upstream_name: return "the name of an upstream";
  }
  return "";
}

/// Words for what is not there that people bring from other gateways, with the mapping that they stand in.
constexpr std::pair<std::string_view, std::string_view> known_elsewhere[] = {
    // NOLINT(modernize-avoid-c-arrays): its length is counted by the compiler
    {"routes", "headers"},
    {"routes", "jwt"},
    {"routes", "api-keys"},
    {"routes", "websocket"},
    {"routes", "plan"},
    {"routes", "plugins"},
    {"routes", "strip-prefix"},
    {"routes", "retry"},
    {"routes", "health"},
    {"upstreams", "weight"},
    {"upstreams", "health-check"},
    {"", "plans"},
    {"", "cors"},
    {"", "plugins"},
};

}  // namespace

auto is_known_elsewhere(std::string_view parent, std::string_view key) -> bool {
  return std::ranges::find(known_elsewhere, std::pair(parent, key)) != std::end(known_elsewhere);
}

auto option::key() const -> std::string_view {
  return path.substr(path.rfind('.') + 1);
}

auto options() -> std::span<option const> {
  return table;
}

auto option_at(std::string_view path) -> option const& {
  auto const* const found = std::find_if(std::begin(table), std::end(table),
                                         [&](option const& row) { return row.path == path; });
  assert(found != std::end(table));
  return *found;
}

auto options_under(std::string_view path) -> std::vector<option const*> {
  std::vector<option const*> found;
  for (auto const& row : table) {
    auto const dot = row.path.rfind('.');
    auto const parent =
        dot == std::string_view::npos ? std::string_view() : row.path.substr(0, dot);
    if (parent == path) {
      found.push_back(&row);
    }
  }
  return found;
}

auto split_words(std::string_view words) -> std::vector<std::string_view> {
  std::vector<std::string_view> found;
  while (!words.empty()) {
    auto const end = std::min(words.find('|'), words.size());
    found.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return found;
}

auto beginning_of(std::string_view form) -> std::string_view {
  auto const end =
      std::find_if(form.begin(), form.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  return {form.begin(), end};
}

auto allowed_values(option const& option) -> std::string {
  std::vector<std::string> values;
  for (auto const words : {option.words, option.forms}) {
    for (auto const word : split_words(words)) {
      values.emplace_back(word);
    }
  }
  if (auto other = allowed_besides_words(option); !other.empty()) {
    values.push_back(std::move(other));
  }
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += i == 0 ? "" : i + 1 == values.size() ? " or " : ", ";
    text += values[i];
  }
  return text;
}

}  // namespace tidegate::gateway
