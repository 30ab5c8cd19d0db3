// SPDX-License-Identifier: Apache-2.0
#include <tidegate/explain/fields.hpp>

#include "report.hpp"
#include "words.hpp"

#include <tidegate/http/date.hpp>

namespace tidegate::explain {

auto lines_of(message_view const& message, std::string_view name) -> std::vector<std::string_view> {
  std::vector<std::string_view> values;
  for (auto const& line : message.fields) {
    if (same_name(line.name, name)) {
      values.push_back(line.value);
    }
  }
  return values;
}

auto explain_fields(message_view const& message, std::chrono::sys_seconds now)
    -> std::vector<finding> {
  report out;
  // The server's clock is the one that its dates are by.
  auto const dates = lines_of(message, "date");
  if (!dates.empty()) {
    now = http::parse_http_date(trimmed(dates.front()), now).value_or(now);
  }
  auto const told = explain_ratelimit(message, out);
  explain_retry_after(message, now, told, out);
  explain_legacy(message, now, told, out);
  explain_idempotency_key(message, out);
  return std::move(out).take();
}

}  // namespace tidegate::explain
