// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "changes.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Members of groups. Everything is looked up before anything is written.
namespace tidegate::gateway {

struct found_member {
  std::uint64_t rid = 0;
  std::string display;
};

[[nodiscard]] auto read_member(json::value const& given) -> result<given_member, scim::error>;

/// Who they are. Those that are made later are added to `left_out`.
[[nodiscard]] auto find_members(store::directory_writer& in, std::span<given_member const> given,
                                scim_change const& change, std::string const& group_id,
                                std::vector<given_member>& left_out)
    -> result<std::vector<found_member>, scim::error>;

/// Whether the members of a group are these already, each with the same name.
[[nodiscard]] auto has_exactly(store::directory_reader& from, std::uint64_t group,
                               std::span<found_member const> members) -> result<bool, scim::error>;

/// Says whether anything was changed.
auto add_members(store::directory_writer& in, std::uint64_t group,
                 std::span<found_member const> members) -> result<bool, scim::error>;

/// A change of members, with all of them looked up.
struct member_step {
  scim::member_change const* change = nullptr;
  std::vector<found_member> members;
};

[[nodiscard]] auto find_steps(store::directory_writer& in, scim_change const& change,
                              std::string const& group_id, std::vector<given_member>& left_out)
    -> result<std::vector<member_step>, scim::error>;

/// Says whether anything was changed.
[[nodiscard]] auto make_step(store::directory_writer& in, std::uint64_t group,
                             member_step const& step) -> result<bool, scim::error>;

}  // namespace tidegate::gateway
