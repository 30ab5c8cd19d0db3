// SPDX-License-Identifier: Apache-2.0
//
// Fields of single vendors, which have the same job as RateLimit.
#include "report.hpp"
#include "words.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/ratelimit/legacy.hpp>

#include <array>
#include <charconv>
#include <map>
#include <utility>

namespace tidegate::TIDEGATE_ABI::explain {

namespace {

using std::chrono::sys_seconds;

[[nodiscard]] auto number_of(std::string_view text) -> std::optional<std::int64_t> {
  std::int64_t number = 0;
  auto const [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool const is_whole = fault == std::errc{} && end == text.data() + text.size() && number >= 0;
  return is_whole ? std::optional(number) : std::nullopt;
}

/// One of Anthropic's quotas: requests, tokens, input-tokens or output-tokens.
struct vendor_limit {
  std::optional<std::int64_t> limit;
  std::optional<std::int64_t> remaining;
  std::optional<std::int64_t> reset;
};

/// So many quotas of one message are looked at.
constexpr std::size_t vendor_limits_max = 16;
constexpr std::string_view anthropic = "anthropic-ratelimit-";

void explain_anthropic(message_view const& message, sys_seconds now, told_waits& waits,
                       report& out) {
  std::map<std::string, vendor_limit> limits;
  for (auto const& line : message.fields) {
    auto const name = lower_case(line.name);
    auto const dash = name.rfind('-');
    if (!name.starts_with(anthropic) || dash < anthropic.size()) {
      continue;
    }
    auto const kind = name.substr(anthropic.size(), dash - anthropic.size());
    if (limits.size() == vendor_limits_max && !limits.contains(kind)) {
      continue;
    }
    auto& limit = limits[kind];
    auto const part = name.substr(dash + 1);
    auto const value = trimmed(line.value);
    if (part == "limit") {
      limit.limit = number_of(value);
    } else if (part == "remaining") {
      limit.remaining = number_of(value);
    } else if (auto const read = ratelimit::read_legacy_reset(value, now);
               part == "reset" && read) {
      limit.reset = read->seconds;
    }
  }
  for (auto const& [kind, limit] : limits) {
    if (!limit.remaining) {
      continue;
    }
    auto const is_tokens = kind.find("token") != std::string::npos;
    auto const field = std::string(anthropic) + kind + "-*";
    auto text = (*limit.remaining == 0 ? "nothing" : std::to_string(*limit.remaining)) +
                (limit.limit ? " of " + std::to_string(*limit.limit) : "") +
                (is_tokens ? " tokens left" : " requests left");
    if (limit.reset) {
      text += ", full again in " + duration_words(*limit.reset);
      if (*limit.remaining == 0) {
        text += "; wait until then";
        waits.add(field, *limit.reset, false);
      }
    }
    out.say(field, std::move(text));
  }
}

void explain_shopify(message_view const& message, report& out) {
  constexpr std::string_view name = "X-Shopify-Shop-Api-Call-Limit";
  for (auto const line : lines_of(message, name)) {
    auto const value = trimmed(line);
    auto const slash = value.find('/');
    auto const used = number_of(value.substr(0, slash));
    auto const size =
        slash == std::string_view::npos ? std::nullopt : number_of(value.substr(slash + 1));
    if (!used || !size || *size == 0) {
      out.say(name, quoted(value) + " is not of the form USED/SIZE");
      continue;
    }
    out.say(name, std::to_string(*used) + " of " + std::to_string(*size) +
                      " calls are in the bucket of the shop, which drains all the time" +
                      (*used >= *size ? "; it is full: wait until it has drained a little" : ""));
  }
}

void explain_stripe(message_view const& message, report& out) {
  constexpr std::string_view name = "Stripe-Rate-Limited-Reason";
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> reasons = {
      {{"global-rate", "too many requests a second for the account: send fewer at a time"},
       {"endpoint-rate", "too many requests a second to this endpoint"},
       {"global-concurrency",
        "too many requests of the account at the same time: wait for answers"},
       {"endpoint-concurrency", "too many requests to this endpoint at the same time"}}};
  for (auto const line : lines_of(message, name)) {
    auto const value = trimmed(line);
    std::string_view meaning = "a refusal by rate, for a reason that is not known here";
    for (auto const& [reason, words] : reasons) {
      meaning = equal_ignoring_case(value, reason) ? words : meaning;
    }
    out.say(name, quoted(value) + ": " + std::string(meaning));
  }
}

/// What comes beside a limit, and what looks like one: no word of it would read as if it were not
/// there.
void explain_companions(message_view const& message, report& out) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> known = {
      {{"x-ratelimit-used", "so much of the limit is used"},
       {"x-ratelimit-resource", "the part of the API that the limit is for"},
       {"x-ratelimit-bucket", "names the quota: requests that get the same name share it"},
       {"x-ratelimit-global", "the limit is that of the whole account, not of this endpoint"},
       {"x-ratelimit-scope", "whose limit it is"}}};
  for (auto const& line : message.fields) {
    auto const name = lower_case(line.name);
    bool const is_about_limits = name.contains("ratelimit") || name.contains("rate-limit");
    if (!is_about_limits || name == "ratelimit" || name == "ratelimit-policy" ||
        name == "beta-ratelimit" || name == "beta-ratelimit-policy" ||
        name == "stripe-rate-limited-reason" || name.starts_with(anthropic) ||
        is_legacy_name(name)) {
      continue;
    }
    std::string_view meaning =
        "looks like a limit, but is not known here: see the documentation of the API";
    for (auto const& [companion, words] : known) {
      meaning = name == companion ? words : meaning;
    }
    out.say(line.name, quoted(trimmed(line.value)) + ": " + std::string(meaning));
  }
}

}  // namespace

void explain_vendors(message_view const& message, sys_seconds now, told_waits& waits, report& out) {
  explain_anthropic(message, now, waits, out);
  explain_shopify(message, out);
  explain_stripe(message, out);
  explain_companions(message, out);
}

}  // namespace tidegate::TIDEGATE_ABI::explain
