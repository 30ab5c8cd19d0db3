// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/ascii.hpp>
#include <tidegate/config/values.hpp>
#include "reader/cover_index.hpp"
#include "reader/parts.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
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

void take_written(yaml_node const& given, std::string& text) {
  text = given.written == nullptr ? std::move(text) : *given.written;
}

void forget_values(section const& given, std::vector<value_match>& values) {
  for (auto& value : values) {
    auto const is_hidden = [&](yaml_node::member const& member) {
      return member.value->written != nullptr && equal_ignoring_case(member.key->text, value.name);
    };
    if (given.node != nullptr && std::ranges::any_of(given.node->members, is_hidden)) {
      value.value.reset();
    }
  }
}

/// The match as the file has it, without what came through variables: names are in logs and
/// metrics.
auto without_values(section const& from, request_match match) -> request_match {
  if (auto const* const path = from.find("path")) {
    take_written(*path->value, match.path);
  }
  if (auto const* const host = from.find("host")) {
    take_written(*host->value, match.host);
  }
  if (auto const* const methods = from.find("methods")) {
    auto const& items = methods->value->items;
    for (std::size_t i = 0; i < std::min(items.size(), match.methods.size()); ++i) {
      take_written(*items[i], match.methods[i]);
    }
  }
  forget_values(from.under("headers"), match.headers);
  forget_values(from.under("query"), match.query);
  return match;
}

auto resolve(option_reader& in, std::string_view kind, name_table const& known,
             yaml_node const& reference) -> std::optional<std::size_t> {
  auto const found = known.find(reference.text);
  if (found != known.end()) {
    return found->second;
  }
  constexpr std::size_t compared_max = 1000;
  constexpr std::size_t listed_max = 20;
  std::vector<std::string_view> candidates;
  for (auto const& [name, position] : known) {
    if (candidates.size() == compared_max) {
      break;
    }
    candidates.push_back(name);
  }
  auto const meant = did_you_mean(written_text(reference), candidates);
  if (candidates.size() > listed_max) {
    candidates.resize(listed_max);
    candidates.emplace_back("...");
  }
  in.fault(
      reference.place,
      "unknown " + std::string(kind) + " " + shown(written_text(reference)) + meant +
          (candidates.empty() ? "; the file defines none" : expected(joined(candidates, ", "))));
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
                                        shown(written_text(*member.value)) +
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
      if (each->choice) {
        for (auto const& named : each->choice->plans) {
          plans.insert(named.plan);
        }
      }
    }
    bool const are_alike = std::ranges::any_of(plans, [&](std::string_view plan) {
      return quota_of_plan(limit, plan) == quota_of_plan(other, plan);
    });
    if (are_alike || by_attribute(limit) || by_attribute(other)) {
      in.fault(item.place,
               "limits: " + shown(written_text(item)) + (are_alike ? " has" : " may have") +
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
      in.fault(item->place, "limits: duplicate " + shown(written_text(*item)));
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
      in.warn(item->place, "limits: " + shown(written_text(*item)) + " has its quota by " +
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
      in.fault(node.place, "cost: " + written_text(node) + " is more than policy " +
                               shown(limit.name) + " can ever admit (expected at most " +
                               std::to_string(largest_cost_of(limit)) + ")");
    } else if (limit.policy.unit() == ratelimit::quota_unit::requests && limit.choice &&
               cost > smallest_cost_of(limit)) {
      in.warn(node.place, "cost: " + written_text(node) + " is more than policy " +
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
    route.name = name_of(without_values(from.under("match"), route.match));
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
/// several that take its methods one by one, gets none. `places` are those of the routes in
/// `made`.
void warn_of_shadow(option_reader& in, config const& made, cover_index const& before,
                    std::span<yaml_place const> places, route_config const& route,
                    yaml_place place) {
  std::vector<std::size_t> takers;
  if (auto const whole = before.find(route.match)) {
    takers.push_back(*whole);
  } else {
    auto part = route.match;
    for (auto const& method : route.match.methods) {
      part.methods = {method};
      auto const taker = before.find(part);
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
    names += (names.empty() ? "" : " and ") + shown(made.routes[taker].name) + " in " +
             in.line_of(places[taker], place);
  }
  in.warn(place, "never reached: the route" + std::string(takers.size() == 1 ? " " : "s ") + names +
                     (takers.size() == 1 ? " takes" : " take") +
                     " all of its requests; the first match wins, so put the narrower one first");
}

/// `first` has the name of `route` already; `line` is where.
void refuse_name(option_reader& in, section const& from, route_config const& first,
                 route_config const& route, std::string const& line) {
  if (auto const* const given = from.find("name")) {
    in.fault(given->value->place, "name: the route" + line + " has the same name, " +
                                      shown(written_text(*given->value)));
  } else if (first.match == route.match) {
    in.fault(from.place, "never reached: the route" + line + " has the same match");
  } else {
    in.fault(from.place,
             "\"name\" is missing: the route" + line + " is called " + shown(route.name) + " too");
  }
}

/// Policies that no route has.
void warn_of_unused(option_reader& in, section const& top, name_table const& policies,
                    config const& made) {
  auto const* const given = top.find("policies");
  if (given == nullptr) {
    return;
  }
  std::vector<bool> is_used(made.policies.size());
  for (auto const& route : made.routes) {
    for (auto const position : route.limits) {
      is_used[position] = true;
    }
  }
  for (auto const& member : given->value->members) {
    auto const known = policies.find(member.key->text);
    if (known != policies.end() && known->second && !is_used[*known->second]) {
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
  std::unordered_map<std::string, std::size_t> positions;  // by name
  std::vector<yaml_place> places;
  cover_index before(made.routes);
  places.reserve(items.size());
  made.routes.reserve(items.size());
  for (auto const* const item : items) {
    auto const from = in.open(*item, "routes");
    if (from.node == nullptr) {
      continue;
    }
    auto route = read_route(in, from, known, made);
    auto const [first, fresh] = positions.try_emplace(route.name, made.routes.size());
    if (!fresh) {
      refuse_name(in, from, made.routes[first->second], route,
                  " in " + in.line_of(places[first->second], item->place));
    } else {
      before.update();
      warn_of_shadow(in, made, before, places, route, item->place);
    }
    places.push_back(item->place);
    made.routes.push_back(std::move(route));
  }
  warn_of_unused(in, top, known.policies, made);
}

}  // namespace tidegate::gateway
