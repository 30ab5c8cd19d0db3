// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/key_scope.hpp>
#include "reader/parts.hpp"

#include <algorithm>
#include <utility>

namespace tidegate::gateway {

namespace {

/// What every request has tells no client from another, but for the address, to some degree.
void check_scope(option_reader& in, section const& from, idempotency_config& made) {
  using ratelimit::partition_source;
  auto const has = [&](auto const& wanted) { return std::ranges::any_of(made.scope, wanted); };
  if (has([](partition_source const& source) { return names_client(source.kind); })) {
    return;
  }
  made.owned_by_address = has([](partition_source const& source) {
    return source.kind == ratelimit::partition_source_kind::client_ip;
  });
  if (!made.owned_by_address) {
    in.fault(from.place_of("scope"),
             "scope: does not name a client (expected at least one of principal, header:NAME, "
             "query:NAME, cookie:NAME, client-ip)");
  }
}

/// Whose keys, and which.
void read_keys(option_reader& in, section const& from, route_config const& route,
               idempotency_config& made) {
  if (!from.has("methods")) {
    made.methods = {"POST", "PATCH"};
  } else if (made.methods.empty()) {
    in.fault(from.place_of("methods"),
             "methods: empty list (expected at least one method, or mode: off)");
  }
  for (auto const* const safe : {"GET", "HEAD", "OPTIONS", "TRACE"}) {
    if (std::ranges::find(made.methods, safe) != made.methods.end()) {
      in.fault(from.place_of("methods"), "methods: " + std::string(safe) +
                                             " is safe and needs no key (expected other methods)");
    }
  }
  auto const faults_before = in.fault_count();
  made.scope = read_sources(in, from, "scope");
  if (route.auth && !from.has("scope")) {
    made.scope = {{ratelimit::partition_source_kind::principal, ""}};
  }
  check_principal(in, from.place_of("scope"), "scope", made.scope, route);
  if (in.fault_count() == faults_before) {
    check_scope(in, from, made);
  }
  if (made.key.age_max && made.key.format != idempotency::key_format::uuidv7) {
    in.fault(from.place_of("key-age-max"), "key-age-max: only with key-format: uuidv7");
  }
}

void read_fingerprint(option_reader& in, section const& from, idempotency_config& made) {
  auto const* const given = from.find("fingerprint");
  if (given != nullptr && given->value->kind == yaml_kind::mapping) {
    auto const chosen = in.open_at(from, "fingerprint");
    auto const faults_before = in.fault_count();
    auto rule = idempotency::fingerprint_rule::json(in.take_list(chosen, "json", read_pointer));
    if (!rule && in.fault_count() == faults_before) {
      in.fault(chosen.place, "fingerprint: too few or too many JSON pointers (expected 1 to " +
                                 std::to_string(idempotency::fingerprint_rule::pointers_max) + ")");
    } else if (rule) {
      made.fingerprint = *std::move(rule);
    }
    return;
  }
  auto const rule = in.take(from, "fingerprint", read_choice);
  made.fingerprint = rule == "json"   ? idempotency::fingerprint_rule::json()
                     : rule == "none" ? idempotency::fingerprint_rule::none()
                                      : idempotency::fingerprint_rule::body();
}

}  // namespace

void read_idempotency(option_reader& in, section const& from, route_config& route) {
  auto const mode = in.take(from, "mode", read_choice);
  auto const faults_before = in.fault_count();
  idempotency_config made;
  made.required = mode == "required";
  in.fill(from, made);
  read_keys(in, from, route, made);
  read_fingerprint(in, from, made);
  if (made.policy.retry_unknown && !made.policy.upstream_deduplicates) {
    in.fault(from.place_of("on-unknown-outcome"),
             "on-unknown-outcome: \"retry\" could run a request twice (expected conflict, or "
             "upstream-deduplicates: true)");
  }
  if (!mode || mode == "off" || in.fault_count() != faults_before) {
    return;
  }
  if (route.service == route_service::echo) {
    in.fault(from.place, "idempotency: not for \"service: echo\"");
  }
  auto const secret = std::ranges::find_if(made.scope, ratelimit::is_credential);
  if (secret != made.scope.end()) {
    in.warn(from.has("scope") ? from.place_of("scope") : from.place,
            "scope: \"" + to_string(*secret) +
                "\" is a credential: after it is renewed, a retry with the same key runs a second "
                "time; better: \"principal\" on a route with \"auth\", or a header that names the "
                "client");
  }
  if (made.owned_by_address) {
    in.warn(
        from.place_of("scope"),
        "scope: \"client-ip\" alone: clients behind one address share their keys, and a client "
        "whose address changes loses them; better: \"principal\" on a route with \"auth\", or a "
        "header that names the client");
  }
  route.idempotency = std::move(made);
}

}  // namespace tidegate::gateway
