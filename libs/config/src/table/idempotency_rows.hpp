// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "table/rows.hpp"

#include <array>

namespace tidegate::gateway {

namespace tables {

using namespace kinds;

/// The options under `routes.idempotency`.
inline constexpr auto idempotency_rows = std::to_array<option>({
    row("routes.idempotency", mapping().left_out("off"),
        "Make requests with an Idempotency-Key header safe to retry: they run once, and retries "
        "get the first response. Not for `service: echo`."),
    row("routes.idempotency.mode", choice("off", "required|optional|off"),
        "`required`: a request without a key gets 400. `optional`: it is forwarded without "
        "protection. `off`: keys are ignored."),
    field<&idempotency_config::methods>("routes.idempotency.methods",
                                        method().one_or_list().left_out("POST and PATCH"),
                                        "The methods that keys apply to. GET, HEAD, OPTIONS and "
                                        "TRACE are not allowed: they need no key."),
    row("routes.idempotency.scope",
        source("header:authorization")
            .one_or_list()
            .left_out("`header:authorization`; `principal` on a route with `auth`"),
        "Whose key it is: the same key with another value of these sources, or for another host, "
        "is another key. Use `principal`, or a header that names the client. A credential that "
        "is "
        "renewed makes a retry run again, and several clients may share an address: `check` "
        "warns "
        "of both. `method`, `host`, `path` and `route` are allowed only beside another source. A "
        "header, query parameter or cookie that occurs twice gets 400."),
    field<&idempotency_config::anonymous>(
        "routes.idempotency.anonymous", choice("refuse", "allow|refuse").reversed(),
        "For requests that have none of the sources in `scope`. `refuse`: 400. `allow`: they all "
        "share their keys, so one client may get the response of another. Allow it only for APIs "
        "without users."),
    field<&idempotency_config::key, &idempotency::key_options::accept_unquoted>(
        "routes.idempotency.accept-unquoted", boolean("false"),
        "Also accept keys without quotes, as clients written for Stripe send them. `\"abc\"` and "
        "`abc` are then the same key."),
    field<&idempotency_config::key, &idempotency::key_options::format>(
        "routes.idempotency.key-format", choice("any", "any|uuid|uuidv7"),
        "What keys must look like: `any` text, a `uuid`, or a UUID of version 7 (`uuidv7`). "
        "Other "
        "keys get 400."),
    field<&idempotency_config::key, &idempotency::key_options::length_max>(
        "routes.idempotency.key-length-max", integer("255", 1, 4096),
        "The maximum length of a key, in characters. A longer one gets 400."),
    field<&idempotency_config::key, &idempotency::key_options::age_max>(
        "routes.idempotency.key-age-max", duration("", 1, 3660 * day).left_out("no maximum"),
        "With `key-format: uuidv7`: the maximum age of a key, by the time in the UUID. An older "
        "one gets 400."),
    row("routes.idempotency.fingerprint", choice("body", "body|json|none"),
        "How a retry is told from another request with the same key, which gets 422. Method, "
        "path "
        "and query are always compared. `body`: and the exact bytes of the body. `json`: and the "
        "JSON, whatever its spaces and order. `none`: nothing else. A mapping compares only some "
        "values."),
    row("routes.idempotency.fingerprint.json", pointer().list().required(),
        "JSON pointers to the values of the body to compare, such as `/order/id`."),
    field<&idempotency_config::policy, &idempotency::policy::ttl>(
        "routes.idempotency.ttl", duration("24h", second, 3660 * day),
        "How long the response is kept and replayed to retries, in whole seconds. Make it longer "
        "than clients retry."),
    field<&idempotency_config::policy, &idempotency::policy::tombstone>(
        "routes.idempotency.tombstone", duration("7d", 0, 3660 * day),
        "How long the key is remembered after `ttl`, in whole seconds. A retry in that time gets "
        "409 and does not run. Make it as long as a request may wait in a client's queue."),
    field<&idempotency_config::policy, &idempotency::policy::wait_in_flight>(
        "routes.idempotency.in-flight", choice("conflict", "conflict|wait"),
        "What a retry gets while the first request still runs. `conflict`: 409. `wait`: it waits "
        "for the response."),
    field<&idempotency_config::policy, &idempotency::policy::waiters_max>(
        "routes.idempotency.waiters-max", integer("64", 0, 10'000),
        "How many requests may wait for one key. Others get 409."),
    field<&idempotency_config::policy, &idempotency::policy::keys_max>(
        "routes.idempotency.keys-max", integer("500000", 1, 1'000'000'000),
        "How many keys one scope may have at a time. Beyond it, new keys get 429. It stops one "
        "client from filling the store."),
    field<&idempotency_config::max_body>(
        "routes.idempotency.max-body", size("1MiB", 0, 1024 * mib),
        "The maximum body of a request with a key, in bytes. It is read completely before it is "
        "forwarded; a larger one gets 413."),
    field<&idempotency_config::max_response>(
        "routes.idempotency.max-response", size("1MiB", 0, 1024 * mib),
        "The maximum body of a response that is stored, in bytes. A larger response is forwarded "
        "and not stored: a retry gets 409, and nothing runs twice."),
    field<&idempotency_config::max_execution>(
        "routes.idempotency.max-execution", duration("10m", second, day),
        "How long the gateway waits for a late response after the client got 504 or left. The "
        "response is stored for retries."),
    field<&idempotency_config::policy, &idempotency::policy::lease>(
        "routes.idempotency.lease", duration("30s", second, hour),
        "With several gateways on one store: how long a gateway may be silent until it counts as "
        "dead. The outcome of its requests in flight is unknown then."),
    field<&idempotency_config::policy, &idempotency::policy::store_5xx>(
        "routes.idempotency.store-5xx", boolean("false"),
        "Treat 502, 503 and 504 of the upstream as final responses and replay them. By default "
        "their outcome is unknown."),
    field<&idempotency_config::policy, &idempotency::policy::upstream_deduplicates>(
        "routes.idempotency.upstream-deduplicates", boolean("false"),
        "Tells the gateway that the upstream itself runs nothing twice for the same key."),
    field<&idempotency_config::policy, &idempotency::policy::retry_unknown>(
        "routes.idempotency.on-unknown-outcome", choice("conflict", "conflict|retry"),
        "What a retry gets when it is not known whether the first request ran. `conflict`: 409, "
        "until an operator resolves it. `retry`: it is sent again; only with "
        "`upstream-deduplicates: true`."),
    field<&idempotency_config::pass_on_store_failure>(
        "routes.idempotency.on-store-failure", choice("refuse", "refuse|pass"),
        "What happens while the store does not work. `refuse`: requests with a key get 503. "
        "`pass`: they are forwarded without protection, and the response has "
        "`Idempotency-Status: "
        "bypassed`."),
    field<&idempotency_config::replay_cost>("routes.idempotency.replay-cost",
                                            integer("0", 0, fifteen_digits),
                                            "How many units a replayed response uses of policies "
                                            "that count requests. At 0 a replay is "
                                            "sent even if the quota is used up."),
    field<&idempotency_config::seal>("routes.idempotency.seal", boolean("true"),
                                     "Encrypt stored responses with the secret of the gateway."),
    field<&idempotency_config::documentation>("routes.idempotency.documentation",
                                              reference("/.well-known/tidegate"),
                                              "The page that explains the errors to people. It is "
                                              "in the `type` of problems and in the Link header."),
});

}  // namespace tables

}  // namespace tidegate::gateway
