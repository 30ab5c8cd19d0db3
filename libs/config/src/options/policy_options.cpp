// SPDX-License-Identifier: Apache-2.0
#include "options/tables.hpp"

namespace tidegate::gateway {

namespace {

using enum option_type;
using enum availability;
using form = option_form;

constexpr option table[] = {
    // NOLINT(modernize-avoid-c-arrays): its length is counted by the compiler
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
};

}  // namespace

auto policy_options() -> std::span<option const> {
  return table;
}

}  // namespace tidegate::gateway
