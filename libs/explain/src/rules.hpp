// SPDX-License-Identifier: Apache-2.0
//
// The one table of rules about fields. A finding names its rule by `rule_of`, which does not
// compile for an id that is not in here.
#pragma once

#include <tidegate/explain/rule.hpp>

#include <array>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::explain {

inline constexpr auto rule_table = [] {
  using enum severity;
  using namespace specification;
  return std::to_array<rule>({
      {"ratelimit-syntax", error, structured_fields, "4.2",
       "RateLimit and RateLimit-Policy can be parsed as Structured Fields."},
      {"ratelimit-policy-empty", error, ratelimit_09, "3",
       "RateLimit-Policy has at least one item.", "3.5"},
      {"ratelimit-inner-list", error, ratelimit_09, "3, 4", "Members are Items, not Inner Lists.",
       "3.1, 3.5"},
      {"ratelimit-name-type", error, ratelimit_09, "3, 4.1", "The name of an item is a String."},
      {"ratelimit-quota-missing", error, ratelimit_09, "3.1", "An item of RateLimit-Policy has q."},
      {"ratelimit-quota-value", error, ratelimit_09, "3.1.1", "A quota is a non-negative Integer.",
       "2.2"},
      {"ratelimit-quota-repeated", error, ratelimit_07, "3.5",
       "In draft-07 no two policies have the same quota.", "3.5"},
      {"ratelimit-unit-type", error, ratelimit_09, "3.1.2", "qu is a String."},
      {"ratelimit-unit-unknown", warning, ratelimit_09, "3.1.2, 10.3",
       "qu is a registered quota unit: requests, content-bytes or concurrent-requests."},
      {"ratelimit-unit-spelling", advice, ratelimit_09, "3.1.2, 10.3",
       "qu is \"requests\", as the draft defines it, not \"request\", as its registry has it."},
      {"ratelimit-window-missing", error, ratelimit_07, "2.1", "In draft-07 every policy has w.",
       "2.1"},
      {"ratelimit-window-value", error, ratelimit_09, "3.1.3",
       "w is an Integer of seconds, above 0 in draft-09.", "2.3"},
      {"ratelimit-partition-key-type", error, ratelimit_09, "3.1.4, 4.1.3",
       "pk is a Byte Sequence."},
      {"ratelimit-parameter-prefix", warning, ratelimit_09, "3.1, 4.1",
       "Parameters of one's own have the prefix of a vendor, such as acme-burst.", "2.1"},
      {"ratelimit-limit-missing", error, ratelimit_07, "3.1", "In draft-07 RateLimit has limit.",
       "3.1"},
      {"ratelimit-limit-value", error, ratelimit_07, "3.2",
       "In draft-07 limit is a non-negative Integer.", "3.2"},
      {"ratelimit-remaining-missing", error, ratelimit_09, "4.1", "An item of RateLimit has r."},
      {"ratelimit-remaining-value", error, ratelimit_09, "4.1.1",
       "What remains is a non-negative Integer.", "3.3"},
      {"ratelimit-reset-missing", error, ratelimit_07, "3.1", "In draft-07 RateLimit has reset.",
       "3.1"},
      {"ratelimit-reset-value", error, ratelimit_09, "4.1.2",
       "The reset is a non-negative Integer of seconds from now.", "3.4"},
      {"ratelimit-reset-implausible", warning, ratelimit_09, "4.1.2",
       "The reset is a number of seconds from now, neither a moment nor milliseconds, and hardly "
       "behind the window.",
       "3.4"},
      {"ratelimit-remaining-above-quota", warning, ratelimit_09, "4.1.1",
       "No more remains than the policy gives.", "3.3"},
      {"ratelimit-policy-unknown", warning, ratelimit_09, "4.1",
       "An item of RateLimit is about a policy of RateLimit-Policy, where that field is there.",
       "3.2"},
      {"ratelimit-name-repeated", warning, ratelimit_09, "3.1, 4.1",
       "There is one item for a policy and partition key."},
      {"ratelimit-drafts-mixed", warning, ratelimit_09, "3, 4",
       "RateLimit and RateLimit-Policy follow the same draft.", "3.1, 3.5"},
      {"ratelimit-rate-uncapped", advice, ratelimit_09, "6, 8.5",
       "What remains until the reset invites no rate far above that of the policy.", "4, 6.5"},
      {"ratelimit-redirect-exhausted", warning, ratelimit_09, "6",
       "A redirect does not say that nothing remains: clients would wait before they follow it.",
       "4"},
      {"ratelimit-from-cache", advice, ratelimit_09, "7.3",
       "Responses that caches keep have no RateLimit fields: clients have to ignore those.", "5.2"},
      {"retry-after-syntax", error, http, "10.2.3",
       "Retry-After is a number of seconds or an HTTP-date."},
      {"retry-after-repeated", error, http, "5.3", "There is one Retry-After."},
      {"retry-after-past", warning, http, "10.2.3",
       "A date in Retry-After is later than the Date of the response."},
      {"retry-after-implausible", warning, http, "10.2.3",
       "Retry-After is a number of seconds from now, not a moment, and at most a month."},
      {"retry-after-before-reset", warning, ratelimit_09, "6",
       "Retry-After does not end before the quota is reset.", "4"},
      {"retry-after-behind-reset", warning, ratelimit_09, "6",
       "Retry-After does not end long after the quota was reset.", "4"},
      {"x-ratelimit-only", advice, ratelimit_09, "1, appendix D",
       "Quotas are told by RateLimit, not only by fields that no specification has or that no "
       "draft has any more."},
      {"x-ratelimit-value", warning, ratelimit_09, "appendix D",
       "X-RateLimit-* fields have numbers, or in a reset a date."},
      {"x-ratelimit-incomplete", advice, ratelimit_09, "appendix D",
       "A limit comes with what remains and with its reset.", "4"},
      {"x-ratelimit-reset-clock", advice, ratelimit_09, "4.1.2, appendix C",
       "A reset does not depend on the clock of the client."},
      {"x-ratelimit-disagrees", warning, ratelimit_09, "appendix D",
       "X-RateLimit-* fields say the same as RateLimit."},
      {"idempotency-key-string", error, idempotency_key, "2.1",
       "Idempotency-Key is a String in double quotes."},
      {"idempotency-key-repeated", error, idempotency_key, "2.1", "There is one Idempotency-Key."},
      {"idempotency-key-empty", error, idempotency_key, "2.2", "The key is not empty."},
      {"idempotency-key-long", advice, idempotency_key, "2.2",
       "The key has at most 255 characters, which servers commonly take."},
      {"idempotency-key-guessable", warning, idempotency_key, "2.2, 5",
       "The key is a UUID or as hard to guess."},
  });
}();

/// The rule of that id; there must be one.
consteval auto rule_of(std::string_view id) -> rule const& {
  for (auto const& one : rule_table) {
    if (one.id == id) {
      return one;
    }
  }
  throw "there is no such rule";
}

}  // namespace tidegate::TIDEGATE_ABI::explain
