// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "table/rows.hpp"

#include <array>

namespace tidegate::gateway {

namespace tables {

using namespace kinds;

/// The options under `routes.scim`.
inline constexpr auto scim_rows = std::to_array<option>({
    row("routes.scim", mapping().of_pages(),
        "Options of the SCIM directory (`service: scim`). Those about pages also apply to `bridge: "
        "scim-cursor`. Earlier versions had them directly in the route; there they still work, "
        "with a warning from `tidegate check`."),
    field<&scim_config::pagination, &scim::pagination_options::default_page_size>(
        "routes.scim.default-page-size", integer("100", 1, 10'000).of_pages().formerly_in("routes"),
        "How many resources a page has if the client does not ask for a number. At most "
        "`max-page-size`. For the directory and the bridge."),
    field<&scim_config::pagination, &scim::pagination_options::max_page_size>(
        "routes.scim.max-page-size", integer("500", 1, 10'000).of_pages().formerly_in("routes"),
        "The maximum number of resources on a page. For the directory and the bridge."),
    row("routes.scim.pagination",
        choice("both", "both|cursor|index").of_pages().formerly_in("routes"),
        "How clients may page: by `cursor` (RFC 9865), by `index` (`startIndex`), or `both`. For "
        "the directory and the bridge."),
    row("routes.scim.default-method",
        choice("index", "index|cursor")
            .of_pages()
            .formerly_in("routes")
            .left_out("`index`; `cursor` with `pagination: cursor`"),
        "How a query is paged that has neither `cursor` nor `startIndex`. For the directory and "
        "the bridge."),
    field<&scim_config::pagination, &scim::pagination_options::cursor_timeout>(
        "routes.scim.cursor-timeout",
        duration("10m", second, 366 * day).of_pages().formerly_in("routes"),
        "How long a cursor is valid, in whole seconds. Each page has new cursors. For the "
        "directory and the bridge."),
    field<&scim_config::pagination, &scim::pagination_options::count_over_max_is_error>(
        "routes.scim.count-over-max",
        choice("clamp", "clamp|error").of_pages().formerly_in("routes"),
        "What happens if a client asks for more than `max-page-size`. `clamp`: it gets "
        "`max-page-size`. `error`: 400 with `invalidCount`. For the directory and the bridge."),
    field<&scim_config::schemas>(
        "routes.scim.schemas",
        file().one_or_list().of_scim().formerly_in("routes").left_out("the built-in schemas"),
        "JSON files with schemas and resource types of your own. One with the id of a built-in "
        "schema replaces it."),
    field<&scim_config::indexes>(
        "routes.scim.indexes",
        name().one_or_list().of_scim().formerly_in("routes").left_out("no more"),
        "More attributes to index, so that filters and sorting by them are fast: `title`, "
        "`User:name.familyName`, "
        "`urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department`. Always indexed "
        "are userName, externalId, displayName, emails and unique attributes."),
    field<&scim_config::scan_budget>(
        "routes.scim.scan-budget", duration("50ms", 1, 10 * second).of_scim().formerly_in("routes"),
        "How long the directory may search for one page if the filter has no index. After that "
        "the "
        "page ends early, with a `nextCursor`."),
    field<&scim_config::max_body>("routes.scim.max-body", size("1MiB", kib, 64 * mib).of_scim(),
                                  "The maximum body of a request, in bytes. A larger one gets 413. "
                                  "Raise it for groups with very many members. `max-body` of the "
                                  "route is the same."),
    field<scim_config>("routes.scim.bulk", mapping().of_scim().formerly_in("routes"),
                       "Limits of a bulk request. A larger one gets 413."),
    field<&scim_config::bulk_max_operations>("routes.scim.bulk.max-operations",
                                             integer("1000", 1, 100'000),
                                             "The maximum number of operations."),
    field<&scim_config::bulk_max_payload>(
        "routes.scim.bulk.max-payload", size("1MiB", kib, 64 * mib), "The maximum body, in bytes."),
    field<&scim_config::public_url>(
        "routes.scim.public-url",
        reference().of_scim().formerly_in("routes").left_out("scheme and host of the request"),
        "The URL of the directory as clients see it, which `meta.location` begins with. Set it "
        "behind a proxy that changes host or path. A URL without a path gets that of the route."),
    field<&scim_config::unique_group_names>(
        "routes.scim.unique-group-names", boolean("false").of_scim().formerly_in("routes"),
        "Refuse a second group with the same displayName in a tenant, with 409."),
    field<&scim_config::unknown>(
        "routes.scim.unknown-attributes",
        choice("ignore", "ignore|refuse").reversed().of_scim().formerly_in("routes"),
        "What happens to attributes and schemas that are not known, in POST, PUT and values of "
        "PATCH. `ignore`: they are dropped and counted. `refuse`: 400. Unknown names in paths "
        "and "
        "filters are always refused."),
});

}  // namespace tables

}  // namespace tidegate::gateway
