// SPDX-License-Identifier: Apache-2.0
#include "group_members.hpp"

#include <algorithm>
#include <utility>

namespace tidegate::gateway {

namespace {

using scim::error;
using scim::scim_type;

auto remove_matching(store::directory_writer& in, std::uint64_t group, scim::filter const& which)
    -> result<bool, error> {
  std::vector<std::uint64_t> matching;
  TIDEGATE_TRY_VOID(or_unavailable(in.members(group, [&](store::directory_member const& member) {
    json::object value{{"value", member.id}, {"type", member.type}};
    if (!member.display.empty()) {
      value.append("display", member.display);
    }
    if (scim::matches_value(which, json::value(std::move(value)))) {
      matching.push_back(member.rid);
    }
    return true;
  })));
  for (auto const rid : matching) {
    TIDEGATE_TRY_VOID(or_unavailable(in.remove_member(group, rid)));
  }
  return !matching.empty();
}

}  // namespace

auto read_member(json::value const& given) -> result<given_member, error> {
  auto const* const value = given.find("value");
  auto const* const id = value != nullptr ? value->if_string() : given.if_string();
  if (id == nullptr || id->empty()) {
    return failure(bad_request(scim_type::invalid_value, "A member has its id as \"value\"."));
  }
  auto const* const display = given.find("display");
  return given_member{*id, display != nullptr && display->if_string() ? *display->if_string() : ""};
}

auto find_members(store::directory_writer& in, std::span<given_member const> given,
                  scim_change const& change, std::string const& group_id,
                  std::vector<given_member>& left_out) -> result<std::vector<found_member>, error> {
  std::vector<found_member> found;
  found.reserve(given.size());
  for (auto const& member : given) {
    if (std::ranges::find(change.made_later, member.id) != change.made_later.end()) {
      left_out.push_back(member);
      continue;
    }
    TIDEGATE_TRY(auto const there, or_unavailable(in.find_any(member.id)));
    if (!there || member.id == group_id) {
      return failure(bad_request(
          scim_type::invalid_value,
          there ? "A group cannot be a member of itself."
                : "There is no resource with the id \"" + member.id + "\" to be a member."));
    }
    found.push_back({there->resource.rid, member.display});
  }
  return found;
}

auto add_members(store::directory_writer& in, std::uint64_t group,
                 std::span<found_member const> members) -> result<bool, error> {
  bool changed = false;
  for (auto const& member : members) {
    TIDEGATE_TRY(bool const added,
                 or_unavailable(in.add_member(group, member.rid, member.display)));
    changed = changed || added;
  }
  return changed;
}

auto find_steps(store::directory_writer& in, scim_change const& change, std::string const& group_id,
                std::vector<given_member>& left_out) -> result<std::vector<member_step>, error> {
  using scim::member_action;
  std::vector<member_step> steps;
  for (auto const& wanted : change.patch.members) {
    auto& step = steps.emplace_back(member_step{&wanted, {}});
    std::vector<given_member> given;
    for (auto const& member : wanted.members) {
      TIDEGATE_TRY(auto read, read_member(member));
      given.push_back(std::move(read));
    }
    if (wanted.action == member_action::add || wanted.action == member_action::replace_all) {
      TIDEGATE_TRY(step.members, find_members(in, given, change, group_id, left_out));
    } else if (wanted.action == member_action::remove) {
      for (auto const& member : given) {
        TIDEGATE_TRY(auto const there, or_unavailable(in.find_any(member.id)));
        if (there) {  // else it is not a member either
          step.members.push_back({there->resource.rid, ""});
        }
      }
    }
  }
  return steps;
}

auto has_exactly(store::directory_reader& from, std::uint64_t group,
                 std::span<found_member const> members) -> result<bool, error> {
  std::unordered_map<std::uint64_t, std::string_view> wanted;
  for (auto const& member : members) {
    wanted[member.rid] = member.display;  // the last of several counts
  }
  std::size_t found = 0;
  bool differs = false;
  TIDEGATE_TRY_VOID(or_unavailable(from.members(group, [&](store::directory_member const& member) {
    auto const there = wanted.find(member.rid);
    differs = there == wanted.end() || there->second != member.display;
    ++found;
    return !differs;
  })));
  return !differs && found == wanted.size();
}

auto make_step(store::directory_writer& in, std::uint64_t group, member_step const& step)
    -> result<bool, error> {
  using scim::member_action;
  switch (step.change->action) {
    case member_action::add: return add_members(in, group, step.members);
    case member_action::remove: {
      bool changed = false;
      for (auto const& member : step.members) {
        TIDEGATE_TRY(bool const removed, or_unavailable(in.remove_member(group, member.rid)));
        changed = changed || removed;
      }
      return changed;
    }
    case member_action::remove_matching:
      return remove_matching(in, group, *step.change->value_filter);
    case member_action::replace_all:
    case member_action::remove_all: break;
  }
  TIDEGATE_TRY(bool const is_so, has_exactly(in, group, step.members));
  if (is_so) {
    return false;
  }
  TIDEGATE_TRY_VOID(or_unavailable(in.remove_members(group)));
  TIDEGATE_TRY_VOID(add_members(in, group, step.members));
  return true;
}

}  // namespace tidegate::gateway
