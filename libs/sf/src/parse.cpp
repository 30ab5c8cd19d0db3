// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf/parse.hpp>

namespace tidegate::TIDEGATE_ABI::sf {

auto combine(std::span<std::string_view const> lines, std::string& scratch) -> std::string_view {
  if (lines.empty()) {
    return {};
  }
  if (lines.size() == 1) {
    return lines.front();
  }
  scratch.assign(lines.front());
  for (auto line : lines.subspan(1)) {
    scratch.append(", ").append(line);
  }
  return scratch;
}

}  // namespace tidegate::TIDEGATE_ABI::sf
