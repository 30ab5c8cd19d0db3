// SPDX-License-Identifier: Apache-2.0
#include "reload_plan.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace tidegate::gateway {

namespace {

[[nodiscard]] auto waits_for_start(effective_option const& option,
                                   std::vector<effective_option> const& effective,
                                   config const& next, open_stores open) -> bool {
  std::string_view const path = option.path;
  if (path.starts_with("listen[")) {
    // A listener that stays follows its options. An address of IPv6 ends in a bracket as well.
    auto const element = path.substr(0, std::min(path.rfind(']'), path.size() - 1) + 1);
    auto const is_of_it = [&](effective_option const& each) {
      return each.path.starts_with(element);
    };
    return option.at_start || std::ranges::none_of(effective, is_of_it) ||
           std::ranges::none_of(next.effective, is_of_it);
  }
  if (path.starts_with("admin.")) {
    return option.at_start || !next.admin;
  }
  if (path == "stores.directory") {
    return open.directory;
  }
  if (path.starts_with("stores.idempotency")) {
    return open.keys;
  }
  if (path == "data" || path == "secrets") {
    return open.keys || open.directory || open.bridge;
  }
  return option.at_start;
}

}  // namespace

auto changes_of(std::vector<effective_option> const& effective, config const& next,
                open_stores open) -> std::vector<config_change> {
  auto const text = [](effective_option const* option) {
    return option == nullptr ? std::nullopt : std::optional(option->value);
  };
  std::vector<config_change> changes;
  for (auto const& [from, to] : differences(effective, next.effective)) {
    auto const& either = to != nullptr ? *to : *from;
    changes.push_back(
        {either.path, text(from), text(to), waits_for_start(either, effective, next, open)});
  }
  if (std::max(effective.size(), next.effective.size()) >= effective_options_max) {
    changes.push_back({"...", std::nullopt, "there are more options than are compared", false});
  }
  return changes;
}

auto effective_after(std::vector<effective_option> const& effective, config const& next,
                     open_stores open) -> std::vector<effective_option> {
  std::vector<effective_option> merged;
  for (auto const& each : effective) {
    if (waits_for_start(each, effective, next, open)) {
      merged.push_back(each);
    }
  }
  for (auto const& each : next.effective) {
    if (!waits_for_start(each, effective, next, open)) {
      merged.push_back(each);
    }
  }
  return merged;
}

}  // namespace tidegate::gateway
