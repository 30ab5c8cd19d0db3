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
    in.fault(from.place_of("servers"), "servers: an empty list (expected at least one URL)");
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

void read_upstream_tls(option_reader& in, section const& from, upstream_config& upstream) {
  auto const tls = in.open_at(from, "tls");
  upstream.tls.verify = in.take_or_default(tls, "verify", read_boolean);
  if (auto const ca = in.take(tls, "ca", read_file)) {
    upstream.tls.ca = in.beside_file(*ca);
  }
  upstream.tls.server_name = in.take(tls, "server-name", read_host);
  bool const any_tls = std::any_of(upstream.servers.begin(), upstream.servers.end(),
                                   [](upstream_server const& server) { return server.tls; });
  if (tls.node != nullptr && !upstream.servers.empty() && !any_tls) {
    in.fault(tls.place, "tls: none of the servers is https://");
  }
}

void read_overload(option_reader& in, section const& from, upstream_config& upstream) {
  if (!from.has("overload")) {
    return;
  }
  auto const overload = in.open_at(from, "overload");
  upstream.overload = {in.take(overload, "max-in-flight", read_integer),
                       in.take(overload, "target-latency", read_duration)};
  if (overload.node != nullptr && overload.node->members.empty()) {
    in.fault(overload.place,
             "overload: no option is set" + expected(keys_of(overload.path, false)));
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
  upstream.connect_timeout = in.take_or_default(from, "connect-timeout", read_duration);
  upstream.timeout = in.take_or_default(from, "timeout", read_duration);
  upstream.idle_timeout = in.take_or_default(from, "idle-timeout", read_duration);
  upstream.retries = in.take_or_default(from, "retries", read_integer);
  (void)in.take(from, "http2", read_choice);  // checked only: HTTP/1.1 is all there is so far
  read_upstream_tls(in, from, upstream);
  read_overload(in, from, upstream);
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
