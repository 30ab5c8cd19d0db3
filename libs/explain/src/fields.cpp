// SPDX-License-Identifier: Apache-2.0
#include <tidegate/explain/fields.hpp>

#include "report.hpp"
#include "words.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/http/date.hpp>

#include <algorithm>

namespace tidegate::TIDEGATE_ABI::explain {

auto lines_of(message_view const& message, std::string_view name) -> std::vector<std::string_view> {
  std::vector<std::string_view> values;
  for (auto const& line : message.fields) {
    if (equal_ignoring_case(line.name, name)) {
      values.push_back(line.value);
    }
  }
  return values;
}

auto told_waits::bottom_line() const -> std::string {
  if (waits_.size() < 2) {
    return overruled_;
  }
  auto const by_length = [](wait const& a, wait const& b) { return a.seconds < b.seconds; };
  auto const [shortest, longest] = std::ranges::minmax_element(waits_, by_length);
  if (longest->seconds - shortest->seconds <= 1) {
    return overruled_;  // both sides round
  }
  auto const order = std::ranges::find(waits_, true, &wait::is_order);
  auto const& obeyed = order != waits_.end() ? *order : *longest;
  auto const& other = &obeyed == &*longest ? *shortest : *longest;
  return "wait " + duration_words(obeyed.seconds) + ", as " + obeyed.field + " says" +
         (obeyed.is_order ? ", which wins over every reset" : ", which is the longest") + "; " +
         other.field + " says " + duration_words(other.seconds);
}

auto explain_fields(message_view const& message, std::chrono::sys_seconds now)
    -> std::vector<finding> {
  report out;
  // The server's clock is the one that its dates are by.
  auto const dates = lines_of(message, "date");
  if (!dates.empty()) {
    now = http::parse_http_date(trimmed(dates.front()), now).value_or(now);
  }
  told_waits waits;
  auto const told = explain_ratelimit(message, out);
  if (told.limits) {
    for (auto const& limit : told.limits->limits) {
      if (limit.remaining == 0 && limit.reset) {
        waits.add("RateLimit", *limit.reset, false);
      }
    }
  }
  explain_retry_after(message, now, told, waits, out);
  explain_legacy(message, now, told, waits, out);
  explain_vendors(message, now, waits, out);
  explain_idempotency_key(message, out);
  if (auto text = waits.bottom_line(); !text.empty()) {
    out.say("In short", std::move(text));
  }
  return std::move(out).take();
}

}  // namespace tidegate::TIDEGATE_ABI::explain
