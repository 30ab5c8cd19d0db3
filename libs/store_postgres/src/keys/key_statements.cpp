// SPDX-License-Identifier: Apache-2.0
#include "keys/key_statements.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace tidegate::store_postgres {

using idempotency::lookup_key;
using idempotency::record;
using idempotency::record_state;
using idempotency::wall_time;

namespace {

/// More unknown outcomes than these are not counted: that would keep the server busy every second.
constexpr std::int64_t unknown_counted_max = 100'000;

constexpr std::array<std::pair<char const*, char const*>, 7> statements = {{
    {"find", "SELECT record, response FROM idempotency_record WHERE key = $1::bytea"},
    {"apply",
     "SELECT outcome, found_record, found_response FROM idempotency_apply($1::bytea, $2::bigint,"
     " $3::bigint, $4::bigint, $5::bigint, $6::bigint, $7::bigint, $8::bigint, $9::bytea,"
     " $10::bytea, $11::bigint, $12::boolean)"},
    {"sweep",
     "SELECT key, record FROM idempotency_record WHERE due <= $1::bigint ORDER BY due LIMIT "
     "$2::bigint"},
    {"unknown",
     "SELECT key, record FROM idempotency_record WHERE state = 2 ORDER BY due DESC LIMIT "
     "$1::bigint"},
    {"count_unknown",
     "SELECT count(*) FROM (SELECT FROM idempotency_record WHERE state = 2 LIMIT $1::bigint) AS u"},
    {"count",
     "SELECT coalesce(sum(keys), 0)::bigint,"
     " (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM idempotency_scope"},
    {"secret", "SELECT idempotency_check_secret($1::bytea, $2::boolean)"},
}};

[[nodiscard]] auto milliseconds_of(wall_time time) noexcept -> std::int64_t {
  return time.time_since_epoch().count();
}

[[nodiscard]] auto octets_of(lookup_key const& key) noexcept -> std::string_view {
  return {reinterpret_cast<char const*>(key.octets.data()), key.octets.size()};
}

/// When time makes something of it: `expire` has a change for it then.
[[nodiscard]] auto due(record const& r) noexcept -> wall_time {
  switch (r.state) {
    case record_state::dispatched: return std::min(r.lease_until, forgotten(r));
    case record_state::completed: return std::min(expires(r), forgotten(r));
    default: return forgotten(r);
  }
}

[[nodiscard]] auto bits_of(idempotency::record_states states) noexcept -> std::int64_t {
  std::int64_t bits = 0;
  for (auto const state : {record_state::dispatched, record_state::completed, record_state::unknown,
                           record_state::tombstone}) {
    bits |= states.contains(state) ? std::int64_t{1} << static_cast<int>(state) : 0;
  }
  return bits;
}

/// Whether the counter of a scope is locked for it.
[[nodiscard]] auto locks_scope(idempotency::change const& change) noexcept -> bool {
  return !change.when.token || !change.next;
}

[[nodiscard]] auto send_change(PGconn* to, idempotency::change const& change,
                               std::optional<record> const& next, std::string_view response,
                               std::int64_t due_max, bool is_full) -> bool {
  std::string octets;
  if (next) {
    append_record(octets, *next);
  }
  parameters values(octets_of(change.key), static_cast<std::int64_t>(change.key.scope()));
  values.add(change.when.token ? std::optional(static_cast<std::int64_t>(*change.when.token))
                               : std::nullopt);
  values.add(bits_of(change.when.states));
  values.add(due_max);
  values.add(next ? static_cast<std::int64_t>(next->token) : 0);
  values.add(next ? static_cast<std::int64_t>(next->state) : 0);
  values.add(next ? milliseconds_of(due(*next)) : 0);
  values.add(next ? std::optional<std::string_view>(octets) : std::nullopt);
  values.add(response.empty() ? std::nullopt : std::optional(response));
  values.add(static_cast<std::int64_t>(
      std::min<std::size_t>(change.scope_keys_max, std::numeric_limits<std::int64_t>::max())));
  values.add(change.bounded && is_full);
  return send_prepared(to, "apply", values);
}

}  // namespace

auto setup_command(std::chrono::milliseconds timeout) -> std::string {
  auto setup = "SET statement_timeout TO " + std::to_string(timeout.count());
  for (auto const& [name, text] : statements) {
    setup += std::string("; PREPARE ") + name + " AS " + text;
  }
  return setup;
}

auto send_prepared(PGconn* to, char const* name, parameters const& values) -> bool {
  return PQsendQueryPrepared(to, name, values.size(), values.values().data(), values.lengths(),
                             values.formats(), 1) == 1;
}

auto send_job(PGconn* to, key_job const& job, clock_offset const& clock, bool is_full) -> bool {
  if (std::holds_alternative<find_job>(job.request)) {
    return send_prepared(to, "find", parameters(octets_of(job.key)));
  }
  if (auto const* const asked = std::get_if<change_job>(&job.request)) {
    auto next = asked->change.next;
    if (next) {
      next = clock.to_server(*std::move(next));
    }
    return send_change(to, asked->change, next, asked->response,
                       std::numeric_limits<std::int64_t>::max(), is_full);
  }
  if (auto const* const expiry = std::get_if<expire_job>(&job.request)) {
    return send_change(to, expiry->change, expiry->change.next, {},
                       milliseconds_of(expiry->due_max), is_full);
  }
  if (auto const* const asked = std::get_if<sweep_job>(&job.request)) {
    return send_prepared(to, "sweep",
                         parameters(milliseconds_of(clock.to_server(asked->now)),
                                    static_cast<std::int64_t>(asked->records)));
  }
  if (auto const* const asked = std::get_if<list_job>(&job.request)) {
    return send_prepared(to, "unknown", parameters(static_cast<std::int64_t>(asked->records)));
  }
  if (std::holds_alternative<count_unknown_job>(job.request)) {
    return send_prepared(to, "count_unknown", parameters(unknown_counted_max));
  }
  return send_prepared(to, "count", parameters());
}

auto lock_order_of(key_job const& job) noexcept -> lock_order {
  auto const* const asked = std::get_if<change_job>(&job.request);
  auto const* const expiry = std::get_if<expire_job>(&job.request);
  bool const is_first = (asked != nullptr && locks_scope(asked->change)) ||
                        (expiry != nullptr && !expiry->change.next);
  return {job.key.scope(), !is_first, octets_of(job.key)};
}

auto read_listed(rows const& found) -> std::vector<store::listed_record> {
  std::vector<store::listed_record> all;
  for (int i = 0; i < found.size(); ++i) {
    lookup_key key;
    auto const octets = found.octets(i, 0);
    auto read = idempotency::read_record(found.octets(i, 1));
    if (octets.size() == key.octets.size() && read) {
      std::transform(octets.begin(), octets.end(), key.octets.begin(),
                     [](char c) { return static_cast<std::byte>(c); });
      all.push_back({key, *std::move(read)});
    }
  }
  return all;
}

}  // namespace tidegate::store_postgres
