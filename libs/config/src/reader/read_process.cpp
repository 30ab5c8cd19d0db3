// SPDX-License-Identifier: Apache-2.0
//
// Where the process listens, and what it keeps.
#include <tidegate/config/values.hpp>
#include "reader/parts.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

namespace tidegate::gateway {

namespace {

auto read_listener(option_reader& in, section const& from, config const& made) -> listener_config {
  listener_config listener;
  in.fill(from, listener);
  if (listener.proxy_protocol && made.trusted_proxies.empty()) {
    in.fault(from.place_of("proxy-protocol"),
             "proxy-protocol: needs \"trusted-proxies\", which is missing or empty");
  } else if (listener.proxy_protocol && listener.address.starts_with("unix:")) {
    in.fault(from.place_of("proxy-protocol"),
             "proxy-protocol: not for Unix sockets, whose clients have no address");
  }
  if (listener.redirect_to_https && listener.tls) {
    in.fault(from.find("redirect-to-https")->key->place,
             "redirect-to-https: only for a listener without \"tls\"");
  }
  return listener;
}

/// Of the first listener with TLS that has a port.
auto https_port_of(std::span<listener_config const> listeners) -> std::uint16_t {
  for (auto const& each : listeners) {
    auto const colon = each.address.rfind(':');
    if (each.tls && !each.address.starts_with("unix:") && colon != std::string::npos) {
      return static_cast<std::uint16_t>(parse_count(each.address.substr(colon + 1)).value_or(443));
    }
  }
  return 443;
}

/// `stores`; what is left out lies in the folder `data`.
void check_stores(option_reader& in, section const& from, std::string const& data,
                  stores_config& made) {
  auto const in_data = [&](char const* file) {
    return store_location{store_kind::sqlite, (std::filesystem::path(data) / file).string()};
  };
  bool const has_directory = from.has("directory");
  if (!from.has("idempotency")) {
    made.idempotency = in_data("idempotency.db");
  }
  if (!has_directory) {
    made.directory = in_data("directory.db");
  }
  if (made.idempotency.kind == store_kind::redis || made.idempotency.kind == store_kind::postgres) {
    made.idempotency_size = 0;
    if (from.has("idempotency-size")) {
      in.fault(from.place_of("idempotency-size"),
               "idempotency-size: only for keys in memory or in SQLite; Redis has its maxmemory, "
               "PostgreSQL its disk");
    }
  }
  if (made.idempotency_replicas != 0 && made.idempotency.kind != store_kind::redis) {
    in.fault(from.place_of("idempotency-replicas"), "idempotency-replicas: only for keys in Redis");
  }
  if (made.directory == made.idempotency && made.directory.kind == store_kind::sqlite) {
    in.fault(from.place_of(has_directory ? "directory" : "idempotency"),
             "directory: same file as \"idempotency\" (expected another file)");
  }
}

void read_access_log(option_reader& in, section const& top, config& made) {
  bool const is_mapping = top.has_mapping("access-log");
  auto const from = is_mapping ? in.open_at(top, "access-log") : top;
  auto const* const key = is_mapping ? "file" : "access-log";
  if (auto const file = in.take(from, key, read_file)) {
    made.access_log = {access_log_config::destination::file, *file};
  } else if (auto const* const word = from.find(key);
             word != nullptr && word->value->text == "stdout") {
    made.access_log.to = access_log_config::destination::standard_output;
  }
  made.access_log.query = is_mapping && in.take_or_default(from, "query", read_boolean);
}

}  // namespace

void read_listeners(option_reader& in, section const& top, config& made) {
  auto const& rule = top.rule("listen");
  auto const items = in.items_at(top, "listen");
  if (!top.has("listen")) {
    made.listen.push_back({.address = *read_address(rule, {rule.initial}), .tls = std::nullopt});
  } else if (items.empty()) {
    in.fault(top.place_of("listen"), "listen: empty list (expected at least one address)");
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
  made.https_port = https_port_of(made.listen);
}

auto read_tokens(option_reader& in, section const& from, std::string const& key,
                 std::string_view when_empty) -> std::vector<bearer_token> {
  std::vector<bearer_token> tokens;
  std::set<std::string> names;
  std::map<sha256_digest, std::string> digests;
  auto const items = in.items_at(from, key);
  if (from.has_empty_list(key)) {
    in.fault(from.place_of(key), key + ": " + std::string(when_empty));
  }
  for (auto const* const item : items) {
    auto const each = in.open(*item, from.path_of(key));
    bearer_token token;
    in.fill(each, token);
    auto const digest = in.take(each, "sha256", read_digest);
    if (token.name.empty() || !digest) {
      continue;
    }
    token.digest = *digest;
    if (!names.insert(token.name).second) {
      in.fault(each.place_of("name"), "name: duplicate " + shown(token.name));
    }
    if (auto const [other, fresh] = digests.try_emplace(token.digest, token.name); !fresh) {
      in.fault(each.place_of("sha256"), "sha256: same token as " + shown(other->second));
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

void read_admin(option_reader& in, section const& top, config& made) {
  auto const directory = in.take(in.open_at(top, "console"), "directory", read_choice);
  made.console_directory = directory == "off"     ? directory_access::off
                           : directory == "write" ? directory_access::write
                                                  : directory_access::read;
  bool const is_mapping = top.has_mapping("admin");
  auto const from = is_mapping ? in.open_at(top, "admin") : top;
  auto const* const key = is_mapping ? "address" : "admin";
  auto const faults_before = in.fault_count();
  auto const address = in.take(from, key, read_address);
  std::vector<bearer_token> tokens;
  if (is_mapping) {
    tokens =
        read_tokens(in, from, "tokens",
                    "empty list: every request would be refused (expected at least one token)");
  }
  if (tokens.size() > admin_tokens_max) {
    in.fault(from.place_of("tokens"),
             "tokens: too many" + expected("at most " + std::to_string(admin_tokens_max)));
  }
  if (!address || in.fault_count() != faults_before) {
    return;
  }
  if (std::any_of(made.listen.begin(), made.listen.end(), [&](auto const& other) {
        return other.address == *address && !other.address.ends_with(":0");
      })) {
    in.fault(from.place_of(key),
             "admin: " + shown(*address) + " is also in \"listen\" (expected another address)");
  } else if (tokens.empty() && !is_local_address(*address)) {
    in.fault(
        from.place_of(key),
        "admin: other machines can reach " + shown(*address) +
            ", so it needs tokens (expected {address: " + shown(*address) +
            ", tokens: [{name: NAME, sha256: DIGEST}]} with what `printf %s TOKEN | sha256sum` "
            "prints, or a loopback address, e.g. \"127.0.0.1:9901\")");
  }
  made.admin = admin_config{*address, std::move(tokens)};
}

/// `fields.legacy`: false, or one or both of the families.
void read_legacy_fields(option_reader& in, section const& from, fields_config& fields) {
  if (from.find("legacy") == nullptr) {
    return;
  }
  auto const items = in.items_at(from, "legacy");
  for (auto const* const item : items) {
    auto const family = in.take_node(from.rule("legacy"), *item, read_choice);
    if (family == "false" && items.size() > 1) {
      in.fault(item->place, "legacy: \"false\" in a list (expected x and triple)");
    }
    fields.legacy_x = fields.legacy_x || family == "true" || family == "x";
    fields.legacy_triple = fields.legacy_triple || family == "triple";
  }
}

void read_process(option_reader& in, section const& top, config& made) {
  read_legacy_fields(in, top.under("fields"), made.fields);
  if (made.secrets.empty()) {
    made.secrets = (std::filesystem::path(made.data) / "secrets.key").string();
  }
  check_stores(in, top.under("stores"), made.data, made.stores);
  read_access_log(in, top, made);
}

}  // namespace tidegate::gateway
