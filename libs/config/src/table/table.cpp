// SPDX-License-Identifier: Apache-2.0
//
// The table of options: what is written where, in the order of the reference.
#include "table/auth_rows.hpp"
#include "table/edge_rows.hpp"
#include "table/idempotency_rows.hpp"
#include "table/rows.hpp"
#include "table/scim_rows.hpp"
#include "table/upstream_rows.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace tidegate::gateway {

namespace {

using namespace kinds;

constexpr auto rows_until_upstreams = std::to_array<option>({
    row("listen", address("127.0.0.1:8080").one_or_list().at_start(),
        "The addresses that clients connect to: one, or a list. An entry is an address, or a "
        "mapping if it needs TLS or other settings. `:8080` listens on all interfaces; the default "
        "is reachable from this machine only."),
    field<&listener_config::address>("listen.address", address().required().at_start(),
                                     "The address to listen on."),
    field<&listener_config::tls>(
        "listen.tls", mapping().left_out("plain HTTP"),
        "Serve HTTPS on this address. Without it, the address speaks plain HTTP."),
    field<&tls_files::certificate>(
        "listen.tls.certificate", file().required(),
        "A PEM file with the certificate, followed by its chain. A reload reads it again, so "
        "renewed certificates need no restart."),
    field<&tls_files::key>("listen.tls.key", file().required(),
                           "A PEM file with the private key of the certificate."),
    later("listen.tls.certificates",
          "Several certificates, chosen by the name that the client asks for."),
    later("listen.tls.min-version", "The lowest version of TLS."),
    later("listen.tls.client-ca", "Who signs certificates of clients."),
    later("listen.tls.client-auth", "Whether clients need a certificate."),
    later("listen.tls.acme", "Certificates by ACME."),
    field<&listener_config::redirect_to_https>(
        "listen.redirect-to-https", boolean("false"),
        "Answer every request with a redirect (308) to the same URL with `https`. The port is that "
        "of the first entry with `tls`, or 443 if there is none. Not together with `tls`."),
    field<&listener_config::http2>(
        "listen.http2", boolean("true"),
        "Offer HTTP/2. With TLS, clients choose it by ALPN; without TLS, by prior knowledge. Turn "
        "it off for clients that have problems with it."),
    field<&listener_config::proxy_protocol>(
        "listen.proxy-protocol", boolean("false"),
        "Every connection begins with a PROXY protocol header (version 1 or 2), which names the "
        "client. Use it behind a load balancer that forwards TCP. Only `trusted-proxies` may then "
        "connect."),

    row("admin", address().or_word("off").at_start().left_out("off"),
        "The address of the console, `/metrics`, `/healthz`, `/readyz` and the admin API. An "
        "address that other machines can reach must have `tokens`."),
    row("admin.address", address().required().at_start(),
        "The address to listen on, such as `127.0.0.1:9901`. Never the same as one in `listen`."),
    row("admin.tokens", mapping().list().left_out("no token is needed"),
        "Bearer tokens that may use the admin address. `/healthz` and `/readyz` need none. "
        "Required unless the address is a loopback address or a Unix socket."),
    field<&bearer_token::name>(
        "admin.tokens.name", name().required(),
        "A name for the token. The log shows it for every change that is made with the token."),
    row("admin.tokens.sha256", digest().required(),
        "The SHA-256 digest of the token, which `printf %s TOKEN | sha256sum` prints. The token "
        "itself is never in the file."),
    field<&bearer_token::read_only>(
        "admin.tokens.read-only", boolean("false"),
        "The token may see everything and change nothing: a change gets 403. Use it for Prometheus "
        "and for people who only look."),
    row("console", mapping(), "What the console may do."),
    row("console.directory", choice("read", "read|write|off"),
        "Access to the users and groups of `service: scim`, of all tenants. `read`: look at them. "
        "`write`: also deactivate and delete. `off`: not shown."),
    field<&config::workers>("workers", integer("auto", 1, 1024).or_word("auto").at_start(),
                            "The number of worker threads. `auto` is one per CPU core. Lower it to "
                            "leave cores to other programs on the machine."),
    field<&config::data>("data", file("data").at_start(),
                         "The folder for files that the gateway writes: keys, directory, secret. "
                         "It is created with mode 0700 if it is missing."),
    field<&config::secrets>("secrets", file().at_start().left_out("`secrets.key` in `data`"),
                            "The file with the secret that protects stored keys, responses and "
                            "cursors. It is created with mode 0600 if it is missing. Gateways that "
                            "share a store need the same file; back it up with the store."),

    field<&config::stores>(
        "stores", mapping(),
        "Where quotas, idempotency keys and the SCIM directory are kept. The defaults are right "
        "for one gateway; several gateways need Redis or PostgreSQL."),
    field<&stores_config::quota>(
        "stores.quota",
        store("memory",
              "redis://HOST:PORT|rediss://HOST:PORT|redis+cluster://HOST:PORT,...|rediss+cluster://"
              "HOST:PORT,...|redis+sentinel://HOST:PORT,.../NAME|rediss+sentinel://HOST:PORT,.../"
              "NAME")
            .or_word("memory")
            .at_start(),
        "Where used quota is counted. `memory` is this process only: it is lost on restart. In "
        "Redis, several gateways share one quota."),
    field<&stores_config::quota_partitions>(
        "stores.quota-partitions", integer("1000000", 1000, 1'000'000'000).at_start(),
        "How many clients (partitions) are counted in memory at the same time, for all policies "
        "together. Each takes about 92 bytes. When all are in use, new clients share one quota. "
        "Raise it if `tidegate_decisions_shared_total` grows."),
    field<&stores_config::idempotency>(
        "stores.idempotency",
        store("",
              "sqlite:FILE|redis://HOST:PORT|rediss://HOST:PORT|redis+cluster://"
              "HOST:PORT,...|rediss+cluster://HOST:PORT,...|redis+sentinel://HOST:PORT,.../"
              "NAME|rediss+sentinel://HOST:PORT,.../NAME|postgres://HOST:PORT/DATABASE")
            .or_word("memory")
            .at_start()
            .left_out("`idempotency.db` in `data`"),
        "Where idempotency keys and stored responses are kept. `memory` loses them when the "
        "process ends. For payments on several gateways use PostgreSQL."),
    field<&stores_config::idempotency_size>(
        "stores.idempotency-size", size("1GiB", 1024 * 1024, std::int64_t{1} << 46).at_start(),
        "The total size of idempotency keys and stored responses, in memory or in SQLite. When it "
        "is reached, new keys get 503. Redis and PostgreSQL have their own limits (`maxmemory`, "
        "the disk)."),
    field<&stores_config::idempotency_replicas>(
        "stores.idempotency-replicas", integer("0", 0, 16).at_start(),
        "With idempotency keys in Redis: the number of replicas that must confirm a change. 0 does "
        "not wait. A higher number makes losses on failover less likely, and each request slower."),
    field<&stores_config::directory>("stores.directory",
                                     store("", "sqlite:FILE|postgres://HOST:PORT/DATABASE")
                                         .at_start()
                                         .left_out("`directory.db` in `data`"),
                                     "Where users and groups of `service: scim` are kept."),
});

constexpr auto rows_until_choice = std::to_array<option>({
    row("policies", mapping().named(),
        "Quotas, by name. Routes refer to these names in `limits`. Clients see the name in the "
        "RateLimit headers; it is printable ASCII."),
    row("policies.quota",
        quota("", 1, fifteen_digits).with(&option::form, option_form::one_or_choice).required(),
        "How many units a client may use in one `window`; with `unit: concurrent-requests`, how "
        "many requests at the same time. For `unit: content-bytes` a size such as `10MiB` is "
        "allowed. A mapping gives each plan a quota of its own: `{by: plan, free: 100, pro: 5000, "
        "default: 100}`. A quota of 0 refuses."),
});

constexpr auto rows_until_routes = std::to_array<option>({
    row("policies.window", duration("", second, 366 * day).left_out("required"),
        "The time after which the quota is available again, in whole seconds. Required, except for "
        "`unit: concurrent-requests`, which has no window. With `algorithm: fixed` also a mapping: "
        "windows by the calendar, which begin for all clients at once."),
    row("policies.window.calendar", choice("", "hour|day|week|month").required(),
        "The quota is available again with every full hour, at midnight, on Monday or on the first "
        "of the month. Where clocks are changed, windows are shorter or longer; `w` of the "
        "RateLimit-Policy header is the length of the current one."),
    row("policies.window.time-zone", time_zone("UTC"),
        "Whose calendar: a name of the time zone database of the system."),
    row("policies.unit", choice("requests", "requests|content-bytes|concurrent-requests"),
        "What is counted. `requests`: requests, each with its `cost`. `content-bytes`: the bodies "
        "of requests and responses, in bytes. `concurrent-requests`: requests in flight."),
    row("policies.algorithm", choice("sliding", "fixed|sliding|gcra|log"),
        "How quota comes back. `sliding`: gradually, as the window before fades out. `fixed`: all "
        "at once, at the end of a window that begins with the first request. `gcra`: at an even "
        "pace, with bursts up to `burst`. `log`: each unit a window after it was used, so that no "
        "window of any start has more than the quota, which is at most 10000. Not for `unit: "
        "concurrent-requests`."),
    row("policies.burst", quota("", 1, fifteen_digits).left_out("the quota"),
        "With `algorithm: gcra`: how many units may be used at once. Lower it to protect a server "
        "from bursts."),
    row("policies.partition", source("client-ip").one_or_list(),
        "Who shares a quota: requests with the same values of these sources. With several sources, "
        "each combination has its own quota. A request without the source counts as one with an "
        "empty value. A header, query parameter or cookie that occurs twice gets 400."),
    row("policies.partition-key", choice("none", "none|hashed|plain"),
        "What clients see of their own key in the parameter `pk` of the RateLimit headers. `none`: "
        "nothing. `hashed`: a digest. `plain`: the values themselves, which is refused for "
        "credentials such as cookies, `authorization` or `x-api-key`."),
    field<&policy_config::shadow>(
        "policies.enforce", choice("true", "true|shadow"),
        "`true`: refuse requests above the quota. `shadow`: count them as refused in the metrics, "
        "but let them pass and tell clients nothing. Use `shadow` to try a new limit."),
    field<&policy_config::count>(
        "policies.count", choice("all", "all|successful"),
        "`all`: every request counts. `successful`: a request that ends with status 400 or above "
        "is refunded. Do not use `successful` for logins."),
    field<&policy_config::advertisement, &ratelimit::advertisement::jitter>(
        "policies.jitter", duration("0s", 0, day),
        "Adds a random time, up to this much, to the reset time (`t`) and to Retry-After. Set it "
        "if many clients come back in the same second."),
    field<&policy_config::advertisement, &ratelimit::advertisement::max_rate>(
        "policies.max-advertised-rate", rate().or_word("none").left_out("no limit"),
        "Limits the remaining quota (`r`) that clients are told, so that it never allows more than "
        "this rate until the reset. The quota itself does not change. Set it if clients use up a "
        "large quota at once."),
    field<&policy_config::abuse>("policies.abuse", mapping().or_word("off").left_out("off"),
                                 "Block clients that continue to send requests after they were "
                                 "refused. While a client is blocked, all its requests get 429."),
    field<&ratelimit::abuse_settings::refusals>(
        "policies.abuse.refusals", integer("50", 1, 1'000'000'000),
        "The number of refusals within `within` after which a client is blocked."),
    field<&ratelimit::abuse_settings::within>("policies.abuse.within", duration("1m", 1, 366 * day),
                                              "The time in which refusals are counted."),
    field<&ratelimit::abuse_settings::block>("policies.abuse.block", duration("10m", 1, 366 * day),
                                             "How long a client stays blocked."),
    field<&policy_config::counting>(
        "policies.counting", choice("exact", "exact|lease"),
        "With quotas in Redis. `exact`: ask Redis for every request. `lease`: take a share of the "
        "quota ahead and decide locally, which is faster. Neither admits more than the quota. "
        "`gcra` and `log` need `exact`."),
    field<&policy_config::on_store_failure>(
        "policies.on-store-failure", choice("local", "local|allow|deny"),
        "What happens while Redis does not answer. `local`: count in this process. `allow`: admit "
        "every request. `deny`: answer 503. Use `deny` where a limit protects money."),

    later("policies.unit-name", "What a unit is called."),
    later("policies.max-wait", "Hold a request for a while that would be refused."),

    row("routes", mapping().list().required(),
        "The rules that decide what happens to a request. The first route that matches is used, so "
        "put narrow routes before wide ones. A request that no route matches gets 404."),
    field<&route_config::name>("routes.name", name().left_out("the `match`, as written"),
                               "The name of the route in logs, metrics and the console."),
    field<&route_config::match>("routes.match", mapping().required(),
                                "Which requests the route is for. All conditions must hold."),
    field<&request_match::path>(
        "routes.match.path", path("/**"),
        "The path of the request. `*` stands for one segment, and `**` at the end for any number: "
        "`/v1/**` matches `/v1` and everything below."),
    field<&request_match::methods>(
        "routes.match.methods", method().one_or_list().left_out("any method"),
        "The method is one of these. GET does not include HEAD. TRACE always gets 405."),
    field<&request_match::host>(
        "routes.match.host", match_host().left_out("any host"),
        "The host of the request, without its port. Case does not matter. `*.example.com` is every "
        "name that ends with `.example.com`, but not `example.com` itself."),
});

constexpr auto rows_until_idempotency = std::to_array<option>({
    row("routes.upstream", upstream_name().or_shares(),
        "The upstream that requests are forwarded to, or several with their shares, such as "
        "`{stable: 95, canary: 5}`. A route has exactly one of `upstream`, `service`, `redirect` "
        "and `respond`."),
    row("routes.service", choice("", "echo|scim"),
        "A built-in service that answers the requests. `echo`: returns the request, for tests. "
        "`scim`: a directory of users and groups (SCIM 2.0); its path must end with `/**`."),
    row("routes.limits", policy_name().one_or_list().left_out("no limits"),
        "The policies that apply. A request passes if all of them admit it; if one refuses, none "
        "is charged. Clients see them in this order."),
    row("routes.cost", integer("1", 0, fifteen_digits).patterns(),
        "How many units a request uses of policies that count requests. A number, or a mapping "
        "from patterns such as `POST /v1/search`, and `default`, to numbers; the first pattern "
        "that matches counts."),
});

constexpr auto rows_until_scim = std::to_array<option>({
    row("routes.upgrade", choice("", "websocket").one_or_list().left_out("none"),
        "For a route with `upstream`. `websocket`: a client may open a WebSocket, by `Upgrade` "
        "over HTTP/1.1 and by extended CONNECT over HTTP/2 (RFC 8441), and bytes pass in both "
        "directions. If left out, `Upgrade` is not forwarded, and the request is a plain one; an "
        "extended CONNECT is 501."),
    field<&route_config::tunnel_idle_timeout>(
        "routes.tunnel-idle-timeout", duration("10m", 1, 366 * day),
        "With `upgrade`: how long nothing may pass in either direction of an upgraded connection. "
        "Then it is closed."),
    row("routes.bridge", choice("", "scim-cursor").left_out("off"),
        "For a route with `upstream`. `scim-cursor`: give clients pages by cursor (RFC 9865) "
        "although the SCIM server behind only has pages by index. The options of `scim` about "
        "pages apply."),
});

constexpr auto rows_to_the_end = std::to_array<option>({
    later("routes.auth.jwt", "JSON Web Tokens."),
    later("routes.auth.forward", "Ask another service who may pass."),
    later("routes.usage", "Count units that responses tell."),

    field<&config::fields>("fields", mapping(), "The headers about quotas in responses."),
    field<&fields_config::ratelimit>(
        "fields.ratelimit", choice("draft-09", "draft-09|draft-07|draft-10|none"),
        "The version of RateLimit and RateLimit-Policy. `draft-09` is the newer form; `draft-10` "
        "is written the same, but `t` is the time until more quota is there, and only Retry-After "
        "says when the request fits. `draft-07` is what older clients know, `none` sends neither. "
        "With `draft-07` the policies of a route need different quotas."),
    row("fields.legacy", choice("false", "false|true|x|triple").one_or_list(),
        "Also send the numbers of the policy that is closest to its limit in other headers. `x` or "
        "`true`: X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset. `triple`: the "
        "same without X-, as in draft-06."),

    field<&config::drain_delay>(
        "drain-delay", duration("0s", 0, hour),
        "How long the gateway still accepts connections after SIGTERM, while `/readyz` says 503. "
        "Set it to the time that your load balancer needs to notice, to stop without errors."),
    field<&config::drain_timeout>(
        "drain-timeout", duration("30s", 0, day),
        "How long a stop waits, after `drain-delay`, for requests and upgraded connections in "
        "flight. What is left then is closed."),

    field<&config::trusted_proxies>(
        "trusted-proxies", network().one_or_list().left_out("no proxy is trusted"),
        "The addresses of your own proxies. Only these may tell the client's address, in "
        "X-Forwarded-For, Forwarded or the PROXY protocol. Set it behind a load balancer; "
        "otherwise all clients have the address of the load balancer."),
    field<&config::client_address>("client-address",
                                   choice("x-forwarded-for", "x-forwarded-for|forwarded"),
                                   "The header in which `trusted-proxies` tell the client's "
                                   "address. The other of the two headers is dropped."),
    field<&config::client_ip>("client-ip", mapping(),
                              "What `client-ip` is in `partition` and `scope`."),
    field<&client_ip_config::ipv6_prefix>(
        "client-ip.ipv6-prefix", integer("64", 1, 128),
        "How many bits of an IPv6 address tell clients apart. Most clients have a whole /64 "
        "network, and can change their address in it with every request. `allow` and `deny` go by "
        "the whole address."),

    field<&config::http>(
        "http", mapping(),
        "Limits for what clients send, and timeouts. They apply to all listeners."),
    field<&http_config::header_timeout>("http.header-timeout", duration("10s", 1, day),
                                        "The maximum time for a client to send the header of a "
                                        "request. After it the client gets 408."),
    field<&http_config::body_timeout>(
        "http.body-timeout", duration("30s", 1, day),
        "The maximum pause while a client sends a body. After it the client gets 408."),
    field<&http_config::idle_timeout>("http.idle-timeout", duration("60s", 1, day),
                                      "How long a connection stays open between two requests."),
    field<&http_config::max_header_size>(
        "http.max-header-size", size("32KiB", kib, mib),
        "The maximum size of all request headers together, in bytes. More gets 431."),
    field<&http_config::max_headers>("http.max-headers", integer("100", 1, 10'000),
                                     "The maximum number of request headers. More get 431."),
    field<&http_config::max_uri>("http.max-uri", size("8KiB", 64, mib),
                                 "The maximum length of the request target (path and query), in "
                                 "bytes. A longer one gets 414."),
    field<&http_config::max_body>(
        "http.max-body", size("none").or_word("none"),
        "The maximum request body, in bytes. A larger one gets 413. Set it on public gateways."),
    field<&http_config::max_connections>(
        "http.max-connections", integer("20000", 1, 10'000'000),
        "The maximum number of client connections, for all workers together. Further connections "
        "are closed at once."),
    field<&http_config::refuses_ambiguous_paths>(
        "http.ambiguous-paths", choice("refuse", "refuse|allow").reversed(),
        "What happens to a path that servers may read differently, and that another route, cost or "
        "quota would then apply to. Examples are `//`, `;`, `%2F`, `%5C` and needless escapes such "
        "as `%3A`. `refuse`: 400. `allow`: it is forwarded."),
    field<&http_config::max_buffered>(
        "http.max-buffered", size("64MiB", mib),
        "How much data may wait in memory for slow clients, in bytes, for all connections "
        "together. Beyond it, the slowest connections are closed."),

    field<&config::log>("log-level", choice("info", "error|warning|info|debug"),
                        "Which lines the log on standard error has: those of this level and more "
                        "important ones. `tidegate serve --log-level` overrides it."),

    row("access-log", file("off").or_word("off|stdout"),
        "Writes one line of JSON per request. `off`, `stdout`, or a file. SIGHUP opens the file "
        "again, for log rotation."),
    row("access-log.file", file().or_word("stdout").required(),
        "The file to write to, or `stdout`."),
    row("access-log.query", boolean("false"),
        "Also log the query of requests. Queries may contain secrets."),
    later("access-log.fields", "Which members a line has."),

});

constexpr auto last_rows = std::to_array<option>({
    later("tracing", "Traces by OpenTelemetry."),
    later("request-id", "A name for each request."),
    row("include", file_pattern().one_or_list().left_out("no other files"),
        "Other files that belong to this configuration, with the same top-level keys: a path, or "
        "one with `*`, `?` and `[...]` for several, in the order of their names. Lists go behind "
        "those of this file and mappings are merged; a name or an option that is there twice is an "
        "error. Paths are relative to the folder of the main file. Included files may include "
        "others, at most 8 deep."),
});

template <std::size_t... Sizes>
constexpr auto joined(std::array<option, Sizes> const&... parts) {
  std::array<option, (Sizes + ...)> rows{};
  auto next = rows.begin();
  ((next = std::copy(parts.begin(), parts.end(), next)), ...);
  return rows;
}

constexpr auto table =
    joined(rows_until_upstreams, tables::upstream_rows, rows_until_choice, tables::choice_rows,
           rows_until_routes, tables::match_rows, rows_until_idempotency, tables::idempotency_rows,
           tables::auth_rows, rows_until_scim, tables::scim_rows, tables::edge_rows,
           rows_to_the_end, tables::consumer_rows, last_rows);

}  // namespace

auto options() -> std::span<option const> {
  return table;
}

}  // namespace tidegate::gateway
