// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/ascii.hpp>

#include <algorithm>
#include <cstring>

namespace tidegate::TIDEGATE_ABI {

auto lower_case(std::string_view text) -> std::string {
  std::string out(text);
  std::ranges::transform(out, out.begin(), to_lower);
  return out;
}

auto detail::is_equal_ignoring_case(std::string_view a, std::string_view b) noexcept -> bool {
  return std::memcmp(a.data(), b.data(), a.size()) == 0 ||
         std::ranges::equal(a, b, {}, to_lower, to_lower);
}

}  // namespace tidegate::TIDEGATE_ABI
