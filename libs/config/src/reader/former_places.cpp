// SPDX-License-Identifier: Apache-2.0
#include "reader/former_places.hpp"

#include <algorithm>

namespace tidegate::gateway {

namespace {

constexpr std::string_view routes = "routes";
constexpr std::string_view group_key = "scim";

auto member_of(yaml_node& mapping, std::string_view key) -> yaml_node::member* {
  auto const found = std::ranges::find_if(
      mapping.members, [&](auto const& member) { return member.key->text == key; });
  return found == mapping.members.end() ? nullptr : &*found;
}

auto is_in_former_place(yaml_node::member const& member) -> bool {
  static auto const rules = options_formerly_under(routes);
  return std::ranges::find(rules, member.key->text, &option::key) != rules.end();
}

/// The mapping `scim` of a route, as a copy that may be changed: aliases may share the one in the
/// file.
auto group_in(yaml_document& document, yaml_node& route, yaml_place place) -> yaml_node& {
  auto& group = document.nodes.emplace_back();
  if (auto* const given = member_of(route, group_key)) {
    group = *given->value;
    given->value = &group;
    return group;
  }
  group.kind = yaml_kind::mapping;
  group.place = place;
  auto& name = document.nodes.emplace_back();
  name.kind = yaml_kind::scalar;
  name.place = place;
  name.text = group_key;
  route.members.push_back({&name, &group});
  return group;
}

void regroup(option_reader& in, yaml_document& document, yaml_node& route) {
  auto const first_moved =
      std::stable_partition(route.members.begin(), route.members.end(),
                            [](auto const& member) { return !is_in_former_place(member); });
  std::vector<yaml_node::member> const moved(first_moved, route.members.end());
  route.members.erase(first_moved, route.members.end());
  auto& group = group_in(document, route, moved.front().key->place);
  auto const given = group.members;
  for (auto const& member : moved) {
    auto const& key = *member.key;
    auto const twice =
        std::ranges::find_if(given, [&](auto const& other) { return other.key->text == key.text; });
    if (twice != given.end()) {
      in.fault(key.place, "duplicate key " + shown(key.text) + "; it is already in " +
                              shown(group_key) + " in " + in.line_of(twice->key->place, key.place));
    } else if (group.kind == yaml_kind::mapping) {
      group.members.push_back(member);
      in.warn(key.place, shown(key.text) + " is deprecated here" +
                             expected(std::string(group_key) + ": {" + key.text + ": ...}"));
    }
  }
}

}  // namespace

auto with_options_in_place(option_reader& in, yaml_document& document, yaml_node const& given)
    -> yaml_node const& {
  auto const has_former = [](yaml_node const* route) {
    return std::ranges::any_of(route->members, is_in_former_place);
  };
  // What the file says is not changed: the nodes on the way to a route are copies.
  auto root = given;
  auto* const listed = member_of(root, routes);
  if (listed == nullptr || std::ranges::none_of(listed->value->items, has_former)) {
    return given;
  }
  auto& list = document.nodes.emplace_back(*listed->value);
  for (auto& item : list.items) {
    if (has_former(item)) {
      auto& route = document.nodes.emplace_back(*item);
      regroup(in, document, route);
      item = &route;
    }
  }
  listed->value = &list;
  return document.nodes.emplace_back(std::move(root));
}

}  // namespace tidegate::gateway
