// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reader/edge_scalars.hpp"
#include "table/rows.hpp"

#include <array>

namespace tidegate::gateway {

namespace kinds {

inline constexpr text_kind<option_type::scalar, read_header_value> header_value{
    "the text of a header"};
inline constexpr text_kind<option_type::scalar, read_scalar> any_text{"any text"};
inline constexpr std::string_view token_pattern = "^[!#-'*+.0-9A-Z^_`a-z|~-]+$";
inline constexpr text_kind<text, read_header_name> header_name{
    "the name of a header, e.g. X-Request-Id", token_pattern};
inline constexpr text_kind<text, read_origin> origin{
    "an origin, e.g. https://app.example.com, http://localhost:5173",
    "^([a-z][a-z0-9+.-]*://|null$)"};
inline constexpr text_kind<text, read_match_host> match_host{
    "a host without a port, e.g. api.example.com, \"*.example.com\""};
inline constexpr text_kind<text, read_prefix> prefix{
    "a path without a slash at its end, e.g. /v1, /api/internal", "^/[^?#{}]*[^/?#{}]$"};
inline constexpr text_kind<text, read_scalar> path_template{"a path, e.g. /users/{1}, /files/{**}",
                                                            "^/[^?#]*$"};
inline constexpr text_kind<text, read_scalar> redirect_target{
    "a URL or a path, e.g. https://example.com/{**}, /users/{1}", "^(/|https?://)[^#]*$"};

}  // namespace kinds

namespace tables {

using namespace kinds;

/// What a match asks for besides path, methods and host.
inline constexpr auto match_rows = std::to_array<option>({
    row("routes.match.headers", header_value().named().left_out("any headers"),
        "Headers that the request has, with their values: `{x-version: \"2\"}`. `*` is any value. "
        "Values are compared exactly. If a request has a header in several lines, one of them must "
        "have the value."),
    row("routes.match.query", any_text().named().left_out("any query"),
        "Query parameters that the request has, with their values: `{beta: \"*\"}`. `*` is any "
        "value. Names and values are compared decoded: `%20` and `+` are spaces. If a parameter "
        "is repeated, one of them must have the value."),
});

/// What a route does at the border between clients and upstreams.
inline constexpr auto edge_rows = std::to_array<option>({
    field<&route_config::redirect>(
        "routes.redirect", mapping().left_out("none"),
        "Answer with a redirect, in the place of `upstream` or `service`."),
    row("routes.redirect.to", redirect_target().required(),
        "Where to: a URL with `http://` or `https://`, or a path on the same host. `{1}` is what "
        "the first `*` of the match stands for, and `{**}` what `**` stands for; they are allowed "
        "in the path only. The query of the request is kept."),
    row("routes.redirect.status", choice("308", "301|302|303|307|308"),
        "The status. 301 and 308 are permanent, and browsers remember them. With 307 and 308 "
        "clients repeat the method and the body; with 303 they send GET."),
    field<&route_config::respond>(
        "routes.respond", mapping().left_out("none"),
        "Answer with a fixed response, in the place of `upstream` or `service`. Use it for a "
        "robots.txt, a maintenance page or paths that are closed."),
    row("routes.respond.status", integer("200", 200, 599), "The status."),
    row("routes.respond.content-type",
        header_value().left_out("`text/plain; charset=utf-8` where there is a body"),
        "The Content-Type."),
    row("routes.respond.body", any_text().left_out("no body"),
        "The body, at most 64 KiB. Not for status 204, 205 and 304, which have none."),

    field<&route_config::rewrite>(
        "routes.rewrite", mapping().left_out("the path is not changed"),
        "Change the path for the upstream. The query is kept. Limits, costs and keys go by the "
        "path that the client sent. For a route with `upstream`."),
    row("routes.rewrite.strip-prefix", prefix().left_out("none"),
        "Remove this from the beginning of the path. The `path` of the match must begin with it. "
        "If nothing is left, the path is `/`, or what `add-prefix` says."),
    row("routes.rewrite.add-prefix", prefix().left_out("none"),
        "Put this before the path, after `strip-prefix`."),
    row("routes.rewrite.path", path_template().left_out("none"),
        "The new path. `{1}` is what the first `*` of the match stands for, `{2}` the second, and "
        "`{**}` what `**` stands for. Not beside the two prefixes."),
    field<&route_config::timeout>(
        "routes.timeout", duration("", 1, day).left_out("that of the upstream"),
        "The maximum time from sending a request to the header of its response, in the place of "
        "`timeout` of the upstream. After it the client gets 504."),
    field<&route_config::max_body>(
        "routes.max-body", size("").left_out("`http.max-body`"),
        "The maximum body of a request, in bytes, in the place of `http.max-body`. A larger one "
        "gets 413. With `service: scim` it is the same as `scim.max-body`."),
    field<&route_config::allow>(
        "routes.allow", network().one_or_list().left_out("all addresses"),
        "The addresses of clients that may use the route. Others get 403. Behind a proxy, set "
        "`trusted-proxies`, else all clients have its address."),
    field<&route_config::deny>("routes.deny", network().one_or_list().left_out("none"),
                               "The addresses of clients that get 403, also if `allow` has them."),

    field<&route_config::cors>(
        "routes.cors", mapping().left_out("off"),
        "Let web pages of other origins use the route (CORS). The gateway answers preflight "
        "requests itself, before `auth` and `limits`, and adds the Access-Control headers to every "
        "response, also to refusals. Those of the upstream are replaced."),
    row("routes.cors.origins", origin().or_word("*").one_or_list().required(),
        "The origins of the pages, as browsers send them: scheme and host in lower case, a port "
        "only if it is not the default, no path. `*` alone is every origin, without "
        "`credentials`. `\"null\"`, in quotes, is the origin of local files and sandboxed frames."),
    field<&cors_config::methods>(
        "routes.cors.methods",
        method().one_or_list().left_out(
            "the methods of the match; else GET, HEAD, POST, PUT, PATCH and DELETE"),
        "The methods that pages may use. A preflight for another one gets 403."),
    field<&cors_config::headers>(
        "routes.cors.headers",
        header_name().one_or_list().left_out(
            "Authorization, Content-Type, Idempotency-Key, Prefer, "
            "the API key header of the route and the headers of "
            "its match"),
        "The request headers that pages may set. A preflight for another one gets 403."),
    field<&cors_config::expose>(
        "routes.cors.expose", header_name().one_or_list().left_out("no more"),
        "More response headers that pages may read. Those that the gateway writes, such as "
        "RateLimit and Retry-After, and those of `response` are always readable."),
    field<&cors_config::credentials>(
        "routes.cors.credentials", boolean("false"),
        "Let pages send cookies and other credentials of the browser. Not with `origins: \"*\"`."),
    field<&cors_config::max_age>("routes.cors.max-age", duration("10m", 0, day),
                                 "How long browsers may keep the answer to a preflight, in whole "
                                 "seconds. Some browsers keep it for two hours at most."),

    row("routes.request", mapping().left_out("headers are not changed"),
        "Change the headers of requests before they go to the upstream, after the gateway has "
        "written its own. Headers that HTTP needs, such as Content-Length and Connection, and "
        "those of limits and keys cannot be changed. For a route with `upstream`."),
    row("routes.request.set", header_value().named().left_out("none"),
        "Headers to write, with their values. What the client sent under the name is replaced. "
        "`Host` and `X-Forwarded-*` are allowed."),
    row("routes.request.add", header_value().named().left_out("none"),
        "Headers to add, with their values. What the client sent stays."),
    row("routes.request.remove", header_name().one_or_list().left_out("none"),
        "The names of headers to remove."),
    row("routes.response", mapping().left_out("headers are not changed"),
        "Change the headers of every response: of the upstream, of replays and of the gateway "
        "itself. Headers that HTTP needs and those of limits and keys cannot be changed."),
    row("routes.response.set", header_value().named().left_out("none"),
        "Headers to write, with their values. What the upstream sent under the name is replaced."),
    row("routes.response.add", header_value().named().left_out("none"),
        "Headers to add, with their values. What the upstream sent stays."),
    row("routes.response.remove", header_name().one_or_list().left_out("none"),
        "The names of headers to remove."),
    row("routes.response.preset", choice("", "api").left_out("none"),
        "`api`: set the security headers that OWASP recommends for REST APIs: `Cache-Control: "
        "no-store`, `Content-Security-Policy: default-src 'none'; frame-ancestors 'none'`, "
        "`Referrer-Policy: no-referrer`, `X-Content-Type-Options: nosniff` and `X-Frame-Options: "
        "DENY`. A rule of your own for one of the names takes its place."),
    field<&route_config::hsts>(
        "routes.response.hsts", duration("", 0, 3660 * day).left_out("off"),
        "Tell browsers to use only HTTPS for this host for so long, in whole seconds "
        "(Strict-Transport-Security: max-age). Sent over HTTPS only, in the place of that of the "
        "upstream, which is removed over HTTP. `0s` ends it."),
});

}  // namespace tables

}  // namespace tidegate::gateway
