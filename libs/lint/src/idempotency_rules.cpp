// SPDX-License-Identifier: Apache-2.0
#include "recording.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace tidegate::TIDEGATE_ABI::lint {

namespace {

using namespace explain::specification;
using enum explain::severity;

constexpr std::string_view name = "Idempotency-Key";

[[nodiscard]] auto is_done(seen const* each) -> bool {
  return each != nullptr && each->status() / 100 == 2;
}

[[nodiscard]] auto is_refused(seen const* each) -> bool {
  return each != nullptr && each->status() / 100 == 4;
}

/// A refusal that has to do with who asks or what for, and so says nothing about keys.
[[nodiscard]] auto is_about_access(seen const& each) -> bool {
  return each.status() == 401 || each.status() == 403 || each.status() == 404 ||
         each.status() == 405 || each.status() == 407;
}

/// The first write was carried out, so that those after it can be judged.
[[nodiscard]] auto first_done(recording const& what) -> seen const* {
  auto const* const first = what.find(probe::key_first);
  return is_done(first) ? first : nullptr;
}

/// The rule applies; `what` was refused with a status other than the one it is to have.
void expect_status(seen const& each, int wanted, std::string_view what, verdict& out) {
  out.applies();
  if (each.status() != wanted) {
    out.broken(each, name,
               std::string(what) + std::to_string(each.status()) + " instead of " +
                   std::to_string(wanted));
  }
}

/// A link to documentation: a type or a link in the content, or a Link field.
[[nodiscard]] auto is_documented(seen const& each) -> bool {
  if (each.json) {
    auto const type = text_of(*each.json, "type");
    if (!type.empty() && type != "about:blank") {
      return true;
    }
  }
  return each.source->content.contains("http://") || each.source->content.contains("https://") ||
         each.field("link").contains("rel=");
}

void check_missing_refused(recording const& what, verdict& out) {
  auto const* const each = what.find(probe::key_missing);
  if (each == nullptr || is_about_access(*each)) {
    return;
  }
  out.applies();
  if (is_done(each)) {
    out.broken(*each, name,
               "the write without a key was carried out, though a key is said to be required");
  }
}

void check_missing_status(recording const& what, verdict& out) {
  auto const* const each = what.find(probe::key_missing);
  if (!is_refused(each) || is_about_access(*each)) {
    return;
  }
  expect_status(*each, 400, "the write without a key was refused with ", out);
}

void check_first(recording const& what, verdict& out) {
  auto const* const each = what.find(probe::key_first);
  if (each == nullptr || is_about_access(*each)) {
    return;
  }
  bool const is_refused_as_used = each->status() == 409;
  if (is_done(each) || is_refused_as_used) {
    out.applies();
  }
  if (is_refused_as_used) {
    out.broken(*each, name, "a key that was never used was refused as if it were in use");
  }
}

void check_retry_status(recording const& what, verdict& out) {
  auto const* const first = first_done(what);
  auto const* const retry = what.find(probe::key_retry);
  if (first == nullptr || retry == nullptr) {
    return;
  }
  out.applies();
  if (retry->status() != first->status()) {
    out.broken(*retry, name,
               "the retry got " + std::to_string(retry->status()) + ", the first request " +
                   std::to_string(first->status()));
  }
}

void check_retry_content(recording const& what, verdict& out) {
  auto const* const first = first_done(what);
  auto const* const retry = what.find(probe::key_retry);
  if (first == nullptr || !is_done(retry)) {
    return;
  }
  out.applies();
  if (retry->source->content != first->source->content) {
    out.broken(
        *retry, name,
        "the retry got other content than the first request: it was probably carried out again");
  }
}

void check_reuse_refused(recording const& what, verdict& out) {
  auto const* const each = what.find(probe::key_reused);
  if (first_done(what) == nullptr || each == nullptr) {
    return;
  }
  out.applies();
  if (each->status() < 400) {
    out.broken(*each, name, "the key was accepted a second time with another payload");
  }
}

void check_reuse_status(recording const& what, verdict& out) {
  auto const* const each = what.find(probe::key_reused);
  if (first_done(what) == nullptr || !is_refused(each)) {
    return;
  }
  expect_status(*each, 422, "a key with another payload was refused with ", out);
}

/// Keys are said to be required: a write without one was tried.
[[nodiscard]] auto is_required(recording const& what) -> bool {
  return std::ranges::any_of(what.all(),
                             [](seen const& each) { return each.purpose() == probe::key_missing; });
}

/// RFC 8941, section 4.2, has a field that cannot be parsed ignored as if it were not there. So the
/// write goes on where keys are optional, and is one without a key where they are required.
void judge_malformed(recording const& what, verdict& out, bool required) {
  auto const* const each = what.find(probe::key_malformed);
  if (each == nullptr || is_about_access(*each) || is_required(what) != required) {
    return;
  }
  out.applies();
  if (is_done(each)) {
    out.broken(
        *each, name,
        "a write whose key is not a String was carried out, unprotected or under another key");
  }
}

void check_malformed(recording const& what, verdict& out) {
  judge_malformed(what, out, true);
}

void check_malformed_optional(recording const& what, verdict& out) {
  judge_malformed(what, out, false);
}

/// Both of two writes at once with one key.
[[nodiscard]] auto pair_of(recording const& what) -> std::pair<seen const*, seen const*> {
  std::pair<seen const*, seen const*> both{};
  for (auto const& each : what.all()) {
    if (each.purpose() == probe::key_concurrent && each.is_judged()) {
      (both.first == nullptr ? both.first : both.second) = &each;
    }
  }
  return both;
}

void check_concurrent(recording const& what, verdict& out) {
  auto const [one, other] = pair_of(what);
  if (!is_done(one) || !is_done(other)) {
    if (is_done(one) != is_done(other) && one != nullptr && other != nullptr) {
      out.applies();
    }
    return;
  }
  out.applies();
  if (one->source->content != other->source->content) {
    out.broken(
        *other, name,
        "two requests at once with one key got different content: both were probably carried out");
  }
}

void check_concurrent_status(recording const& what, verdict& out) {
  auto const [one, other] = pair_of(what);
  if (one == nullptr || other == nullptr || is_done(one) == is_done(other)) {
    return;
  }
  expect_status(is_done(one) ? *other : *one, 409,
                "while the first request is processed, a second one gets ", out);
}

void check_documented(recording const& what, verdict& out) {
  for (auto const& each : what.all()) {
    bool const is_refusal = (each.purpose() == probe::key_missing && each.status() == 400) ||
                            (each.purpose() == probe::key_reused && first_done(what) != nullptr &&
                             each.status() == 422);
    if (!is_refusal) {
      continue;
    }
    out.applies();
    if (!is_documented(each)) {
      out.broken(each, name,
                 "the refusal has no link to documentation, neither in its content nor in Link");
    }
  }
}

void check_described(recording const& what, verdict& out) {
  for (auto const& each : what.all()) {
    if (each.purpose() != probe::key_concurrent || each.status() != 409) {
      continue;
    }
    out.applies();
    if (each.source->content.empty() && each.field("link").empty()) {
      out.broken(each, name, "the 409 does not say what the conflict is");
    }
  }
}

constexpr auto table = std::to_array<checked_rule>({
    {{"idempotency-missing-key-refused", warning, idempotency_key, "2.7",
      "Where a key is required, a request without one is refused."},
     check_missing_refused},
    {{"idempotency-missing-key-status", warning, idempotency_key, "2.7",
      "A request without a required key gets 400."},
     check_missing_status},
    {{"idempotency-first-processed", warning, idempotency_key, "2.6",
      "A request with a fresh key is processed normally."},
     check_first},
    {{"idempotency-retry-status", warning, idempotency_key, "2.6",
      "A retry gets the status of the completed request."},
     check_retry_status},
    {{"idempotency-retry-content", warning, idempotency_key, "2.6",
      "A retry gets the result of the completed request."},
     check_retry_content},
    {{"idempotency-reuse-refused", error, idempotency_key, "2.2, 2.7",
      "A key that was used is not accepted with another payload."},
     check_reuse_refused},
    {{"idempotency-reuse-status", warning, idempotency_key, "2.7",
      "A key with another payload gets 422."},
     check_reuse_status},
    {{"idempotency-malformed-refused", warning, idempotency_key, "2.1, 5",
      "Where a key is required, one that is not a String is refused."},
     check_malformed},
    {{"idempotency-malformed-ignored", advice, idempotency_key, "5",
      "Where keys are optional, one that is not a String is refused too, rather than passed over."},
     check_malformed_optional},
    {{"idempotency-concurrent-once", warning, idempotency_key, "2.6",
      "Of two requests at once with one key one is carried out."},
     check_concurrent},
    {{"idempotency-concurrent-status", warning, idempotency_key, "2.7",
      "A retry while the first request is processed gets 409."},
     check_concurrent_status},
    {{"idempotency-refusal-documented", warning, idempotency_key, "2.7",
      "A 400 or 422 about a key links to documentation."},
     check_documented},
    {{"idempotency-conflict-described", warning, idempotency_key, "2.7",
      "A 409 about a key describes the problem."},
     check_described},
});

}  // namespace

auto idempotency_rules() noexcept -> std::span<checked_rule const> {
  return table;
}

}  // namespace tidegate::TIDEGATE_ABI::lint
