// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/values.hpp>
#include "reader/parts.hpp"

#include <algorithm>
#include <utility>

namespace tidegate::gateway {

auto read_tokens(option_reader& in, section const& from, std::string const& key,
                 std::string_view when_empty, bool has_tenants) -> std::vector<bearer_token> {
  std::vector<bearer_token> tokens;
  auto const items = in.items_at(from, key);
  if (from.has_empty_list(key)) {
    in.fault(from.place_of(key), key + ": " + std::string(when_empty));
  }
  for (auto const* const item : items) {
    auto const each = in.open(*item, from.path_of(key));
    auto const name = in.take(each, "name", read_name);
    auto const digest = in.take(each, "sha256", read_digest);
    auto const tenant = has_tenants ? in.take_or_default(each, "tenant", read_name) : std::string();
    auto const read_only = in.take_or_default(each, "read-only", read_boolean);
    if (!name || !digest) {
      continue;
    }
    for (auto const& other : tokens) {
      if (other.name == *name) {
        in.fault(each.place_of("name"), "name: duplicate " + shown(*name));
      }
      if (other.digest == *digest) {
        in.fault(each.place_of("sha256"), "sha256: the token of " + shown(other.name) + " too");
      }
    }
    tokens.push_back({*name, *digest, tenant, read_only});
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
    tokens = read_tokens(
        in, from, "tokens",
        "an empty list refuses every request; leave it out on the loopback interface", false);
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
    in.fault(from.place_of(key), "admin: the gateway listens on " + shown(*address) +
                                     " too (expected another address)");
  } else if (tokens.empty() && !is_local_address(*address)) {
    in.fault(
        from.place_of(key),
        "admin: others reach " + shown(*address) +
            ", so it needs tokens (expected {address: " + shown(*address) +
            ", tokens: [{name: NAME, sha256: DIGEST}]} with what `printf %s TOKEN | sha256sum` "
            "prints, or an address of the loopback interface such as \"127.0.0.1:9901\")");
  }
  made.admin = admin_config{*address, std::move(tokens)};
}

}  // namespace tidegate::gateway
