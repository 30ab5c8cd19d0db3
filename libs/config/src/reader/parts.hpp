// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>
#include "reader/option_reader.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// How the parts of the file are read that depend on others, behind what `option_reader::fill`
/// reads by the table.
namespace tidegate::gateway {

/// Names that routes refer to, with their positions; without one where what has the name has
/// faults.
using name_table = std::map<std::string, std::optional<std::size_t>, std::less<>>;

struct known_names {
  name_table upstreams;
  name_table policies;
};

/// `listen`
void read_listeners(option_reader& in, section const& top, config& made);

/// `admin` and `console`; after the listeners, whose addresses are others.
void read_admin(option_reader& in, section const& top, config& made);

/// What the process has: files, stores, the access log.
void read_process(option_reader& in, section const& top, config& made);

/// `consumers`; before the routes, which let them in.
void read_consumers(option_reader& in, section const& top, config& made);

[[nodiscard]] auto read_upstreams(option_reader& in, section const& top, config& made)
    -> name_table;
[[nodiscard]] auto read_policies(option_reader& in, section const& top, config& made) -> name_table;
void read_routes(option_reader& in, section const& top, known_names const& known, config& made);

// ---- parts of policies ----

/// `quota: {by: …}`
struct chosen_quota {
  quota_choice choice{};
  std::int64_t otherwise = 0;
};
/// Nothing for a plain quota, and after a fault.
[[nodiscard]] auto read_quota_choice(option_reader& in, section const& from,
                                     ratelimit::quota_unit unit) -> std::optional<chosen_quota>;

// ---- parts of routes ----

/// `auth`; `from` is that mapping, and `route` has its service.
[[nodiscard]] auto read_auth(option_reader& in, section const& from, config const& made,
                             route_config const& route) -> auth_config;

/// Why no option but `request` and `response` may have a header sent; empty if it may.
[[nodiscard]] auto reason_against_header(std::string_view name) -> std::string;

/// The options of `service: scim`, which no other route may have but for those of pages with a
/// bridge.
void read_scim(option_reader& in, section const& from, config const& made, route_config& route);

/// What `fill` leaves of `match`; `from` is that mapping.
void read_match(option_reader& in, section const& from, request_match& match);

/// What a route does at the border, behind all that says who answers.
void read_edge(option_reader& in, section const& from, route_config& route);

/// `request` and `response`; behind `cors`.
void read_field_rules(option_reader& in, section const& from, route_config& route);

void read_idempotency(option_reader& in, section const& from, route_config& route);

// ---- what several parts have ----

/// The tokens at `key`. `when_empty` is what is wrong with none.
[[nodiscard]] auto read_tokens(option_reader& in, section const& from, std::string const& key,
                               std::string_view when_empty) -> std::vector<bearer_token>;

/// Where requests get their partition, or their keys an owner.
[[nodiscard]] auto read_sources(option_reader& in, section const& from, std::string const& key)
    -> std::vector<ratelimit::partition_source>;

/// `principal`, `plan` and attributes say something only where credentials do.
void check_principal(option_reader& in, yaml_place place, std::string_view key,
                     std::span<ratelimit::partition_source const> sources,
                     route_config const& route);

}  // namespace tidegate::gateway
