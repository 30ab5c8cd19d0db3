// SPDX-License-Identifier: Apache-2.0
#include "reader/parts.hpp"

#include <algorithm>
#include <utility>

namespace tidegate::gateway {

namespace {

auto read_servers(option_reader& in, section const& from) -> std::vector<upstream_server> {
  std::vector<upstream_server> servers;
  auto const items = in.items_at(from, "servers");
  if (from.has_empty_list("servers")) {
    in.fault(from.place_of("servers"), "servers: empty list (expected at least one URL)");
  }
  for (auto const* const item : items) {
    auto server = in.take_node(from.rule("servers"), *item, read_url);
    if (!server) {
      continue;
    }
    if (std::find(servers.begin(), servers.end(), *server) != servers.end()) {
      in.fault(item->place, "servers: duplicate " + shown(to_string(*server)));
    }
    servers.push_back(*std::move(server));
  }
  return servers;
}

void check_tls_and_overload(option_reader& in, section const& from,
                            upstream_config const& upstream) {
  auto const tls = from.under("tls");
  if (tls.node != nullptr && !upstream.servers.empty() &&
      std::ranges::none_of(upstream.servers, &upstream_server::tls)) {
    in.fault(tls.place, "tls: only for servers with https://");
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
