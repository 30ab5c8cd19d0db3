// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/edge.hpp>
#include <tidegate/wire/known_field.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// `set`, `add` and `remove` of a route, ready for use. Immutable.
class field_edits {
 public:
  field_edits() = default;
  /// The rules were checked: their names and values may stand in a field line.
  explicit field_edits(field_rules const& rules);

  /// True when there are no rules.
  [[nodiscard]] auto empty() const noexcept -> bool {
    return dropped_.empty() && names_.empty() && lines_.empty() && host_.empty();
  }
  /// What is set or removed, as far as it has an entry.
  [[nodiscard]] auto dropped() const noexcept -> wire::field_set const& { return dropped_; }
  /// The rest of it, in lower case.
  [[nodiscard]] auto dropped_names() const noexcept -> std::vector<std::string> const& {
    return names_;
  }
  /// What Host is set to; else empty. It is not among the lines, since each request has one.
  [[nodiscard]] auto host() const noexcept -> std::string_view { return host_; }

  /// Takes what is set or removed out of complete lines, and appends what is set and added, but for
  /// fields of `except`. Allocates nothing when `lines` has room.
  void apply(std::string& lines, wire::field_set const& except = {}) const;

 private:
  [[nodiscard]] auto drops(std::string_view name) const noexcept -> bool;
  void add_line(field_rule const& rule);
  void add_dropped(std::string_view name);

  wire::field_set dropped_;
  std::vector<std::string> names_;
  std::string lines_;         // complete
  wire::field_set in_lines_;  // those of them that have an entry
  std::string host_;
};

}  // namespace tidegate::gateway
