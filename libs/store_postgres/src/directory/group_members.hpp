// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "directory/channel.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace tidegate::store_postgres {

/// What a transaction knows of the group whose members it changes one after the other.
///
/// The first few are looked for one by one, then all of them are read: a client that adds ten
/// thousand waits for the server a few times only.
class group_members {
 public:
  /// The place of a member; nothing when it is not one.
  [[nodiscard]] auto find(directory_channel& to, std::int64_t group, std::int64_t member)
      -> outcome<std::optional<std::int64_t>>;
  /// Adds one that `find` has not found.
  [[nodiscard]] auto add(directory_channel& to, std::int64_t member, std::string_view display)
      -> outcome<void>;
  void erase(std::int64_t member) { places_.erase(member); }

 private:
  [[nodiscard]] auto load(directory_channel& to) -> outcome<void>;

  std::int64_t group_ = 0;
  int asked_ = 0;  // how many were looked for one by one
  bool is_loaded_ = false;
  std::unordered_map<std::int64_t, std::int64_t> places_;  // of members
  std::int64_t last_place_ = 0;
};

}  // namespace tidegate::store_postgres
