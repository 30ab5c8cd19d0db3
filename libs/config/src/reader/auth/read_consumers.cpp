// SPDX-License-Identifier: Apache-2.0
//
// Who may ask: `consumers`, in the configuration or in a file of their own.
#include <tidegate/config/values.hpp>
#include "reader/auth/auth_scalars.hpp"
#include "reader/edge_scalars.hpp"
#include "reader/parts.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace tidegate::gateway {

namespace {

constexpr std::size_t faults_max = 100;

/// Whose key a digest is.
using key_owners = std::map<sha256_digest, std::string>;

void read_keys(option_reader& in, section const& from, consumer_config& made, key_owners& owners) {
  for (auto const* const item : in.items_at(from, "keys")) {
    auto const each = in.open(*item, "consumers.keys");
    consumer_key key;
    in.fill(each, key);
    auto const digest = in.take(each, "sha256", read_digest);
    key.expires = in.take(each, "expires", read_expiry);
    if (key.name.empty() || !digest) {
      continue;
    }
    key.digest = *digest;
    if (std::ranges::find(made.keys, key.name, &consumer_key::name) != made.keys.end()) {
      in.fault(each.place_of("name"), "name: duplicate " + shown(key.name));
    }
    auto const [owner, fresh] = owners.try_emplace(key.digest, made.name);
    if (!fresh) {
      in.fault(each.place_of("sha256"), "sha256: same key as one of " + shown(owner->second));
    }
    made.keys.push_back(std::move(key));
  }
}

void read_attributes(option_reader& in, section const& from, consumer_config& made) {
  auto const& rule = from.rule("attributes");
  for (auto const& [name, value] : in.named_at(from, "attributes")) {
    if (!ratelimit::parse_partition_source("attribute:" + name->text)) {
      in.fault(name->place, "invalid name " + shown(name->text) +
                                expected("letters, digits and characters of !#$%&'*+-.^_`|~"));
    }
    if (in.has_no_value({name, value})) {
      continue;
    }
    if (auto text = in.take_node(rule, *value, read_header_value)) {
      made.attributes.push_back({name->text, *std::move(text)});
    }
  }
}

auto read_listed(option_reader& in, section const& top) -> std::vector<consumer_config> {
  std::vector<consumer_config> listed;
  key_owners owners;
  for (auto const& [name, value] : in.named_at(top, "consumers")) {
    if (in.has_no_value({name, value})) {
      continue;
    }
    auto const from = in.open(*value, "consumers");
    consumer_config made{.name = name->text};
    in.fill(from, made);
    read_keys(in, from, made, owners);
    read_attributes(in, from, made);
    listed.push_back(std::move(made));
  }
  return listed;
}

/// Taken as it stands a variable would be a strange name or plan.
void refuse_variables(option_reader& in, yaml_node const& node, std::size_t depth = 0) {
  if (node.kind == yaml_kind::scalar && node.text.contains("${")) {
    in.fault(node.place, shown(node.text) + ": a file of consumers has no variables" +
                             expected("the value itself"));
  }
  if (depth == yaml_depth_max) {
    return;
  }
  for (auto const* const item : node.items) {
    refuse_variables(in, *item, depth + 1);
  }
  for (auto const& [key, value] : node.members) {
    refuse_variables(in, *key, depth + 1);
    refuse_variables(in, *value, depth + 1);
  }
}

}  // namespace

void read_consumers(option_reader& in, section const& top, config& made) {
  auto const* const given = top.find("consumers");
  if (given == nullptr) {
    return;
  }
  made.consumers.given = true;
  auto const& members = given->value->members;
  // One scalar is a place; a consumer is a mapping.
  if (members.size() == 1 && members.front().value->kind == yaml_kind::scalar) {
    auto const& [key, value] = members.front();
    if (key->text == "file") {
      made.consumers.file = in.beside_file(value->text);
      if (value->text.empty()) {
        in.fault(value->place, "file: empty" + expected("a path"));
      }
      return;
    }
    if (key->text == "store") {
      in.fault(key->place, "\"store\" is not available in this version" +
                               expected("file: FILE, or a mapping from names"));
      return;
    }
  }
  made.consumers.listed = read_listed(in, top);
}

auto parse_consumers(std::string_view text, std::string_view file_name)
    -> result<std::vector<consumer_config>, std::vector<config_fault>> {
  std::vector<std::string> const files{std::string(file_name)};
  option_reader in(files, {});
  yaml_document document;
  std::vector<consumer_config> listed;
  if (text.size() > config_octets_max) {
    in.fault(
        {}, "the file is larger than " + format_size(static_cast<std::int64_t>(config_octets_max)));
  } else if (auto const root = read_yaml(text, document); !root) {
    in.fault(root.error().place, root.error().message);
  } else if ((*root)->kind != yaml_kind::mapping) {
    // An empty file is most likely one that is being written.
    in.fault((*root)->place,
             "expected a mapping from names of consumers; {} for a file without any");
  } else {
    refuse_variables(in, **root);
    yaml_node key;
    key.kind = yaml_kind::scalar;
    key.text = "consumers";
    yaml_node file;
    file.kind = yaml_kind::mapping;
    file.members.push_back({&key, *root});
    listed = read_listed(in, {"", &file, {}});
  }
  auto faults = in.take_faults();
  if (faults.empty()) {
    return listed;
  }
  std::ranges::sort(faults);
  faults.erase(std::ranges::unique(faults).begin(), faults.end());
  faults.resize(std::min(faults.size(), faults_max));
  return failure(std::move(faults));
}

}  // namespace tidegate::gateway
