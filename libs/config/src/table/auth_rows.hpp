// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reader/auth/auth_scalars.hpp"
#include "table/edge_rows.hpp"

#include <array>

namespace tidegate::gateway {

namespace kinds {

inline constexpr text_kind<text, read_expiry> expiry{
    "a time, e.g. 2027-01-01T00:00:00Z",
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9:.]+([Zz]|[+-][0-9]{2}:[0-9]{2})$"};
inline constexpr text_kind<text, read_key_place> place_of_key{"header:NAME, query:NAME or bearer",
                                                              "^(bearer|(header|query):.+)$"};
inline constexpr text_kind<text, read_quota_source> quota_source{"plan or attribute:NAME",
                                                                 "^(plan|attribute:.+)$"};

}  // namespace kinds

namespace tables {

/// Which quota of a policy a caller has.
inline constexpr auto choice_rows = std::to_array<option>({
    row("policies.quota.by", quota_source().not_yet("claim:").required(),
        "Whose value chooses the quota. `plan`: the plan of the consumer; the other keys are names "
        "of plans with their quotas. `attribute:NAME`: an attribute of the consumer is the quota "
        "itself."),
    row("policies.quota.default", quota("", 0, fifteen_digits).required(),
        "The quota of callers without a plan, with a plan that is not named here, or without a "
        "whole number in the attribute. 0 refuses them."),
    row("policies.quota.max", quota("", 1, fifteen_digits).left_out("required with `attribute`"),
        "The largest quota that an attribute can give. Only with `by: attribute:NAME`."),
});

/// Who may use a route.
inline constexpr auto auth_rows = std::to_array<option>({
    row("routes.auth", mapping().left_out("open to every client"),
        "Who may use the route. A request without a valid credential gets 401. The name of the "
        "token or of the consumer is the `principal`, which limits and keys can use. At least one "
        "of `bearer-tokens` and `api-keys` is required."),
    row("routes.auth.bearer-tokens", mapping().list().left_out("none"),
        "The tokens that may use the route, as digests."),
    field<&bearer_token::name>(
        "routes.auth.bearer-tokens.name", name().required(),
        "The name of the token: the `principal` in `partition`, `scope` and logs."),
    row("routes.auth.bearer-tokens.sha256", digest().required(),
        "The SHA-256 digest of the token, which `printf %s TOKEN | sha256sum` prints. The token "
        "itself is never in the file."),
    field<&bearer_token::tenant>(
        "routes.auth.bearer-tokens.tenant", name("default"),
        "With `service: scim`: the tenant whose users and groups the token sees."),
    field<&bearer_token::read_only>(
        "routes.auth.bearer-tokens.read-only", boolean("false"),
        "The token may only read: methods other than GET, HEAD and OPTIONS get 403."),
    row("routes.auth.api-keys", mapping().left_out("none"),
        "Let in the consumers at the top of the file, by their API keys. Not with `service: "
        "scim`."),
    row("routes.auth.api-keys.in", place_of_key().one_or_list().required(),
        "Where a request has its key: `header:NAME`, `query:NAME`, or `bearer` (`Authorization: "
        "Bearer KEY`). The first of them that the request has counts. One that occurs twice gets "
        "400. The key is removed before the request goes to the upstream."),
    field<&auth_config::optional>(
        "routes.auth.optional", boolean("false"),
        "`true`: a request without credentials passes. Its principal is empty, and its plan is "
        "`anonymous`. A wrong credential still gets 401."),
    row("routes.auth.forward-credentials",
        boolean().left_out("`true` for `bearer-tokens`, `false` for `api-keys`"),
        "Whether the credential goes to the upstream."),
    row("routes.auth.pass", header_name().named().left_out("nothing"),
        "Tell the upstream who asks: `{principal: X-Consumer, plan: X-Plan}`, or `attribute:NAME` "
        "for an attribute. The values are names of headers. What clients send under these names is "
        "dropped. An empty value is not sent. For a route with `upstream`."),
});

/// Who may ask.
inline constexpr auto consumer_rows = std::to_array<option>({
    row("consumers", mapping().with(&option::form, option_form::named_or_file).left_out("none"),
        "Those who use the API, by name, or `{file: FILE}`: a file that has the mapping from names "
        "by itself. The file is read again when it changes. If it is broken then, the last good "
        "version stays in use. Names are printable ASCII."),
    field<&consumer_config::plan>(
        "consumers.plan", name().left_out("none"),
        "What the consumer has ordered, for `plan` in `quota`, `partition` and `pass`."),
    row("consumers.keys", mapping().list().left_out("none"),
        "The API keys of the consumer, as digests. All of them are valid, so that a new one can be "
        "handed out before the old one is removed."),
    field<&consumer_key::name>("consumers.keys.name", name().required(),
                               "The name of the key, to tell it from the others."),
    row("consumers.keys.sha256", digest().required(),
        "The SHA-256 digest of the key, which `printf %s KEY | sha256sum` prints. The key itself "
        "is "
        "never in the file. Use random keys of at least 16 bytes: `openssl rand -hex 32`."),
    row("consumers.keys.expires", expiry().left_out("never"),
        "The time from which the key is a wrong one."),
    row("consumers.attributes", header_value().named().left_out("none"),
        "What else is known of the consumer, for `attribute:NAME` in `quota`, `partition`, `scope` "
        "and `pass`."),
});

}  // namespace tables

}  // namespace tidegate::gateway
