// SPDX-License-Identifier: Apache-2.0
#include "sources/merger.hpp"

#include "reader/wording.hpp"

#include <algorithm>
#include <set>

namespace tidegate::gateway {

void merger::refuse_second(yaml_node const& key, yaml_place first) {
  tree_.faults.push_back({key.place, "duplicate key " + shown(key.text) + "; it is already in " +
                                         place_shown(first, tree_.names)});
}

auto merger::merged_for(yaml_node::member& member) -> merged& {
  auto& known = merged_[member.key->text];
  if (known.node == nullptr) {
    known.node = &tree_.document.nodes.emplace_back(*member.value);
    member.value = known.node;
    for (auto const& [key, value] : known.node->members) {
      known.names.try_emplace(key->text, key->place);
    }
  }
  return known;
}

void merger::merge_value(yaml_node::member& member, yaml_node::member const& more) {
  auto const kind = more.value->kind;
  bool const has_parts = kind == yaml_kind::sequence || kind == yaml_kind::mapping;
  if (!has_parts || member.value->kind != kind) {
    refuse_second(*more.key, member.key->place);
    return;
  }
  auto& [node, names] = merged_for(member);
  node->items.insert(node->items.end(), more.value->items.begin(), more.value->items.end());
  for (auto const& part : more.value->members) {
    auto const [first, fresh] = names.try_emplace(part.key->text, part.key->place);
    if (fresh) {
      node->members.push_back(part);
    } else {
      refuse_second(*part.key, first->second);
    }
  }
}

void merger::merge(yaml_node& into, yaml_node const& from) {
  std::map<std::string_view, yaml_place> seen;
  for (auto const& more : from.members) {
    auto const [first, fresh] = seen.try_emplace(more.key->text, more.key->place);
    if (!fresh) {
      refuse_second(*more.key, first->second);
      continue;
    }
    if (more.key->text == "include") {
      continue;
    }
    auto const known = std::ranges::find_if(
        into.members, [&](auto const& member) { return member.key->text == more.key->text; });
    if (known == into.members.end()) {
      into.members.push_back(more);
    } else {
      merge_value(*known, more);
    }
  }
}

}  // namespace tidegate::gateway
