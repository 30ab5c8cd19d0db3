// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/ascii.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/http/problem.hpp>
#include <tidegate/idempotency/retry.hpp>
#include <tidegate/json/canonical.hpp>
#include <tidegate/json/pointer.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace tidegate::TIDEGATE_ABI::idempotency {

namespace {

using std::chrono::nanoseconds;

/// A problem is small; what is not is not read.
constexpr std::size_t problem_octets_max = 65536;

/// A share of `most`, as `randomness` says.
[[nodiscard]] auto part_of(nanoseconds most, std::uint64_t randomness) noexcept -> nanoseconds {
  auto const chance = std::ldexp(static_cast<double>(randomness >> 11), -53);  // 0 to 1
  return std::chrono::duration_cast<nanoseconds>(std::max(most, nanoseconds(0)) * chance);
}

/// Answers that say nothing about the request, only that it was not the time for it, or that a
/// server on the way did not get an answer.
[[nodiscard]] auto is_passing(int status) noexcept -> bool {
  constexpr std::array passing = {408, 425, 429, 502, 503, 504};
  return std::ranges::find(passing, status) != passing.end();
}

enum class repeats : std::uint8_t { never, counted, while_in_flight };

[[nodiscard]] auto may_repeat(repeatability const& request, attempt const& outcome,
                              std::uint32_t retries) noexcept -> repeats {
  if (outcome.delivery == delivery::not_sent) {
    return repeats::counted;
  }
  if (!request.idempotent_method && !request.has_key) {
    return repeats::never;
  }
  if (outcome.delivery == delivery::no_answer || is_passing(outcome.status)) {
    return repeats::counted;
  }
  if (outcome.status != 409 || !request.has_key) {
    return repeats::never;
  }
  if (outcome.code == problem_code::in_flight) {
    return repeats::while_in_flight;
  }
  if (outcome.code && *outcome.code != problem_code::outcome_unknown) {
    return repeats::never;
  }
  // A key that was not used before cannot be in flight: then the conflict is about something
  // else.
  return outcome.retry_after || retries > 0 ? repeats::counted : repeats::never;
}

}  // namespace

auto is_idempotent(std::string_view method) noexcept -> bool {
  constexpr std::array<std::string_view, 6> idempotent = {"GET",   "HEAD", "OPTIONS",
                                                          "TRACE", "PUT",  "DELETE"};
  return std::ranges::find(idempotent, method) != idempotent.end();
}

auto backoff(retry_rules const& rules, std::uint32_t retries, std::uint64_t randomness) noexcept
    -> nanoseconds {
  auto most = std::max(rules.backoff_first, nanoseconds(0));
  for (std::uint32_t i = 0; i < retries && most < rules.backoff_max; ++i) {
    most = most > rules.backoff_max / 2 ? rules.backoff_max : most * 2;
  }
  return part_of(std::min(most, rules.backoff_max), randomness);
}

auto decide_retry(repeatability const& request, attempt const& outcome, std::uint32_t retries,
                  retry_rules const& rules, std::uint64_t randomness) noexcept -> retry_verdict {
  constexpr retry_verdict final;
  auto const repeat = may_repeat(request, outcome, retries);
  if (repeat == repeats::never || (repeat == repeats::counted && retries >= rules.retries_max)) {
    return final;
  }
  retry_verdict verdict{.again = true,
                        .counts = repeat == repeats::counted,
                        .asked_for = outcome.delivery == delivery::answered &&
                                     (outcome.retry_after || repeat == repeats::while_in_flight)};
  if (outcome.delivery == delivery::answered && outcome.retry_after) {
    // In seconds, since more of them can be asked for than nanoseconds can say.
    if (*outcome.retry_after > std::chrono::floor<std::chrono::seconds>(rules.retry_after_max)) {
      return final;
    }
    verdict.wait = nanoseconds(*outcome.retry_after) + part_of(rules.backoff_first, randomness);
  } else {
    verdict.wait = backoff(rules, retries, randomness);
  }
  return verdict;
}

auto read_problem_code(std::string_view content_type, std::string_view content)
    -> std::optional<problem_code> {
  auto const is_problem = equal_ignoring_case(http::media_type(content_type), http::problem_json);
  std::string canonical;
  if (!is_problem || content.size() > problem_octets_max ||
      !json::append_canonical(canonical, content)) {
    return std::nullopt;
  }
  auto const pointer = json::pointer::parse("/code");
  auto const found = pointer ? pointer->find(canonical) : std::nullopt;
  if (!found || found->size() < 2 || found->front() != '"') {
    return std::nullopt;
  }
  auto const name = found->substr(1, found->size() - 2);
  for (auto code = problem_code{};; code = static_cast<problem_code>(static_cast<int>(code) + 1)) {
    if (name_of(code) == name) {
      return code;
    }
    if (code == problem_code::store_unavailable) {
      return std::nullopt;
    }
  }
}

void retry_budget::add(double tokens) noexcept {
  tokens_ = std::min(tokens_ + tokens, rules_.tokens_max);
}

void retry_budget::pass_time(instant now) noexcept {
  if (last_ && now > *last_) {
    add(std::chrono::duration<double>(now - *last_).count() * rules_.per_second);
  }
  last_ = last_ ? std::max(*last_, now) : now;
}

void retry_budget::earn(instant now) noexcept {
  pass_time(now);
  add(rules_.share);
}

auto retry_budget::take(instant now) noexcept -> bool {
  pass_time(now);
  if (tokens_ < 1) {
    return false;
  }
  tokens_ -= 1;
  return true;
}

}  // namespace tidegate::TIDEGATE_ABI::idempotency
