// SPDX-License-Identifier: Apache-2.0
#include "reader/parts.hpp"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

namespace tidegate::gateway {

namespace {

auto read_server(option_reader& in, section const& from, yaml_node const& item)
    -> std::optional<upstream_server> {
  if (item.kind != yaml_kind::mapping) {
    return in.take_node(from.rule("servers"), item, read_url);
  }
  auto const entry = in.open(item, from.path_of("servers"));
  auto server = in.take(entry, "url", read_url);
  if (server) {
    in.fill(entry, *server);
  }
  return server;
}

auto read_servers(option_reader& in, section const& from) -> std::vector<upstream_server> {
  std::vector<upstream_server> servers;
  std::unordered_set<std::string> seen;
  auto const items = in.items_at(from, "servers");
  if (from.has_empty_list("servers")) {
    in.fault(from.place_of("servers"), "servers: empty list (expected at least one URL)");
  }
  for (auto const* const item : items) {
    auto server = read_server(in, from, *item);
    if (!server) {
      continue;
    }
    if (!seen.insert(to_string(*server)).second) {
      in.fault(item->place, "servers: duplicate " + shown(to_string(*server)));
    }
    servers.push_back(*std::move(server));
  }
  if (!servers.empty() &&
      std::ranges::all_of(servers, [](auto const& each) { return each.weight == 0; })) {
    in.fault(from.place_of("servers"),
             "servers: all have weight 0 (expected at least one that takes requests)");
  }
  return servers;
}

/// `retry`, or its short form `retries`.
void read_retry(option_reader& in, section const& from, balance::retry_settings& made) {
  auto const given = in.open_at(from, "retry");
  in.fill(given, made);
  if (given.has("on")) {
    made.on = 0;
    auto const words = split_words(given.rule("on").words);
    for (auto const& word : in.take_list(given, "on", read_choice)) {
      auto const at = std::ranges::find(words, word) - words.begin();
      made.on |= static_cast<std::uint8_t>(1U << static_cast<unsigned>(at));
    }
  }
  if (auto const* const retries = from.find("retries")) {
    if (from.has("retry")) {
      in.fault(retries->key->place, "an upstream has either \"retry\" or \"retries\"");
    }
    made.attempts = in.take(from, "retries", read_integer).value_or(0);
    made.on |= static_cast<std::uint8_t>(balance::retry_cause::reset);
  }
}

/// How servers are chosen and looked after.
void read_servers_policy(option_reader& in, section const& from, upstream_config& made) {
  auto const chosen = in.take(from, "balance", read_balance).value_or(balance_choice{});
  made.balance = chosen.by;
  made.hash_by = chosen.source;
  if (auto const* const given = from.find("outlier");
      given == nullptr || !is_word(from.rule("outlier"), given->value->text)) {
    in.fill(in.open_at(from, "outlier"), made.outlier.emplace());
  }
  if (from.has("health")) {
    auto const health = in.open_at(from, "health");
    auto& checks = made.health.emplace();
    in.fill(health, checks);
    checks.expect = in.take_or_default(health, "expect", read_statuses);
  }
  if (made.resolve.bounds.min > made.resolve.bounds.max) {
    in.fault(from.place_of("resolve"), "resolve: min is longer than max");
  }
  if (from.has("max-wait") && !made.max_connections) {
    in.fault(from.place_of("max-wait"), "max-wait: nothing to wait for without max-connections");
  }
  read_retry(in, from, made.retry);
}

void check_tls_and_overload(option_reader& in, section const& from,
                            upstream_config const& upstream) {
  auto const tls = from.under("tls");
  if (tls.node != nullptr && !upstream.servers.empty() &&
      std::ranges::none_of(upstream.servers, &upstream_server::tls)) {
    in.fault(tls.place, "tls: only for servers with https://");
  }
  if (upstream.tls.certificate.has_value() != upstream.tls.key.has_value()) {
    in.fault(tls.place, "tls: \"certificate\" and \"key\" go together");
  }
  auto const overload = from.under("overload");
  if (overload.node != nullptr && overload.node->members.empty()) {
    in.fault(overload.place, "overload: no option is set" + expected(keys_of(overload.path)));
  }
}

auto read_upstream(option_reader& in, section const& top, yaml_node::member const& member)
    -> upstream_config {
  upstream_config upstream;
  upstream.name = member.key->text;
  section from{"upstreams", nullptr, member.key->place};
  if (member.value->kind == yaml_kind::mapping) {
    from = in.open(*member.value, "upstreams");
    upstream.servers = read_servers(in, from);
  } else if (!in.has_no_value(member)) {
    if (auto server = in.take_node(top.rule("upstreams"), *member.value, read_url)) {
      upstream.servers.push_back(*std::move(server));
    }
  }
  in.fill(from, upstream);
  read_servers_policy(in, from, upstream);
  check_tls_and_overload(in, from, upstream);
  return upstream;
}

}  // namespace

auto read_upstreams(option_reader& in, section const& top, config& made) -> name_table {
  name_table names;
  for (auto const& member : in.named_at(top, "upstreams")) {
    names.try_emplace(member.key->text, made.upstreams.size());
    made.upstreams.push_back(read_upstream(in, top, member));
  }
  return names;
}

}  // namespace tidegate::gateway
