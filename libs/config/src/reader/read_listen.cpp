// SPDX-License-Identifier: Apache-2.0
#include "reader/parts.hpp"

#include <set>

namespace tidegate::gateway {

namespace {

auto read_listener(option_reader& in, section const& from, config const& made) -> listener_config {
  listener_config listener;
  listener.address = in.take_or_default(from, "address", read_address);
  if (from.has("tls")) {
    auto const tls = in.open_at(from, "tls");
    listener.tls = {in.beside_file(in.take_or_default(tls, "certificate", read_file)),
                    in.beside_file(in.take_or_default(tls, "key", read_file))};
  }
  listener.http2 = in.take_or_default(from, "http2", read_boolean);
  listener.proxy_protocol = in.take_or_default(from, "proxy-protocol", read_boolean);
  if (listener.proxy_protocol && made.trusted_proxies.empty()) {
    in.fault(from.place_of("proxy-protocol"),
             "proxy-protocol: believed only from trusted-proxies, and there are none");
  } else if (listener.proxy_protocol && listener.address.starts_with("unix:")) {
    in.fault(from.place_of("proxy-protocol"),
             "proxy-protocol: who connects through a path has no address that could be trusted");
  }
  return listener;
}

}  // namespace

void read_listeners(option_reader& in, section const& top, config& made) {
  made.trusted_proxies = in.take_list(top, "trusted-proxies", read_network);
  made.client_address = in.take_or_default(top, "client-address", read_choice) == "forwarded"
                            ? client_address_field::forwarded
                            : client_address_field::x_forwarded_for;
  auto const& rule = top.rule("listen");
  auto const items = in.items_at(top, "listen");
  if (!top.has("listen")) {
    made.listen.push_back({*read_address(rule, {rule.initial}), std::nullopt, true, false});
  } else if (items.empty()) {
    in.fault(top.place_of("listen"), "listen: an empty list (expected at least one address)");
  }
  std::set<std::string> seen;
  for (auto const* const item : items) {
    listener_config listener;
    if (item->kind == yaml_kind::mapping) {
      listener = read_listener(in, in.open(*item, "listen"), made);
    } else {
      listener.address = in.take_node(rule, *item, read_address).value_or("");
    }
    bool const any_port = listener.address.ends_with(":0");
    if (!listener.address.empty() && !any_port && !seen.insert(listener.address).second) {
      in.fault(item->place, "listen: duplicate " + shown(listener.address));
    }
    made.listen.push_back(std::move(listener));
  }
}

}  // namespace tidegate::gateway
