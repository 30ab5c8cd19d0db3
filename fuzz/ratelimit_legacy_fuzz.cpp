// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as lines `name: value` of a response:
//
// - never a crash;
// - what is given makes sense: no number is negative or longer than fifteen digits, every policy
//   has a window, every limit has a limit or what remains, and nothing is given twice;
// - the case of names and spaces around values do not matter;
// - a reset that was taken for a moment comes nearer as time goes by, and one that was taken for a
//   time from now does not.
#include "check.hpp"

#include <tidegate/http/field.hpp>
#include <tidegate/ratelimit/legacy.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tidegate::ratelimit;
using tidegate::fuzz::check;

// Mon, 05 Aug 2019 09:27:00 GMT
constexpr std::chrono::sys_seconds now{std::chrono::seconds(1'564'997'220)};

auto makes_sense(std::optional<std::int64_t> const& number) -> bool {
  return !number || (*number >= 0 && *number <= tidegate::sf::integer::max);
}

template <class T>
auto has_no_twins(std::vector<T> const& values) -> bool {
  for (auto i = values.begin(); i != values.end(); ++i) {
    if (std::find(i + 1, values.end(), *i) != values.end()) {
      return false;
    }
  }
  return true;
}

void check_reset(std::string_view value) {
  using enum reset_form;
  auto const reset = read_legacy_reset(value, now);
  if (!reset) {
    return;
  }
  check(reset->seconds >= 0);
  check(reset->seconds <= legacy_future_max.count());
  check(read_legacy_reset(" \t" + std::string(value) + " ", now) == reset);
  auto const later = read_legacy_reset(value, now + std::chrono::seconds(1));
  switch (reset->form) {
    case delta_seconds:
    case duration: check(later == reset); break;
    case delta_milliseconds:
      // What is just beyond a year today may be a moment in a second from now.
      check(later.has_value());
      check(later == reset || later->form == epoch_seconds);
      break;
    case epoch_seconds:
    case epoch_milliseconds:
    case http_date:
    case rfc3339:
      // Two digits of a year may turn into another century, and a moment may be too long ago.
      check(!later || later->form != reset->form ||
            later->seconds == std::max<std::int64_t>(reset->seconds - 1, 0));
      break;
  }
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  auto input = std::string_view(reinterpret_cast<char const*>(data), size);
  std::vector<std::string> names;
  std::vector<std::string> values;
  while (!input.empty()) {
    auto const line = input.substr(0, input.find('\n'));
    input.remove_prefix(std::min(line.size() + 1, input.size()));
    auto const colon = line.find(':');
    names.emplace_back(line.substr(0, colon));
    values.emplace_back(colon == std::string_view::npos ? std::string_view()
                                                        : line.substr(colon + 1));
  }
  std::vector<tidegate::http::field_view> lines;
  for (std::size_t i = 0; i < names.size(); ++i) {
    lines.push_back({names[i], values[i]});
    check_reset(values[i]);
  }
  auto const fields = read_legacy(lines, now);
  for (auto const& policy : fields.policies) {
    check(makes_sense(policy.quota));
    check(makes_sense(policy.window));
    check(policy.window.value_or(0) > 0);
  }
  for (auto const& limit : fields.limits) {
    check(limit.limit.has_value() || limit.remaining.has_value());
    check(makes_sense(limit.limit));
    check(makes_sense(limit.remaining));
    check(makes_sense(limit.reset));
  }
  check(has_no_twins(fields.policies));
  check(has_no_twins(fields.limits));

  for (std::size_t i = 0; i < names.size(); ++i) {
    for (char& c : names[i]) {
      c = c >= 'a' && c <= 'z'   ? static_cast<char>(c - 'a' + 'A')
          : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a')
                                 : c;
    }
    values[i] = "\t " + values[i] + " ";
    lines[i] = {names[i], values[i]};
  }
  check(read_legacy(lines, now) == fields);
  return 0;
}
