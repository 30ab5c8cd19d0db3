// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim_server/ignored_names.hpp>

#include <utility>
#include <vector>

namespace tidegate::gateway {

scim_ignored::scim_ignored(std::function<void(std::string_view)> report)
    : report_(std::move(report)) {}

void scim_ignored::note(std::string const& route, scim::ignored_names const& what) {
  if (what.attributes == 0 && what.schemas == 0) {
    return;
  }
  std::vector<std::string> lines;
  {
    std::lock_guard const lock(mutex_);
    auto& sum = counts_[route];
    sum.attributes += what.attributes;
    sum.schemas += what.schemas;
    for (auto const& name : what.names) {
      auto line = "scim: route \"" + route + "\": ignored \"" + name + "\", which no schema has";
      if (told_.size() < names_max && told_.insert(line).second) {
        bool const is_last = told_.size() == names_max;
        lines.push_back(std::move(line) +
                        (is_last ? "; further names are counted and not logged" : ""));
      }
    }
  }
  for (auto const& line : lines) {
    if (report_) {
      report_(line);
    }
  }
}

auto scim_ignored::by_route() const -> std::map<std::string, counts> {
  std::lock_guard const lock(mutex_);
  return counts_;
}

}  // namespace tidegate::gateway
