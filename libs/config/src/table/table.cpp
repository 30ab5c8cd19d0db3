// SPDX-License-Identifier: Apache-2.0
//
// The table of options: what is written where, in the order of the reference.
#include "table/rows.hpp"

namespace tidegate::gateway {

namespace {

using namespace kinds;

constexpr option table[] = {
    // NOLINT(modernize-avoid-c-arrays): its length is counted by the compiler
    row("listen", address("127.0.0.1:8080").one_or_list().at_start(),
        "Where clients connect. Several addresses are a list."),
    field<&listener_config::address>("listen.address", address().required().at_start(),
                                     "The address."),
    field<&listener_config::tls>("listen.tls", mapping(), "Speak TLS."),
    field<&tls_files::certificate>("listen.tls.certificate", file().required(),
                                   "The certificate and its chain, PEM."),
    field<&tls_files::key>("listen.tls.key", file().required(), "The private key, PEM."),
    later("listen.tls.certificates",
          "Several certificates, chosen by the name that the client asks for."),
    later("listen.tls.min-version", "The lowest version of TLS."),
    later("listen.tls.client-ca", "Who signs certificates of clients."),
    later("listen.tls.client-auth", "Whether clients need a certificate."),
    later("listen.tls.acme", "Certificates by ACME."),
    later("listen.redirect-to-https", "Send clients to `https`."),
    field<&listener_config::http2>("listen.http2", boolean("true"),
                                   "Offer HTTP/2: by ALPN with TLS, by prior knowledge without."),
    field<&listener_config::proxy_protocol>("listen.proxy-protocol", boolean("false"),
                                            "Connections begin with the PROXY protocol, version 1 "
                                            "or 2. Only `trusted-proxies` may connect."),

    row("admin", address().or_word("off").at_start(),
        "Console, metrics and health. Left out: off. Without `tokens` only an address of the "
        "loopback interface, or a path."),
    row("admin.address", address().required().at_start(), "The address."),
    row("admin.tokens", mapping().list(),
        "Who may use it, but for `/healthz` and `/readyz`. Left out: all who reach it."),
    field<&bearer_token::name>("admin.tokens.name", name().required(),
                               "For the log of what was changed."),
    row("admin.tokens.sha256", digest().required(),
        "Of the bytes of the token: `printf %s TOKEN | sha256sum`."),
    field<&bearer_token::read_only>("admin.tokens.read-only", boolean("false"),
                                    "Sees everything and changes nothing: what would gets 403."),
    row("console", mapping(), "What the console at the admin address may do."),
    row("console.directory", choice("read", "read|write|off"),
        "The resources of `service: scim`, of every tenant: look at "
        "them, change and delete them too, or not even look."),
    field<&config::workers>("workers", integer("auto", 1, 1024).or_word("auto").at_start(),
                            "Event loops; `auto` is one for each core."),
    field<&config::data>("data", file("data").at_start(),
                         "Folder of what outlives a request; created with mode 0700."),
    field<&config::secrets>("secrets", file().at_start(),
                            "File that keys are derived from; created with mode 0600. Left out: "
                            "`secrets.key` in `data`. Gateways that share a store share it."),

    field<&config::stores>("stores", mapping(), "Where state is kept."),
    field<&stores_config::quota>(
        "stores.quota",
        store("memory",
              "redis://HOST:PORT|rediss://HOST:PORT|redis+cluster://HOST:PORT,...|rediss+cluster://"
              "HOST:PORT,...|redis+sentinel://HOST:PORT,.../NAME|rediss+sentinel://HOST:PORT,.../"
              "NAME")
            .or_word("memory")
            .at_start(),
        "What is left of quotas: in this process, or where several gateways share it."),
    field<&stores_config::quota_partitions>(
        "stores.quota-partitions", integer("1000000", 1000, 1'000'000'000).at_start(),
        "How many partitions are kept in memory at once; beyond, new ones share a quota."),
    field<&stores_config::idempotency>(
        "stores.idempotency",
        store("",
              "sqlite:FILE|redis://HOST:PORT|rediss://HOST:PORT|redis+cluster://"
              "HOST:PORT,...|rediss+cluster://HOST:PORT,...|redis+sentinel://HOST:PORT,.../"
              "NAME|rediss+sentinel://HOST:PORT,.../NAME|postgres://HOST:PORT/DATABASE")
            .or_word("memory")
            .at_start(),
        "Idempotency keys and responses. `memory` forgets them at the end of the process. Left "
        "out: `idempotency.db` in `data`."),
    field<&stores_config::idempotency_size>(
        "stores.idempotency-size", size("1GiB", 1024 * 1024, std::int64_t{1} << 46).at_start(),
        "How much idempotency keys and responses may take together, in memory or in SQLite; "
        "beyond, new keys get 503. Not where they are in Redis (its `maxmemory`) or PostgreSQL."),
    field<&stores_config::idempotency_replicas>("stores.idempotency-replicas",
                                                integer("0", 0, 16).at_start(),
                                                "Where idempotency keys are in Redis: how many "
                                                "replicas have to have a change before it counts."),
    field<&stores_config::directory>(
        "stores.directory", store("", "sqlite:FILE|postgres://HOST:PORT/DATABASE").at_start(),
        "The resources of `service: scim`. Left out: `directory.db` in `data`."),

    row("upstreams", url().named(), "Servers by name: a URL, or more settings."),
    row("upstreams.servers", url().list().required(),
        "The servers; the one with the fewest requests is taken."),
    field<&upstream_config::connect_timeout>("upstreams.connect-timeout", duration("1s", 1, hour),
                                             "How long a connection may take."),
    field<&upstream_config::timeout>("upstreams.timeout", duration("30s", 1, day),
                                     "How long the head of the response may take."),
    field<&upstream_config::idle_timeout>("upstreams.idle-timeout", duration("60s", 1, day),
                                          "How long nothing may come between two bytes."),
    field<&upstream_config::retries>("upstreams.retries", integer("1", 0, 10),
                                     "How often a request that is safe to repeat is sent again."),
    field<&upstream_config::tls>("upstreams.tls", mapping(), "For servers with `https`."),
    field<&upstream_tls::verify>("upstreams.tls.verify", boolean("true"),
                                 "Check the certificate of the server."),
    field<&upstream_tls::ca>("upstreams.tls.ca", file(),
                             "Certificates to trust, PEM. Left out: the system's."),
    field<&upstream_tls::server_name>(
        "upstreams.tls.server-name", host(),
        "Name to ask for and to verify. Left out: the host of the URL."),
    row("upstreams.http2", choice("false", "false").not_yet("true"),
        "Speak HTTP/2 to the servers."),
    later("upstreams.tls.certificate", "A certificate to show to the servers."),
    later("upstreams.tls.key", "Its key."),
    later("upstreams.balance", "How a server is chosen."),
    later("upstreams.health", "Ask servers how they are."),
    later("upstreams.outlier", "Take out servers that answer with errors."),
    later("upstreams.resolve", "How long the addresses of a name are used."),
    later("upstreams.max-connections", "Connections to the servers."),
    later("upstreams.max-wait", "How long a request waits for one."),
    later("upstreams.retry", "What is sent again, and how often."),
    field<&upstream_config::overload>(
        "upstreams.overload", mapping(),
        "Protect the servers: answers 503 and advertises less as their latency and errors grow. At "
        "least one of its two options is needed."),
    field<&overload_config::max_in_flight>("upstreams.overload.max-in-flight",
                                           integer("", 1, 1'000'000),
                                           "Requests at the same time, at most."),
    field<&overload_config::target_latency>("upstreams.overload.target-latency",
                                            duration("", 1, hour), "Latency to stay below."),

    row("policies", mapping().named(), "Quotas by name. Clients see the name: printable ASCII."),
    row("policies.quota", quota("", 1, fifteen_digits).required(),
        "Units in a window, or held at the same time. A size for `content-bytes`."),
    row("policies.window", duration("", second, 366 * day),
        "In whole seconds. Required, but for `concurrent-requests`, which has none."),
    row("policies.unit", choice("requests", "requests|content-bytes|concurrent-requests"),
        "What is counted: requests, bytes of request and response content, or requests at the same "
        "time."),
    row("policies.algorithm", choice("sliding", "fixed|sliding|gcra"),
        "`fixed`: a window begins with the first request. `sliding`: two windows, weighted. "
        "`gcra`: evenly, with bursts. Not for `concurrent-requests`."),
    row("policies.burst", quota("", 1, fifteen_digits),
        "For `gcra`: units at once, at most. Left out: the quota."),
    row("policies.partition", source("client-ip").one_or_list(),
        "Requests with the same values of these share the quota. What a request has not is the "
        "empty value; what it has more than once of a header, query parameter or cookie gets 400."),
    row("policies.partition-key", choice("none", "none|hashed|plain"),
        "What clients are told of their partition in `pk`. `plain` is refused for credentials: "
        "cookies, and fields and parameters with names such as `authorization`, `x-api-key`, "
        "`access_token`."),
    field<&policy_config::shadow>(
        "policies.enforce", choice("true", "true|shadow"),
        "`shadow`: counted and shown to the operator, never refuses and not in the fields."),
    field<&policy_config::count>("policies.count", choice("all", "all|successful"),
                                 "`successful`: responses from 400 on are given back."),
    field<&policy_config::advertisement, &ratelimit::advertisement::jitter>(
        "policies.jitter", duration("0s", 0, day),
        "Up to this much is added to `t` and Retry-After, so that clients do not come back "
        "together."),
    field<&policy_config::advertisement, &ratelimit::advertisement::max_rate>(
        "policies.max-advertised-rate", rate().or_word("none"),
        "`r` never invites to more than this over `t`."),
    field<&policy_config::abuse>(
        "policies.abuse", mapping().or_word("off"),
        "Block a partition that does not stop when it is refused. Left out: off."),
    field<&ratelimit::abuse_settings::refusals>(
        "policies.abuse.refusals", integer("50", 1, 1'000'000'000), "So many refusals..."),
    field<&ratelimit::abuse_settings::within>("policies.abuse.within", duration("1m", 1, 366 * day),
                                              "...within this time..."),
    field<&ratelimit::abuse_settings::block>("policies.abuse.block", duration("10m", 1, 366 * day),
                                             "...block the partition for so long."),
    field<&policy_config::counting>(
        "policies.counting", choice("exact", "exact|lease"),
        "Where gateways share quotas: ask for every request, or take slices of the quota ahead. "
        "Both never admit more than the quota."),
    field<&policy_config::on_store_failure>(
        "policies.on-store-failure", choice("local", "local|allow|deny"),
        "While the store does not answer: count in this process, admit, or refuse."),

    later("policies.unit-name", "What a unit is called."),
    later("policies.max-wait", "Hold a request for a while that would be refused."),

    row("routes", mapping().list().required(), "The first that matches a request takes it."),
    field<&route_config::name>("routes.name", name(),
                               "For logs and metrics. Left out: the match as it is written."),
    field<&route_config::match>("routes.match", mapping().required(), "Which requests."),
    field<&request_match::path>("routes.match.path", path("/**"),
                                "`*` stands for one segment, a last `**` for any number: `/v1/**` "
                                "matches `/v1` and all below."),
    field<&request_match::methods>(
        "routes.match.methods", method().one_or_list(),
        "One of these; GET does not imply HEAD. Left out: any. TRACE always gets 405."),
    field<&request_match::host>(
        "routes.match.host", host(),
        "In any case; the port and a dot at the end are ignored. Left out: any."),
    later("routes.match.headers", "Header fields that a request has."),
    later("routes.match.query", "Query parameters that a request has."),
    row("routes.upstream", upstream_name(), "Where the requests go. This or `service`."),
    row("routes.service", choice("", "echo|scim"),
        "A built-in service. `echo` answers with the request; `scim` is a directory of users and "
        "groups (SCIM 2.0), below a path that ends with `/**`."),
    row("routes.limits", policy_name().one_or_list(),
        "Policies that all must admit a request, in the order of the fields."),
    row("routes.cost", integer("1", 0, fifteen_digits).patterns(),
        "Units that a request spends of policies that count requests: a number, or `default` and "
        "patterns such as `POST /v1/search`, of which the first match wins."),
    row("routes.idempotency", mapping(),
        "Makes requests with an Idempotency-Key safe to send again. Not for `service: echo`."),
    row("routes.idempotency.mode", choice("off", "required|optional|off"),
        "`required`: a request without a key gets 400. `optional`: it passes."),
    field<&idempotency_config::methods>("routes.idempotency.methods", method().one_or_list(),
                                        "Requests with these methods. Left out: POST and PATCH. "
                                        "Never GET, HEAD, OPTIONS or TRACE."),
    row("routes.idempotency.scope", source("header:authorization").one_or_list(),
        "Who owns a key: the same key with other values of these is another key, and so is the "
        "same key for another host. On a route with `auth` the default is `principal`. A "
        "credential that is renewed makes a retry a new request, and an address may be that of "
        "several clients: `check` warns of both. What every request has (`method`, `host`, `path`, "
        "`route`) may only be there besides. A header, query parameter or cookie that comes more "
        "than once gets 400."),
    field<&idempotency_config::anonymous>(
        "routes.idempotency.anonymous", choice("refuse", "allow|refuse").reversed(),
        "Requests that have nothing of `scope` but what every request has: they get 400, or own "
        "their keys together, so that each may be told the answer to another."),
    field<&idempotency_config::key, &idempotency::key_options::accept_unquoted>(
        "routes.idempotency.accept-unquoted", boolean("false"),
        "Also take a key without quotes; `\"abc\"` and `abc` are one key."),
    field<&idempotency_config::key, &idempotency::key_options::format>(
        "routes.idempotency.key-format", choice("any", "any|uuid|uuidv7"), "What a key must be."),
    field<&idempotency_config::key, &idempotency::key_options::length_max>(
        "routes.idempotency.key-length-max", integer("255", 1, 4096), "Characters of a key."),
    field<&idempotency_config::key, &idempotency::key_options::age_max>(
        "routes.idempotency.key-age-max", duration("", 1, 3660 * day),
        "How long ago a key may have been made. For `key-format: uuidv7`."),
    row("routes.idempotency.fingerprint", choice("body", "body|json|none"),
        "What of the content tells a retry from another request: its exact bytes, its canonical "
        "JSON, chosen values, or nothing. Method, path and query always count."),
    row("routes.idempotency.fingerprint.json", pointer().list().required(),
        "Only the values that these name."),
    field<&idempotency_config::policy, &idempotency::policy::ttl>(
        "routes.idempotency.ttl", duration("24h", second, 3660 * day),
        "How long an answer is replayed, in whole seconds."),
    field<&idempotency_config::policy, &idempotency::policy::tombstone>(
        "routes.idempotency.tombstone", duration("7d", 0, 3660 * day),
        "How long the key is remembered after that, in whole seconds."),
    field<&idempotency_config::policy, &idempotency::policy::wait_in_flight>(
        "routes.idempotency.in-flight", choice("conflict", "conflict|wait"),
        "What a retry gets while the first request runs: 409, or its answer when it is there."),
    field<&idempotency_config::policy, &idempotency::policy::waiters_max>(
        "routes.idempotency.waiters-max", integer("64", 0, 10'000),
        "How many may wait for one key; the others get 409."),
    field<&idempotency_config::policy, &idempotency::policy::keys_max>(
        "routes.idempotency.keys-max", integer("500000", 1, 1'000'000'000),
        "How many keys of one scope are remembered at once; more get 429."),
    field<&idempotency_config::max_body>("routes.idempotency.max-body", size("1MiB", 0, 1024 * mib),
                                         "Content of a request with a key; else 413."),
    field<&idempotency_config::max_response>("routes.idempotency.max-response",
                                             size("1MiB", 0, 1024 * mib),
                                             "Content of an answer that can be replayed. A larger "
                                             "one is sent on, and a retry gets 409."),
    field<&idempotency_config::max_execution>(
        "routes.idempotency.max-execution", duration("10m", second, day),
        "How long a late answer is still recorded after the client got 504."),
    field<&idempotency_config::policy, &idempotency::policy::lease>(
        "routes.idempotency.lease", duration("30s", second, hour),
        "Where gateways share the store: how long one that is not heard of counts as alive. Then "
        "the outcome of what it had under way is unknown."),
    field<&idempotency_config::policy, &idempotency::policy::store_5xx>(
        "routes.idempotency.store-5xx", boolean("false"),
        "502, 503 and 504 of the upstream are final answers."),
    field<&idempotency_config::policy, &idempotency::policy::upstream_deduplicates>(
        "routes.idempotency.upstream-deduplicates", boolean("false"),
        "The upstream does nothing twice for one key."),
    field<&idempotency_config::policy, &idempotency::policy::retry_unknown>(
        "routes.idempotency.on-unknown-outcome", choice("conflict", "conflict|retry"),
        "`retry`: send the request again when its outcome is unknown. Only with "
        "`upstream-deduplicates: true`."),
    field<&idempotency_config::pass_on_store_failure>(
        "routes.idempotency.on-store-failure", choice("refuse", "refuse|pass"),
        "`pass`: forward without protection, and say so with `Idempotency-Status: bypassed`."),
    field<&idempotency_config::replay_cost>(
        "routes.idempotency.replay-cost", integer("0", 0, fifteen_digits),
        "Units that a replay spends of policies that count requests. At 0 it is answered even when "
        "the quota is gone."),
    field<&idempotency_config::seal>("routes.idempotency.seal", boolean("true"),
                                     "Encrypt what is stored of answers."),
    field<&idempotency_config::documentation>(
        "routes.idempotency.documentation", reference("/.well-known/tidegate"),
        "Where people read what the errors mean: in `type` and Link."),
    row("routes.auth", mapping(),
        "Who may ask. Anybody else gets 401; whose token it was is the `principal`."),
    row("routes.auth.bearer-tokens", mapping().list().required(), "The tokens, as digests."),
    field<&bearer_token::name>("routes.auth.bearer-tokens.name", name().required(),
                               "The principal: for `partition`, `scope` and logs."),
    row("routes.auth.bearer-tokens.sha256", digest().required(),
        "Of the bytes of the token: `printf %s TOKEN | sha256sum`."),
    field<&bearer_token::tenant>("routes.auth.bearer-tokens.tenant", name("default"),
                                 "Whose data it sees. For `service: scim`."),
    field<&bearer_token::read_only>("routes.auth.bearer-tokens.read-only", boolean("false"),
                                    "Only for reading: other methods get 403."),
    row("routes.bridge", choice("", "scim-cursor"),
        "For a route to an upstream. `scim-cursor`: SCIM by cursor before a server that has pages "
        "by index only; `default-page-size`, `max-page-size`, `pagination`, `default-method`, "
        "`cursor-timeout` and `count-over-max` say how."),
    field<&scim_config::pagination, &scim::pagination_options::default_page_size>(
        "routes.default-page-size", integer("100", 1, 10'000).of_pages(),
        "SCIM: resources on a page when the client does not say; never more than `max-page-size`."),
    field<&scim_config::pagination, &scim::pagination_options::max_page_size>(
        "routes.max-page-size", integer("500", 1, 10'000).of_pages(),
        "SCIM: resources on a page, at most."),
    row("routes.pagination", choice("both", "both|cursor|index").of_pages(),
        "SCIM: how clients may page: by `cursor` (RFC 9865), by `startIndex`, or both."),
    row("routes.default-method", choice("index", "index|cursor").of_pages(),
        "SCIM: for a query with neither `cursor` nor `startIndex`. With `pagination: cursor` it is "
        "`cursor`."),
    field<&scim_config::pagination, &scim::pagination_options::cursor_timeout>(
        "routes.cursor-timeout", duration("10m", second, 366 * day).of_pages(),
        "SCIM: how long a cursor is good, in whole seconds; each page gives new ones."),
    field<&scim_config::pagination, &scim::pagination_options::count_over_max_is_error>(
        "routes.count-over-max", choice("clamp", "clamp|error").of_pages(),
        "SCIM: a `count` above `max-page-size` is lowered, or refused with `invalidCount`."),
    field<&scim_config::schemas>(
        "routes.schemas", file().one_or_list().of_scim(),
        "SCIM: files in JSON, each with a schema, a resource type, or an array of them. One with "
        "the id of a built-in one takes its place."),
    field<&scim_config::indexes>(
        "routes.indexes", name().one_or_list().of_scim(),
        "SCIM: attributes to index besides userName, externalId, displayName, emails and what is "
        "unique: `title`, `User:name.familyName`, "
        "`urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department`."),
    field<&scim_config::scan_budget>("routes.scan-budget",
                                     duration("50ms", 1, 10 * second).of_scim(),
                                     "SCIM: how long a page may take whose filter has no index. "
                                     "Then it is shorter, with a `nextCursor`."),
    field<&scim_config::max_body>("routes.max-body", size("1MiB", kib, 64 * mib).of_scim(),
                                  "SCIM: octets of content; else 413."),
    field<scim_config>("routes.bulk", mapping().of_scim(),
                       "SCIM: what a bulk request may have; else 413."),
    field<&scim_config::bulk_max_operations>("routes.bulk.max-operations",
                                             integer("1000", 1, 100'000), "Operations."),
    field<&scim_config::bulk_max_payload>("routes.bulk.max-payload", size("1MiB", kib, 64 * mib),
                                          "Octets."),
    field<&scim_config::public_url>(
        "routes.public-url", reference().of_scim(),
        "SCIM: what URIs of resources begin with, as clients see it. Without a path, that of the "
        "route follows. Left out: scheme and host of the request."),
    field<&scim_config::unique_group_names>(
        "routes.unique-group-names", boolean("false").of_scim(),
        "SCIM: no two groups of a tenant have the same displayName; else 409."),
    field<&scim_config::unknown>(
        "routes.unknown-attributes", choice("ignore", "ignore|refuse").reversed().of_scim(),
        "SCIM: what becomes of attributes and schema URNs that no schema has, in POST, PUT and "
        "values of PATCH. Paths and filters that name one are refused in any case."),

    later("routes.auth.api-keys", "API keys in header fields or the query."),
    later("routes.auth.jwt", "JSON Web Tokens."),
    later("routes.auth.forward", "Ask another service who may pass."),
    later("routes.auth.optional", "Let requests without credentials pass."),
    later("routes.auth.pass", "Tell the upstream who asks."),
    later("routes.auth.forward-credentials", "Send credentials to the upstream."),
    later("routes.upgrade", "WebSocket and other upgrades."),
    later("routes.tunnel-idle-timeout", "How long a tunnel may be silent."),
    later("routes.cors", "Cross-origin requests of browsers."),
    later("routes.request", "Set, add or remove header fields of requests."),
    later("routes.response", "Set, add or remove header fields of responses."),
    later("routes.rewrite", "Change the path for the upstream."),
    later("routes.redirect", "Answer with a redirect."),
    later("routes.respond", "Answer with a fixed response."),
    later("routes.allow", "Addresses of clients that may ask."),
    later("routes.deny", "Addresses of clients that may not."),
    later("routes.timeout", "The timeout of the upstream, for this route."),
    later("routes.usage", "Count units that responses tell."),

    field<&config::fields>("fields", mapping(), "What responses say of quotas."),
    field<&fields_config::ratelimit>(
        "fields.ratelimit", choice("draft-09", "draft-09|draft-07|none"),
        "The draft that RateLimit and RateLimit-Policy follow. draft-07 tells two policies of one "
        "route apart by their quotas, so these must differ."),
    field<&fields_config::legacy>("fields.legacy", boolean("false"),
                                  "Add X-RateLimit-Limit, -Remaining and -Reset."),

    field<&config::drain_delay>("drain-delay", duration("0s", 0, hour),
                                "After SIGTERM `/readyz` says 503 for so long before listeners "
                                "close, so that load balancers stop sending first."),

    field<&config::trusted_proxies>(
        "trusted-proxies", network().one_or_list(),
        "Only from these is X-Forwarded-For, Forwarded or the PROXY protocol believed."),
    field<&config::client_address>(
        "client-address", choice("x-forwarded-for", "x-forwarded-for|forwarded"),
        "The field in which `trusted-proxies` say who asked them. The other one, which they pass "
        "on as it came, is neither believed nor passed on."),

    field<&config::http>("http", mapping(), "What a client may send, and how long it may take."),
    field<&http_config::header_timeout>("http.header-timeout", duration("10s", 1, day),
                                        "For the head of a request."),
    field<&http_config::body_timeout>("http.body-timeout", duration("30s", 1, day),
                                      "Between two reads of its content."),
    field<&http_config::idle_timeout>("http.idle-timeout", duration("60s", 1, day),
                                      "Between two requests of a connection."),
    field<&http_config::max_header_size>("http.max-header-size", size("32KiB", kib, mib),
                                         "Octets of all fields; else 431."),
    field<&http_config::max_headers>("http.max-headers", integer("100", 1, 10'000),
                                     "Fields; else 431."),
    field<&http_config::max_uri>("http.max-uri", size("8KiB", 64, mib), "Octets; else 414."),
    field<&http_config::max_body>("http.max-body", size("none").or_word("none"),
                                  "Octets of content; else 413."),
    field<&http_config::max_connections>("http.max-connections", integer("20000", 1, 10'000'000),
                                         "Connections of clients at the same time, on all event "
                                         "loops together; one more is closed at once."),
    field<&http_config::refuses_ambiguous_paths>(
        "http.ambiguous-paths", choice("refuse", "refuse|allow").reversed(),
        "A path with `//`, `;`, `%2F`, `%5C`, or an escape without need such as `%3A`, that a "
        "server could read as the path of another route, cost or partition: 400, or pass it on."),
    field<&http_config::max_buffered>(
        "http.max-buffered", size("64MiB", mib),
        "Octets that may wait in memory for slow clients, of all connections together; when it is "
        "more, the connections for which most has waited for longest are closed."),

    field<&config::log>(
        "log-level", choice("info", "error|warning|info|debug"),
        "What the gateway says on standard error: lines of this level, and of those that are more "
        "important. `tidegate serve --log-level` takes its place."),

    row("access-log", file("off").or_word("off|stdout"),
        "A line of JSON for each request; SIGHUP opens the file again."),
    row("access-log.file", file().or_word("stdout").required(), "Where the lines go."),
    row("access-log.query", boolean("false"),
        "Log the query of the request, which may hold secrets."),
    later("access-log.fields", "Which members a line has."),

    later("consumers", "Who may ask, with keys and a plan for each."),
    later("tracing", "Traces by OpenTelemetry."),
    later("request-id", "A name for each request."),
    later("include", "More files."),
    later("client-ip", "How addresses of clients are grouped."),
    later("drain-timeout", "How long a stop waits for what is under way."),
};

}  // namespace

auto options() -> std::span<option const> {
  return table;
}

}  // namespace tidegate::gateway
