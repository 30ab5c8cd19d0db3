// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/date_time.hpp>

#include <tidegate/http/date.hpp>

#include <algorithm>
#include <string>

namespace tidegate::TIDEGATE_ABI::scim {

auto parse_date_time(std::string_view text) -> std::optional<date_time> {
  constexpr std::string_view seconds_form = "0000-00-00T00:00:00";
  constexpr std::size_t fraction_digits_max = 9;
  constexpr std::size_t zone_octets_max = 6;
  if (text.size() < seconds_form.size() ||
      text.size() > seconds_form.size() + 1 + fraction_digits_max + zone_octets_max) {
    return std::nullopt;
  }
  auto rest = text.substr(seconds_form.size());
  std::uint32_t nanosecond = 0;
  if (rest.starts_with('.')) {
    auto const end = std::min(rest.find_first_not_of("0123456789", 1), rest.size());
    if (end - 1 > fraction_digits_max) {
      return std::nullopt;
    }
    for (std::size_t i = 1; i <= fraction_digits_max; ++i) {
      nanosecond = nanosecond * 10 + (i < end ? static_cast<std::uint32_t>(rest[i] - '0') : 0);
    }
    rest.remove_prefix(end);
  }
  std::string zoned(text);
  if (rest.empty()) {
    zoned += 'Z';
  }
  auto const second = http::parse_rfc3339(zoned);
  if (!second || *second < http::date_min || *second > http::date_max) {
    return std::nullopt;
  }
  return date_time{*second, nanosecond};
}

}  // namespace tidegate::TIDEGATE_ABI::scim
