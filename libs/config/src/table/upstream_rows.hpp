// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "table/rows.hpp"

#include <array>

namespace tidegate::gateway {

namespace tables {

using namespace kinds;

/// The options under `upstreams`.
inline constexpr auto upstream_rows = std::to_array<option>({
    row("upstreams", url().named(),
        "The servers behind the gateway, by name. Routes refer to these names. An upstream is a "
        "URL, or a mapping with more settings."),
    row("upstreams.servers", url().list().required(),
        "The servers: URLs, or mappings with a weight. Each address of a host name is a server, "
        "and "
        "they share its weight. The path of a URL is put before the path of each request; one that "
        "servers may take for a path above it, such as `/..%2Fadmin`, gets 400."),
    row("upstreams.servers.url", url().required(), "The URL of the server."),
    field<&upstream_server::weight>(
        "upstreams.servers.weight", integer("1", 0, 1000),
        "Its share of the requests, compared with the other servers. With 0 it gets no new "
        "requests."),
    field<&upstream_config::connect_timeout>(
        "upstreams.connect-timeout", duration("1s", 1, hour),
        "The maximum time to open a connection to a server, including the TLS handshake. After it "
        "the client gets 504."),
    field<&upstream_config::timeout>(
        "upstreams.timeout", duration("30s", 1, day),
        "The maximum time from sending a request to the header of its response. After it the "
        "client gets 504. Raise it for slow endpoints, such as reports or language models."),
    field<&upstream_config::idle_timeout>(
        "upstreams.idle-timeout", duration("60s", 1, day),
        "The maximum silence in the middle of a response. After it the response is aborted. Raise "
        "it for streams that are quiet for long, such as server-sent events."),
    row("upstreams.retries", integer("", 0, 10).left_out("as `retry` says"),
        "The short form of `retry: {on: [connect, refused-stream, reset], attempts: N}`. Use one "
        "of "
        "the two."),
    field<&upstream_config::tls>("upstreams.tls", mapping(),
                                 "TLS settings for servers with `https://`."),
    field<&upstream_tls::verify>(
        "upstreams.tls.verify", boolean("true"),
        "Verify the certificate of the server. Turn it off only for tests."),
    field<&upstream_tls::ca>("upstreams.tls.ca", file().left_out("those of the system"),
                             "A PEM file with the certificate authorities to trust. Set it for "
                             "servers with certificates of your own authority."),
    field<&upstream_tls::server_name>("upstreams.tls.server-name",
                                      host().left_out("the host of the URL"),
                                      "The name to send in SNI and to verify in the certificate. "
                                      "Set it if the URL has an IP address."),
    field<&upstream_config::http2>(
        "upstreams.http2", choice("false", "false|true|auto"),
        "Use HTTP/2 to the servers. `true`: with TLS by ALPN, and a server that does not agree is "
        "not used; without TLS by prior knowledge. `auto`: with TLS where the server agrees, else "
        "HTTP/1.1. gRPC needs it."),
    field<&upstream_tls::certificate>(
        "upstreams.tls.certificate", file().left_out("none"),
        "A PEM file with the certificate, and its chain, to show to servers that ask for one."),
    field<&upstream_tls::key>("upstreams.tls.key", file().left_out("none"),
                              "A PEM file with the key of the certificate, without a password."),
    row("upstreams.balance", balance_method("least"),
        "How a server is chosen. `least`: the one with the fewest requests in flight for its "
        "weight. `round-robin`: in turn, by weight. `hash:SOURCE`: always the same server for the "
        "same value of a source of `partition` (consistent hashing)."),
    row("upstreams.health", mapping().left_out("no checks"),
        "Check the servers by requests of the gateway. An unhealthy server gets no requests, "
        "unless "
        "it is the last one. Servers are healthy until checks fail."),
    field<&health_config::path>("upstreams.health.path", request_path().required(),
                                "The path to request with GET."),
    field<&health_config::interval>("upstreams.health.interval", duration("5s", 100, hour),
                                    "The time between two checks of a server."),
    field<&health_config::timeout>("upstreams.health.timeout", duration("1s", 1, hour),
                                   "The maximum time until the response header."),
    field<&health_config::thresholds, &balance::health_thresholds::rise>(
        "upstreams.health.rise", integer("2", 1, 100),
        "How many checks in a row must pass before an unhealthy server is used again."),
    field<&health_config::thresholds, &balance::health_thresholds::fall>(
        "upstreams.health.fall", integer("3", 1, 100),
        "How many checks in a row must fail before a server is unhealthy."),
    row("upstreams.health.expect", statuses("200-299"), "The statuses that pass a check."),
    row("upstreams.outlier", mapping().or_word("off"),
        "Eject servers that fail: that answer 500, 502, 503 or 504, refuse or reset connections, "
        "or "
        "do not answer in time. The last server is never ejected."),
    field<&balance::outlier_settings::failures>(
        "upstreams.outlier.failures", integer("5", 1, 100),
        "How many failures in a row eject a server. Any other response ends the row."),
    field<&balance::outlier_settings::within>(
        "upstreams.outlier.within", duration("10s", 1, day),
        "The maximum time from the first to the last of them."),
    field<&balance::outlier_settings::eject>(
        "upstreams.outlier.eject", duration("10s", 1, day),
        "How long an ejected server gets no requests. The time doubles with each ejection, up to "
        "ten times this value."),
    field<&upstream_config::resolve>("upstreams.resolve", mapping(),
                                     "How host names of servers are looked up."),
    field<&resolve_config::bounds, &balance::resolve_bounds::min>(
        "upstreams.resolve.min", duration("1s", 100, day),
        "The minimum time that addresses are used, if DNS gives them a shorter time to live."),
    field<&resolve_config::bounds, &balance::resolve_bounds::max>(
        "upstreams.resolve.max", duration("60s", 100, day),
        "The maximum time that addresses are used. Names in the hosts file are read again after "
        "this time."),
    field<&resolve_config::server>("upstreams.resolve.server",
                                   dns_server().left_out("those of the system"),
                                   "The DNS server to ask."),
    field<&upstream_config::max_connections>(
        "upstreams.max-connections", integer("", 1, 1'000'000).left_out("no maximum"),
        "The maximum number of connections of this process to all servers of the upstream. Health "
        "checks do not count. Above it, requests get 503."),
    field<&upstream_config::max_wait>(
        "upstreams.max-wait", duration("0s", 0, hour),
        "How long a request waits for a connection when `max-connections` are open."),
    row("upstreams.retry", mapping(),
        "Which failed requests are sent again, to another server where there is one."),
    row("upstreams.retry.on",
        choice("connect, refused-stream", "connect|refused-stream|reset|timeout|502|503|504")
            .one_or_list(),
        "The failures after which a request is sent again. `connect`: no connection. "
        "`refused-stream`: the server did not process the request. `reset`: the connection broke "
        "before the response. `timeout`: no response header in time. A status: the server answered "
        "with it. All but the first two are only for methods that are safe to repeat."),
    field<&balance::retry_settings::attempts>("upstreams.retry.attempts", integer("1", 0, 10),
                                              "How often a request is sent again."),
    field<&balance::retry_settings::backoff>("upstreams.retry.backoff", duration("25ms", 0, minute),
                                             "The pause before the first retry. It doubles with "
                                             "each retry, and up to half of it is left "
                                             "out at random."),
    field<&balance::retry_settings::budget>(
        "upstreams.retry.budget", percent("20%", 0, 100),
        "The maximum share of retries in the requests of the last 10 seconds. Three retries a "
        "second are always allowed."),
    field<&upstream_config::overload>(
        "upstreams.overload", mapping().left_out("off"),
        "Protect the servers from too many requests at once. When latency or errors rise, fewer "
        "requests are let through; the others get 503, and clients are told a smaller remaining "
        "quota. Set at least one of the two options."),
    field<&overload_config::max_in_flight>(
        "upstreams.overload.max-in-flight", integer("", 1, 1'000'000).left_out("no maximum"),
        "The maximum number of requests in flight to this upstream."),
    field<&overload_config::target_latency>(
        "upstreams.overload.target-latency",
        duration("", 1, hour).left_out("latency is not watched"),
        "The latency to stay below. While responses are slower, fewer requests are let through."),
});

}  // namespace tables

}  // namespace tidegate::gateway
