// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/active_config.hpp>

#include <tidegate/config/describe.hpp>
#include <tidegate/proxy/auth_fields.hpp>
#include <tidegate/proxy/consumers.hpp>
#include <tidegate/proxy/route_edge.hpp>

#include <tidegate/ratelimit/problems.hpp>
#include <tidegate/wire/http1_write.hpp>

#include <set>

namespace tidegate::gateway {

namespace {

auto matches_of(config const& settings) -> std::vector<request_match> {
  std::vector<request_match> matches;
  for (auto const& route : settings.routes) {
    matches.push_back(route.match);
  }
  return matches;
}

/// For each source which field it is.
auto fields_of(std::span<ratelimit::partition_source const> sources)
    -> std::vector<wire::known_field> {
  std::vector<wire::known_field> fields;
  for (auto const& source : sources) {
    fields.push_back(source.kind == ratelimit::partition_source_kind::header
                         ? wire::find_known_field(source.name)
                         : wire::known_field::other);
  }
  return fields;
}

/// The names of fields among the sources that have no entry of their own.
void add_other_names(std::vector<std::string>& names,
                     std::span<ratelimit::partition_source const> sources) {
  for (auto const& source : sources) {
    if (source.kind == ratelimit::partition_source_kind::header &&
        wire::find_known_field(source.name) == wire::known_field::other) {
      names.push_back(source.name);
    }
  }
}

/// The names of fields that rules set or remove on the way to an upstream.
void add_other_names(std::vector<std::string>& names, field_rules const& rules) {
  auto const add = [&names](std::string_view name) {
    if (wire::find_known_field(name) == wire::known_field::other) {
      names.push_back(lower_case(name));
    }
  };
  for (auto const& rule : rules.set) {
    add(rule.name);
  }
  for (auto const& name : rules.remove) {
    add(name);
  }
}

/// The names of fields that have credentials, or say who asks.
void add_other_names(std::vector<std::string>& names, auth_config const& auth) {
  for (auto const& place : auth.api_keys) {
    if (place.kind == key_place::place_kind::header &&
        wire::find_known_field(place.name) == wire::known_field::other) {
      names.push_back(place.name);
    }
  }
  for (auto const& each : auth.pass) {
    if (wire::find_known_field(each.field) == wire::known_field::other) {
      names.push_back(lower_case(each.field));
    }
  }
}

auto made_here_by(fields_config const& settings) -> wire::field_set {
  using enum wire::known_field;
  wire::field_set made;
  if (settings.ratelimit) {
    made |= {ratelimit, ratelimit_policy};
  }
  if (settings.legacy_x) {
    made |= {x_ratelimit_limit, x_ratelimit_remaining, x_ratelimit_reset};
  }
  if (settings.legacy_triple) {
    made |= {ratelimit_limit, ratelimit_remaining, ratelimit_reset};
  }
  return made;
}

auto has_path(std::span<ratelimit::partition_source const> sources) -> bool {
  return std::ranges::any_of(sources, [](auto const& source) {
    return source.kind == ratelimit::partition_source_kind::path;
  });
}

/// A route with these of its policies, in their order.
auto make_route(route_config const& settings, config const& all, policy_ids& ids,
                std::span<policy_config const* const> policies) -> route {
  route out{&settings, cost_table(settings.cost), {}, {}, {}, {}, {}, {}, {}, {}};
  if (settings.idempotency) {
    out.scope_fields = fields_of(settings.idempotency->scope);
    out.key_owner = ratelimit::partition_rule(settings.idempotency->scope);
    add_other_names(out.other_names, settings.idempotency->scope);
    out.tells_paths_apart = has_path(settings.idempotency->scope);
  }
  for (auto const* const each : policies) {
    auto const& policy = *each;
    auto partition_of = out.limits.size();
    for (std::size_t i = 0; i < out.limits.size(); ++i) {
      if (std::ranges::equal(out.limits[i].policy->partition.sources(),
                             policy.partition.sources())) {
        partition_of = i;
        break;
      }
    }
    auto& limit = out.limits.emplace_back(
        gateway::limit{&policy, ids.of(policy.name), partition_of, {}, {}, {}});
    limit.source_fields = fields_of(policy.partition.sources());
    add_other_names(out.other_names, policy.partition.sources());
    auto const name = std::string_view(policy.name);
    ratelimit::append_problem(limit.problem, ratelimit::problem_type::quota_exceeded, {&name, 1});
    append_content_head(limit.problem_head, 429, "application/problem+json", limit.problem.size());
    out.gives_back = out.gives_back || policy.count == counted::successful ||
                     policy.policy.unit() != ratelimit::quota_unit::requests;
    out.tells_keys =
        out.tells_keys || policy.partition.form() != ratelimit::partition_key_form::none;
    out.has_own_quotas =
        out.has_own_quotas ||
        (policy.choice && policy.choice->by.kind == ratelimit::partition_source_kind::attribute &&
         settings.auth);
    out.has_calendar = out.has_calendar || policy.calendar.has_value();
    out.watches_abuse = out.watches_abuse || policy.abuse.has_value();
    if (!policy.shadow) {
      out.tells_paths_apart = out.tells_paths_apart || has_path(policy.partition.sources());
      auto const has_window = policy.policy.unit() != ratelimit::quota_unit::concurrent_requests;
      out.policies.push_back({*sf::string_view::make(policy.name), policy.policy.quota(),
                              *sf::string_view::make(ratelimit::name_of(policy.policy.unit())),
                              has_window ? std::optional(policy.policy.window()) : std::nullopt,
                              nullptr});
    }
  }
  if (!out.policies.empty()) {
    out.fields_made_anew = made_here_by(all.fields);
  }
  if (all.fields.ratelimit) {
    out.fields = ratelimit::prepared_fields(out.policies, *all.fields.ratelimit);
  }
  add_other_names(out.other_names, settings.request);
  out.edge = make_route_edge(settings, all);
  auto const dropped = out.edge ? out.edge->request.dropped_names() : std::vector<std::string>();
  out.auth = make_auth_fields(settings, dropped);
  if (settings.auth) {
    add_other_names(out.other_names, *settings.auth);
  }
  return out;
}

/// Whether who asks has to be known for its partition.
auto needs_principal(policy_config const& policy) -> bool {
  return std::ranges::any_of(policy.partition.sources(), [](auto const& source) {
    return ratelimit::needs_principal(source.kind);
  });
}

/// The plans that some of the policies have a quota for.
auto plans_of(std::span<policy_config const* const> policies) -> std::set<std::string> {
  std::set<std::string> plans;
  for (auto const* const policy : policies) {
    if (policy->choice) {
      for (auto const& each : policy->choice->plans) {
        plans.insert(each.plan);
      }
    }
  }
  return plans;
}

/// A route with what depends on who asks.
auto make_route(route_config const& settings, config const& all, policy_ids& ids) -> route {
  std::vector<policy_config const*> policies;
  for (auto const position : settings.limits) {
    policies.push_back(&all.policies[position]);
  }
  auto out = make_route(settings, all, ids, policies);
  if (!settings.auth) {
    return out;
  }
  for (auto const& plan : plans_of(policies)) {
    std::vector<std::unique_ptr<policy_config const>> own;
    std::vector<policy_config const*> chosen;
    for (auto const* const policy : policies) {
      auto made = std::make_unique<policy_config>(*policy);
      if (policy->choice && policy->choice->by.kind == ratelimit::partition_source_kind::plan) {
        made->policy = policy->choice->policy_with(
            policy->policy, policy->choice->quota_for(plan, policy->policy.quota()));
      }
      chosen.push_back(made.get());
      own.push_back(std::move(made));
    }
    out.by_plan.push_back({plan, std::move(own), make_route(settings, all, ids, chosen)});
  }
  // Where tokens alone let in, requests without one count together, under the empty principal.
  if (!settings.auth->api_keys.empty() &&
      std::ranges::any_of(policies, [](auto const* each) { return needs_principal(*each); })) {
    std::erase_if(policies, [](auto const* each) { return needs_principal(*each); });
    out.refused.push_back({"", {}, make_route(settings, all, ids, policies)});
  }
  return out;
}

/// The room that `max-uri` leaves for the rest of the request line.
constexpr std::size_t rest_of_request_line = 32;

auto head_limits_of(http_config const& settings) -> wire::head_limits {
  return {static_cast<std::size_t>(settings.max_uri) + rest_of_request_line,
          static_cast<std::size_t>(settings.max_header_size),
          static_cast<std::size_t>(settings.max_headers)};
}

auto offer_of(upstream_http2 wanted) -> engine::alpn_offer {
  switch (wanted) {
    case upstream_http2::always: return engine::alpn_offer::http2;
    case upstream_http2::by_alpn: return engine::alpn_offer::both;
    default: return engine::alpn_offer::http1;
  }
}

}  // namespace

void append_content_head(std::string& out, int status, std::string_view content_type,
                         std::size_t content_octets) {
  wire::append_status_line(out, status);
  if (content_octets != 0) {
    wire::append_field(out, "Content-Type", content_type);
  }
  wire::append_field(out, "Content-Length", content_octets);
}

auto active_config::make(gateway::config config, policy_ids& ids, upstream_states& states)
    -> result<std::shared_ptr<active_config const>, std::string> {
  auto const matches = matches_of(config);
  auto out = std::make_shared<active_config>(active_config{
      std::move(config), router(matches), {}, {}, {}, {}, {}, {}, {}, false, false, {}, {}});
  for (auto const& listen : out->config.listen) {
    auto& tls = out->listener_tls.emplace_back();
    if (listen.tls) {
      TIDEGATE_TRY(tls, engine::tls_context::for_server(
                            {listen.tls->certificate, listen.tls->key, listen.http2}));
    }
  }
  for (auto const& upstream_settings : out->config.upstreams) {
    auto& made = out->upstreams.emplace_back(
        upstream{&upstream_settings, nullptr, states.servers_of(upstream_settings), {}});
    if (upstream_settings.overload) {
      made.load = states.load_of(upstream_settings.name, *upstream_settings.overload);
    }
    if (std::ranges::any_of(upstream_settings.servers, &upstream_server::tls)) {
      auto const& tls = upstream_settings.tls;
      TIDEGATE_TRY(made.tls, engine::tls_context::for_client({tls.verify, tls.ca,
                                                              offer_of(upstream_settings.http2),
                                                              tls.certificate, tls.key}));
    }
  }
  for (auto const& route_settings : out->config.routes) {
    out->routes.push_back(make_route(route_settings, out->config, ids));
  }
  auto consumers = load_consumers(out->config.consumers);
  if (!consumers) {
    return failure(to_string(consumers.error().front()));
  }
  out->consumers = *std::move(consumers);
  for (auto const& route : out->config.routes) {
    for (auto const& place : route.auth ? route.auth->api_keys : std::vector<key_place>()) {
      if (place.kind == key_place::place_kind::query) {
        out->secret_parameters.push_back(place.name);
      }
    }
  }
  out->trusted_proxies = http::cidr_set(out->config.trusted_proxies);
  out->head_limits = head_limits_of(out->config.http);
  out->description_json = describe_as_json(out->config);
  out->description_html = describe_as_html(out->config);
  out->upgrades_websocket =
      std::ranges::any_of(out->config.routes, &route_config::upgrades_websocket);
  out->has_cors = std::ranges::any_of(out->config.routes,
                                      [](auto const& each) { return each.cors.has_value(); });
  return out;
}

auto policy_id_of(active_config const& active, policy_config const& policy)
    -> std::optional<std::uint32_t> {
  for (auto const& route : active.routes) {
    for (auto const& limit : route.limits) {
      if (limit.policy == &policy) {
        return limit.id;
      }
    }
  }
  return std::nullopt;
}

}  // namespace tidegate::gateway
