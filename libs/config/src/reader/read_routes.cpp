// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/values.hpp>
#include "reader/parts.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace tidegate::gateway {

namespace {

/// Of an upstream in the requests of a route.
constexpr std::int64_t share_max = 1'000'000;

/// `x-version:2`; without what may be a secret, since names are in logs and metrics.
auto text_of(value_match const& wanted, char mark, ratelimit::partition_source_kind kind)
    -> std::string {
  bool const is_shown = wanted.value && is_printable_name(*wanted.value) &&
                        !ratelimit::is_credential({kind, wanted.name});
  return wanted.name + mark + (is_shown ? *wanted.value : "*");
}

/// The match as it is written.
auto name_of(request_match const& match) -> std::string {
  std::vector<std::string_view> const methods(match.methods.begin(), match.methods.end());
  auto name = joined(methods, ",") + (methods.empty() ? "" : " ") + match.host + match.path;
  char mark = '?';
  for (auto const& parameter : match.query) {
    name += mark + text_of(parameter, '=', ratelimit::partition_source_kind::query);
    mark = '&';
  }
  for (auto const& field : match.headers) {
    name += " " + text_of(field, ':', ratelimit::partition_source_kind::header);
  }
  return name;
}

/// The quota of a caller with that plan.
auto quota_of_plan(policy_config const& policy, std::string_view plan) -> std::int64_t {
  return policy.choice ? policy.choice->quota_for(plan, policy.policy.quota())
                       : policy.policy.quota();
}

/// The most that a request can cost for the caller with the largest quota.
auto largest_cost_of(policy_config const& limit) -> std::int64_t {
  return limit.choice
             ? limit.choice->policy_with(limit.policy, limit.choice->largest(limit.policy.quota()))
                   .cost_max()
             : limit.policy.cost_max();
}

/// The same for the one with the smallest, of those that are let in at all.
auto smallest_cost_of(policy_config const& limit) -> std::int64_t {
  return limit.choice->policy_with(limit.policy, limit.choice->smallest(limit.policy.quota()))
      .cost_max();
}

auto resolve(option_reader& in, std::string_view kind, name_table const& known,
             yaml_node const& reference) -> std::optional<std::size_t> {
  auto const found = known.find(reference.text);
  if (found != known.end()) {
    return found->second;
  }
  std::vector<std::string_view> candidates;
  for (auto const& [name, position] : known) {
    candidates.push_back(name);
  }
  in.fault(reference.place, "unknown " + std::string(kind) + " " + shown(reference.text) +
                                did_you_mean(reference.text, candidates) +
                                (candidates.empty() ? "; the file defines none"
                                                    : expected(joined(candidates, ", "))));
  return std::nullopt;
}

/// `upstream: {stable: 95, canary: 5}`
void read_split(option_reader& in, option const& rule, yaml_node const& given,
                name_table const& upstreams, route_config& route) {
  in.check_repetitions(given, "upstream");
  std::int64_t sum = 0;
  for (auto const& member : given.members) {
    auto const upstream = resolve(in, "upstream", upstreams, *member.key);
    bool const is_scalar = !in.has_no_value(member) && member.value->kind == yaml_kind::scalar;
    auto const share = is_scalar ? parse_count(member.value->text).value_or(-1) : -1;
    if (share < 0 || share > share_max) {
      in.fault(member.value->place, std::string(rule.key()) + ": invalid share " +
                                        shown(member.value->text) +
                                        expected("a number, 0 to " + std::to_string(share_max)));
    }
    sum += std::max<std::int64_t>(share, 0);
    route.split.push_back({upstream.value_or(0), share});
  }
  if (sum == 0) {
    in.fault(given.place, std::string(rule.key()) + ": no upstream has a share");
  }
  if (!route.split.empty()) {
    route.upstream = route.split.front().upstream;
  }
}

/// Exactly one option says who answers.
void check_target(option_reader& in, section const& from) {
  yaml_node::member const* first = nullptr;
  for (auto const* const key : {"upstream", "service", "redirect", "respond"}) {
    auto const* const given = from.find(key);
    if (given == nullptr) {
      continue;
    }
    if (first != nullptr) {
      in.fault(given->key->place, shown(key) + " and " + shown(first->key->text) +
                                      " cannot be combined" + expected("one of them"));
      return;
    }
    first = given;
  }
  if (first == nullptr) {
    in.fault(from.place,
             "\"upstream\" is missing (expected \"upstream\", \"service\", \"redirect\" or "
             "\"respond\")");
  }
}

void read_target(option_reader& in, section const& from, name_table const& upstreams,
                 route_config& route) {
  check_target(in, from);
  auto const service = in.take(from, "service", read_choice);
  auto const* const given_upstream = from.find("upstream");
  if (from.has_mapping("upstream")) {
    read_split(in, from.rule("upstream"), *given_upstream->value, upstreams, route);
  } else if (in.take(from, "upstream", read_name)) {
    route.upstream = resolve(in, "upstream", upstreams, *given_upstream->value).value_or(0);
  }
  if (service) {
    route.service = service == "scim" ? route_service::scim : route_service::echo;
  } else if (given_upstream == nullptr && (route.redirect || route.respond)) {
    route.service = route.redirect ? route_service::redirect : route_service::respond;
  }
}

/// Two policies of one route that some caller sees with the same quota, which is all that draft-07
/// shows of them.
void check_told_apart(option_reader& in, yaml_node const& item, config const& made,
                      route_config const& route, std::size_t position) {
  auto const& limit = made.policies[position];
  auto const by_attribute = [](policy_config const& policy) {
    return policy.choice && policy.choice->by.kind == ratelimit::partition_source_kind::attribute;
  };
  for (auto const other_position : route.limits) {
    auto const& other = made.policies[other_position];
    if (other.shadow || other.policy.unit() == ratelimit::quota_unit::concurrent_requests) {
      continue;
    }
    std::set<std::string_view> plans = {""};
    for (auto const* const each : {&limit, &other}) {
      for (auto const& named :
           each->choice ? each->choice->plans : std::vector<quota_choice::named>()) {
        plans.insert(named.plan);
      }
    }
    bool const are_alike = std::ranges::any_of(plans, [&](std::string_view plan) {
      return quota_of_plan(limit, plan) == quota_of_plan(other, plan);
    });
    if (are_alike || by_attribute(limit) || by_attribute(other)) {
      in.fault(item.place,
               "limits: " + shown(item.text) + (are_alike ? " has" : " may have") +
                   " the same quota as " + shown(other.name) +
                   ", which clients cannot tell apart in draft-07 (expected different quotas, or "
                   "fields: {ratelimit: draft-09})");
      return;
    }
  }
}

void read_limits(option_reader& in, section const& from, name_table const& policies,
                 config const& made, route_config& route) {
  std::set<std::string_view> seen;
  for (auto const* const item : in.items_at(from, "limits")) {
    if (!in.take_node(from.rule("limits"), *item, read_name)) {
      continue;
    }
    if (!seen.insert(item->text).second) {
      in.fault(item->place, "limits: duplicate " + shown(item->text));
      continue;
    }
    if (seen.size() > limits_max) {
      in.fault(item->place,
               "limits: too many policies" + expected("at most " + std::to_string(limits_max)));
      break;
    }
    auto const position = resolve(in, "policy", policies, *item);
    if (!position) {
      continue;
    }
    auto const& limit = made.policies[*position];
    check_principal(in, item->place, "limits", limit.partition.sources(), route);
    if (limit.choice && !route.auth) {
      in.warn(item->place, "limits: " + shown(item->text) + " has its quota by " +
                               to_string(limit.choice->by) +
                               ", and the route has no \"auth\": every request gets the default");
    }
    bool const in_fields =
        !limit.shadow && limit.policy.unit() != ratelimit::quota_unit::concurrent_requests;
    if (made.fields.ratelimit == ratelimit::draft::draft_07 && in_fields) {
      check_told_apart(in, *item, made, route, *position);
    }
    route.limits.push_back(*position);
  }
}

auto read_cost(option_reader& in, option const& rule, yaml_node const& node, config const& made,
               route_config const& route) -> std::int64_t {
  auto const cost = in.take_node(rule, node, read_integer).value_or(0);
  for (auto const position : route.limits) {
    auto const& limit = made.policies[position];
    if (limit.policy.unit() == ratelimit::quota_unit::requests && cost > largest_cost_of(limit)) {
      in.fault(node.place, "cost: " + std::to_string(cost) + " is more than policy " +
                               shown(limit.name) + " can ever admit (expected at most " +
                               std::to_string(largest_cost_of(limit)) + ")");
    } else if (limit.policy.unit() == ratelimit::quota_unit::requests && limit.choice &&
               cost > smallest_cost_of(limit)) {
      in.warn(node.place, "cost: " + std::to_string(cost) + " is more than policy " +
                              shown(limit.name) + " can ever admit for some callers (" +
                              std::to_string(smallest_cost_of(limit)) + ")");
    }
  }
  return cost;
}

/// `METHOD /path/**`
auto read_cost_pattern(option_reader& in, yaml_node const& key) -> std::optional<request_match> {
  auto const text = std::string_view(key.text);
  auto const space = std::min(text.find(' '), text.size());
  auto const path = text.substr(std::min(space + 1, text.size()));
  auto const method = read_method({}, {text.substr(0, space)});
  auto const checked = check_path_pattern(path);
  if (!method || !checked) {
    in.fault(key.place,
             "cost: invalid pattern " + shown(text) +
                 (method && !path.empty() ? ": " + std::string(message(checked.error().fault))
                                          : did_you_mean(text, {"default"})) +
                 " (expected default, or a method and a path such as \"POST /v1/**\")");
    return std::nullopt;
  }
  return request_match{std::string(path), {*method}, ""};
}

void read_costs(option_reader& in, section const& from, config const& made, route_config& route) {
  auto const& rule = from.rule("cost");
  auto const* const given = from.find("cost");
  route.cost.otherwise = *read_integer(rule, {rule.initial});
  if (given == nullptr || in.has_no_value(*given)) {
    return;
  }
  if (given->value->kind != yaml_kind::mapping) {
    route.cost.otherwise = read_cost(in, rule, *given->value, made, route);
    return;
  }
  in.check_repetitions(*given->value, "pattern");
  for (auto const& member : given->value->members) {
    if (in.has_no_value(member)) {
      continue;
    }
    auto const cost = read_cost(in, rule, *member.value, made, route);
    if (member.key->text == "default") {
      route.cost.otherwise = cost;
    } else if (auto match = read_cost_pattern(in, *member.key)) {
      route.cost.rules.push_back({*std::move(match), cost});
    }
  }
}

/// `upgrade: [websocket]`
void read_upgrade(option_reader& in, section const& from, route_config& route) {
  route.upgrades_websocket = !in.take_list(from, "upgrade", read_choice).empty();
  if (from.has("upgrade") && route.service != route_service::upstream) {
    in.fault(from.find("upgrade")->key->place, "upgrade: only for a route with \"upstream\"");
  }
  if (from.has("tunnel-idle-timeout") && !from.has("upgrade")) {
    in.fault(from.find("tunnel-idle-timeout")->key->place,
             "tunnel-idle-timeout: only with \"upgrade\"");
  }
}

auto read_route(option_reader& in, section const& from, known_names const& known,
                config const& made) -> route_config {
  route_config route;
  in.fill(from, route);
  read_match(in, from.under("match"), route.match);
  if (route.name.empty()) {
    route.name = name_of(route.match);
  }
  read_target(in, from, known.upstreams, route);
  if (from.has("auth")) {
    route.auth = read_auth(in, in.open_at(from, "auth"), made, route);
  }
  read_upgrade(in, from, route);
  read_scim(in, from, made, route);
  read_limits(in, from, known.policies, made, route);
  read_costs(in, from, made, route);
  if (from.has("idempotency")) {
    read_idempotency(in, in.open_at(from, "idempotency"), route);
  }
  read_edge(in, from, route);
  return route;
}

/// The first that matches takes a request, so that a narrow route behind a wide one, or behind
/// several that take its methods one by one, gets none. `lines` are those of the routes in `made`.
void warn_of_shadow(option_reader& in, config const& made, std::span<std::size_t const> lines,
                    route_config const& route, yaml_place place) {
  auto const taker_of = [&](request_match const& match) -> std::optional<std::size_t> {
    auto const found = std::ranges::find_if(
        made.routes, [&](route_config const& wide) { return covers(wide.match, match); });
    return found != made.routes.end()
               ? std::optional(static_cast<std::size_t>(found - made.routes.begin()))
               : std::nullopt;
  };
  std::vector<std::size_t> takers;
  if (auto const whole = taker_of(route.match)) {
    takers.push_back(*whole);
  } else {
    auto part = route.match;
    for (auto const& method : route.match.methods) {
      part.methods = {method};
      auto const taker = taker_of(part);
      if (!taker) {
        return;
      }
      takers.push_back(*taker);
    }
    std::ranges::sort(takers);
    takers.erase(std::ranges::unique(takers).begin(), takers.end());
  }
  if (takers.empty()) {
    return;
  }
  std::string names;
  for (auto const taker : takers) {
    names += (names.empty() ? "" : " and ") + shown(made.routes[taker].name) + " in line " +
             std::to_string(lines[taker]);
  }
  in.warn(place, "never reached: the route" + std::string(takers.size() == 1 ? " " : "s ") + names +
                     (takers.size() == 1 ? " takes" : " take") +
                     " all of its requests; the first match wins, so put the narrower one first");
}

/// Policies that no route has.
void warn_of_unused(option_reader& in, section const& top, config const& made) {
  auto const* const given = top.find("policies");
  if (given == nullptr) {
    return;
  }
  for (auto const& member : given->value->members) {
    auto const is_it = [&](std::size_t position) {
      return made.policies[position].name == member.key->text;
    };
    bool const is_used = std::ranges::any_of(made.routes, [&](route_config const& route) {
      return std::ranges::any_of(route.limits, is_it);
    });
    if (!is_used) {
      in.warn(member.key->place, "policy " + shown(member.key->text) + " is not used by any route");
    }
  }
}

}  // namespace

void read_routes(option_reader& in, section const& top, known_names const& known, config& made) {
  auto const items = in.items_at(top, "routes");
  if (top.has_empty_list("routes")) {
    in.fault(top.place_of("routes"), "routes: empty list (expected at least one route)");
  }
  std::map<std::string, std::size_t> lines_by_name;
  std::vector<std::size_t> lines;
  for (auto const* const item : items) {
    auto const from = in.open(*item, "routes");
    if (from.node == nullptr) {
      continue;
    }
    auto route = read_route(in, from, known, made);
    auto const [first, fresh] = lines_by_name.try_emplace(route.name, item->place.line);
    if (!fresh) {
      auto const line = " in line " + std::to_string(first->second);
      bool const is_given = from.has("name");
      bool const is_same =
          std::ranges::find(made.routes, route.match, &route_config::match) != made.routes.end();
      in.fault(is_given ? from.place_of("name") : item->place,
               is_given  ? "name: the route" + line + " has the same name, " + shown(route.name)
               : is_same ? "never reached: the route" + line + " has the same match"
                         : "\"name\" is missing: the route" + line + " is called " +
                               shown(route.name) + " too");
    } else {
      warn_of_shadow(in, made, lines, route, item->place);
    }
    lines.push_back(item->place.line);
    made.routes.push_back(std::move(route));
  }
  warn_of_unused(in, top, made);
}

}  // namespace tidegate::gateway
